//! What attention demands of its inputs.

use super::Input;
use super::shape::{Dims, Mismatch, sequence, wrong};
use crate::diagnostic::counted;
use crate::spec::model::attention::{Attention, RotaryType, Stretch};
use crate::spec::model::layer::Transformer;

/// Features that are divided among heads.
pub fn heads(width: usize, num_heads: usize) -> Result<(), Mismatch> {
    if width.is_multiple_of(num_heads) {
        Ok(())
    } else {
        let dividing: Vec<_> = (1..=width.min(64))
            .filter(|heads| width.is_multiple_of(*heads))
            .map(|heads| heads.to_string())
            .collect();
        wrong(
            "num_heads",
            format!("cannot divide {width} features evenly among {num_heads} heads"),
            format!("use one of {}", dividing.join(", ")),
        )
    }
}

/// The options of attention beyond heads.
pub fn grouped(attention: &Attention, width: usize, num_inputs: usize) -> Result<(), Mismatch> {
    let (num_heads, num_kv_heads) = (attention.num_heads, attention.num_kv_heads);
    if attention.head_dim.is_none() {
        heads(width, num_heads)?;
    }
    if !num_heads.is_multiple_of(num_kv_heads) {
        let dividing = (1..=num_heads.min(64)).filter(|num| num_heads.is_multiple_of(*num));
        let dividing: Vec<_> = dividing.map(|num| num.to_string()).collect();
        return wrong(
            "num_kv_heads",
            format!(
                "cannot share {num_kv_heads} heads of keys and values evenly among {num_heads} heads"
            ),
            format!("use one of {}", dividing.join(", ")),
        );
    }
    let head_dim = attention.head_dim(width);
    if attention.rotary.is_some() && head_dim % 2 == 1 {
        return wrong(
            "rotary",
            format!("rotates pairs of features, but a head has {head_dim}"),
            format!("set `head_dim = {}`, or another `num_heads`", head_dim + 1),
        );
    }
    if let Some(stretch) = attention.rotary.as_ref().and_then(|of| of.stretch.as_ref()) {
        scaled(stretch, head_dim)?;
    }
    if attention.rotary.is_some() && attention.alibi {
        return wrong(
            "alibi",
            "encodes positions, which `rotary` does too",
            "remove one of them",
        );
    }
    let positions = [
        ("rotary", attention.rotary.is_some()),
        ("window", attention.window.is_some()),
        ("alibi", attention.alibi),
    ];
    match positions.into_iter().find(|(_, is_set)| *is_set) {
        Some((key, _)) if num_inputs > 1 => wrong(
            key,
            "compares positions, but those of two inputs have no common start",
            "remove it, or the second input",
        ),
        _ => Ok(()),
    }
}

/// Rotations of heads with this many features.
fn scaled(stretch: &Stretch, head_dim: usize) -> Result<(), Mismatch> {
    if stretch.form == RotaryType::Dynamic && head_dim <= 2 {
        return wrong(
            "rotary_type",
            format!("scales more than one pair of features, but a head has {head_dim}"),
            "set `head_dim = 4`, or `rotary_type = \"linear\"`",
        );
    }
    if stretch.form != RotaryType::Longrope {
        return Ok(());
    }
    let pairs = head_dim / 2;
    let lists = [
        ("rotary_short", &stretch.short),
        ("rotary_long", &stretch.long),
    ];
    match lists.into_iter().find(|(_, list)| list.len() != pairs) {
        Some((key, list)) => wrong(
            key,
            format!(
                "has {}, but a head of {head_dim} features has {pairs} pairs of them",
                counted(list.len(), "number")
            ),
            format!("list {pairs}, one for each pair"),
        ),
        None => Ok(()),
    }
}

/// Sequences of any widths: queries, keys, and as many values as keys.
pub fn attended(inputs: &[Input]) -> Result<(), Mismatch> {
    inputs
        .iter()
        .try_for_each(|input| sequence(&input.shape.dims))?;
    match inputs {
        [_, keys, values] if keys.shape.dims[0] != values.shape.dims[0] => {
            let [keys, values] = [keys, values].map(|input| &input.shape.dims);
            wrong(
                "inputs",
                format!(
                    "attends to {} keys with {} values: got {keys:?} and {values:?}",
                    keys[0], values[0]
                ),
                "name sequences of the same length as second and third input; only their widths may differ",
            )
        }
        _ => Ok(()),
    }
}

/// Sequences of items of the same width.
pub fn same_width(inputs: &[Input]) -> Result<(), Mismatch> {
    let first = &inputs[0].shape.dims;
    for other in inputs.iter().map(|input| &input.shape.dims) {
        sequence(other)?;
        if other[1] != first[1] {
            return wrong(
                "inputs",
                format!("expects sequences of the same width, got {first:?} and {other:?}"),
                format!(
                    "put `{{ type = \"linear\", out_features = {} }}` before the second",
                    first[1]
                ),
            );
        }
    }
    Ok(())
}

/// A stack of blocks, which keeps the shape.
pub fn stacked(stack: &Transformer, input: &[usize]) -> Result<Dims, Mismatch> {
    sequence(input)?;
    heads(input[1], stack.num_heads)?;
    Ok(input.to_vec())
}
