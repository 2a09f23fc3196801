//! The promises of own parts, checked before a training: parameters and states as planned, no randomness besides the
//! device's, and nothing that a resumed run would lose.

use burn::tensor::{Device, Tensor, TensorData};

use super::metric::verify as verify_metric;
use super::strategy;
use super::training::{LossTargets, losses, tried};
use super::{OwnModule, parameters_of};
use crate::leaves;
use crate::tensor::DynTensor;
use runner_core::check::network::Layer;
use runner_core::data::TargetPlan;
use runner_core::plan::RunPlan;
use runner_core::spec::loss::{LossFunction, LossSpec};
use runner_core::spec::losses::TermTarget;
use runner_core::spec::method::Method;
use runner_core::spec::metric::Metric;
use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::own::{
    Own, OwnLayer, OwnLoss, OwnOptimizer, OwnStrategy, Parameter, Part, Used,
};
use runner_core::spec::strategy::StrategySpec;
use runner_core::spec::task::TaskKind;

/// Items of the batch that the promises are checked with: a batch norm needs two.
const BATCH: usize = 2;

/// Seeds of the device for the weights and for the forward pass.
const SEEDS: [u64; 2] = [1, 2];

/// Checks the parts of a plan on the device of its training, with modules of its own. The device's generator is in an
/// unknown state afterwards.
///
/// # Errors
/// The first promise that a part breaks.
///
/// # Panics
/// With the name of the part, if it panics.
pub fn verify(plan: &RunPlan, device: &Device) -> Result<(), String> {
    if let Some(missing) = plan.unusable_part().or(plan.missing_in_training()) {
        return Err(missing);
    }
    for layer in &plan.network.layers {
        if let LayerKind::Own(own) = &layer.kind {
            verify_layer(own, layer, device)?;
        }
    }
    let compared = Compared::new(plan.task.kind, &plan.data.target, plan);
    compared.verify(&plan.loss, &plan.task.metrics, device)?;
    let more_tasks = plan.more_tasks();
    for term in &plan.losses {
        let (task, target) = match term.target {
            None => continue,
            Some(TermTarget::Task) => (plan.task.kind, &plan.data.target),
            Some(TermTarget::Items) => (TaskKind::Autoencoding, &TargetPlan::None),
            Some(TermTarget::More(at)) => (more_tasks[at], &plan.data.more_targets[at]),
        };
        Compared::new(task, target, plan).verify(&term.loss, &term.metrics, device)?;
    }
    verify_optimizer(&plan.optimizer.method, device)?;
    verify_strategy(plan, device)
}

/// Outputs and targets of a few items, for the parts that compare them.
struct Compared {
    /// Classes, values or labels of an item.
    size: usize,
    is_of_classes: bool,
}

impl Compared {
    fn new(task: TaskKind, target: &TargetPlan, plan: &RunPlan) -> Self {
        let size = match target {
            TargetPlan::Class { num_classes } | TargetPlan::Classes { num_classes, .. } => {
                *num_classes
            }
            TargetPlan::None => plan.data.input.shape.iter().product(),
            other => other.size(),
        };
        let is_of_classes = task.is_of_classes();
        Self {
            size,
            is_of_classes,
        }
    }

    fn outputs(&self) -> TensorData {
        let num = BATCH * self.size;
        let values = (0..num).map(|at| (at as f32 * 0.7).sin());
        TensorData::new(values.collect::<Vec<_>>(), [BATCH, self.size])
    }

    fn targets(&self, device: &Device) -> LossTargets {
        if self.is_of_classes {
            let classes = (0..BATCH).map(|at| (at % self.size) as i64);
            let data = TensorData::new(classes.collect::<Vec<_>>(), [BATCH]);
            return LossTargets::Classes(Tensor::from_data(data, device));
        }
        let values = (0..BATCH * self.size).map(|at| (at % 2) as f32);
        let data = TensorData::new(values.collect::<Vec<_>>(), [BATCH, self.size]);
        LossTargets::Values(Tensor::from_data(data, device))
    }

    fn verify(&self, loss: &LossSpec, metrics: &[Metric], device: &Device) -> Result<(), String> {
        if let LossFunction::Own { used, .. } = &loss.function {
            self.verify_loss(used, device)?;
        }
        metrics.iter().try_for_each(|metric| match metric {
            Metric::Own(own) => {
                verify_metric(*own, &self.outputs(), &|| self.targets(device), device)
            }
            _ => Ok(()),
        })
    }

    /// Losses that are the same twice, and have a gradient.
    fn verify_loss(&self, used: &Used, device: &Device) -> Result<(), String> {
        let broken = |promise: &str| Err(OwnLoss::broken(&used.part, promise));
        let compute = || {
            device.seed(SEEDS[1]);
            let outputs = Tensor::<2>::from_data(self.outputs(), device).require_grad();
            let losses = losses(used, outputs.clone(), self.targets(device));
            let gradient = outputs.grad(&losses.clone().sum().backward());
            (losses.into_data(), gradient.map(Tensor::into_data))
        };
        let (first, second) = (compute(), compute());
        if first.1.is_none() {
            return broken(
                "its losses have no gradient with respect to the outputs, so that nothing would be learned; compute them from `outputs` with operations of tensors",
            );
        }
        if first != second {
            return broken(
                "two computations of the same losses differ, so that no run could be repeated; use nothing but its settings, outputs and targets",
            );
        }
        Ok(())
    }
}

/// Updates that follow from the state, which is what the forecast was told.
fn verify_optimizer(method: &Method, device: &Device) -> Result<(), String> {
    let Method::Own {
        used, num_states, ..
    } = method
    else {
        return Ok(());
    };
    let broken = |promise: String| Err(OwnOptimizer::broken(&used.part, promise));
    let tried = tried(used, &device.clone().inner())?;
    let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    if bits(&tried.straight) != bits(&tried.resumed) {
        return broken(
            "an update from a checkpoint differs from an update without one, so that no run could be resumed; keep everything that changes in `State`".into(),
        );
    }
    if tried.num_states != *num_states {
        return broken(format!(
            "its state has {} tensors of a parameter's size, and `num_states` says {num_states}",
            tried.num_states
        ));
    }
    Ok(())
}

/// Changes of weights that follow from what is kept.
fn verify_strategy(plan: &RunPlan, device: &Device) -> Result<(), String> {
    let StrategySpec::Own { used, .. } = &plan.strategy else {
        return Ok(());
    };
    let device = &device.clone().inner();
    let [straight, resumed] = strategy::tried(used, device)?;
    let bits = |all: &[Vec<f64>]| {
        let numbers = all.iter().flatten();
        numbers.map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    if bits(&straight) == bits(&resumed) {
        let num_steps = plan.num_steps();
        if strategy::moves(used, (num_steps, plan.steps_per_epoch), device)? {
            return Ok(());
        }
        let promise = format!(
            "each of the {num_steps} updates of the training would leave a parameter as it was at first, so that nothing would be learned; return `weights`, or something that follows them"
        );
        return Err(OwnStrategy::broken(&used.part, promise));
    }
    let promise = "the same two updates give other weights when they are repeated from a checkpoint, so that no run could be resumed; keep everything that changes in `kept`, and draw random numbers from the device";
    Err(OwnStrategy::broken(&used.part, promise))
}

/// Whether the output of an own layer depends on random numbers of the device, whose generator is in an unknown state
/// afterwards.
///
/// # Panics
/// With the name of the part, if it panics.
pub fn is_random(layer: &Layer, device: &Device) -> bool {
    let LayerKind::Own(own) = &layer.kind else {
        return false;
    };
    device.seed(SEEDS[0]);
    let module = OwnModule::new(own, layer, device);
    let [first, second] = SEEDS.map(|seed| output(&module, layer, seed, device));
    first != second
}

/// The output for a small batch after seeding the device.
fn output(module: &OwnModule, layer: &Layer, seed: u64, device: &Device) -> TensorData {
    device.seed(seed);
    let inputs = layer.inputs.iter().map(|input| {
        let dims = [&[BATCH], input.shape.dims.as_slice()].concat();
        let num = dims.iter().product::<usize>();
        let values = (0..num).map(|at| (at as f32 * 0.7).sin()).collect();
        DynTensor::from_values(values, &dims, device)
    });
    let output = module.forward(layer, inputs.collect());
    output.flatten().into_data()
}

fn verify_layer(own: &Own, layer: &Layer, device: &Device) -> Result<(), String> {
    let broken = |promise: String| {
        let promise = format!("{promise} (layer `{}`)", layer.name);
        Err(OwnLayer::broken(&own.layer, promise))
    };
    let draw = || {
        device.seed(SEEDS[0]);
        let module = OwnModule::new(own, layer, device);
        let parameters = parameters_of(&module);
        let mut values = Vec::new();
        leaves::each(&module, |leaf| values.push(leaf.values()));
        (module, parameters, values)
    };
    let (module, found, weights) = draw();
    if found != own.parameters {
        let names = |parameters: &[Parameter]| {
            let named = parameters
                .iter()
                .map(|parameter| format!("`{}` ({})", parameter.path, parameter.count));
            named.collect::<Vec<_>>().join(", ")
        };
        return broken(format!(
            "its parameters are {}, and {} were planned",
            names(&found),
            names(&own.parameters)
        ));
    }
    if draw().2 != weights {
        return broken(
            "two sets of weights drawn from one seed differ, so that no run could be repeated; draw them with Burn's initializers, or from the device".into(),
        );
    }
    let output = || output(&module, layer, SEEDS[1], device);
    if output() != output() {
        return broken(
            "two passes over the same items with the same seed differ, so that no run could be repeated; draw random numbers from the device, such as with `Tensor::random`, and keep no state outside of the module".into(),
        );
    }
    Ok(())
}
