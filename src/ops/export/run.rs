//! Exports of the network of a run.

use std::borrow::Cow;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::asked::{ExportOnnx, ExportPytorch, ExportWeights, Exported, Format, Naming};
use super::example::Example;
use super::{
    About, ExportError, OnnxGraph, cast, failed, onnx_model, onnx_network, pytorch_with, tensors,
};
use crate::error::Error;
use crate::model::{Model, Options, find};
use crate::ops::place::{File, Folder};
use crate::ops::{Progress, Sink};
use runner_core::check::network::Network;
use runner_core::data::encode::TargetEncoder;
use runner_core::diagnostic::Diagnostic;
use runner_core::plan::RunPlan;
use runner_core::spec::backend::Precision;
use runner_core::spec::loss::LossFunction;
use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::task::TaskKind;
use runner_exchange::marks::Marks;
use runner_exchange::onnx;
use runner_exchange::onnx::transforms::{Given, Meaning};
use runner_exchange::state::StateDict;
use runner_exchange::tensors::Tensors;
use runner_exchange::torch::decode::decode;
use runner_exchange::torch::transforms::{functions, is_subwords_file, subword_files};
use runner_exchange::write::{self, Whole};
use runner_network::graph::Graph;

/// The files of an exported folder, and those that running it creates.
const PYTORCH_FILES: [&str; 4] = [
    "model.py",
    "weights.safetensors",
    "example.json",
    "__pycache__",
];

/// Opens a run, and reports which one if there was a choice. With `computes`, in a precision that other programs
/// support on any machine.
pub(in crate::ops) fn open(
    run: &Path,
    options: &Options,
    computes: bool,
    sink: &Sink<'_>,
) -> Result<Model, Error> {
    let mut found = find(run, options).map_err(Error::Refused)?;
    if let Some(why) = &found.why {
        sink(Progress::Note(why));
    }
    if computes && matches!(found.plan.precision, Precision::F16 | Precision::Bf16) {
        found.plan.precision = Precision::F32;
    }
    let model = Model::of(found, options).map_err(Error::Refused)?;
    let others = model.meaning().more().iter();
    let others: Vec<String> = others.map(|(name, _)| format!("`{name}`")).collect();
    if computes && !others.is_empty() {
        sink(Progress::Note(&format!(
            "the exported network has only the output of the task, and not {}",
            others.join(", ")
        )));
    }
    Ok(model)
}

pub(super) fn exported(model: &Model, tensors: &Tensors) -> Exported {
    Exported {
        run: model.plan().id.clone(),
        weights: model.weights(),
        num_tensors: tensors.len(),
        num_values: tensors.num_values(),
    }
}

/// Writes the weights of a run to a file.
///
/// # Errors
/// [`Error::Refused`] if the run cannot be opened, the format does not support the request, or the file may not be
/// written.
///
/// ```no_run
/// use burn_runner::ops;
/// use burn_runner::ops::export::{self, ExportWeights, Format};
///
/// let options = ExportWeights::new("results/iris_csv", Format::Safetensors, "iris.safetensors");
/// let exported = export::export_weights(&options, &ops::quiet)?;
/// println!("{} tensors", exported.num_tensors);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn export_weights(asked: &ExportWeights, sink: &Sink<'_>) -> Result<Exported, Error> {
    if asked.full && asked.format != Format::PytorchJson {
        let diagnostic = Diagnostic::error("usage", "only JSON supports `--full`");
        return Err(Error::refused(
            diagnostic.help("omit `--full`, or pass `--format pytorch-json`"),
        ));
    }
    let file = File::new(&asked.out, asked.force)?;
    let model = open(&asked.run, &asked.options, false, sink)?;
    let wrong = |error: ExportError| failed(&asked.out, &error);
    let burn = tensors(model.network().graph()).map_err(|e| wrong(e.into()))?;
    let naming = asked.names.unwrap_or(match asked.format {
        Format::Bpk => Naming::Burn,
        _ => Naming::Pytorch,
    });
    let named = match naming {
        Naming::Burn => without_constants(&model, burn),
        Naming::Pytorch => {
            let state = StateDict::of(&model.plan().network);
            state.to_torch(&burn).map_err(ExportError::from)
        }
    };
    let mut named = named.map_err(wrong)?;
    if let Some(numbers) = asked.dtype {
        named = cast(named, numbers.dtype()).map_err(|e| wrong(e.into()))?;
    }
    file.write(|to| write_as(asked, &model, &named, to).map_err(wrong))?;
    Ok(exported(&model, &named))
}

fn write_as(
    asked: &ExportWeights,
    model: &Model,
    named: &Tensors,
    to: &mut BufWriter<&fs::File>,
) -> Result<(), ExportError> {
    match asked.format {
        Format::Safetensors => write::safetensors(named, to)?,
        Format::Pytorch => write::torch(named, to)?,
        Format::PytorchJson if asked.full => write::whole(named, &whole(model), to)?,
        Format::PytorchJson => write::flat(named, to)?,
        Format::Npz => write::npz(named, to)?,
        Format::Bpk => super::bpk::write(named, to)?,
    }
    Ok(())
}

/// Burn's modules compute the constants of positional encodings themselves.
fn without_constants(model: &Model, burn: Tensors) -> Result<Tensors, ExportError> {
    let state = StateDict::of(&model.plan().network);
    let constants = state.entries.iter().filter(|entry| entry.is_constant);
    let constants: Vec<&String> = constants.flat_map(|entry| &entry.burn).collect();
    let mut learned = Tensors::new();
    for tensor in burn {
        if !constants.iter().any(|name| *name == tensor.name()) {
            learned.push(tensor)?;
        }
    }
    Ok(learned)
}

/// The information about the run in a file, in addition to its weights.
fn whole(model: &Model) -> Whole {
    let plan = model.plan();
    let layers = plan.network.layers.iter().map(|layer| {
        let mut value = json!({ "name": layer.name, "output_shape": layer.shape });
        if let (Value::Object(all), Ok(Value::Object(keys))) =
            (&mut value, serde_json::to_value(&layer.kind))
        {
            all.extend(keys);
            if let Some(weights) = layer.weights {
                let owner = &plan.network.layers[weights.owner()].name;
                all.insert("weights_of".into(), json!(owner));
            }
        }
        value
    });
    let mut architecture = json!({
        "input_shape": plan.network.items.dims,
        "layers": layers.collect::<Vec<_>>(),
    });
    if !plan.network.parts.is_empty() {
        architecture["inputs"] = json!(plan.network.parts);
    }
    Whole {
        model_type: "network".into(),
        architecture,
        metadata: metadata(plan, model.weights()),
    }
}

fn metadata(plan: &RunPlan, weights: &str) -> Value {
    json!({
        "exported_by": format!("burn-runner {}", env!("CARGO_PKG_VERSION")),
        "experiment": plan.experiment,
        "run": plan.id,
        "weights": weights,
        "fingerprint": plan.fingerprint,
    })
}

/// Writes the network of a run as PyTorch source code with its weights and an example.
///
/// # Errors
/// [`Error::Refused`] if the run cannot be opened, PyTorch has no counterpart of a layer, or the folder may not be
/// written.
///
/// ```no_run
/// use burn_runner::ops;
/// use burn_runner::ops::export::{self, ExportPytorch};
///
/// let options = ExportPytorch::new("results/iris_csv", "iris");
/// let exported = export::export_pytorch(&options, &ops::quiet)?;
/// println!("run {}", exported.run);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn export_pytorch(asked: &ExportPytorch, sink: &Sink<'_>) -> Result<Exported, Error> {
    let folder = pytorch_folder(&asked.out, asked.force)?;
    let model = open(&asked.run, &asked.options, true, sink)?;
    write_pytorch(&model, &asked.out, folder)
}

/// The same for a model that is open, into a new folder.
///
/// # Errors
/// As [`export_pytorch`].
pub fn export_pytorch_of(model: &Model, out: &Path) -> Result<Exported, Error> {
    write_pytorch(model, out, pytorch_folder(out, false)?)
}

fn pytorch_folder(out: &Path, force: bool) -> Result<Folder<'_>, Error> {
    Folder::new(out, force, |name| {
        let name = name.to_string_lossy();
        is_subwords_file(&name) || PYTORCH_FILES.contains(&&*name)
    })
}

fn write_pytorch(model: &Model, out: &Path, folder: Folder<'_>) -> Result<Exported, Error> {
    let wrong = |error: ExportError| failed(out, &error);
    let plan = model.plan();
    let (network, graph) = computed(model);
    refuse_graphs(&network)?;
    let example = if model.generates() {
        Example::of(&network, &graph, model.device())
    } else {
        Example::of_model(model)
    };
    // The names of tokens are part of the encoding of texts.
    let transforms = model.transforms().of_new_data(&plan.data);
    let has_names = matches!(
        transforms.target,
        TargetEncoder::Class { .. } | TargetEncoder::Classes { .. } | TargetEncoder::Labels { .. }
    );
    let names = has_names.then(|| model.meaning().names());
    let encoding = if model.generates() {
        // Noise is not encoded.
        String::new()
    } else {
        functions(&transforms, Marks::of(&plan.data), names) + "\n\n"
    };
    let about = About {
        origin: format!(
            "The {} of run `{}` of the experiment `{}` with its weights `{}`, exported by burn-runner {}.",
            if model.generates() {
                "generator"
            } else {
                "network"
            },
            plan.id,
            plan.experiment,
            model.weights(),
            env!("CARGO_PKG_VERSION")
        ),
        functions: encoding + &decode(&transforms, plan.task.kind, &plan.loss.function),
        has_rows: example.rows.is_some(),
    };
    let made = pytorch_with(&network, &graph, &example, &about).map_err(wrong)?;
    let fill = |new: &Path| -> io::Result<()> {
        let mut files = made.files().into_iter();
        files.try_for_each(|(name, bytes)| fs::write(new.join(name), bytes))?;
        let mut tokenizers = subword_files(&transforms).into_iter();
        tokenizers.try_for_each(|(name, subwords)| fs::write(new.join(name), subwords))
    };
    folder.write(|new| fill(new).map_err(|e| wrong(e.into())))?;
    Ok(exported(model, &made.tensors))
}

/// Writes the network of a run as an ONNX graph.
///
/// # Errors
/// [`Error::Refused`] if the run cannot be opened, ONNX has no operators for a layer or a transform, or the file may not
/// be written.
///
/// ```no_run
/// use burn_runner::ops;
/// use burn_runner::ops::export::{self, ExportOnnx};
///
/// let mut options = ExportOnnx::new("results/iris_csv", "iris.onnx");
/// options.with_transforms = true;
/// export::export_onnx(&options, &ops::quiet)?;
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn export_onnx(asked: &ExportOnnx, sink: &Sink<'_>) -> Result<Exported, Error> {
    let file = File::new(&asked.out, asked.force)?;
    let model = open(&asked.run, &asked.options, true, sink)?;
    let (network, graph) = computed(&model);
    refuse_graphs(&network)?;
    if asked.with_transforms && model.generates() {
        let message = format!(
            "run `{}` generates items from noise, which is not transformed",
            model.plan().id
        );
        return Err(Error::refused(
            Diagnostic::error("usage", message).help("omit `--with-transforms`"),
        ));
    }
    let wrong = |error: ExportError| failed(&asked.out, &error);
    let bytes = if asked.with_transforms {
        with_transforms(&model)
    } else {
        onnx_model(&network, &graph)
    };
    let bytes = bytes.map_err(wrong)?;
    let burn = tensors(&graph).map_err(|e| wrong(e.into()))?;
    file.write(|to| to.write_all(&bytes).map_err(|e| wrong(e.into())))?;
    Ok(exported(&model, &burn))
}

/// The network that other programs get: of a pair, the generator.
fn computed(model: &Model) -> (Cow<'_, Network>, Cow<'_, Graph>) {
    match model.generator() {
        Some((network, graph)) => (Cow::Owned(network), Cow::Owned(graph)),
        None => (
            Cow::Borrowed(&model.plan().network),
            Cow::Borrowed(model.network().graph()),
        ),
    }
}

/// Layers of messages need edges, which exported networks do not get.
fn refuse_graphs(network: &Network) -> Result<(), Error> {
    let mut layers = network.layers.iter();
    let Some(layer) = layers.find(|layer| matches!(layer.kind, LayerKind::Message(_))) else {
        return Ok(());
    };
    let message = format!(
        "layer `{}` passes messages along the edges of a graph, which exported networks do not get",
        layer.name
    );
    let help =
        "export the weights with `runner export weights`, under the names of PyTorch Geometric";
    Err(Error::refused(
        Diagnostic::error("usage", message).help(help),
    ))
}

/// An ONNX file from untransformed data to predictions.
fn with_transforms(model: &Model) -> Result<Vec<u8>, ExportError> {
    let transforms = &model.transforms().of_new_data(&model.plan().data);
    let mut made = OnnxGraph::new("model");
    let marks = Marks::of(&model.plan().data);
    let encoded = onnx::transforms::encode(&mut made, transforms, marks);
    let encoded = encoded.map_err(ExportError::Transforms)?;
    let network = &model.plan().network;
    let (given, shape) = onnx_network(&mut made, network, model.network().graph(), &encoded.items)?;
    let task = model.meaning().task();
    let meaning = match &model.plan().loss.function {
        loss if loss.gives_probabilities() && task == TaskKind::MultiLabel => Meaning::Labels,
        loss if loss.is_of_softmax() && task.is_of_tokens() => Meaning::Tokens,
        loss if loss.is_of_softmax() && task.is_of_classes() => Meaning::Classes,
        LossFunction::PoissonNll { log_input, .. } => Meaning::Rates { is_log: *log_input },
        LossFunction::GaussianNll => Meaning::Gaussian,
        _ => Meaning::Numbers,
    };
    let names = model.meaning().names();
    let given = Given {
        output: &given,
        shape: &shape,
        lacking: encoded.lacking.as_deref(),
    };
    onnx::transforms::decode(&mut made, transforms, meaning, names, &given)
        .map_err(ExportError::Transforms)?;
    let about = metadata(model.plan(), model.weights());
    let about: Vec<(String, String)> = about
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    Ok(onnx::to_bytes(&onnx::model(made, &about)?))
}
