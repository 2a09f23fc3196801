//! The measurements in Burn's learner: the loss and the metrics of a task, accumulated so that a sum can be saved in
//! the middle of an epoch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::tensor::{ExecutionError, TensorReadError};
use burn::train::logger::{EvaluationProgressLogger, MetricLogger, TrainingProgressLogger};
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{
    Adaptor, Metric, MetricDefinition, MetricMetadata, MetricName, NumericEntry, SerializedEntry,
};
use burn::train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation,
    MetricsRendererTraining,
};
use burn::train::{Interrupter, ItemLazy};
use serde::{Deserialize, Serialize};

use runner_core::event::Metrics;
use runner_core::plan::RunPlan;
use runner_core::spec::section::Choice;
use runner_network::scores::{Measured, Ranked, Read, Scores, read};

/// The mean in which each item counts equally.
const LOSS: &str = "loss";

/// Sums over a split: of means, and of the inputs of a task's scores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    means: BTreeMap<String, Mean>,
    totals: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Mean {
    /// Of the values, each times its count.
    total: f64,
    /// The number of values.
    count: u64,
}

impl Sums {
    /// Adds a mean over `count` items or steps.
    pub fn add(&mut self, name: &str, value: f64, count: usize) {
        let mean = self.means.entry(name.to_owned()).or_default();
        mean.total += value * count as f64;
        mean.count += count as u64;
    }

    /// Adds the contribution of a batch.
    pub fn add_batch(&mut self, batch: &Read) {
        self.add(LOSS, mean(&batch.losses), batch.losses.len());
        batch.add(&mut |name: &str, value: f64| {
            *self.totals.entry(name.to_owned()).or_default() += value;
        });
    }

    /// The number of items in the added batches.
    pub fn num_items(&self) -> usize {
        self.means.get(LOSS).map_or(0, |mean| mean.count as usize)
    }

    /// Values by name. `ranked` contains the scores of the whole split, if they were kept.
    pub fn metrics(&self, scores: &Scores, ranked: Option<&Ranked>) -> Metrics {
        let means = self.means.iter();
        let mut metrics: Metrics = means
            .map(|(name, mean)| (name.clone(), mean.total / mean.count as f64))
            .collect();
        let values = scores.values(&|name| self.totals.get(name).copied());
        metrics.extend(
            values
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value)),
        );
        let of_ranks = scores.metrics.iter().filter(|metric| metric.needs_scores());
        let of_ranks = of_ranks.filter_map(|metric| {
            Some((
                metric.name().to_owned(),
                ranked?.value(*metric, &scores.settings),
            ))
        });
        metrics.extend(of_ranks);
        metrics
    }
}

/// The measurements of steps or batches, in order, on the device: passed on many at a time.
#[derive(Clone, Debug, Default)]
pub struct Outputs(pub Vec<Measured>);

impl ItemLazy for Outputs {
    fn sync(self) -> Result<Self, ExecutionError> {
        // Values to be read are computed first, so that nothing waits for an idle queue.
        self.0.last().map_or(Ok(()), Measured::flush)?;
        Ok(self)
    }
}

impl Adaptor<Outputs> for Outputs {
    fn adapt(&self) -> Outputs {
        self.clone()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// An infinity or NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NotFinite {
    /// What.
    pub what: &'static str,
    /// The update of the epoch, from 1, if there was one.
    pub step: Option<usize>,
}

/// The sums of the epoch in progress, filled by Burn's metric thread.
#[derive(Debug, Default)]
pub struct EpochSums {
    /// Updates of the epoch whose losses were read.
    pub steps: usize,
    /// The losses that were not taken yet.
    pub losses: Vec<f64>,
    /// Of the train split.
    pub train: Sums,
    /// Of the valid split.
    pub valid: Sums,
    /// The scores of the valid split, if a metric needs them.
    pub ranked: Ranked,
    /// The first infinity or NaN, if any.
    pub not_finite: Option<NotFinite>,
}

/// A handle to the sums.
#[derive(Clone, Debug, Default)]
pub struct SharedSums(Arc<Mutex<EpochSums>>);

impl SharedSums {
    /// The sums; a thread that panicked while holding them ended the run anyway.
    pub fn lock(&self) -> MutexGuard<'_, EpochSums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fills the sums: a metric for Burn's learner, which updates it on the thread that `flush` waits for. It stops the
/// training if the loss is NaN.
#[derive(Clone)]
pub struct Tap {
    sums: SharedSums,
    is_train: bool,
    /// The norm that gradients are clipped to.
    max_norm: Option<f64>,
    interrupter: Interrupter,
}

impl Tap {
    /// The metrics of the train and of the valid split.
    pub fn pair(sums: &SharedSums, plan: &RunPlan, interrupter: &Interrupter) -> [Self; 2] {
        let clip = plan.optimizer.clip.as_ref();
        [true, false].map(|is_train| Self {
            sums: sums.clone(),
            is_train,
            max_norm: clip.and_then(|clip| clip.global_norm),
            interrupter: interrupter.clone(),
        })
    }

    fn wrong(&self, sums: &mut EpochSums, what: &'static str, step: Option<usize>) {
        sums.not_finite.get_or_insert(NotFinite { what, step });
        self.interrupter.stop(Some("a number is not finite"));
    }

    /// Adds the pieces of a step.
    fn add_step(&self, sums: &mut EpochSums, pieces: &[Read]) {
        for piece in pieces {
            sums.train.add_batch(piece);
        }
        let losses: Vec<f64> = pieces
            .iter()
            .flat_map(|piece| &piece.losses)
            .copied()
            .collect();
        let loss = mean(&losses);
        sums.steps += 1;
        sums.losses.push(loss);
        let step = Some(sums.steps);
        if !loss.is_finite() {
            self.wrong(sums, "train loss", step);
        }
        for (name, norm) in pieces.iter().flat_map(|piece| &piece.norms) {
            if !norm.is_finite() {
                self.wrong(sums, "norm of the gradients", step);
                break;
            }
            sums.train.add(name, *norm, 1);
            if let (Some(max_norm), "gradient_norm") = (self.max_norm, name.as_str()) {
                let is_clipped = *norm > max_norm;
                sums.train
                    .add("clipped_fraction", is_clipped as u8 as f64, 1);
            }
        }
    }

    fn add_valid(&self, sums: &mut EpochSums, batch: Read) -> Result<(), TensorReadError> {
        sums.valid.add_batch(&batch);
        if !mean(&batch.losses).is_finite() {
            self.wrong(sums, "valid loss", None);
        }
        match batch.ranked {
            Some((outputs, targets)) => sums.ranked.add(outputs, &targets),
            None => Ok(()),
        }
    }
}

impl Metric for Tap {
    type Input = Outputs;

    fn name(&self) -> MetricName {
        Arc::new("scores".to_owned())
    }

    fn update(
        &mut self,
        outputs: &Outputs,
        _: &MetricMetadata,
    ) -> Result<SerializedEntry, TensorReadError> {
        let read = read(outputs.0.clone())?;
        let mut sums = self.sums.lock();
        if self.is_train {
            for step in read.chunk_by(|piece, _| piece.goes_on) {
                self.add_step(&mut sums, step);
            }
        } else {
            for batch in read {
                self.add_valid(&mut sums, batch)?;
            }
        }
        Ok(SerializedEntry::new(String::new(), String::new()))
    }

    fn compute(&mut self) -> Result<SerializedEntry, TensorReadError> {
        Ok(SerializedEntry::new(String::new(), String::new()))
    }

    fn clear(&mut self) {}
}

/// A renderer and logger that does nothing: by default Burn draws on the terminal and writes its own files.
pub struct Nothing;

impl MetricsRendererTraining for Nothing {
    fn update_train(&mut self, _: MetricState) {}
    fn update_valid(&mut self, _: MetricState) {}
}

impl MetricsRenderer for Nothing {
    fn manual_close(&mut self) {}
    fn register_metric(&mut self, _: MetricDefinition) {}
}

impl MetricsRendererEvaluation for Nothing {
    fn update_test(&mut self, _: EvaluationName, _: MetricState) {}
}

impl TrainingProgressLogger for Nothing {
    fn start(&mut self, _: usize, _: usize, _: Option<usize>, _: Option<&str>) {}
    fn update_epoch(&mut self, _: usize) {}
    fn start_split(&mut self, _: &str, _: usize) {}
    fn update_split(&mut self, _: usize) {}
    fn end_split(&mut self) {}
    fn end(&mut self) {}
    fn log_event_training(&mut self, _: String) {}
}

impl EvaluationProgressLogger for Nothing {
    fn start_global_progress(&mut self, _: usize) {}
    fn start_test(&mut self, _: &str, _: usize) {}
    fn update_test_progress(&mut self, _: usize) {}
    fn end_test(&mut self) {}
    fn end_global_progress(&mut self) {}
    fn log_event_evaluation(&mut self, _: String) {}
}

impl MetricLogger for Nothing {
    fn log(&mut self, _: MetricsUpdate, _: usize, _: &Split) {}

    fn read_numeric(&mut self, _: &str, _: usize, _: &Split) -> Result<Vec<NumericEntry>, String> {
        Ok(Vec::new())
    }

    fn log_metric_definition(&mut self, _: MetricDefinition) {}

    fn log_epoch_summary(&mut self, _: EpochSummary) {}
}
