//! Convolutions and pooling over slices of numbers on the CPU, forward and backward; knows no tensors.
//!
//! A convolution is a matrix product of its weights with the windows of its input laid out as columns (im2col;
//! Chellapilla, Puri and Simard, High Performance Convolutional Neural Networks for Document Processing, 2006). Laid
//! out whole, the columns take as many times the input's memory as a kernel has taps, and go through memory twice. Here
//! they are laid out in panels that stay in the second-level cache, each for the product that follows at once, which
//! finds its operands as it wants them and copies nothing. The gradient of the weights is the product of the outputs'
//! gradients with the same columns, that of the input the product with the weights the other way, added back to where
//! the columns are from. The products are those of the crate `gemm`.
//!
//! Windows of stride 1 need no columns, since those of all positions are the same numbers at another place: `direct.rs`.
//! Other depthwise convolutions have no matrices to multiply, and use separate loops.
//!
//! Items, channels and panels are spread over threads, and each element of a result is computed by one of them; where
//! sums over items are split, into how many depends on sizes alone, and parts are added up in their order. So results are
//! the same bits for any number of threads. Scratch memory belongs to threads, is used again, and is below a MiB for each
//! but with large kernels.

#![allow(
    clippy::needless_range_loop,
    reason = "a loop over one number of several slices each is clearer by index, and the same to the compiler"
)]

pub mod activation;
pub mod attention;
pub mod average;
mod columns;
pub mod concat;
mod dense;
mod depthwise;
mod direct;
pub mod embedding;
mod functions;
mod geometry;
mod lanes;
pub mod linear;
pub mod norm;
pub mod optimizer;
mod pool;
mod product;
pub mod recurrent;
mod reduce;
mod scratch;
pub mod softmax;
#[cfg(test)]
mod special;
#[cfg(test)]
pub mod tests;
mod vectors;

use rayon::prelude::*;

pub use dense::channel_sums;
pub use geometry::Geometry;
pub use pool::{max_pool, max_pool_backward, suits as can_pool};

/// The output for items \[items, inputs, height, width\], weights \[outputs, inputs / groups, kernel height, kernel width\]
/// and a bias for each output.
pub fn forward(geometry: &Geometry, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    geometry.check(x.len(), weight.len(), geometry.num_outputs());
    assert!(bias.is_none_or(|bias| bias.len() == geometry.outputs));
    if direct::suits(geometry) {
        direct::forward(geometry, x, weight, bias)
    } else if depthwise::suits(geometry) {
        depthwise::forward(geometry, x, weight, bias)
    } else {
        dense::forward(geometry, x, weight, bias)
    }
}

/// The gradient of the input.
pub fn backward_input(geometry: &Geometry, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
    geometry.check(geometry.num_inputs(), weight.len(), gradient.len());
    if direct::suits(geometry) && weight.iter().all(|weight| weight.is_finite()) {
        direct::backward_input(geometry, gradient, weight)
    } else if depthwise::suits(geometry) {
        depthwise::backward_input(geometry, gradient, weight)
    } else {
        dense::backward_input(geometry, gradient, weight)
    }
}

/// The gradient of the weights.
pub fn backward_weight(geometry: &Geometry, x: &[f32], gradient: &[f32]) -> Vec<f32> {
    geometry.check(x.len(), geometry.num_weights(), gradient.len());
    let direct = direct::suits(geometry).then(|| direct::backward_weight(geometry, x, gradient));
    if let Some(weight) = direct.flatten() {
        weight
    } else if depthwise::suits(geometry) {
        depthwise::backward_weight(geometry, x, gradient)
    } else {
        dense::backward_weight(geometry, x, gradient)
    }
}

/// The gradient of the bias.
pub fn backward_bias(geometry: &Geometry, gradient: &[f32]) -> Vec<f32> {
    geometry.check(
        geometry.num_inputs(),
        geometry.num_weights(),
        gradient.len(),
    );
    channel_sums(gradient, geometry.outputs, geometry.area_out())
}

/// Adds to each channel of \[items, channels, area\] its bias.
///
/// # Panics
/// If `area` is 0 or there is no bias.
pub fn add_bias(values: &mut [f32], bias: &[f32], area: usize) {
    let planes = values.par_chunks_mut(area).enumerate();
    planes.with_min_len(8).for_each(|(at, plane)| {
        let bias = bias[at % bias.len()];
        plane.iter_mut().for_each(|value| *value += bias);
    });
}
