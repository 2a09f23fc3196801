//! The results of an experiment's runs: trials over seeds in rank order, with verdicts.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde_json::Value as Json;

use super::backends::by_backend;
use super::confirmed::{self, Confirmed};
use super::curves::Curves;
use super::effects::{axis_effects, importance_of_drawn};
use super::folds::Folds;
use super::infeasible::{Violated, violation};
use super::judge::{candidates, judge, named};
use super::looks::Looking;
use super::mixture::{differing, mixed_data};
use super::model::{Baseline, Problem, Provenance, Report, Trial};
use super::numbers::value_text;
use super::rank::{is_other_quantity, ranked, task_of};
use super::sample::{COSTS, Repeat, Sample};
use super::searched::Searched;
use runner_core::plan::{FORMAT, Plan, Ties, quoted};
use runner_core::record::{Index, MemoryUse, RunEntry, State};
use runner_core::spec::comparable::{MEASURING, Measuring};
use runner_core::spec::failure::FailureClass;
use runner_statistics::Direction;

/// The notice about half precision.
const HALF_PRECISION: &str = "f16 and bf16 are pure half precision: weights, gradients and optimizer state have 16 bits, without the 32-bit copy of mixed precision";

/// Summarizes an experiment. `command` continues it; `leftovers` are the runs in its folder that are not in the plan.
pub fn aggregate(index: &Index, command: &str, leftovers: Vec<String>) -> Report {
    sum_up(index, command, leftovers, false)
}

/// The trials with all metrics, including test, and the costs of each seed, for comparisons; nothing is compared yet.
pub fn of_all_metrics(index: &Index) -> Report {
    sum_up(index, &index.plan.command(), Vec::new(), true)
}

fn sum_up(all: &Index, command: &str, leftovers: Vec<String>, is_to_compare: bool) -> Report {
    let plan = &all.plan;
    let (index, confirming) = confirmed::apart(all);
    let index = index.as_ref();
    let is_told = if is_to_compare {
        |_: &str| true
    } else {
        |name: &str| !name.starts_with("test")
    };
    let name = plan.objective.name();
    let direction = Direction::of(plan.objective.metric.higher_is_better());
    let folds = Folds::of(index);
    let (mut trials, completed) = trials(index, &folds, is_told);
    let axes = plan.axes.iter().filter(|key| folds.keeps(key));
    let axes: Vec<String> = axes.cloned().collect();
    let is_ranked = !is_other_quantity(index, &name);
    let order = if is_ranked {
        rank(&mut trials, &name, direction)
    } else {
        with_values_first(&trials, &name)
    };
    let looking = Looking::at(index, &folds);
    let confirmed = confirming.map(|index| self::trials(&index, &folds, is_told).0);
    let mut remarks = remarks(all, &completed);
    let looks = looking.looks();
    let mut baseline = None;
    let mut effects = Vec::new();
    let mut backends = Vec::new();
    match is_ranked {
        true if is_to_compare => {
            baseline = plan.baseline.as_ref().and_then(|id| {
                Some(Baseline {
                    trial: trials[named(&trials, id)?].id.clone(),
                    is_picked: false,
                    unbeaten: None,
                })
            });
        }
        true => {
            if !looking.is_too_early {
                let data = &index.data;
                baseline = judge(
                    (plan, data),
                    &mut trials,
                    &order,
                    direction,
                    folds.overlap,
                    looks,
                );
            }
            effects = axis_effects((&trials, &index.data), &axes, &name, folds.overlap);
            backends = by_backend(&trials, &name, direction, folds.overlap, looks);
        }
        false => remarks.push(format!(
            "`{name}` is another quantity in different trials, so trials are not ranked and there are no verdicts. Set `objective.metric` to a metric that all trials share"
        )),
    }
    if is_to_compare {
        let averaged = trials.iter_mut().zip(&completed);
        for (trial, runs) in averaged.filter(|(trial, _)| !trial.has_mixed_data()) {
            trial.metrics.extend(costs(runs, &folds));
        }
    }
    if index.runs.iter().any(is_half_precision) {
        remarks.push(HALF_PRECISION.into());
    }
    let best = order.first().filter(|best| trials[**best].rank.is_some());
    let test = best.map_or_else(BTreeMap::new, |best| test_of(&completed[*best], &folds));
    let num_in = |state: State| all.runs.iter().filter(|run| run.state == state).count();
    // The trials of a search follow from its other results, so that the file alone does not have them.
    let runs = all.runs.iter().filter(|_| plan.search.is_none());
    let commands = runs.map(|run| (run.id.clone(), Json::String(train_again(plan, &run.id))));
    // With fewer trials or without verdicts, there is nothing that it would be compared with.
    let has_others = trials.len() > 1 && is_ranked && !is_to_compare && !looking.is_too_early;
    let missing_baseline = plan.baseline.clone();
    let missing_baseline = missing_baseline.filter(|_| has_others && baseline.is_none());
    Report {
        format: FORMAT,
        experiment: plan.experiment.clone(),
        question: plan.question.clone(),
        objective: name.clone(),
        ties: Ties::of(plan.format),
        baseline: baseline.clone(),
        missing_baseline,
        notices: plan.notices.clone(),
        losses: losses(index),
        measured_by: measured_by(index),
        axes: axes.clone(),
        depending: plan.depending.clone(),
        folds: folds.num,
        overlap: folds.overlap,
        smallest_difference: plan.verdict.smallest_difference,
        candidates: baseline
            .as_ref()
            .filter(|baseline| baseline.is_picked)
            .and_then(|_| candidates(&trials, &order, &name, direction, folds.overlap, looks)),
        looks: Some(looking).filter(|looking| !looking.is_usual()),
        search: Searched::of(plan, &index.runs, &trials, direction).map(|searched| Searched {
            confirmed: Confirmed::all(
                &trials,
                confirmed.as_deref().unwrap_or(&[]),
                &name,
                direction,
            ),
            ..searched
        }),
        num_runs: all.runs.len(),
        num_completed: num_in(State::Completed),
        num_pruned: num_in(State::Pruned),
        backends,
        trials: order.iter().map(|at| trials[*at].clone()).collect(),
        test,
        importance: if is_ranked {
            importance_of_drawn(&trials, &axes, &name, &effects)
        } else {
            None
        },
        effects,
        curves: Curves::default(),
        evaluation: None,
        weights: None,
        problems: all
            .runs
            .iter()
            .filter_map(|run| problem(run, command))
            .collect(),
        remarks,
        leftovers,
        provenance: Provenance {
            environments: index.environments.clone(),
            data: index.data.clone(),
        },
        commands: commands.collect(),
    }
}

/// Oddities of runs.
fn remarks(index: &Index, completed: &[Vec<&RunEntry>]) -> Vec<String> {
    let mut remarks: Vec<String> = index.runs.iter().flat_map(|r| r.remarks.clone()).collect();
    for run in completed.iter().flatten() {
        let not_finite = run.not_finite.iter();
        remarks.extend(not_finite.map(|name| format!("`{name}` of `{}` is not finite", run.id)));
    }
    remarks
}

fn is_half_precision(run: &RunEntry) -> bool {
    ["f16", "bf16"].contains(&run.precision.as_str())
}

/// The test metrics of a trial.
fn test_of(runs: &[&RunEntry], folds: &Folds) -> BTreeMap<String, Sample> {
    let test = samples(runs, folds, |name| name.starts_with("test"));
    let test = test.into_iter();
    test.map(|(name, sample)| (name, sample.with_bootstrap()))
        .collect()
}

/// The settings that say what metrics measure.
fn measured_by(index: &Index) -> BTreeMap<String, String> {
    let task = task_of(index);
    let of_task = MEASURING.iter().filter(|of| of.is_of(task));
    let all = of_task.filter_map(|&Measuring { key, setting, .. }| {
        let setting = setting?;
        let shared = index.settings.get(setting);
        let own = index
            .runs
            .iter()
            .filter_map(|run| run.settings.get(setting));
        let values: BTreeSet<String> = shared.into_iter().chain(own).map(value_text).collect();
        let values: Vec<String> = values.into_iter().collect();
        (!values.is_empty()).then(|| (key.to_owned(), values.join(", ")))
    });
    all.collect()
}

/// The losses that runs minimize, each by its keys.
fn losses(index: &Index) -> Vec<String> {
    let is_of_loss = |key: &str| key.starts_with("loss.") || key.starts_with("losses");
    let of = |run: &RunEntry| {
        let all: BTreeMap<&String, &Json> = index.settings.iter().chain(&run.settings).collect();
        let keys = all.into_iter().filter(|(key, _)| is_of_loss(key));
        let keys = keys.map(|(key, value)| {
            let key = key.strip_prefix("loss.").unwrap_or(key);
            format!("{key}={}", value_text(value))
        });
        keys.collect::<Vec<_>>().join(",")
    };
    let losses: BTreeSet<String> = index.runs.iter().map(of).collect();
    losses.into_iter().filter(|loss| !loss.is_empty()).collect()
}

/// The trials in file order, and the completed runs of each.
fn trials<'a>(
    index: &'a Index,
    folds: &Folds,
    is_told: fn(&str) -> bool,
) -> (Vec<Trial>, Vec<Vec<&'a RunEntry>>) {
    let mut trials: Vec<Trial> = Vec::new();
    let mut completed: Vec<Vec<&RunEntry>> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for run in &index.runs {
        let at = *places.entry(folds.trial(run)).or_insert_with(|| {
            trials.push(Trial {
                place: trials.len(),
                ..Trial::planned(run, folds)
            });
            completed.push(Vec::new());
            trials.len() - 1
        });
        let trial = &mut trials[at];
        trial.runs.push(run.id.clone());
        // The memory of a run that failed for another reason is not representative.
        let counts =
            run.state == State::Completed || run.failure == Some(FailureClass::OutOfMemory);
        trial.memory = match (trial.memory, run.memory.filter(|_| counts)) {
            (Some(before), Some(other)) => Some(MemoryUse::max(before, other)),
            (before, other) => before.or(other),
        };
        if run.state == State::Completed {
            completed[at].push(run);
        }
    }
    let objective = index.plan.objective.name();
    if index.plan.search.is_some() {
        // A failed trial of a search has no value, whatever its other runs reached.
        let failed = index.runs.iter();
        let failed = failed.filter(|run| matches!(run.state, State::Failed | State::Skipped));
        for run in failed.filter(|run| !index.plan.confirms(run.seed)) {
            completed[places[&folds.trial(run)]].clear();
        }
    }
    let pairs = trials.par_iter_mut().zip(&completed);
    pairs.for_each(|(trial, runs)| {
        trial.mixed_data = mixed_data(index, runs, folds);
        trial.differing = differing(index, runs);
        trial.sum_up(runs, folds, &objective, is_told);
        trial.violated = Violated::all(&index.plan, runs);
    });
    (trials, completed)
}

/// Ranks the trials, and returns their indices, best first: those that violate constraints have no rank, and come after
/// all that have one.
fn rank(trials: &mut [Trial], name: &str, direction: Direction) -> Vec<usize> {
    let mean = |trial: &Trial| {
        let sample = trial.metrics.get(name).filter(|_| trial.is_feasible());
        sample.map(Sample::mean)
    };
    let means: Vec<Option<f64>> = trials.iter().map(mean).collect();
    let mut order = Vec::new();
    for (at, rank) in ranked(&means, direction) {
        trials[at].rank = rank;
        order.push(at);
    }
    let num_ranked = order.partition_point(|at| trials[*at].rank.is_some());
    let place = |at: usize| {
        (
            !trials[at].metrics.contains_key(name),
            violation(&trials[at]),
        )
    };
    order[num_ranked..].sort_by(|a, b| {
        let ((a, x), (b, y)) = (place(*a), place(*b));
        a.cmp(&b).then(x.total_cmp(&y))
    });
    order
}

/// The indices of the trials in file order, those without a value last.
fn with_values_first(trials: &[Trial], name: &str) -> Vec<usize> {
    let mut order: Vec<usize> = (0..trials.len()).collect();
    order.sort_by_key(|at| !trials[*at].metrics.contains_key(name));
    order
}

fn problem(run: &RunEntry, command: &str) -> Option<Problem> {
    let again = || format!("`{command}` continues it");
    let is_as_intended = matches!(run.state, State::Completed | State::Pruned);
    (!is_as_intended).then(|| Problem {
        run: run.id.clone(),
        outcome: run.state,
        message: match run.state {
            State::NotStarted => again(),
            State::Interrupted | State::Incomplete => format!("{}; {}", run.message, again()),
            _ => run.message.clone(),
        },
    })
}

/// The metrics that all completed runs have, over seeds.
fn samples(
    completed: &[&RunEntry],
    folds: &Folds,
    of: impl Fn(&str) -> bool,
) -> BTreeMap<String, Sample> {
    let Some(first) = completed.first() else {
        return BTreeMap::new();
    };
    let names = first.metrics.keys().filter(|name| of(name));
    let sample = |name: &String| {
        let by_seed = completed
            .iter()
            .map(|run| Some((folds.repeat(run), *run.metrics.get(name)?)));
        let sample = Sample::of(name, by_seed.collect::<Option<Vec<_>>>()?, folds.overlap)?;
        Some((name.clone(), sample))
    };
    names.filter_map(sample).collect()
}

/// The costs of completed runs, by seed, if measured for all.
fn costs(completed: &[&RunEntry], folds: &Folds) -> BTreeMap<String, Sample> {
    let cost = |run: &RunEntry, name: &str| match name {
        "epoch_secs" => run.epoch_secs,
        "wall_secs" => Some(run.wall_secs),
        _ => run.memory.map(|memory| memory.measured.bytes() as f64),
    };
    let sample = |name: &str| {
        let by_seed = completed
            .iter()
            .map(|run| Some((folds.repeat(run), cost(run, name)?)));
        let sample = Sample::of(name, by_seed.collect::<Option<Vec<_>>>()?, None)?;
        Some((name.to_owned(), sample))
    };
    COSTS.into_iter().filter_map(sample).collect()
}

impl Trial {
    /// The values of a metric by seed and fold.
    pub fn values(&self, metric: &str) -> &[(Repeat, f64)] {
        let sample = self.metrics.get(metric);
        sample.map_or(&[], |sample| &sample.by_seed)
    }

    fn planned(run: &RunEntry, folds: &Folds) -> Self {
        Self {
            rank: None,
            id: folds.trial(run),
            place: 0,
            axes: folds.axes(run),
            device: run.device.clone(),
            precision: run.precision.clone(),
            num_epochs: run.num_epochs,
            n: 0,
            num_adjusted: 0,
            num_moved: 0,
            metrics: BTreeMap::new(),
            verdict: None,
            has_other_items: false,
            wall_secs: None,
            epoch_secs: None,
            memory: None,
            runs: Vec::new(),
            data: Vec::new(),
            environments: Vec::new(),
            mixed_data: Vec::new(),
            violated: Vec::new(),
            differing: Vec::new(),
        }
    }

    fn sum_up(
        &mut self,
        completed: &[&RunEntry],
        folds: &Folds,
        objective: &str,
        is_told: fn(&str) -> bool,
    ) {
        self.n = completed.len();
        self.num_adjusted = completed.iter().filter(|run| run.is_adjusted).count();
        self.num_moved = completed
            .iter()
            .filter(|run| run.moved_to.is_some())
            .count();
        let data: BTreeSet<usize> = completed.iter().map(|run| run.data).collect();
        self.data = data.into_iter().collect();
        let environments = completed.iter().filter_map(|run| run.environment);
        self.environments = environments.collect::<BTreeSet<_>>().into_iter().collect();
        if self.has_mixed_data() {
            return;
        }
        self.metrics = samples(completed, folds, is_told);
        if let Some(sample) = self.metrics.remove(objective) {
            let sample = sample.with_bootstrap();
            self.metrics.insert(objective.to_owned(), sample);
        }
        self.wall_secs = mean(completed.iter().map(|run| run.wall_secs));
        self.epoch_secs = mean(completed.iter().filter_map(|run| run.epoch_secs));
    }
}

/// The mean of some values; none of none.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (num, sum) = values.fold((0, 0.0), |(num, sum), value| (num + 1, sum + value));
    (num > 0).then(|| sum / f64::from(num))
}

/// The command that trains a run again, into another folder.
fn train_again(plan: &Plan, run: &str) -> String {
    format!(
        "{} --only {} --results reproduced",
        plan.command(),
        quoted(run)
    )
}
