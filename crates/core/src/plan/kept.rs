//! Which splits a run keeps on its device: a function of the plan only, so that a memory forecast can include them.

use std::collections::BTreeMap;

use super::RunPlan;
use crate::data::TargetPlan;

/// The maximum number of bytes that a run keeps on its device, whatever its limit: other runs may share the device.
const MOST: u64 = 1 << 30;
/// The fraction of the otherwise free memory that items may use.
const SHARE: u64 = 4;
/// Bytes of a token or a class on a device.
const INTEGER: u64 = 4;

impl RunPlan {
    /// The splits whose encoded items are kept on the device for the whole training, with their bytes there: train and
    /// valid if they are equal in every epoch and all of them fit together. The test split is only read once, and not
    /// worth the memory.
    pub fn kept_on_device(&self) -> BTreeMap<&'static str, u64> {
        let data = &self.data;
        if data
            .input
            .graph
            .is_some_and(|graph| graph.num_graphs.is_some() || graph.drawn.is_some())
        {
            // Batches are put together on the host: from graphs of different sizes, or from the neighbors of their nodes.
            return BTreeMap::new();
        }
        let splits = [
            ("train", data.num_train, !data.differs_by_epoch()),
            ("valid", data.num_valid, true),
        ];
        let item = self.bytes_per_item();
        let float = self.precision.num_bytes();
        let graph = data.input.graph_bytes(float).unwrap_or(0);
        let same = splits.into_iter().filter(|(_, _, is_same)| *is_same);
        let kept: BTreeMap<&'static str, u64> = same
            .map(|(name, num, _)| {
                let items = (num as u64).saturating_mul(item);
                (name, graph.saturating_add(items))
            })
            .collect();
        let room = self.memory_limit_bytes.map_or(MOST, |limit| {
            (limit.saturating_sub(self.forecast.without_kept()) / SHARE).min(MOST)
        });
        let all = kept
            .values()
            .fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        if all <= room { kept } else { BTreeMap::new() }
    }

    /// Bytes of an item with its target as tensors; an item that is its own target counts once.
    fn bytes_per_item(&self) -> u64 {
        let float = self.precision.num_bytes();
        let size = |shape: &[usize]| shape.iter().product::<usize>() as u64;
        let bytes = |shape: &[usize], vocabulary: Option<usize>| {
            size(shape).saturating_mul(if vocabulary.is_some() { INTEGER } else { float })
        };
        let input = &self.data.input;
        let parts = input.parts.iter();
        let parts = parts.map(|part| bytes(&part.shape, part.vocabulary));
        let input = match (input.graph, input.parts.len()) {
            (Some(graph), _) if graph.pairs.is_some() => {
                2 * INTEGER + graph.edge_features as u64 * float
            }
            // The number of the node.
            (Some(_), _) => INTEGER,
            (None, 0) => bytes(&input.shape, input.vocabulary),
            (None, _) => parts.fold(0, u64::saturating_add),
        };
        let bytes = |target: &TargetPlan| match target {
            TargetPlan::None => 0,
            TargetPlan::Class { .. } => INTEGER,
            TargetPlan::Classes { shape, .. } => size(shape).saturating_mul(INTEGER),
            TargetPlan::Labels { num_labels } => *num_labels as u64 * float,
            TargetPlan::Values { shape } => size(shape).saturating_mul(float),
        };
        let target = match self.task.kind {
            kind if kind.is_of_items() => 0,
            _ => bytes(&self.data.target),
        };
        let target = target
            + if self.data.weight().is_some() {
                float
            } else {
                0
            };
        let more = self.data.more_targets.iter().map(bytes);
        more.fold(input.saturating_add(target), u64::saturating_add)
    }
}
