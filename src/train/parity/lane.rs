//! One of several parallel trainings: a network on a device with its own optimizer.

use burn::module::Module;
use burn::optim::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::store::ModuleRecord;
use burn::tensor::{Device, Tensor, TensorData};

use super::host::{self, HostTargets, Order};
use super::noise::Noise;
use super::wrong::WrongLayer;
use runner_core::check::network::Layer as LayerPlan;
use runner_core::plan::RunPlan;
use runner_network::batch::MixedTargets;
use runner_network::function::Combine;
use runner_network::held;
use runner_network::layer::Layer;
use runner_network::network::{Network, Wanted};
use runner_network::norms::NormLog;
use runner_network::paths::Paths;
use runner_network::targets::Targets;
use runner_network::tensor::DynTensor;
use runner_network::{optimizer, schedule};

/// How a lane computes.
pub enum Manner {
    /// As training does.
    Plain,
    /// With different rounding.
    Noisy(Box<Noise>),
    /// With a mistake in one layer, for tests.
    Wrong(WrongLayer),
}

impl Manner {
    /// The output of a layer in a step, counted from 1.
    pub fn forward(
        &mut self,
        step: usize,
        layer: &Layer,
        plan: &LayerPlan,
        inputs: Vec<DynTensor>,
    ) -> DynTensor {
        match self {
            Manner::Plain => layer.forward(plan, inputs),
            Manner::Noisy(noise) => noise.forward(layer, plan, inputs),
            Manner::Wrong(wrong) => wrong.apply(step, plan, layer.forward(plan, inputs)),
        }
    }

    /// An order of the items of a batch.
    pub fn order(&mut self, num: usize) -> Order {
        match self {
            Manner::Noisy(noise) => noise.order(num),
            _ => Order::SAME,
        }
    }
}

/// The items of a step, on the host.
pub struct HostBatch {
    /// \[batch, item shape\]: each named input, or the only one.
    pub inputs: Vec<TensorData>,
    /// Whether the inputs have names.
    pub are_named: bool,
    /// The targets.
    pub targets: HostTargets,
    /// Further targets.
    pub more_targets: Vec<HostTargets>,
    /// The other classes of mixed items and their shares.
    pub mixed: Option<(HostTargets, TensorData)>,
    /// The weights of the items.
    pub weights: Option<TensorData>,
}

/// The results of a step. Rows are in the batch's order, whatever the lane's is.
pub struct Seen {
    /// The mean loss.
    pub loss: f64,
    /// The output of each layer.
    pub outputs: Vec<TensorData>,
    /// The gradient of the loss with respect to it; none if the loss does not depend on it.
    pub output_gradients: Vec<Option<TensorData>>,
    /// The gradient of each parameter by Burn's path.
    pub parameter_gradients: Vec<(String, TensorData)>,
}

/// A training.
pub struct Lane {
    /// With autodiff.
    pub device: Device,
    /// The network before the next update.
    pub network: Network,
    /// The kind of computation.
    pub manner: Manner,
    optimizer: ModuleOptimizer,
    schedule: ModuleLrScheduler,
    norms: NormLog,
    gradients: Option<GradientsParams>,
}

impl Lane {
    /// A training from these weights.
    pub fn new(plan: &RunPlan, device: &Device, weights: &ModuleRecord, manner: Manner) -> Self {
        let device = device.clone().autodiff();
        let network = with_weights(plan, &device, weights);
        let parameters = Paths::new(plan).parameters(&network);
        Self {
            network: optimizer::freeze(plan, &parameters, network),
            optimizer: optimizer::optimizer(plan, &parameters),
            schedule: schedule::schedule(plan, &parameters, &[], &schedule::Reductions::default()),
            norms: NormLog::new(plan),
            gradients: None,
            device,
            manner,
        }
    }

    /// The forward and backward pass of a step, counted from 1.
    pub fn compute(&mut self, step: usize, batch: &HostBatch) -> Seen {
        let order = self.manner.order(batch.inputs[0].shape()[0]);
        let put = |data: &TensorData| DynTensor::from_data(order.apply(data), &self.device);
        let inputs = batch.inputs.iter().map(put).collect();
        let inputs = DynTensor::of_parts(inputs, batch.are_named);
        let targets = batch.targets.put(&order, &self.device);
        let more = batch.more_targets.iter();
        let more: Vec<Targets> = more.map(|more| more.put(&order, &self.device)).collect();
        let mixed = batch.mixed.as_ref();
        let mixed = mixed.map(|(targets, shares)| MixedTargets {
            targets: targets.put(&order, &self.device),
            shares: Tensor::from_data(order.apply(shares), &self.device),
        });
        let weights = batch.weights.as_ref();
        let weights = weights.map(|all| Tensor::from_data(order.apply(all), &self.device));
        let (mut outputs, mut probes) = (Vec::new(), Vec::new());
        let (network, manner) = (&self.network, &mut self.manner);
        network
            .graph()
            .outputs_by(inputs.clone(), |_, layer, plan, inputs| {
                let output = manner.forward(step, layer, plan, inputs);
                // A term added to an output has its gradient, and adding 0 changes no number.
                let probe = host::tracked(host::zeros(&output));
                let output = output.combine(probe.clone(), Combine::Add, Default::default());
                probes.push(probe);
                outputs.push(output.clone());
                output
            });
        let wanted = Wanted {
            targets: &targets,
            more: &more,
            mixed: mixed.as_ref(),
            weights: weights.as_ref(),
        };
        let losses = network.total_losses(&inputs, &outputs, wanted);
        let gradients = losses.clone().mean().backward();
        // The mean as in the metrics of a run.
        let losses: Vec<f64> = losses.into_data().iter::<f64>().collect();
        let undone = |data: TensorData| order.undo(data);
        let output_gradients = probes.iter();
        let output_gradients = output_gradients
            .map(|probe| host::gradient(probe, &gradients).map(undone))
            .collect();
        let gradients = GradientsParams::from_grads(gradients, &self.network);
        let seen = Seen {
            loss: losses.iter().sum::<f64>() / losses.len() as f64,
            outputs: outputs.into_iter().map(|o| undone(host::get(o))).collect(),
            output_gradients,
            parameter_gradients: host::parameter_gradients(&self.network, &gradients),
        };
        self.gradients = Some(gradients);
        seen
    }

    /// The update with the gradients of the last computed step.
    pub fn update(&mut self) {
        let Some(gradients) = self.gradients.take() else {
            return;
        };
        let gradients = self.norms.measure_and_clip(&self.network, gradients, None);
        let rate = self.schedule.step();
        let network = self.network.clone();
        self.network = self.optimizer.step(rate, network, gradients);
    }
}

/// The network of a plan on a device with autodiff, with weights from any device.
pub fn with_weights(plan: &RunPlan, device: &Device, weights: &ModuleRecord) -> Network {
    let bytes = weights.clone().into_bytes().expect("weights in memory");
    let of = (&plan.network, plan.kernels);
    let weights = held::record(bytes, of, device).expect("weights of this plan");
    Network::undrawn(plan, device).load_record(weights)
}
