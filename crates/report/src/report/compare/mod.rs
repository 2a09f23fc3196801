//! Trials of one or more experiments compared with a baseline: ranks, verdicts, costs, effects, and caveats.

mod notes;
mod pareto;
mod pivot;
mod text;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::aggregate::axis_effects;
use super::backends::{OnBackend, by_backend};
use super::list::nearest_last;
use super::model::{AxisEffect, Baseline, Report, Trial};
use super::rank::{is_loss, is_of_several_losses, ranked};
use super::sample::{COSTS, Sample, direction, keyed, overlap};
pub use pareto::Front;
pub use pivot::{Cell, Pivot};
use runner_core::spec::nearest_path;
use runner_statistics::{Claims, Direction, Verdict, verdicts};
pub use text::{csv, markdown, plain};

/// The trials of one experiment, run or saved report.
#[derive(Clone, Debug)]
pub struct Source {
    /// The prefix of its trials, if there are several sources.
    pub name: String,
    /// Its report, with all metrics.
    pub report: Report,
}

/// The request.
#[derive(Clone, Debug)]
pub struct Question {
    /// The metric; the objective if not given.
    pub value: Option<String>,
    /// The baseline trial.
    pub baseline: Option<String>,
    /// The significance level of all verdicts together.
    pub alpha: f64,
    /// The keys of the rows and columns of a pivot table.
    pub pivot: Option<(String, String)>,
    /// The two metrics of a Pareto front.
    pub pareto: Option<(String, String)>,
}

/// The answer, as `--json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The metric.
    pub value: String,
    /// Which values are better.
    pub direction: Direction,
    /// The baseline; none if there is only one trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The significance level of all verdicts together.
    pub alpha: f64,
    /// Whether the metric is the same function for all; the loss may not be.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub is_common: bool,
    /// Held-out items divided by training items, if the repeats of trials use several splits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<f64>,
    /// The varied keys.
    pub axes: Vec<String>,
    /// The trials, best first.
    pub trials: Vec<Compared>,
    /// The same trials on several backends side by side; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<OnBackend>,
    /// The effect of each axis on the value over those of the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<AxisEffect>,
    /// The value by two keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pivot: Option<Pivot>,
    /// The Pareto front of two metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pareto: Option<Front>,
    /// Caveats of the comparison.
    pub notes: Vec<String>,
}

/// A trial among others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Its rank, from 1; none without a value. Equal trials share a rank.
    #[serde(default)]
    pub rank: Option<usize>,
    /// Its name, prefixed with its source if there are several.
    pub id: String,
    /// The values of the varied keys.
    pub axes: Map<String, Json>,
    /// Device and precision.
    pub backend: String,
    /// The value over seeds; none if no run has it.
    pub sample: Option<Sample>,
    /// Planned runs.
    pub num_runs: usize,
    /// Whether its value was measured on other items than the baseline's: then there is no verdict.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_other_items: bool,
    /// Runs that differ from the plan.
    pub num_adjusted: usize,
    /// The verdict against the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Training seconds per epoch.
    pub epoch_secs: Option<f64>,
    /// Speedup relative to the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// Peak memory of a run, in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory relative to the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
}

fn is_false(is: &bool) -> bool {
    !is
}

fn is_true(is: &bool) -> bool {
    *is
}

fn yes() -> bool {
    true
}

/// A phrase with a remedy.
pub type Wrong = (String, String);

/// Compares all trials of some sources.
pub fn compare(sources: &[Source], question: &Question) -> Result<Comparison, Wrong> {
    let (value, direction) = value_of(sources, question)?;
    let trials = named(sources);
    if trials.iter().all(|trial| trial.n == 0) {
        let problems: usize = sources.iter().map(|s| s.report.problems.len()).sum();
        return Err((
            format!("no run is completed in {problems}"),
            "`runner run` on the experiment completes the rest; `runner list` shows its progress"
                .into(),
        ));
    }
    if trials.iter().all(|trial| sample(trial, &value).is_none()) {
        let known = measured(sources);
        let what = if COSTS.contains(&value.as_str()) {
            "a saved report does not contain it for each seed; use the experiment's folder".into()
        } else {
            nearest_first(
                &value,
                &known,
                format!("the recorded metrics are {}", list(&known)),
            )
        };
        if let Some(mixed) = trials.iter().find(|trial| trial.has_mixed_data()) {
            return Err((
                format!(
                    "no trial has a mean to compare: the completed runs of `{}` read different data",
                    mixed.id
                ),
                "`runner report` on the experiment's folder shows which data each run read".into(),
            ));
        }
        return Err((format!("no trial has `{value}`"), what));
    }
    let mean = |trial: &Trial| sample(trial, &value).map(Sample::mean);
    let order = ranked(&trials.iter().map(mean).collect::<Vec<_>>(), direction);
    let ranks: Vec<Option<usize>> = order.iter().map(|(_, rank)| *rank).collect();
    let ranked: Vec<&Trial> = order.iter().map(|(at, _)| &trials[*at]).collect();
    let baseline = baseline_of(sources, question, &ranked, &value)?;
    let axes = axes_of(sources);
    // Values without a common meaning are neither ranked nor judged.
    let others = notes::on_other_items(sources, &baseline, &value);
    // With other data, experiments may minimize a different function, too.
    let is_elsewhere = sources.len() > 1 && !others.is_empty();
    let losses: BTreeSet<&String> = sources.iter().flat_map(|s| &s.report.losses).collect();
    let are_several = sources.len() > 1 && losses.len() > 1;
    let is_of_others = |value: &str| {
        is_of_several_losses(value, &axes) || (is_elsewhere || are_several) && is_loss(value)
    };
    let is_common = !is_of_others(&value);
    let overlap = overlap_of(sources, &value);
    let traded = question.pareto.iter().flat_map(|(a, b)| [a, b]);
    if let Some(other) = traded.into_iter().find(|value| is_of_others(value)) {
        return Err((
            format!(
                "`{other}` is computed by different functions in different trials, so they cannot be compared by it"
            ),
            "use a metric that all of them share".into(),
        ));
    }
    Ok(Comparison {
        notes: {
            let mut notes = notes::notes(sources, &ranked, &baseline, &value);
            if !is_common && is_elsewhere {
                notes.push(format!("`{value}` was measured on different data in different experiments, so there are no ranks and no verdicts: use `--value` with a metric that they share"));
            } else if !is_common {
                notes.push(format!("`{value}` is computed by different functions in different trials, so there are no ranks and no verdicts: use `--value` with a metric that all of them share"));
            }
            notes
        },
        pivot: match &question.pivot {
            Some((rows, columns)) => Some(pivot::pivot(&trials, &axes, rows, columns, &value)?),
            None => None,
        },
        pareto: match &question.pareto {
            Some((a, b)) => Some(pareto::front(&ranked, &measured(sources), a, b)?),
            None => None,
        },
        backends: if is_common {
            backends(sources, &value, direction, overlap)
        } else {
            Vec::new()
        },
        effects: if is_common {
            axis_effects(&trials, &axes, &value)
        } else {
            Vec::new()
        },
        trials: {
            let mut trials = compared(
                &ranked,
                &baseline,
                &others,
                &value,
                &Claims {
                    direction,
                    alpha: question.alpha,
                    num_comparisons: 0,
                    smallest_difference: smallest_difference(sources, &value),
                    overlap: None,
                },
                overlap,
            );
            for (trial, rank) in trials.iter_mut().zip(ranks) {
                trial.rank = rank.filter(|_| is_common);
                trial.verdict = trial.verdict.take().filter(|_| is_common);
            }
            trials
        },
        baseline: (ranked.len() > 1 && is_common).then_some(baseline),
        is_common,
        overlap,
        alpha: question.alpha,
        value,
        direction,
        axes,
    })
}

/// How much the repeats of trials share, if they use several splits; costs share nothing.
fn overlap_of(sources: &[Source], value: &str) -> Option<f64> {
    if COSTS.contains(&value) {
        return None;
    }
    let of = |source: &Source| {
        let report = &source.report;
        // Reports of earlier versions only have folds.
        let folds = report.folds.map(|num| 1.0 / (num.max(2) - 1) as f64);
        report.overlap.or(folds)
    };
    sources.iter().filter_map(of).max_by(f64::total_cmp)
}

/// The smallest difference that matters, where the value is the objective that it was said of and all agree.
fn smallest_difference(sources: &[Source], value: &str) -> Option<f64> {
    let of = |source: &Source| {
        let report = &source.report;
        let is_objective = report.objective == value;
        report.smallest_difference.filter(|_| is_objective)
    };
    let mut all = sources.iter().map(of);
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// The compared metric, and its direction.
fn value_of(sources: &[Source], question: &Question) -> Result<(String, Direction), Wrong> {
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
                    return Err((
                        format!("the objectives differ: `{one}` and `{other}`"),
                        format!("choose what to compare, for example with `--value {one}`"),
                    ));
                }
                _ => return Err(("there is nothing to compare".into(), String::new())),
            }
        }
    };
    match direction(&value) {
        Some(direction) => Ok((value, direction)),
        None => {
            let known = measured(sources);
            let what = format!("the metrics are {}", list(&known));
            Err((
                format!("there is no metric `{value}`"),
                nearest_first(&value, &known, what),
            ))
        }
    }
}

/// A remedy that begins with the probable name: if only its last part is given, the one on valid.
fn nearest_first(name: &str, known: &[String], rest: String) -> String {
    let names = || known.iter().map(String::as_str);
    match nearest_path(name, names()).or_else(|| nearest_last(name, names())) {
        Some(near) => format!("did you mean `{near}`? {rest}"),
        None => rest,
    }
}

/// All trials with unique names.
fn named(sources: &[Source]) -> Vec<Trial> {
    let name = |source: &Source, trial: &Trial| {
        let mut trial = trial.clone();
        if sources.len() > 1 {
            trial.id = format!("{}/{}", source.name, trial.id);
        }
        trial
    };
    let trials = sources.iter().flat_map(|source| {
        let trials = source.report.trials.iter();
        trials.map(move |trial| name(source, trial))
    });
    trials.collect()
}

/// The trials of each source by backend, since trials of different sources differ in more.
fn backends(
    sources: &[Source],
    value: &str,
    direction: Direction,
    ratio: Option<f64>,
) -> Vec<OnBackend> {
    let of = |source: &Source| {
        let mut rows = by_backend(&source.report.trials, value, direction, ratio);
        if sources.len() > 1 {
            let named = |row: &mut OnBackend| row.trial = format!("{}/{}", source.name, row.trial);
            rows.iter_mut().for_each(named);
        }
        rows
    };
    sources.iter().flat_map(of).collect()
}

fn sample<'a>(trial: &'a Trial, value: &str) -> Option<&'a Sample> {
    trial.metrics.get(value)
}

/// The names of all metrics with a direction.
fn measured(sources: &[Source]) -> Vec<String> {
    let trials = sources.iter().flat_map(|source| &source.report.trials);
    let names: BTreeSet<&String> = trials.flat_map(|trial| trial.metrics.keys()).collect();
    let metrics = names.into_iter().filter(|name| direction(name).is_some());
    metrics.cloned().collect()
}

/// The varied keys of all sources, in their order.
fn axes_of(sources: &[Source]) -> Vec<String> {
    let mut axes: Vec<String> = Vec::new();
    for key in sources.iter().flat_map(|source| &source.report.axes) {
        if !axes.contains(key) {
            axes.push(key.clone());
        }
    }
    axes
}

/// The baseline as requested, or as the only file sets it, or the highest ranked trial.
fn baseline_of(
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
        [trial] if sample(trial, value).is_none() => Err((
            format!(
                "the baseline `{}` has no `{value}`: {} of its runs are completed",
                trial.id, trial.n
            ),
            "choose another baseline with `--baseline`, or let `runner run` complete its runs"
                .into(),
        )),
        [trial] => Ok(Baseline {
            trial: trial.id.clone(),
            is_picked: false,
        }),
        [] => Err((
            format!("the baseline trial `{name}` does not exist"),
            format!("the trials are {}", list(&ids(ranked))),
        )),
        _ => Err((
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

fn ids(trials: &[&Trial]) -> Vec<String> {
    trials.iter().map(|trial| trial.id.clone()).collect()
}

/// `a`, `b` and so on, truncated if long.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect();
    match names.len() {
        0 => "none".into(),
        num if num > SHOWN => format!("{} and {} more", shown.join(", "), num - SHOWN),
        _ => shown.join(", "),
    }
}

fn compared(
    ranked: &[&Trial],
    baseline: &Baseline,
    on_other_items: &BTreeSet<String>,
    value: &str,
    claims: &Claims<'_>,
    ratio: Option<f64>,
) -> Vec<Compared> {
    let base = ranked.iter().find(|trial| trial.id == baseline.trial);
    // A trial without a value is compared with nothing, and does not affect the correction of others.
    let is_judged = |trial: &Trial| {
        let is_other = trial.id != baseline.trial && !on_other_items.contains(&trial.id);
        is_other && !trial.values(value).is_empty()
    };
    let others = ranked.iter().filter(|trial| is_judged(trial));
    let others = others.map(|trial| trial.values(value));
    let base_values = base.map_or::<&[_], _>(&[], |base| base.values(value));
    let samples: Vec<_> = [base_values].into_iter().chain(others).collect();
    let overlap = overlap(&samples, ratio);
    let mut samples = keyed(&samples);
    let base_values = samples.remove(0);
    let num_comparisons = if baseline.is_picked {
        (samples.len() + 1) * samples.len() / 2
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
