//! Interpolation of images and rows to another size.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};
use runner_core::spec::model::layer::Interpolation;
use runner_kernels::resample::{Method, Resample};

use super::operation::{Back, Operation, apply_1, contiguous, is_ours, numbers, sizes, tensor};
use super::{plane, resized};

impl Operation<1> for Resample {
    /// The input's shape.
    type Kept = Shape;

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn forward(&self, [x]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<Shape>) {
        let x = contiguous(x);
        let of_x = sizes(&x);
        let shape = Shape::from(resized(&of_x, of_x[1], &self.output));
        let output = tensor(Resample::forward(self, numbers(&x)), shape);
        (output, is_kept.then(|| x.shape()))
    }

    fn backward(&self, back: Back<Shape, 1>) -> [Option<FlexTensor>; 1] {
        let input = Resample::backward(self, numbers(&back.gradient));
        [Some(tensor(input, back.kept))]
    }
}

/// \[items, channels, ..\] with other sizes, if it is supported here.
pub fn interpolated<const D: usize>(
    x: &Tensor<D>,
    output: &[usize],
    mode: Interpolation,
    aligns_corners: bool,
) -> Option<Tensor<D>> {
    let dims = x.dims();
    if !is_ours(x) || x.shape().num_elements() == 0 || output.contains(&0) {
        return None;
    }
    let resample = Resample {
        planes: dims[0] * dims[1],
        input: plane(&dims[2..], 1),
        output: plane(output, 1),
        method: match mode {
            Interpolation::Nearest => Method::Nearest,
            Interpolation::Linear => Method::Linear,
            Interpolation::Cubic => Method::Cubic,
        },
        aligns_corners,
    };
    Some(apply_1(x.clone(), resample))
}
