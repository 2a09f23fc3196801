//! Ranking of trials by a value.

use std::cmp::Ordering;

use runner_core::plan::Plan;
use runner_core::record::Index;
use runner_core::spec::comparable::TASK;
pub use runner_core::spec::comparable::is_measured_differently;
pub use runner_core::spec::metric::is_loss;
use runner_statistics::Direction;
use serde_json::Value as Json;

/// The name of the task of an experiment, if its trials have the same one.
pub fn task_of(index: &Index) -> Option<&str> {
    index.settings.get(TASK).and_then(Json::as_str)
}

/// The keys that differ between trials: the axes, and what depends on them.
pub fn varied(plan: &Plan) -> Vec<String> {
    [plan.axes.as_slice(), &plan.depending].concat()
}

/// Whether a metric is another quantity in different trials of an experiment.
pub fn is_other_quantity(index: &Index, metric: &str) -> bool {
    is_measured_differently(metric, &varied(&index.plan), task_of(index))
}

fn are_equal(a: Option<f64>, b: Option<f64>) -> bool {
    a == b
        || a.zip(b)
            .is_some_and(|(a, b)| runner_statistics::are_equal(a, b))
}

/// The indices of means, best first, each with its rank from 1. Equal ones share a rank and keep their order; those
/// without a mean have no rank and come last.
pub fn ranked(means: &[Option<f64>], direction: Direction) -> Vec<(usize, Option<usize>)> {
    let mut order: Vec<usize> = (0..means.len()).collect();
    order.sort_by(|a, b| match (means[*a], means[*b]) {
        (Some(a), Some(b)) if direction.is_better(a, b) => Ordering::Less,
        (Some(a), Some(b)) if direction.is_better(b, a) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        _ => Ordering::Equal,
    });
    let mut places = Vec::with_capacity(order.len());
    for equal in order.chunk_by_mut(|a, b| are_equal(means[*a], means[*b])) {
        equal.sort_unstable();
        let rank = places.len() + 1;
        places.extend(equal.iter().map(|at| (*at, means[*at].map(|_| rank))));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_have_one_rank_and_keep_their_order() {
        let means = [None, Some(0.5), Some(0.9), Some(0.5), Some(0.1)];
        let highest = ranked(&means, Direction::HigherIsBetter);
        let expected = [
            (2, Some(1)),
            (1, Some(2)),
            (3, Some(2)),
            (4, Some(4)),
            (0, None),
        ];
        assert_eq!(highest, expected);
        let lowest = ranked(&means, Direction::LowerIsBetter);
        let expected = [
            (4, Some(1)),
            (1, Some(2)),
            (3, Some(2)),
            (2, Some(4)),
            (0, None),
        ];
        assert_eq!(lowest, expected);
    }

    #[test]
    fn sums_in_another_order_are_equal() {
        let mean =
            |values: [f64; 3]| Some(values.iter().map(|value| value / 30.0).sum::<f64>() / 3.0);
        let means = [mean([24.0, 28.0, 24.0]), mean([23.0, 28.0, 25.0])];
        assert_ne!(means[0], means[1]);
        let first = [(0, Some(1)), (1, Some(1))];
        assert_eq!(ranked(&means, Direction::HigherIsBetter), first);
        assert_eq!(ranked(&means, Direction::LowerIsBetter), first);
    }
}
