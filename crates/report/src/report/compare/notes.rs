//! Caveats of a comparison, one line each.

use std::collections::{BTreeMap, BTreeSet};

use super::trials::name_in;
use super::{Source, sample};
use crate::report::judge::comparable_pairs;
use crate::report::mixture::share_items;
use crate::report::model::{Baseline, Trial};
use crate::report::varied::varied;
use runner_core::record::{DataUsed, Environment};

/// What a reader must know about the table.
pub fn notes(
    sources: &[Source],
    ranked: &[&Trial],
    baseline: &Baseline,
    value: &str,
    alpha: f64,
) -> Vec<String> {
    let facts: BTreeMap<String, Facts> = all_facts(sources).collect();
    let mut notes = Vec::new();
    let mut tell = |what: &str, ids: Vec<&str>| {
        if !ids.is_empty() {
            notes.push(format!("{what}: {}", shown(&ids)));
        }
    };
    let ids = |of: &dyn Fn(&Trial) -> bool| -> Vec<&str> {
        let found = ranked.iter().filter(|trial| of(trial));
        found.map(|trial| trial.id.as_str()).collect()
    };
    tell(
        &format!("excluded, since no completed run has `{value}`"),
        ids(&|trial| !trial.has_mixed_data() && sample(trial, value).is_none()),
    );
    tell(
        "excluded, since their completed runs read different data, which `runner report` shows",
        ids(&|trial| trial.has_mixed_data()),
    );
    tell(
        "averaged over runs of different builds, processors, devices or kernels, which `runner report` shows",
        ids(&|trial| !trial.differing.is_empty()),
    );
    tell(
        "with runs that were adjusted, after a failure or to fit into memory",
        ids(&|trial| trial.num_adjusted > 0),
    );
    if let Some(base) = facts.get(&baseline.trial) {
        let differs = |of: &dyn Fn(&Facts) -> bool| {
            ids(&|trial| trial.n > 0 && facts.get(&trial.id).is_some_and(of))
        };
        let split = value.split('/').next().unwrap_or_default().to_owned();
        tell(
            &format!(
                "measured on other `{split}` items than the baseline, so there are no verdicts"
            ),
            differs(&|other| !other.shares(base, &split)),
        );
        tell(
            "trained on other items than the baseline",
            differs(&|other| !other.shares(base, "train")),
        );
        tell(
            &format!(
                "planned for a different number of epochs than the baseline's {}",
                base.num_epochs
            ),
            differs(&|other| other.num_epochs != base.num_epochs),
        );
        tell(
            "trained with another build of runner than the baseline",
            differs(&|other| other.has_other_builds(base)),
        );
        tell(
            "trained on another machine than the baseline, so times are not comparable",
            differs(&|other| other.machines() != base.machines()),
        );
        tell(
            &format!(
                "with the weights of epochs that were selected by another objective than `{}`",
                base.objective
            ),
            differs(&|other| other.objective != base.objective),
        );
    }
    notes.extend(no_feasible(ranked, baseline));
    notes.extend(spreads(sources));
    let looking = sources
        .iter()
        .filter_map(|source| source.report.looks.as_ref());
    let looking = looking.filter_map(|looking| looking.in_words(alpha));
    notes.extend(looking.map(|words| words.trim_end_matches('.').to_owned()));
    notes.extend(about_values(sources, ranked, value));
    notes
}

/// If no trial meets the constraints of its search, none is the best, and the baseline is only the first in the table.
fn no_feasible(ranked: &[&Trial], baseline: &Baseline) -> Option<String> {
    let are_infeasible = ranked.iter().any(|trial| !trial.is_feasible())
        && !ranked
            .iter()
            .any(|trial| trial.n > 0 && trial.is_feasible());
    let baseline = match &baseline.trial {
        trial if baseline.is_picked && ranked.len() > 1 => format!(
            "; the baseline `{trial}` is the first in the table, not the best: choose one with `--baseline`"
        ),
        _ => String::new(),
    };
    are_infeasible.then(|| {
        format!("no trial meets the constraints of its search, so none is ranked{baseline}")
    })
}

/// Values that count twice, lack runs, or were selected by.
fn about_values(sources: &[Source], ranked: &[&Trial], value: &str) -> Vec<String> {
    let mut notes = Vec::new();
    let twins = twins(sources, ranked, value);
    if let Some(first) = twins.first() {
        let more = match twins.len() {
            1 => String::new(),
            num => format!(" and {} more pairs", num - 1),
        };
        notes.push(format!(
            "the values of {first}{more} are equal for every seed: the same runs under two names count as comparisons and weaken the verdicts"
        ));
    }
    let unfinished: usize = sources.iter().map(|s| s.report.problems.len()).sum();
    if unfinished > 0 {
        notes.push(format!(
            "{} not completed and not counted; `runner list` shows why",
            match unfinished {
                1 => "1 run is".to_owned(),
                num => format!("{num} runs are"),
            }
        ));
    }
    if value.starts_with("test") {
        let num = ranked
            .iter()
            .filter(|trial| sample(trial, value).is_some())
            .count();
        if num > 1 {
            notes.push(format!(
                "test was evaluated for all {num} trials: the value of a trial selected by it is biased"
            ));
        }
    }
    notes
}

/// What varies between the runs of trials: once if it is the same in all sources.
fn spreads(sources: &[Source]) -> Vec<String> {
    let varied = |source: &Source| {
        let line = varied(&source.report)?;
        Some((source.name.clone(), line.trim_end_matches('.').to_owned()))
    };
    let all: Vec<(String, String)> = sources.iter().filter_map(varied).collect();
    match all.first() {
        Some((_, first)) if all.iter().all(|(_, line)| line == first) => vec![first.clone()],
        _ => all
            .into_iter()
            .map(|(name, line)| format!("of `{name}`: {line}"))
            .collect(),
    }
}

/// The trials whose value was measured on other items than the baseline's.
pub fn on_other_items(sources: &[Source], baseline: &Baseline, value: &str) -> BTreeSet<String> {
    let facts: BTreeMap<String, Facts> = all_facts(sources).collect();
    let Some(base) = facts.get(&baseline.trial) else {
        return BTreeSet::new();
    };
    // A trial none of whose runs has read its data has nothing to compare either.
    let differs = |facts: &Facts| !facts.data.is_empty() && !facts.shares(base, value);
    let others = facts.iter().filter(|(_, facts)| differs(facts));
    others.map(|(id, _)| id.clone()).collect()
}

/// How many pairs of these trials were measured on the same items.
pub fn num_comparable_pairs(sources: &[Source], trials: &[&Trial], value: &str) -> usize {
    let valued = trials
        .iter()
        .filter(|trial| !trial.values(value).is_empty());
    let names: BTreeSet<&str> = valued.map(|trial| trial.id.as_str()).collect();
    let facts = all_facts(sources).filter(|(id, _)| names.contains(id.as_str()));
    let items: Vec<Vec<&DataUsed>> = facts.map(|(_, facts)| facts.data).collect();
    comparable_pairs(&items, value)
}

/// Trials of several sources with the same value for every seed, which does not happen by chance.
fn twins(sources: &[Source], ranked: &[&Trial], value: &str) -> Vec<String> {
    let mut twins = Vec::new();
    if sources.len() < 2 {
        return twins;
    }
    for (at, one) in ranked.iter().enumerate() {
        let values = |trial: &Trial| sample(trial, value).map(|s| s.by_seed.clone());
        let source = |trial: &Trial| trial.id.split('/').next().map(str::to_owned);
        let twin = ranked[at + 1..].iter().find(|other| {
            one.n > 1 && values(one) == values(other) && source(one) != source(other)
        });
        twins.extend(twin.map(|twin| format!("`{}` and `{}`", one.id, twin.id)));
    }
    twins
}

/// The basis of a trial.
struct Facts<'a> {
    num_epochs: usize,
    objective: &'a str,
    data: Vec<&'a DataUsed>,
    environments: Vec<&'a Environment>,
}

impl Facts<'_> {
    /// Whether the split of a metric has the same items.
    fn shares(&self, other: &Self, metric: &str) -> bool {
        share_items(&self.data, &other.data, metric)
    }

    /// Whether it was trained by other builds. Records of earlier versions do not contain the build, and are only
    /// distinguished by version.
    fn has_other_builds(&self, other: &Self) -> bool {
        let (own, others) = (self.builds(), other.builds());
        let is_known = !own.is_empty() && !others.is_empty();
        self.versions() != other.versions() || is_known && own != others
    }

    fn builds(&self) -> BTreeSet<&str> {
        let builds = self.environments.iter().filter_map(|e| e.build.as_ref());
        builds.map(|build| build.sha256.as_str()).collect()
    }

    fn versions(&self) -> BTreeSet<(&str, &str)> {
        let environments = self.environments.iter();
        environments
            .map(|e| (e.runner_version.as_str(), e.burn_version.as_str()))
            .collect()
    }

    fn machines(&self) -> Vec<(&str, &str)> {
        let machines = self.environments.iter();
        let mut machines: Vec<_> = machines
            .map(|e| (e.host.as_str(), e.cpu.as_str()))
            .collect();
        machines.sort_unstable();
        machines.dedup();
        machines
    }
}

fn all_facts(sources: &[Source]) -> impl Iterator<Item = (String, Facts<'_>)> {
    sources.iter().flat_map(move |source| {
        let report = &source.report;
        report.trials.iter().map(move |trial| {
            let id = name_in(sources, source, trial);
            let data = trial.data.iter();
            let environments = trial.environments.iter();
            let facts = Facts {
                num_epochs: trial.num_epochs,
                objective: &report.objective,
                data: data
                    .filter_map(|at| report.provenance.data.get(*at))
                    .collect(),
                environments: environments
                    .filter_map(|at| report.provenance.environments.get(*at))
                    .collect(),
            };
            (id, facts)
        })
    })
}

fn shown(ids: &[&str]) -> String {
    const SHOWN: usize = 5;
    let names: Vec<String> = ids.iter().take(SHOWN).map(|id| format!("`{id}`")).collect();
    match ids.len() {
        num if num > SHOWN => format!("{} and {} more", names.join(", "), num - SHOWN),
        _ => names.join(", "),
    }
}

/// What leaves out the trials that were measured on other items than the baseline's.
pub(super) fn over_alike(are_ranks: bool) -> String {
    let what = if are_ranks {
        "ranks, effects of axes"
    } else {
        "effects of axes"
    };
    format!(
        "{what}, tables and Pareto fronts are over the trials that were measured on the baseline's items; `--baseline` chooses another one"
    )
}

/// Why trials are neither ranked nor judged by a value without a common meaning.
pub(super) fn not_common(value: &str, is_elsewhere: bool) -> String {
    if is_elsewhere {
        format!(
            "`{value}` was measured on different data in different experiments, so there are no ranks and no verdicts: use `--value` with a metric that they share"
        )
    } else {
        format!(
            "`{value}` is another quantity in different trials, so there are no ranks and no verdicts: use `--value` with a metric that all of them share"
        )
    }
}
