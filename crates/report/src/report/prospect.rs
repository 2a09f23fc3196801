//! What the seeds of a plan can show, reported before any training.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::folds::without_fold;
use super::numbers::short_number;
use super::rank::{is_measured_differently, varied};
use super::sample::ALPHA;
use runner_core::diagnostic::counted;
use runner_core::plan::Plan;
use runner_core::record::{Index, State};
use runner_core::spec::section::Choice;
use runner_statistics::{
    Description, Effect, EffectMeasure, detectable_effect, pairs_to_reach, seeds_for_power,
};

/// What the seeds of a plan can show.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prospect {
    /// Trials; those that differ only in their fold count as one.
    pub num_trials: usize,
    /// Comparisons that claims are corrected for.
    pub num_comparisons: usize,
    /// Looks that share the level, if several are planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks: Option<usize>,
    /// Runs of the trial with the fewest runs.
    pub num_repeats: usize,
    /// Seeds with which an exact test can support a claim; none if no number can, or if no exact test is valid because
    /// repeats use several splits.
    pub seeds_for_exact: Option<usize>,
    /// The difference, in standard deviations of a trial's values, that is detected with a power of 80 % if the noise
    /// is normal; none for a single run.
    pub detectable_sds: Option<f64>,
    /// The smallest difference that matters, if the file sets it.
    pub smallest_difference: Option<f64>,
    /// The standard deviation that is assumed.
    pub sd: Option<Spread>,
    /// Seeds that detect the smallest difference with a power of 80 % if the noise is normal.
    pub seeds_needed: Option<usize>,
    /// Whether repeats use several splits.
    pub is_over_splits: bool,
    /// The seeds of each fold, if folds are the repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds_by_fold: Option<usize>,
}

/// A standard deviation over the runs of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The standard deviation, in the unit of the objective.
    pub sd: f64,
    /// The number of completed runs from which it was measured; none if the file sets it.
    pub num_runs: Option<usize>,
}

impl Prospect {
    /// The prospect of a plan; none if trials are not compared. With an index, the spread of completed runs is used,
    /// which is better than a guess.
    pub fn of(plan: &Plan, index: Option<&Index>) -> Option<Self> {
        let task = plan.runs.first().map(|run| run.task.kind.name());
        if is_measured_differently(&plan.objective.name(), &varied(plan), task) {
            return None;
        }
        let mut trials: BTreeMap<String, usize> = BTreeMap::new();
        let mut folds = BTreeSet::new();
        for run in &plan.runs {
            let (axes, fold) = without_fold(&run.axes);
            folds.extend(fold);
            *trials.entry(Json::Object(axes).to_string()).or_default() += 1;
        }
        let num_trials = trials.len();
        if num_trials < 2 {
            return None;
        }
        let are_drawn = plan.runs.iter().any(|run| run.data.split.by_run);
        let is_over_splits = folds.len() > 1 || are_drawn;
        // Seeds of one fold are averaged: the fold is the repeat.
        let fewest = trials.values().min().copied().unwrap_or(0);
        let num_repeats = match folds.len() {
            0 | 1 => fewest,
            num => fewest.min(num),
        };
        let num_comparisons = match &plan.baseline {
            Some(_) => num_trials - 1,
            None => num_trials * (num_trials - 1) / 2,
        };
        let looks = plan.verdict.looks.unwrap_or(1);
        let alpha = ALPHA / (num_comparisons * looks) as f64;
        // Differences of two values have √2 times their spread, as if seeds had nothing in common.
        // With several seeds on each fold, it depends on how much of the noise is that of seeds.
        let seeds_by_fold = (folds.len() > 1).then(|| fewest.div_ceil(folds.len()));
        let found = match seeds_by_fold {
            Some(2..) => None,
            _ => detectable_effect(EffectMeasure::CohensDz, num_repeats, alpha),
        };
        let ratios = plan.runs.iter().map(|run| {
            let data = &run.data;
            data.num_valid as f64 / data.num_train.max(1) as f64
        });
        let shared = ratios.fold(0.0, f64::max);
        let shared = if is_over_splits { shared } else { 0.0 };
        let widened = (1.0 + num_repeats as f64 * shared).sqrt();
        let sd = spread(plan, index);
        let smallest_difference = plan.verdict.smallest_difference;
        let needed = smallest_difference.zip(sd).and_then(|(smallest, spread)| {
            let effect = Effect {
                measure: EffectMeasure::CohensDz,
                value: smallest / (spread.sd * f64::sqrt(2.0)),
            };
            seeds_for_power(effect, alpha).map(|found| found.seeds)
        });
        Some(Self {
            num_trials,
            num_comparisons,
            looks: plan.verdict.looks,
            num_repeats,
            seeds_for_exact: pairs_to_reach(alpha).filter(|_| !is_over_splits),
            detectable_sds: found.map(|effect| effect * f64::sqrt(2.0) * widened),
            smallest_difference,
            sd,
            seeds_needed: needed.filter(|_| !is_over_splits),
            is_over_splits,
            seeds_by_fold,
        })
    }

    /// In sentences.
    pub fn in_words(&self) -> Vec<String> {
        let mut lines = vec![self.what_shows()];
        let Some(smallest) = self.smallest_difference else {
            return lines;
        };
        let smallest = smallest.to_string();
        lines.extend(match (self.sd, self.seeds_needed) {
            (Some(spread), Some(seeds)) => {
                let from = match spread.num_runs {
                    Some(num) => format!("measured on {}", counted(num, "completed run")),
                    None => "`verdict.expected_sd`".into(),
                };
                let there = if self.num_repeats >= seeds {
                    "which are available".to_owned()
                } else {
                    format!("but there are {}", self.num_repeats)
                };
                Some(format!(
                    "a difference of {smallest} needs {} in each trial at a standard deviation of {} ({from}), for a power of 80 % if the noise is normal, {there}",
                    counted(seeds, "seed"),
                    short_number(spread.sd),
                ))
            }
            (None, _) => self.detectable_sds.map(|sds| {
                let most = self.smallest_difference.unwrap_or_default() / sds;
                format!(
                    "to detect a difference of {smallest}, the standard deviation over runs must be at most {}; set `verdict.expected_sd` to show the number of seeds",
                    short_number(most)
                )
            }),
            _ => None,
        });
        lines
    }

    /// What is detected at all, and by which test.
    fn what_shows(&self) -> String {
        let what = if self.is_over_splits { "split" } else { "seed" };
        let comparisons = counted(self.num_comparisons, "comparison");
        let repeats = counted(self.num_repeats, what);
        let looks = self
            .looks
            .map_or(String::new(), |looks| format!(" at each of {looks} looks"));
        if let Some(seeds) = self.seeds_by_fold.filter(|seeds| *seeds > 1) {
            return format!(
                "{comparisons} over {} with {} each{looks}: no exact test is valid for folds that share items; the t test needs a difference that is large compared with the spread over folds and with that over seeds",
                counted(self.num_repeats, "fold"),
                counted(seeds, "seed"),
            );
        }
        let Some(sds) = self.detectable_sds else {
            return format!(
                "{comparisons} over {repeats}: a single run cannot show differences; at least 2 seeds are needed"
            );
        };
        let exact = match self.seeds_for_exact {
            _ if self.is_over_splits => "no exact test is valid for splits that share items".into(),
            Some(least) if least > self.num_repeats => {
                format!("exact tests need at least {least} seeds for a claim")
            }
            Some(_) => "exact tests can support claims".into(),
            None => "no number of seeds is enough for an exact test".into(),
        };
        format!(
            "{comparisons} over {repeats} each{looks}: {exact}; if the noise is normal, differences of at least {} standard deviations are detected with a power of 80 %",
            short_number(sds)
        )
    }
}

/// The standard deviation of completed runs over their trials' means, or that which is expected.
fn spread(plan: &Plan, index: Option<&Index>) -> Option<Spread> {
    let measured = index.and_then(|index| {
        let name = plan.objective.name();
        let mut trials: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for run in index
            .runs
            .iter()
            .filter(|run| run.state == State::Completed)
        {
            let value = run.metrics.get(&name).copied();
            trials.entry(&run.trial).or_default().extend(value);
        }
        let described = trials
            .values()
            .filter_map(|values| Description::of(values).ok());
        let spread: Vec<(usize, f64)> = described.filter_map(|d| Some((d.n, d.sd?))).collect();
        let num: usize = spread.iter().map(|(n, _)| n).sum();
        let df = num - spread.len().min(num);
        let squares: f64 = spread.iter().map(|(n, sd)| (n - 1) as f64 * sd * sd).sum();
        let sd = (squares / df.max(1) as f64).sqrt();
        (df > 0 && sd > 0.0 && sd.is_finite()).then_some(Spread {
            sd,
            num_runs: Some(num),
        })
    });
    let expected = plan
        .verdict
        .expected_sd
        .map(|sd| Spread { sd, num_runs: None });
    measured.or(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five trials over three seeds against a named baseline.
    fn prospect() -> Prospect {
        let alpha = ALPHA / 4.0;
        let effect = detectable_effect(EffectMeasure::CohensDz, 3, alpha);
        Prospect {
            num_trials: 5,
            num_comparisons: 4,
            looks: None,
            num_repeats: 3,
            seeds_for_exact: pairs_to_reach(alpha),
            detectable_sds: effect.map(|effect| effect * f64::sqrt(2.0)),
            smallest_difference: None,
            sd: None,
            seeds_needed: None,
            is_over_splits: false,
            seeds_by_fold: None,
        }
    }

    #[test]
    fn what_seeds_can_show_is_said_before_the_run() {
        let lines = prospect().in_words();
        let shown = "4 comparisons over 3 seeds each: exact tests need at least 8 seeds for a claim; if the noise is normal, differences of at least 9.258 standard deviations are detected with a power of 80 %";
        assert_eq!(lines, [shown]);
        let asked = Prospect {
            smallest_difference: Some(0.005),
            ..prospect()
        };
        assert!(asked.in_words()[1].contains("must be at most 0.000540"));
        let known = Prospect {
            sd: Some(Spread {
                sd: 0.004,
                num_runs: None,
            }),
            seeds_needed: Some(17),
            ..asked
        };
        assert!(
            known.in_words()[1].starts_with("a difference of 0.005 needs 17 seeds in each trial")
        );
        let single = Prospect {
            num_repeats: 1,
            detectable_sds: None,
            ..prospect()
        };
        assert!(single.in_words()[0].contains("a single run cannot show differences"));
        // How large a difference must be depends on two spreads, of which nothing is known yet.
        let crossed = Prospect {
            seeds_by_fold: Some(2),
            detectable_sds: None,
            is_over_splits: true,
            ..prospect()
        };
        assert!(
            crossed.in_words()[0]
                .starts_with("4 comparisons over 3 folds with 2 seeds each: no exact test")
        );
    }
}
