//! The recorded metrics of two runs: of all epochs and of the evaluations after training.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Comparison, Side, ulp};
use crate::event::Metrics;
use crate::spec::metric::Metric;

/// The first recorded numbers that differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstNumbers {
    /// Updates before the measurement.
    pub step: usize,
    /// Where: `epoch 3`, or `the evaluation of test`.
    pub place: String,
    /// The names of the metrics that differ there.
    pub names: Vec<String>,
    /// The original value of the first one; none if it was not recorded.
    pub then: Option<f64>,
    /// The new value.
    pub now: Option<f64>,
}

impl Comparison {
    /// Compares everything recorded. Of the first `steps` updates, only the epochs that both have finished by then.
    pub(super) fn compare_numbers(&mut self, then: &Side, now: &Side, steps: Option<usize>) {
        let empty = Metrics::new();
        let num = match steps {
            Some(_) => then.epochs.len().min(now.epochs.len()),
            None => then.epochs.len().max(now.epochs.len()),
        };
        for at in 0..num {
            let (before, after) = (then.epochs.get(at), now.epochs.get(at));
            let Some(epoch) = before.or(after) else { break };
            let metrics = [before, after].map(|epoch| epoch.map_or(&empty, |epoch| &epoch.metrics));
            self.compare_metrics(format!("epoch {}", epoch.epoch), epoch.step, metrics);
        }
        if steps.is_some() {
            return;
        }
        let splits: BTreeSet<&String> = [then, now]
            .iter()
            .flat_map(|side| side.evaluations.keys())
            .collect();
        let last = then.epochs.last().map_or(0, |epoch| epoch.step);
        for split in splits {
            let metrics = [then, now].map(|side| side.evaluations.get(split).unwrap_or(&empty));
            self.compare_metrics(format!("the evaluation of {split}"), last, metrics);
        }
    }

    fn compare_metrics(&mut self, place: String, step: usize, [then, now]: [&Metrics; 2]) {
        let names: BTreeSet<&String> = then.keys().chain(now.keys()).collect();
        let mut differing = Vec::new();
        for name in names {
            self.num_numbers += 1;
            let (a, b) = (then.get(name).copied(), now.get(name).copied());
            if a.map(f64::to_bits) == b.map(f64::to_bits) {
                continue;
            }
            let ulps = match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() / ulp(scale(name, a, b)),
                _ => f64::INFINITY,
            };
            self.number_distance
                .widen(ulps, || format!("`{name}` of {place}"));
            differing.push((name, a, b));
        }
        if let Some((_, then, now)) = differing.first().copied()
            && self.first_numbers.is_none()
        {
            self.first_numbers = Some(FirstNumbers {
                step,
                place,
                names: differing.iter().map(|(name, ..)| (*name).clone()).collect(),
                then,
                now,
            });
        }
    }
}

/// The scale of a difference: the numbers themselves, or 1 for a metric such as a fraction, whose errors are those of
/// numbers near 1 even if it is near 0.
fn scale(name: &str, a: f64, b: f64) -> f64 {
    let metric = name.rsplit('/').next().and_then(Metric::named);
    let is_share = metric.is_some_and(|metric| metric.bounds().1.is_finite());
    let least = if is_share { 1.0 } else { 0.0 };
    a.abs().max(b.abs()).max(least)
}
