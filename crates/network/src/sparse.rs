//! Functions of the last axis that leave out its smaller values.

use burn::tensor::{Int, Tensor};

use crate::numeric::sum_axis;
use runner_core::spec::backend::Arithmetic;

/// The nearest probabilities: values minus a threshold, or 0 (Martins and Astudillo, 2016). Which of them are above it
/// is found among sorted values, without gradients; the threshold is the mean of these minus what exceeds a sum of 1.
pub fn sparsemax<const D: usize>(x: Tensor<D>, arithmetic: Arithmetic) -> Tensor<D> {
    let axis = D - 1;
    // The same for all values of a row, so it changes nothing but rounding.
    let x = x.clone() - x.detach().max_dim(axis);
    let still = x.clone().detach();
    let sums = still.clone().sort_descending(axis).cumsum(axis);
    let size = x.dims()[axis] as i64;
    let mut shape = [1; D];
    shape[axis] = size as usize;
    let places = Tensor::<1, Int>::arange(1..size + 1, &x.device());
    let places = places.float().cast(x.dtype()).reshape(shape);
    // Thresholds by the number of values above them grow up to the right one, and fall after it.
    let threshold = ((sums - 1.0) / places).max_dim(axis);
    let kept = still.greater(threshold).float().cast(x.dtype());
    let num = sum_axis(arithmetic, kept.clone(), axis);
    let total = sum_axis(arithmetic, x.clone() * kept.clone(), axis);
    (x - (total - 1.0) / num) * kept
}

/// The `k` largest values of the last axis, and `fill` in the place of the others. A NaN stays where it is, and counts
/// as one of the largest.
pub fn largest<const D: usize>(x: Tensor<D>, k: usize, fill: f64) -> Tensor<D> {
    let axis = D - 1;
    let still = x.clone().detach();
    let is_nan = still.clone().is_nan();
    let still = still.mask_fill(is_nan.clone(), f64::INFINITY);
    let (_, places) = still.clone().topk_with_indices(k, axis);
    let kept = still.zeros_like();
    let ones = kept.clone().narrow(axis, 0, k).ones_like();
    let kept = kept.scatter(axis, places, ones, burn::tensor::IndexingUpdateOp::Add);
    x.mask_fill(kept.equal_elem(0.0).bool_and(is_nan.bool_not()), fill)
}
