//! Learning curves of the displayed trials: a mean over seeds for each epoch, with a band.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use super::folds::Folds;
use super::mixture::mixed_data;
use super::model::{Report, Trial};
use super::norms::Norms;
use super::sample::CONFIDENCE;
use super::steps::{StepPoint, step_points};
use runner_core::event::Epoch;
use runner_core::record::{ExperimentFolder, Index, RunEntry, RunRecord, State, Trace};
use runner_core::show::plain_io_error;
use runner_core::spec::metric::Metric;
use runner_statistics::Interval;

/// Maximum number of trials with curves, so that they can be told apart.
pub const MAX_TRIALS: usize = 8;
/// Maximum number of points per curve: more are not visible.
const MAX_POINTS: usize = 400;
/// Maximum number of metrics with curves.
const MAX_METRICS: usize = 6;
/// With fewer seeds the band shows the range.
const LEAST_FOR_INTERVAL: usize = 5;

/// Learning curves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// The metrics without their split, the objective's first.
    pub metrics: Vec<String>,
    /// The trials, in report order.
    pub trials: Vec<TrialCurves>,
    /// Omitted trials with curves.
    pub num_more_trials: usize,
    /// Omitted metrics with curves.
    pub num_more_metrics: usize,
    /// The gradient norms of single parameters of the first trial, if they are metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub norms: Option<Norms>,
}

/// The curves of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialCurves {
    /// The trial's name.
    pub trial: String,
    /// Its runs with at least one finished epoch, completed or not; failed ones only if all failed.
    pub n: usize,
    /// A curve per metric and split.
    pub curves: Vec<Curve>,
    /// The losses of steps, at most 100 points; none if an epoch has only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepPoint>,
    /// The norms of the gradients of steps, if they are metrics, in the same way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub norms: Vec<StepPoint>,
}

/// One metric over epochs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The metric with its split, such as `valid/loss`.
    pub metric: String,
    /// The kind of band; none if no epoch has two values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<Band>,
    /// By ascending epoch, at most 400.
    pub points: Vec<CurvePoint>,
}

/// The kinds of bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Band {
    /// The range of the values.
    Range,
    /// Student's 95 % interval for the mean.
    StudentT,
}

/// An epoch of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The epoch, from 1.
    pub epoch: usize,
    /// Runs with a finite value.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// The ends of the band, for at least two runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<(f64, f64)>,
}

impl Curves {
    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.trials.is_empty()
    }

    /// Reads the curves of the best trials and of the baseline. A run with unreadable events has none; that is reported
    /// with its metrics. Losses of steps that changed since their run ended are left out, with a remark.
    pub fn read(
        report: &Report,
        index: &Index,
        folder: &ExperimentFolder,
        remarks: &mut Vec<String>,
    ) -> Self {
        let folds = Folds::of(index);
        let trials = report.trials.iter();
        let pairs = trials.flat_map(|trial| trial.runs.iter().map(|run| (run, &trial.id)));
        let trial_of: BTreeMap<&String, &String> = pairs.collect();
        let mut by_trial: BTreeMap<&str, Vec<&RunEntry>> = BTreeMap::new();
        for run in index.runs.iter().filter(|run| run.epochs > 0) {
            if let Some(trial) = trial_of.get(&run.id) {
                by_trial.entry(trial).or_default().push(run);
            }
        }
        let trials = report.trials.iter();
        let have = trials.filter(|trial| !trial.has_mixed_data());
        let have = have.filter_map(|trial| Some((trial, by_trial.get(trial.id.as_str())?)));
        let have: Vec<(&Trial, &Vec<&RunEntry>)> = have.collect();
        let baseline = have.iter().position(|(trial, _)| report.is_baseline(trial));
        let mut chosen: Vec<usize> = (0..have.len().min(MAX_TRIALS)).collect();
        if let (Some(at), Some(last)) = (baseline.filter(|at| *at >= MAX_TRIALS), chosen.last_mut())
        {
            *last = at;
        }
        let num_more_trials = have.len() - chosen.len();
        let mut read: Vec<(String, Vec<Trained>)> = Vec::new();
        for at in chosen {
            let (trial, runs) = have[at];
            let runs = averaged(index, &folds, runs).into_iter();
            let runs = runs.filter_map(|run| Trained::read(run, folder, remarks));
            read.push((trial.id.clone(), runs.collect()));
        }
        let all = read.iter().flat_map(|(_, runs)| runs);
        let all = all.flat_map(|run| &run.epochs);
        let mut metrics = names(all, &report.objective);
        let num_more_metrics = metrics.len().saturating_sub(MAX_METRICS);
        metrics.truncate(MAX_METRICS);
        let trials = read.iter().map(|(trial, runs)| {
            let epochs: Vec<&[Epoch]> = runs.iter().map(|run| &run.epochs[..]).collect();
            TrialCurves {
                trial: trial.clone(),
                n: runs.len(),
                curves: curves(&epochs, &metrics, folds.overlap.is_none()),
                steps: Trained::steps(runs, |run| &run.losses),
                norms: Trained::steps(runs, |run| &run.norms),
            }
        });
        Self {
            norms: report.selected().and_then(|best| {
                let (trial, runs) = read.first().filter(|(trial, _)| *trial == best.id)?;
                let epochs: Vec<&[Epoch]> = runs.iter().map(|run| &run.epochs[..]).collect();
                Norms::of(trial, &epochs, &runs.first()?.parameters)
            }),
            trials: trials.filter(|trial| !trial.curves.is_empty()).collect(),
            metrics,
            num_more_trials,
            num_more_metrics,
        }
    }
}

/// The runs of a trial that can be averaged: without failed ones if others did not fail, and without incomplete ones that
/// read other data.
fn averaged<'a>(index: &Index, folds: &Folds, runs: &[&'a RunEntry]) -> Vec<&'a RunEntry> {
    let mut runs = runs.to_vec();
    if runs.iter().any(|run| run.state != State::Failed) {
        runs.retain(|run| run.state != State::Failed);
    }
    if !mixed_data(index, &runs, folds).is_empty() {
        runs.retain(|run| run.state == State::Completed);
    }
    runs
}

/// What a run has recorded of its training.
struct Trained {
    epochs: Vec<Epoch>,
    /// The losses of steps; empty if they are not those that were recorded.
    losses: Vec<f64>,
    /// The norms of the gradients of steps, in the same way.
    norms: Vec<f64>,
    /// The parameters of its network.
    parameters: Vec<String>,
}

impl Trained {
    /// What belongs to the plan of a run.
    fn read(run: &RunEntry, folder: &ExperimentFolder, remarks: &mut Vec<String>) -> Option<Self> {
        let folder = folder.run(&run.id);
        let plan = folder.read_plan().ok().flatten()?;
        let is_planned = plan.fingerprint == run.fingerprint;
        let record = is_planned.then(|| RunRecord::read_for(&folder, &plan).ok())??;
        let mut of_steps = |what: &str, read: io::Result<Vec<f64>>| {
            read.unwrap_or_else(|e| {
                remarks.push(format!(
                    "the {what} of the steps of `{}` are omitted: {}",
                    run.id,
                    plain_io_error(&e)
                ));
                Vec::new()
            })
        };
        Some(Self {
            losses: of_steps("losses", Trace::read_losses(&folder, &record)),
            norms: of_steps("gradient norms", Trace::read_norms(&folder, &record)),
            epochs: record.epochs,
            parameters: plan.network.parameter_paths(),
        })
    }

    /// Numbers of steps over runs, unless an epoch has only one.
    fn steps(runs: &[Self], of: impl Fn(&Self) -> &Vec<f64>) -> Vec<StepPoint> {
        let has_more = runs.iter().any(|run| of(run).len() > run.epochs.len());
        if has_more {
            step_points(&runs.iter().map(|run| of(run).clone()).collect::<Vec<_>>())
        } else {
            Vec::new()
        }
    }
}

/// Splits, in curve order.
const SPLITS: [&str; 4] = ["train/", "valid/", "valid_ema/", "valid_swa/"];

/// The metrics of a split without the split: the objective's first, then the loss, then by name. Gradient norms of
/// single parameters are too many to show.
fn names<'a>(epochs: impl Iterator<Item = &'a Epoch>, objective: &str) -> Vec<String> {
    let mut names: Vec<&str> = epochs
        .flat_map(|epoch| epoch.metrics.keys())
        .filter_map(|name| SPLITS.iter().find_map(|split| name.strip_prefix(split)))
        .filter(|name| match name.rsplit_once('/') {
            None => true,
            Some((_, metric)) => Metric::named(metric).is_some(),
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    let (_, of_objective) = objective.split_once('/').unwrap_or(("", objective));
    names.sort_by_key(|name| (*name != of_objective, *name != "loss"));
    names.into_iter().map(str::to_owned).collect()
}

fn curves(runs: &[&[Epoch]], metrics: &[String], are_independent: bool) -> Vec<Curve> {
    let splits = |metric: &String| SPLITS.map(|split| format!("{split}{metric}"));
    let names = metrics.iter().flat_map(splits);
    let curves = names.map(|metric| Curve::of(metric, runs, are_independent));
    curves.filter(|curve| !curve.points.is_empty()).collect()
}

impl Curve {
    /// The curve of a metric over the runs of a trial. Non-finite values are omitted. Runs on several splits are not
    /// independent: their band shows the range.
    fn of(metric: String, runs: &[&[Epoch]], are_independent: bool) -> Self {
        let band = match runs.len() {
            0 | 1 => None,
            2..LEAST_FOR_INTERVAL => Some(Band::Range),
            _ if !are_independent => Some(Band::Range),
            _ => Some(Band::StudentT),
        };
        let all = || runs.iter().copied().flatten();
        let last = all().map(|epoch| epoch.epoch).max();
        let mut values: Vec<Vec<f64>> = vec![Vec::new(); last.unwrap_or(0)];
        for epoch in all() {
            let value = epoch.metrics.get(&metric).filter(|value| value.is_finite());
            let place = epoch.epoch.checked_sub(1).and_then(|at| values.get_mut(at));
            if let (Some(value), Some(place)) = (value, place) {
                place.push(*value);
            }
        }
        let points = values.iter().enumerate();
        let points = points.filter_map(|(at, values)| point(at + 1, values, band));
        let points = thin(points.collect());
        Self {
            band: band.filter(|_| points.iter().any(|point| point.band.is_some())),
            metric,
            points,
        }
    }
}

fn point(epoch: usize, values: &[f64], band: Option<Band>) -> Option<CurvePoint> {
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    // Divided first: the sum of very large numbers overflows.
    let mean = values.iter().map(|v| v / values.len() as f64).sum();
    let band = match (band, values.len()) {
        (None, _) | (_, 1) => None,
        (Some(Band::Range), _) => Some((low, high)),
        (Some(Band::StudentT), _) => match Interval::student(values, CONFIDENCE) {
            Ok(interval) => Some((interval.low, interval.high)),
            // All are equal.
            Err(_) => Some((low, high)),
        },
    };
    Some(CurvePoint {
        epoch,
        n: values.len(),
        mean,
        band,
    })
}

/// At most [`MAX_POINTS`] of the points, including the first, the last, and the extremes of mean and band in as many
/// stretches of equal length as that allows.
fn thin(points: Vec<CurvePoint>) -> Vec<CurvePoint> {
    if points.len() <= MAX_POINTS {
        return points;
    }
    let stretch = points.len().div_ceil((MAX_POINTS - 2) / 4);
    let mut kept = vec![0, points.len() - 1];
    for start in (0..points.len()).step_by(stretch) {
        let range = start..(start + stretch).min(points.len());
        let low = |at: &usize| points[*at].band.map_or(points[*at].mean, |band| band.0);
        let high = |at: &usize| points[*at].band.map_or(points[*at].mean, |band| band.1);
        let mean = |at: &usize| points[*at].mean;
        let by =
            |value: &dyn Fn(&usize) -> f64, a: &usize, b: &usize| value(a).total_cmp(&value(b));
        kept.extend(range.clone().min_by(|a, b| by(&mean, a, b)));
        kept.extend(range.clone().max_by(|a, b| by(&mean, a, b)));
        kept.extend(range.clone().min_by(|a, b| by(&low, a, b)));
        kept.extend(range.max_by(|a, b| by(&high, a, b)));
    }
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|at| points[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(values: &[f64]) -> Vec<Epoch> {
        let epochs = values.iter().enumerate().map(|(at, value)| Epoch {
            epoch: at + 1,
            step: at,
            metrics: BTreeMap::from([
                ("valid/loss".to_owned(), *value),
                ("train/accuracy".to_owned(), 1.0),
                ("train/gradient_norm/linear.weight".to_owned(), 1.0),
            ]),
            train_secs: 0.0,
            valid_secs: 0.0,
            memory_bytes: 0,
            pool: None,
        });
        epochs.collect()
    }

    fn loss(runs: &[Vec<Epoch>]) -> Curve {
        let runs: Vec<&[Epoch]> = runs.iter().map(|run| &run[..]).collect();
        Curve::of("valid/loss".into(), &runs, true)
    }

    #[test]
    fn few_seeds_have_their_range_and_five_an_interval() {
        let one = loss(&[run(&[1.0, 2.0])]);
        assert_eq!((one.band, one.points.len()), (None, 2));
        let three = loss(&[run(&[1.0, 2.0]), run(&[3.0]), run(&[5.0])]);
        assert_eq!(three.band, Some(Band::Range));
        assert_eq!(
            (three.points[0].mean, three.points[0].band),
            (3.0, Some((1.0, 5.0)))
        );
        assert_eq!((three.points[1].n, three.points[1].band), (1, None));
        let five: Vec<_> = [1.0, 2.0, 3.0, 4.0, 5.0]
            .iter()
            .map(|v| run(&[*v, 7.0]))
            .collect();
        let five = loss(&five);
        let student = Interval::student(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        assert_eq!(five.points[0].band, Some((student.low, student.high)));
        assert_eq!(five.points[1].band, Some((7.0, 7.0)));
    }

    #[test]
    fn what_is_not_finite_is_no_point() {
        let curve = loss(&[
            run(&[1.0, f64::NAN, f64::INFINITY, 1e308]),
            run(&[2.0, 4.0, f64::NAN, 1e308]),
        ]);
        let shown: Vec<_> = curve
            .points
            .iter()
            .map(|p| (p.epoch, p.n, p.mean))
            .collect();
        assert_eq!(shown, [(1, 2, 1.5), (2, 1, 4.0), (4, 2, 1e308)]);
        assert!(loss(&[run(&[f64::NAN])]).points.is_empty());
        assert!(loss(&[]).points.is_empty());
    }

    #[test]
    fn long_curves_keep_their_extremes() {
        let mut values: Vec<f64> = (0..10_000).map(|at| (f64::from(at) * 0.01).sin()).collect();
        values[7_777] = 50.0;
        values[3_333] = -50.0;
        let curve = loss(&[run(&values)]);
        let epochs: Vec<usize> = curve.points.iter().map(|point| point.epoch).collect();
        assert!(epochs.len() <= MAX_POINTS, "{}", epochs.len());
        assert!(epochs.is_sorted());
        for epoch in [1, 3_334, 7_778, 10_000] {
            assert!(epochs.contains(&epoch), "{epoch}");
        }
        assert_eq!(loss(&[run(&values[..400])]).points.len(), 400);
    }

    #[test]
    fn metrics_of_several_parts_are_left_out_and_the_objective_is_first() {
        let epochs = run(&[1.0]);
        assert_eq!(names(epochs.iter(), "valid/loss"), ["loss", "accuracy"]);
        assert_eq!(names(epochs.iter(), "valid/accuracy"), ["accuracy", "loss"]);
    }
}
