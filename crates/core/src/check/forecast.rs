//! The peak memory of a run, predicted from first principles, without a device.
//!
//! The only place that computes memory before it is measured. The refusal of runs that cannot fit uses the certain part
//! ([`Forecast::least`]), everything else the whole. Measurements on the machine correct it (`plan::calibration`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::group_of;
use super::network::{Layer, Network};
use crate::data::DataPlan;
use crate::spec::backend::{Backend, DeviceName, Kernels, Precision};
use crate::spec::loss::{LossFunction, LossSpec};
use crate::spec::memory::OnExceed;
use crate::spec::optimizer::OptimizerSpec;
use crate::spec::strategy::StrategySpec;
use crate::spec::train::{Recomputed, TrainSpec};

/// Host memory of the program before it has data or a network, in bytes: pages of the binary, threads, and what the
/// allocator keeps. Measured on Linux with the `flex` backend.
const PROCESS_BYTES: u64 = 2 << 20;

/// Remedies for a run that does not fit, in the order in which to try them.
pub const FORECAST_REMEDY: &str = "raise the limit; halve `train.batch_size`, or keep the same updates with a smaller `train.micro_batch_size`; set `train.gradient_checkpointing`; use half precision; or choose a smaller model";

/// Batches that are prefetched, if there are as many: two that wait, and one being gathered.
const BATCHES_AHEAD: u64 = 3;

/// Everything that determines how much memory a run needs.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// The device.
    pub device: DeviceName,
    /// The precision.
    pub precision: Precision,
    /// Which kernels compute the layers.
    pub kernels: Kernels,
    /// The network.
    pub network: &'a Network,
    /// How.
    pub optimizer: &'a OptimizerSpec,
    /// The batches.
    pub train: &'a TrainSpec,
    /// What is kept besides the weights.
    pub strategy: &'a StrategySpec,
    /// The loss, if it is not the default of the task.
    pub loss: Option<&'a LossSpec>,
    /// The network of the teacher, if there is one.
    pub teacher: Option<&'a Network>,
    /// On what.
    pub data: &'a DataPlan,
}

/// Predicted bytes at the peak of a run: of its process if it computes on the host, otherwise of the device's pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forecast {
    /// The program itself, on the host.
    pub process: u64,
    /// The items, if they are on the host and not in a mapped file.
    pub data: u64,
    /// The items that are kept on the device for the whole training, as tensors; none if they do not fit.
    #[serde(default)]
    pub kept: u64,
    /// The weights.
    pub parameters: u64,
    /// Their gradients; twice with micro-batches, whose gradients are accumulated.
    pub gradients: u64,
    /// The optimizer state of each weight.
    pub optimizer: u64,
    /// The moving average of the weights, and the copies of the strategy.
    pub average: u64,
    /// The teacher: its weights, and its outputs for a batch.
    #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
    pub teacher: u64,
    /// What the forward pass keeps for the backward pass.
    pub activations: u64,
    /// The items of a batch and, on the host, of prefetched ones.
    pub batch: u64,
    /// The largest temporary memory of the backward pass and the kernels, or what saving needs beyond that.
    pub workspace: u64,
}

impl Demand<'_> {
    /// How many more passes than one through the network an update keeps values of, at most: the discriminator of an
    /// adversarial training scores items of the data and generated ones, and for a penalty of gradients two points near
    /// each of those between them, after the gradients there. Each is counted as one of both networks.
    fn more_passes(&self) -> u64 {
        let has_penalty = self
            .loss
            .is_some_and(|loss| matches!(loss.function, LossFunction::WganGp { .. }));
        match self.strategy.adversarial() {
            None => 0,
            Some(_) if has_penalty => 3,
            Some(_) => 1,
        }
    }
}

impl Forecast {
    /// Everything except the items that are kept on the device, which depends on the remaining memory.
    pub fn of(demand: &Demand<'_>) -> Self {
        let Demand {
            device,
            precision,
            kernels,
            network,
            optimizer,
            train,
            strategy,
            loss: _,
            teacher,
            data,
        } = demand;
        let float = precision.num_bytes();
        let on_host = device.backend.is_host();
        let batch = train.micro_batch_size as u64;
        let is_in_pieces = train.micro_batch_size < train.batch_size;
        let weights = network.num_parameters.saturating_mul(float);
        let has_own = kernels.are_own(device.backend, *precision);
        let [saved, largest_held] = if has_own {
            network.held_bytes(float)
        } else {
            [0; 2]
        };
        let trained_in = trained_parameters(network, optimizer);
        let trained = trained_in.iter().copied().fold(0, u64::saturating_add);
        let trained = trained.saturating_mul(float);
        // Copies share the weights under adapters.
        let copied = if network.has_adapters() {
            trained
        } else {
            weights
        };
        let computed = network.num_computed(batch);
        let item = data.input.shape.iter().product::<usize>() as u64;
        let item = item.saturating_mul(match data.input.vocabulary {
            None => float,
            Some(_) => 4,
        });
        let of_batch = |bytes: u64| bytes.saturating_mul(batch);
        let ahead = (data.num_train as u64).div_ceil(batch.max(1));
        let ahead = ahead.saturating_sub(1).min(BATCHES_AHEAD);
        let is_flex = device.backend == Backend::Flex;
        let kept =
            network.kept_bytes_per_item(float, train.gradient_checkpointing, has_own, &trained_in);
        let of_weights = network.computed_weights().saturating_mul(float);
        let activations = kept.saturating_mul(computed).saturating_add(of_weights);
        let workspace = network
            .moment_per_item(is_flex, has_own)
            .saturating_mul(float)
            .saturating_mul(computed);
        let workspace = workspace.saturating_add(activations.saturating_mul(demand.more_passes()));
        let of_teacher = teacher.map(|teacher| {
            let num = teacher.num_computed(batch);
            let outputs = teacher.layers.last().map_or(0, |layer| {
                let sizes = layer.shape.iter().map(|size| *size as u64);
                sizes.fold(num, u64::saturating_mul)
            });
            let numbers = teacher.num_parameters.saturating_add(outputs);
            // It is computed before the network is: only what exceeds the memory of the network counts.
            let moment = teacher.moment_per_item(is_flex, has_own);
            let moment = moment.saturating_mul(float).saturating_mul(num);
            let beyond = moment.saturating_sub(activations.saturating_add(workspace));
            (numbers.saturating_mul(float), beyond)
        });
        let (of_teacher, beyond) = of_teacher.unwrap_or_default();
        // A measurement computes the nodes around its batch, which may be all.
        let whole = network.over_all_edges().map_or(0, |network| {
            let moment = network.moment_per_item(is_flex, has_own);
            let num = network.num_computed(batch);
            let graph = data.input.graph_bytes(float).unwrap_or(0);
            moment
                .saturating_mul(float)
                .saturating_mul(num)
                .saturating_add(graph)
        });
        let beyond = beyond.max(whole.saturating_sub(activations.saturating_add(workspace)));
        let parameters = weights.saturating_sub(saved);
        let optimizer = trained.saturating_mul(optimizer.method.num_states());
        let average = copied.saturating_mul(train.ema.is_some() as u64 + strategy.num_copies());
        let gradients = trained.saturating_mul(1 + is_in_pieces as u64);
        // Burn copies what it saves, when the gradients and what the forward pass kept are gone.
        let saved_bytes = if on_host {
            parameters.saturating_add(optimizer).saturating_add(average)
        } else {
            0
        };
        let saving = saved_bytes.saturating_sub(gradients.saturating_add(activations));
        Self {
            process: if on_host { PROCESS_BYTES } else { 0 },
            data: if on_host { data.held_bytes() } else { 0 },
            kept: 0,
            parameters,
            gradients,
            optimizer,
            average,
            teacher: of_teacher,
            activations,
            batch: data
                .input
                .graph_bytes_in(batch, float)
                .unwrap_or(of_batch(item))
                .saturating_mul(1 + on_host as u64 * ahead),
            workspace: workspace
                .saturating_add(beyond)
                .saturating_add(largest_held)
                .max(saving),
        }
    }

    /// The certain minimum of a run after all remedies in `on_exceed` were applied; none if it may continue on a device
    /// with other memory.
    pub fn least_after(demand: &Demand<'_>, on_exceed: &[OnExceed]) -> Option<u64> {
        if on_exceed.contains(&OnExceed::NextDevice) {
            return None;
        }
        let mut train = demand.train.clone();
        if on_exceed.contains(&OnExceed::Accumulate) {
            train.micro_batch_size = 1;
        }
        if on_exceed.contains(&OnExceed::Checkpoint) && train.gradient_checkpointing.is_nothing() {
            train.gradient_checkpointing = Recomputed::Operations;
        }
        let demand = Demand {
            train: &train,
            ..*demand
        };
        Some(Self::of(&demand).least())
    }

    /// Everything.
    pub fn total(&self) -> u64 {
        self.without_kept().saturating_add(self.kept)
    }

    /// Everything except the items that are kept on the device when there is room for them.
    pub fn without_kept(&self) -> u64 {
        self.least()
            .saturating_add(self.process)
            .saturating_add(self.workspace)
    }

    /// The certain minimum of a run: without the program itself, which depends on the system, without temporary memory
    /// of kernels, and without items that need not be kept.
    pub fn least(&self) -> u64 {
        let parts = [
            self.data,
            self.parameters,
            self.gradients,
            self.optimizer,
            self.average,
            self.teacher,
            self.activations,
            self.batch,
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// The weights with everything kept for each of them.
    pub fn states(&self) -> u64 {
        let parts = [
            self.parameters,
            self.gradients,
            self.optimizer,
            self.average,
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// The parts with their names, for tables.
    pub fn parts(&self) -> Vec<(&'static str, u64)> {
        let teacher = (self.teacher > 0).then_some(("teacher", self.teacher));
        let before = [
            ("process", self.process),
            ("data", self.data),
            ("kept items", self.kept),
            ("parameters", self.parameters),
            ("gradients", self.gradients),
            ("optimizer", self.optimizer),
            ("average", self.average),
        ];
        let after = [
            ("activations", self.activations),
            ("batch", self.batch),
            ("workspace", self.workspace),
        ];
        before.into_iter().chain(teacher).chain(after).collect()
    }
}

/// How many numbers of each layer are trained: frozen layers and groups have no gradients.
pub fn trained_parameters(network: &Network, optimizer: &OptimizerSpec) -> Vec<u64> {
    let layers = network.layers.iter();
    if optimizer.groups.iter().all(|group| !group.freeze) && !network.has_adapters() {
        let trained = layers.map(|layer| {
            if layer.freeze {
                0
            } else {
                layer.num_parameters
            }
        });
        return trained.collect();
    }
    let is_frozen = |path: &str| group_of(&optimizer.groups, path).is_some_and(|g| g.freeze);
    let mut trained: BTreeMap<&str, u64> = BTreeMap::new();
    for (layer, path, count) in network.named_parameters() {
        if !layer.freezes(&path) && !is_frozen(&path) {
            let sum = trained.entry(&layer.name).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    let of = |layer: &Layer| trained.get(layer.name.as_str()).copied().unwrap_or(0);
    layers.map(of).collect()
}
