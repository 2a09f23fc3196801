//! Burn's metrics of each batch, summed up so that a sum can be saved in the middle of an epoch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::train::Interrupter;
use burn::train::logger::{EvaluationProgressLogger, MetricLogger, TrainingProgressLogger};
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{MetricDefinition, MetricId, NumericEntry};
use burn::train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation,
    MetricsRendererTraining,
};
use serde::{Deserialize, Serialize};

use crate::event::Metrics;

/// Sums of one split's batches by metric name, items weighted equally.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums(BTreeMap<String, Sum>);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sum {
    /// Of the values, each times its items.
    total: f64,
    /// Items.
    count: u64,
}

impl Sums {
    /// Adds a mean over `count` items.
    pub fn add(&mut self, name: &str, value: f64, count: usize) {
        let sum = self.0.entry(name.to_owned()).or_default();
        sum.total += value * count as f64;
        sum.count += count as u64;
    }

    /// Means by `split/name`.
    pub fn metrics(&self, split: &str) -> Metrics {
        let named = self.0.iter();
        named
            .map(|(name, sum)| (format!("{split}/{name}"), mean(name, sum.total, sum.count)))
            .collect()
    }
}

/// The mean of a metric; Burn's percentages become fractions, freed of the noise that this adds.
pub fn mean(name: &str, total: f64, count: u64) -> f64 {
    let mean = total / count as f64;
    match name {
        "accuracy" => (mean * 1e10).round() / 1e12,
        _ => mean,
    }
}

/// The sums of the epoch in progress, filled by Burn's metric thread.
#[derive(Debug, Default)]
pub struct EpochSums {
    /// Of the train split.
    pub train: Sums,
    /// Of the valid split.
    pub valid: Sums,
    /// What was infinite or not a number, if something was.
    pub not_finite: Option<&'static str>,
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

/// Fills the sums: a renderer for Burn's learner, since Burn hands values to its renderer on the thread
/// that `flush` waits for, and to its loggers on another. It stops the training when the loss is no
/// number any more.
pub struct Tap {
    sums: SharedSums,
    interrupter: Interrupter,
    names: Vec<(MetricId, String)>,
}

impl Tap {
    /// A renderer that fills `sums`.
    pub fn new(sums: SharedSums, interrupter: Interrupter) -> Self {
        Self {
            sums,
            interrupter,
            names: Vec::new(),
        }
    }

    fn take(&self, state: &MetricState, split: &'static str) {
        let MetricState::Numeric(entry, value) = state else {
            return;
        };
        let Some((_, name)) = self
            .names
            .iter()
            .find(|(known, _)| *known == entry.metric_id)
        else {
            return;
        };
        let (value, count) = match value {
            Some(NumericEntry::Aggregated {
                aggregated_value,
                count,
            }) => (*aggregated_value, *count),
            Some(NumericEntry::Value(value)) => (*value, 1),
            // The epoch's own end value: the sums have it already.
            Some(NumericEntry::Final(_)) | None => return,
        };
        let mut sums = self.sums.lock();
        let target = match split {
            "train" => &mut sums.train,
            _ => &mut sums.valid,
        };
        target.add(name, value, count);
        if name == "loss" && !value.is_finite() && sums.not_finite.is_none() {
            sums.not_finite = Some(match split {
                "train" => "train loss",
                _ => "valid loss",
            });
            self.interrupter.stop(Some("the loss is not finite"));
        }
    }
}

impl MetricsRendererTraining for Tap {
    fn update_train(&mut self, state: MetricState) {
        self.take(&state, "train");
    }

    fn update_valid(&mut self, state: MetricState) {
        self.take(&state, "valid");
    }
}

impl MetricsRenderer for Tap {
    fn manual_close(&mut self) {}

    fn register_metric(&mut self, definition: MetricDefinition) {
        let name = definition.name.to_lowercase().replace(' ', "_");
        self.names.push((definition.metric_id, name));
    }
}

impl MetricsRendererEvaluation for Tap {
    fn update_test(&mut self, _: EvaluationName, _: MetricState) {}
}

impl TrainingProgressLogger for Tap {
    fn start(&mut self, _: usize, _: usize, _: Option<usize>, _: Option<&str>) {}
    fn update_epoch(&mut self, _: usize) {}
    fn start_split(&mut self, _: &str, _: usize) {}
    fn update_split(&mut self, _: usize) {}
    fn end_split(&mut self) {}
    fn end(&mut self) {}
    fn log_event_training(&mut self, _: String) {}
}

impl EvaluationProgressLogger for Tap {
    fn start_global_progress(&mut self, _: usize) {}
    fn start_test(&mut self, _: &str, _: usize) {}
    fn update_test_progress(&mut self, _: usize) {}
    fn end_test(&mut self) {}
    fn end_global_progress(&mut self) {}
    fn log_event_evaluation(&mut self, _: String) {}
}

/// A metric logger that keeps nothing: without one Burn writes files of its own.
pub struct NoLogger;

impl MetricLogger for NoLogger {
    fn log(&mut self, _: MetricsUpdate, _: usize, _: &Split) {}

    fn read_numeric(&mut self, _: &str, _: usize, _: &Split) -> Result<Vec<NumericEntry>, String> {
        Ok(Vec::new())
    }

    fn log_metric_definition(&mut self, _: MetricDefinition) {}

    fn log_epoch_summary(&mut self, _: EpochSummary) {}
}
