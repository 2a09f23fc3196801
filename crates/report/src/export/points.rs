//! A run's metrics as curves: each point with its key, step and time.

use std::borrow::Cow;

use super::Exported;

/// The key of the loss of each step.
pub const STEP_LOSS: &str = "train/step_loss";

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
/// the last epoch, once it is final, and the evaluations. For a run that continues without being resumed, the output so
/// far stays a prefix of later output.
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
    points
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
