//! Folds of a cross-validation: planned trials that differ only in their fold are one trial of a report, and folds
//! count as seeds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use super::sample::Repeat;
use runner_core::data::sha256_hex;
use runner_core::plan::{FOLD, HeldOut, without_part};
use runner_core::record::{DataUsed, Index, RunEntry};

/// How runs are grouped into trials.
pub struct Folds {
    /// The number of folds; none if trials are those of the plan.
    pub num: Option<usize>,
    /// Held-out items divided by training items, if the repeats of a trial use several splits.
    pub overlap: Option<f64>,
    /// Whether each seed has a separate split.
    pub are_splits_drawn: bool,
    /// The name of each trial with folds, by the values of its other axes as JSON.
    names: BTreeMap<String, String>,
}

impl Folds {
    /// Folds are combined if some trials differ only in them.
    pub fn of(index: &Index) -> Self {
        let mut settings: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        let mut all = BTreeSet::new();
        let mut first: Vec<(String, &RunEntry, u64)> = Vec::new();
        for run in &index.runs {
            if let Some(fold) = fold(run) {
                let axes = Json::Object(without(run)).to_string();
                let folds = settings.entry(axes.clone()).or_default();
                if folds.is_empty() {
                    first.push((axes, run, fold));
                }
                folds.insert(fold);
                all.insert(fold);
            }
        }
        let is_repeated = settings.values().any(|folds| folds.len() > 1);
        let by_run = |used: &DataUsed| matches!(used.held_out, HeldOut::DrawnForRun { .. });
        let are_splits_drawn = index.data.iter().any(by_run);
        let num = is_repeated.then_some(all.len());
        Self {
            num,
            overlap: match num {
                Some(num) => Some(shared(index).unwrap_or(1.0 / (num.max(2) - 1) as f64)),
                None => shared(index).filter(|_| are_splits_drawn),
            },
            are_splits_drawn,
            names: if num.is_some() {
                names(first)
            } else {
                BTreeMap::new()
            },
        }
    }

    /// What distinguishes a run within its trial.
    pub fn repeat(&self, run: &RunEntry) -> Repeat {
        Repeat {
            seed: run.seed,
            fold: self.num.and_then(|_| fold(run)),
        }
    }

    /// Which runs must have read the same data: those of one fold, or of one seed if each has its own split.
    pub fn data_of(&self, run: &RunEntry) -> Option<u64> {
        if self.are_splits_drawn {
            Some(run.seed)
        } else {
            self.repeat(run).fold
        }
    }

    /// The name of a run's trial.
    pub fn trial(&self, run: &RunEntry) -> String {
        let named = self.num.and_then(|_| {
            fold(run)?;
            self.names.get(&Json::Object(without(run)).to_string())
        });
        named.unwrap_or(&run.trial).clone()
    }

    /// The values of the varied keys of a run's trial.
    pub fn axes(&self, run: &RunEntry) -> Map<String, Json> {
        match self.num {
            Some(_) => without(run),
            None => run.axes.clone(),
        }
    }

    /// Whether a varied key belongs to the trial.
    pub fn keeps(&self, key: &str) -> bool {
        self.num.is_none() || key != FOLD
    }
}

/// The largest ratio of held-out items to training items; none if it is not recorded.
fn shared(index: &Index) -> Option<f64> {
    let known = index.data.iter().filter(|used| used.num_train > 0);
    let ratios = known.map(|used| used.num_valid as f64 / used.num_train as f64);
    ratios.max_by(f64::total_cmp).filter(|ratio| *ratio > 0.0)
}

fn fold(run: &RunEntry) -> Option<u64> {
    run.axes.get(FOLD)?.as_u64()
}

fn without(run: &RunEntry) -> Map<String, Json> {
    without_fold(&run.axes).0
}

/// The values of the varied keys except for the fold, and the fold.
pub fn without_fold(axes: &Map<String, Json>) -> (Map<String, Json>, Option<u64>) {
    let mut axes = axes.clone();
    let fold = axes.remove(FOLD);
    (axes, fold.and_then(|fold| fold.as_u64()))
}

/// The names of trials, each with its axes other than the fold, and one of its runs. Names that were cut off, or that
/// differ by a number alone, say less than the axes, and get a digest of these.
fn names(trials: Vec<(String, &RunEntry, u64)>) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (axes, run, fold) in trials {
        let mut name = match cut_off(&run.trial) {
            Some(start) => format!("{}~{}", without_last_part(start, fold), digest(&axes)),
            None => without_part(&run.trial, fold),
        };
        if !taken.insert(name.to_lowercase()) {
            name = format!("{name}~{}", digest(&axes));
        }
        names.insert(axes, name);
    }
    names
}

fn digest(axes: &str) -> String {
    sha256_hex(axes.as_bytes())[..8].to_owned()
}

/// What is left of a name that was too long, without the digest of the whole.
fn cut_off(name: &str) -> Option<&str> {
    let (start, digest) = name.rsplit_once('~')?;
    let is_digest = digest.len() == 8 && digest.chars().all(|c| c.is_ascii_hexdigit());
    is_digest.then_some(start)
}

/// The same of the beginning of a name, whose last part may be the beginning of the fold.
fn without_last_part(start: &str, fold: u64) -> String {
    let without = without_part(start, fold);
    if without != start {
        return without;
    }
    let (before, last) = start.rsplit_once(',').unwrap_or(("base", start));
    let parts = ["fold", "split.fold", FOLD].map(|label| format!("{label}={fold}"));
    if parts.iter().any(|part| part.starts_with(last)) {
        before.to_owned()
    } else {
        without
    }
}

#[cfg(test)]
mod tests {
    use super::without_last_part;

    #[test]
    fn the_beginning_of_a_name_loses_the_beginning_of_its_fold() {
        assert_eq!(without_last_part("hidden=8,fol", 1), "hidden=8");
        assert_eq!(without_last_part("hidden=8,f=2", 1), "hidden=8,f=2");
        assert_eq!(without_last_part("fold=1,hidden=[8,", 1), "hidden=[8,");
    }
}
