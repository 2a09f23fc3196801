//! The planned optimizer, with the treatment of each parameter.

use burn::module::{Module, ParamGroup};
use burn::optim::grad_clipping::GradientClipping;
use burn::optim::{AdafactorConfig, ModuleOptimizer, Optimizer};

use crate::network::Network;
use crate::own::put_own;
use crate::paths::Parameter;
use crate::updates::Momentum;
use crate::updates::adagrad::AdaGrad;
use crate::updates::adam::{Adam, Decay};
use crate::updates::adan::Adan;
use crate::updates::lamb::Lamb;
use crate::updates::lion::Lion;
use crate::updates::muon::Muon;
use crate::updates::rms::RmsProp;
use crate::updates::sgd::Sgd;
use runner_core::check::{group_of, matches};
use runner_core::plan::RunPlan;
use runner_core::spec::backend::{Arithmetic, Kernels};
use runner_core::spec::method::{AdamSpec, Method};
use runner_core::spec::optimizer::ClipSpec;

/// How a parameter is updated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Treatment {
    /// Whether AdamW updates it although the optimizer is Muon.
    is_left_to_adamw: bool,
    /// Whether it is \[outputs, inputs\], which only concerns Muon.
    outputs_first: bool,
    weight_decay: f64,
    /// The factor of the schedule's learning rate.
    pub factor: f64,
}

/// The settings that differ from the default, each with Burn's paths of its parameters.
pub(super) fn treatments(
    plan: &RunPlan,
    parameters: &[Parameter],
) -> Vec<(Treatment, Vec<String>)> {
    let mut all: Vec<(Treatment, Vec<String>)> = Vec::new();
    for parameter in parameters {
        let treatment = treatment(plan, parameter);
        let path = parameter.burn.clone();
        match all.iter_mut().find(|(known, _)| *known == treatment) {
            Some((_, paths)) => paths.push(path),
            None => all.push((treatment, vec![path])),
        }
    }
    all.retain(|(treatment, _)| *treatment != default_treatment(plan));
    all
}

/// How parameters without settings are updated.
fn default_treatment(plan: &RunPlan) -> Treatment {
    Treatment {
        is_left_to_adamw: false,
        outputs_first: false,
        weight_decay: plan.optimizer.method.weight_decay(),
        factor: 1.0,
    }
}

fn treatment(plan: &RunPlan, parameter: &Parameter) -> Treatment {
    let mut treatment = default_treatment(plan);
    if let Method::Muon { adamw, .. } = &plan.optimizer.method {
        let is_left_to_adamw = parameter.rank != 2 || matches(&adamw.parameters, &parameter.path);
        treatment.outputs_first = !is_left_to_adamw && !parameter.inputs_first;
        if is_left_to_adamw {
            treatment.is_left_to_adamw = true;
            treatment.weight_decay = adamw.adam.weight_decay;
            treatment.factor = adamw.learning_rate / plan.optimizer.learning_rate;
        }
    }
    if let Some(group) = group_of(&plan.optimizer.groups, &parameter.path) {
        treatment.weight_decay = group.weight_decay.unwrap_or(treatment.weight_decay);
        treatment.factor *= group.learning_rate_factor;
    }
    treatment
}

/// The network with the parameters of frozen groups left out of training.
pub fn freeze(plan: &RunPlan, parameters: &[Parameter], network: Network) -> Network {
    let is_frozen = |parameter: &&Parameter| {
        group_of(&plan.optimizer.groups, &parameter.path).is_some_and(|group| group.freeze)
    };
    let frozen = parameters.iter().filter(is_frozen);
    let frozen: Vec<String> = frozen.map(|parameter| parameter.burn.clone()).collect();
    network.set_require_grad_group(ParamGroup::from_paths(frozen), false)
}

/// The optimizer of a plan.
pub fn optimizer(plan: &RunPlan, parameters: &[Parameter]) -> ModuleOptimizer {
    let clip = plan.optimizer.clip.as_ref().and_then(burn_clipping);
    let method = &plan.optimizer.method;
    let base = default_treatment(plan);
    let by = (plan.kernels, plan.arithmetic);
    let mut optimizer = with_group(None, ParamGroup::all(), method, &base, &clip, by);
    for (treatment, paths) in treatments(plan, parameters) {
        let group = ParamGroup::from_paths(paths);
        optimizer = with_group(Some(optimizer), group, method, &treatment, &clip, by);
    }
    optimizer
}

/// The clipping that Burn does itself; a global norm needs all gradients at once.
fn burn_clipping(clip: &ClipSpec) -> Option<GradientClipping> {
    let value = clip
        .value
        .map(|limit| GradientClipping::Value(limit as f32));
    value.or(clip.norm.map(|limit| GradientClipping::Norm(limit as f32)))
}

/// Adds the optimizer of a group; the first one is the default.
pub(crate) fn put<O: Optimizer>(
    base: Option<ModuleOptimizer>,
    group: ParamGroup,
    optimizer: O,
    clip: &Option<GradientClipping>,
) -> ModuleOptimizer {
    match (base, clip) {
        (Some(base), clip) => base.with_group(group, optimizer, clip.clone()),
        (None, None) => ModuleOptimizer::from(optimizer),
        (None, Some(clip)) => ModuleOptimizer::from(optimizer).with_grad_clipping(clip.clone()),
    }
}

/// Adam, or AdamW if its decay is decoupled.
fn adam(spec: &AdamSpec, decay: Decay, kernels: Kernels) -> Adam {
    Adam {
        beta_1: spec.beta_1,
        beta_2: spec.beta_2,
        epsilon: spec.epsilon,
        amsgrad: spec.amsgrad,
        decay,
        is_fast: kernels.is_fast(),
    }
}

fn adamw(spec: &AdamSpec, decay: f64, kernels: Kernels) -> Adam {
    let decay = if spec.cautious_weight_decay {
        Decay::Cautious(decay)
    } else {
        Decay::Decoupled(decay)
    };
    adam(spec, decay, kernels)
}

fn with_group(
    base: Option<ModuleOptimizer>,
    group: ParamGroup,
    method: &Method,
    treatment: &Treatment,
    clip: &Option<GradientClipping>,
    (kernels, arithmetic): (Kernels, Arithmetic),
) -> ModuleOptimizer {
    let weight_decay = treatment.weight_decay;
    let is_fast = kernels.is_fast();
    match *method {
        Method::Sgd {
            momentum,
            dampening,
            nesterov,
            ..
        } => {
            let momentum = (momentum > 0.0).then_some(Momentum {
                momentum,
                dampening,
                nesterov,
            });
            let sgd = Sgd {
                momentum,
                weight_decay,
                is_fast,
            };
            put(base, group, sgd, clip)
        }
        Method::Adam(ref spec) => {
            let adam = adam(spec, Decay::Penalty(weight_decay), kernels);
            put(base, group, adam, clip)
        }
        Method::Adamw(ref spec) => put(base, group, adamw(spec, weight_decay, kernels), clip),
        Method::Adagrad {
            lr_decay, epsilon, ..
        } => {
            let adagrad = AdaGrad {
                lr_decay,
                epsilon,
                weight_decay,
                is_fast,
            };
            put(base, group, adagrad, clip)
        }
        Method::Rmsprop {
            alpha,
            momentum,
            epsilon,
            centered,
            ..
        } => {
            let rmsprop = RmsProp {
                alpha,
                momentum,
                epsilon,
                centered,
                weight_decay,
                is_fast,
            };
            put(base, group, rmsprop, clip)
        }
        // Burn's computes in 32 bits, whatever the precision of the weights.
        Method::Adafactor {
            epsilon_1,
            epsilon_2,
            clip_threshold,
            decay_rate,
            relative_step,
            scale_parameter,
            ..
        } => {
            let config = AdafactorConfig::new()
                .with_epsilon_1(epsilon_1 as f32)
                .with_epsilon_2(epsilon_2 as f32)
                .with_clip_threshold(clip_threshold as f32)
                .with_decay_rate(decay_rate)
                .with_relative_step(relative_step)
                .with_scale_parameter(scale_parameter)
                .with_weight_decay(weight_decay as f32);
            put(base, group, config.build(), clip)
        }
        Method::Adan {
            beta_1,
            beta_2,
            beta_3,
            epsilon,
            no_prox,
            ..
        } => {
            let adan = Adan {
                beta_1,
                beta_2,
                beta_3,
                epsilon,
                no_prox,
                weight_decay,
                is_fast,
            };
            put(base, group, adan, clip)
        }
        Method::Lamb {
            beta_1,
            beta_2,
            epsilon,
            use_trust_ratio,
            ..
        } => {
            let lamb = Lamb {
                beta_1,
                beta_2,
                epsilon,
                use_trust_ratio,
                weight_decay,
                arithmetic,
                is_fast,
            };
            put(base, group, lamb, clip)
        }
        Method::Lion { beta_1, beta_2, .. } => {
            let lion = Lion {
                beta_1,
                beta_2,
                weight_decay,
                is_fast,
            };
            put(base, group, lion, clip)
        }
        Method::Own { ref used, .. } => put_own(base, group, (used, weight_decay), clip),
        Method::Muon {
            adamw: ref spec, ..
        } if treatment.is_left_to_adamw => {
            put(base, group, adamw(&spec.adam, weight_decay, kernels), clip)
        }
        Method::Muon {
            momentum,
            nesterov,
            ns_steps,
            epsilon,
            adjust_learning_rate: adjust,
            ..
        } => {
            let momentum = Momentum {
                momentum,
                dampening: 0.0,
                nesterov,
            };
            let muon = Muon {
                momentum,
                ns_steps,
                epsilon,
                adjust,
                inputs_first: !treatment.outputs_first,
                weight_decay,
                arithmetic,
            };
            put(base, group, muon, clip)
        }
    }
}
