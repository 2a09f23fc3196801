//! Why a training fails, in words that are the same wherever it runs.

use std::fmt;

use crate::digest::NoNumber;
use runner_core::event::{FailureClass, Metrics, Outcome};
use runner_core::plan::RunPlan;
use runner_core::spec::metric::Objective;

/// A split that delivered a different number of items than it has.
#[derive(Debug, PartialEq)]
pub struct WrongCount {
    /// The split.
    pub split: &'static str,
    /// The delivered number.
    pub delivered: usize,
    /// The planned number.
    pub planned: usize,
}

impl WrongCount {
    /// Compares the delivered number with the plan.
    pub fn check(split: &'static str, delivered: usize, planned: usize) -> Result<(), Self> {
        if delivered == planned {
            return Ok(());
        }
        Err(Self {
            split,
            delivered,
            planned,
        })
    }
}

impl fmt::Display for WrongCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            split,
            delivered,
            planned,
        } = self;
        write!(
            f,
            "the {split} split delivered {delivered} of {planned} items, so its metrics would be incomplete; run the command again, and if that does not help, remove the cache folder (`burn-runner` in `~/.cache` or `$XDG_CACHE_HOME`), whose decoded data may be damaged"
        )
    }
}

impl std::error::Error for WrongCount {}

/// The failure of an incomplete split.
pub fn wrong_count(wrong: WrongCount) -> Outcome {
    Outcome::failed(FailureClass::Data, wrong.to_string())
}

/// NaN cannot be recorded: it ends a run. The names of `metrics` are shown after `prefix`.
pub fn all_finite(metrics: &Metrics, prefix: &str) -> Result<(), Outcome> {
    let wrong = metrics.iter().find(|(_, value)| !value.is_finite());
    match wrong {
        None => Ok(()),
        Some((name, _)) => Err(Outcome::failed(
            FailureClass::NotFinite,
            format!(
                "the metric {prefix}{name} is infinite or NaN; lower `optimizer.learning_rate`, or remove it from `task.metrics`"
            ),
        )),
    }
}

/// Refuses the metrics of an epoch without those that decide: of a split with one class, areas are not defined.
pub fn all_deciding(metrics: &Metrics, plan: &RunPlan) -> Result<(), Outcome> {
    let deciding = [
        Some(plan.objective),
        plan.watched(),
        plan.scheduler.metric(),
    ];
    let mut deciding = deciding.into_iter().flatten().map(Objective::name);
    match deciding.find(|name| !metrics.contains_key(name)) {
        None => Ok(()),
        Some(name) => Err(Outcome::failed(
            FailureClass::Data,
            format!(
                "`{name}` is not defined, because no class has both items and others in its split; use another metric, or a split with both"
            ),
        )),
    }
}

/// The failure of a parameter that is infinite or NaN after an update.
pub fn weights_not_finite(NoNumber(path): &NoNumber, step: usize) -> Outcome {
    Outcome::failed(
        FailureClass::NotFinite,
        format!(
            "the weights of `{path}` are infinite or NaN after step {step}; lower `optimizer.learning_rate`, or set `optimizer.clip`"
        ),
    )
}

/// What to do about a training whose numbers became infinite or NaN, in a step counted from the first one if it is known.
pub fn how_to_stay_finite(step: Option<usize>) -> &'static str {
    if step == Some(1) {
        "; no weight was updated before, so the learning rate cannot be the cause: scale the data, or change the layers or their first weights"
    } else {
        "; lower `optimizer.learning_rate`, or set `optimizer.clip`"
    }
}
