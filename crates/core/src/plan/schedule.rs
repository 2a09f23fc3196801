//! The learning rate of each step, as a pure function of the plan and the step: there is no state that a resumed run
//! could lose.

use std::f64::consts::PI;

use crate::plan::RunPlan;
use crate::spec::backend::{Arithmetic, power};
use crate::spec::own::{self, Place};
use crate::spec::scheduler::{Curve, Unit};

impl RunPlan {
    /// The learning rate of the update after `step` updates, before any reduction that depends on a metric.
    pub fn learning_rate(&self, step: usize) -> f64 {
        let peak = self.optimizer.learning_rate;
        let scheduler = &self.scheduler;
        let warmup = scheduler.warmup(self.steps_per_epoch);
        if step < warmup {
            return peak * (step + 1) as f64 / warmup as f64;
        }
        let rest = self.num_steps().saturating_sub(warmup).max(1);
        let factor = match &scheduler.curve {
            Curve::Noam => (warmup as f64 / (step + 1) as f64).sqrt(),
            curve => {
                let place = (step - warmup, rest, self.steps_per_epoch);
                factor(self.arithmetic, curve, place)
            }
        };
        peak * factor
    }
}

/// The factor at a step of a schedule over a number of steps, both counted from its start, for the steps of an epoch.
fn factor(
    arithmetic: Arithmetic,
    curve: &Curve,
    (step, num_steps, steps_per_epoch): (usize, usize, usize),
) -> f64 {
    let between = |first, last, at| between(arithmetic, first, last, at);
    let (at, num) = match curve.unit() {
        Unit::Step => (step, num_steps),
        Unit::Epoch => (step / steps_per_epoch, num_steps.div_ceil(steps_per_epoch)),
    };
    match curve {
        // What it depends on is known only in the training (`Curve::reduced`).
        Curve::Constant | Curve::Noam | Curve::ReduceOnPlateau { .. } => 1.0,
        Curve::Own(used) => {
            let place = Place {
                step,
                num_steps,
                steps_per_epoch,
            };
            // In a worker, where a panic fails the run with its message.
            own::factor(used, place).unwrap_or_else(|wrong| panic!("{wrong}"))
        }
        Curve::Linear { final_fraction, .. } => {
            let change = (final_fraction - 1.0) / num as f64;
            final_fraction - change * (num - at.min(num)) as f64
        }
        Curve::Cosine { final_fraction, .. } => {
            between(1.0, *final_fraction, at as f64 / num as f64)
        }
        Curve::Exponential { gamma, .. } => arithmetic.pow(*gamma, at as f64),
        Curve::Step {
            step_size, gamma, ..
        } => arithmetic.pow(*gamma, (at / step_size) as f64),
        Curve::MultiStep {
            milestones, gamma, ..
        } => {
            let passed = milestones.iter().filter(|milestone| at >= **milestone);
            power(*gamma, passed.count())
        }
        Curve::CosineRestarts {
            period,
            period_factor,
            final_fraction,
            ..
        } => {
            let (at, period) = in_period(at, *period, *period_factor);
            between(1.0, *final_fraction, at as f64 / period as f64)
        }
        Curve::OneCycle {
            peak_at,
            initial_fraction,
            final_fraction,
        } => {
            // PyTorch's definition: the first and the last step use the two fractions exactly.
            let (at, last) = (at as f64, (num - 1) as f64);
            let peak = (peak_at * num as f64 - 1.0).max(0.0);
            match at < peak {
                true => between(*initial_fraction, 1.0, at / peak),
                false if last > peak => between(1.0, *final_fraction, (at - peak) / (last - peak)),
                false => 1.0,
            }
        }
        Curve::Sequence { stages } => {
            let mut start: usize = 0;
            for stage in stages {
                let left = num_steps.saturating_sub(start).max(1);
                let length = stage.num_steps(steps_per_epoch).unwrap_or(left);
                if step < start.saturating_add(length) {
                    let own = factor(
                        arithmetic,
                        &stage.curve,
                        (step - start, length, steps_per_epoch),
                    );
                    return stage.fraction * own;
                }
                start = start.saturating_add(length);
            }
            1.0
        }
    }
}

/// Cosine interpolation from `first` to `last`; `at` goes from 0 to 1.
fn between(arithmetic: Arithmetic, first: f64, last: f64, at: f64) -> f64 {
    last + 0.5 * (first - last) * (1.0 + arithmetic.cos(at * PI))
}

/// The position in the period that contains `at`, and the length of that period.
fn in_period(at: usize, period: usize, period_factor: usize) -> (usize, usize) {
    if period_factor == 1 {
        return (at % period, period);
    }
    let (mut at, mut period) = (at, period);
    while at >= period {
        at -= period;
        period = period.saturating_mul(period_factor);
    }
    (at, period)
}
