//! `[model]`: the network, as layers or as a preset, which also consists of layers.

pub mod activation;
pub mod attention;
mod block;
mod common;
mod copies;
mod decode;
pub mod expand;
pub mod fourier;
pub mod grid;
pub mod initializer;
pub mod layer;
pub mod layer_spec;
mod mask;
pub mod message;
pub mod name;
mod one;
pub mod parametrization;
pub mod preset;
pub mod rotary;
mod share;

use super::adversarial::CONDITION;
use super::data::DataSpec;
use super::document::{Node, Table};
use super::hub::HubSpec;
use super::section::{KeyDoc, Section, Shape, describe};
use crate::diagnostic::Diagnostic;
pub use common::decode_layer;
use expand::expand;
use layer_spec::{LayerSpec, Source};
use preset::{ModelType, Preset};

/// The `[model]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// The layers in order; each uses only outputs of earlier ones.
    pub layers: Vec<LayerSpec>,
    /// The names of the network's inputs, if they have names.
    pub inputs: Vec<String>,
}

/// What layers can take besides the outputs of others.
#[derive(Clone, Debug, Default)]
pub struct NetworkInputs {
    /// The names of the parts of an item, if they have names.
    names: Vec<String>,
    /// Whether there is a `condition`, for which an item is generated.
    is_conditional: bool,
}

impl NetworkInputs {
    /// Those of some data.
    pub fn of(data: &DataSpec, is_conditional: bool) -> Self {
        let names = data.input_names();
        Self {
            is_conditional: is_conditional && names.is_empty(),
            names,
        }
    }

    /// All names.
    fn all(&self) -> Vec<String> {
        let condition = self.is_conditional.then(|| CONDITION.to_owned());
        self.names.iter().cloned().chain(condition).collect()
    }

    /// What a layer without `inputs` at the beginning takes.
    fn first(&self) -> Source {
        match self.names.as_slice() {
            [_] => Source::Part(0),
            _ => Source::Items,
        }
    }
}

/// The keys of a layer, for the schema and for messages.
pub fn describe_layer() -> Vec<KeyDoc> {
    describe(decode_layer)
}

impl ModelSpec {
    pub(super) fn decode(s: &mut Section<'_>, inputs: NetworkInputs) -> Self {
        let layers = s.variant("The network.", Some(ModelType::Layers), |s, kind| {
            match (kind, Preset::of(kind)) {
                (_, Some(preset)) => from_preset(s, preset, &inputs),
                // The folder was replaced by its preset before, unless it was refused.
                (ModelType::Hub, None) => {
                    HubSpec::decode(s);
                    if let Some((_, findings)) = s.reading() {
                        findings.poisoned.push("model".into());
                    }
                    Vec::new()
                }
                (_, None) => from_layers(s, &inputs),
            }
        });
        Self {
            layers,
            inputs: inputs.names,
        }
    }
}

fn from_layers(s: &mut Section<'_>, inputs: &NetworkInputs) -> Vec<LayerSpec> {
    let layers = s.raw("layers", "The layers, each with a `type`.", Shape::Layers);
    let blocks = s.raw(
        "blocks",
        "Named groups of layers, for use as a layer type.",
        Shape::Blocks,
    );
    let Some((span, findings)) = s.reading() else {
        return Vec::new();
    };
    if layers.is_none() {
        let diagnostic =
            Diagnostic::error("missing-key", "`model` has neither a `type` nor `layers`")
                .at(span)
                .help(
                    "add `type = \"mlp\"` or another preset, or `[[model.layers]]` for each layer",
                );
        findings.refuse("model", diagnostic);
        return Vec::new();
    }
    let model = Table {
        entries: layers.into_iter().chain(blocks).collect(),
    };
    expand(&model, Vec::new(), None, inputs, findings)
}

fn from_preset(
    s: &mut Section<'_>,
    preset: &'static Preset,
    inputs: &NetworkInputs,
) -> Vec<LayerSpec> {
    let mut arguments: Vec<(String, Node)> = Vec::new();
    for parameter in &preset.parameters {
        let node = s.argument(
            &parameter.key,
            parameter.kind(),
            &parameter.doc,
            &parameter.default,
        );
        arguments.push((parameter.key.clone(), node));
    }
    let place = s.written_at("type");
    let layers = s.written_at("layers");
    let Some((span, findings)) = s.reading() else {
        return Vec::new();
    };
    if let Some(layers) = layers {
        let message = format!(
            "`model` sets both `layers` and the type `{}`, which defines its own layers",
            preset.name
        );
        let diagnostic = Diagnostic::error("contradiction", message).at(layers).help(
            "remove `type` to use your layers, or remove `layers`; `runner describe SPEC --as-layers` prints the layers of a preset",
        );
        findings.refuse("model", diagnostic);
    }
    if layers.is_some() {
        s.known("layers");
        return Vec::new();
    }
    if findings.is_poisoned("model") {
        return Vec::new();
    }
    expand(
        &preset.model,
        arguments,
        Some((preset.name, place.unwrap_or(span))),
        inputs,
        findings,
    )
}
