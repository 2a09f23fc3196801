//! Average pooling.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};
use runner_kernels::Geometry;
use runner_kernels::average::{Parts, pool, pool_backward, suits};

use super::operation::{Back, Operation, apply_1, contiguous, is_ours, numbers, sizes, tensor};

/// The means of windows.
#[derive(Clone, Debug)]
struct Windows {
    geometry: Geometry,
    counts_padding: bool,
}

impl Operation<1> for Windows {
    /// The input's shape.
    type Kept = Shape;

    fn asks_for(&self) -> [bool; 1] {
        [false]
    }

    fn forward(&self, [x]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<Shape>) {
        let x = contiguous(x);
        let means = pool(&self.geometry, self.counts_padding, numbers(&x));
        let output = tensor(means, resized(&x, &self.geometry.output()));
        (output, is_kept.then(|| x.shape()))
    }

    fn backward(&self, back: Back<Shape, 1>) -> [Option<FlexTensor>; 1] {
        let gradient = numbers(&back.gradient);
        let input = pool_backward(&self.geometry, self.counts_padding, gradient);
        [Some(tensor(input, back.kept))]
    }
}

impl Operation<1> for Parts {
    /// The input's shape.
    type Kept = Shape;

    fn asks_for(&self) -> [bool; 1] {
        [false]
    }

    fn forward(&self, [x]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<Shape>) {
        let x = contiguous(x);
        let output = tensor(self.means(numbers(&x)), resized(&x, &self.output));
        (output, is_kept.then(|| x.shape()))
    }

    fn backward(&self, back: Back<Shape, 1>) -> [Option<FlexTensor>; 1] {
        let input = Parts::backward(self, numbers(&back.gradient));
        [Some(tensor(input, back.kept))]
    }
}

/// The shape of items and channels of other sizes, along as many axes.
fn resized(x: &FlexTensor, plane: &[usize; 2]) -> Shape {
    let mut shape = sizes(x);
    let num = shape.len() - 2;
    shape[2..].copy_from_slice(&plane[2 - num..]);
    Shape::from(shape)
}

/// Sizes along height and width, of one or two axes.
fn plane<T: Copy>(sizes: &[T], one: T) -> [T; 2] {
    match *sizes {
        [width] => [one, width],
        [height, width] => [height, width],
        _ => panic!("poolings here have one or two dimensions"),
    }
}

/// How windows lie, along each axis.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// Sizes of a window.
    pub kernel: &'a [usize],
    /// From a window to the next one.
    pub stride: &'a [usize],
    /// Padding before and after the input.
    pub padding: &'a [(usize, usize)],
    /// Whether padding counts as zeros, or not at all.
    pub counts_padding: bool,
}

/// The mean of each window of \[items, channels, ..\], if it can be computed here.
pub fn average<const D: usize>(x: &Tensor<D>, layout: Layout) -> Option<Tensor<D>> {
    let dims = x.dims();
    let geometry = Geometry {
        items: dims[0],
        inputs: dims[1],
        outputs: dims[1],
        groups: dims[1],
        input: plane(&dims[2..], 1),
        kernel: plane(layout.kernel, 1),
        stride: plane(layout.stride, 1),
        padding: plane(layout.padding, (0, 0)),
        dilation: [1, 1],
    };
    if !is_ours(x) || !suits(&geometry) {
        return None;
    }
    let windows = Windows {
        geometry,
        counts_padding: layout.counts_padding,
    };
    Some(apply_1(x.clone(), windows))
}

/// The mean of each of so many parts of \[items, channels, ..\], if it can be computed here.
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
    Some(apply_1(x.clone(), parts))
}
