//! A run's metrics as curves: each point with its key, step and time.

use std::borrow::Cow;

use super::Exported;
use runner_core::event::Outcome;

/// The key of the loss of each step.
pub const STEP_LOSS: &str = "train/step_loss";

/// The number of the epoch that a run is ranked by.
const BEST_EPOCH: &str = "best_epoch";

/// Before the metrics of that epoch.
const BEST: &str = "best/";

/// One number of a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Point<'a> {
    /// The curve, such as `valid/loss`.
    pub key: Cow<'a, str>,
    /// Optimizer updates before it.
    pub step: usize,
    /// Milliseconds since 1970. Steps have no recorded time: their times are interpolated between those of the epochs.
    pub time_ms: u64,
    /// The number.
    pub value: f64,
}

/// The curves of a run, epoch by epoch: the losses of its steps, if read, then its metrics; finally the losses after
/// the last epoch, once it is final, the evaluations, and the metrics of the best epoch of a completed run. For a run
/// that continues without being resumed, the output so far stays a prefix of later output.
pub fn points(run: &Exported) -> Vec<Point<'_>> {
    let losses = &run.losses;
    let mut points = Vec::new();
    let (mut step, mut time) = (0, run.times.started.unwrap_or_default());
    for epoch in &run.record.epochs {
        let end = run.times.epochs.get(&epoch.epoch).copied().unwrap_or(time);
        add_losses(&mut points, losses, step..epoch.step, time..end);
        let of_epoch = epoch.metrics.iter().map(|(name, value)| Point {
            key: name.into(),
            step: epoch.step,
            time_ms: end,
            value: *value,
        });
        points.extend(of_epoch);
        (step, time) = (epoch.step, end);
    }
    if run.record.outcome.is_some() {
        let end = run.times.ended.unwrap_or(time);
        add_losses(&mut points, losses, step..losses.len(), time..end);
    }
    for (split, metrics) in &run.record.evaluations {
        let (epoch, time_ms) = match run.times.evaluations.get(split) {
            Some(evaluated) => *evaluated,
            None => continue,
        };
        let mut epochs = run.record.epochs.iter();
        let at = epochs
            .find(|at| at.epoch == epoch)
            .map_or(step, |at| at.step);
        points.extend(metrics.iter().map(|(name, value)| Point {
            key: format!("{split}/{name}").into(),
            step: at,
            time_ms,
            value: *value,
        }));
    }
    add_best(&mut points, run, time);
    points
}

/// What a completed run is ranked by: the metrics of its best epoch, and which that is.
fn add_best(points: &mut Vec<Point>, run: &Exported, time: u64) {
    let is_final = matches!(run.record.outcome, Some(Outcome::Completed));
    let Some(best) = run.record.best_epoch(&run.plan).filter(|_| is_final) else {
        return;
    };
    let time_ms = run.times.ended.unwrap_or(time);
    let number = [(BEST_EPOCH.to_owned(), best.epoch as f64)];
    let metrics = best.metrics.iter();
    let metrics = metrics.map(|(name, value)| (format!("{BEST}{name}"), *value));
    points.extend(number.into_iter().chain(metrics).map(|(key, value)| Point {
        key: key.into(),
        step: best.step,
        time_ms,
        value,
    }));
}

fn add_losses(
    points: &mut Vec<Point>,
    losses: &[f64],
    steps: std::ops::Range<usize>,
    time: std::ops::Range<u64>,
) {
    let num = steps.len() as f64;
    // A clock that was set back must not give a negative time.
    let duration = time.end.saturating_sub(time.start) as f64;
    for (at, loss) in losses.iter().enumerate().take(steps.end).skip(steps.start) {
        let part = (at + 1 - steps.start) as f64 / num;
        points.push(Point {
            key: STEP_LOSS.into(),
            step: at + 1,
            time_ms: time.start + (part * duration) as u64,
            value: *loss,
        });
    }
}
