//! What varies between averaged runs: how far their spread generalizes.

use std::collections::BTreeSet;

use super::model::{Report, Trial};
use super::numbers::short_number;
use super::sample::{Repeat, Sample, direction};
use runner_core::diagnostic::counted;
use runner_core::plan::HeldOut;
use runner_core::record::{DataUsed, State};
use runner_statistics::Direction;

/// A line about the spread of all trials: what varies between the runs of each, and what they share. None if nothing is
/// averaged.
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
    let drawn = |used: &&DataUsed| matches!(used.held_out, HeldOut::DrawnForRun { .. });
    Some(match (report.folds, has_seeds) {
        (Some(folds), true) => format!(
            "± is over the {folds} folds, initial weights and batch order; {}. Intervals and verdicts allow for what runs share: training items (Nadeau and Bengio, 2003) and seeds.",
            one_deal(&used)
        ),
        (Some(folds), false) => format!(
            "± is over the {folds} folds, with one seed, so it says nothing about other seeds; {}.",
            one_deal(&used)
        ),
        (None, _) if used.iter().any(drawn) => format!(
            "± is over splits, initial weights and batch order: each seed draws its own split (`data.split.seed = \"run\"`) with {}. Intervals and verdicts allow for the training items that splits share (Nadeau and Bengio, 2003).",
            num_items(&used)
        ),
        (None, _) => format!(
            "± is over initial weights and batch order; {}.",
            one_split(&used)
        ),
    })
}

/// The same for a table further down, in a few words.
pub fn varied_briefly(report: &Report) -> Option<String> {
    varied(report)?;
    Some(match (report.folds, report.overlap) {
        (Some(_), _) => "± over folds of one assignment of the items.".into(),
        (None, Some(_)) => "± over splits, initial weights and batch order.".into(),
        (None, None) => {
            "± over initial weights and batch order on a single split, which does not generalize to other splits."
                .into()
        }
    })
}

/// How far, in spreads of the others, a run must be from them to be reported: more than noise causes, even with long
/// tails.
const FAR: f64 = 10.0;

/// The same, as a share of the others' value, where their spread says nothing about the noise.
const CLEAR: f64 = 0.2;

/// A line about the runs that are far worse than the others of their trial, because their mean is then not very
/// informative.
pub fn collapsed(report: &Report) -> Option<String> {
    let direction = direction(&report.objective)?;
    let sampled = report.trials.iter();
    let sampled: Vec<(&Trial, &Sample)> = sampled
        .filter_map(|trial| Some((trial, report.objective_of(trial)?)))
        .filter(|(_, sample)| sample.by_seed.len() > 2)
        .collect();
    let apart: Vec<(&Trial, Apart)> = sampled
        .into_iter()
        .filter_map(|(trial, sample)| Some((trial, Apart::of(sample, direction)?)))
        .collect();
    // Two values that happen to be close say nothing about the noise, so the noise of the other trials counts as well.
    let mut ranges: Vec<f64> = apart.iter().map(|(_, apart)| apart.range).collect();
    ranges.sort_by(f64::total_cmp);
    let usual = ranges.get(ranges.len() / 2).copied().unwrap_or(0.0);
    let is_far = |apart: &Apart| {
        let is_clear = apart.gap > CLEAR * apart.low.abs().max(apart.high.abs());
        match apart.range.max(usual) {
            // Equal values, such as accuracies on few items, say nothing about the noise either.
            0.0 => is_clear,
            // Of three normal values, one is as far from the two others in 3 of 100 trials.
            range => apart.gap > FAR * range && (is_clear || !apart.is_of_three),
        }
    };
    let far: Vec<_> = apart.iter().filter(|(_, apart)| is_far(apart)).collect();
    let (trial, first) = far.first()?;
    let more = match far.len() {
        1 => String::new(),
        num => format!(
            " Runs of {} more collapsed as well.",
            counted(num - 1, "trial")
        ),
    };
    Some(format!(
        "Warning: {} {} of `{}` collapsed: {} {}, the others from {} to {}. The mean and ± include it and are therefore not very informative.{more}",
        report.repeats(),
        first.repeat,
        trial.id,
        report.objective,
        short_number(first.value),
        short_number(first.low),
        short_number(first.high),
    ))
}

/// A line about ranked trials of which some runs failed: those that completed may be the better ones.
pub fn failed(report: &Report) -> Option<String> {
    let failed: BTreeSet<&String> = report
        .problems
        .iter()
        .filter(|problem| problem.outcome == State::Failed)
        .map(|problem| &problem.run)
        .collect();
    let num = |trial: &Trial| trial.runs.iter().filter(|run| failed.contains(run)).count();
    let ranked = report.trials.iter().filter(|trial| trial.rank.is_some());
    let mut found = ranked
        .map(|trial| (trial, num(trial)))
        .filter(|(_, num)| *num > 0);
    let (first, num) = found.next()?;
    let more = match found.count() {
        0 => String::new(),
        num => format!(" The same is true of {}.", counted(num, "other trial")),
    };
    Some(format!(
        "Warning: {num} of {} of `{}` failed: its numbers and its verdict are about those that completed, which may be the better ones.{more}",
        counted(first.runs.len(), "run"),
        first.id
    ))
}

/// The worst value of a sample and the others.
struct Apart {
    repeat: Repeat,
    value: f64,
    /// From it to the nearest of the others.
    gap: f64,
    low: f64,
    high: f64,
    /// From the lowest to the highest of the others.
    range: f64,
    /// Whether there are only two others.
    is_of_three: bool,
}

impl Apart {
    fn of(sample: &Sample, direction: Direction) -> Option<Self> {
        let worst = sample
            .by_seed
            .iter()
            .reduce(|worst, other| {
                if direction.is_better(worst.1, other.1) {
                    other
                } else {
                    worst
                }
            })
            .copied()?;
        let others = sample
            .by_seed
            .iter()
            .filter(|(repeat, _)| *repeat != worst.0);
        let (low, high) = others.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (_, v)| {
            (low.min(*v), high.max(*v))
        });
        Some(Self {
            repeat: worst.0,
            value: worst.1,
            gap: (worst.1 - low).abs().min((worst.1 - high).abs()),
            low,
            high,
            range: high - low,
            is_of_three: sample.by_seed.len() == 3,
        })
    }
}

fn seeds_of(report: &Report, trial: &Trial) -> usize {
    let sample = report.objective_of(trial);
    let values = sample.map_or(&[][..], |sample| &sample.by_seed);
    let seeds = values.iter().map(|(repeat, _)| repeat.seed);
    seeds.collect::<BTreeSet<_>>().len()
}

/// The number of items in the valid split.
fn num_items(used: &[&DataUsed]) -> String {
    let nums: BTreeSet<usize> = used.iter().map(|used| used.num_valid).collect();
    match (nums.first(), nums.last()) {
        (Some(least), Some(most)) if least == most && *least > 0 => format!("{least} valid items"),
        (Some(least), Some(most)) if *least > 0 => format!("{least} to {most} valid items"),
        _ => "valid items".into(),
    }
}

/// The sentence about a split that all runs of a trial share.
fn one_split(used: &[&DataUsed]) -> String {
    let items = num_items(used);
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
    format!("{who} one split with {items}{way}, so it says nothing about other splits")
}

/// Whether all of them have the same items; if unknown, the same words.
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
        HeldOut::Drawn { seed } | HeldOut::DrawnForRun { seed } => {
            format!(" (`data.split.seed` {seed})")
        }
        HeldOut::InOrder => " (the last ones)".into(),
        HeldOut::Given => " (from `data.valid_path`)".into(),
        HeldOut::Unknown => String::new(),
    }
}

/// The sentence about folds, which are assigned once.
fn one_deal(used: &[&DataUsed]) -> String {
    let seeds: BTreeSet<String> = used.iter().map(|used| way(used.held_out)).collect();
    let seed = match (seeds.first(), seeds.len()) {
        (Some(seed), 1) => seed.as_str(),
        _ => "",
    };
    format!(
        "the items were assigned to folds once{seed}, so it says nothing about other assignments"
    )
}
