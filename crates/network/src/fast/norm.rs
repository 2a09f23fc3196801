//! Norms, using the parameters of Burn's modules.

use std::sync::{Arc, OnceLock};

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::module::Param;
use burn::nn::{BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RmsNorm};
use burn::tensor::{Shape, Tensor, TensorData};
use runner_kernels::activation::Activation;
use runner_kernels::norm::{
    Affine, LocalResponse, Planes, RowNorm, Statistics, batch_backward, batch_evaluate,
    batch_forward, deviations, group_backward, group_forward, rows_backward, rows_forward,
};

use crate::batch_norm::{is_training, keep, values_of_channel};

use super::operation::{
    Back, Operation, apply_1, apply_3, contiguous, is_ours, numbers, sizes, tensor,
};

/// The requested gradients of input, gamma and beta.
fn gradients(found: [Vec<f32>; 3], shape: Shape, wants: [bool; 3]) -> [Option<FlexTensor>; 3] {
    let [x, gamma, beta] = found;
    let row = |values: Vec<f32>| {
        let shape = Shape::from([values.len()]);
        tensor(values, shape)
    };
    [
        wants[0].then(|| tensor(x, shape)),
        wants[1].then(|| row(gamma)),
        wants[2].then(|| row(beta)),
    ]
}

/// A norm of each row along the last axis; operands are the input, gamma and beta.
#[derive(Clone, Debug)]
struct Rows(RowNorm);

impl Operation<3> for Rows {
    type Kept = Arc<Statistics>;

    fn asks_for(&self, _: [bool; 3]) -> [bool; 3] {
        [true, true, false]
    }

    fn forward(
        &self,
        operands: [FlexTensor; 3],
        is_kept: bool,
    ) -> (FlexTensor, Option<Self::Kept>) {
        let [x, gamma, beta] = operands.map(contiguous);
        let beta = Some(numbers(&beta));
        let (output, statistics) = rows_forward(self.0, numbers(&x), numbers(&gamma), beta);
        (
            tensor(output, x.shape()),
            is_kept.then(|| Arc::new(statistics)),
        )
    }

    fn backward(&self, mut back: Back<Self::Kept, 3>) -> [Option<FlexTensor>; 3] {
        let (x, gamma) = (back.operand(0), back.operand(1));
        let gradient = numbers(&back.gradient);
        let found = rows_backward(self.0, numbers(&x), numbers(&gamma), &back.kept, gradient);
        gradients(found, x.shape(), back.wants)
    }
}

/// A norm of groups of channels of each item.
#[derive(Clone, Debug)]
struct Groups {
    num: usize,
    epsilon: f32,
    then: Option<Activation>,
}

impl Operation<3> for Groups {
    type Kept = Arc<Statistics>;

    fn asks_for(&self, _: [bool; 3]) -> [bool; 3] {
        [true; 3]
    }

    fn forward(
        &self,
        operands: [FlexTensor; 3],
        is_kept: bool,
    ) -> (FlexTensor, Option<Self::Kept>) {
        let [x, gamma, beta] = operands.map(contiguous);
        let (planes, affine) = (planes(&sizes(&x)), affine(&gamma, &beta, self.then));
        let (output, statistics) =
            group_forward(&planes, self.num, self.epsilon, numbers(&x), affine);
        (
            tensor(output, x.shape()),
            is_kept.then(|| Arc::new(statistics)),
        )
    }

    fn backward(&self, mut back: Back<Self::Kept, 3>) -> [Option<FlexTensor>; 3] {
        let [x, gamma, beta] = [0, 1, 2].map(|at| back.operand(at));
        let found = group_backward(
            &planes(&sizes(&x)),
            self.num,
            numbers(&x),
            affine(&gamma, &beta, self.then),
            &back.kept,
            numbers(&back.gradient),
        );
        gradients(found, x.shape(), back.wants)
    }
}

/// A norm of channels over the batch.
#[derive(Clone, Debug)]
struct Batch {
    epsilon: f32,
    then: Option<Activation>,
    /// Receives each channel's mean and variance.
    moments: Arc<OnceLock<Vec<[f32; 2]>>>,
}

impl Operation<3> for Batch {
    type Kept = Arc<Statistics>;

    fn asks_for(&self, _: [bool; 3]) -> [bool; 3] {
        [true; 3]
    }

    fn forward(
        &self,
        operands: [FlexTensor; 3],
        is_kept: bool,
    ) -> (FlexTensor, Option<Self::Kept>) {
        let [x, gamma, beta] = operands.map(contiguous);
        let (planes, affine) = (planes(&sizes(&x)), affine(&gamma, &beta, self.then));
        let (output, moments) = batch_forward(&planes, self.epsilon, numbers(&x), affine);
        let kept = is_kept.then(|| Arc::new(deviations(&moments, self.epsilon)));
        let _ = self.moments.set(moments);
        (tensor(output, x.shape()), kept)
    }

    fn backward(&self, mut back: Back<Self::Kept, 3>) -> [Option<FlexTensor>; 3] {
        let [x, gamma, beta] = [0, 1, 2].map(|at| back.operand(at));
        let found = batch_backward(
            &planes(&sizes(&x)),
            numbers(&x),
            affine(&gamma, &beta, self.then),
            &back.kept,
            numbers(&back.gradient),
        );
        gradients(found, x.shape(), back.wants)
    }
}

/// A norm of channels with given statistics, without gradients.
#[derive(Clone, Debug)]
struct Running {
    statistics: Arc<Statistics>,
    then: Option<Activation>,
}

impl Operation<3> for Running {
    type Kept = ();

    fn asks_for(&self, _: [bool; 3]) -> [bool; 3] {
        [false; 3]
    }

    fn forward(&self, operands: [FlexTensor; 3], is_kept: bool) -> (FlexTensor, Option<()>) {
        let [x, gamma, beta] = operands.map(contiguous);
        let (planes, affine) = (planes(&sizes(&x)), affine(&gamma, &beta, self.then));
        let output = batch_evaluate(&planes, numbers(&x), &self.statistics, affine);
        (tensor(output, x.shape()), is_kept.then_some(()))
    }

    fn backward(&self, _: Back<(), 3>) -> [Option<FlexTensor>; 3] {
        unreachable!("running statistics are not used in training")
    }
}

/// What normalized numbers become.
fn affine<'a>(gamma: &'a FlexTensor, beta: &'a FlexTensor, then: Option<Activation>) -> Affine<'a> {
    Affine {
        gamma: numbers(gamma),
        beta: numbers(beta),
        then,
    }
}

/// \[items, channels, ..\] with all further axes as one.
fn planes(sizes: &[usize]) -> Planes {
    Planes {
        items: sizes[0],
        channels: sizes[1],
        area: sizes[2..].iter().product(),
    }
}

fn is_empty<const D: usize>(x: &Tensor<D>) -> bool {
    x.shape().num_elements() == 0
}

/// Layer norm, if it is supported here.
pub fn layer<const D: usize>(norm: &LayerNorm, epsilon: f64, x: &Tensor<D>) -> Option<Tensor<D>> {
    let gamma = norm.gamma.val();
    if !is_ours(x) || is_empty(x) {
        return None;
    }
    let beta = norm.beta.as_ref().map(Param::val);
    let beta = beta.unwrap_or_else(|| Tensor::zeros(gamma.dims(), &x.device()));
    let operation = Rows(RowNorm::Layer {
        epsilon: epsilon as f32,
    });
    Some(apply_3((x.clone(), gamma, beta), operation))
}

/// RMS norm, if it is supported here.
pub fn rms<const D: usize>(norm: &RmsNorm, x: &Tensor<D>) -> Option<Tensor<D>> {
    if !is_ours(x) || is_empty(x) {
        return None;
    }
    let gamma = norm.gamma.val();
    let beta = Tensor::<1>::zeros(gamma.dims(), &x.device());
    let operation = Rows(RowNorm::Rms {
        epsilon: norm.epsilon as f32,
    });
    Some(apply_3((x.clone(), gamma, beta), operation))
}

/// Group norm and an activation, if they are supported here.
pub fn group<const D: usize>(
    norm: &GroupNorm,
    x: &Tensor<D>,
    then: Option<Activation>,
) -> Option<Tensor<D>> {
    let epsilon = norm.epsilon;
    grouped(
        norm.gamma.as_ref(),
        norm.beta.as_ref(),
        norm.num_groups,
        epsilon,
        (x, then),
    )
}

/// Instance norm and an activation, if they are supported here.
pub fn instance<const D: usize>(
    norm: &InstanceNorm,
    x: &Tensor<D>,
    then: Option<Activation>,
) -> Option<Tensor<D>> {
    let epsilon = norm.epsilon;
    grouped(
        norm.gamma.as_ref(),
        norm.beta.as_ref(),
        norm.num_channels,
        epsilon,
        (x, then),
    )
}

fn grouped<const D: usize>(
    gamma: Option<&Param<Tensor<1>>>,
    beta: Option<&Param<Tensor<1>>>,
    num: usize,
    epsilon: f64,
    (x, then): (&Tensor<D>, Option<Activation>),
) -> Option<Tensor<D>> {
    if !is_ours(x) || is_empty(x) {
        return None;
    }
    let channels = x.dims()[1];
    let gamma = gamma.map(Param::val);
    let gamma = gamma.unwrap_or_else(|| Tensor::ones([channels], &x.device()));
    let beta = beta.map(Param::val);
    let beta = beta.unwrap_or_else(|| Tensor::zeros([channels], &x.device()));
    let operation = Groups {
        num,
        epsilon: epsilon as f32,
        then,
    };
    Some(apply_3((x.clone(), gamma, beta), operation))
}

/// Batch norm and an activation, if they are supported here. In training, it updates the running statistics.
pub fn batch<const D: usize>(
    norm: &BatchNorm,
    x: &Tensor<D>,
    then: Option<Activation>,
) -> Option<Tensor<D>> {
    if !is_ours(x) || is_empty(x) {
        return None;
    }
    let (gamma, beta) = (norm.gamma.val(), norm.beta.val());
    let (device, epsilon) = (x.device(), norm.epsilon as f32);
    if is_training(norm, x) {
        let moments = Arc::default();
        let operation = Batch {
            epsilon,
            then,
            moments: Arc::clone(&moments),
        };
        let output = apply_3((x.clone(), gamma, beta), operation);
        let moments = moments.get().expect("the forward pass measured them");
        let of_all = |which: usize| {
            let values: Vec<f32> = moments.iter().map(|of| of[which]).collect();
            Tensor::from_data(TensorData::from(values.as_slice()), &device)
        };
        keep(norm, [of_all(0), of_all(1)], values_of_channel(x));
        return Some(output);
    }
    if device.is_autodiff() {
        // Frozen in training: no gradient flows through the statistics.
        return None;
    }
    let running = [&norm.running_mean, &norm.running_var];
    let [means, variances] =
        running.map(|of| of.value().into_data().iter::<f32>().collect::<Vec<f32>>());
    let moments = means.into_iter().zip(variances);
    let moments: Vec<[f32; 2]> = moments.map(|(mean, variance)| [mean, variance]).collect();
    let statistics = Arc::new(deviations(&moments, epsilon));
    Some(apply_3(
        (x.clone(), gamma, beta),
        Running { statistics, then },
    ))
}

impl Operation<1> for LocalResponse {
    type Kept = ();

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [true]
    }

    fn forward(&self, [x]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<()>) {
        let x = contiguous(x);
        let output = LocalResponse::forward(self, &planes(&sizes(&x)), numbers(&x));
        (tensor(output, x.shape()), is_kept.then_some(()))
    }

    fn backward(&self, mut back: Back<(), 1>) -> [Option<FlexTensor>; 1] {
        let x = back.operand(0);
        let gradient = numbers(&back.gradient);
        let found = LocalResponse::backward(self, &planes(&sizes(&x)), numbers(&x), gradient);
        [Some(tensor(found, x.shape()))]
    }
}

/// Local response normalization of \[items, channels, ..\], if it is supported here.
pub fn local_response<const D: usize>(norm: LocalResponse, x: &Tensor<D>) -> Option<Tensor<D>> {
    let is_sound = norm.size > 0 && x.shape().num_elements() > 0;
    (is_ours(x) && is_sound).then(|| apply_1(x.clone(), norm))
}
