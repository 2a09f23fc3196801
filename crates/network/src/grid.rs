//! Samples of images at the places of a grid, and the grids of affine maps.

use burn::tensor::{Tensor, TensorData};

use crate::deform::{Places, pixels};
use crate::numeric::{expand, matmul};
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::model::grid::{AffineGrid, GridMode, GridPadding, GridSample, IDENTITY};

/// \[items, channels, rows, columns\] of \[items, channels, height, width\] at \[items, rows, columns, 2\].
pub fn sampled(settings: &GridSample, x: Tensor<4>, grid: Tensor<4>) -> Tensor<4> {
    let [items, channels, height, width] = x.dims();
    let [_, rows, columns, _] = grid.dims();
    let along = |axis: usize, size: usize| {
        let place = grid.clone().narrow(3, axis, 1);
        let place = place.reshape([items, 1, rows, columns]).add_scalar(1.0);
        // Burn divides in 32 bits in some gradients: a product with a half is exact.
        let place = if settings.align_corners {
            place.mul_scalar(0.5 * (size as f64 - 1.0))
        } else {
            place.mul_scalar(0.5 * size as f64).sub_scalar(0.5)
        };
        let place = match settings.padding {
            GridPadding::Zeros => place,
            GridPadding::Border => place.clamp(0.0, size as f64 - 1.0),
        };
        match settings.mode {
            GridMode::Linear => Places::of(place, size),
            GridMode::Nearest => Places::nearest(place, size),
        }
    };
    let (down, right) = (along(1, height), along(0, width));
    let x = x.reshape([items, 1, channels, height * width]);
    let samples = pixels(x, width, (&down, &right));
    samples.reshape([items, channels, rows, columns])
}

/// The grid \[items, height, width, 2\] of affine maps \[items, 6\] of the places of the output.
pub fn affine(settings: &AffineGrid, maps: Tensor<2>, arithmetic: Arithmetic) -> Tensor<4> {
    let items = maps.dims()[0];
    let [height, width] = [settings.output_size[0], settings.output_size[1]];
    let places = TensorData::new(settings.places(), [3, height * width]);
    let places = Tensor::<2>::from_data(places, (&maps.device(), maps.dtype()));
    let maps = if settings.add_identity {
        let identity = TensorData::new(IDENTITY.to_vec(), [1, 6]);
        let identity = Tensor::<2>::from_data(identity, (&maps.device(), maps.dtype()));
        maps + expand(arithmetic, identity, [items, 6])
    } else {
        maps
    };
    let both = matmul(arithmetic, maps.reshape([items * 2, 3]), places);
    let both = both.reshape([items, 2, height * width]).swap_dims(1, 2);
    both.reshape([items, height, width, 2])
}
