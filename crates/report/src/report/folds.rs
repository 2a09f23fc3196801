//! Folds of a cross-validation: planned trials that differ only in their fold are one trial of a report, and folds
//! count as seeds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use super::sample::Repeat;
use runner_core::plan::HeldOut;
use runner_core::record::{DataUsed, Index, RunEntry};

/// The key of the fold that is the valid split.
const FOLD: &str = "data.split.fold";

/// How runs are grouped into trials.
pub struct Folds {
    /// The number of folds; none if trials are those of the plan.
    pub num: Option<usize>,
    /// Held-out items divided by training items, if the repeats of a trial use several splits.
    pub overlap: Option<f64>,
    /// Whether each seed has a separate split.
    pub are_splits_drawn: bool,
}

impl Folds {
    /// Folds are combined if some trials differ only in them.
    pub fn of(index: &Index) -> Self {
        let mut settings: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        let mut all = BTreeSet::new();
        for run in &index.runs {
            if let Some(fold) = fold(run) {
                let axes = Json::Object(without(run));
                settings.entry(axes.to_string()).or_default().insert(fold);
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
        match self.num.and_then(|_| fold(run)) {
            Some(fold) => without_part(&run.trial, fold),
            None => run.trial.clone(),
        }
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

/// The name of a trial without its fold, such as `hidden=64` of `hidden=64,fold=0`. A truncated name only loses its
/// digest suffix.
fn without_part(trial: &str, fold: u64) -> String {
    for label in ["fold", "split.fold", FOLD] {
        let part = format!("{label}={fold}");
        for (at, _) in trial.match_indices(&part) {
            let (before, after) = (&trial[..at], &trial[at + part.len()..]);
            let is_part = (before.is_empty() || before.ends_with(','))
                && (after.is_empty() || after.starts_with(','));
            if is_part {
                let rest = if before.is_empty() {
                    after.trim_start_matches(',').to_owned()
                } else {
                    format!("{}{after}", &before[..before.len() - 1])
                };
                return if rest.is_empty() { "base".into() } else { rest };
            }
        }
    }
    trial.to_owned()
}

#[cfg(test)]
mod tests {
    use super::without_part;

    #[test]
    fn a_trial_is_named_without_its_fold() {
        let names = [
            "fold=1",
            "fold=1,hidden=[8,8]",
            "hidden=8,fold=1",
            "a=1,split.fold=1,b=2",
            "manifold=1",
        ];
        let named = names.map(|name| without_part(name, 1));
        assert_eq!(
            named,
            ["base", "hidden=[8,8]", "hidden=8", "a=1,b=2", "manifold=1"]
        );
        assert_eq!(without_part("fold=10", 1), "fold=10");
    }
}
