//! Linear layers whose frozen matrix is held in fewer bits. It is never tracked, and in full only during a product.

use burn::backend::flex::{FlexQTensor, FlexTensor};
use burn::backend::{BackendTensor, DispatchTensorKind, TensorMetadata};
use burn::tensor::{DType, Shape, Tensor, bf16, f16};
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;
use runner_core::int8;
use runner_core::spec::backend::Arithmetic;
use runner_kernels::linear::Linear;

use super::operation::{
    Back, Operation, apply_1, apply_2, contiguous, is_ours, numbers, sizes, tensor,
};
use super::rounding;

/// A matrix, \[inputs, outputs\].
#[derive(Clone, Debug)]
enum Matrix {
    Bf16(FlexTensor),
    F16(FlexTensor),
    Int8(FlexQTensor),
}

impl Matrix {
    /// That of a tensor, if it is held in fewer bits.
    fn of(matrix: Tensor<2>) -> Option<Self> {
        let kind = match matrix.into_dispatch().kind {
            DispatchTensorKind::Autodiff(kind) => *kind,
            kind => kind,
        };
        let DispatchTensorKind::Flex(kind) = kind else {
            return None;
        };
        let tensor = match kind {
            BackendTensor::Quantized(matrix) => return Some(Self::Int8(matrix)),
            BackendTensor::Float(tensor) => tensor,
            BackendTensor::Autodiff(tensor) => tensor.into_primitive(),
            _ => return None,
        };
        let tensor = contiguous(tensor);
        match tensor.dtype() {
            DType::BF16 => Some(Self::Bf16(tensor)),
            DType::F16 => Some(Self::F16(tensor)),
            _ => None,
        }
    }

    /// Its numbers in 32 bits.
    fn in_full(&self, sizes: [usize; 2]) -> Vec<f32> {
        /// Rows of a task.
        const ROWS: usize = 16;
        let [inputs, outputs] = sizes;
        let block = (ROWS * outputs).max(1);
        let mut values = vec![0.0; inputs * outputs];
        let blocks = values.par_chunks_mut(block).enumerate();
        blocks.for_each(|(at, values)| {
            let of = at * block..at * block + values.len();
            match self {
                Self::Bf16(tensor) => tensor.storage::<bf16>()[of].convert_to_f32_slice(values),
                Self::F16(tensor) => tensor.storage::<f16>()[of].convert_to_f32_slice(values),
                Self::Int8(matrix) => {
                    let numbers = &matrix.tensor().storage::<i8>()[of];
                    int8::full(numbers, matrix.scales(), sizes, at * ROWS, values);
                }
            }
        });
        values
    }
}

/// Operands are the input and, if there are two, the bias.
#[derive(Clone, Debug)]
struct Product {
    matrix: Matrix,
    layer: Linear,
}

impl<const N: usize> Operation<N> for Product {
    /// The shapes of the operands.
    type Kept = [Shape; N];

    fn asks_for(&self, _: [bool; N]) -> [bool; N] {
        [false; N]
    }

    fn forward(
        &self,
        operands: [FlexTensor; N],
        is_kept: bool,
    ) -> (FlexTensor, Option<Self::Kept>) {
        let Linear {
            inputs, outputs, ..
        } = self.layer;
        let operands = operands.map(contiguous);
        let matrix = self.matrix.in_full([inputs, outputs]);
        let bias = operands.get(1).map(numbers);
        let output = self.layer.forward(numbers(&operands[0]), &matrix, bias);
        let mut shape = sizes(&operands[0]);
        shape.pop();
        shape.push(outputs);
        let kept = is_kept.then(|| operands.each_ref().map(|operand| operand.shape()));
        (tensor(output, Shape::from(shape)), kept)
    }

    fn backward(&self, back: Back<Self::Kept, N>) -> [Option<FlexTensor>; N] {
        let Linear {
            inputs, outputs, ..
        } = self.layer;
        let gradient = numbers(&back.gradient);
        std::array::from_fn(|at| {
            let values = match at {
                _ if !back.wants[at] => return None,
                0 => {
                    let matrix = self.matrix.in_full([inputs, outputs]);
                    self.layer.backward_input(gradient, &matrix)
                }
                _ => self.layer.backward_bias(gradient),
            };
            Some(tensor(values, back.kept[at].clone()))
        })
    }
}

/// The output of a linear layer, \[.., inputs\] to \[.., outputs\], if its matrix is held in fewer bits.
pub fn linear<const D: usize>(
    x: &Tensor<D>,
    matrix: &Tensor<2>,
    bias: Option<Tensor<1>>,
    arithmetic: Arithmetic,
) -> Option<Tensor<D>> {
    let ([inputs, outputs], dims) = (matrix.dims(), x.dims());
    if !is_ours(x) || dims[D - 1] != inputs || x.shape().num_elements() == 0 {
        return None;
    }
    let product = Product {
        matrix: Matrix::of(matrix.clone())?,
        layer: Linear {
            rows: dims[..D - 1].iter().product(),
            inputs,
            outputs,
            arithmetic: rounding(arithmetic),
        },
    };
    Some(match bias {
        Some(bias) => apply_2((x.clone(), bias), product),
        None => apply_1(x.clone(), product),
    })
}
