//! Max and average pooling.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Shape, Tensor};
use runner_kernels::average::{Parts, pool, pool_backward, suits};
use runner_kernels::{self as kernels, Geometry};

use super::operation::{Back, Operation, apply_1, contiguous, is_ours, numbers, tensor};
use super::plane;
use super::resizing::{Resizing, resize, with_size};

/// The maximum of each window.
#[derive(Clone, Debug)]
struct Largest(Geometry);

impl Operation<1> for Largest {
    /// The chosen tap of each window, and the input's shape.
    type Kept = (Arc<Vec<u8>>, Shape);

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn forward(&self, [x]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<Self::Kept>) {
        let x = contiguous(x);
        let (values, chosen) = kernels::max_pool(&self.0, numbers(&x));
        let output = tensor(values, with_size(&x, self.0.output()));
        (output, is_kept.then(|| (Arc::new(chosen), x.shape())))
    }

    fn backward(&self, back: Back<Self::Kept, 1>) -> [Option<FlexTensor>; 1] {
        let (chosen, shape) = back.kept;
        let values = kernels::max_pool_backward(&self.0, numbers(&back.gradient), &chosen);
        [Some(tensor(values, shape))]
    }
}

/// The means of windows.
#[derive(Clone, Debug)]
struct Windows {
    geometry: Geometry,
    counts_padding: bool,
}

impl Resizing for Windows {
    fn size(&self) -> [usize; 2] {
        self.geometry.output()
    }

    fn output(&self, x: &[f32]) -> Vec<f32> {
        pool(&self.geometry, self.counts_padding, x)
    }

    fn of_input(&self, gradient: &[f32]) -> Vec<f32> {
        pool_backward(&self.geometry, self.counts_padding, gradient)
    }
}

impl Resizing for Parts {
    fn size(&self) -> [usize; 2] {
        self.output
    }

    fn output(&self, x: &[f32]) -> Vec<f32> {
        self.means(x)
    }

    fn of_input(&self, gradient: &[f32]) -> Vec<f32> {
        self.backward(gradient)
    }
}

/// The windows of a pooling, for each channel separately.
fn windows<const D: usize>(
    x: &Tensor<D>,
    kernel: &[usize],
    stride: &[usize],
    padding: &[(usize, usize)],
    dilation: &[usize],
) -> Geometry {
    let dims = x.dims();
    Geometry {
        items: dims[0],
        inputs: dims[1],
        outputs: dims[1],
        groups: dims[1],
        input: plane(&dims[2..], 1),
        kernel: plane(kernel, 1),
        stride: plane(stride, 1),
        padding: plane(padding, (0, 0)),
        dilation: plane(dilation, 1),
        arithmetic: Default::default(),
    }
}

/// The maximum of each window of \[items, channels, ..\], if it is supported here.
pub fn max_pool<const D: usize, const N: usize>(
    x: &Tensor<D>,
    options: &MaxPoolOptions<N>,
) -> Option<Tensor<D>> {
    let geometry = windows(
        x,
        &options.kernel_size,
        &options.stride,
        &options.padding,
        &options.dilation,
    );
    let suits = kernels::can_pool(&geometry) && is_ours(x);
    suits.then(|| apply_1(x.clone(), Largest(geometry)))
}

/// The windows along each axis.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// Sizes of a window.
    pub kernel: &'a [usize],
    /// The stride of windows.
    pub stride: &'a [usize],
    /// Padding before and after the input.
    pub padding: &'a [(usize, usize)],
    /// Whether padding counts as zeros, or not at all.
    pub counts_padding: bool,
}

/// The mean of each window of \[items, channels, ..\], if it is supported here.
pub fn average<const D: usize>(x: &Tensor<D>, layout: Layout) -> Option<Tensor<D>> {
    let ones = [1; 2];
    let geometry = windows(
        x,
        layout.kernel,
        layout.stride,
        layout.padding,
        &ones[..D - 2],
    );
    if !is_ours(x) || !suits(&geometry) {
        return None;
    }
    let windows = Windows {
        geometry,
        counts_padding: layout.counts_padding,
    };
    Some(resize(x, windows))
}

/// The means of a given number of parts of \[items, channels, ..\], if it is supported here.
pub fn adaptive<const D: usize>(x: &Tensor<D>, output: &[usize]) -> Option<Tensor<D>> {
    let dims = x.dims();
    if !is_ours(x) || x.shape().num_elements() == 0 || output.contains(&0) {
        return None;
    }
    let parts = Parts {
        planes: dims[0] * dims[1],
        input: plane(&dims[2..], 1),
        output: plane(output, 1),
    };
    Some(resize(x, parts))
}
