//! The best epoch of a run. The worker's `model/best.bpk`, the retained checkpoints, the record and all reports use
//! this module, so that they cannot disagree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RunPlan;
use crate::spec::metric::{Metric, Objective, is_loss};

/// The first plan format whose runs break ties by the loss.
const TIES_BY_LOSS_SINCE: u32 = 3;

/// Which of several epochs with the best objective wins. On small data sets accuracy saturates long before the loss
/// does, and then the first of those epochs is undertrained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// The earliest: for runs that were planned before format 3, whose best weights were chosen by this rule.
    #[default]
    Earliest,
    /// The one with the lowest loss on the objective's split; among equal losses, the latest.
    LowestLoss,
}

impl Ties {
    /// The rule for a plan format.
    pub fn of(format: u32) -> Self {
        if format < TIES_BY_LOSS_SINCE {
            Ties::Earliest
        } else {
            Ties::LowestLoss
        }
    }

    /// Whether a later epoch is preferred to an earlier one, by their numbers.
    pub fn prefer_later(
        self,
        objective: Objective,
        later: &BTreeMap<String, f64>,
        earlier: &BTreeMap<String, f64>,
    ) -> bool {
        let by = |what: Objective| {
            let value = |of: &BTreeMap<String, f64>| {
                let value = of.get(&what.name());
                value.copied().unwrap_or(f64::NAN)
            };
            let (later, earlier) = (value(later), value(earlier));
            match (
                what.is_better(later, earlier),
                what.is_better(earlier, later),
            ) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            }
        };
        let by_loss = || by(loss_of(objective));
        match self {
            Ties::Earliest => by(objective).unwrap_or(false),
            Ties::LowestLoss => by(objective).or_else(by_loss).unwrap_or(true),
        }
    }

    /// The rule as text, for a sentence about the best epoch by `objective`.
    pub fn in_words(self, objective: &str) -> String {
        let split = objective
            .split_once('/')
            .map_or(objective, |(split, _)| split);
        match self {
            Ties::Earliest => {
                "the earliest of equal epochs, as in the version of runner that trained these runs"
                    .into()
            }
            Ties::LowestLoss if is_loss(objective) => "the latest of equal epochs".into(),
            Ties::LowestLoss => format!("of equal epochs, the one with the lowest `{split}/loss`"),
        }
    }
}

/// The loss on the split of an objective.
fn loss_of(objective: Objective) -> Objective {
    Objective {
        metric: Metric::Loss,
        term: None,
        ..objective
    }
}

impl RunPlan {
    /// Whether a later epoch of this run is better than an earlier one, by their numbers: by the objective and, if that
    /// is equal, by the plan format's rule for ties.
    pub fn prefers_later(
        &self,
        later: &BTreeMap<String, f64>,
        earlier: &BTreeMap<String, f64>,
    ) -> bool {
        Ties::of(self.format).prefer_later(self.objective, later, earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The index of the best of some epochs, each an accuracy and a loss.
    fn best(ties: Ties, objective: &str, epochs: &[(f64, f64)]) -> usize {
        let objective = Objective::parse(objective).unwrap();
        let numbers = |(accuracy, loss): &(f64, f64)| {
            let names = ["valid/accuracy", "valid/loss"].map(str::to_owned);
            BTreeMap::from_iter(names.into_iter().zip([*accuracy, *loss]))
        };
        let epochs: Vec<_> = epochs.iter().map(numbers).collect();
        let later = |best: usize, at: usize| {
            let is_better = ties.prefer_later(objective, &epochs[at], &epochs[best]);
            if is_better { at } else { best }
        };
        (0..epochs.len()).reduce(later).unwrap()
    }

    #[test]
    fn ties_go_to_the_lowest_loss_and_then_to_the_latest() {
        let saturated = [(0.9, 0.5), (1.0, 0.4), (1.0, 0.1), (1.0, 0.1), (1.0, 0.2)];
        let by_loss = |objective, epochs| best(Ties::LowestLoss, objective, epochs);
        assert_eq!(by_loss("valid/accuracy", &saturated), 3);
        assert_eq!(best(Ties::Earliest, "valid/accuracy", &saturated), 1);
        // The objective goes first, whatever the loss is.
        assert_eq!(
            by_loss("valid/accuracy", &[(0.9, 0.1), (1.0, 9.0), (0.8, 0.0)]),
            1
        );
        assert_eq!(
            by_loss("valid/loss", &[(1.0, 0.2), (0.5, 0.1), (0.9, 0.1)]),
            2
        );
        assert_eq!(
            best(
                Ties::Earliest,
                "valid/loss",
                &[(1.0, 0.2), (0.5, 0.1), (0.9, 0.1)]
            ),
            1
        );
        // NaN loses, and a metric that no epoch has is ignored.
        let odd = [
            (f64::NAN, 0.0),
            (0.5, f64::NAN),
            (0.5, 0.3),
            (f64::NAN, 0.1),
        ];
        assert_eq!(by_loss("valid/accuracy", &odd), 2);
        assert_eq!(by_loss("train/accuracy", &saturated), 4);
    }

    #[test]
    fn the_rule_is_that_of_the_plans_format() {
        assert_eq!([1, 2].map(Ties::of), [Ties::Earliest; 2]);
        assert_eq!([3, 4].map(Ties::of), [Ties::LowestLoss; 2]);
    }
}
