//! Layers over channels whose input is a sequence, with a row of features for each position.

use super::Point;
use super::network::{Layer, Network};
use crate::data::{DataPlan, Dataset};
use crate::diagnostic::Diagnostic;
use crate::spec::generate::Generator;
use crate::spec::model::layer::{LayerKind, Norm, Steps};

/// The first axis of a sequence of embeddings is its positions, and of layers over channels the channels: both have two
/// axes, so that shapes alone do not tell.
pub fn positions_are_not_channels(point: &Point<'_>) -> Option<Diagnostic> {
    let (network, data) = (point.network?, point.data?);
    let Misread {
        at,
        message,
        wrong,
        instead,
    } = first_misread(network, is_series(data))?;
    let diagnostic = Diagnostic::warning("shape", message).note(wrong);
    let written = &point.spec.model.layers[at];
    Some(written.point(diagnostic, "type").help(instead))
}

/// A layer over channels that gets a sequence.
pub struct Misread {
    at: usize,
    /// What is wrong with it.
    pub message: String,
    wrong: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

/// The first layer over channels that certainly gets a sequence, if the items are series, or sequences that layers make.
pub fn first_misread(network: &Network, is_series: bool) -> Option<Misread> {
    let sequences = sequences(network, is_series);
    let mut layers = network.layers.iter().enumerate();
    layers.find_map(|(at, layer)| {
        let input = layer.values().first()?;
        let is_sequence = match input.layer {
            Some(from) => sequences[from],
            None => is_series,
        };
        let [positions, features] = input.shape.dims[..] else {
            return None;
        };
        let (wrong, instead) = misread(&layer.kind).filter(|_| is_sequence)?;
        let message = format!(
            "`{}` takes [channels, length], but its input [{positions}, {features}] has {features} features for each of {positions} positions",
            layer.name
        );
        Some(Misread {
            at,
            message,
            wrong,
            instead,
        })
    })
}

/// What a layer over channels does with a sequence, and what to do instead; `None` for other layers.
fn misread(kind: &LayerKind) -> Option<(&'static str, &'static str)> {
    const PERMUTE: &str = "add `{ type = \"permute\", axes = [1, 0] }` before it, and after it to return to positions";
    match kind {
        LayerKind::Conv(conv) if conv.dims == 1 => Some((
            "it would slide over the features, and mix the positions as channels",
            PERMUTE,
        )),
        LayerKind::ConvTranspose(conv) if conv.dims == 1 => Some((
            "it would slide over the features, and mix the positions as channels",
            PERMUTE,
        )),
        LayerKind::Pool(pool) if pool.dims == 1 => Some((
            "it would pool the features, and keep all positions",
            PERMUTE,
        )),
        LayerKind::Norm(Norm::Batch { .. } | Norm::Instance { .. } | Norm::Group { .. }) => Some((
            "it would normalize each position instead of each feature",
            "use `layer_norm`, or add `{ type = \"permute\", axes = [1, 0] }` before it and after it",
        )),
        _ => None,
    }
}

/// Whether the items are series with a row for each step.
fn is_series(data: &DataPlan) -> bool {
    match &data.dataset {
        Dataset::Files { files, .. } => files.roles.window.is_some(),
        Dataset::Synthetic(generated) => {
            matches!(generated.generator, Generator::SineWindows { .. })
        }
        _ => false,
    }
}

/// Whether the output of each layer is certainly a sequence with a row for each position.
fn sequences(network: &Network, is_series: bool) -> Vec<bool> {
    let mut known: Vec<bool> = Vec::with_capacity(network.layers.len());
    for layer in &network.layers {
        let of_input = |at: usize| match layer.values().get(at) {
            Some(input) => match input.layer {
                Some(from) => known[from],
                None => is_series && input.part.is_none(),
            },
            None => false,
        };
        let is_sequence = gives_positions(layer) || keeps_positions(&layer.kind) && of_input(0);
        known.push(is_sequence && layer.shape.len() == 2);
    }
    known
}

fn gives_positions(layer: &Layer) -> bool {
    match &layer.kind {
        LayerKind::Recurrent(recurrent) => recurrent.output == Steps::Sequence,
        kind => matches!(
            kind,
            LayerKind::Embedding { .. }
                | LayerKind::Dlinoss(_)
                | LayerKind::MultiHeadAttention { .. }
                | LayerKind::GroupedAttention(_)
                | LayerKind::TransformerEncoder(_)
                | LayerKind::TransformerDecoder(_)
                | LayerKind::PositionalEncoding { .. }
                | LayerKind::PositionEmbedding { .. }
                | LayerKind::RotaryEncoding { .. }
        ),
    }
}

fn keeps_positions(kind: &LayerKind) -> bool {
    matches!(
        kind,
        LayerKind::Linear { .. }
            | LayerKind::Norm(Norm::Layer { .. } | Norm::Rms { .. })
            | LayerKind::Dropout { .. }
            | LayerKind::StochasticDepth { .. }
            | LayerKind::GaussianNoise { .. }
            | LayerKind::Activation(_)
            | LayerKind::Prelu { .. }
            | LayerKind::Swiglu { .. }
            | LayerKind::Identity
            | LayerKind::Slice { .. }
            | LayerKind::Add
            | LayerKind::Multiply
            | LayerKind::Pairwise { .. }
            | LayerKind::Cumsum { .. }
            | LayerKind::LinearScan { .. }
    )
}
