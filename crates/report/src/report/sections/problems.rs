//! Runs that are not completed, and other remarks.

use super::{MAX_ROWS, Section};
use crate::report::model::{Problem, Report};

/// Maximum number of runs listed individually for one reason.
const NAMED: usize = 4;

/// The runs that are not completed, grouped by reason.
pub fn not_completed(report: &Report) -> Option<Section> {
    let mut groups: Vec<Vec<&Problem>> = Vec::new();
    for problem in &report.problems {
        let is_same = |group: &&mut Vec<&Problem>| {
            group[0].outcome == problem.outcome && group[0].message == problem.message
        };
        let num = groups.len();
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(problem),
            // Different reasons for each: nobody reads more of them, and comparing all of them is slow.
            None if num >= 2 * MAX_ROWS => {}
            None => groups.push(vec![problem]),
        }
    }
    let lines = groups.iter().map(|group| line(group));
    let mut section = Section::new("problems", "Not completed");
    section.list = at_most(lines.collect());
    (!section.list.is_empty()).then_some(section)
}

fn line(group: &[&Problem]) -> String {
    let first = group[0];
    let (outcome, message) = (first.outcome.word(), &first.message);
    let id = |problem: &&Problem| format!("`{}`", problem.run);
    match group {
        [only] => format!("{} {outcome}: {message}", id(only)),
        _ => {
            let ids: Vec<String> = group.iter().take(NAMED).map(id).collect();
            let more = match group.len() - ids.len() {
                0 => String::new(),
                num => format!(" and {num} more"),
            };
            let (num, ids) = (group.len(), ids.join(", "));
            format!("{num} runs {outcome}: {message} ({ids}{more})")
        }
    }
}

fn at_most(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > MAX_ROWS {
        lines.truncate(MAX_ROWS);
        lines.push("and more; `report.json` lists all".into());
    }
    lines
}

/// Other remarks.
pub fn remarks(report: &Report) -> Option<Section> {
    let mut section = Section::new("remarks", "Remarks");
    section.list = at_most(report.remarks.clone());
    (!section.list.is_empty()).then_some(section)
}

/// Runs in the folder that are not in the plan.
pub fn leftovers(report: &Report) -> Option<Section> {
    let ids = report.leftovers.iter().map(|id| format!("`{id}`"));
    let mut section = Section::new("leftovers", "Not part of this plan")
        .intro("The folder also contains runs of an earlier plan, which are not counted here:");
    section.list = at_most(ids.collect());
    (!section.list.is_empty()).then_some(section)
}
