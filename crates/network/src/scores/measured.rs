//! The contribution of a batch to the metrics: computed on the device, and read back for many steps at once.

use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData, TensorReadError, Transaction};
use runner_core::data::encode::Unit;

use crate::targets::Targets;

/// The contribution of a batch, still on the device.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    parts: Vec<(Part, Numbers)>,
    /// Values that need no device: names with the amounts to add.
    known: Vec<(&'static str, f64)>,
    /// Counts of each class that need no device.
    known_counts: Vec<(&'static str, Vec<u64>)>,
    /// Scores and targets, for metrics that depend on the order of all scores of a split.
    pub ranked: Option<(Tensor<2>, Targets)>,
    /// Whether more pieces of the same step follow.
    pub goes_on: bool,
    /// The norm of the step's gradients, \[1\], where signs of divergence are looked for.
    pub watched: Option<Tensor<1>>,
    /// The terms of the loss by name.
    pub(super) terms: Vec<(String, Measured)>,
}

/// The kinds of numbers, and how they are accumulated.
#[derive(Clone, Debug)]
enum Part {
    /// The loss of each item.
    Losses,
    /// Accumulated under a name.
    Sum(&'static str),
    /// Numbers of each row with this many columns, each of which is accumulated under a name and its number.
    Columns(String, usize),
    /// Counts of each class or label, accumulated under a name and its number.
    Counts(&'static str),
    /// The squared error of each item, with the square of the factor that scales values to pixels from 0 to 1.
    Decibels { unit: f64 },
    /// Predictions and targets with this many values per item, all predictions first.
    Pairs { num_values: usize },
    /// Predictions and targets, all predictions first, with what brings each value of an item to its units.
    InUnits { units: Arc<[Unit]>, of: InUnits },
    /// The confidence of each decision, then whether each is right.
    Bins,
    /// The norm of gradients under the name of its metric.
    Norm(String),
}

/// Errors in the units of the data, and the names under which they are accumulated.
#[derive(Clone, Copy, Debug)]
pub(super) enum InUnits {
    /// `percent`: the mean of an item's errors relative to its targets.
    Relative,
    /// `target_absolute`: the mean of an item's absolute errors.
    Absolute,
    /// `target_errors` with the number of each value: squared errors.
    Squared,
}

#[derive(Clone, Debug)]
enum Numbers {
    Floats(Tensor<1>),
    Ints(Tensor<1, Int>),
}

impl Measured {
    /// Starts with the loss of each item.
    pub fn of_losses(losses: Tensor<1>) -> Self {
        Self {
            parts: vec![(Part::Losses, Numbers::Floats(losses))],
            ..Self::default()
        }
    }

    pub(super) fn know(&mut self, name: &'static str, value: f64) {
        self.known.push((name, value));
    }

    /// Counts of each class.
    #[cfg(feature = "flex")]
    pub(super) fn know_counts(&mut self, name: &'static str, counts: Vec<u64>) {
        self.known_counts.push((name, counts));
    }

    /// Numbers that are accumulated one after the other, in double precision.
    pub(super) fn sum(&mut self, name: &'static str, each: Tensor<1>) {
        self.parts.push((Part::Sum(name), Numbers::Floats(each)));
    }

    /// \[rows, columns\].
    pub(super) fn columns(&mut self, name: String, rows: Tensor<2>) {
        let part = Part::Columns(name, rows.dims()[1]);
        self.parts.push((part, Numbers::Floats(rows.flatten(0, 1))));
    }

    /// A count, \[1\].
    pub(super) fn count(&mut self, name: &'static str, count: Tensor<1, Int>) {
        self.parts.push((Part::Sum(name), Numbers::Ints(count)));
    }

    /// A count for each class or label.
    pub(super) fn counts(&mut self, name: &'static str, counts: Tensor<1, Int>) {
        self.parts.push((Part::Counts(name), Numbers::Ints(counts)));
    }

    /// Mean squared errors, which are those of pixels if multiplied by `unit`.
    pub(super) fn decibels(&mut self, unit: f64, each: Tensor<1>) {
        let part = Part::Decibels { unit };
        self.parts.push((part, Numbers::Floats(each)));
    }

    /// \[items, values\] each.
    pub(super) fn pairs(&mut self, predicted: Tensor<2>, wanted: Tensor<2>) {
        let [_, num_values] = wanted.dims();
        let both = Tensor::cat(vec![predicted, wanted], 0).flatten(0, 1);
        let part = Part::Pairs { num_values };
        self.parts.push((part, Numbers::Floats(both)));
    }

    /// \[items, values\] each, for errors in units.
    pub(super) fn in_units(
        &mut self,
        predicted: Tensor<2>,
        wanted: Tensor<2>,
        units: &Arc<[Unit]>,
        of: InUnits,
    ) {
        let [_, num_values] = wanted.dims();
        let both = Tensor::cat(vec![predicted, wanted], 0).flatten(0, 1);
        let units = if units.is_empty() {
            // The targets of a reconstruction are its items.
            vec![Unit::NONE; num_values].into()
        } else {
            units.clone()
        };
        let part = Part::InUnits { units, of };
        self.parts.push((part, Numbers::Floats(both)));
    }

    /// The probability of each chosen class, and 1 where it is right.
    pub(super) fn bins(&mut self, confidence: Tensor<1>, right: Tensor<1>) {
        let both = Tensor::cat(vec![confidence, right], 0);
        self.parts.push((Part::Bins, Numbers::Floats(both)));
    }

    /// Adds a norm of the step's gradients, \[1\].
    pub fn norm(&mut self, name: String, norm: Tensor<1>) {
        self.parts.push((Part::Norm(name), Numbers::Floats(norm)));
    }

    /// Adds what is measured of a generator's update to a step of the discriminator's.
    pub fn add_generator(&mut self, update: Self) {
        let (norms, others): (Vec<_>, Vec<_>) = update
            .parts
            .into_iter()
            .partition(|(part, _)| matches!(part, Part::Norm(_)));
        let term = Self {
            parts: others,
            ..Self::default()
        };
        self.terms.push((super::GENERATOR.to_owned(), term));
        for (part, norm) in norms {
            if let (Part::Norm(name), Numbers::Floats(norm)) = (part, norm) {
                // Those of single parameters have different paths.
                let name = match name.as_str() {
                    "gradient_norm" => format!("{}_gradient_norm", super::GENERATOR),
                    _ => name,
                };
                self.norm(name, norm);
            }
        }
    }

    /// Makes the device start its pending work.
    pub fn flush(&self) -> Result<(), burn::tensor::ExecutionError> {
        match self.parts.first() {
            Some((_, Numbers::Floats(numbers))) => numbers.device().flush(),
            Some((_, Numbers::Ints(numbers))) => numbers.device().flush(),
            None => Ok(()),
        }
    }
}

/// The values of a batch that were read back.
#[derive(Debug, Default)]
pub struct Read {
    /// The loss of each item.
    pub losses: Vec<f64>,
    /// Norms of gradients by the names of their metrics.
    pub norms: Vec<(String, f64)>,
    /// As [`Measured::ranked`].
    pub ranked: Option<(Tensor<2>, Targets)>,
    /// As [`Measured::goes_on`].
    pub goes_on: bool,
    /// The terms of the loss by name.
    pub terms: Vec<(String, Read)>,
    parts: Vec<(Part, TensorData)>,
    known: Vec<(&'static str, f64)>,
    known_counts: Vec<(&'static str, Vec<u64>)>,
}

/// Reads everything at once, waiting for the device once.
pub fn read(all: Vec<Measured>) -> Result<Vec<Read>, TensorReadError> {
    let mut transaction = Transaction::default();
    let mut asked = Vec::new();
    for measured in all {
        asked.push(Asked::new(measured, &mut transaction));
    }
    let mut data = transaction.try_execute()?.into_iter();
    Ok(asked
        .into_iter()
        .map(|asked| asked.take(&mut data))
        .collect())
}

/// The mean loss of the items of a step, and the norm of its gradients if it is watched, waiting for the device.
pub fn step_loss(pieces: &[Measured]) -> Result<(f64, Option<f64>), TensorReadError> {
    let losses = pieces.iter().map(|piece| Measured {
        parts: piece.parts.iter().take(1).cloned().collect(),
        ..Measured::default()
    });
    let read = read(losses.collect())?;
    let losses = read.iter().flat_map(|piece| &piece.losses);
    let (sum, num) = losses.fold((0.0, 0), |(sum, num), loss| (sum + loss, num + 1));
    let watched = pieces.iter().find_map(|piece| piece.watched.clone());
    let watched = watched.map(Tensor::try_into_data).transpose()?;
    let norm = watched.and_then(|norm| norm.iter::<f64>().next());
    Ok((sum / num as f64, norm))
}

/// A batch whose numbers are part of a transaction.
struct Asked {
    parts: Vec<Part>,
    read: Read,
    terms: Vec<(String, Self)>,
}

impl Asked {
    fn new(measured: Measured, transaction: &mut Transaction) -> Self {
        let mut parts = Vec::new();
        for (part, numbers) in measured.parts {
            let before = std::mem::take(transaction);
            *transaction = match numbers {
                Numbers::Floats(tensor) => before.register(tensor),
                Numbers::Ints(tensor) => before.register(tensor),
            };
            parts.push(part);
        }
        let terms = measured.terms.into_iter();
        Self {
            parts,
            read: Read {
                ranked: measured.ranked,
                goes_on: measured.goes_on,
                known: measured.known,
                known_counts: measured.known_counts,
                ..Read::default()
            },
            terms: terms
                .map(|(name, term)| (name, Self::new(term, transaction)))
                .collect(),
        }
    }

    /// The numbers in the order in which they were asked for.
    fn take(self, data: &mut impl Iterator<Item = TensorData>) -> Read {
        let mut read = self.read;
        for (part, data) in self.parts.into_iter().zip(&mut *data) {
            match part {
                Part::Losses => read.losses.extend(data.iter::<f64>()),
                Part::Norm(name) => {
                    let norm = data.iter::<f64>().next().unwrap_or(f64::NAN);
                    read.norms.push((name, norm));
                }
                _ => read.parts.push((part, data)),
            }
        }
        let terms = self.terms.into_iter();
        read.terms = terms.map(|(name, term)| (name, term.take(data))).collect();
        read
    }
}

impl Read {
    /// Accumulates the inputs of metrics. `add` receives a name and an amount.
    pub fn add(&self, add: &mut dyn FnMut(&str, f64)) {
        for (name, value) in &self.known {
            add(name, *value);
        }
        for (name, counts) in &self.known_counts {
            add_counts(name, counts.iter().map(|count| *count as f64), add);
        }
        for (part, data) in &self.parts {
            match part {
                Part::Losses | Part::Norm(_) => {}
                Part::Sum(name) => add(name, data.iter::<f64>().sum()),
                Part::Columns(name, num) => {
                    let all: Vec<f64> = data.iter::<f64>().collect();
                    for at in 0..*num {
                        let column = all[at.min(all.len())..].iter().step_by(*num);
                        add(&format!("{name} {at}"), column.sum());
                    }
                }
                Part::Counts(name) => {
                    add_counts(name, data.iter::<f64>(), add);
                }
                Part::Decibels { unit } => {
                    // An exact image would have no finite ratio: it counts as 100 dB. `min` alone would also give that
                    // for a NaN error.
                    let ratio = |error: f64| match libm::log10(1.0 / (error * unit)) {
                        ratio if ratio.is_nan() => f64::NAN,
                        ratio => 10.0 * ratio.min(10.0),
                    };
                    add("decibels", data.iter::<f64>().map(ratio).sum());
                }
                Part::Pairs { num_values } => add_pairs(data, *num_values, add),
                Part::InUnits { units, of } => add_in_units(data, units, *of, add),
                Part::Bins => add_bins(data, add),
            }
        }
    }
}

fn add_counts(name: &str, counts: impl Iterator<Item = f64>, add: &mut dyn FnMut(&str, f64)) {
    for (at, count) in counts.enumerate().filter(|(_, count)| *count > 0.0) {
        add(&format!("{name} {at}"), count);
    }
}

/// A prediction in the units of the data, by its position among the values of items in turn.
pub(super) fn in_units(units: &[Unit], at: usize, value: f64) -> f64 {
    units[at % units.len()].undo(value)
}

/// The same of a target.
pub(super) fn target_in_units(units: &[Unit], at: usize, value: f64) -> f64 {
    units[at % units.len()].undo_target(value)
}

/// Errors in the units of the data.
fn add_in_units(data: &TensorData, units: &[Unit], of: InUnits, add: &mut dyn FnMut(&str, f64)) {
    let all: Vec<f64> = data.iter::<f64>().collect();
    let (predicted, wanted) = all.split_at(all.len() / 2);
    let pairs = predicted.iter().zip(wanted).enumerate();
    let mean = |errors: &mut dyn Iterator<Item = f64>| errors.sum::<f64>() / units.len() as f64;
    match of {
        InUnits::Relative => {
            let mut errors = pairs.map(|(at, (predicted, wanted))| {
                relative_error(&units[at % units.len()], *predicted, *wanted)
            });
            add("percent", mean(&mut errors));
        }
        InUnits::Absolute | InUnits::Squared => {
            let errors: Vec<f64> = pairs
                .map(|(at, (a, b))| in_units(units, at, *a) - target_in_units(units, at, *b))
                .collect();
            if let InUnits::Absolute = of {
                add("target_absolute", mean(&mut errors.iter().map(|e| e.abs())));
                return;
            }
            for value in 0..units.len() {
                let errors = errors[value.min(errors.len())..]
                    .iter()
                    .step_by(units.len());
                add(
                    &format!("target_errors {value}"),
                    errors.map(|e| e * e).sum(),
                );
            }
        }
    }
}

fn relative_error(unit: &Unit, predicted: f64, wanted: f64) -> f64 {
    // The bound is that of scikit-learn.
    let relative = |error: f64, size: f64| error.abs() / size.abs().max(f64::EPSILON);
    match unit.linear() {
        Some((factor, shift)) => relative((predicted - wanted) * factor, wanted * factor + shift),
        None => {
            let (predicted, wanted) = (unit.undo(predicted), unit.undo_target(wanted));
            relative(predicted - wanted, wanted)
        }
    }
}

/// The intervals of confidence for the calibration error (Guo et al., 2017).
pub(super) const NUM_BINS: usize = 15;

/// The sums of confidences and of right decisions in each interval.
fn add_bins(data: &TensorData, add: &mut dyn FnMut(&str, f64)) {
    let all: Vec<f64> = data.iter::<f64>().collect();
    let (confidences, right) = all.split_at(all.len() / 2);
    let mut bins = [[0.0; 2]; NUM_BINS];
    for (confidence, right) in confidences.iter().zip(right) {
        // Intervals include their upper bounds.
        let at = (confidence * NUM_BINS as f64).ceil() as usize;
        let bin = &mut bins[at.clamp(1, NUM_BINS) - 1];
        bin[0] += confidence;
        bin[1] += right;
    }
    for (at, [confidence, right]) in bins.into_iter().enumerate() {
        if confidence > 0.0 {
            add(&format!("confidence {at}"), confidence);
            add(&format!("sure {at}"), right);
        }
    }
}

/// The sum of the targets, of their squares and of the squared errors, for each value of an item.
fn add_pairs(data: &TensorData, num_values: usize, add: &mut dyn FnMut(&str, f64)) {
    let all: Vec<f64> = data.iter::<f64>().collect();
    let (predicted, wanted) = all.split_at(all.len() / 2);
    for value in 0..num_values {
        let of = |all: &[f64]| -> Vec<f64> {
            all[value..].iter().step_by(num_values).copied().collect()
        };
        let (predicted, wanted) = (of(predicted), of(wanted));
        let errors = predicted.iter().zip(&wanted).map(|(a, b)| a - b);
        add(&format!("sum {value}"), wanted.iter().sum());
        add(
            &format!("squares {value}"),
            wanted.iter().map(|y| y * y).sum(),
        );
        add(&format!("errors {value}"), errors.map(|e| e * e).sum());
    }
}
