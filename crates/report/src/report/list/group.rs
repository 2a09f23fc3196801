//! Runs grouped by a common value.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::mixed::Trials;
use super::{Form, Run, compare, lines};
use crate::report::csv::line;
use crate::report::list::cells::{raw, title};
use crate::report::numbers::{mean_and_sd, short_number, value_text};
use runner_core::diagnostic::Wrong;
use runner_core::record::{Index, State};
use runner_core::spec::metric::Objective;
use runner_core::spec::nearest_path;
use runner_core::table::{Columns, fit};
use runner_statistics::Description;

/// Runs with one value and one objective.
pub struct Group {
    value: Option<Json>,
    objective: Objective,
    num_runs: usize,
    num_completed: usize,
    /// The objective of the completed runs, if any.
    values: Vec<f64>,
    /// Whether runs of one trial have different data, so that there is no mean.
    is_mixed: bool,
}

/// The groups in the order of their values, those without one last. Runs with different objectives are in different
/// groups: values without a common meaning are not averaged.
pub fn groups(runs: &[Run<'_>], key: &str, trials: &Trials<'_>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut members: Vec<Vec<Run<'_>>> = Vec::new();
    // By the text of the value, since there may be as many values as runs.
    let mut places: BTreeMap<(Option<String>, String), usize> = BTreeMap::new();
    for run in runs {
        let (value, objective) = (run.value(key), run.index.plan.objective);
        let place = (value.as_ref().map(Json::to_string), objective.name());
        let at = *places.entry(place).or_insert_with(|| {
            groups.push(Group {
                value,
                objective,
                num_runs: 0,
                num_completed: 0,
                values: Vec::new(),
                is_mixed: false,
            });
            members.push(Vec::new());
            groups.len() - 1
        });
        members[at].push(*run);
        let group = &mut groups[at];
        group.num_runs += 1;
        if run.entry.state == State::Completed {
            group.num_completed += 1;
            let value = run.entry.metrics.get(&objective.name());
            group.values.extend(value);
        }
    }
    for (group, runs) in groups.iter_mut().zip(&members) {
        group.is_mixed = trials.are_mixed(runs) || are_of_other_data(runs) || vary_in_data(runs);
    }
    groups.sort_by(|a, b| match (&a.value, &b.value) {
        (Some(a), Some(b)) => compare(a, b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    });
    groups
}

/// Whether completed runs of different experiments were evaluated on different data: their values have no common mean.
fn are_of_other_data(runs: &[Run<'_>]) -> bool {
    let mut of_experiments: BTreeMap<*const Index, BTreeSet<&str>> = BTreeMap::new();
    for run in runs
        .iter()
        .filter(|run| run.entry.state == State::Completed)
    {
        let Some(data) = run.index.data.get(run.entry.data) else {
            continue;
        };
        let split = run.index.plan.objective.name();
        let split = split.split('/').next().unwrap_or_default();
        let digest = data.digests.get(split).unwrap_or(&data.what);
        let experiment = std::ptr::from_ref(run.index);
        of_experiments.entry(experiment).or_default().insert(digest);
    }
    let mut all = of_experiments.values();
    let first = all.next();
    all.any(|other| Some(other) != first)
}

/// Whether the completed runs of an experiment differ in an axis over their data, other than which items are held out.
fn vary_in_data(runs: &[Run<'_>]) -> bool {
    let mut seen: BTreeMap<*const Index, String> = BTreeMap::new();
    let is_data = |key: &str| key.starts_with("data.") && !key.starts_with("data.split.");
    let completed = runs
        .iter()
        .filter(|run| run.entry.state == State::Completed);
    completed.into_iter().any(|run| {
        let axes = run.entry.axes.iter().filter(|(key, _)| is_data(key));
        let axes: String = axes.map(|(key, value)| format!("{key}={value};")).collect();
        let known = seen
            .entry(std::ptr::from_ref(run.index))
            .or_insert_with(|| axes.clone());
        *known != axes
    })
}

/// The columns by which groups can be sorted.
const ORDERS: [&str; 7] = ["objective", "runs", "completed", "n", "mean", "sd", "best"];

/// Sorts groups by their key or by a column, those without a value last; by the objective, those with the best mean first.
pub fn sort(groups: &mut [Group], key: &str, name: &str, is_turned: bool) -> Result<(), Wrong> {
    if name != key && !ORDERS.contains(&name) {
        let near =
            nearest_path(name, ORDERS.into_iter()).map(|near| format!("did you mean `{near}`? "));
        return Err(Wrong::new(
            format!("groups by `{key}` cannot be sorted by `{name}`"),
            format!(
                "{}sort them by `{key}` or by `{}`",
                near.unwrap_or_default(),
                ORDERS.join("`, `")
            ),
        ));
    }
    let number = |group: &Group| {
        let found = group.description();
        match name {
            "runs" => Some(group.num_runs as f64),
            "completed" => Some(group.num_completed as f64),
            "n" => Some(group.values.len() as f64),
            "sd" => found.and_then(|it| it.sd),
            "best" => group.best(),
            _ => found.map(|it| it.mean),
        }
    };
    groups.sort_by(|a, b| {
        let order = match (name == key, number(a), number(b)) {
            (true, _, _) => match (&a.value, &b.value) {
                (Some(a), Some(b)) => compare(a, b),
                (a, b) => return a.is_none().cmp(&b.is_none()),
            },
            (false, Some(x), Some(y)) if name == "objective" => {
                let of = |group: &Group| group.objective.name();
                let is_better = |x, y| a.objective.is_better(x, y);
                of(a)
                    .cmp(&of(b))
                    .then(is_better(y, x).cmp(&is_better(x, y)))
            }
            (false, Some(x), Some(y)) => x.total_cmp(&y),
            (false, x, y) => return x.is_none().cmp(&y.is_none()),
        };
        if is_turned { order.reverse() } else { order }
    });
    Ok(())
}

impl Group {
    fn description(&self) -> Option<Description> {
        if self.is_mixed {
            return None;
        }
        Description::of(&self.values).ok()
    }

    /// The best value, if any.
    fn best(&self) -> Option<f64> {
        let values = self.values.iter().copied().filter(|_| !self.is_mixed);
        values.reduce(|best, value| {
            if self.objective.is_better(value, best) {
                value
            } else {
                best
            }
        })
    }
}

/// The groups as a table, or for programs.
pub fn text(groups: &[Group], key: &str, form: Form) -> String {
    let head = ["runs", "completed", "objective", "n", "mean", "sd", "best"];
    match form {
        Form::Json => lines(groups.iter().map(|group| {
            let found = group.description();
            json!({
                key: group.value,
                "runs": group.num_runs,
                "completed": group.num_completed,
                "objective": group.objective.name(),
                "n": group.values.len(),
                "mean": found.map(|it| it.mean),
                "sd": found.and_then(|it| it.sd),
                "best": group.best(),
                "mixed_data": group.is_mixed,
            })
        })),
        Form::Csv => {
            let head = std::iter::once(key).chain(head).map(str::to_owned);
            let mut text = line(&head.collect::<Vec<_>>());
            for group in groups {
                let found = group.description();
                let number = |value: Option<f64>| raw(value.map(|value| json!(value)));
                text.push_str(&line(&[
                    raw(group.value.clone()),
                    group.num_runs.to_string(),
                    group.num_completed.to_string(),
                    group.objective.name(),
                    group.values.len().to_string(),
                    number(found.map(|it| it.mean)),
                    number(found.and_then(|it| it.sd)),
                    number(group.best()),
                ]));
            }
            text
        }
        Form::Table { .. } if groups.is_empty() => String::new(),
        Form::Table { width } => {
            let head = [
                &title(key),
                "runs",
                "completed",
                "objective",
                "n",
                "mean ± sd",
                "best",
            ];
            let row = |group: &Group| {
                let found = group.description();
                vec![
                    group.value.as_ref().map_or("-".into(), value_text),
                    group.num_runs.to_string(),
                    group.num_completed.to_string(),
                    group.objective.name(),
                    group.values.len().to_string(),
                    match found {
                        Some(it) => mean_and_sd(&it),
                        None if group.is_mixed => "mixed data".into(),
                        None => "-".into(),
                    },
                    group.best().map_or("-".into(), short_number),
                ]
            };
            let columns = Columns {
                head: head.map(str::to_owned).to_vec(),
                rows: groups.iter().map(row).collect(),
            };
            fit(columns, width, &["completed", "best"]).text
        }
    }
}
