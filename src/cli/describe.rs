//! `runner describe`: the network of an experiment as a table, as a graph, or as layers to copy.

use serde_json::json;

use super::output::Output;
use super::tell::Teller;
use super::{DescribeArgs, OK, weights};
use crate::ops::{self, Describe};
use runner_core::check::forecast::trained_parameters;
use runner_core::check::network::{Layer, Network, Shape};
use runner_core::diagnostic::grouped;
use runner_core::plan::RunPlan;
use runner_core::show::show_bytes;
use runner_core::spec::document::Value;
use runner_core::spec::loss::LossFunction;
use runner_core::spec::model::ModelSpec;
use runner_core::spec::model::layer_spec::{LayerSpec, Source, Weights};
use runner_core::spec::section::Choice;
use runner_core::table::{Columns, fit_numbers};
use runner_report::console::Mode;

/// `runner describe`
pub fn describe(args: &DescribeArgs, output: &mut Output) -> u8 {
    let options = Describe::new(args.spec.experiment());
    let teller = Teller::new(Mode::Normal);
    let sink = |progress: ops::Progress<'_>| teller.tell(progress);
    if args.as_layers {
        return match ops::layers(&options, &sink) {
            Ok(layers) => print_layers(&layers, output),
            Err(error) => output.fail(&error),
        };
    }
    let networks = match ops::describe(&options, &sink) {
        Ok(described) => described.networks,
        Err(error) => return output.fail(&error),
    };
    if args.json {
        for (run, trials) in networks {
            let trained: u64 = trained_parameters(&run.network, &run.optimizer)
                .iter()
                .sum();
            let object = json!({
                "trials": trials,
                "network": run.network,
                "trained_parameters": trained,
            });
            output.print(&object.to_string());
        }
        return OK;
    }
    let several = networks.len() > 1;
    for (at, (run, trials)) in networks.iter().enumerate() {
        if several && !args.dot {
            let gap = if at > 0 { "\n" } else { "" };
            output.print_fitted(&format!("{gap}{}", heading(trials)));
        }
        if args.dot {
            output.print(&dot(&run.id, &run.network));
            continue;
        }
        output.print_fitted(&table(run));
        if let Some(init) = &run.init {
            output.print_fitted(&format!("\n{}", weights::table(init, true)));
        }
    }
    OK
}

fn print_layers(layers: &[(String, ModelSpec)], output: &mut Output) -> u8 {
    let several = layers.len() > 1;
    let mut shown: Vec<String> = Vec::new();
    for (trial, layers) in layers {
        let text = as_layers(&layers.layers, &layers.inputs);
        if !shown.contains(&text) {
            if several {
                output.print(&format!("# trial {trial}"));
            }
            output.print(&text);
            shown.push(text);
        }
    }
    OK
}

fn heading(trials: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = trials[..trials.len().min(SHOWN)].join("; ");
    match trials.len() {
        num if num > SHOWN => format!("trials {shown} and {} more", num - SHOWN),
        1 => format!("trial {shown}"),
        _ => format!("trials {shown}"),
    }
}

fn table(run: &RunPlan) -> String {
    let network = &run.network;
    let has_branches = network
        .layers
        .iter()
        .enumerate()
        .any(|(at, layer)| !takes_previous(layer, at));
    let mut head = vec!["layer", "type"];
    if has_branches {
        head.push("inputs");
    }
    const NUMBERS: [&str; 3] = ["parameters", "multiply-adds", "activations"];
    head.push("output");
    head.extend(NUMBERS);
    let mut rows = Vec::new();
    let bytes = |values: u64| show_bytes(values * run.precision.num_bytes());
    let trained = trained_parameters(network, &run.optimizer);
    for (at, (layer, trained)) in network.layers.iter().zip(&trained).enumerate() {
        let frozen = match layer.num_parameters - trained {
            0 => String::new(),
            num if num == layer.num_parameters => format!(" (frozen{})", held(layer)),
            num => format!(" ({} frozen{})", grouped(num), held(layer)),
        };
        let mut row = vec![layer.name.clone(), layer.kind.type_name()];
        if has_branches {
            let inputs: Vec<_> = layer
                .inputs
                .iter()
                .map(|input| network.source_name(input))
                .collect();
            row.push(if takes_previous(layer, at) {
                String::new()
            } else {
                inputs.join(", ")
            });
        }
        row.extend([
            format!("{:?}", layer.shape),
            format!(
                "{}{frozen}{}",
                grouped(layer.num_parameters),
                foreign(network, layer)
            ),
            grouped(layer.multiply_adds_per_item),
            bytes(layer.activations_per_item),
        ]);
        rows.push(row);
    }
    let columns = Columns {
        head: head.into_iter().map(str::to_owned).collect(),
        rows,
    };
    let fitted = fit_numbers(columns, Output::table_width(), &[], &NUMBERS);
    let frozen = match network.num_parameters - trained.iter().sum::<u64>() {
        0 => String::new(),
        num => format!(" ({} of them frozen)", grouped(num)),
    };
    format!(
        "{}\n\nitems {}\n{} layers, {} parameters{frozen}, {} multiply-adds and {} of activations per item ({})",
        fitted.text,
        network.show_items(),
        network.layers.len(),
        grouped(network.num_parameters),
        grouped(network.multiply_adds_per_item),
        bytes(network.activations_per_item),
        run.precision.name(),
    ) + &class_weights(run)
}

/// How the frozen matrices of a layer are held, if that is in fewer bits.
fn held(layer: &Layer) -> String {
    if layer.held().is_empty() {
        return String::new();
    }
    format!(", {}", layer.base.name())
}

/// The weights of classes in losses, if there are some.
fn class_weights(run: &RunPlan) -> String {
    const SHOWN: usize = 12;
    let added = run
        .losses
        .iter()
        .map(|term| (term.name.as_str(), &term.loss));
    let losses = [("", &run.loss)].into_iter().chain(added);
    let lines = losses.filter_map(|(name, loss)| {
        let LossFunction::CrossEntropy { class_weights, .. } = &loss.function else {
            return None;
        };
        if class_weights.is_empty() {
            return None;
        }
        let shown = class_weights.iter().take(SHOWN);
        let mut shown: Vec<_> = shown.map(|weight| format!("{weight:.4}")).collect();
        if class_weights.len() > SHOWN {
            shown.push(format!("and {} more", class_weights.len() - SHOWN));
        }
        let of = if name.is_empty() {
            String::new()
        } else {
            format!(" of {name}")
        };
        Some(format!("\nclass weights{of}: {}", shown.join(", ")))
    });
    lines.collect()
}

/// The layer whose weights a layer uses.
fn foreign(network: &Network, layer: &Layer) -> String {
    match layer.weights {
        None => String::new(),
        Some(Weights::Shared(owner)) => format!(" (shared with {})", network.layers[owner].name),
        Some(Weights::Tied(owner)) => format!(" (tied to {})", network.layers[owner].name),
    }
}

fn takes_previous(layer: &Layer, at: usize) -> bool {
    matches!(layer.inputs.as_slice(), [input] if input.layer == at.checked_sub(1) && input.part.is_none())
}

/// The graph for Graphviz.
fn dot(name: &str, network: &Network) -> String {
    let mut text = format!("digraph {name:?} {{\n  node [shape=box, fontname=\"sans-serif\"];\n");
    let mut node = |id: &str, name: &str, shape: &Shape| {
        let label = format!("{name}\n{}", shape.show());
        text.push_str(&format!("  {id} [label={label:?}, shape=ellipse];\n"));
    };
    if network.parts.is_empty() {
        node("items", "items", &network.items);
    }
    for (at, part) in network.parts.iter().enumerate() {
        node(&format!("p{at}"), &part.name, &part.shape);
    }
    for (at, layer) in network.layers.iter().enumerate() {
        let kind = layer.kind.type_name();
        let label = format!("{}\n{kind} {:?}", layer.name, layer.shape);
        text.push_str(&format!("  n{at} [label={label:?}];\n"));
        for input in &layer.inputs {
            let from = match (input.layer, input.part) {
                (Some(from), _) => format!("n{from}"),
                (None, Some(part)) => format!("p{part}"),
                (None, None) => "items".to_owned(),
            };
            text.push_str(&format!("  {from} -> n{at};\n"));
        }
    }
    text.push('}');
    text
}

/// The layers as in an experiment file.
fn as_layers(layers: &[LayerSpec], names: &[String]) -> String {
    let mut text = String::new();
    for (at, layer) in layers.iter().enumerate() {
        text.push_str(&format!("[[model.layers]]\nname = {:?}\n", layer.name));
        let named = |input: &Source| match input {
            Source::Items => "\"input\"".to_owned(),
            Source::Part(at) => format!("{:?}", names[*at]),
            Source::Layer(from) => format!("{:?}", layers[*from].name),
        };
        let is_plain = layer.values() == [at.checked_sub(1).map_or(Source::Items, Source::Layer)];
        if !is_plain {
            let inputs = layer.values().iter().map(named);
            text.push_str(&format!(
                "inputs = [{}]\n",
                inputs.collect::<Vec<_>>().join(", ")
            ));
        }
        if layer.freeze && !matches!(layer.weights, Some(Weights::Shared(_))) {
            text.push_str("freeze = true\n");
        }
        if let Some(Weights::Tied(owner)) = layer.weights {
            text.push_str(&format!("tie = {:?}\n", layers[owner].name));
        }
        for (key, mask) in layer.masks.iter().zip(layer.masks()) {
            text.push_str(&format!("{} = {}\n", key.name(), named(mask)));
        }
        let known = [
            "name",
            "inputs",
            "freeze",
            "repeat",
            "when",
            "tie",
            "mask",
            "memory_mask",
        ];
        let own = |key: &str| !known.contains(&key);
        let written = |value: &Value| value.to_toml();
        for entry in layer.table.entries.iter().filter(|entry| own(&entry.key)) {
            text.push_str(&format!("{} = {}\n", entry.key, written(&entry.node.value)));
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}
