//! The kernels, and how they are launched. CubeCL compiles them for the device at hand: as WGSL, SPIR-V, MSL or PTX.
//!
//! One thread computes all steps of one channel of one item.

use burn::backend::TensorMetadata;
use burn::backend::cubecl::dtype_to_storage_type;
use burn::tensor::Shape;
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;
use cubecl::{calculate_cube_count_elemwise, cube};

use crate::operation::{AverageGradientOps, AverageOps};

/// `average[t] = decay * average[t - 1] + (1 - decay) * x[t]`.
#[cube(launch)]
fn forward<F: Float>(
    x: &Tensor<F>,
    decays: &Tensor<F>,
    averages: &mut Tensor<F>,
    #[define(F)] _dtype: ElemType,
) {
    let length = x.shape(1);
    let channels = x.shape(2);
    if ABSOLUTE_POS >= x.shape(0) * channels {
        terminate!();
    }
    let channel = ABSOLUTE_POS % channels;
    let first = ABSOLUTE_POS / channels * length * channels + channel;
    let decay = decays[channel];
    let mut average = F::new(0.0_f32);
    for step in 0..length {
        let at = first + step * channels;
        average = x[at] + (average - x[at]) * decay;
        averages[at] = average;
    }
}

/// The gradients of `x`, and of the decays for each item: what flows back from the last step to the first.
#[cube(launch)]
fn backward<F: Float>(
    gradient: &Tensor<F>,
    x: &Tensor<F>,
    averages: &Tensor<F>,
    decays: &Tensor<F>,
    of_x: &mut Tensor<F>,
    of_decays: &mut Tensor<F>,
    #[define(F)] _dtype: ElemType,
) {
    let length = x.shape(1);
    let channels = x.shape(2);
    if ABSOLUTE_POS >= x.shape(0) * channels {
        terminate!();
    }
    let channel = ABSOLUTE_POS % channels;
    let first = ABSOLUTE_POS / channels * length * channels + channel;
    let decay = decays[channel];
    let mut flow = F::new(0.0_f32);
    let mut sum = F::new(0.0_f32);
    for back in 0..length {
        let step = length - 1 - back;
        let at = first + step * channels;
        flow = gradient[at] + flow * decay;
        of_x[at] = flow * (F::new(1.0_f32) - decay);
        let mut before = F::new(0.0_f32);
        if step > 0 {
            before = averages[at - channels];
        }
        sum += flow * (before - x[at]);
    }
    of_decays[ABSOLUTE_POS] = sum;
}

/// A tensor for a result on the device of another one.
fn empty(like: &CubeTensor, shape: Shape) -> CubeTensor {
    let (client, device) = (like.client.clone(), like.device.clone());
    empty_device_contiguous_dtype(client, device, shape, like.dtype)
}

/// The number of threads in a cube, and of cubes.
fn threads(x: &CubeTensor) -> (CubeCount, CubeDim) {
    let num = x.shape()[0] * x.shape()[2];
    let dim = CubeDim::new(&x.client, num);
    (calculate_cube_count_elemwise(&x.client, num, dim), dim)
}

impl AverageOps for CubeBackend {
    fn average(x: CubeTensor, decays: CubeTensor) -> CubeTensor {
        let (x, decays) = (into_contiguous(x), into_contiguous(decays));
        let averages = empty(&x, x.shape());
        let (count, dim) = threads(&x);
        forward::launch(
            &averages.client,
            count,
            dim,
            x.into_tensor_arg(),
            decays.into_tensor_arg(),
            averages.clone().into_tensor_arg(),
            dtype_to_storage_type(averages.dtype),
        );
        averages
    }
}

impl AverageGradientOps for CubeBackend {
    fn average_gradients(
        gradient: CubeTensor,
        x: CubeTensor,
        averages: CubeTensor,
        decays: CubeTensor,
    ) -> (CubeTensor, CubeTensor) {
        let (gradient, x) = (into_contiguous(gradient), into_contiguous(x));
        let (averages, decays) = (into_contiguous(averages), into_contiguous(decays));
        let shape = x.shape();
        let of_decays = empty(&x, Shape::from([shape[0], shape[2]]));
        let of_x = empty(&x, shape);
        let (count, dim) = threads(&x);
        backward::launch(
            &of_x.client,
            count,
            dim,
            gradient.into_tensor_arg(),
            x.into_tensor_arg(),
            averages.into_tensor_arg(),
            decays.into_tensor_arg(),
            of_x.clone().into_tensor_arg(),
            of_decays.clone().into_tensor_arg(),
            dtype_to_storage_type(of_x.dtype),
        );
        (of_x, of_decays)
    }
}
