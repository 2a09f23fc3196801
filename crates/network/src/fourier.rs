//! The discrete Fourier transform as products with matrices of cosines and sines: every backend has them, in every
//! precision and with gradients, and the axes of items are short.

use burn::tensor::{Tensor, TensorData};

use crate::numeric::matmul;
use crate::tensor::DynTensor;
use runner_core::check::network::axes::axis_of;
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::model::fourier::{Fourier, SpectrumPart};

/// The spectrum of items.
pub fn spectrum(fourier: &Fourier, input: DynTensor, arithmetic: Arithmetic) -> DynTensor {
    let dims = input.dims();
    let flat = input.flatten();
    let shape = flat.dims();
    let mut real = Some(flat);
    // The items are real numbers.
    let mut imaginary: Option<Tensor<2>> = None;
    for (at, axis) in fourier.axes.iter().enumerate() {
        let axis = 1 + axis_of(*axis, dims.len() - 1);
        let is_taken = |part| fourier.part == part || fourier.part == SpectrumPart::Power;
        let is_needed = |part| at + 1 < fourier.axes.len() || is_taken(part);
        let product = |x: &Option<Tensor<2>>, wave: usize| {
            let sizes = [
                dims[..axis].iter().product(),
                dims[axis],
                dims[axis + 1..].iter().product(),
            ];
            x.clone()
                .map(|x| along(x.reshape(sizes), wave, arithmetic).reshape(shape))
        };
        // (x + i y)(c + i s) = x c - y s + i (x s + y c)
        let next_real = is_needed(SpectrumPart::Real)
            .then(|| sum(product(&real, 0), product(&imaginary, 1).map(Tensor::neg)));
        let next_imaginary = is_needed(SpectrumPart::Imaginary)
            .then(|| sum(product(&real, 1), product(&imaginary, 0)));
        (real, imaginary) = (next_real.flatten(), next_imaginary.flatten());
    }
    let squares = |part: Option<Tensor<2>>| part.map(|part| part.clone() * part);
    let taken = match fourier.part {
        SpectrumPart::Real => real,
        SpectrumPart::Imaginary => imaginary,
        SpectrumPart::Power => sum(squares(real), squares(imaginary)),
    };
    DynTensor::R2(taken.expect("a part of a spectrum")).reshape(&dims)
}

fn sum(a: Option<Tensor<2>>, b: Option<Tensor<2>>) -> Option<Tensor<2>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

/// The product of the middle axis with the cosines (0) or the negated sines (1) of a transform.
fn along(x: Tensor<3>, wave: usize, arithmetic: Arithmetic) -> Tensor<3> {
    let [before, size, behind] = x.dims();
    let [cosines, sines] = Fourier::waves(size);
    let values = if wave == 0 { cosines } else { sines };
    let place = (&x.device(), x.dtype());
    let matrix = Tensor::<2>::from_data(TensorData::new(values, [size, size]), place);
    let rows = x.swap_dims(1, 2).reshape([before * behind, size]);
    // The matrix is symmetric.
    let product = matmul(arithmetic, rows, matrix);
    product.reshape([before, behind, size]).swap_dims(1, 2)
}
