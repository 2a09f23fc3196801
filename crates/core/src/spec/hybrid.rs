//! `[strategy] type = "hybrid"`: training that predicts some of its updates.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::section::{Section, choices};
use crate::diagnostic::Diagnostic;

/// The settings of `[strategy] type = "hybrid"`, after its preset.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HybridSpec {
    /// What predicts updates.
    pub predictor: Predictor,
    /// How a prediction is spent.
    pub mode: Mode,
    /// Real updates before the first full phase.
    pub warmup_steps: usize,
    /// Real updates of a full phase.
    pub full_steps: usize,
    /// Real updates after a prediction.
    pub correction_steps: usize,
    /// The most updates that are predicted at once.
    pub max_predict_steps: usize,
    /// The confidence that a prediction needs.
    pub confidence_threshold: f64,
    /// Predicted steps between two checks; only of `mode = "steps"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction_interval: Option<usize>,
    /// How much the loss on the probe may grow, relative to it.
    pub tolerance: f64,
    /// Batches of the probe.
    pub probe_batches: usize,
    /// Weights that the predictor knows; 0 for a predictor that needs none.
    pub snapshots: usize,
    /// The factor of each further repetition; only of `momentum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decay: Option<f64>,
    /// The directions of the linear map; only of `dmd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// The limits beyond which a training seems to diverge.
    #[serde(flatten)]
    pub limits: Limits,
}

/// The limits beyond which a training seems to diverge.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Standard deviations of the loss above its mean.
    pub max_loss_sigma: f64,
    /// The norm of the gradients relative to its mean.
    pub max_gradient_factor: f64,
    /// The increase of the loss on the probe in a prediction, relative to it.
    pub max_prediction_error: f64,
    /// The share of steps in which the smooth loss turns around.
    pub max_oscillation: f64,
}

choices! {
    /// What predicts updates.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Predictor {
        Hold "hold" "No update: the control, which shows what the other predictors add to leaving updates out.",
        Momentum "momentum" "The last update again, multiplied by `decay` once more for each repetition.",
        Linear "linear" "The slope of a line through the last `snapshots` weights, by least squares for each number.",
        Dmd "dmd" "Dynamic mode decomposition (Schmid, 2010): the linear map of rank `rank` by which the last updates follow each other, applied again.",
        Rssm "rssm" "A recurrent state-space model (Hafner et al., 2019) of the loss, the gradients and the updates, which learns during the training how each update follows from those before it.",
    }
}

choices! {
    /// How a prediction is spent.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Mode {
        Steps "steps" "A predicted update takes the place of a real one: its batch has a forward pass, and no backward pass.",
        Jump "jump" "Many predicted updates at once between two batches, without data: no batch is left out.",
    }
}

choices! {
    /// The settings that the others override.
    pub enum Preset {
        Conservative "conservative" "Long full phases, short predictions, high confidence.",
        Balanced "balanced" "Between the other two.",
        Aggressive "aggressive" "Short full phases, long predictions, low confidence.",
    }
}

impl Preset {
    /// The numbers of the source's table of presets: warm-up, full, most predicted, confidence, interval of checks.
    fn numbers(self) -> (usize, usize, usize, f64, usize) {
        match self {
            Self::Conservative => (200, 30, 25, 0.90, 5),
            Self::Balanced => (100, 20, 40, 0.85, 10),
            Self::Aggressive => (50, 15, 80, 0.75, 20),
        }
    }
}

impl Limits {
    fn decode(s: &mut Section<'_>, preset: Preset) -> Self {
        let (sigma, factor) = match preset {
            Preset::Conservative => (2.2, 50.0),
            Preset::Balanced => (2.5, 100.0),
            Preset::Aggressive => (3.5, 200.0),
        };
        let max_loss_sigma: Option<f64> = s
            .field(
                "max_loss_sigma",
                Kind::positive(),
                "Standard deviations above the mean of earlier losses beyond which a loss ends a prediction early. Beyond twice as many, the prediction is rolled back, and a full phase follows a real step. By `preset` 2.2, 2.5 or 3.5 when not set.",
            )
            .optional();
        let max_gradient_factor: Option<f64> = s
            .field(
                "max_gradient_factor",
                Kind::positive(),
                "How many times the mean norm of earlier gradients resets the predictor; a norm below a hundredth of the mean does too. By `preset` 50, 100 or 200 when not set.",
            )
            .optional();
        Self {
            max_loss_sigma: max_loss_sigma.unwrap_or(sigma),
            max_gradient_factor: max_gradient_factor.unwrap_or(factor),
            max_prediction_error: s
                .field(
                    "max_prediction_error",
                    Kind::non_negative(),
                    "The increase of the loss on the probe, relative to it, beyond which a prediction that is not kept resets the predictor.",
                )
                .or(0.5),
            max_oscillation: s
                .field(
                    "max_oscillation",
                    Kind::between(0.0, 1.0),
                    "The share of the last 20 steps in which the smoothed loss may turn around; beyond it, a prediction ends early.",
                )
                .or(0.8),
        }
    }
}

impl HybridSpec {
    /// How many copies of the weights it keeps: the known ones, and those that a rollback restores.
    pub fn num_copies(&self) -> u64 {
        self.snapshots as u64 + 1
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let preset = s.choice(
            "preset",
            "The values of `warmup_steps`, `full_steps`, `max_predict_steps`, `confidence_threshold` and `correction_interval` that are not set: 200, 30, 25, 0.9 and 5 for `conservative`, 100, 20, 40, 0.85 and 10 for `balanced`, 50, 15, 80, 0.75 and 20 for `aggressive`.",
            Preset::Balanced,
        );
        let (warmup, full, most, confidence, interval) = preset.numbers();
        let predictor = s.choice("predictor", "What predicts updates.", Predictor::Linear);
        let mode = s.choice("mode", "How a prediction is spent.", Mode::Steps);
        let count = |s: &mut Section<'_>, key, min, doc, default| -> usize {
            let set: Option<usize> = s.field(key, Kind::at_least(min), doc).optional();
            set.unwrap_or(default)
        };
        let warmup_steps = count(
            s,
            "warmup_steps",
            0,
            "Real updates before the first full phase.",
            warmup,
        );
        let full_steps = count(s, "full_steps", 1, "Real updates of a full phase.", full);
        let correction_steps = s
            .field(
                "correction_steps",
                Kind::at_least(1),
                "Real updates after each prediction.",
            )
            .or(5);
        let max_predict_steps = count(
            s,
            "max_predict_steps",
            1,
            "The most updates that are predicted at once. A rejected prediction halves it, an accepted one doubles it, up to this number.",
            most,
        );
        let threshold: Option<f64> = s
            .field(
                "confidence_threshold",
                Kind::between(0.0, 1.0),
                "The confidence below which a full phase follows instead of a prediction.",
            )
            .optional();
        let interval = {
            let doc = "Predicted steps after which the loss on the probe decides whether they are kept. Only with `mode = \"steps\"`: a jump is always checked at once.";
            let set: Option<usize> = s
                .field("correction_interval", Kind::at_least(1), doc)
                .optional();
            (mode == Mode::Steps).then(|| set.unwrap_or(interval))
        };
        let tolerance = s
            .field(
                "tolerance",
                Kind::non_negative(),
                "How much the loss on the probe may grow from one check of a prediction to the next, relative to the earlier loss.",
            )
            .or(0.0);
        let probe_batches = s
            .field(
                "probe_batches",
                Kind::at_least(1),
                "Batches of the probe: items of the train split that are chosen by the seed, and are the same in the whole training.",
            )
            .or(1);
        let snapshots: Option<usize> = s
            .field(
                "snapshots",
                Kind::at_least(2),
                "Weights that `linear`, `dmd` and `rssm` predict from: those after the last updates, one for each. 5 for `linear` and `rssm` and 8 for `dmd` when not set.",
            )
            .optional();
        let decay: Option<f64> = s
            .field(
                "decay",
                Kind::Float {
                    min: 0.0,
                    open_min: true,
                    max: 1.0,
                    open_max: false,
                },
                "The factor of each repetition of the last update, for `momentum`. 0.9 when not set.",
            )
            .optional();
        let rank: Option<usize> = s
            .field(
                "rank",
                Kind::at_least(1),
                "Directions of the linear map that `dmd` fits: at most `snapshots` - 2. 3 when not set.",
            )
            .optional();
        let spec = Self {
            predictor,
            mode,
            warmup_steps,
            full_steps,
            correction_steps,
            max_predict_steps,
            confidence_threshold: threshold.unwrap_or(confidence),
            correction_interval: interval,
            tolerance,
            probe_batches,
            snapshots: match predictor {
                Predictor::Hold => 0,
                Predictor::Momentum => 2,
                Predictor::Linear | Predictor::Rssm => snapshots.unwrap_or(5),
                Predictor::Dmd => snapshots.unwrap_or(8),
            },
            decay: (predictor == Predictor::Momentum).then(|| decay.unwrap_or(0.9)),
            rank: (predictor == Predictor::Dmd).then(|| rank.unwrap_or(3)),
            limits: Limits::decode(s, preset),
        };
        spec.refuse_keys_without_effect(s);
        spec.refuse_rank(s);
        spec.refuse_few_snapshots(s);
        spec
    }

    /// Keys of other predictors or of the other mode.
    fn refuse_keys_without_effect(&self, s: &mut Section<'_>) {
        let other = |key: &'static str, wants: &str, is_used: bool| {
            (!is_used).then(|| (key, wants.to_owned()))
        };
        let found = [
            other(
                "snapshots",
                "predictor = \"linear\"",
                !matches!(self.predictor, Predictor::Hold | Predictor::Momentum),
            ),
            other(
                "rank",
                "predictor = \"dmd\"",
                self.predictor == Predictor::Dmd,
            ),
            other(
                "decay",
                "predictor = \"momentum\"",
                self.predictor == Predictor::Momentum,
            ),
            other(
                "correction_interval",
                "mode = \"steps\"",
                self.mode == Mode::Steps,
            ),
        ];
        for (key, wants) in found.into_iter().flatten() {
            if let Some(span) = s.written_at(key) {
                let message = format!("`strategy.{key}` has no effect without `{wants}`");
                let refusal = Diagnostic::error("contradiction", message)
                    .at(span)
                    .help(format!("remove `{key}`, or set `{wants}`"));
                s.refuse(key, refusal);
            }
        }
    }

    /// A predictor that learns compares an update with at least one before it.
    fn refuse_few_snapshots(&self, s: &mut Section<'_>) {
        if self.predictor != Predictor::Rssm || self.snapshots > 2 {
            return;
        }
        if let Some(span) = s.written_at("snapshots") {
            let message = "`strategy.snapshots` is 2, but `predictor = \"rssm\"` needs 3";
            let refusal = Diagnostic::error("contradiction", message)
                .at(span)
                .note("an update is the difference between two snapshots, and it learns how one follows from others")
                .help("set `snapshots = 3` or more");
            s.refuse("snapshots", refusal);
        }
    }

    /// More directions than the known updates have.
    fn refuse_rank(&self, s: &mut Section<'_>) {
        let most = self.snapshots.saturating_sub(2);
        let Some(rank) = self.rank.filter(|rank| *rank > most) else {
            return;
        };
        let key = if s.is_written("rank") {
            "rank"
        } else {
            "snapshots"
        };
        let Some(span) = s.written_at(key) else {
            return;
        };
        let message = format!(
            "`strategy.rank` is {rank}, but `strategy.snapshots` is {}: {} snapshots are needed",
            self.snapshots,
            rank + 2
        );
        let refusal = Diagnostic::error("contradiction", message)
            .at(span)
            .note("the map is fitted to the differences between consecutive snapshots and those that follow them")
            .help(format!("set `snapshots = {}`, or a lower `rank`", rank + 2));
        s.refuse(key, refusal);
    }
}
