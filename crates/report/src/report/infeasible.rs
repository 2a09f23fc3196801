//! Trials that do not meet the constraints of their search.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::model::{Report, Trial};
use super::numbers::short_number;
use runner_core::plan::Plan;
use runner_core::record::RunEntry;
use runner_core::spec::constraint::{Constraint, Quantity, total};

/// A constraint that a trial does not meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Violated {
    /// The constraint.
    pub constraint: String,
    /// The excess over the limit, relative to the limit; none if it has no finite value, because a number was not
    /// measured or cannot be computed.
    pub violation: Option<f64>,
    /// The numbers in it that were measured: means over the runs of the trial.
    pub measured: BTreeMap<String, f64>,
}

impl Violated {
    /// The constraints of a plan that a trial with these completed runs does not meet.
    pub(super) fn all(plan: &Plan, completed: &[&RunEntry]) -> Vec<Self> {
        if completed.is_empty() {
            return Vec::new();
        }
        let mean = |quantity: Quantity| RunEntry::mean_measured(quantity, completed);
        let constraints = plan.search.iter().flat_map(|search| &search.constraints);
        let violated = constraints.filter_map(|constraint: &Constraint| {
            let violation = constraint.violation(&mean);
            (violation != Some(0.0)).then(|| Self {
                constraint: constraint.source().to_owned(),
                violation,
                measured: constraint
                    .quantities()
                    .filter_map(|quantity| Some((quantity.name(), mean(quantity)?)))
                    .collect(),
            })
        });
        violated.collect()
    }

    /// The excess in words.
    pub fn excess(&self) -> String {
        match self.violation {
            Some(excess) if excess < 1e-6 => "at the limit".into(),
            Some(excess) => format!("{} %", short_number(100.0 * excess)),
            None => "unknown".into(),
        }
    }

    /// What was measured, in words.
    pub fn measured_in_words(&self) -> String {
        let measured = self.measured.iter();
        let measured: Vec<String> = measured
            .map(|(name, value)| format!("{name} = {}", short_number(*value)))
            .collect();
        if measured.is_empty() {
            "-".into()
        } else {
            measured.join(", ")
        }
    }
}

/// Whether the trials of a report have to meet constraints.
pub fn has_constraints(report: &Report) -> bool {
    let search = report.search.as_ref();
    search.is_some_and(|search| !search.constraints.is_empty())
}

/// How far a trial is from meeting its constraints: 0 if it does, infinite if that is not known.
pub fn violation(trial: &Trial) -> f64 {
    let violations = trial.violated.iter().map(|violated| violated.violation);
    total(&violations.collect::<Vec<_>>())
}
