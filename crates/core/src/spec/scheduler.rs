//! `[scheduler]`: the learning rate at each step as a multiple of the optimizer's.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::section::{Choice, Section, choices};

/// The `[scheduler]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchedulerSpec {
    /// Steps over which the rate rises linearly from zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_steps: Option<usize>,
    /// The same in epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_epochs: Option<usize>,
    /// What it does after that.
    #[serde(flatten)]
    pub curve: Curve,
}

/// What the learning rate does after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Curve {
    /// It stays.
    Constant,
    /// It falls on a line.
    Linear {
        /// What is left at the end, as a fraction.
        final_fraction: f64,
        /// What it changes with.
        unit: Unit,
    },
    /// It falls on half a cosine (Loshchilov and Hutter, 2017, without restarts).
    Cosine {
        /// What is left at the end, as a fraction.
        final_fraction: f64,
        /// What it changes with.
        unit: Unit,
    },
    /// It is multiplied by the same number again and again.
    Exponential {
        /// The number.
        gamma: f64,
        /// How often.
        unit: Unit,
    },
    /// It is multiplied by the same number once in a while.
    Step {
        /// Steps or epochs in between.
        step_size: usize,
        /// The number.
        gamma: f64,
        /// Of `step_size`.
        unit: Unit,
    },
    /// It falls with the inverse square root of the step (Vaswani et al., 2017).
    Noam,
    /// It falls on half a cosine again and again (Loshchilov and Hutter, 2017).
    CosineRestarts {
        /// Steps or epochs of the first fall.
        period: usize,
        /// How many times longer each one is than the one before.
        period_factor: usize,
        /// What is left at the end of a fall, as a fraction.
        final_fraction: f64,
        /// Of `period`.
        unit: Unit,
    },
    /// It rises and falls once, each on half a cosine (Smith and Topin, 2018).
    OneCycle {
        /// Share of the training after which it is highest.
        peak_at: f64,
        /// Where it begins, as a fraction.
        initial_fraction: f64,
        /// Where it ends, as a fraction.
        final_fraction: f64,
    },
    /// One curve after the other.
    Sequence {
        /// The curves.
        stages: Vec<Stage>,
    },
}

/// A table of `[[scheduler.stages]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Its length; the last stage has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// The same in epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epochs: Option<usize>,
    /// What its rates are multiplied by.
    pub fraction: f64,
    /// What the learning rate does.
    #[serde(flatten)]
    pub curve: Curve,
}

choices! {
    /// What a schedule counts in.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Unit {
        Step "step" "Optimizer updates.",
        Epoch "epoch" "Epochs: the rate changes only between them.",
    }
}

choices! {

    enum CurveKind {
        Constant "constant" "The learning rate stays.",
        Linear "linear" "It falls on a line over the whole training.",
        Cosine "cosine" "It falls on half a cosine over the whole training.",
        Exponential "exponential" "It is multiplied by `gamma` at each step or epoch.",
        Step "step" "It is multiplied by `gamma` every `step_size` steps or epochs.",
        CosineRestarts "cosine_restarts" "It falls on half a cosine again and again (Loshchilov and Hutter, 2017).",
        Noam "noam" "It falls with the inverse square root of the step (Vaswani et al., 2017), from the end of the warm-up on.",
        OneCycle "one_cycle" "It rises and falls once, each on half a cosine (Smith and Topin, 2018).",
        Sequence "sequence" "One curve after the other: `[[scheduler.stages]]`.",
    }
}

/// The curves that a stage may have: those that are nothing but a shape over a length.
const STAGE_KINDS: usize = 6;

/// A [`CurveKind`] as a stage may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StageKind(CurveKind);

impl Choice for StageKind {
    const ALL: &'static [(Self, &'static str, &'static str)] = &{
        let mut all = [(StageKind(CurveKind::Constant), "", ""); STAGE_KINDS];
        let mut at = 0;
        while at < STAGE_KINDS {
            let (kind, name, doc) = CurveKind::ALL[at];
            all[at] = (StageKind(kind), name, doc);
            at += 1;
        }
        all
    };
}

impl SchedulerSpec {
    /// Steps of the warm-up.
    pub fn warmup(&self, steps_per_epoch: usize) -> usize {
        let epochs = self
            .warmup_epochs
            .map(|num| num.saturating_mul(steps_per_epoch));
        epochs.or(self.warmup_steps).unwrap_or(0)
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        Self {
            curve: s.variant(
                "What the learning rate does after the warm-up.",
                Some(CurveKind::Constant),
                Curve::decode,
            ),
            warmup_steps: s
                .field(
                    "warmup_steps",
                    Kind::at_least(0),
                    "Steps over which the learning rate rises linearly from zero; none when not written.",
                )
                .optional(),
            warmup_epochs: s
                .field(
                    "warmup_epochs",
                    Kind::at_least(0),
                    "Epochs over which the learning rate rises linearly from zero, at each step.",
                )
                .optional(),
        }
    }
}

impl Curve {
    /// What it counts in.
    pub fn unit(&self) -> Unit {
        match self {
            Curve::Linear { unit, .. }
            | Curve::Cosine { unit, .. }
            | Curve::Exponential { unit, .. }
            | Curve::Step { unit, .. }
            | Curve::CosineRestarts { unit, .. } => *unit,
            Curve::Constant | Curve::Noam | Curve::OneCycle { .. } | Curve::Sequence { .. } => {
                Unit::Step
            }
        }
    }

    fn decode(s: &mut Section<'_>, kind: CurveKind) -> Self {
        match kind {
            CurveKind::Constant => Curve::Constant,
            CurveKind::Noam => Curve::Noam,
            CurveKind::Linear => Curve::Linear {
                final_fraction: final_fraction(s, 0.0),
                unit: unit(s),
            },
            CurveKind::Cosine => Curve::Cosine {
                final_fraction: final_fraction(s, 0.0),
                unit: unit(s),
            },
            CurveKind::Exponential => Curve::Exponential {
                gamma: s.field("gamma", part(), GAMMA).required(),
                unit: unit(s),
            },
            CurveKind::Step => Curve::Step {
                step_size: s
                    .field(
                        "step_size",
                        Kind::at_least(1),
                        "Steps or epochs (see `unit`) between two changes.",
                    )
                    .required(),
                gamma: s.field("gamma", part(), GAMMA).or(0.1),
                unit: unit(s),
            },
            CurveKind::CosineRestarts => Curve::CosineRestarts {
                period: s
                    .field(
                        "period",
                        Kind::at_least(1),
                        "Steps or epochs (see `unit`) of the first fall.",
                    )
                    .required(),
                period_factor: s
                    .field(
                        "period_factor",
                        Kind::Int(1, 1000),
                        "How many times longer each fall is than the one before.",
                    )
                    .or(1),
                final_fraction: final_fraction(s, 0.0),
                unit: unit(s),
            },
            CurveKind::OneCycle => Curve::OneCycle {
                peak_at: s
                    .field(
                        "peak_at",
                        Kind::fraction(),
                        "Share of the training after which the learning rate is highest.",
                    )
                    .or(0.3),
                initial_fraction: s
                    .field(
                        "initial_fraction",
                        part(),
                        "What the training begins with, as a fraction of the learning rate.",
                    )
                    .or(0.04),
                // PyTorch's: a ten-thousandth of where it began.
                final_fraction: final_fraction(s, 4e-6),
            },
            CurveKind::Sequence => Curve::Sequence {
                stages: s.tables(
                    "stages",
                    "The curves after the warm-up, each over a length of its own; the last one over what is left.",
                    true,
                    Stage::decode,
                ),
            },
        }
    }
}

impl Stage {
    fn decode(s: &mut Section<'_>) -> Self {
        let length = Kind::at_least(1);
        Self {
            curve: s.variant("What the learning rate does.", None, |s, kind: StageKind| {
                Curve::decode(s, kind.0)
            }),
            epochs: s
                .field(
                    "epochs",
                    length.clone(),
                    "Its length in epochs; the last stage has none.",
                )
                .optional(),
            steps: s
                .field(
                    "steps",
                    length,
                    "Its length in steps; the last stage has none.",
                )
                .optional(),
            fraction: s
                .field(
                    "fraction",
                    part(),
                    "What its rates are multiplied by, so that a stage can go on where the one before ended.",
                )
                .or(1.0),
        }
    }

    /// Its length in steps, if it says one.
    pub fn num_steps(&self, steps_per_epoch: usize) -> Option<usize> {
        let epochs = self.epochs.map(|num| num.saturating_mul(steps_per_epoch));
        epochs.or(self.steps)
    }
}

const GAMMA: &str = "What the learning rate is multiplied by.";

/// A number above 0 and at most 1.
fn part() -> Kind {
    Kind::Float {
        min: 0.0,
        open_min: true,
        max: 1.0,
        open_max: false,
    }
}

fn unit(s: &mut Section<'_>) -> Unit {
    s.choice(
        "unit",
        "What the schedule counts in; with `epoch`, the rate changes only between epochs.",
        Unit::Step,
    )
}

fn final_fraction(s: &mut Section<'_>, default: f64) -> f64 {
    let kind = Kind::Float {
        min: 0.0,
        open_min: false,
        max: 1.0,
        open_max: false,
    };
    s.field(
        "final_fraction",
        kind,
        "What is left of the learning rate at the end.",
    )
    .or(default)
}
