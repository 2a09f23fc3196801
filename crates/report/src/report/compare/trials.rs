//! The trials of some sources, each compared with the baseline.

use std::collections::BTreeSet;

use super::{Compared, Source};
use crate::report::backends::{OnBackend, by_backend};
use crate::report::looks::Looking;
use crate::report::model::{Baseline, Trial, Unbeaten};
use crate::report::sample::{COSTS, Sample, direction, keyed, overlap};
use crate::report::unbeaten::unbeaten;
use runner_core::spec::comparable::MEASURING;
use runner_statistics::{Claims, Direction, Looks, verdicts};

/// The name of a trial among those of all sources.
pub(super) fn name_in(sources: &[Source], source: &Source, trial: &Trial) -> String {
    if sources.len() > 1 {
        format!("{}/{}", source.name, trial.id)
    } else {
        trial.id.clone()
    }
}

/// All trials with unique names.
pub(super) fn named(sources: &[Source]) -> Vec<Trial> {
    let name = |source: &Source, trial: &Trial| Trial {
        id: name_in(sources, source, trial),
        ..trial.clone()
    };
    let trials = sources.iter().flat_map(|source| {
        let trials = source.report.trials.iter();
        trials.map(move |trial| name(source, trial))
    });
    trials.collect()
}

/// The best constant prediction, if the baseline has not beaten it. A saved report knows it of its own baseline.
pub(super) fn unbeaten_by(
    sources: &[Source],
    baseline: &Baseline,
    value: &str,
) -> Option<Unbeaten> {
    sources.iter().find_map(|source| {
        let id = match sources {
            [_] => Some(baseline.trial.as_str()),
            _ => baseline
                .trial
                .strip_prefix(&source.name)
                .and_then(|rest| rest.strip_prefix('/')),
        };
        let report = &source.report;
        let trial = report.trials.iter().find(|trial| Some(&*trial.id) == id)?;
        match &source.folder {
            Some(folder) => unbeaten(trial, value, folder),
            None => {
                let its = report.baseline.as_ref()?;
                let is_same = its.trial == trial.id && report.objective == value;
                its.unbeaten.clone().filter(|_| is_same)
            }
        }
    })
}

pub(super) fn sample<'a>(trial: &'a Trial, value: &str) -> Option<&'a Sample> {
    trial.metrics.get(value)
}

/// The names of all metrics with a direction.
pub(super) fn measured(sources: &[Source]) -> Vec<String> {
    let trials = sources.iter().flat_map(|source| &source.report.trials);
    let names: BTreeSet<&String> = trials.flat_map(|trial| trial.metrics.keys()).collect();
    let metrics = names.into_iter().filter(|name| direction(name).is_some());
    metrics.cloned().collect()
}

/// The varied keys of all sources, in their order.
pub(super) fn axes_of(sources: &[Source]) -> Vec<String> {
    let mut axes: Vec<String> = Vec::new();
    for key in sources.iter().flat_map(|source| &source.report.axes) {
        if !axes.contains(key) {
            axes.push(key.clone());
        }
    }
    axes
}

/// The keys of what metrics measure whose values differ between experiments.
pub(super) fn differing(sources: &[Source]) -> Vec<String> {
    let keys = MEASURING.iter().map(|of| of.key.to_owned());
    let differs = |key: &String| {
        // Not every kind of data has each of them.
        let values = sources
            .iter()
            .filter_map(|source| source.report.measured_by.get(key));
        values.collect::<BTreeSet<_>>().len() > 1
    };
    keys.filter(differs).collect()
}

/// How much the repeats of trials share, if they use several splits; costs share nothing. Experiments all of whose trials
/// were measured on other items are not compared.
pub(super) fn overlap_of(
    sources: &[Source],
    on_other_items: &BTreeSet<String>,
    value: &str,
) -> Option<f64> {
    if COSTS.contains(&value) {
        return None;
    }
    let of = |source: &Source| {
        let report = &source.report;
        // Reports of earlier versions only have folds.
        let folds = report.folds.map(|num| 1.0 / (num.max(2) - 1) as f64);
        report.overlap.or(folds)
    };
    let is_compared = |source: &&Source| {
        let trials = &source.report.trials;
        let is_alike = |trial: &Trial| !on_other_items.contains(&name_in(sources, source, trial));
        trials.iter().any(is_alike)
    };
    let compared = sources.iter().filter(is_compared);
    compared.filter_map(of).max_by(f64::total_cmp)
}

/// The smallest difference that matters, if the value is the objective that it refers to and all sources agree.
pub(super) fn smallest_difference(sources: &[Source], value: &str) -> Option<f64> {
    let of = |source: &Source| {
        let report = &source.report;
        let is_objective = report.objective == value;
        report.smallest_difference.filter(|_| is_objective)
    };
    let mut all = sources.iter().map(of);
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// The looks at the verdicts of the sources: those of the source that was looked at most often.
pub(super) fn looks_of(sources: &[Source]) -> Option<Looks> {
    let looking = sources
        .iter()
        .filter_map(|source| source.report.looks.as_ref());
    looking
        .filter_map(Looking::looks)
        .max_by_key(|looks| looks.number)
}

/// The trials of each source by backend, since trials of different sources differ in more.
pub(super) fn backends(
    sources: &[Source],
    value: &str,
    direction: Direction,
    ratio: Option<f64>,
) -> Vec<OnBackend> {
    let of = |source: &Source| {
        let mut rows = by_backend(
            &source.report.trials,
            value,
            direction,
            ratio,
            looks_of(sources),
        );
        if sources.len() > 1 {
            let named = |row: &mut OnBackend| row.trial = format!("{}/{}", source.name, row.trial);
            rows.iter_mut().for_each(named);
        }
        rows
    };
    sources.iter().flat_map(of).collect()
}

pub(super) fn compared(
    ranked: &[&Trial],
    baseline: &Baseline,
    on_other_items: &BTreeSet<String>,
    value: &str,
    claims: &Claims<'_>,
    ratio: Option<f64>,
    num_pairs: usize,
) -> Vec<Compared> {
    let base = ranked.iter().find(|trial| trial.id == baseline.trial);
    // A trial without a value, or which cannot be selected, is compared with nothing, and does not affect the correction of
    // others.
    let is_judged = |trial: &Trial| {
        let is_other = trial.id != baseline.trial && !on_other_items.contains(&trial.id);
        is_other && trial.is_feasible() && !trial.values(value).is_empty()
    };
    let others = ranked.iter().filter(|trial| is_judged(trial));
    let others = others.map(|trial| trial.values(value));
    let base_values = base.map_or::<&[_], _>(&[], |base| base.values(value));
    let samples: Vec<_> = [base_values].into_iter().chain(others).collect();
    let overlap = overlap(&samples, ratio);
    let mut samples = keyed(&samples);
    let base_values = samples.remove(0);
    let num_comparisons = if baseline.is_picked {
        num_pairs
    } else {
        samples.len()
    };
    let claims = Claims {
        num_comparisons,
        overlap: overlap.as_ref(),
        ..*claims
    };
    let found = verdicts(&base_values, &samples, &claims);
    let mut found = found.unwrap_or_default().into_iter();
    let bytes = |trial: &Trial| trial.memory.map(|memory| memory.measured.bytes());
    let row = |trial: &&Trial| {
        let is_other = trial.id != baseline.trial;
        let base = base.filter(|_| is_other);
        let secs = base.and_then(|base| base.epoch_secs).zip(trial.epoch_secs);
        let held = base.and_then(|base| bytes(base)).zip(bytes(trial));
        Compared {
            rank: None,
            id: trial.id.clone(),
            axes: trial.axes.clone(),
            backend: format!("{} {}", trial.device, trial.precision),
            sample: sample(trial, value).cloned(),
            num_runs: trial.runs.len(),
            has_other_items: on_other_items.contains(&trial.id),
            num_adjusted: trial.num_adjusted,
            verdict: if is_judged(trial) { found.next() } else { None },
            epoch_secs: trial.epoch_secs,
            speed: secs.map(|(base, its)| base / its),
            memory_bytes: bytes(trial),
            memory: held.map(|(base, its)| its as f64 / base.max(1) as f64),
        }
    };
    ranked.iter().map(row).collect()
}
