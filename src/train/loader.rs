//! Batches out of contiguous memory, in an order that is a pure function of (seed, epoch).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
use burn::data::dataset::DatasetError;
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::tensor::DynTensor;
use crate::data::Split;
use crate::data::order::{Purpose, permutation};

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
    device: Device,
    /// The seed of the order and the cursor; without them items come in their own order.
    shuffled: Option<(u64, Arc<Cursor>)>,
}

impl Loader {
    /// Serves items in their own order.
    pub fn in_order(split: Arc<Split>, item_shape: &[usize], batch_size: usize, device: &Device) -> Self {
        Self {
            split,
            item_shape: item_shape.into(),
            batch_size,
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

    fn batch(&self, indices: &[u32]) -> Batch {
        let size: usize = self.item_shape.iter().product();
        let mut values = Vec::with_capacity(indices.len() * size);
        let mut labels = Vec::with_capacity(indices.len());
        for index in indices {
            let at = *index as usize;
            values.extend_from_slice(&self.split.values[at * size..(at + 1) * size]);
            labels.push(i64::from(self.split.labels[at]));
        }
        let shape = [&[indices.len()], &*self.item_shape].concat();
        Batch {
            inputs: DynTensor::from_values(values, &shape, &self.device),
            targets: Tensor::from_data(TensorData::new(labels, [indices.len()]), &self.device),
        }
    }
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
        Box::new(Batches {
            loader: self,
            served: (first_step * self.batch_size).min(num),
            order,
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

struct Batches<'a> {
    loader: &'a Loader,
    order: Vec<u32>,
    served: usize,
}

impl Iterator for Batches<'_> {
    type Item = Result<Batch, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = (self.served + self.loader.batch_size).min(self.order.len());
        let indices = &self.order[self.served..end];
        if indices.is_empty() {
            return None;
        }
        self.served = end;
        Some(Ok(self.loader.batch(indices)))
    }
}

impl DataLoaderIterator<Batch> for Batches<'_> {
    fn progress(&self) -> Progress {
        Progress::new(self.served, self.order.len(), None)
    }
}
