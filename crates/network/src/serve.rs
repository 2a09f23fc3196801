//! Batches of a split without threads: from a device that keeps its items, or gathered when they are asked for.

use burn::tensor::Device;

use crate::batch::{Batch, TargetUse, piece_ends};
use crate::noise::Draws;
use runner_core::data::{InputPlan, Moment, Served, Split, epoch_order};
use runner_core::plan::RunPlan;

/// Serves the items of a split to a device.
#[derive(Debug)]
pub struct Serve {
    split: Split,
    input: InputPlan,
    use_of_targets: TargetUse,
    batch_size: usize,
    device: Device,
    /// What items are generated from, in an adversarial training.
    draws: Option<Draws>,
    /// All items, if they are kept on the device.
    kept: Option<Batch>,
}

impl Serve {
    /// Serves a split of a plan; `keep` it on the device only if it is equal in every epoch.
    pub fn new(plan: &RunPlan, split: Split, device: &Device, keep: bool) -> Self {
        let mut serve = Self {
            split: split.in_precision(plan.precision),
            input: plan.data.input.clone(),
            use_of_targets: TargetUse::of(plan),
            batch_size: plan.train.batch_size,
            device: device.clone(),
            draws: Draws::of(plan),
            kept: None,
        };
        if keep {
            serve.kept = Some(serve.batch(&serve.places()));
        }
        serve
    }

    /// Its items.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// The items at some positions, in that order.
    fn batch(&self, places: &[u32]) -> Batch {
        match &self.kept {
            Some(kept) => kept.pick(places),
            None => self.on_device(self.split.serve(places, None)),
        }
    }

    /// The device of its batches.
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn on_device(&self, items: Served) -> Batch {
        Batch::new(items, &self.input, self.use_of_targets, &self.device)
    }

    /// All items in their order, in batches and in pieces of at most `size`.
    pub fn in_order(&self, size: usize) -> impl Iterator<Item = Batch> + '_ {
        let places = self.places();
        let ends = piece_ends(0..places.len(), self.batch_size, |_| size);
        let mut from = 0;
        ends.into_iter().map(move |end| {
            let from = std::mem::replace(&mut from, end);
            let noise = self
                .draws
                .map(|draws| draws.of_split(from..end, &self.device));
            self.batch(&places[from..end]).with_noise(noise)
        })
    }

    /// The batch of all items in their order at a position; `None` after the last one.
    pub fn batch_at(&self, at: usize) -> Option<Batch> {
        let places = self.places();
        let from = at.saturating_mul(self.batch_size);
        let to = places.len().min(from.saturating_add(self.batch_size));
        let noise = self
            .draws
            .filter(|_| from < to)
            .map(|draws| draws.of_split(from..to, &self.device));
        let batch = (from < to).then(|| self.batch(&places[from..to]))?;
        Some(batch.with_noise(noise))
    }

    fn places(&self) -> Vec<u32> {
        (0..self.split.num_items() as u32).collect()
    }
}

/// The order of an epoch of training.
#[derive(Debug)]
pub struct Order {
    places: Vec<u32>,
    /// The moment at which its items are augmented.
    moment: Moment,
}

impl Order {
    /// The order of an epoch of a run, from 1, over its train split.
    pub fn of(plan: &RunPlan, train: &Split, epoch: usize) -> Self {
        let moment = Moment::new(plan.train.sampler, plan.seed, epoch as u64);
        Self {
            places: epoch_order(plan.train.sampler, train, plan.seed, moment.epoch),
            moment,
        }
    }

    /// The epoch.
    pub fn epoch(&self) -> usize {
        self.moment.epoch as usize
    }

    /// `num` items from a position on.
    pub fn batch(&self, of: &Serve, from: usize, num: usize) -> Batch {
        let range = from..from + num;
        let noise = of.draws;
        let noise = noise.map(|draws| draws.of_epoch(self.epoch(), range.clone(), &of.device));
        let batch = match &of.kept {
            Some(kept) => kept.pick(&self.places[range]),
            None => {
                let (split, size) = (&of.split, of.batch_size);
                of.on_device(split.serve_epoch(&self.places, range, size, self.moment))
            }
        };
        batch.with_noise(noise)
    }
}
