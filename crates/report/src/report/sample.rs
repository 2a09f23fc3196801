//! A metric over the seeds of a trial.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use runner_core::spec::metric::Metric;
use runner_statistics::{Description, Direction, Interval, IntervalMethod, Overlap};

/// The level of confidence of every interval in a report.
pub const CONFIDENCE: f64 = 0.95;

/// The significance level of the verdicts in a report, for all comparisons together.
pub const ALPHA: f64 = 0.05;

/// Costs of runs, by the names under which trials can be compared. Less is better.
pub const COSTS: [&str; 3] = ["epoch_secs", "wall_secs", "memory_bytes"];

/// What distinguishes the runs of a trial: the seed, and in a cross-validation the fold. Serialized as the seed, or as
/// seed and fold in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Repeat {
    /// The seed.
    pub seed: u64,
    /// The fold that is the valid split, if folds are the runs of a trial.
    pub fold: Option<u64>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Seed(u64),
    Fold([u64; 2]),
}

impl From<Written> for Repeat {
    fn from(written: Written) -> Self {
        match written {
            Written::Seed(seed) => Self { seed, fold: None },
            Written::Fold([seed, fold]) => Self {
                seed,
                fold: Some(fold),
            },
        }
    }
}

impl From<Repeat> for Written {
    fn from(repeat: Repeat) -> Self {
        match repeat.fold {
            None => Written::Seed(repeat.seed),
            Some(fold) => Written::Fold([repeat.seed, fold]),
        }
    }
}

impl Repeat {
    /// The split that it was measured on, if repeats use several: the fold, or that of its seed.
    pub fn split(self) -> u64 {
        self.fold.unwrap_or(self.seed)
    }
}

impl fmt::Display for Repeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fold {
            None => write!(f, "{}", self.seed),
            Some(fold) => write!(f, "{} fold {fold}", self.seed),
        }
    }
}

/// What the repeats of samples share: the split and the seed of each of [`keyed`]'s numbers, with the items that are held
/// out over those that are trained on. None where all repeats are on one split.
pub fn overlap(samples: &[&[(Repeat, f64)]], ratio: Option<f64>) -> Option<Overlap> {
    let ratio = ratio?;
    let numbers = numbers(samples);
    let of = |group: fn(Repeat) -> u64| {
        let numbers = numbers.iter();
        numbers
            .map(|(repeat, number)| (*number, group(*repeat)))
            .collect()
    };
    Some(Overlap {
        ratio,
        splits: of(Repeat::split),
        seeds: of(|repeat| repeat.seed),
    })
}

/// Samples with a number for each repeat, equal in all of them: the seed, if there are no folds.
pub fn keyed(samples: &[&[(Repeat, f64)]]) -> Vec<Vec<(u64, f64)>> {
    let numbers = numbers(samples);
    let keyed = |sample: &&[(Repeat, f64)]| {
        let keyed = sample.iter();
        keyed
            .map(|(repeat, value)| (numbers[repeat], *value))
            .collect()
    };
    samples.iter().map(keyed).collect()
}

/// A number for each repeat of some samples.
fn numbers(samples: &[&[(Repeat, f64)]]) -> BTreeMap<Repeat, u64> {
    let all = samples.iter().flat_map(|sample| sample.iter());
    let all: BTreeSet<Repeat> = all.map(|(repeat, _)| *repeat).collect();
    let has_folds = all.iter().any(|repeat| repeat.fold.is_some());
    let number = |(at, repeat): (usize, &Repeat)| {
        let number = if has_folds { at as u64 } else { repeat.seed };
        (*repeat, number)
    };
    all.iter().enumerate().map(number).collect()
}

/// A metric over seeds, in its own unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// n, mean, standard deviation, median, and the extremes.
    #[serde(flatten)]
    pub description: Description,
    /// The best value, if the metric has a direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<f64>,
    /// The worst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<f64>,
    /// Student's interval for the mean; none for a single value, and if all are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub student: Option<Interval>,
    /// The bootstrap interval (BCa); only of the objective and of test, since it is slow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bca: Option<Interval>,
    /// The value of each seed, or of each seed in each fold.
    pub by_seed: Vec<(Repeat, f64)>,
}

impl Sample {
    /// Describes the values of a metric; none where there are none, or where they are too large to add up. `ratio` is
    /// that of `overlap`, where repeats are on several splits.
    pub fn of(name: &str, by_seed: Vec<(Repeat, f64)>, ratio: Option<f64>) -> Option<Self> {
        let values: Vec<f64> = by_seed.iter().map(|(_, value)| *value).collect();
        let description = Description::of(&values).ok()?;
        let (low, high) = (description.minimum, description.maximum);
        let (best, worst) = match direction(name) {
            Some(Direction::HigherIsBetter) => (Some(high), Some(low)),
            Some(Direction::LowerIsBetter) => (Some(low), Some(high)),
            None => (None, None),
        };
        Some(Self {
            description,
            best,
            worst,
            student: match overlap(&[&by_seed], ratio) {
                Some(overlap) => {
                    let keyed = keyed(&[&by_seed]).remove(0);
                    Interval::corrected(&keyed, &overlap, CONFIDENCE).ok()
                }
                None => Interval::student(&values, CONFIDENCE).ok(),
            },
            bca: None,
            by_seed,
        })
    }

    /// The same with the interval of the bootstrap.
    pub fn with_bootstrap(mut self) -> Self {
        // Resampling assumes independent values, but those of several splits are not.
        if self
            .student
            .is_some_and(|student| student.method == IntervalMethod::CorrectedT)
        {
            return self;
        }
        let values: Vec<f64> = self.by_seed.iter().map(|(_, value)| *value).collect();
        self.bca = Interval::bca(&values, CONFIDENCE).ok();
        self
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.description.mean
    }
}

/// The range of a metric, by its name.
pub fn bounds(name: &str) -> (f64, f64) {
    if COSTS.contains(&name) {
        return (0.0, f64::INFINITY);
    }
    let metric = name.rsplit('/').next().and_then(Metric::named);
    metric.map_or((f64::NEG_INFINITY, f64::INFINITY), Metric::bounds)
}

/// Whether an interval extends beyond the range of its metric.
pub fn is_beyond(name: &str, interval: &Interval) -> bool {
    let (low, high) = bounds(name);
    interval.low < low || interval.high > high
}

/// Which values of a metric or a cost are better, by its name; none if it has no direction, such as a norm of
/// gradients.
pub fn direction(name: &str) -> Option<Direction> {
    if COSTS.contains(&name) {
        return Some(Direction::LowerIsBetter);
    }
    let metric = Metric::named(name.rsplit('/').next()?)?;
    Some(Direction::of(metric.higher_is_better()))
}
