//! What a run will hold at its peak, from first principles: no device is asked.
//!
//! The one place that memory is counted before it is measured. The refusal of runs that cannot fit takes
//! what is certain ([`Forecast::least`]), everything else the whole. What a machine measured corrects it
//! (`plan::calibration`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::group_of;
use super::network::{Layer, Network};
use crate::data::DataPlan;
use crate::spec::backend::{Backend, ConvKernels, DeviceName, Precision};
use crate::spec::memory::OnExceed;
use crate::spec::optimizer::OptimizerSpec;
use crate::spec::train::TrainSpec;

/// What the program holds on the host before it has data or a network, in bytes: the binary's own
/// pages, threads, and what the allocator keeps. Measured on Linux with the `flex` backend.
const PROCESS_BYTES: u64 = 2 << 20;

/// What can be done about a run that does not fit, in the order in which it is worth trying.
pub const FORECAST_REMEDY: &str = "raise the limit; or halve `train.batch_size`, or with the same updates set `train.micro_batch_size`; set `train.gradient_checkpointing`; compute in half precision; or choose a smaller model";

/// Batches that are gathered ahead of the one that is computed, where there are as many: two that wait, and
/// one in the making.
const BATCHES_AHEAD: u64 = 3;

/// What decides how much memory a run takes.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// Where it is computed.
    pub device: DeviceName,
    /// In what precision.
    pub precision: Precision,
    /// Which kernels convolutions are computed by.
    pub conv: ConvKernels,
    /// What is trained.
    pub network: &'a Network,
    /// How.
    pub optimizer: &'a OptimizerSpec,
    /// In what batches.
    pub train: &'a TrainSpec,
    /// On what.
    pub data: &'a DataPlan,
}

/// Bytes that a run will hold at its peak: its process where it computes on the host, else the device's
/// pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forecast {
    /// The program itself, on the host.
    pub process: u64,
    /// The items, where they are on the host and in no mapped file.
    pub data: u64,
    /// The items that are kept on the device for the whole training, as tensors: none where they do not fit.
    #[serde(default)]
    pub kept: u64,
    /// The weights.
    pub parameters: u64,
    /// Their gradients; twice with micro-batches, whose gradients are added up.
    pub gradients: u64,
    /// What the optimizer keeps of each weight.
    pub optimizer: u64,
    /// The moving average of the weights.
    pub average: u64,
    /// What the forward pass leaves for the backward pass.
    pub activations: u64,
    /// The items of a batch, and on the host of those that are gathered ahead.
    pub batch: u64,
    /// What the backward pass and the kernels hold for a moment, where that is most.
    pub workspace: u64,
}

impl Forecast {
    /// Counts all but the items that are kept, which depends on what is left for them.
    pub fn of(demand: &Demand<'_>) -> Self {
        let Demand {
            device,
            precision,
            conv,
            network,
            optimizer,
            train,
            data,
        } = demand;
        let float = precision.num_bytes();
        let on_host = device.backend.is_host();
        let batch = train.micro_batch_size as u64;
        let is_in_pieces = train.micro_batch_size < train.batch_size;
        let weights = network.num_parameters.saturating_mul(float);
        let trained_in = trained_parameters(network, optimizer);
        let trained = trained_in.iter().copied().fold(0, u64::saturating_add);
        let trained = trained.saturating_mul(float);
        let item = data.input.shape.iter().product::<usize>() as u64;
        let item = item.saturating_mul(match data.input.vocabulary {
            None => float,
            Some(_) => 4,
        });
        let of_batch = |bytes: u64| bytes.saturating_mul(batch);
        let ahead = (data.num_train as u64).div_ceil(batch.max(1));
        let ahead = ahead.saturating_sub(1).min(BATCHES_AHEAD);
        let is_flex = device.backend == Backend::Flex;
        let has_own = conv.are_own(device.backend, *precision);
        let kept =
            network.kept_bytes_per_item(float, train.gradient_checkpointing, has_own, &trained_in);
        Self {
            process: if on_host { PROCESS_BYTES } else { 0 },
            data: if on_host { data.held_bytes() } else { 0 },
            kept: 0,
            parameters: weights,
            gradients: trained.saturating_mul(1 + is_in_pieces as u64),
            optimizer: trained.saturating_mul(optimizer.method.num_states()),
            average: if train.ema.is_some() { weights } else { 0 },
            activations: of_batch(kept),
            batch: of_batch(item).saturating_mul(1 + on_host as u64 * ahead),
            workspace: of_batch(
                network
                    .moment_per_item(is_flex, has_own)
                    .saturating_mul(float),
            ),
        }
    }

    /// What a run certainly cannot do without once all that `on_exceed` names was changed about it; none where it
    /// may go on on a device that has other memory.
    pub fn least_after(demand: &Demand<'_>, on_exceed: &[OnExceed]) -> Option<u64> {
        if on_exceed.contains(&OnExceed::NextDevice) {
            return None;
        }
        let mut train = demand.train.clone();
        if on_exceed.contains(&OnExceed::Accumulate) {
            train.micro_batch_size = 1;
        }
        train.gradient_checkpointing |= on_exceed.contains(&OnExceed::Checkpoint);
        let demand = Demand {
            train: &train,
            ..*demand
        };
        Some(Self::of(&demand).least())
    }

    /// All of it.
    pub fn total(&self) -> u64 {
        self.without_kept().saturating_add(self.kept)
    }

    /// All but the items that are kept where there is room for them.
    pub fn without_kept(&self) -> u64 {
        self.least()
            .saturating_add(self.process)
            .saturating_add(self.workspace)
    }

    /// What a run certainly cannot do without: neither what the program itself takes, which depends on
    /// the system, nor what kernels hold for a moment, nor items that need not be kept.
    pub fn least(&self) -> u64 {
        let parts = [
            self.data,
            self.parameters,
            self.gradients,
            self.optimizer,
            self.average,
            self.activations,
            self.batch,
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// The weights with all that is kept of each.
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
    pub fn parts(&self) -> [(&'static str, u64); 10] {
        [
            ("process", self.process),
            ("data", self.data),
            ("kept items", self.kept),
            ("parameters", self.parameters),
            ("gradients", self.gradients),
            ("optimizer", self.optimizer),
            ("average", self.average),
            ("activations", self.activations),
            ("batch", self.batch),
            ("workspace", self.workspace),
        ]
    }
}

/// How many numbers of each layer training changes: those of frozen layers and groups have no gradients.
fn trained_parameters(network: &Network, optimizer: &OptimizerSpec) -> Vec<u64> {
    let layers = network.layers.iter();
    if optimizer.groups.iter().all(|group| !group.freeze) {
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
        if !layer.freeze && !is_frozen(&path) {
            let sum = trained.entry(&layer.name).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    let of = |layer: &Layer| trained.get(layer.name.as_str()).copied().unwrap_or(0);
    layers.map(of).collect()
}
