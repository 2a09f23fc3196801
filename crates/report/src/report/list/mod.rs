//! Runs of experiments, filtered, sorted, grouped and formatted.

mod cells;
mod everything;
mod filter;
mod group;
mod mixed;
mod names;
mod violations;

use std::cmp::Ordering;

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::csv::line;
use super::numbers::natural_order;
use super::rank::is_other_quantity;
pub use cells::age;
use cells::cell;
use filter::Filter;
use mixed::Trials;
pub use names::nearest_last;
use names::{FEW, Known};
use runner_core::diagnostic::Wrong;
use runner_core::record::{Index, RunEntry};
use violations::Violations;

use runner_core::table::{Columns, fit};

/// The request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// A condition over the names of `names.rs`; all runs if not set.
    pub filter: Option<String>,
    /// The sort key; plan order if not set. A `-` before it reverses the order.
    pub sort: Option<String>,
    /// Whether the order is reversed.
    pub is_reversed: bool,
    /// The displayed names; some usual ones if there are none.
    pub columns: Vec<String>,
    /// The group key.
    pub group: Option<String>,
    /// The number of rows that are left out at the beginning.
    pub offset: usize,
    /// The maximum number of rows.
    pub limit: Option<usize>,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A table for people.
    Table {
        /// Columns of the terminal, if it is one.
        width: Option<u16>,
    },
    /// One JSON object per line.
    Json,
    /// CSV with all digits.
    Csv,
}

/// The default columns.
const USUAL: [&str; 7] = [
    "experiment",
    "run",
    "outcome",
    "objective",
    "epochs",
    "wall_secs",
    "age",
];

/// Those of them that are omitted for lack of space, starting with the first.
const LEAST: [&str; 4] = ["age", "seconds", "epochs", "experiment"];

/// The column with the reason why a run failed or was skipped.
const REASON: &str = "reason";

/// A run with the shared information of its experiment.
#[derive(Clone, Copy)]
struct Run<'a> {
    index: &'a Index,
    entry: &'a RunEntry,
    /// How far its trial is from meeting the constraints of its search, if that is known.
    violation: Option<f64>,
    /// The current time, in milliseconds since 1970.
    now_ms: u64,
}

/// The selected runs.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The text; empty if there is nothing to show in a table.
    pub text: String,
    /// The number of runs that match, or of groups, shown or not.
    pub num: usize,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Notes the trials whose test metrics are shown.
const TEST_NOTE: &str = "note: this shows test metrics of several trials: the value of a trial that is selected by them is biased";

/// Notes that an order is meaningless.
const LOSSES_NOTE: &str = "note: this metric is another quantity in different trials, so their order by it is meaningless";

/// Lists runs of some experiments. The error is a phrase with a remedy.
pub fn list(indexes: &[Index], query: &Query, form: Form, now_ms: u64) -> Result<Listed, Wrong> {
    let known = Known::of(indexes);
    let runs = indexes.iter().flat_map(|index| {
        let readable = index.runs.iter().filter(|run| !run.state.is_unreadable());
        let violations = Violations::of(index);
        readable.map(move |entry| Run {
            index,
            entry,
            violation: violations.of_run(index, entry),
            now_ms,
        })
    });
    let mut runs: Vec<Run<'_>> = runs.collect();
    let mut looked_at: Vec<String> = Vec::new();
    if let Some(text) = &query.filter {
        let mut filter = Filter::new(text, &known)?;
        looked_at.extend(filter.names.keys().cloned());
        runs = filter.keep(runs)?;
    }
    let order = query
        .sort
        .as_deref()
        .map(|key| match key.strip_prefix('-') {
            Some(name) => (name, !query.is_reversed),
            None => (key, query.is_reversed),
        });
    match order.filter(|_| query.group.is_none()) {
        Some((name, is_turned)) => {
            known.check(name)?;
            looked_at.push(name.to_owned());
            sort(&mut runs, name, is_turned);
        }
        None if query.is_reversed => runs.reverse(),
        None => {}
    }
    for name in query.columns.iter().chain(&query.group) {
        known.check(name)?;
    }
    let limit = query.limit.unwrap_or(usize::MAX);
    let by_trial = Trials::of(indexes);
    let (num, text, shown) = match &query.group {
        Some(key) => {
            let mut groups = group::groups(&runs, key, &by_trial);
            match order {
                Some((name, is_turned)) => group::sort(&mut groups, key, name, is_turned)?,
                None if query.is_reversed => groups.reverse(),
                None => {}
            }
            let num = groups.len();
            groups.drain(..query.offset.min(num));
            groups.truncate(limit);
            (num, group::text(&groups, key, form), vec![key.clone()])
        }
        None => {
            let num = runs.len();
            runs.drain(..query.offset.min(num));
            runs.truncate(limit);
            let shown = shown(&runs, query, form, &known);
            let is_all = query.columns.is_empty();
            (num, text(&runs, &shown, is_all, form), shown)
        }
    };
    looked_at.extend(shown);
    let shows_test = looked_at.iter().any(|name| is_of_test(name));
    let mut trials = runs
        .iter()
        .map(|run| (&run.index.plan.experiment, &run.entry.trial));
    let first = trials.next();
    let is_order_of_losses = order.is_some_and(|(name, _)| is_of_losses(indexes, name));
    let note = if shows_test && trials.any(|trial| Some(trial) != first) {
        Some(TEST_NOTE)
    } else {
        is_order_of_losses.then_some(LOSSES_NOTE)
    };
    let mut notes: Vec<String> = note.map(str::to_owned).into_iter().collect();
    notes.extend(by_trial.warnings(&runs));
    Ok(Listed { text, num, notes })
}

/// The names by which runs can be filtered, sorted and shown: what every run has, what differs, and the metrics; then
/// the settings that all runs share.
pub fn names(indexes: &[Index]) -> (Vec<String>, Vec<String>) {
    let known = Known::of(indexes);
    (known.all(), known.shared())
}

/// Everything that is known of a run.
pub fn everything(index: &Index, entry: &RunEntry, now_ms: u64) -> Json {
    let run = Run {
        index,
        entry,
        violation: Violations::of(index).of_run(index, entry),
        now_ms,
    };
    serde_json::to_value(run).unwrap_or_default()
}

/// The columns to show.
fn shown(runs: &[Run<'_>], query: &Query, form: Form, known: &Known) -> Vec<String> {
    match (query.columns.as_slice(), form) {
        ([], Form::Table { .. }) => {
            // A column explains why a run is missing.
            let has_reason = |run: &Run<'_>| cells::reason(run.entry).is_some();
            let reason = runs.iter().any(has_reason).then_some(REASON);
            let told = FEW
                .into_iter()
                .filter(|name| runs.iter().any(|run| run.value(name).is_some()));
            let usual = USUAL.into_iter().chain(reason).chain(told);
            usual.map(str::to_owned).collect()
        }
        ([], _) => known.all(),
        (columns, _) => columns.to_vec(),
    }
}

/// Whether values of a column are losses of different functions.
fn is_of_losses(indexes: &[Index], name: &str) -> bool {
    indexes.iter().any(|index| {
        let objective = index.plan.objective.name();
        let metric = if name == "objective" {
            &objective
        } else {
            name
        };
        is_other_quantity(index, metric)
    })
}

fn is_of_test(name: &str) -> bool {
    name.starts_with("test") && name.contains('/')
}

fn text(runs: &[Run<'_>], shown: &[String], is_all: bool, form: Form) -> String {
    match form {
        Form::Json if is_all => lines(runs.iter()),
        Form::Json => lines(runs.iter().map(|run| {
            let value = |name: &String| (name.clone(), run.value(name).unwrap_or(Json::Null));
            Json::Object(shown.iter().map(value).collect::<Map<_, _>>())
        })),
        Form::Csv => {
            let mut text = line(shown);
            for run in runs {
                let fields = shown.iter().map(|name| cells::raw(run.value(name)));
                text.push_str(&line(&fields.collect::<Vec<_>>()));
            }
            text
        }
        Form::Table { .. } if runs.is_empty() => String::new(),
        Form::Table { width } => {
            let columns = Columns {
                head: shown.iter().map(|name| cells::title(name)).collect(),
                rows: runs
                    .iter()
                    .map(|run| shown.iter().map(|name| cell(run, name)).collect())
                    .collect(),
            };
            // Requested columns are always shown.
            let first = runs.first().map(|run| &run.index.plan.experiment);
            let is_one = runs
                .iter()
                .all(|run| Some(&run.index.plan.experiment) == first);
            let least: &[&str] = match (is_all, is_one) {
                (false, _) => &[],
                (true, true) => &LEAST,
                // Runs of several experiments have the same names.
                (true, false) => &LEAST[..LEAST.len() - 1],
            };
            fit(columns, width, least).text
        }
    }
}

/// One JSON object per line.
fn lines(objects: impl Iterator<Item = impl Serialize>) -> String {
    let mut text = String::new();
    for object in objects {
        text += &serde_json::to_string(&object).unwrap_or_default();
        text.push('\n');
    }
    text
}

/// Sorts by the values of a name, the smallest first; by the objective, the best first. Runs without a value come last
/// in either order, and equal ones stay in plan order.
fn sort(runs: &mut Vec<Run<'_>>, name: &str, is_turned: bool) {
    let mut keyed: Vec<(Option<Json>, Run<'_>)> =
        runs.drain(..).map(|run| (run.value(name), run)).collect();
    keyed.sort_by(|(a, run), (b, other)| {
        let order = match (a, b) {
            (Some(a), Some(b)) if name == "objective" => better_first(run, a, other, b),
            (Some(a), Some(b)) => compare(a, b),
            (a, b) => return a.is_none().cmp(&b.is_none()),
        };
        if is_turned { order.reverse() } else { order }
    });
    runs.extend(keyed.into_iter().map(|(_, run)| run));
}

/// Values of one objective by its direction; different objectives only by their names.
fn better_first(run: &Run<'_>, a: &Json, other: &Run<'_>, b: &Json) -> Ordering {
    let (objective, others) = (run.index.plan.objective, other.index.plan.objective);
    let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) else {
        return Ordering::Equal;
    };
    let is_better = objective.is_better(a, b);
    objective.name().cmp(&others.name()).then(match is_better {
        true => Ordering::Less,
        false if objective.is_better(b, a) => Ordering::Greater,
        false => Ordering::Equal,
    })
}

/// Numbers by size, before texts in natural order.
fn compare(a: &Json, b: &Json) -> Ordering {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => natural_order(&cells::raw_text(a), &cells::raw_text(b)),
    }
}
