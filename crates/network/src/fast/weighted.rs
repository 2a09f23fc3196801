//! Layers whose output is linear in their input and in their weights, with or without a bias.

use std::fmt::Debug;

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};

use super::operation::{
    Back, Operation, apply_2, apply_3, contiguous, is_ours, numbers, sizes, tensor,
};

/// The computation of a layer.
pub trait Weighted: Clone + Debug + Send + 'static {
    /// The sizes of the output for those of the input.
    fn output_sizes(&self, input: &[usize]) -> Vec<usize>;

    /// The output.
    fn output(&self, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32>;

    /// The gradient of the input.
    fn of_input(&self, gradient: &[f32], weight: &[f32]) -> Vec<f32>;

    /// The gradient of the weights.
    fn of_weight(&self, x: &[f32], gradient: &[f32]) -> Vec<f32>;

    /// The gradient of the bias.
    fn of_bias(&self, gradient: &[f32]) -> Vec<f32>;
}

/// Operands are the input, the weights and, if there are three, the bias.
#[derive(Clone, Debug)]
struct Layer<L>(L);

impl<L: Weighted, const N: usize> Operation<N> for Layer<L> {
    /// The shapes of the operands.
    type Kept = [Shape; N];

    /// The input is needed for the gradient of the weights and vice versa: a frozen layer keeps no input.
    fn asks_for(&self, is_tracked: [bool; N]) -> [bool; N] {
        std::array::from_fn(|at| at < 2 && is_tracked[1 - at])
    }

    fn forward(
        &self,
        operands: [FlexTensor; N],
        is_kept: bool,
    ) -> (FlexTensor, Option<Self::Kept>) {
        let operands = operands.map(contiguous);
        let [x, weight] = [0, 1].map(|at| numbers(&operands[at]));
        let output = self.0.output(x, weight, operands.get(2).map(numbers));
        let shape = self.0.output_sizes(&sizes(&operands[0]));
        let kept = is_kept.then(|| operands.each_ref().map(|operand| operand.shape()));
        (tensor(output, Shape::from(shape)), kept)
    }

    fn backward(&self, mut back: Back<Self::Kept, N>) -> [Option<FlexTensor>; N] {
        std::array::from_fn(|at| {
            if !back.wants[at] {
                return None;
            }
            let other = (at < 2).then(|| back.operand(1 - at));
            let other = other.as_ref().map_or(&[][..], numbers);
            let gradient = numbers(&back.gradient);
            let values = match at {
                0 => self.0.of_input(gradient, other),
                1 => self.0.of_weight(other, gradient),
                _ => self.0.of_bias(gradient),
            };
            Some(tensor(values, back.kept[at].clone()))
        })
    }
}

/// The output of a layer, if its input and weights are supported here.
pub fn apply<const D: usize, const W: usize>(
    layer: impl Weighted,
    x: &Tensor<D>,
    weight: Tensor<W>,
    bias: Option<Tensor<1>>,
) -> Option<Tensor<D>> {
    if !is_ours(x) || !is_ours(&weight) || x.shape().num_elements() == 0 {
        return None;
    }
    let x = x.clone();
    Some(match bias {
        Some(bias) => apply_3((x, weight, bias), Layer(layer)),
        None => apply_2((x, weight), Layer(layer)),
    })
}

#[cfg(test)]
mod tests {
    use runner_kernels::linear::Linear;

    use super::{Layer, Operation};

    #[test]
    fn a_frozen_layer_keeps_no_input() {
        let layer = Layer(Linear {
            rows: 1,
            inputs: 1,
            outputs: 1,
            arithmetic: Default::default(),
        });
        assert_eq!(
            layer.asks_for([true, false, false]),
            [false, true, false],
            "frozen"
        );
        assert_eq!(
            layer.asks_for([false, true, true]),
            [true, false, false],
            "the first layer"
        );
        assert_eq!(layer.asks_for([true, true]), [true, true]);
        assert_eq!(layer.asks_for([false, false, true]), [false; 3]);
    }
}
