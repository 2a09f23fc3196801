//! What a report says: `report.json`, and what all other forms of a report are made from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::backends::OnBackend;
use super::curves::Curves;
use super::evaluation::Selected;
use super::mixture::{Differing, SameData};
use super::rank;
use super::sample::Sample;
use runner_core::plan::Ties;
use runner_core::record::{DataUsed, Environment, MemoryUse, State};
use runner_statistics::{Marginal, Verdict};

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
    /// Which of several epochs with the best objective is a run's best one.
    #[serde(default)]
    pub ties: Ties,
    /// What the others are compared with; none where there is nothing to compare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// What the reader must know first: fallbacks and the like.
    pub notices: Vec<String>,
    /// What the trials minimize: each loss with its settings. Losses of several functions are not to be compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
    /// The varied keys, in file order.
    pub axes: Vec<String>,
    /// How many folds of a cross-validation stand beside the seeds of a trial: each counts as a seed does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folds: Option<usize>,
    /// Held-out items over items that are trained on, where the repeats of a trial are on several splits (folds, or a
    /// split for each seed): what verdicts and intervals are corrected by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<f64>,
    /// The smallest difference of the objective that matters, if the file says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_difference: Option<f64>,
    /// Runs that were planned.
    pub num_runs: usize,
    /// Runs that are completed.
    pub num_completed: usize,
    /// The same trials on several backends side by side, in the order of the file; empty when there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<OnBackend>,
    /// The trials, best first; those without a completed run last, in file order. In file order all of them where none
    /// is ranked, as the objective is the loss and trials minimize different functions.
    pub trials: Vec<Trial>,
    /// What was measured on test, of the highest ranked trial alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub test: BTreeMap<String, Sample>,
    /// What each axis does to the objective over the values of the others; none where there is one axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<AxisEffect>,
    /// Learning curves of the highest ranked trials.
    #[serde(default, skip_serializing_if = "Curves::is_empty")]
    pub curves: Curves,
    /// What the highest ranked trial gets wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Selected>,
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

/// The trial that others are compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Its id.
    pub trial: String,
    /// Whether it is the highest ranked one because the file names none. The verdicts are then corrected for the
    /// comparisons of all trials with each other, since any of them could have been picked.
    pub is_picked: bool,
}

/// One trial over its seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Place by the objective, from 1; none without a value. Equals have the same one.
    pub rank: Option<usize>,
    /// The trial's name.
    pub id: String,
    /// The values of the varied keys.
    pub axes: Map<String, Json>,
    /// The device that it is planned for.
    pub device: String,
    /// The precision.
    pub precision: String,
    /// Epochs that its runs are planned to have.
    pub num_epochs: usize,
    /// Completed runs, over which the metrics are taken.
    pub n: usize,
    /// Those of them that were adjusted, after a failure or so that they fit into memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub num_adjusted: usize,
    /// Those of them that were computed elsewhere than planned.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub num_moved: usize,
    /// By metric: of each run's best epoch by the objective, and of its last with `last/`. Test is not among them.
    pub metrics: BTreeMap<String, Sample>,
    /// What may be claimed of it against the baseline; none of the baseline itself, and where nothing is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Mean seconds of a run.
    pub wall_secs: Option<f64>,
    /// Seconds that an epoch's training takes: the mean over runs of each run's median.
    pub epoch_secs: Option<f64>,
    /// The most that its runs held of memory, once something was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryUse>,
    /// The ids of its runs, completed or not.
    pub runs: Vec<String>,
    /// Which data sets of the provenance its completed runs used.
    #[serde(default)]
    pub data: Vec<usize>,
    /// Which environments of the provenance they were computed in.
    #[serde(default)]
    pub environments: Vec<usize>,
    /// Its completed runs by their data, where they did not read the same: then it has no metrics and no rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mixed_data: Vec<SameData>,
    /// What numbers may depend on and is not the same for all of its completed runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<Differing>,
}

/// What an axis does to the objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisEffect {
    /// The varied key.
    pub key: String,
    /// What its values come to over all other settings.
    pub marginal: Marginal,
}

/// A run that is not completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// Its id.
    pub run: String,
    /// How far it is.
    pub outcome: State,
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

impl Report {
    /// What pairs the runs of trials, in words.
    pub fn repeats(&self) -> &'static str {
        match self.folds {
            Some(_) => "seed and fold",
            None => "seed",
        }
    }

    /// The highest ranked trial: the first one where several are equal.
    pub fn selected(&self) -> Option<&Trial> {
        self.trials.first().filter(|trial| trial.rank.is_some())
    }

    /// The trials that are equal to the highest ranked one, with it.
    pub fn num_first(&self) -> usize {
        let trials = self.trials.iter();
        trials.filter(|trial| trial.rank == Some(1)).count()
    }

    /// Whether a metric is that of other functions in other trials, so that its values are not to be compared.
    pub fn is_of_several_losses(&self, metric: &str) -> bool {
        rank::is_of_several_losses(metric, &self.axes)
    }

    /// Whether a run was skipped.
    pub fn is_skipped(&self, run: &str) -> bool {
        let mut problems = self.problems.iter();
        problems.any(|problem| problem.run == run && problem.is_skipped())
    }

    /// The objective of a trial, if it has any.
    pub fn objective_of<'a>(&self, trial: &'a Trial) -> Option<&'a Sample> {
        trial.metrics.get(&self.objective)
    }

    /// Whether a trial is what others are compared with.
    pub fn is_baseline(&self, trial: &Trial) -> bool {
        self.baseline.as_ref().is_some_and(|b| b.trial == trial.id)
    }
}

impl Problem {
    /// Whether the run was skipped.
    pub fn is_skipped(&self) -> bool {
        self.outcome == State::Skipped
    }
}

impl Trial {
    /// Whether its completed runs read different data, so that they have no mean.
    pub fn has_mixed_data(&self) -> bool {
        !self.mixed_data.is_empty()
    }

    /// Over how many runs its numbers are: `2`, or `2 of 3` where not all that are planned are completed.
    pub fn n_in_words(&self) -> String {
        if self.n == self.runs.len() {
            self.n.to_string()
        } else {
            format!("{} of {}", self.n, self.runs.len())
        }
    }
}

fn is_zero(num: &usize) -> bool {
    *num == 0
}
