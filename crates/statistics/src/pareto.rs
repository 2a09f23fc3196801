//! The best trade-offs of several objectives.

use std::cmp::Ordering;

use super::{Direction, Refusal, are_equal};

/// The points that no other one dominates, as ascending indexes. A point dominates another if it is at least as good in
/// all objectives and better in one (Pareto, 1896). Equal points do not dominate each other, so all of them are kept;
/// values that differ only by rounding are equal ([`are_equal`]).
///
/// Infinities are compared like other values. Refuses NaN, which is neither better nor worse than anything.
pub fn pareto_front<P: AsRef<[f64]>>(
    points: &[P],
    directions: &[Direction],
) -> Result<Vec<usize>, Refusal> {
    let mut all = points.iter().flat_map(|point| point.as_ref());
    if all.any(|value| value.is_nan()) {
        return Err(Refusal::NotFinite);
    }
    // As costs, so that less is better. Adding 0 makes -0 and 0 one value.
    let cost = |(value, direction): (&f64, &Direction)| match direction {
        Direction::LowerIsBetter => value + 0.0,
        Direction::HigherIsBetter => -value + 0.0,
    };
    let costs = points.iter().map(|point| -> Vec<f64> {
        let values = point.as_ref().iter().zip(directions);
        values.map(cost).collect()
    });
    let mut costs: Vec<(usize, Vec<f64>)> = costs.enumerate().collect();
    let num_objectives = costs.first().map_or(0, |(_, point)| point.len());
    for objective in 0..num_objectives {
        make_equal(&mut costs, objective);
    }
    costs.sort_by(|(_, x), (_, y)| {
        let differing = x.iter().zip(y).map(|(x, y)| x.total_cmp(y));
        differing.fold(Ordering::Equal, Ordering::then)
    });
    // In this order, no point dominates one before it, and what dominates it is dominated by the front so far or on it.
    let mut front: Vec<(usize, Vec<f64>)> = Vec::new();
    for (at, point) in costs {
        let is_dominated = front
            .iter()
            .any(|(_, other)| *other != point && other.iter().zip(&point).all(|(x, y)| x <= y));
        if !is_dominated {
            front.push((at, point));
        }
    }
    let mut found: Vec<usize> = front.into_iter().map(|(at, _)| at).collect();
    found.sort_unstable();
    Ok(found)
}

/// Gives values of an objective that differ only by rounding the least of them.
fn make_equal(costs: &mut [(usize, Vec<f64>)], objective: usize) {
    costs.sort_by(|(_, x), (_, y)| x[objective].total_cmp(&y[objective]));
    for equal in costs.chunk_by_mut(|(_, x), (_, y)| are_equal(x[objective], y[objective])) {
        let least = equal[0].1[objective];
        equal.iter_mut().for_each(|(_, x)| x[objective] = least);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Direction::{HigherIsBetter, LowerIsBetter};
    use super::*;

    fn by_definition(points: &[[f64; 3]], directions: [Direction; 3]) -> Vec<usize> {
        let dominates = |a: &[f64; 3], b: &[f64; 3]| {
            let better = |k: usize| directions[k].is_better(a[k], b[k]);
            let worse = |k: usize| directions[k].is_better(b[k], a[k]);
            !(0..3).any(worse) && (0..3).any(better)
        };
        let kept = |at: &usize| !points.iter().any(|other| dominates(other, &points[*at]));
        (0..points.len()).filter(kept).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn the_front_is_what_nothing_dominates(
            raw in prop::collection::vec((-3i8..4, -3i8..4, -1i8..2), 0..20),
            first: bool,
            second: bool,
        ) {
            let direction = |higher| if higher { HigherIsBetter } else { LowerIsBetter };
            let directions = [direction(first), direction(second), LowerIsBetter];
            let point = |(a, b, c): &(i8, i8, i8)| [*a, *b, *c].map(f64::from);
            let points: Vec<[f64; 3]> = raw.iter().map(point).collect();
            prop_assert_eq!(pareto_front(&points, &directions).unwrap(), by_definition(&points, directions));
        }
    }

    #[test]
    fn ties_are_kept_and_nan_refused() {
        let directions = [HigherIsBetter, LowerIsBetter];
        let front = |points: &[[f64; 2]]| pareto_front(points, &directions);
        assert_eq!(front(&[]), Ok(vec![]));
        let points = [
            [0.9, 10.0],
            [0.8, 5.0],
            [0.9, 10.0],
            [0.7, 6.0],
            [0.9, 11.0],
        ];
        assert_eq!(front(&points), Ok(vec![0, 1, 2]));
        assert_eq!(front(&[[0.0, 1.0], [-0.0, 1.0]]), Ok(vec![0, 1]));
        assert_eq!(front(&[[f64::INFINITY, 1.0], [1.0, 1.0]]), Ok(vec![0]));
        assert_eq!(front(&[[f64::NAN, 1.0]]), Err(Refusal::NotFinite));
        // The same accuracy, added up in another order.
        let rounded = [
            [0.9444444444444443, 51.0],
            [0.9444444444444445, 515.0],
            [0.9444444444444445, 51.0],
        ];
        assert_eq!(front(&rounded), Ok(vec![0, 2]));
    }
}
