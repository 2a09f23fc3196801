//! The planned optimizer as one of Burn's.

use burn::module::ParamGroup;
use burn::optim::decay::WeightDecayConfig;
use burn::optim::grad_clipping::GradientClipping;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{
    AdaGradConfig, AdafactorConfig, AdamConfig, AdamWConfig, AdanConfig, AdjustLrFn, LambConfig,
    LionConfig, ModuleOptimizer, MuonConfig, Optimizer, RmsPropConfig, SgdConfig,
};

#[cfg(feature = "flex")]
use crate::fast::optimizer::{Fast, Settings};
use crate::paths::Parameter;
use runner_core::check::{group_of, matches};
use runner_core::plan::RunPlan;
use runner_core::spec::backend::Kernels;
use runner_core::spec::method::{AdamSpec, AdjustLearningRate, Method};
use runner_core::spec::optimizer::ClipSpec;

/// How a parameter is updated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Treatment {
    /// Whether AdamW updates it although the optimizer is Muon.
    is_left_to_adamw: bool,
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
        weight_decay: plan.optimizer.method.weight_decay(),
        factor: 1.0,
    }
}

fn treatment(plan: &RunPlan, parameter: &Parameter) -> Treatment {
    let mut treatment = default_treatment(plan);
    if let Method::Muon { adamw, .. } = &plan.optimizer.method
        && (parameter.rank != 2 || matches(&adamw.parameters, &parameter.path))
    {
        treatment.is_left_to_adamw = true;
        treatment.weight_decay = adamw.adam.weight_decay;
        treatment.factor = adamw.learning_rate / plan.optimizer.learning_rate;
    }
    if let Some(group) = group_of(&plan.optimizer.groups, &parameter.path) {
        treatment.weight_decay = group.weight_decay.unwrap_or(treatment.weight_decay);
        treatment.factor *= group.learning_rate_factor;
    }
    treatment
}

/// Burn's paths of the frozen parameters.
pub fn frozen(plan: &RunPlan, parameters: &[Parameter]) -> Vec<String> {
    let is_frozen = |parameter: &&Parameter| {
        group_of(&plan.optimizer.groups, &parameter.path).is_some_and(|group| group.freeze)
    };
    let frozen = parameters.iter().filter(is_frozen);
    frozen.map(|parameter| parameter.burn.clone()).collect()
}

/// The optimizer of a plan.
pub fn optimizer(plan: &RunPlan, parameters: &[Parameter]) -> ModuleOptimizer {
    let clip = plan.optimizer.clip.as_ref().and_then(burn_clipping);
    let method = &plan.optimizer.method;
    let base = default_treatment(plan);
    let kernels = plan.kernels;
    let mut optimizer = with_group(None, ParamGroup::all(), method, &base, &clip, kernels);
    for (treatment, paths) in treatments(plan, parameters) {
        let group = ParamGroup::from_paths(paths);
        optimizer = with_group(Some(optimizer), group, method, &treatment, &clip, kernels);
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
fn put<O: Optimizer>(
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

/// The settings of runner's kernel, if it can be used; its states are the same as Burn's.
#[cfg(feature = "flex")]
fn settings(adam: &AdamSpec, weight_decay: f32, kernels: Kernels) -> Option<Settings> {
    let is_plain = !adam.amsgrad && !adam.cautious_weight_decay;
    (kernels.is_fast() && is_plain).then_some(Settings {
        beta_1: adam.beta_1 as f32,
        beta_2: adam.beta_2 as f32,
        epsilon: adam.epsilon as f32,
        weight_decay,
    })
}

/// Adds Adam or AdamW: by runner's kernel if possible, otherwise by Burn.
#[cfg(feature = "flex")]
fn put_adam<O: Optimizer>(
    base: Option<ModuleOptimizer>,
    group: ParamGroup,
    burn: O,
    (adam, decay): (&AdamSpec, f32),
    clip: &Option<GradientClipping>,
    kernels: Kernels,
) -> ModuleOptimizer
where
    Fast<O>: Optimizer,
{
    match settings(adam, decay, kernels) {
        Some(settings) => put(base, group, Fast { settings, burn }, clip),
        None => put(base, group, burn, clip),
    }
}

/// Adds Adam or AdamW.
#[cfg(not(feature = "flex"))]
fn put_adam<O: Optimizer>(
    base: Option<ModuleOptimizer>,
    group: ParamGroup,
    burn: O,
    _: (&AdamSpec, f32),
    clip: &Option<GradientClipping>,
    _: Kernels,
) -> ModuleOptimizer {
    put(base, group, burn, clip)
}

fn with_group(
    base: Option<ModuleOptimizer>,
    group: ParamGroup,
    method: &Method,
    treatment: &Treatment,
    clip: &Option<GradientClipping>,
    kernels: Kernels,
) -> ModuleOptimizer {
    let decay = treatment.weight_decay as f32;
    let penalty = (decay > 0.0).then(|| WeightDecayConfig::new(decay));
    let adamw = |adam: &AdamSpec| {
        AdamWConfig::new()
            .with_beta_1(adam.beta_1 as f32)
            .with_beta_2(adam.beta_2 as f32)
            .with_epsilon(adam.epsilon as f32)
            .with_amsgrad(adam.amsgrad)
            .with_cautious_weight_decay(adam.cautious_weight_decay)
            .with_weight_decay(decay)
            .build()
    };
    match method {
        Method::Sgd {
            momentum,
            dampening,
            nesterov,
            ..
        } => {
            let momentum = (*momentum > 0.0).then(|| {
                MomentumConfig::new()
                    .with_momentum(*momentum)
                    .with_dampening(*dampening)
                    .with_nesterov(*nesterov)
            });
            let config = SgdConfig::new().with_momentum(momentum);
            put(base, group, config.with_weight_decay(penalty).build(), clip)
        }
        Method::Adam(adam) => {
            let config = AdamConfig::new()
                .with_beta_1(adam.beta_1 as f32)
                .with_beta_2(adam.beta_2 as f32)
                .with_epsilon(adam.epsilon as f32)
                .with_amsgrad(adam.amsgrad)
                .with_weight_decay(penalty);
            put_adam(base, group, config.build(), (adam, decay), clip, kernels)
        }
        Method::Adamw(adam) => put_adam(base, group, adamw(adam), (adam, decay), clip, kernels),
        Method::Adagrad {
            lr_decay, epsilon, ..
        } => {
            let config = AdaGradConfig::new()
                .with_lr_decay(*lr_decay)
                .with_epsilon(*epsilon as f32)
                .with_weight_decay(penalty);
            put(base, group, config.build(), clip)
        }
        Method::Rmsprop {
            alpha,
            momentum,
            epsilon,
            centered,
            ..
        } => {
            let config = RmsPropConfig::new()
                .with_alpha(*alpha as f32)
                .with_momentum(*momentum as f32)
                .with_epsilon(*epsilon as f32)
                .with_centered(*centered)
                .with_weight_decay(penalty);
            put(base, group, config.build(), clip)
        }
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
                .with_epsilon_1(*epsilon_1 as f32)
                .with_epsilon_2(*epsilon_2 as f32)
                .with_clip_threshold(*clip_threshold as f32)
                .with_decay_rate(*decay_rate)
                .with_relative_step(*relative_step)
                .with_scale_parameter(*scale_parameter)
                .with_weight_decay(decay);
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
            let config = AdanConfig::new()
                .with_beta_1(*beta_1 as f32)
                .with_beta_2(*beta_2 as f32)
                .with_beta_3(*beta_3 as f32)
                .with_epsilon(*epsilon as f32)
                .with_no_prox(*no_prox)
                .with_weight_decay(decay);
            put(base, group, config.build(), clip)
        }
        Method::Lamb {
            beta_1,
            beta_2,
            epsilon,
            use_trust_ratio,
            ..
        } => {
            let config = LambConfig::new()
                .with_beta_1(*beta_1 as f32)
                .with_beta_2(*beta_2 as f32)
                .with_epsilon(*epsilon as f32)
                .with_use_trust_ratio(*use_trust_ratio)
                .with_weight_decay(decay);
            put(base, group, config.build(), clip)
        }
        Method::Lion { beta_1, beta_2, .. } => {
            let config = LionConfig::new()
                .with_beta_1(*beta_1 as f32)
                .with_beta_2(*beta_2 as f32)
                .with_weight_decay(decay);
            put(base, group, config.build(), clip)
        }
        Method::Muon { adamw: spec, .. } if treatment.is_left_to_adamw => {
            let adam = &spec.adam;
            put_adam(base, group, adamw(adam), (adam, decay), clip, kernels)
        }
        Method::Muon {
            momentum,
            nesterov,
            ns_steps,
            epsilon,
            adjust_learning_rate,
            ..
        } => {
            let adjust = match adjust_learning_rate {
                AdjustLearningRate::Original => AdjustLrFn::Original,
                AdjustLearningRate::MatchRmsAdamw => AdjustLrFn::MatchRmsAdamW,
            };
            let momentum = MomentumConfig::new()
                .with_momentum(*momentum)
                .with_dampening(0.0)
                .with_nesterov(*nesterov);
            let config = MuonConfig::new()
                .with_momentum(momentum)
                .with_ns_steps(*ns_steps)
                .with_epsilon(*epsilon as f32)
                .with_adjust_lr_fn(adjust)
                .with_weight_decay(penalty);
            put(base, group, config.build(), clip)
        }
    }
}
