//! The phases of `strategy.type = "hybrid"` as a function of numbers: no tensors.
//!
//! A machine is told what happened in each step, and says what the next one is. Everything that it knows is saved with a
//! checkpoint.

use serde::{Deserialize, Serialize};

use super::divergence::{Action, Signal, Watch};
use super::rssm::Rssm;
use runner_core::spec::hybrid::HybridSpec;

/// Predictions without a full phase between them.
const MAX_CONSECUTIVE: usize = 5;
/// The fewest updates that a confident machine predicts at once, unless rejections have shortened the horizon.
const MIN_PREDICTED: usize = 10;
/// The largest error of a prediction that is remembered, so that later phases can make up for it.
const MAX_ERROR: f64 = 10.0;
/// The share of the past in the running mean of accepted predictions.
const HISTORY_DECAY: f64 = 0.8;

/// What a training does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Real updates at the start.
    #[default]
    Warmup,
    /// Real updates that the predictor learns from.
    Full,
    /// Predicted updates.
    Predict,
    /// Real updates after predicted ones.
    Correct,
}

/// What was computed so far, in steps, whatever pieces they are computed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Forward passes over batches of the train split.
    pub forwards: u64,
    /// Backward passes.
    pub backwards: u64,
    /// Updates by the optimizer.
    pub updates: u64,
    /// Predicted updates that were made, also those that were rolled back.
    pub predicted: u64,
    /// Predicted updates that were rolled back.
    pub rolled_back: u64,
    /// Predictions: predict phases, or jumps.
    pub predictions: u64,
    /// Predictions that ended with a rollback.
    pub rejections: u64,
    /// Forward passes over batches of the probe.
    pub probe_forwards: u64,
    /// Losses far above their mean.
    pub loss_signals: u64,
    /// Gradients that exploded or vanished.
    pub gradient_signals: u64,
    /// Predictions that were far off.
    pub error_signals: u64,
    /// Losses that went up and down.
    pub oscillation_signals: u64,
}

impl Counters {
    /// The counters as metrics of the train split, by name.
    pub fn metrics(&self) -> impl Iterator<Item = (String, f64)> {
        let counters = [
            ("forwards", self.forwards),
            ("backwards", self.backwards),
            ("updates", self.updates),
            ("predicted_updates", self.predicted),
            ("rolled_back_updates", self.rolled_back),
            ("predictions", self.predictions),
            ("rejected_predictions", self.rejections),
            ("probe_forwards", self.probe_forwards),
            ("loss_signals", self.loss_signals),
            ("gradient_signals", self.gradient_signals),
            ("error_signals", self.error_signals),
            ("oscillation_signals", self.oscillation_signals),
        ];
        let counters = counters.into_iter();
        counters.map(|(name, count)| (format!("train/{name}"), count as f64))
    }
}

/// Where a training is in its phases, and what it learned about its predictions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    phase: Phase,
    /// Steps in the phase so far.
    done: usize,
    /// Steps of the phase.
    length: usize,
    /// Of those, the last that were checked.
    checked: usize,
    /// The loss on the probe at the last check, or before the prediction.
    probe: f64,
    /// Snapshots since the last prediction.
    known: usize,
    /// The most updates that are predicted at once: halved by a rejection.
    horizon: usize,
    /// Predictions since the last full phase.
    consecutive: usize,
    /// The running mean of accepted predictions.
    history: f64,
    /// The relative increase of the loss on the probe in the last prediction.
    error: f64,
    watch: Watch,
    /// What was computed so far.
    pub counters: Counters,
    /// The predictor, if it learns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned: Option<Box<Rssm>>,
}

/// What a check of a prediction decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The predicted updates are kept.
    Accepted,
    /// The weights of the last check are restored.
    Rejected,
}

impl Machine {
    /// The start of a training.
    pub fn new(spec: &HybridSpec) -> Self {
        let mut machine = Self {
            phase: Phase::Warmup,
            done: 0,
            length: spec.warmup_steps,
            checked: 0,
            probe: 0.0,
            known: 0,
            horizon: spec.max_predict_steps,
            consecutive: 0,
            history: 1.0,
            error: 0.0,
            watch: Watch::default(),
            counters: Counters::default(),
            learned: None,
        };
        if spec.warmup_steps == 0 {
            machine.enter(Phase::Full, spec.full_steps);
        }
        machine
    }

    /// The phase of the next step.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Updates predicted in the current phase.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Snapshots of consecutive steps since the last prediction.
    pub fn known(&self) -> usize {
        self.known
    }

    /// How sure it is that a prediction will be kept: from the error of the last one, the share of those that were kept,
    /// and how much the loss varies.
    pub fn confidence(&self) -> f64 {
        0.4 / (1.0 + self.error) + 0.4 * self.history + 0.2 * self.watch.loss.stability()
    }

    /// Whether a snapshot after the step in progress can be one of the last before a prediction, or teaches.
    pub fn wants_snapshot(&self, spec: &HybridSpec) -> bool {
        match self.phase {
            phase if self.learned.is_some() => phase != Phase::Predict,
            Phase::Warmup | Phase::Predict => false,
            Phase::Full | Phase::Correct => self.done + spec.snapshots >= self.length,
        }
    }

    /// Whether a snapshot at the start of the phase, before its first step, can be one of the last before a prediction.
    pub fn wants_first_snapshot(&self, spec: &HybridSpec) -> bool {
        spec.snapshots > self.length || self.learned.is_some()
    }

    /// Counts a snapshot.
    pub fn add_snapshot(&mut self) {
        self.known += 1;
    }

    /// A real step ended with this loss, and this norm of its gradients if it is known. Returns how many updates to
    /// predict now, if any: [`Self::predict`] follows then.
    pub fn add_real_step(
        &mut self,
        spec: &HybridSpec,
        (loss, norm): (f64, Option<f64>),
    ) -> Option<usize> {
        self.counters.forwards += 1;
        self.counters.backwards += 1;
        self.counters.updates += 1;
        self.done += 1;
        let noticed = self.watch.real_step(&spec.limits, loss, norm);
        if self.phase != Phase::Warmup && self.notice(spec, noticed) {
            return None;
        }
        if self.done < self.length {
            return None;
        }
        if self.phase == Phase::Full {
            self.consecutive = 0;
        }
        let horizon = self.horizon(spec);
        let is_ready = self.phase != Phase::Warmup
            && self.known >= spec.snapshots
            && self.consecutive < MAX_CONSECUTIVE
            && self.confidence() >= spec.confidence_threshold;
        if is_ready {
            return Some(horizon);
        }
        if self.phase == Phase::Full {
            // Without predictions nothing else would restore the confidence.
            self.error /= 2.0;
            self.history = (1.0 + self.history) / 2.0;
        }
        self.enter(Phase::Full, spec.full_steps);
        None
    }

    /// How many updates it would predict now: fewer with less confidence, and with predictions in a row. It does not depend on
    /// the length of the training, which may be extended later.
    fn horizon(&self, spec: &HybridSpec) -> usize {
        let caution = 1.0 - (0.1 * self.consecutive as f64).min(0.5);
        let confident = spec.max_predict_steps as f64 * self.confidence().powi(2) * caution;
        (confident as usize).max(MIN_PREDICTED).min(self.horizon)
    }

    /// A prediction of `length` updates starts, with this loss on the probe.
    pub fn predict(&mut self, spec: &HybridSpec, length: usize, probe: f64) {
        self.enter(Phase::Predict, length);
        self.probe = probe;
        self.consecutive += 1;
        self.counters.predictions += 1;
        self.counters.probe_forwards += spec.probe_batches as u64;
    }

    /// A batch had its forward pass in a predicted step, with this loss. Returns whether its update is predicted; it is
    /// not if the prediction has to be rolled back, or if a full phase follows.
    pub fn add_forward(&mut self, spec: &HybridSpec, loss: f64) -> Option<Verdict> {
        self.counters.forwards += 1;
        let noticed = self.watch.predicted_step(&spec.limits, loss);
        let (_, action) = noticed?;
        self.count(noticed);
        match action {
            Action::Shorten => {
                self.length = self.done + 1;
                self.halve();
                None
            }
            Action::RollBack | Action::FullPhase | Action::ResetPredictor => {
                self.reject(spec, f64::INFINITY);
                if action != Action::RollBack {
                    self.enter(Phase::Full, 2 * spec.full_steps);
                }
                Some(Verdict::Rejected)
            }
        }
    }

    /// Acts on what was noticed in a real step; returns whether another phase follows.
    fn notice(&mut self, spec: &HybridSpec, noticed: Option<(Signal, Action)>) -> bool {
        let Some((_, action)) = noticed else {
            return false;
        };
        self.count(noticed);
        match action {
            Action::Shorten => {
                self.halve();
                return false;
            }
            Action::RollBack | Action::FullPhase => {}
            Action::ResetPredictor => self.known = 0,
        }
        self.consecutive = 0;
        self.enter(Phase::Full, 2 * spec.full_steps);
        true
    }

    fn count(&mut self, noticed: Option<(Signal, Action)>) {
        let counters = &mut self.counters;
        match noticed {
            Some((Signal::Loss, _)) => counters.loss_signals += 1,
            Some((Signal::Gradient, _)) => counters.gradient_signals += 1,
            Some((Signal::PredictionError, _)) => counters.error_signals += 1,
            Some((Signal::Oscillation, _)) => counters.oscillation_signals += 1,
            None => {}
        }
    }

    fn halve(&mut self) {
        self.horizon = (self.horizon / 2).max(1);
    }

    /// `num` predicted updates were made. Returns whether they have to be checked now.
    pub fn add_predicted(&mut self, spec: &HybridSpec, num: usize) -> bool {
        self.counters.predicted += num as u64;
        self.done += num;
        let interval = spec.correction_interval.unwrap_or(self.length);
        self.done >= self.length || self.done - self.checked >= interval
    }

    /// Decides about the updates since the last check by the loss on the probe.
    pub fn check(&mut self, spec: &HybridSpec, probe: f64) -> Verdict {
        self.counters.probe_forwards += spec.probe_batches as u64;
        let limit = self.probe + self.probe.abs() * spec.tolerance;
        if !(probe.is_finite() && probe <= limit) {
            let size = self.probe.abs().max(f64::MIN_POSITIVE);
            let error = ((probe - self.probe) / size).abs();
            self.reject(spec, error);
            let noticed = self.watch.rejected(&spec.limits, error);
            self.notice(spec, noticed);
            return Verdict::Rejected;
        }
        self.probe = probe;
        self.checked = self.done;
        if self.done >= self.length {
            self.judge(true);
            self.error = 0.0;
            self.horizon = (self.horizon * 2).min(spec.max_predict_steps);
            self.enter(Phase::Correct, spec.correction_steps);
        }
        Verdict::Accepted
    }

    /// Ends a prediction whose updates since the last check are rolled back, with its error: infinite or NaN if
    /// something was not finite.
    fn reject(&mut self, spec: &HybridSpec, error: f64) {
        self.counters.rolled_back += (self.done - self.checked) as u64;
        self.counters.rejections += 1;
        self.judge(false);
        // `min` of a NaN is the limit.
        self.error = error.min(MAX_ERROR);
        self.halve();
        self.enter(Phase::Correct, spec.correction_steps);
    }

    fn judge(&mut self, is_kept: bool) {
        let kept = if is_kept { 1.0 } else { 0.0 };
        self.history = HISTORY_DECAY * self.history + (1.0 - HISTORY_DECAY) * kept;
    }

    fn enter(&mut self, phase: Phase, length: usize) {
        if self.phase == Phase::Predict {
            self.known = 0;
        }
        self.phase = phase;
        self.done = 0;
        self.checked = 0;
        self.length = length;
    }
}
