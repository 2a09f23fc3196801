//! A network as PyTorch source code.
//!
//! [`network`] writes a class with an attribute for each layer that has weights or behaves otherwise in training, and a
//! `forward` that reads like hand-written code: `x` is the output of the previous layer, and values that are used later
//! have the name of their layer.

pub(crate) mod axes;
mod call;
pub mod decode;
mod file;
mod functions;
mod helpers;
mod masks;
mod samples;
mod sequences;
mod texts;
pub mod transforms;
mod windows;

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::error::Unsupported;
use crate::state::StateDict;
pub use file::{About, TOLERANCE, model_py};
pub(crate) use functions::shrinks;
use helpers::Helper;
use runner_core::check::network::{Input, Layer, Network};
use runner_core::diagnostic::Reason;
use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::model::layer_spec::{MaskKey, Weights};
use runner_core::spec::section::Choice;

/// The code of a layer.
#[derive(Default)]
struct Piece {
    /// The constructor of its attribute, if it has one.
    module: Option<String>,
    /// Statements that assign its output.
    lines: Vec<String>,
    /// The helpers that they use.
    helpers: Vec<Helper>,
}

impl Piece {
    /// A layer that is an expression of its inputs.
    fn expression(names: &Names<'_>, expression: impl AsRef<str>) -> Self {
        let (output, expression) = (&names.output, expression.as_ref());
        // A layer that only passes a value on, such as an identity.
        let is_same = output == expression;
        let line = format!("{output} = {expression}");
        Self {
            lines: if is_same { Vec::new() } else { vec![line] },
            ..Self::default()
        }
    }

    /// A module that is called with its inputs.
    fn module(names: &Names<'_>, module: String) -> Self {
        let call = format!("self.{}({})", names.module, names.inputs.join(", "));
        Self {
            module: Some(module),
            ..Self::expression(names, call)
        }
    }

    fn with(mut self, helper: Helper) -> Self {
        self.helpers.push(helper);
        self
    }
}

/// The names of a layer and its values.
struct Names<'a> {
    module: &'a str,
    /// The matrix of a tied layer, as PyTorch's `F.linear` takes it.
    matrix: Option<String>,
    inputs: Vec<String>,
    masks: Vec<(MaskKey, String)>,
    output: String,
}

impl Names<'_> {
    fn input(&self) -> &str {
        &self.inputs[0]
    }

    /// The value of a mask, if the layer has it.
    fn mask(&self, key: MaskKey) -> Option<&str> {
        let mut masks = self.masks.iter();
        let (_, name) = masks.find(|(of, _)| *of == key)?;
        Some(name)
    }
}

/// The functions and classes that a network needs, and the network as `class Network(nn.Module)`, to be placed after
/// imports of `torch`, `torch.nn as nn` and `torch.nn.functional as F`.
///
/// # Errors
/// If PyTorch has no counterpart of a layer.
pub fn network(network: &Network, state: &StateDict) -> Result<String, Unsupported> {
    let variables = variables(network, state);
    let items = items_name(network);
    let name_of = |input: &Input| match (input.layer, input.part) {
        (Some(at), _) => variables[at].clone(),
        (None, Some(part)) => state.inputs[part].clone(),
        (None, None) => items.to_owned(),
    };
    let mut helpers = BTreeSet::new();
    let (mut modules, mut lines) = (Vec::new(), Vec::new());
    for (at, layer) in network.layers.iter().enumerate() {
        let owner = match layer.weights {
            Some(Weights::Shared(owner)) => owner,
            _ => at,
        };
        let names = Names {
            module: &state.modules[owner],
            matrix: matrix(network, state, owner),
            inputs: layer.values().iter().map(name_of).collect(),
            masks: (layer.masks.iter())
                .zip(&layer.inputs[layer.values().len()..])
                .map(|(key, input)| (*key, name_of(input)))
                .collect(),
            output: variables[at].clone(),
        };
        if layer.documents.is_some() {
            return Err(Unsupported::documents(layer));
        }
        let piece = piece(layer, &names).map_err(|reason| Unsupported {
            layer: layer.name.clone(),
            kind: layer.kind.type_name(),
            reason: reason.0,
        })?;
        helpers.extend(piece.helpers);
        if let Some(module) = piece.module.filter(|_| owner == at) {
            let module = parametrized(module, &layer.kind);
            modules.push(format!("self.{} = {module}", names.module));
        }
        lines.extend(piece.lines);
    }
    let last = network.layers.len().checked_sub(1);
    let output = last.map_or(items, |last| &variables[last]);
    lines.push(format!("return {output}"));
    let mut text = String::new();
    for helper in helpers {
        text += helper.text();
        text += "\n\n\n";
    }
    let _ = write!(
        text,
        "class Network(nn.Module):\n    \"\"\"From {} to {}, with the batch first.\"\"\"\n\n    \
         def __init__(self):\n        super().__init__()\n",
        match network.parts.len() {
            0 => format!("items of shape {}", network.items.show()),
            _ => network.show_items(),
        },
        numbers(last.map_or(&network.items.dims, |last| &network.layers[last].shape)),
    );
    for line in modules {
        let _ = writeln!(text, "        {line}");
    }
    let given = match state.inputs.len() {
        0 => items.to_owned(),
        _ => state.inputs.join(", "),
    };
    let _ = write!(text, "\n    def forward(self, {given}):\n");
    for line in lines {
        let _ = writeln!(text, "        {line}");
    }
    Ok(text)
}

/// A module with a weight that is computed from other parameters.
fn parametrized(module: String, kind: &LayerKind) -> String {
    let parametrization = kind.parametrization();
    if parametrization.is_none() {
        return module;
    }
    let function = format!("nn.utils.parametrizations.{}", parametrization.name());
    call::Call::new(function).arg(module).end()
}

/// The matrix that a tied layer uses.
fn matrix(network: &Network, state: &StateDict, at: usize) -> Option<String> {
    let Some(Weights::Tied(owner)) = network.layers[at].weights else {
        return None;
    };
    let weight = format!("self.{}.weight", state.modules[owner]);
    Some(match network.layers[owner].kind {
        // PyTorch's matrices are [outputs, inputs], as tables are.
        LayerKind::Embedding { .. } => weight,
        _ => format!("{weight}.T"),
    })
}

fn numbers(dims: &[usize]) -> String {
    format!("{dims:?}")
}

/// The name of the network's input: `x` if only the first layer uses it.
fn items_name(network: &Network) -> &'static str {
    let mut layers = network.layers.iter().enumerate();
    let is_kept = layers.any(|(at, layer)| {
        let mut inputs = layer.inputs.iter();
        at > 0 && inputs.any(|input| input.layer.is_none())
    });
    if is_kept { "items" } else { "x" }
}

/// The name of each layer's output: `x` if only the next layer or the caller uses it.
fn variables(network: &Network, state: &StateDict) -> Vec<String> {
    let last = network.last_uses();
    let first = |at: usize| {
        let mut layers = network.layers.iter();
        layers.position(|layer| layer.inputs.iter().any(|input| input.layer == Some(at)))
    };
    let names = (0..network.layers.len()).map(|at| {
        let is_last = at + 1 == network.layers.len();
        if is_last || (first(at) == Some(at + 1) && last[at] == at + 1) {
            "x".to_owned()
        } else {
            state.modules[at].clone()
        }
    });
    names.collect()
}

/// Why layers of messages cannot be written.
pub(crate) const GRAPHS: &str =
    "passes messages along the edges of a graph, which exported networks do not get";

/// Why noise cannot be written.
pub(crate) const NOISE: &str = "draws random numbers, and two networks follow it";

/// Why layers of the program's own cannot be written.
pub(crate) const OWN: &str =
    "it is a layer type of the program that trained it, which other programs do not have";

fn piece(layer: &Layer, names: &Names<'_>) -> Result<Piece, Reason> {
    Ok(match &layer.kind {
        LayerKind::Linear { .. } | LayerKind::Swiglu { .. } | LayerKind::Embedding { .. } => {
            functions::linear(layer, names)
        }
        LayerKind::Conv(conv) => windows::conv(conv, layer, names),
        LayerKind::ConvTranspose(conv) => windows::conv_transpose(conv, layer, names),
        LayerKind::DeformConv2d(conv) => windows::deform_conv(conv, layer, names),
        LayerKind::Unfold(window) => {
            let call = call::Call::new("F.unfold").arg(names.input());
            Piece::expression(names, windows::window(window, call).end())
        }
        LayerKind::Norm(norm) => functions::norm(norm, layer, names),
        LayerKind::Dropout { probability } => {
            Piece::module(names, format!("nn.Dropout({probability:?})"))
        }
        LayerKind::ChannelDropout { probability } => {
            let axes = match layer.shape.len() {
                1 => String::new(),
                rank => format!("{}d", rank - 1),
            };
            Piece::module(names, format!("nn.Dropout{axes}({probability:?})"))
        }
        LayerKind::StochasticDepth { probability } => {
            Piece::module(names, format!("StochasticDepth({probability:?})"))
                .with(Helper::StochasticDepth)
        }
        LayerKind::GaussianNoise { std } => {
            Piece::module(names, format!("GaussianNoise({std:?})")).with(Helper::GaussianNoise)
        }
        LayerKind::GaussianSample => {
            Piece::module(names, "GaussianSample()".to_owned()).with(Helper::GaussianSample)
        }
        LayerKind::Pool(pool) => windows::pool(pool, layer, names),
        LayerKind::AdaptiveAvgPool { dims, output_size } => Piece::expression(
            names,
            call::Call::new(format!("F.adaptive_avg_pool{dims}d"))
                .arg(names.input())
                .arg(call::sizes(output_size))
                .end(),
        ),
        LayerKind::Recurrent(recurrent) => sequences::recurrent(recurrent, layer, names),
        LayerKind::Dlinoss(oscillators) => {
            let call = call::Call::new("DLinOSS").arg(layer.shape[1]);
            let module = call.arg(oscillators.state_size).end();
            Piece::module(names, module).with(Helper::Dlinoss)
        }
        LayerKind::MultiHeadAttention { .. } => sequences::attention(layer, names),
        LayerKind::GroupedAttention(attention) => sequences::grouped(attention, layer, names),
        LayerKind::TransformerEncoder(stack) => sequences::encoder(stack, layer, names),
        LayerKind::TransformerDecoder(stack) => sequences::decoder(stack, layer, names),
        LayerKind::PositionalEncoding { .. } | LayerKind::RotaryEncoding { .. } => {
            sequences::positions(layer, names)
        }
        LayerKind::Activation(Activation::Sparsemax) => {
            let call = call::Call::new("sparsemax").arg(names.input());
            Piece::expression(names, call.end()).with(Helper::Sparsemax)
        }
        LayerKind::LinearScan { reverse } => samples::linear_scan(*reverse, names),
        LayerKind::Fourier(_) | LayerKind::Roll { .. } | LayerKind::TopK { .. } => {
            samples::along_axes(layer, names)
        }
        LayerKind::GridSample(settings) => samples::grid_sample(settings, names),
        LayerKind::AffineGrid(settings) => samples::affine_grid(settings, names),
        LayerKind::Activation(activation) => {
            Piece::expression(names, functions::activation(activation, names.input())?)
        }
        LayerKind::PositionEmbedding { max_length, .. } => {
            let sizes = format!("PositionEmbedding({max_length}, {})", layer.shape[1]);
            Piece::module(names, sizes).with(Helper::PositionEmbedding)
        }
        LayerKind::Parameter { shape, .. } => {
            let sizes = shape
                .iter()
                .fold(call::Call::new("Parameter"), call::Call::arg);
            Piece::module(names, sizes.end()).with(Helper::Parameter)
        }
        LayerKind::Pad {
            padding,
            mode,
            value,
        } => Piece::expression(names, windows::pad(padding, *mode, *value, layer, names)?),
        LayerKind::Prelu { initial, .. } => functions::prelu(*initial, layer, names),
        LayerKind::Interpolate { .. } => windows::interpolate(layer, names),
        LayerKind::PaddingMask { padding } => masks::padding(*padding, layer, names),
        LayerKind::Reduce { operation, axis } if !names.masks.is_empty() => {
            masks::reduced(*operation, *axis, layer, names)
        }
        LayerKind::Identity
        | LayerKind::Flatten { .. }
        | LayerKind::Reshape { .. }
        | LayerKind::Permute { .. }
        | LayerKind::Unsqueeze { .. }
        | LayerKind::Squeeze { .. }
        | LayerKind::Slice { .. }
        | LayerKind::Reduce { .. }
        | LayerKind::PixelShuffle { .. }
        | LayerKind::PixelUnshuffle { .. }
        | LayerKind::Add
        | LayerKind::Multiply
        | LayerKind::Pairwise { .. }
        | LayerKind::Matmul
        | LayerKind::Einsum { .. }
        | LayerKind::Cumsum { .. }
        | LayerKind::Concat { .. } => Piece::expression(names, axes::expression(layer, names)),
        LayerKind::Message(_) | LayerKind::GraphPool { .. } | LayerKind::EdgeEnds { .. } => {
            return Err(Reason(GRAPHS.into()));
        }
        LayerKind::Noise { .. } => return Err(Reason(NOISE.into())),
        LayerKind::Own(_) => return Err(Reason(OWN.into())),
    })
}
