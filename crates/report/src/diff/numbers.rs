//! The numbers of two runs, step by step and epoch by epoch.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use runner_core::record::{RunRecord, Trace};
use runner_core::reproduce::{Comparison, Side as Traced};

/// What the metrics of two runs have in common, and where they diverge.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Numbers {
    /// The epochs that each has finished.
    pub epochs: [usize; 2],
    /// The first epoch with a metric that differs, and those metrics.
    pub first_epoch: Option<(usize, Vec<String>)>,
    /// The steps whose losses each has recorded.
    pub steps: [usize; 2],
    /// The first step whose loss differs, with both losses.
    pub first_loss: Option<(usize, f64, f64)>,
    /// The first step after which parameters differ, and which ones.
    pub first_parameters: Option<(usize, Vec<String>)>,
    /// Each metric, at the end and at its largest difference.
    pub metrics: Vec<MetricDifference>,
    /// What could not be compared of the steps.
    #[serde(skip)]
    pub not_compared: Vec<String>,
}

/// A metric of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricDifference {
    /// Its name; of an evaluation after the training `test/…`.
    pub name: String,
    /// Its last value in each.
    pub last: [Option<f64>; 2],
    /// The second's last value minus the first's.
    pub difference: Option<f64>,
    /// The largest absolute difference between equal epochs, and the epoch; `None` if there are none.
    pub largest: Option<(usize, f64)>,
}

impl Numbers {
    /// Compares two records, and two traces if both could be read.
    pub fn of(a: &RunRecord, b: &RunRecord, traces: Option<(&Trace, &Trace)>) -> Self {
        let mut numbers = Self {
            epochs: [a.epochs.len(), b.epochs.len()],
            ..Self::default()
        };
        numbers.compare_epochs(a, b);
        if let Some((a, b)) = traces {
            numbers.compare_steps(a, b);
        }
        numbers
    }

    fn compare_steps(&mut self, a: &Trace, b: &Trace) {
        self.steps = [a.losses.len(), b.losses.len()];
        let common = self.steps[0].min(self.steps[1]);
        if common == 0 {
            if self.steps != [0, 0] || self.epochs != [0, 0] {
                let which = match self.steps {
                    [0, 0] => "neither run has",
                    [0, _] => "the first run lacks",
                    _ => "the second run lacks",
                };
                self.not_compared
                    .push(format!("{which} the losses of its steps"));
            }
            return;
        }
        let traced = |trace: &Trace| Traced {
            trace: trace.clone(),
            ..Traced::default()
        };
        let comparison = Comparison::of(&traced(a), &traced(b), Some(common), None);
        self.first_loss = comparison.first_loss;
        self.first_parameters = comparison.first_parameters;
        self.not_compared.extend(comparison.not_compared);
    }

    fn compare_epochs(&mut self, a: &RunRecord, b: &RunRecord) {
        let of_b: BTreeMap<usize, _> = b.epochs.iter().map(|e| (e.epoch, &e.metrics)).collect();
        let mut largest: BTreeMap<&String, (usize, f64)> = BTreeMap::new();
        for epoch in &a.epochs {
            let Some(metrics) = of_b.get(&epoch.epoch) else {
                continue;
            };
            let names: BTreeSet<_> = epoch.metrics.keys().chain(metrics.keys()).collect();
            let mut differing = Vec::new();
            for name in names {
                let (a, b) = (epoch.metrics.get(name), metrics.get(name));
                if a.map(|v| v.to_bits()) != b.map(|v| v.to_bits()) {
                    differing.push(name.clone());
                }
                if let Some((a, b)) = a.zip(b) {
                    let size = (b - a).abs();
                    let most = largest.entry(name).or_insert((epoch.epoch, size));
                    if size > most.1 || size.is_nan() && !most.1.is_nan() {
                        *most = (epoch.epoch, size);
                    }
                }
            }
            if !differing.is_empty() && self.first_epoch.is_none() {
                self.first_epoch = Some((epoch.epoch, differing));
            }
        }
        let (last_a, last_b) = (last(a), last(b));
        let names: BTreeSet<_> = last_a.keys().chain(last_b.keys()).cloned().collect();
        self.metrics = names
            .into_iter()
            .map(|name| {
                let last = [last_a.get(&name).copied(), last_b.get(&name).copied()];
                MetricDifference {
                    last,
                    difference: last[0].zip(last[1]).map(|(a, b)| b - a),
                    largest: largest.get(&name).copied(),
                    name,
                }
            })
            .collect();
    }

    /// Whether everything is equal.
    pub fn is_equal(&self) -> bool {
        let bits = |value: Option<f64>| value.map(f64::to_bits);
        self.epochs[0] == self.epochs[1]
            && self.steps[0] == self.steps[1]
            && self.first_epoch.is_none()
            && self.first_loss.is_none()
            && self.first_parameters.is_none()
            && self
                .metrics
                .iter()
                .all(|metric| bits(metric.last[0]) == bits(metric.last[1]))
    }
}

/// The metrics of the last epoch, and of the evaluations.
fn last(record: &RunRecord) -> BTreeMap<String, f64> {
    let last = record.epochs.last();
    let mut metrics = last.map(|epoch| epoch.metrics.clone()).unwrap_or_default();
    for (split, evaluated) in &record.evaluations {
        let named = evaluated.iter();
        metrics.extend(named.map(|(name, value)| (format!("{split}/{name}"), *value)));
    }
    metrics
}
