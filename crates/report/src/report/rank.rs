//! Ranking of trials by a value.

use std::cmp::Ordering;

use runner_core::spec::losses::MAIN;
pub use runner_core::spec::metric::is_loss;
use runner_statistics::Direction;

/// Whether a metric is a different function in different trials, so that its values cannot be compared: a loss, if the
/// axes vary it. The loss of a term is measured without its weight.
pub fn is_of_several_losses(metric: &str, axes: &[String]) -> bool {
    let term = metric.split('/').nth(1).filter(|term| *term != "loss");
    let is_of_loss = |key: &String| {
        let table = key.split(['.', '[']).next();
        match (table, term) {
            (Some("loss"), None | Some(MAIN)) | (Some("losses"), None) => true,
            (Some("losses"), Some(term)) => term != MAIN && !key.ends_with(".weight"),
            _ => false,
        }
    };
    is_loss(metric) && axes.iter().any(is_of_loss)
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
    let mut rank = 0;
    let mut before = None;
    let places = order.into_iter().enumerate().map(|(place, at)| {
        if place == 0 || means[at] != before {
            rank = place + 1;
        }
        before = means[at];
        (at, means[at].map(|_| rank))
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_compared_unless_an_axis_changes_them() {
        let several = |metric: &str, axis: &str| is_of_several_losses(metric, &[axis.to_owned()]);
        for axis in ["loss.type", "losses.age.weight", "losses[0].type"] {
            assert!(several("valid/loss", axis), "{axis}");
            assert!(!several("valid/accuracy", axis), "{axis}");
        }
        assert!(!several("valid/loss", "optimizer.type"));
        assert!(several("valid/main/loss", "loss.type"));
        assert!(!several("valid/main/loss", "losses.age.weight"));
        assert!(!several("valid/age/loss", "losses.age.weight"));
        assert!(several("valid/age/loss", "losses.age.type"));
        assert!(!several("valid/age/loss", "loss.type"));
    }

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
}
