//! The measurements of an epoch, accumulated so that a sum can be saved in the middle of it.

use std::collections::BTreeMap;

use burn::tensor::TensorReadError;
use serde::{Deserialize, Serialize};

use crate::scores::{Ranked, Read, Scores};
use runner_core::event::Metrics;
use runner_core::spec::section::Choice;

/// The mean in which each item counts equally.
const LOSS: &str = "loss";

/// The norm of all gradients of a step together.
pub const GRADIENT_NORM: &str = "gradient_norm";

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
        self.add_part(batch, str::to_owned);
        for (term, read) in &batch.terms {
            self.add_part(read, |name| format!("{term}/{name}"));
        }
    }

    fn add_part(&mut self, part: &Read, named: impl Fn(&str) -> String) {
        self.add(&named(LOSS), mean(&part.losses), part.losses.len());
        part.add(&mut |name: &str, value: f64| {
            *self.totals.entry(named(name)).or_default() += value;
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
        for (term, scores) in &scores.terms {
            let named = |name: &str| format!("{term}/{name}");
            let values = scores.values(&|name| self.totals.get(&named(name)).copied());
            metrics.extend(values.into_iter().map(|(name, value)| (named(name), value)));
        }
        let of_ranks = scores.metrics.iter().filter(|metric| metric.needs_scores());
        let of_ranks = of_ranks.filter_map(|metric| {
            Some((
                metric.name().to_owned(),
                ranked?.value(*metric, &scores.settings)?,
            ))
        });
        metrics.extend(of_ranks);
        metrics
    }
}

/// An infinity or NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NotFinite {
    /// What.
    pub what: &'static str,
    /// The update of the epoch, from 1, if there was one.
    pub step: Option<usize>,
}

/// The sums of the epoch in progress.
#[derive(Debug, Default)]
pub struct EpochSums {
    /// Updates of the epoch whose losses were read.
    pub steps: usize,
    /// The losses that were not taken yet.
    pub losses: Vec<f64>,
    /// The norms of the gradients of the same updates; NaN if they were not measured.
    pub norms: Vec<f64>,
    /// Of the train split.
    pub train: Sums,
    /// Of the valid split.
    pub valid: Sums,
    /// The scores of the valid split, if a metric needs them.
    pub ranked: Ranked,
    /// The first infinity or NaN, if any.
    pub not_finite: Option<NotFinite>,
}

impl EpochSums {
    /// Adds the pieces of a step, whose gradients were clipped to `max_norm`, if any.
    pub fn add_step(&mut self, pieces: &[Read], max_norm: Option<f64>) {
        for piece in pieces {
            self.train.add_batch(piece);
        }
        let losses: Vec<f64> = pieces
            .iter()
            .flat_map(|piece| &piece.losses)
            .copied()
            .collect();
        let loss = mean(&losses);
        self.steps += 1;
        self.losses.push(loss);
        let mut norms = pieces.iter().flat_map(|piece| &piece.norms);
        let norm = norms.find(|(name, _)| name.as_str() == GRADIENT_NORM);
        self.norms.push(norm.map_or(f64::NAN, |(_, norm)| *norm));
        let step = Some(self.steps);
        if !loss.is_finite() {
            self.wrong("train loss", step);
        }
        for (name, norm) in pieces.iter().flat_map(|piece| &piece.norms) {
            if !norm.is_finite() {
                self.wrong("norm of the gradients", step);
                break;
            }
            self.train.add(name, *norm, 1);
            if let (Some(max_norm), GRADIENT_NORM) = (max_norm, name.as_str()) {
                let is_clipped = *norm > max_norm;
                self.train
                    .add("clipped_fraction", is_clipped as u8 as f64, 1);
            }
        }
    }

    /// Adds a batch of the valid split.
    pub fn add_valid(&mut self, batch: Read) -> Result<(), TensorReadError> {
        self.valid.add_batch(&batch);
        if !mean(&batch.losses).is_finite() {
            self.wrong("valid loss", None);
        }
        match batch.ranked {
            Some((outputs, targets)) => self.ranked.add(outputs, &targets),
            None => Ok(()),
        }
    }

    /// The metrics of both splits and of `averaged` ones, by split and name.
    pub fn metrics(&self, scores: &Scores, averaged: Vec<(&'static str, Metrics)>) -> Metrics {
        let splits = [
            ("train", self.train.metrics(scores, None)),
            ("valid", self.valid.metrics(scores, Some(&self.ranked))),
        ];
        let mut metrics = Metrics::new();
        for (split, values) in splits.into_iter().chain(averaged) {
            let named = values.into_iter();
            metrics.extend(named.map(|(name, value)| (format!("{split}/{name}"), value)));
        }
        metrics
    }

    fn wrong(&mut self, what: &'static str, step: Option<usize>) {
        self.not_finite.get_or_insert(NotFinite { what, step });
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
