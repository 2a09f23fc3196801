//! Norms, using the parameters of Burn's modules.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::module::Param;
use burn::nn::{BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RmsNorm};
use burn::tensor::{Shape, Tensor};
use runner_kernels::norm::{
    Planes, RowNorm, Statistics, batch_backward, batch_forward, batch_statistics, group_backward,
    group_forward, rows_backward, rows_forward,
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
}

impl Operation<3> for Groups {
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
        let (planes, gamma, beta) = (planes(&sizes(&x)), numbers(&gamma), numbers(&beta));
        let (output, statistics) =
            group_forward(&planes, self.num, self.epsilon, numbers(&x), gamma, beta);
        (
            tensor(output, x.shape()),
            is_kept.then(|| Arc::new(statistics)),
        )
    }

    fn backward(&self, mut back: Back<Self::Kept, 3>) -> [Option<FlexTensor>; 3] {
        let (x, gamma) = (back.operand(0), back.operand(1));
        let found = group_backward(
            &planes(&sizes(&x)),
            self.num,
            numbers(&x),
            numbers(&gamma),
            &back.kept,
            numbers(&back.gradient),
        );
        gradients(found, x.shape(), back.wants)
    }
}

/// A norm of channels with given statistics: of the batch, in which case gradients flow through them, or running ones.
#[derive(Clone, Debug)]
struct Channels {
    /// Each channel's mean and the inverse of its deviation.
    statistics: Arc<Statistics>,
}

impl Operation<3> for Channels {
    type Kept = ();

    fn asks_for(&self, _: [bool; 3]) -> [bool; 3] {
        [true, true, false]
    }

    fn forward(&self, operands: [FlexTensor; 3], is_kept: bool) -> (FlexTensor, Option<()>) {
        let [x, gamma, beta] = operands.map(contiguous);
        let means: Vec<f32> = self.statistics.iter().map(|[mean, _]| *mean).collect();
        let inverses = self.statistics.iter().zip(numbers(&gamma));
        let scale: Vec<f32> = inverses
            .map(|([_, inverse], gamma)| inverse * gamma)
            .collect();
        let planes = planes(&sizes(&x));
        let output = batch_forward(&planes, numbers(&x), &means, &scale, numbers(&beta));
        (tensor(output, x.shape()), is_kept.then_some(()))
    }

    fn backward(&self, mut back: Back<(), 3>) -> [Option<FlexTensor>; 3] {
        let (x, gamma) = (back.operand(0), back.operand(1));
        let planes = planes(&sizes(&x));
        let gradient = numbers(&back.gradient);
        let found = batch_backward(
            &planes,
            numbers(&x),
            numbers(&gamma),
            &self.statistics,
            gradient,
        );
        gradients(found, x.shape(), back.wants)
    }
}

/// Means and variances of channels, \[2, channels\]; without gradients.
#[derive(Clone, Debug)]
struct Moments;

impl Operation<1> for Moments {
    type Kept = ();

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn forward(&self, [x]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<()>) {
        let x = contiguous(x);
        let planes = planes(&sizes(&x));
        let moments = batch_statistics(&planes, numbers(&x)).concat();
        let shape = Shape::from([2, planes.channels]);
        (tensor(moments, shape), is_kept.then_some(()))
    }

    fn backward(&self, _: Back<(), 1>) -> [Option<FlexTensor>; 1] {
        unreachable!("the input was detached")
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

/// Group norm, if it is supported here.
pub fn group<const D: usize>(norm: &GroupNorm, x: &Tensor<D>) -> Option<Tensor<D>> {
    let epsilon = norm.epsilon;
    grouped(
        norm.gamma.as_ref(),
        norm.beta.as_ref(),
        norm.num_groups,
        epsilon,
        x,
    )
}

/// Instance norm, if it is supported here.
pub fn instance<const D: usize>(norm: &InstanceNorm, x: &Tensor<D>) -> Option<Tensor<D>> {
    let epsilon = norm.epsilon;
    grouped(
        norm.gamma.as_ref(),
        norm.beta.as_ref(),
        norm.num_channels,
        epsilon,
        x,
    )
}

fn grouped<const D: usize>(
    gamma: Option<&Param<Tensor<1>>>,
    beta: Option<&Param<Tensor<1>>>,
    num: usize,
    epsilon: f64,
    x: &Tensor<D>,
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
    };
    Some(apply_3((x.clone(), gamma, beta), operation))
}

/// Batch norm, if it is supported here. In training, it updates the running statistics.
pub fn batch<const D: usize>(norm: &BatchNorm, x: &Tensor<D>) -> Option<Tensor<D>> {
    if !is_ours(x) || is_empty(x) {
        return None;
    }
    let device = x.device();
    let [mean, variance] = if is_training(norm, x) {
        let moments: Tensor<2> = apply_1(x.clone().detach(), Moments);
        let moments = [0, 1].map(|at| moments.clone().narrow(0, at, 1).squeeze_dim::<1>(0));
        keep(norm, moments.clone(), values_of_channel(x));
        moments
    } else if device.is_autodiff() {
        // Frozen in training: no gradient flows through the statistics.
        return None;
    } else {
        [norm.running_mean.value(), norm.running_var.value()]
    };
    let values = |tensor: Tensor<1>| tensor.into_data().iter::<f32>().collect::<Vec<f32>>();
    let epsilon = norm.epsilon as f32;
    let statistics = values(mean).into_iter().zip(values(variance));
    let statistics = statistics
        .map(|(mean, variance)| [mean, 1.0 / (variance + epsilon).sqrt()])
        .collect();
    let operation = Channels {
        statistics: Arc::new(statistics),
    };
    let operands = (x.clone(), norm.gamma.val(), norm.beta.val());
    Some(apply_3(operands, operation))
}
