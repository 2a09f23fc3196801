//! The rules of `[on_failure]` and `[limits]`.

use super::Point;
use super::recipe::contradiction;
use crate::diagnostic::Diagnostic;
use crate::show::show_duration;
use crate::spec::failure::{FailureClass, FailurePolicy};
use crate::spec::section::Choice;

fn policy<'a>(point: &'a Point<'_>, class: FailureClass) -> Option<&'a FailurePolicy> {
    point.spec.on_failure.get(&class)
}

/// Training is deterministic: from the same checkpoint, a loss becomes NaN again.
pub fn not_finite_is_retried_differently(point: &Point<'_>) -> Option<Diagnostic> {
    let policy = policy(point, FailureClass::NotFinite)?;
    (policy.retries > 0 && policy.learning_rate_factor.is_none()).then(|| {
        let message = "`on_failure.not_finite.retries` has no effect: a retry would be identical";
        contradiction(point, "on_failure.not_finite.retries", message)
            .note("a run resumes from its checkpoint with the same numbers, and would fail in the same way")
            .help("add `learning_rate_factor = 0.1`, which lowers the learning rate at each retry, or remove `retries`")
    })
}

/// Settings for retries, without retries.
pub fn settings_of_retries_are_used(point: &Point<'_>) -> Option<Diagnostic> {
    let mut written = point.spec.on_failure.iter().flat_map(|(class, policy)| {
        let keys = ["learning_rate_factor", "backoff"].into_iter();
        let unused = keys.filter(|_| policy.retries == 0);
        unused.map(|key| (format!("on_failure.{}", class.name()), key))
    });
    let (table, key) =
        written.find(|(table, key)| point.root.at(&format!("{table}.{key}")).is_some())?;
    let message = format!("`{table}.{key}` has no effect without `retries`");
    Some(
        contradiction(point, &format!("{table}.{key}"), message)
            .help(format!("add `retries = 2` to the table, or remove `{key}`")),
    )
}

/// The limit covers all attempts on this machine: a retry would have no time left. Each job of a cluster has its own.
pub fn timeouts_are_not_retried(point: &Point<'_>) -> Option<Diagnostic> {
    let policy = policy(point, FailureClass::Timeout)?;
    (policy.retries > 0 && point.spec.launch.is_local()).then(|| {
        let message = "`on_failure.timeout.retries` has no effect: a run that exceeded its limit has no time left";
        contradiction(point, "on_failure.timeout.retries", message)
            .note("`limits.run` covers all attempts of a run on this machine; only jobs of a cluster have a new limit each")
            .help("raise `limits.run`, and remove `retries`")
    })
}

pub fn timeout_has_a_limit(point: &Point<'_>) -> Option<Diagnostic> {
    policy(point, FailureClass::Timeout)?;
    (point.spec.limits.run.is_none() && point.spec.launch.is_local()).then(|| {
        let message = "`on_failure.timeout` has no effect without a time limit";
        contradiction(point, "on_failure.timeout", message)
            .help("add `[limits]` with `run = \"2h\"`, or remove `on_failure.timeout`")
    })
}

pub fn limit_of_a_run_can_be_passed(point: &Point<'_>) -> Option<Diagnostic> {
    let (run, experiment) = (point.spec.limits.run?, point.spec.limits.experiment?);
    (run >= experiment).then(|| {
        let message = format!(
            "`limits.run` is {}, but the experiment stops after {}: no run can exceed its limit",
            show_duration(run),
            show_duration(experiment)
        );
        Diagnostic::warning("contradiction", message)
            .at(point.span("limits.run"))
            .help("set a shorter `run`, or a longer `experiment`")
    })
}
