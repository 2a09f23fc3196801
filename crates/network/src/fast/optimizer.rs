//! Adam and AdamW with Burn's states, updated in place.

use burn::backend::flex::FlexTensor;
use burn::backend::{BackendTensor, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind};
use burn::optim::AdaptiveMomentumState;
use burn::tensor::Tensor;
use runner_kernels::optimizer::Adam;

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

/// The weights after a step, with the means; the time of the state is that of the step.
pub fn step<const D: usize>(
    adam: &Adam,
    weights: Tensor<D>,
    gradient: Tensor<D>,
    state: AdaptiveMomentumState<D>,
) -> (Tensor<D>, AdaptiveMomentumState<D>) {
    let mut weights = primitive(weights);
    let (mut first, mut second) = (primitive(state.moment_1), primitive(state.moment_2));
    let gradient = primitive(gradient);
    let means = [first.storage_mut(), second.storage_mut()];
    adam.step(weights.storage_mut(), means, numbers(&gradient));
    let state = AdaptiveMomentumState::new(state.time, tensor(first), tensor(second));
    (tensor(weights), state)
}
