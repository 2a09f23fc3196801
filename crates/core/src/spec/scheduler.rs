//! `[scheduler]`: the learning rate at each step as a multiple of the optimizer's.

use serde::{Deserialize, Serialize};

use super::backend::power;
use super::kind::Kind;
use super::metric::{Objective, min_delta};
use super::own::{AnySchedule, OrOwn, OwnSchedule, Used, names_of};
use super::section::{Choice, Section, choices};

/// The `[scheduler]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchedulerSpec {
    /// Warm-up steps, over which the rate rises linearly from zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_steps: Option<usize>,
    /// The same in epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_epochs: Option<usize>,
    /// The schedule after the warm-up.
    #[serde(flatten)]
    pub curve: Curve,
}

/// The learning rate schedules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Curve {
    /// It stays.
    Constant,
    /// Linear decay.
    Linear {
        /// The final fraction.
        final_fraction: f64,
        /// The unit of changes.
        unit: Unit,
    },
    /// Cosine decay (Loshchilov and Hutter, 2017, without restarts).
    Cosine {
        /// The final fraction.
        final_fraction: f64,
        /// The unit of changes.
        unit: Unit,
    },
    /// Multiplied by a factor at each step or epoch.
    Exponential {
        /// The number.
        gamma: f64,
        /// How often.
        unit: Unit,
    },
    /// Multiplied by a factor at intervals.
    Step {
        /// The interval in steps or epochs.
        step_size: usize,
        /// The number.
        gamma: f64,
        /// Of `step_size`.
        unit: Unit,
    },
    /// Multiplied by a factor at some steps or epochs.
    MultiStep {
        /// The steps or epochs, in order.
        milestones: Vec<usize>,
        /// The number.
        gamma: f64,
        /// Of `milestones`.
        unit: Unit,
    },
    /// Decay with the inverse square root of the step (Vaswani et al., 2017).
    Noam,
    /// Cosine decay with restarts (Loshchilov and Hutter, 2017).
    CosineRestarts {
        /// Steps or epochs of the first cycle.
        period: usize,
        /// Factor by which each cycle is longer than the one before.
        period_factor: usize,
        /// The final fraction of a cycle.
        final_fraction: f64,
        /// Of `period`.
        unit: Unit,
    },
    /// A single cosine rise and fall (Smith and Topin, 2018).
    OneCycle {
        /// Fraction of the training at which it peaks.
        peak_at: f64,
        /// The initial fraction.
        initial_fraction: f64,
        /// The final fraction.
        final_fraction: f64,
    },
    /// Multiplied by a factor when a metric has stopped improving.
    ReduceOnPlateau {
        /// The metric; the objective when not set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metric: Option<Objective>,
        /// Epochs without improvement that are tolerated.
        patience: usize,
        /// The least improvement that counts.
        min_delta: f64,
        /// The number.
        gamma: f64,
        /// The final fraction.
        final_fraction: f64,
    },
    /// A sequence of schedules.
    Sequence {
        /// The curves.
        stages: Vec<Stage>,
    },
    /// A schedule of the program's own.
    Own(Used),
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
    /// Factor of its rates.
    pub fraction: f64,
    /// The schedule.
    #[serde(flatten)]
    pub curve: Curve,
}

choices! {
    /// The unit of a schedule.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Unit {
        Step "step" "Optimizer updates.",
        Epoch "epoch" "Epochs: the rate changes only between them.",
    }
}

choices! {
    /// The `type` of `[scheduler]`.
    pub enum CurveKind {
        Constant "constant" "Constant learning rate.",
        Linear "linear" "Linear decay over the whole training.",
        Cosine "cosine" "Cosine decay over the whole training.",
        Exponential "exponential" "Multiplied by `gamma` at each step or epoch.",
        Step "step" "Multiplied by `gamma` every `step_size` steps or epochs.",
        MultiStep "multi_step" "Multiplied by `gamma` at each of `milestones`.",
        CosineRestarts "cosine_restarts" "Cosine decay with warm restarts (Loshchilov and Hutter, 2017).",
        Noam "noam" "Decay with the inverse square root of the step, starting after the warm-up (Vaswani et al., 2017).",
        OneCycle "one_cycle" "One-cycle policy: a single cosine rise and fall (Smith and Topin, 2018).",
        ReduceOnPlateau "reduce_on_plateau" "Multiplied by `gamma` when a metric has stopped improving.",
        Sequence "sequence" "A sequence of schedules: `[[scheduler.stages]]`.",
    }
}

/// The schedules that a stage may have: those that are only a shape over a length.
const STAGE_KINDS: usize = 7;

/// A [`CurveKind`] as part of a stage.
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

/// The names of the built-in types.
pub(super) fn built_in_types() -> impl Iterator<Item = &'static str> {
    names_of::<CurveKind>()
}

impl SchedulerSpec {
    /// The metric that it follows, if it is set.
    pub fn metric(&self) -> Option<Objective> {
        match self.curve {
            Curve::ReduceOnPlateau { metric, .. } => metric,
            _ => None,
        }
    }

    /// A schedule of the program's own in it.
    pub fn own(&self) -> Option<&Used> {
        let stages = match &self.curve {
            Curve::Sequence { stages } => stages.as_slice(),
            _ => &[],
        };
        let curves = stages.iter().map(|stage| &stage.curve);
        curves.chain([&self.curve]).find_map(|curve| match curve {
            Curve::Own(used) => Some(used),
            _ => None,
        })
    }

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
                "The learning rate schedule after the warm-up.",
                Some(AnySchedule::BuiltIn(CurveKind::Constant)),
                |s, schedule| match schedule {
                    AnySchedule::BuiltIn(kind) => Curve::decode(s, kind),
                    AnySchedule::Own(part) => Curve::Own(Used::decode(s, part)),
                },
            ),
            warmup_steps: s
                .field(
                    "warmup_steps",
                    Kind::at_least(0),
                    "Steps over which the learning rate rises linearly from zero; no warm-up when not set, nor with `one_cycle`.",
                )
                .optional(),
            warmup_epochs: s
                .field(
                    "warmup_epochs",
                    Kind::at_least(0),
                    "Epochs over which the learning rate rises linearly from zero, updated at each step; not with `one_cycle`.",
                )
                .optional(),
        }
    }
}

impl Curve {
    /// The unit.
    pub fn unit(&self) -> Unit {
        match self {
            Curve::Linear { unit, .. }
            | Curve::Cosine { unit, .. }
            | Curve::Exponential { unit, .. }
            | Curve::Step { unit, .. }
            | Curve::MultiStep { unit, .. }
            | Curve::CosineRestarts { unit, .. } => *unit,
            Curve::Constant
            | Curve::Noam
            | Curve::OneCycle { .. }
            | Curve::ReduceOnPlateau { .. }
            | Curve::Sequence { .. }
            | Curve::Own(_) => Unit::Step,
        }
    }

    /// How often a schedule that follows a metric has lowered the rate after these values of the metric, one per epoch,
    /// as PyTorch's `ReduceLROnPlateau`: after more than `patience` epochs without improvement, and again after as many.
    pub fn num_reductions(&self, metric: Objective, values: impl Iterator<Item = f64>) -> usize {
        let Curve::ReduceOnPlateau {
            patience,
            min_delta,
            ..
        } = self
        else {
            return 0;
        };
        let (mut waited, mut num) = (0, 0);
        for is_improvement in metric.improvements(*min_delta, values) {
            waited = if is_improvement { 0 } else { waited + 1 };
            if waited > *patience {
                (waited, num) = (0, num + 1);
            }
        }
        num
    }

    /// The factor after that many reductions.
    pub fn reduced(&self, num_reductions: usize) -> f64 {
        match self {
            Curve::ReduceOnPlateau {
                gamma,
                final_fraction,
                ..
            } => power(*gamma, num_reductions).max(*final_fraction),
            _ => 1.0,
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
                        "Steps or epochs (see `unit`) between changes.",
                    )
                    .required(),
                gamma: s.field("gamma", part(), GAMMA).or(0.1),
                unit: unit(s),
            },
            CurveKind::MultiStep => Curve::MultiStep {
                milestones: s
                    .field(
                        "milestones",
                        Kind::List {
                            item: Box::new(Kind::at_least(1)),
                            min_items: 1,
                            unique: true,
                        },
                        "Steps or epochs (see `unit`) after which the learning rate changes, in increasing order.",
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
                        "Steps or epochs (see `unit`) of the first cycle.",
                    )
                    .required(),
                period_factor: s
                    .field(
                        "period_factor",
                        Kind::Int(1, 1000),
                        "Factor by which each cycle is longer than the one before.",
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
                        "Fraction of the training at which the learning rate peaks.",
                    )
                    .or(0.3),
                initial_fraction: s
                    .field(
                        "initial_fraction",
                        part(),
                        "Initial learning rate, as a fraction of the peak.",
                    )
                    .or(0.04),
                // As in PyTorch: a ten-thousandth of the initial rate.
                final_fraction: final_fraction(s, 4e-6),
            },
            CurveKind::ReduceOnPlateau => Curve::ReduceOnPlateau {
                metric: Objective::watched(s),
                patience: s
                    .field(
                        "patience",
                        Kind::at_least(0),
                        "Epochs without improvement that are tolerated, as in PyTorch: the rate is lowered after one more.",
                    )
                    .or(10),
                min_delta: min_delta(s),
                gamma: s.field("gamma", part(), GAMMA).or(0.1),
                final_fraction: final_fraction(s, 0.0),
            },
            CurveKind::Sequence => Curve::Sequence {
                stages: s.tables(
                    "stages",
                    "The schedules that follow the warm-up, each with its length; the last one covers the rest of the training.",
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
            curve: s.variant(
                "The learning rate schedule.",
                None,
                |s, schedule: OrOwn<StageKind, OwnSchedule>| match schedule {
                    OrOwn::BuiltIn(kind) => Curve::decode(s, kind.0),
                    OrOwn::Own(part) => Curve::Own(Used::decode(s, part)),
                },
            ),
            epochs: s
                .field(
                    "epochs",
                    length.clone(),
                    "Length in epochs; the last stage has none.",
                )
                .optional(),
            steps: s
                .field(
                    "steps",
                    length,
                    "Length in steps; the last stage has none.",
                )
                .optional(),
            fraction: s
                .field(
                    "fraction",
                    part(),
                    "Factor that multiplies its rates, so that a stage can continue where the previous one ended.",
                )
                .or(1.0),
        }
    }

    /// Its length in steps, if it has one.
    pub fn num_steps(&self, steps_per_epoch: usize) -> Option<usize> {
        let epochs = self.epochs.map(|num| num.saturating_mul(steps_per_epoch));
        epochs.or(self.steps)
    }
}

const GAMMA: &str = "Factor that multiplies the learning rate.";

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
        "The unit of the schedule; with `epoch`, the rate changes only between epochs.",
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
        "Fraction of the learning rate that remains at the end.",
    )
    .or(default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::metric::Metric;

    /// Reductions after each epoch, from `torch.optim.lr_scheduler.ReduceLROnPlateau` of PyTorch 2.15 with
    /// `threshold_mode="abs"`.
    #[test]
    fn plateaus_are_those_of_pytorch() {
        let losses = [
            0.85,
            0.81,
            0.73,
            0.56,
            0.81,
            0.4,
            0.51,
            f64::NAN,
            0.56,
            0.23,
            0.43,
            0.26,
            0.27,
            0.2,
            0.28,
            0.11,
            0.18,
            0.2,
            0.3,
            -0.06,
            0.24,
            0.19,
            0.06,
            0.11,
        ];
        let reductions = [
            0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4,
        ];
        let curve = Curve::ReduceOnPlateau {
            metric: None,
            patience: 2,
            min_delta: 0.05,
            gamma: 0.5,
            final_fraction: 0.1,
        };
        let loss = Objective::valid(Metric::Loss);
        let accuracy = Objective::valid(Metric::Accuracy);
        for (at, expected) in reductions.into_iter().enumerate() {
            let seen = &losses[..=at];
            assert_eq!(curve.num_reductions(loss, seen.iter().copied()), expected);
            let mirrored = seen.iter().map(|loss| 1.0 - loss);
            assert_eq!(curve.num_reductions(accuracy, mirrored), expected);
        }
        assert_eq!(curve.num_reductions(loss, [].into_iter()), 0);
        assert_eq!(
            [0, 1, 3, 4].map(|num| curve.reduced(num)),
            [1.0, 0.5, 0.125, 0.1]
        );
    }
}
