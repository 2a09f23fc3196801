//! Adam and AdamW with Burn's states, updated in place.

use burn::backend::flex::FlexTensor;
use burn::backend::{BackendTensor, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind};
use burn::optim::{
    Adam as BurnAdam, AdamState, AdamW as BurnAdamW, AdamWState, AdaptiveMomentumState, Optimizer,
};
use burn::tensor::{Device, Tensor};
use runner_kernels::optimizer::{Adam, Decay};

use super::operation::{contiguous, is_ours, numbers};

/// The common settings of both.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The decay of the mean of gradients.
    pub beta_1: f32,
    /// The decay of the mean of squares.
    pub beta_2: f32,
    /// Added to the root of the mean of squares.
    pub epsilon: f32,
    /// The penalty of Adam, or the decay of AdamW.
    pub weight_decay: f32,
}

/// Adam or AdamW by runner's kernel if supported, otherwise by Burn.
#[derive(Clone)]
pub struct Fast<O> {
    /// The settings of the kernel.
    pub settings: Settings,
    /// Burn's optimizer with the same settings.
    pub burn: O,
}

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

impl Settings {
    fn step<const D: usize>(
        &self,
        rate: f64,
        decay: Decay,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<AdaptiveMomentumState<D>>,
    ) -> (Tensor<D>, AdaptiveMomentumState<D>) {
        let device = weights.device();
        let state = state.unwrap_or_else(|| {
            let zeros = || Tensor::zeros(weights.shape(), &device);
            AdaptiveMomentumState::new(0, zeros(), zeros())
        });
        let time = state.time + 1;
        let mut weights = primitive(weights);
        let (mut first, mut second) = (primitive(state.moment_1), primitive(state.moment_2));
        let gradient = primitive(gradient);
        let step = Adam {
            beta_1: self.beta_1,
            beta_2: self.beta_2,
            epsilon: self.epsilon,
            rate: rate as f32,
            time: time as i32,
            decay,
        };
        let means = [first.storage_mut(), second.storage_mut()];
        step.step(weights.storage_mut(), means, numbers(&gradient));
        let state = AdaptiveMomentumState::new(time, tensor(first), tensor(second));
        (tensor(weights), state)
    }
}

impl Optimizer for Fast<BurnAdam> {
    type State<const D: usize> = AdamState<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<AdamState<D>>,
    ) -> (Tensor<D>, Option<AdamState<D>>) {
        if !is_ours(&weights) || !is_ours(&gradient) {
            return self.burn.step(rate, weights, gradient, state);
        }
        let decay = Decay::Penalty(self.settings.weight_decay);
        let momentum = state.map(|state| state.momentum);
        let (weights, momentum) = self.settings.step(rate, decay, weights, gradient, momentum);
        (weights, Some(AdamState::new(momentum)))
    }

    fn to_device<const D: usize>(state: AdamState<D>, device: &Device) -> AdamState<D> {
        BurnAdam::to_device(state, device)
    }
}

impl Optimizer for Fast<BurnAdamW> {
    type State<const D: usize> = AdamWState<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<AdamWState<D>>,
    ) -> (Tensor<D>, Option<AdamWState<D>>) {
        if !is_ours(&weights) || !is_ours(&gradient) {
            return self.burn.step(rate, weights, gradient, state);
        }
        let kept = 1.0 - rate * f64::from(self.settings.weight_decay);
        let momentum = state.map(|state| state.momentum);
        let decay = Decay::Factor(kept as f32);
        let (weights, momentum) = self.settings.step(rate, decay, weights, gradient, momentum);
        (weights, Some(AdamWState::new(momentum)))
    }

    fn to_device<const D: usize>(state: AdamWState<D>, device: &Device) -> AdamWState<D> {
        BurnAdamW::to_device(state, device)
    }
}
