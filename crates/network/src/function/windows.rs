//! Poolings, and interpolation to another size.

use burn::nn::interpolate::{Interpolate1dConfig, Interpolate2dConfig, InterpolateMode};
use burn::nn::pool::*;
use burn::nn::{PaddingConfig1d, PaddingConfig2d};
use burn::tensor::Tensor;
use burn::tensor::ops::MaxPoolOptions;

use crate::convolution::{pooled1d, pooled2d};
#[cfg(feature = "flex")]
use crate::fast::operation::is_ours;
use crate::tensor::DynTensor;
use runner_core::check::network::windows::padding;
use runner_core::spec::backend::Kernels;
use runner_core::spec::kind::Padding;
use runner_core::spec::model::layer::{Interpolation, Pool};

/// Windows over three axes: over the last two, and then over the first. The maximum of maxima is the maximum, and all
/// windows along an axis count as many values, so the mean of means is the mean.
fn in_two_passes(
    input: Tensor<5>,
    planes: impl FnOnce(Tensor<4>) -> Tensor<4>,
    stack: impl FnOnce(Tensor<4>) -> Tensor<4>,
) -> Tensor<5> {
    let [items, channels, depth, rows, columns] = input.dims();
    let planes = planes(input.reshape([items, channels * depth, rows, columns]));
    let [.., rows, columns] = planes.dims();
    let stack = stack(planes.reshape([items, channels, depth, rows * columns]));
    let depth = stack.dims()[2];
    stack.reshape([items, channels, depth, rows, columns])
}

fn pooled3d(pool: &Pool, kernels: Kernels, input: Tensor<5>) -> Tensor<5> {
    // Along all axes except the last, and along an axis of size 1 if they are merged.
    let along = |first: usize, past: usize| {
        let sizes = |all: &[usize], rest: usize| {
            let mut sizes = all[first..past].to_vec();
            sizes.resize(2, rest);
            sizes
        };
        let padding = match &pool.padding {
            Padding::Zeros(zeros) => {
                let zeros = [zeros.as_slice(), &[zeros[0]; 2]].concat();
                Padding::Zeros(sizes(&zeros[..3], 0))
            }
            other => other.clone(),
        };
        Pool {
            dims: 2,
            kernel_size: sizes(&pool.kernel_size, 1),
            stride: sizes(&pool.stride, 1),
            dilation: sizes(&pool.dilation, 1),
            padding,
            ..pool.clone()
        }
    };
    let pass = |pool: Pool| move |x| pooled(&pool, kernels, DynTensor::R4(x)).r4();
    in_two_passes(input, pass(along(1, 3)), pass(along(0, 1)))
}

/// Poolings of windows.
pub(super) fn pooled(pool: &Pool, kernels: Kernels, input: DynTensor) -> DynTensor {
    let dims = input.dims();
    let pads = |at: usize| {
        let extent = pool.dilation[at] * (pool.kernel_size[at] - 1) + 1;
        padding(&pool.padding, at, dims[2 + at], extent, pool.stride[at])
    };
    let pair = |sizes: &[usize]| [sizes[0], sizes[1]];
    match (pool.max, pool.dims) {
        (_, 3) => DynTensor::R5(pooled3d(pool, kernels, input.r5())),
        (true, 1) => {
            let options = MaxPoolOptions::new([pool.kernel_size[0]])
                .with_stride([pool.stride[0]])
                .with_padding_pairs([pads(0)])
                .with_dilation([pool.dilation[0]])
                .with_ceil_mode(pool.ceil_mode);
            DynTensor::R3(pooled1d(input.r3(), options, kernels))
        }
        (true, _) => {
            let options = MaxPoolOptions::new(pair(&pool.kernel_size))
                .with_stride(pair(&pool.stride))
                .with_padding_pairs([pads(0), pads(1)])
                .with_dilation(pair(&pool.dilation))
                .with_ceil_mode(pool.ceil_mode);
            DynTensor::R4(pooled2d(input.r4(), options, kernels))
        }
        (false, 1) => DynTensor::R3(averaged(input.r3(), pool, &[pads(0)], kernels, |x| {
            let config = AvgPool1dConfig::new(pool.kernel_size[0])
                .with_stride(pool.stride[0])
                .with_padding(PaddingConfig1d::Explicit(pads(0).0, pads(0).1))
                .with_count_include_pad(pool.count_include_pad)
                .with_ceil_mode(pool.ceil_mode);
            config.init().forward(x)
        })),
        (false, _) => {
            let (rows, columns) = (pads(0), pads(1));
            let of_burn = |x| {
                let padding = PaddingConfig2d::Explicit(rows.0, columns.0, rows.1, columns.1);
                let config = AvgPool2dConfig::new(pair(&pool.kernel_size))
                    .with_strides(pair(&pool.stride))
                    .with_padding(padding)
                    .with_count_include_pad(pool.count_include_pad)
                    .with_ceil_mode(pool.ceil_mode);
                config.init().forward(x)
            };
            DynTensor::R4(averaged(
                input.r4(),
                pool,
                &[rows, columns],
                kernels,
                of_burn,
            ))
        }
    }
}

/// The mean of each window, by runner's kernel if there is one.
fn averaged<const D: usize>(
    x: Tensor<D>,
    pool: &Pool,
    padding: &[(usize, usize)],
    kernels: Kernels,
    of_burn: impl FnOnce(Tensor<D>) -> Tensor<D>,
) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if kernels.is_fast() && !pool.ceil_mode {
        let layout = crate::fast::pool::Layout {
            kernel: &pool.kernel_size[..D - 2],
            stride: &pool.stride[..D - 2],
            padding,
            counts_padding: pool.count_include_pad,
        };
        if let Some(means) = crate::fast::pool::average(&x, layout) {
            return means;
        }
    }
    let _ = (pool, padding, kernels);
    of_burn(x)
}

/// Values between positions, for other sizes.
pub(super) fn interpolated(
    sizes: &[usize],
    dims: usize,
    mode: Interpolation,
    aligns_corners: bool,
    kernels: Kernels,
    input: DynTensor,
) -> DynTensor {
    #[cfg(feature = "flex")]
    if kernels.is_fast() {
        use crate::fast::resample::interpolated;
        let output = match &input {
            DynTensor::R3(x) => interpolated(x, sizes, mode, aligns_corners).map(DynTensor::R3),
            DynTensor::R4(x) => interpolated(x, sizes, mode, aligns_corners).map(DynTensor::R4),
            _ => None,
        };
        if let Some(output) = output {
            return output;
        }
    }
    let _ = kernels;
    let mode = match mode {
        Interpolation::Nearest => InterpolateMode::Nearest,
        Interpolation::Linear => InterpolateMode::Linear,
        Interpolation::Cubic => InterpolateMode::Cubic,
    };
    match dims {
        1 => {
            let config = Interpolate1dConfig::new().with_output_size(Some(sizes[0]));
            let config = config.with_mode(mode).with_align_corners(aligns_corners);
            DynTensor::R3(config.init().forward(input.r3()))
        }
        _ => {
            let config = Interpolate2dConfig::new().with_output_size(Some([sizes[0], sizes[1]]));
            let config = config.with_mode(mode).with_align_corners(aligns_corners);
            DynTensor::R4(config.init().forward(input.r4()))
        }
    }
}

/// The means of a given number of parts.
pub(super) fn adaptively_pooled(output: &[usize], kernels: Kernels, input: DynTensor) -> DynTensor {
    #[cfg(feature = "flex")]
    if kernels.is_fast() {
        let means = match &input {
            DynTensor::R3(x) => crate::fast::pool::adaptive(x, output).map(DynTensor::R3),
            DynTensor::R4(x) => crate::fast::pool::adaptive(x, output).map(DynTensor::R4),
            DynTensor::R5(x) if is_ours(x) => {
                let pass =
                    |x, output: &[usize]| adaptively_pooled(output, kernels, DynTensor::R4(x)).r4();
                let planes = |x| pass(x, &output[1..]);
                let stack = |x| pass(x, &[output[0], output[1] * output[2]]);
                Some(DynTensor::R5(in_two_passes(x.clone(), planes, stack)))
            }
            _ => None,
        };
        if let Some(means) = means {
            return means;
        }
    }
    let _ = kernels;
    match *output {
        [width] => {
            let pool = AdaptiveAvgPool1dConfig::new(width).init();
            DynTensor::R3(pool.forward(input.r3()))
        }
        [height, width] => {
            let pool = AdaptiveAvgPool2dConfig::new([height, width]).init();
            DynTensor::R4(pool.forward(input.r4()))
        }
        [depth, height, width] => {
            let pool = AdaptiveAvgPool3dConfig::new([depth, height, width]).init();
            DynTensor::R5(pool.forward(input.r5()))
        }
        _ => unreachable!("poolings have one to three dimensions"),
    }
}
