//! The origin of the numbers, and how to reproduce them.

use std::collections::BTreeSet;

use super::{MAX_ROWS, Section};
use crate::report::model::Report;
use crate::report::numbers::value_text;
use runner_core::record::{DataUsed, Environment};

/// The data sets with the digests of their splits.
pub fn data(report: &Report) -> Option<Section> {
    let mut section = Section::new("data", "Data");
    let data = &report.provenance.data;
    for (at, used) in data.iter().enumerate() {
        // A data set that no run has read yet has no digests, and is omitted if the same one with digests is listed.
        let is_same = |other: &&DataUsed| other.what == used.what;
        let is_first = data.iter().position(|other| other.what == used.what) == Some(at);
        let mut same = data.iter().filter(is_same);
        let is_known = same.any(|other| !other.digests.is_empty());
        if used.digests.is_empty() && (is_known || !is_first) {
            continue;
        }
        let digests = used.digests.iter();
        let digests = digests.map(|(split, digest)| format!("; sha256 of {split}: `{digest}`"));
        section
            .list
            .push(format!("{}{}", used.what, digests.collect::<String>()));
    }
    (!section.list.is_empty()).then_some(section)
}

/// Versions, devices and machines.
pub fn environment(report: &Report) -> Option<Section> {
    let mut section = Section::new("environment", "Environment");
    let environments = report.provenance.environments.iter();
    section.list = environments.map(in_words).collect();
    (!section.list.is_empty()).then_some(section)
}

/// Versions, device and machine in a line.
pub fn in_words(environment: &Environment) -> String {
    let worker = environment.worker.as_ref();
    let runner = match &environment.build {
        Some(build) => build.to_string(),
        None => environment.runner_version.clone(),
    };
    let commit = match (&environment.git_commit, environment.git_dirty) {
        (Some(commit), Some(true)) => format!(", git {commit} with changes"),
        (Some(commit), _) => format!(", git {commit}"),
        (None, _) => String::new(),
    };
    let threads = match worker.map_or(0, |w| w.threads) {
        1 => "1 thread".to_owned(),
        num => format!("{num} threads"),
    };
    format!(
        "runner {}, Burn {}{commit}; {} ({threads} per run); {}, {} cores, {:.0} GiB; {} on {}",
        runner,
        environment.burn_version,
        worker.map_or("", |w| w.device_name.as_str()),
        environment.cpu,
        environment.cores,
        environment.memory_bytes as f64 / f64::from(1 << 30),
        environment.os,
        environment.host,
    )
}

/// The command for each run.
pub fn reproduce(report: &Report) -> Option<Section> {
    let skipped = report.problems.iter();
    let skipped = skipped.filter(|problem| problem.is_skipped());
    let skipped: BTreeSet<&str> = skipped.map(|problem| problem.run.as_str()).collect();
    let commands = report.commands.iter();
    let commands = commands.filter(|(run, _)| !skipped.contains(run.as_str()));
    let commands: Vec<String> = commands.map(|(_, command)| value_text(command)).collect();
    let num = commands.len();
    let mut section = Section::new("reproduce", "Reproduce");
    section.commands = commands.into_iter().take(MAX_ROWS).collect();
    if num > MAX_ROWS {
        section.notes.push(format!(
            "The first {MAX_ROWS} of {num} commands; `report.json` contains all."
        ));
    }
    (num > 0).then_some(section)
}
