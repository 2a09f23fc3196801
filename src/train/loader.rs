//! Batches out of contiguous memory, in an order that is a pure function of (seed, epoch).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
use burn::data::dataset::DatasetError;
use burn::tensor::{Device, Tensor, TensorData};

use super::targets::Targets;
use super::tensor::DynTensor;
use crate::data::order::{Purpose, permutation};
use crate::data::{Moment, Served, Split, TargetValues, Values};
use crate::plan::RunPlan;
use crate::spec::task::TaskKind;

/// Batches that are gathered ahead.
const STAGED: usize = 2;

/// The items of a step.
#[derive(Clone, Debug)]
pub struct Batch {
    /// \[batch, item shape\].
    pub inputs: DynTensor,
    /// What is to be given for it.
    pub targets: Targets,
}

/// Where an iteration over the train split starts: the training loop sets it before each epoch, since
/// Burn's loaders are asked for an iterator without being told the epoch.
#[derive(Debug, Default)]
pub struct Cursor {
    epoch: AtomicUsize,
    first_step: AtomicUsize,
}

impl Cursor {
    /// The next iteration yields the batches of `epoch` from `first_step` on.
    pub fn set(&self, epoch: usize, first_step: usize) {
        self.epoch.store(epoch, Ordering::Relaxed);
        self.first_step.store(first_step, Ordering::Relaxed);
    }
}

/// Serves one split.
#[derive(Clone)]
pub struct Loader {
    split: Arc<Split>,
    item_shape: Arc<[usize]>,
    /// Whether the items are their own targets.
    is_autoencoding: bool,
    batch_size: usize,
    /// The most items that are served at a time.
    piece_size: usize,
    device: Device,
    /// The seed of the order and the cursor; without them items come in their own order.
    shuffled: Option<(u64, Arc<Cursor>)>,
}

impl Loader {
    /// Serves items in their own order, in the batches and pieces of a plan.
    pub fn in_order(split: Arc<Split>, plan: &RunPlan, device: &Device) -> Self {
        Self {
            split,
            item_shape: plan.data.input.shape.as_slice().into(),
            is_autoencoding: plan.task.kind == TaskKind::Autoencoding,
            batch_size: plan.train.batch_size,
            piece_size: plan.train.micro_batch_size,
            device: device.clone(),
            shuffled: None,
        }
    }

    /// Serves items shuffled by `seed` and the cursor's epoch.
    pub fn shuffled(self, seed: u64, cursor: Arc<Cursor>) -> Self {
        Self {
            shuffled: Some((seed, cursor)),
            ..self
        }
    }

    /// Puts items on the device.
    fn batch(&self, items: Served) -> Batch {
        let (num, device) = (items.num_items, &self.device);
        let shape = [&[num], &*self.item_shape].concat();
        let inputs = match items.values {
            Values::Floats(values) => DynTensor::from_values(values, &shape, device),
            Values::Tokens(tokens) => {
                DynTensor::Tokens(Tensor::from_data(TensorData::new(tokens, shape), device))
            }
        };
        let targets = match items.targets {
            _ if self.is_autoencoding => Targets::Values(inputs.clone().flatten()),
            TargetValues::Classes(classes) => {
                let shape = [num, classes.len() / num];
                Targets::Classes(Tensor::from_data(TensorData::new(classes, shape), device))
            }
            TargetValues::Floats(values) => {
                let shape = [num, values.len() / num];
                Targets::Values(Tensor::from_data(TensorData::new(values, shape), device))
            }
        };
        Batch { inputs, targets }
    }
}

impl DataLoader<Batch> for Loader {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<Batch> + 'a> {
        let num = self.num_items();
        let (order, first_step, moment) = match &self.shuffled {
            None => ((0..num as u32).collect(), 0, None),
            Some((seed, cursor)) => {
                let epoch = cursor.epoch.load(Ordering::Relaxed) as u64;
                let order = permutation(num, *seed, Purpose::Order, epoch);
                let moment = Moment { seed: *seed, epoch };
                (
                    order,
                    cursor.first_step.load(Ordering::Relaxed),
                    Some(moment),
                )
            }
        };
        let first = (first_step * self.batch_size).min(num);
        let (sender, receiver) = mpsc::sync_channel(STAGED);
        let (split, batch_size) = (self.split.clone(), self.batch_size);
        let piece_size = self.piece_size;
        // The thread ends with the iteration: when the receiver is gone, or the items are.
        std::thread::spawn(move || {
            let batches = order[first..].chunks(batch_size);
            batches
                .flat_map(|batch| batch.chunks(piece_size))
                .map(|places| split.serve(places, moment))
                .try_for_each(|batch| sender.send(batch))
        });
        Box::new(Batches {
            loader: self,
            receiver,
            served: first,
        })
    }

    fn num_items(&self) -> usize {
        self.split.num_items()
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<Batch>> {
        Arc::new(Self {
            device: device.clone(),
            ..self.clone()
        })
    }

    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<Batch>> {
        Arc::new(Self {
            split: Arc::new(self.split.slice(start..end)),
            ..self.clone()
        })
    }
}

/// Batches that a thread gathers ahead of the training, one after the other, so that their order does
/// not depend on time.
struct Batches<'a> {
    loader: &'a Loader,
    receiver: mpsc::Receiver<Served>,
    served: usize,
}

impl Iterator for Batches<'_> {
    type Item = Result<Batch, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let items = self.receiver.recv().ok()?;
        self.served += items.num_items;
        Some(Ok(self.loader.batch(items)))
    }
}

impl DataLoaderIterator<Batch> for Batches<'_> {
    fn progress(&self) -> Progress {
        Progress::new(self.served, self.loader.num_items(), None)
    }
}
