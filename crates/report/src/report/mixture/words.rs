//! The text about runs that do not belong together.

use std::collections::{BTreeMap, BTreeSet};

use super::{Having, SameData, share_items, split_of};
use crate::report::model::{Report, Trial};
use runner_core::record::{DataUsed, KERNELS};

/// Runs or trials that are listed individually.
const NAMED: usize = 4;

/// Trials with a separate line.
const LINES: usize = 5;

/// Digits of a digest that identify it for a reader.
const DIGITS: usize = 12;

/// A line for each trial whose runs have different data.
pub fn data_in_words(report: &Report) -> Vec<String> {
    let mixed = report.trials.iter().filter(|trial| trial.has_mixed_data());
    let mixed: Vec<&Trial> = mixed.collect();
    let line = |trial: &&Trial| {
        format!(
            "`{}` is neither averaged nor ranked, because its completed runs read different data: {}. {DATA_REMEDY}.",
            trial.id,
            groups(&trial.mixed_data)
        )
    };
    let mut lines: Vec<String> = mixed.iter().take(LINES).map(line).collect();
    if mixed.len() > LINES {
        let num = mixed.len() - LINES;
        lines.push(format!(
            "The same applies to {num} more trials; `report.json` lists them under `mixed_data`."
        ));
    }
    lines
}

/// The remedy for a trial whose runs have different data.
pub const DATA_REMEDY: &str = "Keep the runs of one data set, delete the folders of the other runs and run the experiment again; or use a separate experiment for each data set";

/// The runs by their data, with the differing digests.
pub fn groups(mixed: &[SameData]) -> String {
    let splits: BTreeSet<&String> = mixed.iter().flat_map(|same| same.digests.keys()).collect();
    let differs = |split: &&&String| {
        let digests = mixed.iter().map(|same| same.digests.get(**split));
        digests.collect::<BTreeSet<_>>().len() > 1
    };
    let differing: Vec<&&String> = splits.iter().filter(differs).collect();
    let group = |same: &SameData| {
        let digest = |split: &&&String| {
            let digest = same.digests.get(**split);
            let digest = digest.map_or("none", |it| &it[..DIGITS.min(it.len())]);
            format!("{split} {digest}")
        };
        let digests: Vec<String> = differing.iter().map(digest).collect();
        format!("{} with {}", named(&same.runs), digests.join(", "))
    };
    let shown: Vec<String> = mixed.iter().take(NAMED).map(group).collect();
    match mixed.len() - shown.len() {
        0 => shown.join("; "),
        num => format!("{}; and {num} more data sets", shown.join("; ")),
    }
}

/// A line for each fact that numbers may depend on and that differs within trials.
pub fn environments_in_words(report: &Report) -> Vec<String> {
    let mut found: Vec<(&str, Vec<&Trial>)> = Vec::new();
    for trial in &report.trials {
        for differing in &trial.differing {
            match found.iter_mut().find(|(what, _)| *what == differing.what) {
                Some((_, trials)) => trials.push(trial),
                None => found.push((&differing.what, vec![trial])),
            }
        }
    }
    let lines = found.iter().map(|(what, trials)| {
        let place = match trials[..] {
            [only] => format!("In `{}`", only.id),
            _ => format!("In {} trials, such as `{}`,", trials.len(), trials[0].id),
        };
        let mut values: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let differing = trials.iter().flat_map(|trial| &trial.differing);
        for Having { value, runs } in differing
            .filter(|it| it.what == *what)
            .flat_map(|it| &it.values)
        {
            values
                .entry(value)
                .or_default()
                .extend(runs.iter().cloned());
        }
        let values = values
            .iter()
            .map(|(value, runs)| format!("{} {}", named(runs), with(what, value)));
        let values: Vec<String> = values.collect();
        format!(
            "{place} the averaged runs were computed {}: {}. {REPRODUCE}.",
            how(what),
            values.join("; ")
        )
    });
    lines.collect()
}

/// How to check whether runs of different builds or machines have the same numbers.
const REPRODUCE: &str = "Their numbers may differ: `runner reproduce` on a run's folder shows how much; to recompute runs, delete their folders and run the experiment again";

fn how(what: &str) -> &'static str {
    match what {
        "runner" => "by different builds of runner",
        "burn" => "with different versions of Burn",
        "backends" => "by builds with different backends",
        "operating system" => "on different operating systems",
        "processor" => "on different processors",
        "device" => "on different devices",
        "driver" => "with different drivers",
        "instructions" => "with different instructions (`RUNNER_SIMD`)",
        KERNELS => "with different kernels, which are selected by timing",
        _ => "with layers computed by different kernels",
    }
}

fn with(what: &str, value: &str) -> String {
    match what {
        "runner" => format!("by {value}"),
        "operating system" | "processor" | "device" => format!("on {value}"),
        KERNELS => format!("with digest {value}"),
        "instructions" => format!("with `RUNNER_SIMD={value}`"),
        "layers by" => format!("with layers computed by {value}"),
        _ => format!("with {value}"),
    }
}

/// Reports if trials were evaluated on different items: their axes change the data, and a difference between them may
/// come from the items. Missing folds do not count as other items.
pub fn other_items(report: &Report) -> Option<String> {
    let split = split_of(&report.objective);
    let data = &report.provenance.data;
    let measured = report.trials.iter().filter(|trial| trial.rank.is_some());
    let measured: Vec<_> = measured
        .map(|trial| (trial, trial.data_in(data)))
        .filter(|(_, items)| !items.is_empty())
        .collect();
    let (first, of_first) = measured.first()?;
    let is_other =
        |(_, items): &&(&Trial, Vec<&DataUsed>)| !share_items(items, of_first, &report.objective);
    let num = measured.iter().filter(is_other).count();
    let (other, _) = measured.iter().find(is_other)?;
    let others = match num {
        1 => format!("`{}` was", other.id),
        _ => format!("{num} trials, such as `{}`, were", other.id),
    };
    Some(format!(
        "{others} measured on other {split} items than `{}`: a difference between them may come from the items, so there is no verdict on it.",
        first.id
    ))
}

/// `a`, `b` and so on, truncated if long.
fn named(runs: &[String]) -> String {
    let shown: Vec<String> = runs
        .iter()
        .take(NAMED)
        .map(|run| format!("`{run}`"))
        .collect();
    match runs.len() - shown.len() {
        0 => shown.join(", "),
        num => format!("{} and {num} more", shown.join(", ")),
    }
}
