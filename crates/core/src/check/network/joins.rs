//! The output shapes of layers that combine several inputs.

use super::Input;
use super::axes::*;
use super::shape::{Dims, Mismatch, rank, wrong};
use crate::data::MAX_DIMS;

/// Inputs of equal shapes, or with sizes of 1 that are broadcast.
pub fn broadcast(inputs: &[Input]) -> Result<Dims, Mismatch> {
    let mut shape = inputs[0].shape.dims.clone();
    for other in inputs[1..].iter().map(|input| &input.shape.dims) {
        let fits = other.len() == shape.len()
            && shape
                .iter()
                .zip(other)
                .all(|(a, b)| a == b || *a == 1 || *b == 1);
        if !fits {
            return wrong(
                "inputs",
                format!("expects inputs of the same shape, got {}", shapes(inputs)),
                equal_help(&shape, other),
            );
        }
        for (size, other) in shape.iter_mut().zip(other) {
            *size = (*size).max(*other);
        }
    }
    Ok(shape)
}

/// The shape of a product of matrices; sizes of 1 before the last two axes are broadcast.
pub fn multiplied(inputs: &[Input]) -> Result<Dims, Mismatch> {
    let (a, b) = (&inputs[0].shape.dims, &inputs[1].shape.dims);
    rank(a, 2..=MAX_DIMS, "[…, rows, columns]")?;
    let (rows, columns) = (a[a.len() - 2], b[b.len() - 1]);
    let outer = |dims: &[usize]| dims[..dims.len().saturating_sub(2)].to_vec();
    let fits = a.len() == b.len()
        && a[a.len() - 1] == b[b.len() - 2]
        && outer(a)
            .iter()
            .zip(outer(b))
            .all(|(a, b)| *a == b || *a == 1 || b == 1);
    if !fits {
        return wrong(
            "inputs",
            format!(
                "needs as many columns in its first input as rows in its second, got {}",
                shapes(inputs)
            ),
            "exchange the last two axes of one of them with `permute`, or bring both to one number of axes with `reshape`",
        );
    }
    let outer = outer(a).into_iter().zip(outer(b)).map(|(a, b)| a.max(b));
    Ok(outer.chain([rows, columns]).collect())
}

/// A layer that turns the second shape into the first.
fn equal_help(first: &[usize], second: &[usize]) -> String {
    if first.len() == second.len() && first[1..] == second[1..] && first.len() == 3 {
        return format!(
            "put `{{ type = \"conv2d\", out_channels = {}, kernel_size = 1 }}` before the second input",
            first[0]
        );
    }
    if first.len() == second.len() && first[..first.len() - 1] == second[..second.len() - 1] {
        let width = first[first.len() - 1];
        return format!(
            "put `{{ type = \"linear\", out_features = {width} }}` before the second input"
        );
    }
    format!("make both {first:?}")
}

pub(super) fn shapes(inputs: &[Input]) -> String {
    let shapes: Vec<_> = inputs.iter().map(|input| input.shape.show()).collect();
    shapes.join(" and ")
}

/// Inputs of shapes that only differ along an axis.
pub fn concatenated(inputs: &[Input], axis: i64) -> Result<Dims, Mismatch> {
    let mut shape = inputs[0].shape.dims.clone();
    let at = resolve(axis, shape.len(), "axis")?;
    for other in inputs[1..].iter().map(|input| &input.shape.dims) {
        let others = |dims: &[usize]| without(dims, at);
        if other.len() != shape.len() || others(other) != others(&shape) {
            return wrong(
                "inputs",
                format!(
                    "concatenates along axis {at} and needs the other axes to be equal, got {}",
                    shapes(inputs)
                ),
                "make the sizes equal first, or concatenate along another `axis`",
            );
        }
        shape[at] += other[at];
    }
    Ok(shape)
}
