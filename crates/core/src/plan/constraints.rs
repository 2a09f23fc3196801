//! Constraints of a search that can decide nothing: over what its trials do not measure, against the objective, or which
//! all trials meet or none can.

use super::RunPlan;
use super::agree::not_measured_by_all;
use super::sweep::search::Search;
use crate::diagnostic::{Diagnostic, Span};
use crate::spec::constraint::{Constraint, Limit, Quantity};
use crate::spec::document::Document;
use crate::spec::metric::Objective;
use crate::spec::traded::Traded;

/// Refuses them.
pub(super) fn constraints(
    document: &Document,
    objective: Objective,
    runs: &[RunPlan],
) -> Vec<Diagnostic> {
    let Some(search) = Search::of(document) else {
        return Vec::new();
    };
    let all = &search.spec.constraints;
    let mut refusals: Vec<Diagnostic> = all
        .iter()
        .filter_map(|(constraint, span)| {
            unmeasured(constraint, *span, runs)
                .or_else(|| undecided(constraint, *span))
                .or_else(|| against(constraint, *span, objective))
        })
        .collect();
    if refusals.is_empty() {
        refusals.extend(disjoint(all));
    }
    refusals
}

fn refuse(message: String, span: Span, help: impl Into<String>) -> Option<Diagnostic> {
    let wrong = Diagnostic::error("contradiction", message).at(span);
    Some(wrong.help(help))
}

/// A quantity that not every trial measures, or whose values cannot be compared between trials.
fn unmeasured(constraint: &Constraint, span: Span, runs: &[RunPlan]) -> Option<Diagnostic> {
    let found = constraint.quantities().find_map(|quantity| {
        let metric = quantity.metric()?;
        not_measured_by_all("search.constraints", metric, runs)
    });
    let (message, help) = found?;
    refuse(message, span, help)
}

/// A limit that follows from the range of what it limits.
fn undecided(constraint: &Constraint, span: Span) -> Option<Diagnostic> {
    let Limit {
        quantity,
        relation,
        limit,
    } = constraint.limit()?;
    let (low, high) = quantity.bounds();
    let name = quantity.name();
    let range = match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("`{name}` is from {low} to {high}"),
        (true, false) => format!("`{name}` is at least {low}"),
        _ => format!("`{name}` is at most {high}"),
    };
    let in_percent = (high == 1.0 && limit > 1.0 && limit <= 100.0)
        .then(|| format!("it is a fraction: use {} for {limit} %", limit / 100.0));
    let help = in_percent.unwrap_or_else(|| "use a limit in its range, or remove it".into());
    let ends = [low, high].map(|end| relation.holds(end, limit));
    match ends {
        [false, false] => refuse(
            format!("no trial can meet `{}`: {range}", constraint.source()),
            span,
            help,
        ),
        [true, true] => refuse(
            format!("every trial meets `{}`: {range}", constraint.source()),
            span,
            help,
        ),
        _ => None,
    }
}

/// A limit that better values of the objective exceed.
fn against(constraint: &Constraint, span: Span, objective: Objective) -> Option<Diagnostic> {
    let Limit {
        quantity, relation, ..
    } = constraint.limit()?;
    let is_objective = quantity == Quantity::Reached(Traded::Metric(objective));
    if !is_objective || relation.is_upper() != objective.is_better(1.0, 0.0) {
        return None;
    }
    let wanted = if relation.is_upper() { "high" } else { "low" };
    let name = quantity.name();
    let wrong = refuse(
        format!(
            "`{}` contradicts the objective: the search looks for a {wanted} `{name}`",
            constraint.source()
        ),
        span,
        if relation.is_upper() {
            format!("set a lower limit instead, such as `{name} > 0.9`, or remove it")
        } else {
            format!("set an upper limit instead, such as `{name} < 0.5`, or remove it")
        },
    );
    wrong.map(|wrong| {
        wrong.note("trials that are better than the limit would be ranked behind all others")
    })
}

/// Two limits of the same quantity that no number meets.
fn disjoint(all: &[(Constraint, Span)]) -> Option<Diagnostic> {
    let limits = all.iter().enumerate();
    let limits = limits
        .filter_map(|(at, (constraint, span))| Some((constraint, *span, constraint.limit()?, at)));
    let limits: Vec<(&Constraint, Span, Limit, usize)> = limits.collect();
    let excluded = |above: &Limit, below: &Limit| {
        above.quantity == below.quantity
            && !above.relation.is_upper()
            && below.relation.is_upper()
            // Between the limits, or at a common one, there may be a number.
            && (above.limit > below.limit
                || above.limit == below.limit
                    && !(above.relation.holds(above.limit, above.limit)
                        && below.relation.holds(below.limit, below.limit)))
    };
    for (lower, lower_span, above, lower_at) in &limits {
        for (upper, upper_span, below, upper_at) in &limits {
            if excluded(above, below) {
                let (place, other) = if lower_at > upper_at {
                    (*lower_span, *upper_span)
                } else {
                    (*upper_span, *lower_span)
                };
                let message = format!(
                    "no trial can meet both `{}` and `{}`",
                    lower.source(),
                    upper.source()
                );
                let wrong = refuse(message, place, "change one of them, or remove it")?;
                return Some(wrong.related(other, "the other limit"));
            }
        }
    }
    None
}
