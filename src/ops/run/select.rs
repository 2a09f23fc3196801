//! Selects runs of a plan by id and by outcome.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use wildmatch::WildMatch;

use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::event::{FailureClass, Outcome};
use runner_core::plan::{Plan, RunPlan};
use runner_core::record::{ExperimentFolder, RunRecord, is_other_format};
use runner_core::spec::section::{Choice, by_name};

/// Which runs that have ended early are selected.
///
/// ```
/// use burn_runner::ops::Retry;
///
/// assert_eq!("failed".parse(), Ok(Retry::Failed));
/// assert_eq!("pruned".parse(), Ok(Retry::Pruned));
/// assert!("late".parse::<Retry>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Retry {
    /// All that failed.
    Failed,
    /// Those that a search has pruned.
    Pruned,
    /// Those that failed with a class.
    Class(FailureClass),
}

/// The class of failure does not exist.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoClass;

impl fmt::Display for NoClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let classes = FailureClass::ALL.iter();
        let classes: Vec<_> = classes.map(|(_, name, _)| *name).collect();
        write!(
            f,
            "use `failed`, `pruned`, or a class of failure: {}",
            classes.join(", ")
        )
    }
}

impl std::error::Error for NoClass {}

impl FromStr for Retry {
    type Err = NoClass;

    fn from_str(text: &str) -> Result<Self, NoClass> {
        if text == "failed" {
            return Ok(Self::Failed);
        }
        if text == "pruned" {
            return Ok(Self::Pruned);
        }
        by_name(text).map(Self::Class).ok_or(NoClass)
    }
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failed => "failed",
            Self::Pruned => "pruned",
            Self::Class(class) => class.name(),
        })
    }
}

/// The runs whose ids match a pattern; all runs if there is none.
pub(super) fn by_id<'a>(plan: &'a Plan, only: &[String]) -> Result<Vec<&'a RunPlan>, Error> {
    let globs: Vec<_> = only.iter().map(|glob| WildMatch::new(glob)).collect();
    let matches =
        |run: &&RunPlan| globs.is_empty() || globs.iter().any(|glob| glob.matches(&run.id));
    let selected: Vec<_> = plan.runs.iter().filter(matches).collect();
    if !selected.is_empty() {
        return Ok(selected);
    }
    let message = format!("no run matches `--only {}`", only.join(" --only "));
    let example = plan.runs.first().map_or("", |run| run.id.as_str());
    let diagnostic = Diagnostic::error("usage", message);
    Err(Error::refused(diagnostic.help(format!(
        "ids have the form `{example}`; `runner plan` shows all of them"
    ))))
}

/// The selected runs whose last outcome matches; all of them if nothing was requested.
pub(super) fn by_failure<'a>(
    selected: Vec<&'a RunPlan>,
    asked: &[Retry],
    folder: &ExperimentFolder,
) -> Result<Vec<&'a RunPlan>, Error> {
    if asked.is_empty() {
        return Ok(selected);
    }
    let mut failed = Vec::new();
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for run in selected {
        let record = match RunRecord::read(&folder.run(&run.id)) {
            Err(e) if is_other_format(&e) => {
                return Err(Error::unreadable(&e, &folder.run(&run.id)));
            }
            Err(_) => {
                *outcomes.entry("unreadable".into()).or_default() += 1;
                continue;
            }
            Ok(record) => record,
        };
        let class = match &record.outcome {
            Some(Outcome::Failed { class, .. }) => Some(*class),
            _ => None,
        };
        let word = match (&record.outcome, class) {
            (_, Some(class)) => format!("failed ({})", class.name()),
            (Some(outcome), None) => outcome.word().to_owned(),
            (None, None) if record.started.is_some() => "incomplete".to_owned(),
            (None, None) => "not started".to_owned(),
        };
        *outcomes.entry(word).or_default() += 1;
        let is_pruned = matches!(record.outcome, Some(Outcome::Pruned { .. }));
        let is_meant = |asked: &Retry| match asked {
            Retry::Failed => class.is_some(),
            Retry::Pruned => is_pruned,
            Retry::Class(wanted) => class == Some(*wanted),
        };
        if asked.iter().any(is_meant) {
            failed.push(run);
        }
    }
    if failed.is_empty() {
        Err(none_failed(asked, &outcomes))
    } else {
        Ok(failed)
    }
}

fn none_failed(asked: &[Retry], outcomes: &BTreeMap<String, usize>) -> Error {
    let asked: Vec<_> = asked
        .iter()
        .map(|asked| format!("--retry {asked}"))
        .collect();
    let there = outcomes.iter().map(|(word, num)| format!("{num} {word}"));
    let there: Vec<_> = there.collect();
    let message = format!("no run has the outcome `{}`", asked.join(" "));
    let diagnostic = Diagnostic::error("usage", message);
    Error::refused(
        diagnostic
            .note(format!("of the runs, {}", there.join(", ")))
            .help("remove `--retry` to train all runs that are not completed"),
    )
}
