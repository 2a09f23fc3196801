//! The rules of `[on_failure]` and `[limits]`.

use super::Point;
use super::recipe::contradiction;
use crate::diagnostic::Diagnostic;
use crate::spec::failure::{FailureClass, FailurePolicy};
use crate::spec::kind::show_duration;
use crate::spec::section::Choice;

fn policy<'a>(point: &'a Point<'_>, class: FailureClass) -> Option<&'a FailurePolicy> {
    point.spec.on_failure.get(&class)
}

/// Training is deterministic: from the same checkpoint, a loss becomes no number again.
pub fn not_finite_is_retried_differently(point: &Point<'_>) -> Option<Diagnostic> {
    let policy = policy(point, FailureClass::NotFinite)?;
    (policy.retries > 0 && policy.learning_rate_factor.is_none()).then(|| {
        let message = "`on_failure.not_finite.retries` is written, and nothing would be different at a retry";
        contradiction(point, "on_failure.not_finite.retries", message)
            .note("a run goes on from its checkpoint to the same numbers, and would fail again in the same way")
            .help("add `learning_rate_factor = 0.1`, which each retry multiplies the learning rate by, or remove `retries`")
    })
}

/// What is for retries, where there are none.
pub fn settings_of_retries_are_used(point: &Point<'_>) -> Option<Diagnostic> {
    let mut written = point.spec.on_failure.iter().flat_map(|(class, policy)| {
        let keys = ["learning_rate_factor", "backoff"].into_iter();
        let unused = keys.filter(|_| policy.retries == 0);
        unused.map(|key| (format!("on_failure.{}", class.name()), key))
    });
    let (table, key) =
        written.find(|(table, key)| point.root.at(&format!("{table}.{key}")).is_some())?;
    let message = format!("`{table}.{key}` is written, and the run is not tried again");
    Some(
        contradiction(point, &format!("{table}.{key}"), message)
            .help(format!("add `retries = 2` beside it, or remove `{key}`")),
    )
}

/// The limit is over all attempts: a retry would have no time left.
pub fn timeouts_are_not_retried(point: &Point<'_>) -> Option<Diagnostic> {
    let policy = policy(point, FailureClass::Timeout)?;
    (policy.retries > 0).then(|| {
        let message = "`on_failure.timeout.retries` is written, and a run that passed its limit has no time left";
        contradiction(point, "on_failure.timeout.retries", message)
            .note("`limits.run` is the time of a run over all its attempts")
            .help("write a larger `limits.run`, and remove `retries`")
    })
}

pub fn timeout_has_a_limit(point: &Point<'_>) -> Option<Diagnostic> {
    policy(point, FailureClass::Timeout)?;
    point.spec.limits.run.is_none().then(|| {
        let message = "`on_failure.timeout` is written, and runs have no time limit";
        contradiction(point, "on_failure.timeout", message)
            .help("add `[limits]` with `run = \"2h\"`, or remove `on_failure.timeout`")
    })
}

pub fn limit_of_a_run_can_be_passed(point: &Point<'_>) -> Option<Diagnostic> {
    let (run, experiment) = (point.spec.limits.run?, point.spec.limits.experiment?);
    (run >= experiment).then(|| {
        let message = format!(
            "`limits.run` is {}, and the experiment stops after {}: no run can pass its limit",
            show_duration(run),
            show_duration(experiment)
        );
        Diagnostic::warning("contradiction", message)
            .at(point.span("limits.run"))
            .help("write a shorter `run`, or a longer `experiment`")
    })
}
