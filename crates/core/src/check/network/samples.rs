//! The output shapes of layers that take samples, spectra, the largest values, or states of a recurrence.

use super::Input;
use super::axes::resolve;
use super::joins::shapes;
use super::shape::{Dims, Mismatch, rank, wrong};
use crate::data::MAX_DIMS;
use crate::spec::model::fourier::Fourier;
use crate::spec::model::grid::AffineGrid;

/// Transforms are products with a matrix of size times size.
const MAX_WAVES: usize = 4096;

/// The shape of an image with samples at the places of a grid.
pub fn sampled(inputs: &[Input]) -> Result<Dims, Mismatch> {
    let [image, grid] = [0, 1].map(|at| inputs[at].shape.dims.as_slice());
    rank(image, 3..=3, "[channels, height, width]")?;
    match *grid {
        [height, width, 2] => Ok(vec![image[0], height, width]),
        _ => wrong(
            "inputs",
            format!("needs a grid [height, width, 2] as its second input, got {grid:?}"),
            match grid {
                [2, _, _] => "put `{ type = \"permute\", axes = [1, 2, 0] }` before the grid",
                _ => {
                    "make it with `affine_grid`, or output two numbers for each place, from -1 to 1: how far right and how far down"
                }
            },
        ),
    }
}

/// The shape of the grid of an affine map.
pub fn affine(grid: &AffineGrid, input: &[usize]) -> Result<Dims, Mismatch> {
    if !matches!(input, [6] | [2, 3]) {
        return wrong(
            "type",
            format!("needs the 6 numbers of an affine map, as [6] or [2, 3], got {input:?}"),
            "put `{ type = \"flatten\" }` and `{ type = \"linear\", out_features = 6 }` before it",
        );
    }
    Ok([grid.output_size.as_slice(), &[2]].concat())
}

/// The shape of a spectrum.
pub fn transformed(fourier: &Fourier, input: &[usize]) -> Result<Dims, Mismatch> {
    let mut seen = vec![false; input.len()];
    for axis in &fourier.axes {
        let at = resolve(*axis, input.len(), "axes")?;
        if std::mem::replace(&mut seen[at], true) {
            return wrong(
                "axes",
                format!("lists axis {at} more than once"),
                "list each axis once",
            );
        }
        if input[at] > MAX_WAVES {
            return wrong(
                "axes",
                format!(
                    "transforms axis {at}, which has {} values: it multiplies by a matrix of as many rows and columns, and supports at most {MAX_WAVES}",
                    input[at]
                ),
                "cut the axis into shorter windows first, with `reshape`",
            );
        }
    }
    Ok(input.to_vec())
}

/// The shape of the states of a recurrence.
pub fn scanned(inputs: &[Input]) -> Result<Dims, Mismatch> {
    let [decay, update] = [0, 1].map(|at| &inputs[at].shape.dims);
    rank(decay, 1..=MAX_DIMS, "[length, …]")?;
    if decay != update {
        return wrong(
            "inputs",
            format!(
                "needs factors and updates of the same shape, got {}",
                shapes(inputs)
            ),
            "repeat the smaller one along the missing axes, for example with `einsum` and a `parameter`",
        );
    }
    Ok(decay.clone())
}

/// The shape with the largest values of the last axis.
pub fn largest(k: usize, input: &[usize]) -> Result<Dims, Mismatch> {
    let width = input.last().copied().unwrap_or(1);
    if k > width {
        return wrong(
            "k",
            format!("keeps {k} values of the last axis, which has {width}"),
            format!("use at most {width}"),
        );
    }
    Ok(input.to_vec())
}
