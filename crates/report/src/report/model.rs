//! The content of a report: `report.json`, and the source of all other forms.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::backends::OnBackend;
use super::curves::Curves;
use super::evaluation::Selected;
use super::infeasible::Violated;
use super::looks::Looking;
use super::mixture::{Differing, SameData};
use super::rank;
use super::sample::Sample;
use super::searched::Searched;
use super::verdict;
use super::weights::SelectedWeights;
use runner_core::plan::Ties;
use runner_core::record::{DataUsed, Environment, MemoryUse, State};
use runner_core::spec::comparable::TASK;
use runner_statistics::{ForestImportance, Importance, Marginal, Verdict};

/// `report.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The version of this format.
    pub format: u32,
    /// The experiment's name.
    pub experiment: String,
    /// The question; empty if not set.
    pub question: String,
    /// The metric that trials are ranked by.
    pub objective: String,
    /// Which of several epochs with the best objective is a run's best one.
    #[serde(default)]
    pub ties: Ties,
    /// The baseline; none if there is nothing to compare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The baseline that the file names, if it has no value to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_baseline: Option<String>,
    /// Important notices: fallbacks and similar.
    pub notices: Vec<String>,
    /// What the trials minimize: each loss with its settings. Losses of several functions are not to be compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
    /// The settings that say what metrics measure, by key, where runs have them: metrics of other experiments with other
    /// ones are not to be compared.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub measured_by: BTreeMap<String, String>,
    /// The varied keys, in file order.
    pub axes: Vec<String>,
    /// Further keys that differ between trials, since their expressions use varied ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depending: Vec<String>,
    /// The number of folds of a cross-validation in addition to the seeds of a trial: folds count as seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folds: Option<usize>,
    /// Held-out items divided by training items, if the repeats of a trial use several splits (folds, or a split for
    /// each seed): verdicts and intervals are corrected with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<f64>,
    /// The smallest difference of the objective that matters, if the file sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_difference: Option<f64>,
    /// The trials that may be the best, if the file sets no baseline: with a probability of 95 % the best is one of them
    /// if the noise is normal. None if nothing was tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Vec<String>>,
    /// How often the verdicts were looked at while seeds were added, where that is planned or happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks: Option<Looking>,
    /// How the trials were found, if a search suggested them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Searched>,
    /// Planned runs.
    pub num_runs: usize,
    /// Completed runs.
    pub num_completed: usize,
    /// Runs that a search has pruned.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub num_pruned: usize,
    /// The same trials on several backends side by side, in file order; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<OnBackend>,
    /// The trials, best first; then those that violate constraints of the search, by how much; those without a completed
    /// run last, in file order. All of them in file order if none is
    /// ranked, because the objective is the loss and trials minimize different functions.
    pub trials: Vec<Trial>,
    /// Test metrics, only of the highest ranked trial.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub test: BTreeMap<String, Sample>,
    /// The effect of each axis on the objective over the values of the others; none if there is one axis.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<AxisEffect>,
    /// How much each of [`Self::axes`] matters, in their order, if values were drawn; none if the grid says it, or if
    /// trials are too few or too noisy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<ForestImportance>,
    /// Learning curves of the highest ranked trials.
    #[serde(default, skip_serializing_if = "Curves::is_empty")]
    pub curves: Curves,
    /// The errors of the highest ranked trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Selected>,
    /// How the weights of a run of the highest ranked trial are distributed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<SelectedWeights>,
    /// Runs that are not completed, and why.
    pub problems: Vec<Problem>,
    /// Other remarks for the reader.
    pub remarks: Vec<String>,
    /// Runs in the folder that are not part of the plan.
    pub leftovers: Vec<String>,
    /// The origin of the numbers.
    pub provenance: Provenance,
    /// The command for each run, by its id.
    pub commands: Map<String, Json>,
}

/// The baseline trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Its id.
    pub trial: String,
    /// Whether it is the highest ranked one because the file sets none. The verdicts are then corrected for all
    /// pairwise comparisons, since any trial could have been selected.
    pub is_picked: bool,
    /// What it has not beaten; if so, nothing is claimed about the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbeaten: Option<Unbeaten>,
}

/// The best prediction that is the same for every item, which a baseline has not beaten.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unbeaten {
    /// Its objective, the mean over the baseline's runs.
    pub objective: f64,
    /// The number of these runs.
    pub n: usize,
}

/// One trial over its seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Rank by the objective, from 1; none without a value, or if it violates constraints. Equal trials share a rank.
    pub rank: Option<usize>,
    /// The trial's name.
    pub id: String,
    /// Its place in the order of the file, from 0.
    #[serde(default)]
    pub place: usize,
    /// The values of the varied keys.
    pub axes: Map<String, Json>,
    /// The device that it is planned for.
    pub device: String,
    /// The precision.
    pub precision: String,
    /// Planned epochs.
    pub num_epochs: usize,
    /// Completed runs, over which the metrics are computed.
    pub n: usize,
    /// Those that were adjusted, after a failure or to fit into memory.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub num_adjusted: usize,
    /// Those that ran on another device than planned.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub num_moved: usize,
    /// By metric: of each run's best epoch by the objective, and of its last with `last/`. Without test.
    pub metrics: BTreeMap<String, Sample>,
    /// The verdict against the baseline; none for the baseline itself, and if nothing is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Whether its objective was measured on other items than the baseline's: then there is no verdict.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_other_items: bool,
    /// Mean seconds of a run.
    pub wall_secs: Option<f64>,
    /// Training seconds per epoch: the mean over runs of each run's median.
    pub epoch_secs: Option<f64>,
    /// Peak memory of its runs, once measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryUse>,
    /// The ids of its runs, completed or not.
    pub runs: Vec<String>,
    /// The data sets (in the provenance) of its completed runs.
    #[serde(default)]
    pub data: Vec<usize>,
    /// The environments (in the provenance) of its completed runs.
    #[serde(default)]
    pub environments: Vec<usize>,
    /// Its completed runs by their data, if it differs: then it has no metrics and no rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mixed_data: Vec<SameData>,
    /// The constraints of the search that it does not meet: then it has no rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violated: Vec<Violated>,
    /// Facts that numbers may depend on and that differ between its completed runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<Differing>,
}

/// The effect of an axis on the objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisEffect {
    /// The varied key.
    pub key: String,
    /// The results of its values over all other settings.
    pub marginal: Marginal,
    /// How much of what varies between settings it accounts for; none where not all were tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<Importance>,
}

/// A run that is not completed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// Its id.
    pub run: String,
    /// Its state.
    pub outcome: State,
    /// The reason, and a remedy.
    pub message: String,
}

/// The origin of the numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The environments of the runs; several if they differ.
    pub environments: Vec<Environment>,
    /// The data sets that runs used.
    pub data: Vec<DataUsed>,
}

impl Report {
    /// What pairs the runs of trials, as text.
    pub fn repeats(&self) -> &'static str {
        match self.folds {
            Some(_) => "seed and fold",
            None => "seed",
        }
    }

    /// The highest ranked trial: the first of several equal ones.
    pub fn selected(&self) -> Option<&Trial> {
        self.trials.first().filter(|trial| trial.rank.is_some())
    }

    /// The highest ranked trial and those equal to it.
    pub fn num_first(&self) -> usize {
        let trials = self.trials.iter();
        trials.filter(|trial| trial.rank == Some(1)).count()
    }

    /// The name of the task, or of several separated by `, `; none in reports of earlier versions.
    pub fn task(&self) -> Option<&str> {
        self.measured_by.get(TASK).map(String::as_str)
    }

    /// Whether a metric is a different function in different trials, so that its values cannot be compared.
    pub fn is_measured_differently(&self, metric: &str) -> bool {
        let varied = [self.axes.as_slice(), &self.depending].concat();
        rank::is_measured_differently(metric, &varied, self.task())
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

    /// Whether any trial was tested against the baseline.
    pub fn has_tests(&self) -> bool {
        let verdicts = self
            .trials
            .iter()
            .filter_map(|trial| trial.verdict.as_ref());
        let mut compared = verdicts.filter_map(|verdict| verdict.comparison);
        compared.any(|comparison| comparison.design.n() > 1)
    }

    /// Whether verdicts are given although runs are left that will change them.
    pub fn is_provisional(&self) -> bool {
        self.looks
            .as_ref()
            .is_some_and(|looks| looks.is_provisional)
    }

    /// The number of trials with values about which nothing is claimed, or all of them if nothing was tested.
    pub fn num_undecided(&self) -> usize {
        let others = self.trials.iter();
        let others = others.filter(|trial| trial.n > 0 && !self.is_baseline(trial));
        let is_decided = |trial: &&Trial| {
            let verdict = trial.verdict.as_ref();
            verdict.is_some_and(verdict::is_claim) || self.is_ruled_out(trial)
        };
        others.filter(|trial| !is_decided(trial)).count()
    }

    /// Whether a trial is not the best, if the noise is normal.
    pub fn is_ruled_out(&self, trial: &Trial) -> bool {
        let candidates = self.candidates.as_ref().filter(|_| trial.n > 0);
        candidates.is_some_and(|candidates| !candidates.contains(&trial.id))
    }

    /// Whether a trial is the baseline.
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
    /// Whether its completed runs have different data, so that they have no mean.
    pub fn has_mixed_data(&self) -> bool {
        !self.mixed_data.is_empty()
    }

    /// The data sets of its completed runs, of those in the provenance.
    pub fn data_in<'d>(&self, data: &'d [DataUsed]) -> Vec<&'d DataUsed> {
        self.data.iter().filter_map(|at| data.get(*at)).collect()
    }

    /// Whether it meets the constraints of its search, if there are any.
    pub fn is_feasible(&self) -> bool {
        self.violated.is_empty()
    }

    /// The number of runs behind its metrics: `2`, or `2 of 3` if not all planned ones are completed.
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
