//! What the runs of an experiment come down to: trials with means over seeds, in rank order.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::backends::{OnBackend, by_backend};
use super::memory::{TrialMemory, growth_in_words};
use crate::plan::{FORMAT, Plan, RunPlan};
use crate::record::{Environment, ExperimentFolder, RunFolder, RunRecord, Summary, leftovers};
use crate::spec::backend::Precision;
use crate::spec::data::Scale;
use crate::spec::document::plain_io_error;
use crate::spec::section::Choice;

/// `report.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The version of this format.
    pub format: u32,
    /// The experiment's name.
    pub experiment: String,
    /// What it is to answer; empty when it does not say.
    pub question: String,
    /// The metric that trials are ranked by.
    pub objective: String,
    /// What the reader must know first: fallbacks and the like.
    pub notices: Vec<String>,
    /// The varied keys, in file order.
    pub axes: Vec<String>,
    /// Runs that were planned.
    pub num_runs: usize,
    /// Runs that are completed.
    pub num_completed: usize,
    /// The same trials on several backends side by side, in the order of the file; empty when there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<OnBackend>,
    /// The trials, best first; those without a completed run last, in file order.
    pub trials: Vec<Trial>,
    /// Runs that are not completed, and why.
    pub problems: Vec<Problem>,
    /// What else happened that the reader should know.
    pub remarks: Vec<String>,
    /// Runs in the folder that are not part of the plan.
    pub leftovers: Vec<String>,
    /// What the numbers rest on.
    pub provenance: Provenance,
    /// The command for each run, by its id.
    pub commands: Map<String, Json>,
}

/// One trial over its seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Place by the objective, from 1; none without a completed run.
    pub rank: Option<usize>,
    /// The trial's name.
    pub id: String,
    /// The values of the varied keys.
    pub axes: Map<String, Json>,
    /// The device that it is planned for.
    pub device: String,
    /// The precision.
    pub precision: String,
    /// Completed runs, over which the metrics are taken.
    pub n: usize,
    /// Those of them that were adjusted, after a failure or so that they fit into memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub num_adjusted: usize,
    /// Means by metric: of each run's best epoch by the objective, and of its last with `last/`.
    pub metrics: BTreeMap<String, Mean>,
    /// Mean seconds of a run.
    pub wall_secs: Option<f64>,
    /// Seconds that an epoch's training takes: the mean over runs of each run's median.
    pub epoch_secs: Option<f64>,
    /// What its runs held of memory, once something was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<TrialMemory>,
    /// The ids of its runs, completed or not.
    pub runs: Vec<String>,
}

/// A mean over seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation; none for a single run.
    pub sd: Option<f64>,
}

/// A run that is not completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// Its id.
    pub run: String,
    /// `failed`, `interrupted`, `skipped`, `incomplete`, or `unreadable` where there is no telling.
    pub outcome: String,
    /// Why, and what to do about it.
    pub message: String,
}

/// What the numbers rest on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Where the runs were computed; several when they differ.
    pub environments: Vec<Environment>,
    /// The data sets that runs used.
    pub data: Vec<DataUsed>,
}

/// A data set as some runs used it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataUsed {
    /// The data set with its split, in words.
    pub what: String,
    /// sha256 of each split's items; empty while no run has started.
    pub digests: BTreeMap<String, String>,
}

/// What a reader of numbers in half precision should know.
const HALF_PRECISION: &str = "f16 and bf16 are pure half precision: weights, gradients and the optimizer's state have 16 bits, and no copy in 32 bits is kept, as mixed precision elsewhere does";

/// Reads every run's record and sums up.
pub fn aggregate(plan: &Plan, folder: &ExperimentFolder) -> io::Result<Report> {
    let mut trials: Vec<Trial> = Vec::new();
    let mut problems = Vec::new();
    let mut remarks = Vec::new();
    let mut provenance = Provenance::default();
    let mut by_trial: Vec<Vec<Summary>> = Vec::new();
    let mut epoch_secs: Vec<Vec<f64>> = Vec::new();
    for run in &plan.runs {
        let run_folder = folder.run(&run.id);
        let at = match trials.iter().rposition(|trial| trial.id == run.trial) {
            Some(at) => at,
            None => {
                trials.push(Trial {
                    rank: None,
                    id: run.trial.clone(),
                    axes: run.axes.clone(),
                    device: run.device.to_string(),
                    precision: run.precision.name().to_owned(),
                    n: 0,
                    num_adjusted: 0,
                    metrics: BTreeMap::new(),
                    wall_secs: None,
                    epoch_secs: None,
                    memory: None,
                    runs: Vec::new(),
                });
                by_trial.push(Vec::new());
                epoch_secs.push(Vec::new());
                trials.len() - 1
            }
        };
        trials[at].runs.push(run.id.clone());
        let record = match RunRecord::read_for(&run_folder, run) {
            Ok(record) => record,
            Err(e) => {
                problems.push(Problem {
                    run: run.id.clone(),
                    outcome: "unreadable".into(),
                    message: plain_io_error(&e),
                });
                continue;
            }
        };
        let written = record.write_missing(&run_folder, run);
        remarks.extend(written.err().map(|e| format!("of `{}`: {e}", run.id)));
        let rejected = record.started.iter().flat_map(|s| &s.rejected_checkpoints);
        remarks.extend(rejected.map(|what| format!("`{}` passed over {what}", run.id)));
        let adjustments = &record.attempts.adjustments;
        remarks.extend(adjustments.iter().map(|adjustment| {
            let adjusted = adjustment.in_words();
            format!("`{}` was not made as planned, but with {adjusted}", run.id)
        }));
        trials[at].memory = match (trials[at].memory, TrialMemory::of(run, &record)) {
            (Some(before), Some(other)) => Some(before.max(other)),
            (before, other) => before.or(other),
        };
        let growth = record.growth.as_ref();
        remarks.extend(growth.map(|g| format!("`{}`: {}", run.id, growth_in_words(run, g))));
        if let Some((epoch, reason)) = &record.stopped_early {
            let epochs = run.train.epochs;
            remarks.push(format!(
                "`{}` was stopped early after epoch {epoch} of {epochs}: {reason}",
                run.id
            ));
        }
        let added = provenance.add(run, &run_folder);
        remarks.extend(added.err().map(|e| {
            let reason = plain_io_error(&e);
            format!("`{}` is left out of Data and Environment: {reason}", run.id)
        }));
        match record.summary(run) {
            Some(summary) if summary.outcome == "completed" => {
                trials[at].num_adjusted += !adjustments.is_empty() as usize;
                by_trial[at].push(summary);
                epoch_secs[at].push(median(record.epochs.iter().map(|epoch| epoch.train_secs)));
            }
            summary => problems.push(problem(run, summary, &record)),
        }
    }
    for ((trial, summaries), secs) in trials.iter_mut().zip(&by_trial).zip(&epoch_secs) {
        trial.sum_up(summaries);
        trial.epoch_secs = (!secs.is_empty()).then(|| Mean::of(secs).mean);
    }
    let name = plan.objective.name();
    let backends = by_backend(&trials.iter().collect::<Vec<_>>(), &name);
    let value = |trial: &Trial| trial.metrics.get(&name).map(|mean| mean.mean);
    // A stable sort: equals keep the order of the file.
    trials.sort_by(|a, b| match (value(a), value(b)) {
        (Some(a), Some(b)) if plan.objective.is_better(a, b) => std::cmp::Ordering::Less,
        (Some(a), Some(b)) if plan.objective.is_better(b, a) => std::cmp::Ordering::Greater,
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        _ => std::cmp::Ordering::Equal,
    });
    for (at, trial) in trials.iter_mut().enumerate() {
        trial.rank = (trial.n > 0).then_some(at + 1);
    }
    let is_half = |run: &RunPlan| matches!(run.precision, Precision::F16 | Precision::Bf16);
    if plan.runs.iter().any(is_half) {
        remarks.push(HALF_PRECISION.into());
    }
    let commands = plan
        .runs
        .iter()
        .map(|run| (run.id.clone(), Json::String(command(plan, run))));
    Ok(Report {
        format: FORMAT,
        experiment: plan.experiment.clone(),
        question: plan.question.clone(),
        objective: name,
        notices: plan.notices.clone(),
        axes: plan.axes.clone(),
        num_runs: plan.runs.len(),
        num_completed: by_trial.iter().map(Vec::len).sum(),
        backends,
        trials,
        problems,
        remarks,
        leftovers: leftovers(plan, folder),
        provenance,
        commands: commands.collect(),
    })
}

/// The middle one of some values, the upper of two; 0 for none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn is_zero(num: &usize) -> bool {
    *num == 0
}

impl Report {
    /// Whether a run was skipped.
    pub fn is_skipped(&self, run: &str) -> bool {
        let mut problems = self.problems.iter();
        problems.any(|problem| problem.run == run && problem.is_skipped())
    }
}

impl Problem {
    /// Whether the run was skipped.
    pub fn is_skipped(&self) -> bool {
        self.outcome == "skipped"
    }
}

impl Trial {
    fn sum_up(&mut self, summaries: &[Summary]) {
        self.n = summaries.len();
        let Some(first) = summaries.first() else {
            return;
        };
        for name in first.metrics.keys() {
            let values: Vec<f64> = summaries
                .iter()
                .filter_map(|s| s.metrics.get(name).copied())
                .collect();
            if values.len() == summaries.len() {
                self.metrics.insert(name.clone(), Mean::of(&values));
            }
        }
        let secs: Vec<f64> = summaries.iter().map(|s| s.wall_secs).collect();
        self.wall_secs = Some(Mean::of(&secs).mean);
    }
}

impl Mean {
    /// The mean and the sample standard deviation (n - 1 in the denominator) of at least one value.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Self {
            mean,
            sd: (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()),
        }
    }
}

fn problem(run: &RunPlan, summary: Option<Summary>, record: &RunRecord) -> Problem {
    let again = "run the same command again to finish it";
    let (outcome, message) = match summary {
        Some(summary) => {
            let message = match (summary.failure, summary.reason) {
                (Some(failure), _) => format!("{}: {}", failure.class, failure.message),
                (None, Some(reason)) => reason,
                (None, None) => format!(
                    "stopped after {} of {} epochs; {again}",
                    summary.epochs, run.train.epochs
                ),
            };
            (summary.outcome, message)
        }
        None if record.started.is_some() => (
            "incomplete".into(),
            format!(
                "begun, {} of {} epochs recorded; {again}",
                record.epochs.len(),
                run.train.epochs
            ),
        ),
        None => ("incomplete".into(), format!("not started; {again}")),
    };
    Problem {
        run: run.id.clone(),
        outcome,
        message,
    }
}

impl Provenance {
    fn add(&mut self, run: &RunPlan, folder: &RunFolder) -> io::Result<()> {
        let data = &run.data;
        let test = match data.num_test {
            0 => String::new(),
            num => format!(", {num} test"),
        };
        let stands_in = match &data.stands_in_for {
            Some(asked) => format!(" (stands in for `{asked}`)"),
            None => String::new(),
        };
        let line = format!(
            "`{}`{stands_in}: {} train, {} valid{test} items of shape {:?}, {}, {}{}",
            data.dataset.name(),
            data.num_train,
            data.num_valid,
            data.input.shape,
            data.target.show(),
            data.split.show(),
            match data.scale {
                Scale::None => "",
                Scale::Standardize => ", standardized",
                Scale::MinMax => ", scaled from 0 to 1",
                Scale::Normalize => ", scaled to length 1",
            }
        );
        let read = folder.read_environment();
        let environment = read.as_ref().ok().cloned().flatten();
        let worker = environment.as_ref().and_then(|e| e.worker.as_ref());
        let digests = worker.map(|w| w.data_digests.clone()).unwrap_or_default();
        match self.data.iter_mut().find(|used| used.what == line) {
            Some(used)
                if used.digests.is_empty() || digests.is_empty() || used.digests == digests =>
            {
                used.digests.extend(digests);
            }
            _ => self.data.push(DataUsed {
                what: line,
                digests,
            }),
        }
        let Some(mut environment) = environment else {
            return read.map(|_| ());
        };
        environment.recorded_at = String::new();
        if let Some(worker) = &mut environment.worker {
            worker.data_digests.clear();
        }
        if !self.environments.contains(&environment) {
            self.environments.push(environment);
        }
        Ok(())
    }
}

fn command(plan: &Plan, run: &RunPlan) -> String {
    let sets = plan
        .overrides
        .iter()
        .map(|set| format!(" --set {}", quoted(set)));
    let sets: String = sets.collect();
    // A leading dash would be read as an option.
    let source = match plan.source.starts_with('-') {
        true => format!("./{}", plan.source),
        false => plan.source.clone(),
    };
    format!(
        "runner run {} --only {}{sets} --results reproduced",
        quoted(&source),
        quoted(&run.id)
    )
}

/// The text as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,+:@".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_deviation_is_that_of_a_sample() {
        let mean = Mean::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(mean.mean, 5.0);
        assert!((mean.sd.unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!(Mean::of(&[3.0]).sd, None);
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a=0.1,b-s1"), "a=0.1,b-s1");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
