//! `runner run --retry`: only runs that have failed.

use std::collections::BTreeMap;

use super::experiment::refuse;
use super::output::Output;
use super::prepare::unreadable;
use runner_core::diagnostic::Diagnostic;
use runner_core::event::{FailureClass, Outcome};
use runner_core::plan::RunPlan;
use runner_core::record::{ExperimentFolder, RunRecord, is_other_format};
use runner_core::spec::section::{Choice, by_name};

/// Which failed runs are meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Retry {
    /// All of them.
    Failed,
    /// Those of a class.
    Class(FailureClass),
}

/// Reads the value of `--retry`.
pub fn retry(text: &str) -> Result<Retry, String> {
    if text == "failed" {
        return Ok(Retry::Failed);
    }
    by_name(text).map(Retry::Class).ok_or_else(|| {
        let classes = FailureClass::ALL.iter();
        let classes: Vec<_> = classes.map(|(_, name, _)| *name).collect();
        format!("write `failed`, or a class: {}", classes.join(", "))
    })
}

/// Of the selected runs, those whose last outcome is meant; all of them when nothing was asked for.
pub fn select_failed<'a>(
    selected: Vec<&'a RunPlan>,
    asked: &[Retry],
    folder: &ExperimentFolder,
    output: &mut Output,
) -> Result<Vec<&'a RunPlan>, u8> {
    if asked.is_empty() {
        return Ok(selected);
    }
    let mut failed = Vec::new();
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for run in selected {
        let record = match RunRecord::read(&folder.run(&run.id)) {
            Err(e) if is_other_format(&e) => {
                return Err(unreadable(&e, &folder.run(&run.id), output));
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
        let is_meant = |asked: &Retry| match asked {
            Retry::Failed => true,
            Retry::Class(wanted) => class == Some(*wanted),
        };
        if class.is_some() && asked.iter().any(is_meant) {
            failed.push(run);
        }
    }
    if !failed.is_empty() {
        return Ok(failed);
    }
    let asked = asked.iter().map(|asked| match asked {
        Retry::Failed => "--retry failed".to_owned(),
        Retry::Class(class) => format!("--retry {}", class.name()),
    });
    let asked: Vec<_> = asked.collect();
    let there = outcomes.iter().map(|(word, num)| format!("{num} {word}"));
    let there: Vec<_> = there.collect();
    let message = format!("no run has an outcome that `{}` asks for", asked.join(" "));
    let diagnostic = Diagnostic::error("usage", message);
    Err(refuse(
        diagnostic
            .note(format!("of the runs, {}", there.join(", ")))
            .help("leave `--retry` out to do all runs that are not completed"),
        output,
    ))
}
