//! Updates of tensors in place.

use burn::backend::flex::FlexTensor;
use burn::backend::{BackendTensor, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind};
use burn::tensor::Tensor;
use runner_kernels::optimizer::Rule;

use super::operation::{self, contiguous, numbers};

/// The backend's representation of a `flex` tensor without autodiff.
fn primitive<const D: usize>(tensor: Tensor<D>) -> FlexTensor {
    match tensor.into_dispatch().kind {
        DispatchTensorKind::Flex(BackendTensor::Float(tensor)) => contiguous(tensor),
        _ => unreachable!("updates are made on tensors of flex without autodiff"),
    }
}

fn tensor<const D: usize>(tensor: FlexTensor) -> Tensor<D> {
    Tensor::from_dispatch(DispatchTensor {
        kind: DispatchTensorKind::Flex(BackendTensor::Float(tensor)),
        autodiff: DispatchAutodiffContext::Disabled,
    })
}

/// Whether [`step`] supports these tensors.
pub fn is_ours<const D: usize>(weights: &Tensor<D>, gradient: &Tensor<D>) -> bool {
    operation::is_ours(weights) && operation::is_ours(gradient)
}

/// The weights and what is kept for them, after a step.
pub fn step<const D: usize, const N: usize>(
    rule: &impl Rule<N>,
    weights: Tensor<D>,
    kept: [Tensor<D>; N],
    gradient: Tensor<D>,
) -> (Tensor<D>, [Tensor<D>; N]) {
    let mut weights = primitive(weights);
    let mut kept = kept.map(primitive);
    let gradient = primitive(gradient);
    let parts = kept.each_mut().map(FlexTensor::storage_mut);
    rule.step(weights.storage_mut(), parts, numbers(&gradient));
    (tensor(weights), kept.map(tensor))
}
