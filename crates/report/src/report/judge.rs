//! What is claimed about the trials of an experiment: verdicts against the baseline, and which may be the best.

use std::collections::BTreeMap;

use super::mixture::share_items;
use super::model::{Baseline, Trial};
use super::sample::{ALPHA, Repeat, keyed, overlap};
use runner_core::plan::Plan;
use runner_core::record::DataUsed;
use runner_statistics::{Claims, Direction, Looks, may_be_best, verdicts};

/// Sets the verdict of each trial against the baseline, and returns the baseline.
pub fn judge(
    (plan, data): (&Plan, &[DataUsed]),
    trials: &mut [Trial],
    order: &[usize],
    direction: Direction,
    ratio: Option<f64>,
    looks: Option<Looks>,
) -> Option<Baseline> {
    let name = plan.objective.name();
    if trials.len() < 2 {
        return None;
    }
    let by_id = |id: &String| named(trials, id);
    let (at, is_picked) = match plan.baseline.as_ref().and_then(by_id) {
        Some(at) => (at, false),
        None => {
            let best = order.first().filter(|at| trials[**at].is_feasible());
            (*best?, true)
        }
    };
    let items = trials[at].data_in(data);
    let others = trials.iter().map(|trial| {
        let its = trial.data_in(data);
        !its.is_empty() && !share_items(&its, &items, &name)
    });
    let are_other: Vec<bool> = others.collect();
    for (trial, is_other) in trials.iter_mut().zip(are_other) {
        trial.has_other_items = is_other;
    }
    // A trial without a value, on other items, or which cannot be selected, is compared with nothing, and does not affect
    // the correction of others.
    let is_compared = |other: &usize| {
        let trial = &trials[*other];
        *other != at
            && !trial.values(&name).is_empty()
            && trial.is_feasible()
            && !trial.has_other_items
    };
    let others: Vec<usize> = (0..trials.len()).filter(is_compared).collect();
    let of = |at: &usize| trials[*at].values(&name);
    let samples: Vec<&[(Repeat, f64)]> = [at].iter().chain(&others).map(of).collect();
    let overlap = overlap(&samples, ratio);
    let mut samples = keyed(&samples);
    let baseline = samples.remove(0);
    if baseline.is_empty() {
        return None;
    }
    let num_comparisons = if is_picked {
        // It may be any trial's place, also one of those on other items.
        let selectable = trials
            .iter()
            .filter(|trial| !trial.values(&name).is_empty() && trial.is_feasible());
        let items: Vec<Vec<&DataUsed>> = selectable.map(|trial| trial.data_in(data)).collect();
        comparable_pairs(&items, &name)
    } else {
        samples.len()
    };
    let claims = Claims {
        direction,
        alpha: ALPHA,
        num_comparisons,
        smallest_difference: plan.verdict.smallest_difference,
        overlap: overlap.as_ref(),
        looks,
    };
    let found = verdicts(&baseline, &samples, &claims).ok()?;
    for (other, verdict) in others.into_iter().zip(found) {
        trials[other].verdict = Some(verdict);
    }
    Some(Baseline {
        trial: trials[at].id.clone(),
        is_picked,
        unbeaten: None,
    })
}

/// How many pairs of trials could be compared, by the data of each: those measured on the same items. A baseline that is
/// picked by its values picks some of them.
pub fn comparable_pairs(items: &[Vec<&DataUsed>], metric: &str) -> usize {
    let is_alike = |a: &Vec<&DataUsed>, b: &Vec<&DataUsed>| {
        a.is_empty() || b.is_empty() || share_items(a, b, metric)
    };
    // Hundreds of trials have a few data sets.
    let mut sets: BTreeMap<Vec<_>, (&Vec<&DataUsed>, usize)> = BTreeMap::new();
    for one in items {
        let digests = one.iter().map(|data| &data.digests).collect();
        sets.entry(digests).or_insert((one, 0)).1 += 1;
    }
    let sets: Vec<(&Vec<&DataUsed>, usize)> = sets.into_values().collect();
    let within = sets.iter().map(|(_, num)| num * (num - 1) / 2);
    let between = sets.iter().enumerate().flat_map(|(at, (one, num))| {
        let others = sets[..at].iter();
        let alike = others.filter(|(other, _)| is_alike(one, other));
        alike.map(move |(_, others)| num * others)
    });
    within.chain(between).sum()
}

/// The trials that may be the best one, in the order of ranks; none if there are fewer than three with several values,
/// where the verdict on the second of two says the same, or if they were measured on different items.
pub fn candidates(
    trials: &[Trial],
    order: &[usize],
    name: &str,
    direction: Direction,
    ratio: Option<f64>,
    looks: Option<Looks>,
) -> Option<Vec<String>> {
    let valued = order.iter().filter(|at| {
        let trial = &trials[**at];
        !trial.values(name).is_empty() && trial.is_feasible()
    });
    let valued: Vec<&Trial> = valued.map(|at| &trials[*at]).collect();
    if valued.iter().any(|trial| trial.has_other_items) {
        return None;
    }
    let samples: Vec<&[(Repeat, f64)]> = valued.iter().map(|trial| trial.values(name)).collect();
    if samples.iter().filter(|sample| sample.len() > 1).count() < 3 {
        return None;
    }
    let overlap = overlap(&samples, ratio);
    let keyed = keyed(&samples);
    let found = may_be_best(&keyed, direction, ALPHA, overlap.as_ref(), looks).ok()?;
    let may_be = valued.into_iter().zip(found).filter(|(_, may_be)| *may_be);
    Some(may_be.map(|(trial, _)| trial.id.clone()).collect())
}

/// The trial of a name, also by the name of one of its folds in the plan.
pub fn named(trials: &[Trial], id: &str) -> Option<usize> {
    let of_run = |run: &String| {
        let seed = run
            .strip_prefix(id)
            .and_then(|rest| rest.strip_prefix("-s"));
        seed.is_some_and(|seed| seed.chars().all(|c| c.is_ascii_digit()))
    };
    let by_id = trials.iter().position(|trial| trial.id == id);
    by_id.or_else(|| {
        trials
            .iter()
            .position(|trial| trial.runs.iter().any(of_run))
    })
}
