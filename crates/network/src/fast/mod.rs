//! Layers computed by runner's kernels, on Burn's backend `flex` in 32 bits.
//!
//! Parameters are those of Burn's modules, so that checkpoints do not depend on the kernels. The result of every
//! function here says whether it supports the case; if not, the caller falls back to Burn.

pub mod activation;
pub mod attention;
pub mod chosen;
pub mod convolution;
pub mod dropout;
pub mod embedding;
pub mod entropy;
pub mod gated;
pub mod held;
pub mod join;
pub mod linear;
pub mod norm;
pub mod operation;
pub mod optimizer;
pub mod pool;
pub mod portable;
pub mod recurrent;
pub mod resample;
mod resizing;
pub mod scan;
#[cfg(test)]
mod tests;
pub mod thin;
pub mod transpose;
mod weighted;

use runner_core::spec::backend::Arithmetic;

/// The arithmetic of a run, as kernels have it.
pub fn rounding(arithmetic: Arithmetic) -> runner_kernels::Arithmetic {
    match arithmetic {
        Arithmetic::Fast => runner_kernels::Arithmetic::Fast,
        Arithmetic::Portable => runner_kernels::Arithmetic::Portable,
    }
}

#[cfg(test)]
thread_local! {
    /// The number of operations that this thread has called.
    static CALLS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
fn count() {
    CALLS.with(|calls| calls.set(calls.get() + 1));
}

/// Sizes along height and width, of one or two axes.
fn plane<T: Copy>(sizes: &[T], one: T) -> [T; 2] {
    match *sizes {
        [width] => [one, width],
        [height, width] => [height, width],
        _ => panic!("kernels of windows have one or two dimensions"),
    }
}

/// The sizes of \[items, channels, ..\] with other channels and other sizes.
fn resized(sizes: &[usize], channels: usize, others: &[usize]) -> Vec<usize> {
    let axes = sizes.len() - 2;
    [&[sizes[0], channels], &others[others.len() - axes..]].concat()
}
