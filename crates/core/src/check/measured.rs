//! Which metrics a trial measures.

use super::Point;
use super::task::Goal;
use crate::diagnostic::Diagnostic;
use crate::spec::losses::{LossTerm, MAIN};
use crate::spec::metric::{Metric, Objective};
use crate::spec::section::Choice;
use crate::spec::task::{TaskKind, TaskSpec};

/// Why a trial does not measure a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Unmeasured {
    /// Continues a sentence that ends with its name.
    pub why: String,
    /// What to do.
    pub help: String,
}

/// Why a trial does not measure a metric of a split, if it does not. Averaged weights are not considered.
pub fn unmeasured(objective: Objective, task: &TaskSpec, terms: &[LossTerm]) -> Option<Unmeasured> {
    let metric = objective.metric;
    if task.kind == TaskKind::Generation && metric == Metric::Loss {
        // Also of the generator, which is named like a term.
        return Some(Unmeasured {
            why: ", which says nothing about how good generated items are: a better generator raises the loss of the discriminator, and the other way round".into(),
            help: format!("use `valid/{}`", Metric::SlicedWasserstein.name()),
        });
    }
    if let Some(term) = objective.term {
        return unmeasured_of_term(objective, term.as_str(), terms);
    }
    let wrong = |why: String, help: String| Some(Unmeasured { why, help });
    if !metric.tasks().contains(&task.kind) {
        let fitting = Metric::names_for(task.kind);
        let names: Vec<_> = fitting.map(|name| format!("`valid/{name}`")).collect();
        return wrong(
            format!(", which does not support the task `{}`", task.kind.name()),
            format!("use one of {}", names.join(", ")),
        );
    }
    if metric != Metric::Loss && !task.metrics.contains(&metric) {
        return wrong(
            ", which is not in `task.metrics`".into(),
            format!("add \"{}\" to `task.metrics`", metric.name()),
        );
    }
    if metric.needs_scores() && objective.is_of_train() {
        return wrong(
            ", which needs all outputs of a split at once, and those of train are not kept".into(),
            format!("use `valid/{}`", metric.name()),
        );
    }
    None
}

/// The same for a metric of a term of `[[losses]]`.
fn unmeasured_of_term(objective: Objective, name: &str, terms: &[LossTerm]) -> Option<Unmeasured> {
    let metric = objective.metric;
    let is_main = name == MAIN && !terms.is_empty();
    let term = terms.iter().find(|term| term.name == name);
    let plain = || format!("use `{}/{}`", objective.split.name(), metric.name());
    if term.is_none() && !is_main {
        let names: Vec<_> = terms
            .iter()
            .map(|term| format!("`{}`", term.name))
            .collect();
        return Some(Unmeasured {
            why: format!(", but `[[losses]]` has no `{name}`"),
            help: if names.is_empty() {
                plain()
            } else {
                format!("its names are {}", names.join(", "))
            },
        });
    }
    let is_measured = term.is_some_and(|term| term.metrics.contains(&metric));
    (metric != Metric::Loss && !is_measured).then(|| Unmeasured {
        why: ", which is not measured".into(),
        help: if is_main {
            plain()
        } else {
            format!("add \"{}\" to its `metrics`", metric.name())
        },
    })
}

/// Refuses the value of a key that is a metric which is not measured.
pub(super) fn objective_is_measured(
    point: &Point<'_>,
    goal: &Goal,
    key: &str,
    objective: Option<Objective>,
) -> Option<Diagnostic> {
    let objective = objective?;
    let Unmeasured { why, help } = unmeasured(objective, &goal.task, &goal.terms)?;
    let message = format!("`{key}` is `{}`{why}", objective.name());
    let diagnostic = Diagnostic::error("task", message).at(point.span(key));
    Some(diagnostic.help(help))
}
