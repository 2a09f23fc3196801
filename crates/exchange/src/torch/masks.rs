//! Masks of positions, and reductions over the positions of one.

use super::call::Call;
use super::helpers::Helper;
use super::{Names, Piece};
use runner_core::check::network::Layer;
use runner_core::check::network::axes::axis_of;
use runner_core::spec::model::layer::Reduction;
use runner_core::spec::model::layer_spec::MaskKey;

/// The mask of items.
pub fn padding(padding: Option<f64>, layer: &Layer, names: &Names<'_>) -> Piece {
    let x = names.input();
    let is_tokens = layer.inputs[0].shape.vocabulary.is_some();
    match (is_tokens, padding) {
        (true, Some(token)) => Piece::expression(names, format!("({x} != {token}).float()")),
        (true, None) => Piece::expression(names, format!("({x} == {x}).float()")),
        (false, padding) => {
            let call = Call::new("series_mask").arg(x);
            let call = call.arg(format!("{:?}", padding.unwrap_or(0.0)));
            Piece::expression(names, call.end()).with(Helper::SeriesMask)
        }
    }
}

/// A reduction over the positions of a mask.
pub fn reduced(operation: Reduction, axis: i64, layer: &Layer, names: &Names<'_>) -> Piece {
    let rank = layer.inputs[0].shape.dims.len();
    let function = match operation {
        Reduction::Mean => "mean",
        Reduction::Max => "amax",
        Reduction::Sum => "sum",
        Reduction::Last => "last",
    };
    let mask = names.mask(MaskKey::Mask).unwrap_or_default();
    let call = Call::new("reduced")
        .arg(names.input())
        .arg(mask)
        .arg(1 + axis_of(axis, rank))
        .arg(format!("{function:?}"))
        .end();
    // An item with a single axis keeps it.
    let keep = if layer.shape.len() == rank {
        ".unsqueeze(1)"
    } else {
        ""
    };
    Piece::expression(names, format!("{call}{keep}")).with(Helper::Reduced)
}
