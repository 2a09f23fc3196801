//! The random numbers that layers draw in training, so that they can be drawn again: devices can be seeded, but the
//! state of their generators cannot be saved.

use burn::tensor::{Device, Distribution, Tensor};

use crate::dropout;
use crate::tensor::DynTensor;
use runner_core::check::network::Layer as LayerPlan;
use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::{LayerKind, Transformer};

/// Random numbers that a layer draws at once.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    num: usize,
    distribution: Distribution,
}

impl Draw {
    /// Numbers between 0 and 1.
    #[cfg(all(test, feature = "flex"))]
    pub fn uniform(num: usize) -> Self {
        Self {
            num,
            distribution: Distribution::Default,
        }
    }

    /// Draws them again.
    pub fn again(&self, device: &Device) {
        drop(Tensor::<1>::random([self.num], self.distribution, device));
    }
}

/// Adds what a part of a layer has drawn for an output from inputs of some sizes.
pub fn of(plan: &LayerPlan, inputs: &[Vec<usize>], output: &DynTensor, to: &mut Vec<Draw>) {
    let dims = output.dims();
    let all: usize = dims.iter().product();
    let has_kernel = dropout::has_kernel(plan.kernels, output);
    let mut dropped =
        |num: usize, probability: f64| to.extend(of_dropout(num, probability, has_kernel));
    match &plan.kind {
        LayerKind::Dropout { probability } => dropped(all, *probability),
        LayerKind::ChannelDropout { probability } => {
            to.extend(of_dropout(dims[..2].iter().product(), *probability, false));
        }
        LayerKind::StochasticDepth { probability } => {
            to.extend(of_dropout(dims[0], *probability, false));
        }
        LayerKind::MultiHeadAttention {
            num_heads, dropout, ..
        } => dropped(scores(plan, inputs, *num_heads), *dropout),
        LayerKind::GroupedAttention(attention) => {
            let num = scores(plan, inputs, attention.num_heads);
            dropped(num, attention.dropout);
        }
        LayerKind::TransformerEncoder(stack) => {
            dropped(all * dims[1] / dims[2] * stack.num_heads, stack.dropout);
            fed(stack, &dims, dropped);
        }
        LayerKind::TransformerDecoder(stack) => {
            dropped(all * dims[1] / dims[2] * stack.num_heads, stack.dropout);
            dropped(all, stack.dropout);
            let memory = memory_length(plan, inputs);
            dropped(all / dims[2] * memory * stack.num_heads, stack.dropout);
            fed(stack, &dims, dropped);
        }
        LayerKind::GaussianNoise { std } => to.extend(normal(plan, all, *std)),
        LayerKind::GaussianSample => to.extend(normal(plan, all, 1.0)),
        LayerKind::Activation(Activation::Rrelu { lower, upper }) if lower != upper => {
            to.push(Draw {
                num: all,
                distribution: Distribution::Uniform(*lower, *upper),
            });
        }
        _ => {}
    }
}

/// That of a dropout of so many parts, of which a kernel draws the seed alone.
fn of_dropout(num: usize, probability: f64, has_kernel: bool) -> Option<Draw> {
    let (num, distribution) = if has_kernel {
        dropout::SEED
    } else {
        (num, Distribution::Bernoulli(1.0 - probability))
    };
    (probability > 0.0).then_some(Draw { num, distribution })
}

/// Those of the output of an attention, and of the layers after it.
fn fed(stack: &Transformer, dims: &[usize], mut dropped: impl FnMut(usize, f64)) {
    let all: usize = dims.iter().product();
    let inner = all / dims[2] * stack.feedforward_size;
    for num in [all, inner, all] {
        dropped(num, stack.dropout);
    }
}

/// Scores of an attention.
fn scores(plan: &LayerPlan, inputs: &[Vec<usize>], num_heads: usize) -> usize {
    inputs[0][..2].iter().product::<usize>() * memory_length(plan, inputs) * num_heads
}

/// Positions that are attended to.
fn memory_length(plan: &LayerPlan, inputs: &[Vec<usize>]) -> usize {
    let memory = plan.values().len().min(2) - 1;
    inputs[memory][1]
}

/// Numbers of a normal distribution, which portable arithmetic makes of pairs of uniform ones.
fn normal(plan: &LayerPlan, num: usize, std: f64) -> Option<Draw> {
    if plan.arithmetic.is_portable() {
        return Some(Draw {
            num: num.next_multiple_of(2),
            distribution: Distribution::Uniform(0.0, 1.0),
        });
    }
    (std != 0.0).then_some(Draw {
        num,
        distribution: Distribution::Normal(0.0, std),
    })
}
