//! Convolutions along one to three axes, and pooling, over slices of numbers on the CPU, forward and backward; without
//! tensors.
//!
//! A convolution is a matrix product of its weights with the windows of its input laid out as columns (im2col;
//! Chellapilla, Puri and Simard, High Performance Convolutional Neural Networks for Document Processing, 2006). As a
//! whole, the columns would need the input's memory times the number of taps, and pass through memory twice. Here they
//! are laid out in panels that stay in the L2 cache, each for the product that follows immediately and needs no copies
//! of its operands. The gradient of the weights is the product of the outputs' gradients with the same columns; that of
//! the input is their product with the weights, with columns added back to their source. The products are those of the
//! crate `gemm`, or portable ones.
//!
//! Most windows need no columns: with each phase of the strides copied, those of all positions are the same numbers at
//! an offset (`direct.rs`). Columns are used for kernels of one position, for gradients of inputs with large strides, and
//! where a number is infinite or NaN. Depthwise convolutions with strides have no matrices to multiply, and use separate
//! loops.
//!
//! Items, channels and panels are spread over threads, and each element of a result is computed by one of them; the
//! number of parts of sums over items depends only on sizes, and parts are added in order. So results are bitwise equal
//! for any number of threads. Each thread reuses its scratch memory, which is less than a MiB except for large kernels
//! and images.

#![allow(
    clippy::needless_range_loop,
    reason = "a loop over one number of several slices each is clearer by index, and the same to the compiler"
)]

pub mod activation;
pub mod argmax;
mod arithmetic;
pub mod attention;
pub mod average;
mod columns;
pub mod concat;
mod dense;
mod depthwise;
mod direct;
pub mod dropout;
pub mod embedding;
mod functions;
pub mod gated;
mod geometry;
mod lanes;
pub mod linear;
pub mod matmul;
pub mod norm;
pub mod optimizer;
pub mod past;
mod pool;
pub mod prelu;
mod product;
pub mod recurrent;
mod reduce;
pub mod resample;
pub mod scan;
mod scratch;
pub mod softmax;
#[cfg(test)]
mod special;
#[cfg(test)]
pub mod tests;
pub mod thin;
mod threads;
mod vectors;

use rayon::prelude::*;

pub use arithmetic::{Arithmetic, Instructions, instructions, limit};
pub use dense::channel_sums;
pub use geometry::Geometry;
pub use pool::{max_pool, max_pool_backward, suits as can_pool};
pub use reduce::axis_sums;
pub use threads::stay_awake;

/// The output for items \[items, inputs, (depth, height,) width\], weights \[outputs, inputs / groups, kernel\] and a bias
/// for each output.
///
/// # Panics
/// If lengths do not match the sizes, or these do not define a convolution.
pub fn forward<const D: usize>(
    geometry: &Geometry<D>,
    x: &[f32],
    weight: &[f32],
    bias: Option<&[f32]>,
) -> Vec<f32> {
    let geometry = &geometry.volume();
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
///
/// # Panics
/// As [`forward`].
pub fn backward_input<const D: usize>(
    geometry: &Geometry<D>,
    gradient: &[f32],
    weight: &[f32],
) -> Vec<f32> {
    let geometry = &geometry.volume();
    geometry.check(geometry.num_inputs(), weight.len(), gradient.len());
    if direct::suits_input(geometry, weight) {
        direct::backward_input(geometry, gradient, weight)
    } else if depthwise::suits(geometry) {
        depthwise::backward_input(geometry, gradient, weight)
    } else {
        dense::backward_input(geometry, gradient, weight)
    }
}

/// The gradient of the weights.
///
/// # Panics
/// As [`forward`].
pub fn backward_weight<const D: usize>(
    geometry: &Geometry<D>,
    x: &[f32],
    gradient: &[f32],
) -> Vec<f32> {
    let geometry = &geometry.volume();
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
///
/// # Panics
/// As [`forward`].
pub fn backward_bias<const D: usize>(geometry: &Geometry<D>, gradient: &[f32]) -> Vec<f32> {
    let geometry = &geometry.volume();
    geometry.check(
        geometry.num_inputs(),
        geometry.num_weights(),
        gradient.len(),
    );
    channel_sums(gradient, geometry.outputs, geometry.area_out())
}

/// Adds its bias to each channel of \[items, channels, area\].
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
