//! The best trials of a search, trained again with other seeds than those by which they were selected.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::model::Trial;
use super::rank::ranked;
use super::sample::Sample;
use runner_core::plan::SearchPlan;
use runner_core::record::Index;
use runner_statistics::Direction;

/// A trial with its values in the search and with other seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Confirmed {
    /// The trial.
    pub trial: String,
    /// The mean of the objective in the search.
    pub searched: f64,
    /// Planned runs with other seeds.
    pub num_planned: usize,
    /// The objective with other seeds, of those that are completed; none without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
}

/// An index without the runs that confirm trials, and one with only those, if there are any. In population-based
/// training, what a confirmed trial begins as a copy of is trained with the same seeds, and is part of neither.
pub fn apart(index: &Index) -> (Cow<'_, Index>, Option<Index>) {
    let confirms = |at: &usize| index.plan.confirms(index.runs[*at].seed);
    let (mut confirming, searched): (Vec<usize>, Vec<usize>) =
        (0..index.runs.len()).partition(confirms);
    if confirming.is_empty() {
        return (Cow::Borrowed(index), None);
    }
    let ends = index.plan.search.as_ref().map(SearchPlan::confirmed);
    let ends = ends.unwrap_or_default();
    let is_whole = |at: &usize| ends.get(&*index.runs[*at].trial) == Some(&None);
    confirming.retain(is_whole);
    let with = |runs: &[usize]| Index {
        runs: runs.iter().map(|at| index.runs[*at].clone()).collect(),
        ..index.clone()
    };
    (Cow::Owned(with(&searched)), Some(with(&confirming)))
}

impl Confirmed {
    /// The confirmed trials, best first by their values with other seeds.
    pub fn all(
        searched: &[Trial],
        confirmed: &[Trial],
        objective: &str,
        direction: Direction,
    ) -> Vec<Self> {
        let one = |trial: &Trial| {
            let before = searched.iter().find(|other| other.id == trial.id)?;
            Some(Self {
                trial: trial.id.clone(),
                searched: before.metrics.get(objective)?.mean(),
                num_planned: trial.runs.len(),
                sample: trial.metrics.get(objective).cloned(),
            })
        };
        let all: Vec<Self> = confirmed.iter().filter_map(one).collect();
        let means: Vec<Option<f64>> = all
            .iter()
            .map(|one| one.sample.as_ref().map(Sample::mean))
            .collect();
        let order = ranked(&means, direction).into_iter();
        order.map(|(at, _)| all[at].clone()).collect()
    }
}
