//! Trials of one or more experiments compared with a baseline: ranks, verdicts, costs, effects, and caveats.

mod notes;
mod pareto;
mod pivot;
mod question;
mod text;
mod trials;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::backends::OnBackend;
use super::effects::axis_effects;
use super::model::{AxisEffect, Baseline, Report, Trial};
use super::rank::{is_loss, is_measured_differently, ranked};
use super::sample::{COSTS, Sample};
pub use pareto::Front;
pub use pivot::{Cell, Pivot};
use question::{baseline_of, list, nearest_first, value_of};
use runner_core::diagnostic::Wrong;
use runner_core::record::ExperimentFolder;
use runner_statistics::{Claims, Direction, Verdict};
pub use text::{csv, markdown, plain};
use trials::{
    axes_of, backends, compared, differing, measured, named, overlap_of, sample,
    smallest_difference,
};

/// The trials of one experiment, run or saved report.
#[derive(Clone, Debug)]
pub struct Source {
    /// The prefix of its trials, if there are several sources.
    pub name: String,
    /// Its report, with all metrics.
    pub report: Report,
    /// The experiment's folder; none of a saved report.
    pub folder: Option<ExperimentFolder>,
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

/// Compares all trials of some sources.
pub fn compare(sources: &[Source], question: &Question) -> Result<Comparison, Wrong> {
    let (value, direction) = value_of(sources, question)?;
    let trials = named(sources);
    check_values(sources, &trials, &value)?;
    // A trial that violates the constraints of its search cannot be the best.
    let mean = |trial: &Trial| {
        let sample = sample(trial, &value).filter(|_| trial.is_feasible());
        sample.map(Sample::mean)
    };
    let order = ranked(&trials.iter().map(mean).collect::<Vec<_>>(), direction);
    let ranks: Vec<Option<usize>> = order.iter().map(|(_, rank)| *rank).collect();
    let ranked: Vec<&Trial> = order.iter().map(|(at, _)| &trials[*at]).collect();
    let feasible = ranked.iter().copied().filter(|trial| trial.is_feasible());
    let feasible: Vec<&Trial> = feasible.collect();
    let mut baseline = baseline_of(sources, question, &ranked, &value)?;
    baseline.unbeaten = trials::unbeaten_by(sources, &baseline, &value);
    let axes = axes_of(sources);
    let depending = sources.iter().flat_map(|source| &source.report.depending);
    let depending: Vec<String> = depending.cloned().collect();
    let varied = [axes.clone(), depending, differing(sources)].concat();
    // Values without a common meaning are neither ranked nor judged.
    let others = notes::on_other_items(sources, &baseline, &value);
    let is_elsewhere = sources.len() > 1 && !others.is_empty();
    // Between experiments, a difference may be one of the data; within one, the effects of axes allow for it.
    let is_alike = |id: &String| !is_elsewhere || !others.contains(id);
    let alike: Cow<'_, [Trial]> = if is_elsewhere {
        trials.iter().filter(|t| is_alike(&t.id)).cloned().collect()
    } else {
        Cow::Borrowed(&trials)
    };
    let losses: BTreeSet<&String> = sources.iter().flat_map(|s| &s.report.losses).collect();
    let are_several = sources.len() > 1 && losses.len() > 1;
    let is_of_others = |value: &str| {
        let mut tasks = sources.iter().map(|source| source.report.task());
        tasks.any(|task| is_measured_differently(value, &varied, task))
            || (are_several || alike.len() < trials.len().min(2)) && is_loss(value)
    };
    let is_common = !is_of_others(&value);
    // With other data, experiments may minimize a different function, too.
    let is_ranked = |id: &String| is_common && (!is_loss(&value) || is_alike(id));
    let overlap = overlap_of(sources, &others, &value);
    let traded = question.pareto.iter().flat_map(|(a, b)| [a, b]);
    if let Some(other) = traded.into_iter().find(|value| is_of_others(value)) {
        return Err(Wrong::new(
            format!(
                "`{other}` is another quantity in different trials, so they cannot be compared by it"
            ),
            "use a metric that all of them share",
        ));
    }
    // Each look counts, so that one at a part of the runs is not taken.
    let looking = sources
        .iter()
        .filter_map(|source| source.report.looks.as_ref());
    let is_early = looking.into_iter().any(|looking| looking.is_too_early);
    let is_judged = is_common && !is_early && baseline.unbeaten.is_none();
    Ok(Comparison {
        notes: {
            let mut notes = notes::notes(sources, &ranked, &baseline, &value, question.alpha);
            if alike.len() < trials.len() {
                notes.push(notes::over_alike(is_common && is_loss(&value)));
            }
            if !is_common {
                notes.push(notes::not_common(&value, is_elsewhere));
            }
            notes
        },
        pivot: match &question.pivot {
            Some((rows, columns)) => Some(pivot::pivot(&alike, &axes, rows, columns, &value)?),
            None => None,
        },
        pareto: match &question.pareto {
            Some((a, b)) => {
                let eligible = feasible.iter().copied().filter(|t| is_alike(&t.id));
                let eligible: Vec<&Trial> = eligible.collect();
                Some(pareto::front(&eligible, &measured(sources), a, b)?)
            }
            None => None,
        },
        backends: if is_common {
            backends(sources, &value, direction, overlap)
        } else {
            Vec::new()
        },
        effects: if is_common {
            match sources {
                [source] => axis_effects(
                    (&trials, &source.report.provenance.data),
                    &axes,
                    &value,
                    overlap,
                ),
                _ => axis_effects((&alike, &[]), &axes, &value, overlap),
            }
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
                    looks: trials::looks_of(sources),
                },
                overlap,
                notes::num_comparable_pairs(sources, &feasible, &value),
            );
            let of_ranked = trials.iter().zip(&ranks);
            let of_ranked = of_ranked.filter(|(trial, _)| is_ranked(&trial.id));
            let taken: Vec<usize> = of_ranked.filter_map(|(_, rank)| *rank).collect();
            for (trial, rank) in trials.iter_mut().zip(ranks) {
                let rank = rank.filter(|_| is_ranked(&trial.id));
                trial.rank = rank.map(|rank| 1 + taken.partition_point(|of| *of < rank));
                trial.verdict = trial.verdict.take().filter(|_| is_judged);
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

/// Refuses a comparison in which no trial has a value.
fn check_values(sources: &[Source], trials: &[Trial], value: &str) -> Result<(), Wrong> {
    if trials.iter().all(|trial| trial.n == 0) {
        let problems: usize = sources.iter().map(|s| s.report.problems.len()).sum();
        return Err(Wrong::new(
            match problems {
                1 => "the run is not completed".to_owned(),
                num => format!("none of the {num} runs is completed"),
            },
            "`runner run` on the experiment completes the rest; `runner list` shows its progress",
        ));
    }
    if trials.iter().all(|trial| sample(trial, value).is_none()) {
        let known = measured(sources);
        let what = if COSTS.contains(&value) {
            "a saved report does not contain it for each seed; use the experiment's folder".into()
        } else {
            nearest_first(
                value,
                &known,
                format!("the recorded metrics are {}", list(&known)),
            )
        };
        if let Some(mixed) = trials.iter().find(|trial| trial.has_mixed_data()) {
            return Err(Wrong::new(
                format!(
                    "no trial has a mean to compare: the completed runs of `{}` read different data",
                    mixed.id
                ),
                "`runner report` on the experiment's folder shows which data each run read",
            ));
        }
        return Err(Wrong::new(format!("no trial has `{value}`"), what));
    }
    Ok(())
}
