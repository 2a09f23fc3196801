//! Burn's metrics of each batch, summed up so that a sum can be saved in the middle of an epoch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::train::Interrupter;
use burn::train::logger::MetricLogger;
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{MetricAttributes, MetricDefinition, MetricId, NumericEntry};
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
    /// The newest value.
    last: f64,
}

impl Sums {
    fn add(&mut self, name: &str, value: f64, count: usize) {
        let sum = self.0.entry(name.to_owned()).or_default();
        sum.total += value * count as f64;
        sum.count += count as u64;
        sum.last = value;
    }

    /// Means by `split/name`; of the learning rate the newest value, without a split.
    pub fn metrics(&self, split: &str) -> Metrics {
        let named = self.0.iter().map(|(name, sum)| match name.as_str() {
            "learning_rate" => (name.clone(), sum.last),
            _ => (format!("{split}/{name}"), mean(name, sum.total, sum.count)),
        });
        named.collect()
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
    /// The split in which the loss was infinite or not a number, if it was.
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

/// Burn's metric logger over the sums. It stops the training when the loss is no number any more.
pub struct SumLogger {
    sums: SharedSums,
    interrupter: Interrupter,
    names: Vec<(MetricId, String)>,
}

impl SumLogger {
    /// A logger that fills `sums`.
    pub fn new(sums: SharedSums, interrupter: Interrupter) -> Self {
        Self {
            sums,
            interrupter,
            names: Vec::new(),
        }
    }
}

impl MetricLogger for SumLogger {
    fn log(&mut self, update: MetricsUpdate, _epoch: usize, split: &Split) {
        let mut sums = self.sums.lock();
        for entry in &update.entries_numeric {
            let id = &entry.entry.metric_id;
            let Some((_, name)) = self.names.iter().find(|(known, _)| known == id) else {
                continue;
            };
            let (value, count) = match &entry.numeric_entry {
                Some(NumericEntry::Aggregated {
                    aggregated_value,
                    count,
                }) => (*aggregated_value, *count),
                Some(NumericEntry::Value(value)) => (*value, 1),
                // The epoch's own end value: the sums have it already.
                Some(NumericEntry::Final(_)) | None => continue,
            };
            let (target, split_name) = match split {
                Split::Train => (&mut sums.train, "train"),
                Split::Valid | Split::Test(_) => (&mut sums.valid, "valid"),
            };
            target.add(name, value, count);
            if name == "loss" && !value.is_finite() && sums.not_finite.is_none() {
                sums.not_finite = Some(split_name);
                self.interrupter.stop(Some("the loss is not finite"));
            }
        }
    }

    fn read_numeric(&mut self, _: &str, _: usize, _: &Split) -> Result<Vec<NumericEntry>, String> {
        Ok(Vec::new())
    }

    fn log_metric_definition(&mut self, definition: MetricDefinition) {
        debug_assert!(matches!(definition.attributes, MetricAttributes::Numeric(_) | MetricAttributes::None));
        let name = definition.name.to_lowercase().replace(' ', "_");
        self.names.push((definition.metric_id, name));
    }

    fn log_epoch_summary(&mut self, _: EpochSummary) {}
}
