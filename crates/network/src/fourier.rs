//! The discrete Fourier transform as products with matrices of cosines and sines: every backend has them, in every
//! precision and with gradients, and the axes of items are short.

use burn::tensor::{Tensor, TensorData};

use crate::numeric::matmul;
use crate::tensor::DynTensor;
use runner_core::check::network::axes::axis_of;
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::model::fourier::{Fourier, Transform, Wave};

/// The spectrum of items.
pub fn spectrum(fourier: &Fourier, input: DynTensor, arithmetic: Arithmetic) -> DynTensor {
    let dims = input.dims();
    let mut items = Items {
        dims: &dims,
        arithmetic,
    };
    DynTensor::R2(fourier.of(&input.flatten(), &mut items)).reshape(&dims)
}

/// Items whose axes after the batch are flattened.
struct Items<'a> {
    dims: &'a [usize],
    arithmetic: Arithmetic,
}

impl Transform for Items<'_> {
    type Numbers = Tensor<2>;

    fn product(&mut self, x: &Tensor<2>, axis: i64, wave: Wave) -> Tensor<2> {
        let axis = 1 + axis_of(axis, self.dims.len() - 1);
        let size = self.dims[axis];
        let before: usize = self.dims[..axis].iter().product();
        let behind: usize = self.dims[axis + 1..].iter().product();
        let matrix = TensorData::new(wave.matrix(size), [size, size]);
        let matrix = Tensor::<2>::from_data(matrix, (&x.device(), x.dtype()));
        let rows = x.clone().reshape([before, size, behind]).swap_dims(1, 2);
        let rows = rows.reshape([before * behind, size]);
        let product = matmul(self.arithmetic, rows, matrix);
        let product = product.reshape([before, behind, size]).swap_dims(1, 2);
        product.reshape(x.dims())
    }

    fn add(&mut self, a: Tensor<2>, b: Tensor<2>) -> Tensor<2> {
        a + b
    }

    fn subtract(&mut self, a: Tensor<2>, b: Tensor<2>) -> Tensor<2> {
        a - b
    }

    fn square(&mut self, x: Tensor<2>) -> Tensor<2> {
        x.clone() * x
    }
}
