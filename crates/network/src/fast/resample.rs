//! Interpolation of images and rows to another size.

use burn::tensor::Tensor;
use runner_core::spec::model::layer::Interpolation;
use runner_kernels::resample::{Method, Resample};

use super::operation::is_ours;
use super::plane;
use super::resizing::{Resizing, resize};

impl Resizing for Resample {
    fn size(&self) -> [usize; 2] {
        self.output
    }

    fn output(&self, x: &[f32]) -> Vec<f32> {
        self.forward(x)
    }

    fn of_input(&self, gradient: &[f32]) -> Vec<f32> {
        self.backward(gradient)
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
    Some(resize(x, resample))
}
