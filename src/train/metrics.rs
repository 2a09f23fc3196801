//! What Burn's learner measures: the loss and the metrics of a task, summed up so that a sum can be saved in
//! the middle of an epoch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::tensor::TensorReadError;
use burn::train::Interrupter;
use burn::train::logger::{EvaluationProgressLogger, MetricLogger, TrainingProgressLogger};
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{
    Metric, MetricDefinition, MetricMetadata, MetricName, NumericEntry, SerializedEntry,
};
use burn::train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation,
    MetricsRendererTraining,
};
use serde::{Deserialize, Serialize};

use super::network::Output;
use super::scores::{Ranked, Scores, numbers};
use crate::event::Metrics;
use crate::spec::section::Choice;

/// Sums over a split: of what is a mean, and of what the scores of a task are made of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    means: BTreeMap<String, Mean>,
    totals: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Mean {
    /// Of the values, each times what it counts.
    total: f64,
    /// How many values there are.
    count: u64,
}

impl Sums {
    /// Adds a mean over `count` items or steps.
    pub fn add(&mut self, name: &str, value: f64, count: usize) {
        let mean = self.means.entry(name.to_owned()).or_default();
        mean.total += value * count as f64;
        mean.count += count as u64;
    }

    /// Adds what items contribute, and gives their losses.
    pub fn add_output(
        &mut self,
        scores: &Scores,
        output: &Output,
    ) -> Result<Vec<f64>, TensorReadError> {
        let losses = numbers(output.losses.clone())?;
        self.add("loss", mean(&losses), losses.len());
        let mut add = |name: &str, value: f64| {
            *self.totals.entry(name.to_owned()).or_default() += value;
        };
        scores.add(output.outputs.clone(), &output.targets, &mut add)?;
        Ok(losses)
    }

    /// Values by name. `ranked` holds the scores of the whole split, if they were kept.
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
        let of_ranks =
            of_ranks.filter_map(|metric| Some((metric.name().to_owned(), ranked?.value(*metric))));
        metrics.extend(of_ranks);
        metrics
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Something that was infinite or not a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NotFinite {
    /// What.
    pub what: &'static str,
    /// The update of the epoch, from 1, if it was in one.
    pub step: Option<usize>,
}

/// The sums of the epoch in progress, filled by Burn's metric thread.
#[derive(Debug, Default)]
pub struct EpochSums {
    /// Updates of the epoch whose losses were seen.
    pub steps: usize,
    /// The losses of those that were not taken yet.
    pub losses: Vec<f64>,
    /// Of the train split.
    pub train: Sums,
    /// Of the valid split.
    pub valid: Sums,
    /// The scores of the valid split, if a metric needs them.
    pub ranked: Ranked,
    /// What was infinite or not a number first, if something was.
    pub not_finite: Option<NotFinite>,
}

/// A handle to the sums.
#[derive(Clone, Debug, Default)]
pub struct SharedSums(Arc<Mutex<EpochSums>>);

impl SharedSums {
    /// The sums; whoever panicked while holding them ended the run anyway.
    pub fn lock(&self) -> MutexGuard<'_, EpochSums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fills the sums: a metric for Burn's learner, which it updates on the thread that `flush` waits for. It
/// stops the training when the loss is no number any more.
#[derive(Clone)]
pub struct Tap {
    sums: SharedSums,
    scores: Arc<Scores>,
    is_train: bool,
    batch_size: usize,
    interrupter: Interrupter,
}

impl Tap {
    /// The metrics of the train and of the valid split.
    pub fn pair(
        sums: &SharedSums,
        scores: &Arc<Scores>,
        batch_size: usize,
        interrupter: &Interrupter,
    ) -> [Self; 2] {
        [true, false].map(|is_train| Self {
            sums: sums.clone(),
            scores: scores.clone(),
            is_train,
            batch_size,
            interrupter: interrupter.clone(),
        })
    }
}

impl Metric for Tap {
    type Input = Output;

    fn name(&self) -> MetricName {
        Arc::new("scores".to_owned())
    }

    fn update(
        &mut self,
        output: &Output,
        _: &MetricMetadata,
    ) -> Result<SerializedEntry, TensorReadError> {
        let mut sums = self.sums.lock();
        let target = match self.is_train {
            true => &mut sums.train,
            false => &mut sums.valid,
        };
        let losses = target.add_output(&self.scores, output)?;
        let mut wrong = None;
        if self.is_train {
            // Several steps' items may come together; only the last step of an epoch may have fewer.
            for losses in losses.chunks(self.batch_size) {
                let loss = mean(losses);
                sums.steps += 1;
                sums.losses.push(loss);
                if !loss.is_finite() && wrong.is_none() {
                    wrong = Some(("train loss", Some(sums.steps)));
                }
            }
        } else if !mean(&losses).is_finite() {
            wrong = Some(("valid loss", None));
        }
        if let Some((what, step)) = wrong {
            sums.not_finite.get_or_insert(NotFinite { what, step });
            self.interrupter.stop(Some("the loss is not finite"));
        }
        if !self.is_train && self.scores.needs_ranks() {
            sums.ranked.add(output.outputs.clone(), &output.targets)?;
        }
        Ok(SerializedEntry::new(String::new(), String::new()))
    }

    fn compute(&mut self) -> Result<SerializedEntry, TensorReadError> {
        Ok(SerializedEntry::new(String::new(), String::new()))
    }

    fn clear(&mut self) {}
}

/// A renderer and logger that does nothing: without one Burn draws on the terminal and writes files of
/// its own.
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
