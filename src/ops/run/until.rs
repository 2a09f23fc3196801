//! Seeds that are added until every verdict is decided.
//!
//! The numbers of seeds are fixed before the first look: from those of the file to `verdict.max_seeds`, in equal steps,
//! one for each of `verdict.looks`. Each step is the run of a plan in which the seeds are in the file, so that a step
//! that was stopped is resumed like any run, and where to continue follows from the runs that have a folder.

use std::collections::BTreeSet;

use super::{Run, RunOutcome, run_once};
use crate::error::{Error, unreadable};
use crate::ops::cluster::launch_of;
use crate::ops::{Experiment, Progress, Sink, open, plan, quiet};
use crate::report::{Problem, Report, Trial, looks_before};
use runner_core::diagnostic::{Diagnostic, Diagnostics, counted};
use runner_core::plan::{FOLD, Plan};
use runner_core::record::{ExperimentFolder, State};

/// Trains the runs of an experiment, and adds seeds until every verdict is decided or no looks or seeds are left.
pub(super) fn run(options: &Run, sink: &Sink<'_>) -> Result<RunOutcome, Error> {
    let planned = plan(&options.experiment, &quiet)?.plan;
    if planned.search.is_some() {
        // Refused there.
        return run_once(options, sink);
    }
    let steps = steps(&planned)?;
    let follow = options.follow || !launch_of(options, &planned)?.is_local();
    let folder = ExperimentFolder(options.results.join(&planned.experiment));
    let mut at = reached(&planned, &steps, &folder);
    looks_are_left(options, &steps, at, &folder)?;
    loop {
        let seeds = &steps[at];
        let options = Run {
            experiment: with_seeds(&options.experiment, &steps[0], seeds),
            until_decided: false,
            // Whether there are more seeds depends on the results.
            follow,
            ..options.clone()
        };
        let outcome = run_once(&options, sink)?;
        let is_stopped = outcome.stopped.is_some() || outcome.failure.is_some();
        let Some(report) = outcome.report.as_ref().filter(|_| !is_stopped) else {
            return Ok(outcome);
        };
        if !are_over(&outcome, report) {
            return Ok(outcome);
        }
        let looks = report.looks.as_ref();
        let are_left = looks.is_none_or(|looks| looks.looks().is_none_or(|l| l.number < l.planned));
        let num_open = report.num_undecided();
        let has_ended = match (num_open, at + 1 == steps.len(), are_left) {
            (0, _, _) => Some("every verdict is decided".to_owned()),
            (num, true, _) => Some(format!(
                "{} undecided at `verdict.max_seeds`",
                counted(num, "verdict")
            )),
            (num, _, false) => Some(format!(
                "{} undecided after the last of the planned looks",
                counted(num, "verdict")
            )),
            _ => None,
        };
        if let Some(reason) = has_ended {
            let seeds = counted(seeds.len(), "seed");
            sink(Progress::Step(&format!("{reason}, with {seeds}")));
            return Ok(outcome);
        }
        at += 1;
        sink(Progress::Step(&format!(
            "{} undecided with {}: going on with {}",
            counted(num_open, "verdict"),
            counted(seeds.len(), "seed"),
            steps[at].len()
        )));
    }
}

/// Whether there is something to look at: no run is left, or only failed ones, which do not keep other trials from more
/// seeds as long as there are two of those.
fn are_over(outcome: &RunOutcome, report: &Report) -> bool {
    let is_failed = |problem: &Problem| problem.outcome == State::Failed;
    let left: BTreeSet<&str> = outcome.left().map(|problem| problem.run.as_str()).collect();
    let is_whole = |trial: &&Trial| trial.runs.iter().all(|run| !left.contains(run.as_str()));
    left.is_empty()
        || outcome.left().all(is_failed) && report.trials.iter().filter(is_whole).count() > 1
}

/// The seeds of each look. The first are those of the file; others follow the largest of them.
fn steps(plan: &Plan) -> Result<Vec<Vec<u64>>, Error> {
    let refused = |message: &str, help: &str| {
        Error::refused(Diagnostic::error("usage", message).help(help.to_owned()))
    };
    let (Some(looks), Some(most)) = (plan.verdict.looks, plan.verdict.max_seeds) else {
        return Err(refused(
            "`--until-decided` needs `verdict.looks` and `verdict.max_seeds`",
            "add `looks = 5` and `max_seeds = 20` to `[verdict]`: looks share the probability of a wrong claim, and seeds are added up to that number",
        ));
    };
    let of_trial = |trial: &str| -> Vec<u64> {
        let runs = plan.runs.iter().filter(|run| run.trial == trial);
        runs.map(|run| run.seed).collect()
    };
    let first = plan.runs.first().map_or("", |run| &run.trial);
    let seeds = of_trial(first);
    let trials = plan.runs.chunk_by(|a, b| a.trial == b.trial);
    let mut num_trials = 0;
    for trial in trials {
        num_trials += 1;
        if !trial.iter().map(|run| run.seed).eq(seeds.iter().copied()) {
            return Err(refused(
                &format!("trial `{}` has other seeds than `{first}`", trial[0].trial),
                "`--until-decided` adds the same seeds to all trials: set `experiment.seeds` once for all of them",
            ));
        }
    }
    if num_trials < 2 {
        return Err(refused(
            "`--until-decided` compares trials, and this experiment has one",
            "add an axis to `[sweep.grid]`, or set all seeds in `experiment.seeds`",
        ));
    }
    let added = most.saturating_sub(seeds.len());
    let mut steps: Vec<Vec<u64>> = Vec::new();
    for look in 0..looks {
        let num = (added * look).div_ceil((looks - 1).max(1));
        let last = seeds.iter().max().copied().unwrap_or(0);
        let more = (1..=num as u64).map(|more| last.saturating_add(more));
        let step: Vec<u64> = seeds.iter().copied().chain(more).collect();
        if steps.last() != Some(&step) {
            steps.push(step);
        }
    }
    Ok(steps)
}

/// Refuses seeds after the last of the planned looks: with them, nothing could be claimed any more.
fn looks_are_left(
    options: &Run,
    steps: &[Vec<u64>],
    at: usize,
    folder: &ExperimentFolder,
) -> Result<(), Error> {
    let recorded = folder.read_looks();
    let recorded = recorded.map_err(|error| Error::refused(unreadable(&error)))?;
    let experiment = with_seeds(&options.experiment, &steps[0], &steps[at]);
    let plan = plan(&experiment, &quiet)?.plan;
    let before = looks_before(&plan, &recorded);
    let planned = plan.verdict.looks.unwrap_or(usize::MAX);
    if before.len() < planned {
        return Ok(());
    }
    let trials = plan.runs.iter().map(|run| &run.trial);
    let num_trials = trials.collect::<BTreeSet<_>>().len();
    // With folds, a trial has several runs with each seed.
    let folds = plan.runs.iter().map(|run| run.axes.get(FOLD));
    let folds = folds.map(|fold| fold.map(ToString::to_string));
    let num_folds = folds.collect::<BTreeSet<_>>().len().clamp(1, num_trials);
    let last = before.last().copied().unwrap_or(0) / num_folds;
    let document = open(&options.experiment)?;
    let message = format!(
        "all {planned} looks that `verdict.looks` plans were made, the last with {}: with more, nothing could be claimed any more",
        counted(last, "seed")
    );
    let mut wrong = Diagnostic::error("results", message);
    wrong.span = document.root.span_at("verdict.max_seeds");
    let wrong = wrong
        .note(format!("the looks are recorded in `{}`", folder.looks_json().display()))
        .help(format!(
            "set `verdict.max_seeds` to {last}: the claims of the planned looks stand"
        ))
        .help("or begin again with other seeds: set another `experiment.name`, `experiment.seeds` that were not used, and more looks");
    Err(Error::experiment(
        &document.sources,
        Diagnostics(vec![wrong]),
    ))
}

/// The last step of which a run was planned or has begun.
fn reached(plan: &Plan, steps: &[Vec<u64>], folder: &ExperimentFolder) -> usize {
    // One that is lost or damaged is written again.
    let recorded = folder.read_plan().ok().flatten();
    let recorded = recorded.iter().flat_map(|plan| &plan.runs);
    let recorded: BTreeSet<&str> = recorded.map(|run| run.id.as_str()).collect();
    let begun = |at: &usize| {
        let new = &steps[*at][steps[at - 1].len()..];
        let mut trials = plan.runs.chunk_by(|a, b| a.trial == b.trial);
        trials.any(|trial| {
            let mut ids = new.iter().map(|seed| format!("{}-s{seed}", trial[0].trial));
            ids.any(|id| recorded.contains(id.as_str()) || folder.run(&id).0.exists())
        })
    };
    (1..steps.len()).rev().find(begun).unwrap_or(0)
}

/// The experiment as if these seeds stood in its file.
fn with_seeds(experiment: &Experiment, written: &[u64], seeds: &[u64]) -> Experiment {
    let mut experiment = experiment.clone();
    if written != seeds {
        experiment.set.push(format!("experiment.seeds={seeds:?}"));
    }
    experiment
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Experiment;

    fn steps_of(set: &[&str]) -> Result<Vec<usize>, String> {
        let mut experiment = Experiment::new("experiments/what_helps.toml");
        let set = set.iter().map(|set| (*set).to_owned());
        experiment.set.extend(set);
        let plan = plan(&experiment, &quiet).unwrap().plan;
        let steps = steps(&plan).map_err(|error| error.to_string())?;
        let mut all: Vec<_> = steps.windows(2).collect();
        // Each step begins with the seeds of the one before it.
        all.retain(|pair| !pair[1].starts_with(&pair[0]));
        assert!(all.is_empty(), "{all:?}");
        Ok(steps.iter().map(Vec::len).collect())
    }

    #[test]
    fn seeds_are_added_in_equal_steps() {
        let three = "experiment.seeds=[3, 1, 7]";
        let (five, twenty) = ("verdict.looks=5", "verdict.max_seeds=20");
        assert_eq!(steps_of(&[three, five, twenty]), Ok(vec![3, 8, 12, 16, 20]));
        let four = "verdict.max_seeds=4";
        assert_eq!(steps_of(&[three, five, four]), Ok(vec![3, 4]));
        let none_left = "verdict.max_seeds=3";
        assert_eq!(steps_of(&[three, five, none_left]), Ok(vec![3]));
        assert!(steps_of(&[three, five]).is_err());
        assert!(steps_of(&[three]).is_err());
    }
}
