//! What varied between the runs that a mean is taken over: what its spread tells, and what it does not.

use std::collections::BTreeSet;

use super::model::{Report, Trial};
use runner_core::plan::HeldOut;
use runner_core::record::DataUsed;

/// A line about the spread of all trials: what varied between the runs of each, and what none of them varied. None
/// where nothing is averaged.
pub fn varied(report: &Report) -> Option<String> {
    let averaged = report
        .trials
        .iter()
        .filter(|trial| trial.n > 1 && !trial.has_mixed_data());
    let averaged: Vec<&Trial> = averaged.collect();
    if averaged.is_empty() {
        return None;
    }
    let seeds = averaged.iter().map(|trial| seeds_of(report, trial));
    let has_seeds = seeds.max().unwrap_or(0) > 1;
    let used: BTreeSet<usize> = averaged
        .iter()
        .flat_map(|trial| trial.data.iter().copied())
        .collect();
    let used = used.iter().filter_map(|at| report.provenance.data.get(*at));
    let used: Vec<&DataUsed> = used.collect();
    Some(match (report.folds, has_seeds) {
        (Some(folds), true) => format!(
            "The runs of a trial differ in which of the {folds} folds is held out for validation, in initial weights and in batch order; {}.",
            one_deal(&used)
        ),
        (Some(folds), false) => format!(
            "The runs of a trial have one seed and differ in which of the {folds} folds is held out for validation; {}.",
            one_deal(&used)
        ),
        (None, _) => format!(
            "The runs of a trial differ only in initial weights and batch order; {}.",
            one_split(&used)
        ),
    })
}

/// The same for a table further down, in a few words.
pub fn varied_briefly(report: &Report) -> Option<String> {
    varied(report)?;
    Some(match report.folds {
        Some(_) => "Over folds of one assignment of the items.".into(),
        None => "Over seeds on one split, so this says nothing about other splits.".into(),
    })
}

fn seeds_of(report: &Report, trial: &Trial) -> usize {
    let sample = report.objective_of(trial);
    let values = sample.map_or(&[][..], |sample| &sample.by_seed);
    let seeds = values.iter().map(|(repeat, _)| repeat.seed);
    seeds.collect::<BTreeSet<_>>().len()
}

/// What is said of the split that all runs of a trial share.
fn one_split(used: &[&DataUsed]) -> String {
    let nums: BTreeSet<usize> = used.iter().map(|used| used.num_valid).collect();
    let items = match (nums.first(), nums.last()) {
        (Some(least), Some(most)) if least == most && *least > 0 => format!("{least} valid items"),
        (Some(least), Some(most)) if *least > 0 => format!("{least} to {most} valid items"),
        _ => "valid items".into(),
    };
    let ways: BTreeSet<String> = used.iter().map(|used| way(used.held_out)).collect();
    let way = match (ways.first(), ways.len()) {
        (Some(way), 1) => way.clone(),
        _ => String::new(),
    };
    let who = if is_one_set(used) {
        "all runs share"
    } else {
        "all runs of a trial share"
    };
    format!("{who} one split with {items}{way}, so ± and intervals say nothing about other splits")
}

/// Whether all of them have the same items; where that is not known, the same words.
fn is_one_set(used: &[&DataUsed]) -> bool {
    let valid = |used: &&DataUsed| {
        used.digests
            .get("valid")
            .cloned()
            .unwrap_or(used.what.clone())
    };
    used.iter().map(valid).collect::<BTreeSet<_>>().len() < 2
}

fn way(held_out: HeldOut) -> String {
    match held_out {
        HeldOut::Drawn { seed } => format!(" (`data.split.seed` {seed})"),
        HeldOut::InOrder => " (the last ones)".into(),
        HeldOut::Given => " (those of `data.valid_path`)".into(),
        HeldOut::Unknown => String::new(),
    }
}

/// What is said of the folds, which are dealt once.
fn one_deal(used: &[&DataUsed]) -> String {
    let seeds: BTreeSet<String> = used.iter().map(|used| way(used.held_out)).collect();
    let seed = match (seeds.first(), seeds.len()) {
        (Some(seed), 1) => seed.as_str(),
        _ => "",
    };
    format!(
        "the items were assigned to folds once{seed}, so ± and intervals say nothing about other assignments"
    )
}
