//! Windows of images as columns, and deformable convolutions over samples between pixels.
//!
//! Burn has a deformable convolution, but its gradients in 64 bits are computed in 32. Here both are compositions of
//! operations that every backend has: selections of rows and columns, and sums of four pixels.

use burn::module::{Module, Param};
use burn::nn::conv::DeformConv2dConfig;
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::numeric::matmul;
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::model::layer::{DeformConv, Unfold};

/// For each place of a window along an axis, and each window, the position in the padded image.
fn positions(window: &Unfold, axis: usize, windows: usize) -> Vec<i64> {
    let taps = 0..window.kernel_size[axis];
    let (stride, dilation) = (window.stride[axis], window.dilation[axis]);
    taps.flat_map(|tap| (0..windows).map(move |at| (at * stride + tap * dilation) as i64))
        .collect()
}

/// \[items, channels * places of a window, windows\] of \[items, channels, height, width\], as in PyTorch.
pub fn unfolded(window: &Unfold, x: Tensor<4>) -> Tensor<3> {
    let [items, channels, height, width] = x.dims();
    let device = x.device();
    let sides = sides(window, [height, width]);
    let select = |x: Tensor<4>, axis: usize| {
        let positions = positions(window, axis, sides[axis]);
        let num = positions.len();
        let positions = Tensor::<1, Int>::from_data(TensorData::new(positions, [num]), &device);
        x.select(2 + axis, positions)
    };
    let [rows, columns] = [window.padding[0], window.padding[1]];
    let x = if rows + columns > 0 {
        let pads = [(0, 0), (0, 0), (rows, rows), (columns, columns)];
        x.pad(pads, burn::tensor::ops::PadMode::Constant(0.0))
    } else {
        x
    };
    let x = select(select(x, 0), 1);
    let [taps, across] = [window.kernel_size[0], window.kernel_size[1]];
    let x = x.reshape([items * channels, taps, sides[0], across, sides[1]]);
    let x = x.permute([0, 1, 3, 2, 4]);
    x.reshape([items, channels * taps * across, sides[0] * sides[1]])
}

/// The number of windows along both axes.
fn sides(window: &Unfold, image: [usize; 2]) -> [usize; 2] {
    std::array::from_fn(|at| {
        let extent = window.dilation[at] * (window.kernel_size[at] - 1) + 1;
        (image[at] + 2 * window.padding[at] - extent) / window.stride[at] + 1
    })
}

/// A deformable convolution.
#[derive(Module, Debug)]
pub struct DeformConv2d {
    weight: Param<Tensor<4>>,
    bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    settings: DeformConv,
    #[module(skip)]
    arithmetic: Arithmetic,
}

impl DeformConv2d {
    /// For channels of the input and of the output, with uninitialized weights.
    pub fn new(
        settings: &DeformConv,
        channels: [usize; 2],
        arithmetic: Arithmetic,
        device: &Device,
    ) -> Self {
        let kernel = &settings.window.kernel_size;
        let config = DeformConv2dConfig::new(channels, [kernel[0], kernel[1]])
            .with_weight_groups(settings.groups)
            .with_bias(settings.bias)
            .init(device);
        Self {
            weight: config.weight,
            bias: config.bias,
            settings: settings.clone(),
            arithmetic,
        }
    }

    /// The output for images \[items, channels, height, width\], offsets \[items, groups * samples * 2, rows, columns\]
    /// of each sample (down, then right), and the weights of samples, if there are any.
    pub fn forward(
        &self,
        x: Tensor<4>,
        offsets: Tensor<4>,
        weights: Option<Tensor<4>>,
    ) -> Tensor<4> {
        let [items, channels, _, _] = x.dims();
        let [_, _, rows, columns] = offsets.dims();
        let taps = self.settings.window.num_taps();
        let samples = self.samples(x, offsets, weights);
        let (groups, windows) = (self.settings.groups, rows * columns);
        let outputs = self.weight.dims()[0];
        let inner = channels / groups * taps;
        let samples = samples.reshape([items, groups, inner, windows]);
        let weight = self.weight.val();
        let weight = weight.reshape([1, groups, outputs / groups, inner]);
        let weight = weight.expand([items, groups, outputs / groups, inner]);
        let output = matmul(self.arithmetic, weight, samples);
        let output = output.reshape([items, outputs, rows, columns]);
        match &self.bias {
            Some(bias) => output + bias.val().reshape([1, outputs, 1, 1]),
            None => output,
        }
    }

    /// The samples of each channel, \[items, channels, samples, windows\].
    fn samples(&self, x: Tensor<4>, offsets: Tensor<4>, weights: Option<Tensor<4>>) -> Tensor<4> {
        let window = &self.settings.window;
        let [items, channels, height, width] = x.dims();
        let [_, of_offsets, rows, columns] = offsets.dims();
        let taps = window.num_taps();
        let (groups, windows) = (of_offsets / (2 * taps), rows * columns);
        let offsets = offsets.reshape([items, groups, taps, 2, windows]);
        let along = |axis: usize| {
            let moved = offsets.clone().narrow(3, axis, 1);
            let moved = moved.reshape([items, groups, taps, windows]);
            let still = self.still(axis, [rows, columns]);
            let still = TensorData::new(still, [1, 1, taps, windows]);
            moved.clone() + Tensor::<4>::from_data(still, (&moved.device(), moved.dtype()))
        };
        let (down, right) = (Places::of(along(0), height), Places::of(along(1), width));
        let x = x.reshape([items, groups, channels / groups, height * width]);
        let samples = pixels(x, width, (&down, &right));
        let samples = match weights {
            Some(weights) => samples * weights.reshape([items, groups, 1, taps * windows]),
            None => samples,
        };
        samples.reshape([items, channels, taps, windows])
    }

    /// Where the samples of each window are along an axis without offsets.
    fn still(&self, axis: usize, sides: [usize; 2]) -> Vec<f64> {
        let window = &self.settings.window;
        let across = window.kernel_size[1];
        let place = |at: usize| {
            let (tap, place) = (at / (sides[0] * sides[1]), at % (sides[0] * sides[1]));
            let tap = [tap / across, tap % across][axis];
            let place = [place / sides[1], place % sides[1]][axis];
            (place * window.stride[axis] + tap * window.dilation[axis]) as f64
                - window.padding[axis] as f64
        };
        let num = window.num_taps() * sides[0] * sides[1];
        (0..num).map(place).collect()
    }
}

/// The pixels before and after each sample along an axis, with their weights: 0 outside of the image.
pub struct Places(Vec<(Tensor<4, Int>, Tensor<4>)>);

impl Places {
    /// Of samples between pixels, which are numbered from 0.
    pub fn of(at: Tensor<4>, size: usize) -> Self {
        let first = at.clone().detach().floor();
        let rest = at - first.clone();
        let second = first.clone().add_scalar(1.0);
        let before = rest.clone().neg().add_scalar(1.0);
        Self(vec![pixel(first, before, size), pixel(second, rest, size)])
    }

    /// Of the pixels that are nearest to samples.
    pub fn nearest(at: Tensor<4>, size: usize) -> Self {
        let place = at.detach().round();
        let one = place.ones_like();
        Self(vec![pixel(place, one, size)])
    }
}

fn pixel(place: Tensor<4>, weight: Tensor<4>, size: usize) -> (Tensor<4, Int>, Tensor<4>) {
    let last = size as f64 - 1.0;
    let outside = place.clone().lower_elem(0.0);
    let outside = outside.bool_or(place.clone().greater_elem(last));
    (place.clamp(0.0, last).int(), weight.mask_fill(outside, 0.0))
}

/// Samples \[items, groups, channels, samples\] of images \[items, groups, channels, pixels\] with rows of `width` pixels.
pub fn pixels(x: Tensor<4>, width: usize, (down, right): (&Places, &Places)) -> Tensor<4> {
    let [items, groups, channels, _] = x.dims();
    let num = down.0[0].1.shape().num_elements() / (items * groups);
    let (all, shared) = ([items, groups, channels, num], [items, groups, 1, num]);
    let rows = down.0.iter().map(|(at_row, of_row)| {
        let corners = right.0.iter().map(|(at_column, of_column)| {
            let at = at_row.clone().mul_scalar(width as i64) + at_column.clone();
            let pixels = x.clone().gather(3, at.reshape(shared).expand(all));
            pixels * (of_row.clone() * of_column.clone()).reshape(shared)
        });
        corners.reduce(|sum, corner| sum + corner)
    });
    rows.flatten()
        .reduce(|sum, row| sum + row)
        .expect("a sample has a pixel")
}

#[cfg(all(test, feature = "flex"))]
mod tests;
