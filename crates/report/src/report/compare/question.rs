//! What is compared, and with which baseline.

use std::collections::BTreeSet;

use super::trials::{measured, sample};
use super::{Question, Source};
use crate::report::list::nearest_last;
use crate::report::model::{Baseline, Trial};
use crate::report::sample::direction;
use runner_core::diagnostic::Wrong;
use runner_core::spec::nearest_path;
use runner_statistics::Direction;

/// The compared metric, and its direction.
pub(super) fn value_of(
    sources: &[Source],
    question: &Question,
) -> Result<(String, Direction), Wrong> {
    let value = match &question.value {
        Some(value) => value.clone(),
        None => {
            let objectives: BTreeSet<&str> = sources
                .iter()
                .map(|source| source.report.objective.as_str())
                .collect();
            let mut objectives = objectives.into_iter();
            match (objectives.next(), objectives.next()) {
                (Some(one), None) => one.to_owned(),
                (Some(one), Some(other)) => {
                    return Err(Wrong::new(
                        format!("the objectives differ: `{one}` and `{other}`"),
                        format!("choose what to compare, for example with `--value {one}`"),
                    ));
                }
                _ => return Err(Wrong::new("there is nothing to compare", String::new())),
            }
        }
    };
    match direction(&value) {
        Some(direction) => Ok((value, direction)),
        None => {
            let known = measured(sources);
            let what = format!("the metrics are {}", list(&known));
            Err(Wrong::new(
                format!("there is no metric `{value}`"),
                nearest_first(&value, &known, what),
            ))
        }
    }
}

/// A remedy that begins with the probable name: if only its last part is given, the one on valid.
pub(super) fn nearest_first(name: &str, known: &[String], rest: String) -> String {
    let names = || known.iter().map(String::as_str);
    match nearest_path(name, names()).or_else(|| nearest_last(name, names())) {
        Some(near) => format!("did you mean `{near}`? {rest}"),
        None => rest,
    }
}

/// The baseline as requested, or as the only file sets it, or the highest ranked trial.
pub(super) fn baseline_of(
    sources: &[Source],
    question: &Question,
    ranked: &[&Trial],
    value: &str,
) -> Result<Baseline, Wrong> {
    let of_file = match sources {
        [only] => only.report.baseline.as_ref().filter(|b| !b.is_picked),
        _ => None,
    };
    let asked = question.baseline.as_ref();
    let Some(name) = asked.or(of_file.map(|baseline| &baseline.trial)) else {
        return Ok(Baseline {
            trial: ranked
                .first()
                .map_or(String::new(), |trial| trial.id.clone()),
            is_picked: true,
            unbeaten: None,
        });
    };
    let with_end = |trial: &&&Trial| trial.id.ends_with(&format!("/{name}"));
    let of_source = |trial: &&&Trial| trial.id.starts_with(&format!("{name}/"));
    let matching: Vec<&&Trial> = match ranked.iter().find(|trial| trial.id == *name) {
        Some(trial) => vec![trial],
        None => ranked
            .iter()
            .filter(|t| with_end(t) || of_source(t))
            .collect(),
    };
    match matching[..] {
        [trial] if sample(trial, value).is_none() => Err(Wrong::new(
            format!(
                "the baseline `{}` has no `{value}`: {} of its runs are completed",
                trial.id, trial.n
            ),
            "choose another baseline with `--baseline`, or let `runner run` complete its runs",
        )),
        [trial] => Ok(Baseline {
            trial: trial.id.clone(),
            is_picked: false,
            unbeaten: None,
        }),
        [] => Err(Wrong::new(
            format!("the baseline trial `{name}` does not exist"),
            format!("the trials are {}", list(&ids(ranked))),
        )),
        _ => Err(Wrong::new(
            format!("`{name}` is the name of {} trials", matching.len()),
            format!(
                "choose one: {}",
                list(&ids(matching
                    .iter()
                    .map(|t| **t)
                    .collect::<Vec<_>>()
                    .as_slice()))
            ),
        )),
    }
}

pub(super) fn ids(trials: &[&Trial]) -> Vec<String> {
    trials.iter().map(|trial| trial.id.clone()).collect()
}

/// `a`, `b` and so on, truncated if long.
pub(super) fn list(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect();
    match names.len() {
        0 => "none".into(),
        num if num > SHOWN => format!("{} and {} more", shown.join(", "), num - SHOWN),
        _ => shown.join(", "),
    }
}
