//! Batches out of contiguous memory, in an order that is a pure function of (seed, epoch).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
use burn::data::dataset::DatasetError;
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::tensor::DynTensor;
use crate::data::Split;
use crate::data::order::{Purpose, permutation};

/// Batches that are gathered ahead.
const STAGED: usize = 2;

/// The items of a step.
#[derive(Clone, Debug)]
pub struct Batch {
    /// \[batch, item shape\].
    pub inputs: DynTensor,
    /// The class of each item, \[batch\].
    pub targets: Tensor<1, Int>,
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
    batch_size: usize,
    /// The most items that are served at a time.
    piece_size: usize,
    device: Device,
    /// The seed of the order and the cursor; without them items come in their own order.
    shuffled: Option<(u64, Arc<Cursor>)>,
}

impl Loader {
    /// Serves items in their own order.
    pub fn in_order(
        split: Arc<Split>,
        item_shape: &[usize],
        batch_size: usize,
        device: &Device,
    ) -> Self {
        Self {
            split,
            item_shape: item_shape.into(),
            batch_size,
            piece_size: batch_size,
            device: device.clone(),
            shuffled: None,
        }
    }

    /// Serves each batch in pieces of at most `piece_size` items.
    pub fn in_pieces(self, piece_size: usize) -> Self {
        Self { piece_size, ..self }
    }

    /// Serves items shuffled by `seed` and the cursor's epoch.
    pub fn shuffled(self, seed: u64, cursor: Arc<Cursor>) -> Self {
        Self {
            shuffled: Some((seed, cursor)),
            ..self
        }
    }

    fn shape_of(&self, num: usize) -> Vec<usize> {
        [&[num], &*self.item_shape].concat()
    }
}

/// Gathers items into one piece of memory.
fn gather(split: &Split, indices: &[u32]) -> Split {
    let size = split.values.len() / split.labels.len();
    let mut gathered = Split {
        values: Vec::with_capacity(indices.len() * size),
        labels: Vec::with_capacity(indices.len()),
    };
    for index in indices {
        let at = *index as usize;
        gathered
            .values
            .extend_from_slice(&split.values[at * size..(at + 1) * size]);
        gathered.labels.push(split.labels[at]);
    }
    gathered
}

impl DataLoader<Batch> for Loader {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<Batch> + 'a> {
        let num = self.num_items();
        let (order, first_step) = match &self.shuffled {
            None => ((0..num as u32).collect(), 0),
            Some((seed, cursor)) => {
                let epoch = cursor.epoch.load(Ordering::Relaxed) as u64;
                let order = permutation(num, *seed, Purpose::Order, epoch);
                (order, cursor.first_step.load(Ordering::Relaxed))
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
                .map(|indices| gather(&split, indices))
                .try_for_each(|batch| sender.send(batch))
        });
        Box::new(Batches {
            loader: self,
            receiver,
            served: first,
        })
    }

    fn num_items(&self) -> usize {
        self.split.labels.len()
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<Batch>> {
        Arc::new(Self {
            device: device.clone(),
            ..self.clone()
        })
    }

    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<Batch>> {
        let size: usize = self.item_shape.iter().product();
        Arc::new(Self {
            split: Arc::new(Split {
                values: self.split.values[start * size..end * size].to_vec(),
                labels: self.split.labels[start..end].to_vec(),
            }),
            ..self.clone()
        })
    }
}

/// Batches that a thread gathers ahead of the training, one after the other, so that their order does
/// not depend on time.
struct Batches<'a> {
    loader: &'a Loader,
    receiver: mpsc::Receiver<Split>,
    served: usize,
}

impl Iterator for Batches<'_> {
    type Item = Result<Batch, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Split { values, labels } = self.receiver.recv().ok()?;
        let num = labels.len();
        self.served += num;
        let labels: Vec<i64> = labels.into_iter().map(i64::from).collect();
        let device = &self.loader.device;
        Some(Ok(Batch {
            inputs: DynTensor::from_values(values, &self.loader.shape_of(num), device),
            targets: Tensor::from_data(TensorData::new(labels, [num]), device),
        }))
    }
}

impl DataLoaderIterator<Batch> for Batches<'_> {
    fn progress(&self) -> Progress {
        Progress::new(self.served, self.loader.num_items(), None)
    }
}
