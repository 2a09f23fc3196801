//! Batches in an order that is a pure function of (seed, epoch): selected on the device from items that are kept there,
//! or gathered in memory by a prefetching thread. Both give bitwise equal results.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
use burn::data::dataset::DatasetError;
use burn::tensor::Device;

use super::fault::{Fault, Phase};
use runner_core::data::{InputPlan, Moment, Served, Split, epoch_order};
use runner_core::plan::{PieceSizes, RunPlan};
use runner_core::spec::train::Sampler;
use runner_network::batch::{Batch, TargetUse, piece_ends};
use runner_network::failure::WrongCount;
use runner_network::noise::{Draws, Noise};

/// Batches that are prefetched.
const STAGED: usize = 2;

/// The start of an iteration over the train split: the training loop sets it before each epoch, since Burn's loaders
/// return an iterator without knowing the epoch.
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
    /// The name of the split.
    name: &'static str,
    split: Arc<Split>,
    input: Arc<InputPlan>,
    use_of_targets: TargetUse,
    batch_size: usize,
    /// The maximum number of items that are served at a time.
    sizes: Arc<PieceSizes>,
    steps_per_epoch: usize,
    device: Device,
    /// What items are generated from, in an adversarial training.
    draws: Option<Draws>,
    /// All items of the split, if they are kept on the device.
    kept: Option<Arc<Batch>>,
    /// The position of the training; its end if not set.
    cursor: Option<Arc<Cursor>>,
    /// The seed of the order; items keep their order if not set.
    shuffled: Option<u64>,
    /// What the order is, with a seed.
    sampler: Sampler,
    /// A fault to inject, for tests, and the number of pieces gathered so far, over all iterations.
    fault: Option<(Fault, Arc<AtomicUsize>)>,
}

impl Loader {
    /// Serves items in their own order, in the batches and pieces of a plan.
    pub fn in_order(
        name: &'static str,
        split: Arc<Split>,
        plan: &RunPlan,
        device: &Device,
    ) -> Self {
        Self {
            name,
            split: Arc::new(Arc::unwrap_or_clone(split).in_precision(plan.precision)),
            input: Arc::new(plan.data.input.clone()),
            use_of_targets: TargetUse::of(plan),
            batch_size: plan.train.batch_size,
            sizes: Arc::new(PieceSizes::new(plan, &[])),
            steps_per_epoch: plan.steps_per_epoch,
            device: device.clone(),
            draws: Draws::of(plan),
            kept: None,
            cursor: None,
            shuffled: None,
            sampler: plan.train.sampler,
            fault: None,
        }
    }

    /// Fails after this many pieces were gathered. Items kept on the device are not gathered, so a loader with such a
    /// fault keeps none.
    pub fn failing(self, fault: Option<&Fault>) -> Self {
        let fault = fault.filter(|fault| fault.is_in_gathering(self.name));
        Self {
            fault: fault.map(|fault| (fault.clone(), Arc::default())),
            ..self
        }
    }

    /// The name of the split.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Serves as many items at a time as these sizes say for the training's step.
    pub fn in_pieces(self, sizes: Arc<PieceSizes>) -> Self {
        Self { sizes, ..self }
    }

    /// Serves the items of the cursor's epoch.
    pub fn following(self, cursor: Arc<Cursor>) -> Self {
        Self {
            cursor: Some(cursor),
            ..self
        }
    }

    /// Serves only the first items. Kept items stay.
    pub fn first(self, num: usize) -> Self {
        let num = num.min(self.num_items());
        Self {
            split: Arc::new(self.split.slice(0..num)),
            ..self
        }
    }

    /// Its items.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// Keeps all items on the device. Only for a split that is equal in every epoch.
    pub fn keeping(self) -> Self {
        if self.fault.is_some() {
            return self;
        }
        let all: Vec<u32> = (0..self.num_items() as u32).collect();
        let kept = self.batch(self.split.serve(&all, None));
        Self {
            kept: Some(Arc::new(kept)),
            ..self
        }
    }

    /// Serves items as the run's sampler orders them by `seed` and the cursor's epoch.
    pub fn shuffled(self, seed: u64, cursor: Arc<Cursor>) -> Self {
        Self {
            shuffled: Some(seed),
            ..self.following(cursor)
        }
    }

    /// Starts gathering the pieces of an order from its position `first` on. The thread ends with the iteration: when
    /// the receiver is gone, or there are no more items.
    fn stage(
        &self,
        order: Vec<u32>,
        first: usize,
        ends: Vec<usize>,
        moment: Option<Moment>,
    ) -> Gathering {
        let (sender, pieces) = mpsc::sync_channel(STAGED);
        let (split, name, fault) = (self.split.clone(), self.name, self.fault.clone());
        let batch_size = self.batch_size;
        let gather = move || {
            let mut from = first;
            for end in ends {
                if let Some((fault, gathered)) = &fault {
                    let piece = gathered.fetch_add(1, Ordering::Relaxed) + 1;
                    let phase = Phase::gathering(name, piece);
                    Fault::reach(Some(fault), phase);
                    if fault.is_short(phase) {
                        return;
                    }
                }
                let places = std::mem::replace(&mut from, end)..end;
                let piece = match moment {
                    Some(moment) => split.serve_epoch(&order, places, batch_size, moment),
                    None => split.serve(&order[places], None),
                };
                if sender.send(piece).is_err() {
                    return;
                }
            }
        };
        Gathering {
            pieces,
            thread: Some(thread::spawn(gather)),
        }
    }

    /// What the items at some positions are generated from, in an epoch of a shuffled split.
    fn noise(&self, moment: Option<Moment>, places: Range<usize>) -> Option<Noise> {
        let draws = self.draws?;
        Some(match moment {
            Some(moment) => draws.of_epoch(moment.epoch as usize, places, &self.device),
            None => draws.of_split(places, &self.device),
        })
    }

    /// Puts items on the device.
    fn batch(&self, items: Served) -> Batch {
        Batch::new(items, &self.input, self.use_of_targets, &self.device)
    }
}

impl DataLoader<Batch> for Loader {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<Batch> + 'a> {
        let num = self.num_items();
        let load = |of: fn(&Cursor) -> &AtomicUsize| {
            let cursor = self.cursor.as_deref();
            cursor.map_or(0, |cursor| of(cursor).load(Ordering::Relaxed))
        };
        let epoch = load(|cursor| &cursor.epoch);
        let done = epoch.saturating_sub(1) * self.steps_per_epoch;
        let (order, first_step, moment) = match self.shuffled {
            None => ((0..num as u32).collect(), 0, None),
            Some(seed) => {
                let moment = Moment::new(self.sampler, seed, epoch as u64);
                let order = epoch_order(self.sampler, &self.split, seed, moment.epoch);
                (order, load(|cursor| &cursor.first_step), Some(moment))
            }
        };
        let first = (first_step * self.batch_size).min(num);
        let size = |batch: usize| {
            self.sizes.at(match (self.shuffled, epoch) {
                (Some(_), _) => done + first_step + batch,
                (None, 0) => usize::MAX,
                // Measurements after an epoch belong to its last update.
                (None, _) => done + self.steps_per_epoch.saturating_sub(1),
            })
        };
        let ends = piece_ends(first..num, self.batch_size, size);
        let source = match &self.kept {
            Some(kept) => Source::Kept(kept.clone(), order),
            None => Source::Staged(self.stage(order, first, ends.clone(), moment)),
        };
        Box::new(Batches {
            loader: self,
            source,
            ends: ends.into_iter(),
            moment,
            served: first,
        })
    }

    fn num_items(&self) -> usize {
        self.split.num_items()
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<Batch>> {
        let moved = Self {
            device: device.clone(),
            kept: None,
            ..self.clone()
        };
        Arc::new(match &self.kept {
            Some(kept) if self.device == *device => Self {
                kept: Some(kept.clone()),
                ..moved
            },
            Some(_) => moved.keeping(),
            None => moved,
        })
    }

    fn slice(&self, start: usize, end: usize) -> Arc<dyn DataLoader<Batch>> {
        Arc::new(Self {
            split: Arc::new(self.split.slice(start..end)),
            // Those of the whole split are of no use for a part.
            kept: None,
            ..self.clone()
        })
    }
}

/// The source of an iteration's items.
enum Source {
    /// The device, in this order.
    Kept(Arc<Batch>, Vec<u32>),
    /// A thread that gathers them ahead of the training, one piece after the other, so that their order does not depend
    /// on timing.
    Staged(Gathering),
}

/// The thread that gathers pieces.
struct Gathering {
    pieces: mpsc::Receiver<Served>,
    thread: Option<JoinHandle<()>>,
}

impl Gathering {
    /// The next piece, which must exist; or the number of items if it differs from the plan.
    ///
    /// # Panics With the panic that ended the thread: the end of the thread is never the end of the split.
    fn next(&mut self, num_items: usize) -> Result<Served, usize> {
        match self.pieces.recv() {
            Ok(piece) if piece.num_items == num_items => Ok(piece),
            Ok(piece) => Err(piece.num_items),
            Err(mpsc::RecvError) => {
                if let Some(Err(payload)) = self.thread.take().map(JoinHandle::join) {
                    std::panic::resume_unwind(payload);
                }
                Err(0)
            }
        }
    }
}

struct Batches<'a> {
    loader: &'a Loader,
    source: Source,
    ends: std::vec::IntoIter<usize>,
    /// That of an epoch, if the order is one.
    moment: Option<Moment>,
    served: usize,
}

impl Iterator for Batches<'_> {
    type Item = Result<Batch, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let end = self.ends.next()?;
        let batch = match &mut self.source {
            Source::Kept(kept, order) => kept.pick(&order[self.served..end]),
            Source::Staged(gathering) => match gathering.next(end - self.served) {
                Ok(piece) => self.loader.batch(piece),
                Err(num) => {
                    let wrong = WrongCount {
                        split: self.loader.name,
                        delivered: self.served + num,
                        planned: self.loader.num_items(),
                    };
                    return Some(Err(DatasetError::new(wrong)));
                }
            },
        };
        let noise = self.loader.noise(self.moment, self.served..end);
        self.served = end;
        Some(Ok(batch.with_noise(noise)))
    }
}

impl DataLoaderIterator<Batch> for Batches<'_> {
    fn progress(&self) -> Progress {
        Progress::new(self.served, self.loader.num_items(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_core::data::{TargetValues, Values};

    fn piece(num_items: usize) -> Served {
        Served {
            values: Values::Floats(vec![0.0; num_items]),
            targets: TargetValues::Classes(vec![0; num_items]),
            more_targets: Vec::new(),
            mixed: None,
            weights: None,
            num_items,
        }
    }

    #[test]
    fn a_piece_of_another_size_is_none() {
        let (sender, pieces) = mpsc::sync_channel(4);
        for num_items in [4, 3, 5] {
            sender.send(piece(num_items)).unwrap();
        }
        let mut gathering = Gathering {
            pieces,
            thread: Some(thread::spawn(|| {})),
        };
        let mut num = || gathering.next(4).map(|piece| piece.num_items);
        assert_eq!([num(), num(), num()], [Ok(4), Err(3), Err(5)]);
        drop(sender);
        assert_eq!(gathering.next(4).map(|piece| piece.num_items), Err(0));
    }

    #[test]
    #[should_panic(expected = "the reason")]
    fn the_panic_of_the_thread_is_that_of_who_waits() {
        let (_, pieces) = mpsc::sync_channel(1);
        let thread = thread::spawn(|| panic!("the reason"));
        let mut gathering = Gathering {
            pieces,
            thread: Some(thread),
        };
        let _ = gathering.next(4);
    }
}
