//! Losses, optimizers, schedules and strategies of the program.

use std::any::Any;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Entry, OrOwn, OwnMetric, Part, Parts, Settings, Used, recorded, restored};
use crate::spec::scheduler::CurveKind;
use crate::spec::section::Section;
use crate::spec::task::TaskKind;

/// A loss of the program.
#[derive(Clone, Copy)]
pub struct OwnLoss {
    /// Its name and keys.
    pub entry: Entry,
    /// The tasks that it supports.
    pub tasks: &'static [TaskKind],
    /// Whether outputs are logits: of classes under a softmax, of labels under a sigmoid.
    pub of_logits: bool,
    /// What the crate of networks computes it with.
    pub module: &'static (dyn Any + Send + Sync),
}

/// An optimizer of the program.
#[derive(Clone, Copy)]
pub struct OwnOptimizer {
    /// Its name and keys.
    pub entry: Entry,
    /// The weight decay of parameters without a group; none if it has no weight decay.
    pub weight_decay: fn(&Settings) -> Option<f64>,
    /// The number of tensors of a parameter's size that it keeps.
    pub num_states: fn(&Settings) -> u64,
    /// What the crate of networks builds it with.
    pub module: &'static (dyn Any + Send + Sync),
}

/// A strategy of the program.
#[derive(Clone, Copy)]
pub struct OwnStrategy {
    /// Its name and keys.
    pub entry: Entry,
    /// How many tensors of each parameter's size it keeps.
    pub num_kept: fn(&Settings) -> u64,
    /// What the crate of networks applies it with.
    pub module: &'static (dyn Any + Send + Sync),
}

/// A learning rate schedule of the program.
#[derive(Clone, Copy)]
pub struct OwnSchedule {
    /// Its name and keys.
    pub entry: Entry,
    /// The factor of the learning rate at a step.
    pub factor: fn(&Settings, Place) -> f64,
}

macro_rules! parts {
    ($($part:ident $kind:literal $field:ident)+) => {$(
        impl Part for $part {
            const KIND: &'static str = $kind;

            fn of(parts: &Parts) -> &[Self] {
                &parts.$field
            }

            fn entry(&self) -> &Entry {
                &self.entry
            }
        }
    )+};
}

parts! {
    OwnLoss "loss" losses
    OwnOptimizer "optimizer" optimizers
    OwnSchedule "schedule" schedules
    OwnStrategy "strategy" strategies
    OwnMetric "metric" metrics
}

/// A step of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of updates before it, from the end of the warm-up, or the beginning of its stage.
    pub step: usize,
    /// The number of updates that the schedule lasts.
    pub num_steps: usize,
    /// The updates of an epoch.
    pub steps_per_epoch: usize,
}

/// A learning rate schedule, written in Rust: a function of the step alone, so that a resumed run goes on with it.
///
/// ```
/// use runner_core::spec::kind::Kind;
/// use runner_core::spec::own::{Place, SchedulePart};
/// use runner_core::spec::section::Section;
///
/// use serde::{Deserialize, Serialize};
///
/// struct Polynomial;
///
/// #[derive(Serialize, Deserialize)]
/// struct Settings {
///     power: f64,
/// }
///
/// impl SchedulePart for Polynomial {
///     const NAME: &'static str = "polynomial";
///     const DOC: &'static str = "Falls as a power of the fraction of steps that are left.";
///     type Settings = Settings;
///
///     fn settings(section: &mut Section<'_>) -> Settings {
///         let power = section.field("power", Kind::positive(), "The power.");
///         Settings { power: power.or(2.0) }
///     }
///
///     fn factor(settings: &Settings, at: Place) -> f64 {
///         (1.0 - at.step as f64 / at.num_steps as f64).powf(settings.power)
///     }
/// }
/// ```
pub trait SchedulePart: 'static {
    /// Its `type` in experiment files: lowercase letters, digits and `_`.
    const NAME: &'static str;
    /// Its meaning, as one sentence.
    const DOC: &'static str;
    /// Its settings: a struct. They are written to `run.toml` as serde serializes them, and determine a run's
    /// fingerprint.
    type Settings: Serialize + DeserializeOwned;

    /// Reads its keys.
    fn settings(section: &mut Section<'_>) -> Self::Settings;

    /// The factor of `optimizer.learning_rate`: at least 0, and finite.
    fn factor(settings: &Self::Settings, at: Place) -> f64;
}

/// The entry of a schedule in the table of parts.
pub fn schedule<S: SchedulePart>() -> OwnSchedule {
    OwnSchedule {
        entry: Entry {
            name: S::NAME,
            doc: S::DOC,
            decode: |section| recorded(&S::settings(section)),
        },
        factor: |settings, at| S::factor(&restored(settings), at),
    }
}

/// The factor of the learning rate at a step.
///
/// # Errors
/// If this program does not have the schedule, or it panicked or broke its promise.
pub fn factor(used: &Used, at: Place) -> Result<f64, String> {
    let name = &used.part;
    let part = OwnSchedule::named(name);
    let part = part.ok_or_else(|| OwnSchedule::missing(name).unwrap_or_default())?;
    let step = at.step;
    let factor = OwnSchedule::guarded(name, &format!("at step {step}"), || {
        (part.factor)(&used.settings, at)
    })?;
    if factor >= 0.0 && factor.is_finite() {
        return Ok(factor);
    }
    let promise =
        format!("its factor at step {step} is {factor}, and must be at least 0 and finite");
    Err(OwnSchedule::broken(name, promise))
}

/// A schedule, built in or of the program.
pub type AnySchedule = OrOwn<CurveKind, OwnSchedule>;
