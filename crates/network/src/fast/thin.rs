//! Linear layers of few rows, as in the steps of text generation: the weights are read once, and never copied.

use burn::backend::flex::FlexTensor;
use burn::nn;
use burn::tensor::{Shape, Tensor};
use runner_core::spec::backend::Arithmetic;
use runner_kernels::thin::{MOST_ROWS, Thin};

use super::operation::{
    Back, Operation, apply_2, apply_3, contiguous, is_ours, numbers, sizes, tensor,
};
use crate::lora;

/// Operands are the input, the weights and, if there are three, the bias.
#[derive(Clone, Debug)]
struct Few(Thin);

impl<const N: usize> Operation<N> for Few {
    type Kept = ();

    fn asks_for(&self, _: [bool; N]) -> [bool; N] {
        [false; N]
    }

    fn forward(&self, operands: [FlexTensor; N], is_kept: bool) -> (FlexTensor, Option<()>) {
        let mut operands = operands.into_iter();
        let mut next = || operands.next().expect("an input and weights");
        let (x, weight) = (contiguous(next()), next());
        let bias = operands.next().map(contiguous);
        let Thin {
            inputs, outputs, ..
        } = self.0;
        // The matrix of an embedding is a transposed view.
        let is_turned = *weight.layout().strides() == [1, inputs as isize] && inputs > 1;
        let is_plain = *weight.layout().strides() == [outputs as isize, 1];
        let weight = if is_turned || is_plain {
            weight
        } else {
            contiguous(weight)
        };
        let first = weight.layout().start_offset();
        let numbers_of = &weight.storage::<f32>()[first..][..inputs * outputs];
        let thin = Thin {
            is_turned,
            ..self.0
        };
        let output = thin.forward(numbers(&x), numbers_of, bias.as_ref().map(numbers));
        let mut shape = sizes(&x);
        shape.pop();
        shape.push(outputs);
        (tensor(output, Shape::from(shape)), is_kept.then_some(()))
    }

    fn backward(&self, _: Back<(), N>) -> [Option<FlexTensor>; N] {
        unreachable!("devices with gradients have other kernels")
    }
}

/// Whether so many rows of a tensor are few, and supported here.
pub fn suits<const D: usize>(x: &Tensor<D>, arithmetic: Arithmetic) -> bool {
    let dims = x.dims();
    let rows: usize = dims[..D - 1].iter().product();
    is_ours(x)
        && !x.device().is_autodiff()
        && arithmetic.is_fast()
        && (1..=MOST_ROWS).contains(&rows)
}

/// The output of a linear layer for rows that [`suits`] accepts.
pub fn linear(layer: &nn::Linear, x: Tensor<3>) -> Tensor<3> {
    lora::linear(layer, x, plain)
}

/// The same without an adapter.
fn plain(layer: &nn::Linear, x: Tensor<3>) -> Tensor<3> {
    let weight = layer.weight.val();
    let ([inputs, outputs], [items, length, width]) = (weight.dims(), x.dims());
    if !is_ours(&weight) || width != inputs || weight.device().is_autodiff() {
        return layer.forward(x);
    }
    let few = Few(Thin {
        rows: items * length,
        inputs,
        outputs,
        is_turned: false,
    });
    match &layer.bias {
        Some(bias) => apply_3((x, weight, bias.val()), few),
        None => apply_2((x, weight), few),
    }
}
