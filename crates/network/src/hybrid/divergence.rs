//! Signs that a training that predicts updates diverges, and what is done about them: numbers, no tensors.
//!
//! Warnings shorten predictions; three in a row, and grave signs, have graver consequences.

use serde::{Deserialize, Serialize};

use runner_core::spec::hybrid::Limits;

/// The share of the past in running means.
const DECAY: f64 = 0.99;
/// Steps before a mean is compared with.
const MIN_STEPS: u64 = 10;
/// A limit of the loss times this is grave.
const GRAVE: f64 = 2.0;
/// A gradient below this share of the usual one has vanished.
const VANISHED: f64 = 0.01;
/// The share of the past in the loss whose direction is watched: the losses of single batches go up and down by chance.
const SMOOTH_DECAY: f64 = 0.9;
/// Directions of the loss that are remembered.
const DIRECTIONS: usize = 20;
/// Warnings in a row that are grave together.
const MAX_WARNINGS: usize = 3;

/// What was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The loss is far above its mean.
    Loss,
    /// The gradients are much larger or smaller than usual.
    Gradient,
    /// A prediction made the loss on the probe much worse.
    PredictionError,
    /// The loss goes up and down.
    Oscillation,
}

/// What is done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The prediction ends with the next update, and the largest number of predicted updates is halved.
    Shorten,
    /// A full phase of twice the length follows.
    FullPhase,
    /// The prediction is rolled back to its last check.
    RollBack,
    /// The predictor forgets its snapshots, and a full phase of twice the length follows.
    ResetPredictor,
}

/// Mean and variance of a value that changes, with less weight on the past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    mean: f64,
    variance: f64,
    num: u64,
}

impl Spread {
    /// Takes a value in.
    pub fn add(&mut self, value: f64) {
        self.num += 1;
        // The first values count equally.
        let share = (1.0 - DECAY).max(1.0 / self.num as f64);
        let difference = value - self.mean;
        self.mean += share * difference;
        self.variance = (1.0 - share) * (self.variance + share * difference * difference);
    }

    /// 1 for a constant value, toward 0 the more it varies.
    pub fn stability(&self) -> f64 {
        let size = self.mean.abs().max(f64::MIN_POSITIVE);
        1.0 / (1.0 + self.variance.sqrt() / size)
    }

    /// How many standard deviations a value is above the mean; none before enough values are known.
    fn sigmas(&self, value: f64) -> Option<f64> {
        let deviation = self.variance.sqrt().max(f64::MIN_POSITIVE);
        (self.num >= MIN_STEPS).then(|| (value - self.mean) / deviation)
    }
}

/// What is known of earlier steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Watch {
    /// The losses of real steps.
    pub loss: Spread,
    gradient: Spread,
    smooth: f64,
    /// Whether the smooth loss rose, in the last steps.
    rose: Vec<bool>,
    warnings: usize,
}

impl Watch {
    /// The forward pass of a predicted step.
    pub fn predicted_step(&mut self, limits: &Limits, loss: f64) -> Option<(Signal, Action)> {
        if !loss.is_finite() {
            return Some((Signal::Loss, Action::RollBack));
        }
        let oscillates = self.turns(loss) > limits.max_oscillation;
        let sigmas = self.loss.sigmas(loss).unwrap_or(0.0);
        if sigmas > GRAVE * limits.max_loss_sigma {
            return Some((Signal::Loss, Action::RollBack));
        }
        if sigmas > limits.max_loss_sigma {
            return Some((Signal::Loss, self.warn()));
        }
        if oscillates {
            return Some((Signal::Oscillation, self.warn()));
        }
        self.warnings = 0;
        None
    }

    /// A real step, with the norm of its gradients before clipping.
    pub fn real_step(
        &mut self,
        limits: &Limits,
        loss: f64,
        norm: Option<f64>,
    ) -> Option<(Signal, Action)> {
        let sigmas = self.loss.sigmas(loss).unwrap_or(0.0);
        let usual = self.gradient;
        self.turns(loss);
        self.loss.add(loss);
        let norm = norm.unwrap_or(usual.mean);
        self.gradient.add(norm);
        let is_known = usual.num >= MIN_STEPS && usual.mean > 0.0;
        let ratio = norm / usual.mean;
        if is_known && (ratio > limits.max_gradient_factor || ratio < VANISHED) {
            return Some((Signal::Gradient, Action::ResetPredictor));
        }
        (sigmas > GRAVE * limits.max_loss_sigma).then_some((Signal::Loss, Action::FullPhase))
    }

    /// A prediction that was not kept, because the loss on the probe grew by `error` relative to it.
    pub fn rejected(&mut self, limits: &Limits, error: f64) -> Option<(Signal, Action)> {
        // Also for a NaN.
        let is_small = error <= limits.max_prediction_error;
        (!is_small).then_some((Signal::PredictionError, Action::ResetPredictor))
    }

    fn warn(&mut self) -> Action {
        self.warnings += 1;
        if self.warnings < MAX_WARNINGS {
            return Action::Shorten;
        }
        self.warnings = 0;
        Action::FullPhase
    }

    /// The share of the last steps in which the smooth loss changed its direction; 0 before enough steps are known.
    fn turns(&mut self, loss: f64) -> f64 {
        let before = self.smooth;
        self.smooth = SMOOTH_DECAY * before + (1.0 - SMOOTH_DECAY) * loss;
        self.rose.push(self.smooth > before);
        if self.rose.len() <= DIRECTIONS {
            return 0.0;
        }
        self.rose.remove(0);
        let pairs = self.rose.windows(2);
        let turns = pairs.filter(|pair| pair[0] != pair[1]).count();
        turns as f64 / (DIRECTIONS - 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        max_loss_sigma: 2.5,
        max_gradient_factor: 100.0,
        max_prediction_error: 0.5,
        max_oscillation: 0.8,
    };

    /// After 30 steps with losses around 1, whose deviation is about 0.1, and gradients of 2.
    fn calm() -> Watch {
        let mut watch = Watch::default();
        for step in 0..30 {
            let loss = 1.0 + if step % 4 < 2 { 0.1 } else { -0.1 };
            assert_eq!(watch.real_step(&LIMITS, loss, Some(2.0)), None);
        }
        watch
    }

    #[test]
    fn a_high_loss_shortens_a_prediction_and_a_higher_one_rolls_it_back() {
        let wanted = [
            (1.2, None),
            (1.4, Some((Signal::Loss, Action::Shorten))),
            (1.7, Some((Signal::Loss, Action::RollBack))),
            (f64::NAN, Some((Signal::Loss, Action::RollBack))),
            (f64::INFINITY, Some((Signal::Loss, Action::RollBack))),
        ];
        for (loss, wanted) in wanted {
            assert_eq!(calm().predicted_step(&LIMITS, loss), wanted, "{loss}");
        }
        assert_eq!(
            calm().real_step(&LIMITS, 1.7, Some(2.0)),
            Some((Signal::Loss, Action::FullPhase))
        );
        // Nothing is known at the start.
        assert_eq!(Watch::default().predicted_step(&LIMITS, 9.0), None);
    }

    #[test]
    fn three_warnings_in_a_row_force_a_full_phase() {
        let mut watch = calm();
        let mut next = |loss| {
            watch
                .predicted_step(&LIMITS, loss)
                .map(|(_, action)| action)
        };
        let shorten = Some(Action::Shorten);
        let found = [1.4, 1.4, 1.0, 1.4, 1.4, 1.4].map(&mut next);
        let wanted = [
            shorten,
            shorten,
            None,
            shorten,
            shorten,
            Some(Action::FullPhase),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn gradients_that_explode_or_vanish_reset_the_predictor() {
        let reset = Some((Signal::Gradient, Action::ResetPredictor));
        let of = |norm| calm().real_step(&LIMITS, 1.0, Some(norm));
        assert_eq!([of(201.0), of(0.019)], [reset, reset]);
        assert_eq!([of(199.0), of(0.021)], [None, None]);
        assert_eq!(calm().real_step(&LIMITS, 1.0, None), None);
    }

    #[test]
    fn a_prediction_that_is_far_off_resets_the_predictor() {
        let reset = Some((Signal::PredictionError, Action::ResetPredictor));
        let of = |error| calm().rejected(&LIMITS, error);
        assert_eq!([of(0.49), of(0.51), of(f64::NAN)], [None, reset, reset]);
    }

    #[test]
    fn a_loss_that_goes_up_and_down_is_a_warning() {
        let mut watch = calm();
        let found = (0..21).map(|step| {
            // Around the smooth loss, so that it turns at each step.
            let loss = watch.smooth + if step % 2 == 0 { 0.05 } else { -0.05 };
            watch.predicted_step(&LIMITS, loss)
        });
        let found: Vec<_> = found.collect();
        assert_eq!(found[0], None);
        let first = found.into_iter().flatten().next();
        assert_eq!(first, Some((Signal::Oscillation, Action::Shorten)));
    }
}
