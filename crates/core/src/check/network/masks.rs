//! Masks of positions: which layers give one, and which of another layer fit.

use super::shape::{Dims, Mismatch, rank, wrong};
use super::{Input, Network, axes};
use crate::spec::model::layer::{LayerKind, PadMode};
use crate::spec::model::layer_spec::{LayerSpec, MaskKey, Source};
use crate::spec::section::Choice;

/// The shape of a mask of items: a number for each position.
pub fn padding(padding: Option<f64>, items: &Input) -> Result<Dims, Mismatch> {
    let dims = &items.shape.dims;
    rank(dims, 1..=2, "of tokens, [length] or [length, features]")?;
    let Some(vocabulary) = items.shape.vocabulary else {
        return Ok(vec![dims[0]]);
    };
    match padding {
        Some(token) if token.fract() != 0.0 || token < 0.0 || token >= vocabulary as f64 => wrong(
            "padding",
            format!(
                "has `padding` = {token}, but tokens are numbered from 0 to {}",
                vocabulary - 1
            ),
            "use the number of the token that texts are padded with, or remove `padding`",
        ),
        _ => Ok(vec![dims[0]]),
    }
}

/// Gives a mask the token that the data is padded with. Presets do not know the data: there, nothing is masked if it has
/// none.
pub fn resolve(kind: &mut LayerKind, spec: &LayerSpec, inputs: &[Input]) -> Result<(), Mismatch> {
    let LayerKind::PaddingMask { padding } = kind else {
        return Ok(());
    };
    let items = &inputs[0].shape;
    let found = match items.vocabulary {
        None => Some(0.0),
        Some(_) => items.padding.map(f64::from),
    };
    *padding = padding.or(found);
    if padding.is_none() && spec.place.preset.is_none() {
        return wrong(
            "type",
            "does not know the token for padding: in this data, each token could be a real one",
            "set `padding` to that token, write -1 for padding in the data, or remove the mask",
        );
    }
    Ok(())
}

/// Refuses what is not a mask, or has another length than what it masks.
pub fn check(network: &Network, spec: &LayerSpec, inputs: &[Input]) -> Result<(), Mismatch> {
    let (values, masks) = inputs.split_at(spec.values().len());
    for (key, (mask, source)) in spec.masks.iter().zip(masks.iter().zip(spec.masks())) {
        let name = match source {
            Source::Items => "input",
            Source::Part(at) => network.parts[*at].name.as_str(),
            Source::Layer(at) => network.layers[*at].name.as_str(),
        };
        if !is_mask(network, mask.layer) {
            return wrong(
                key.name(),
                format!("has `{}` = \"{name}\", which is not a mask", key.name()),
                "name a `padding_mask` layer, or one that slices, pads or combines masks",
            );
        }
        let length = length(&spec.kind, *key, values)?;
        let dims = &mask.shape.dims;
        if *dims != [length] {
            return wrong(
                key.name(),
                format!("masks {length} positions with \"{name}\", which has the shape {dims:?}"),
                "use a mask of the same positions; `slice` and `pad` shorten and lengthen one",
            );
        }
    }
    Ok(())
}

/// What is wrong with the layer that `loss.mask` names, if anything is.
pub fn of_loss(network: &Network, at: usize, positions: usize) -> Option<Mismatch> {
    let dims = &network.layers[at].shape;
    let (message, help) = if !is_mask(network, Some(at)) {
        (
            "is the `mask` of a loss, but does not output a mask".into(),
            "name a `padding_mask` layer, or one that slices, pads or combines masks",
        )
    } else if *dims == [positions] {
        return None;
    } else {
        (
            format!(
                "is the `mask` of a loss, but outputs {dims:?}, and {positions} positions are masked"
            ),
            "name a mask of the same positions; `slice` and `pad` shorten and lengthen one",
        )
    };
    wrong::<()>("type", message, help).err()
}

/// The number of positions that a layer masks.
fn length(kind: &LayerKind, key: MaskKey, values: &[Input]) -> Result<usize, Mismatch> {
    let of = |at: usize| &values[at].shape.dims;
    Ok(match (kind, key) {
        (LayerKind::Reduce { axis, .. }, _) => of(0)[axes::resolve(*axis, of(0).len(), "axis")?],
        (LayerKind::TransformerDecoder(_), MaskKey::Mask) => of(0)[0],
        _ => of(values.len() - 1)[0],
    })
}

/// Whether a layer outputs only 0 and 1: a mask, or something made of masks.
pub fn is_mask(network: &Network, layer: Option<usize>) -> bool {
    let Some(layer) = layer.map(|at| &network.layers[at]) else {
        return false;
    };
    let keeps = match &layer.kind {
        LayerKind::PaddingMask { .. } => return true,
        LayerKind::Pad { mode, value, .. } => {
            *mode != PadMode::Constant || *value == 0.0 || *value == 1.0
        }
        LayerKind::Pool(pool) => pool.max,
        LayerKind::Identity
        | LayerKind::Slice { .. }
        | LayerKind::Flatten { .. }
        | LayerKind::Reshape { .. }
        | LayerKind::Permute { .. }
        | LayerKind::Unsqueeze { .. }
        | LayerKind::Squeeze { .. }
        | LayerKind::Multiply
        | LayerKind::Concat { .. } => true,
        _ => false,
    };
    let mut inputs = layer.inputs.iter();
    keeps && inputs.all(|input| is_mask(network, input.layer))
}
