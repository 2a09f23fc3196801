//! The best trade-offs of two objectives.

use super::{Direction, Refusal};

/// The points that no other one dominates, as ascending indexes. A point dominates another if it is at least as good in
/// both objectives and better in one (Pareto, 1896). Equal points do not dominate each other, so all of them are kept.
///
/// Infinities are compared like other values. Refuses NaN, which is neither better nor worse than anything.
pub fn pareto_front(
    points: &[[f64; 2]],
    directions: [Direction; 2],
) -> Result<Vec<usize>, Refusal> {
    if points.iter().flatten().any(|value| value.is_nan()) {
        return Err(Refusal::NotFinite);
    }
    // As costs, so that less is better. Adding 0 makes -0 and 0 one value.
    let cost = |value: f64, direction| match direction {
        Direction::LowerIsBetter => value + 0.0,
        Direction::HigherIsBetter => -value + 0.0,
    };
    let mut costs: Vec<(f64, f64, usize)> = points
        .iter()
        .enumerate()
        .map(|(at, [a, b])| (cost(*a, directions[0]), cost(*b, directions[1]), at))
        .collect();
    costs.sort_by(|x, y| x.0.total_cmp(&y.0).then(x.1.total_cmp(&y.1)));
    let mut front = Vec::new();
    let mut least: Option<f64> = None;
    for group in costs.chunk_by(|x, y| x.0 == y.0) {
        // Of points equal in the first objective only the best in the second remain, and they must beat all points that
        // are better in the first.
        let best = group[0].1;
        if least.is_none_or(|least| best < least) {
            front.extend(group.iter().take_while(|x| x.1 == best).map(|x| x.2));
            least = Some(best);
        }
    }
    front.sort_unstable();
    Ok(front)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Direction::{HigherIsBetter, LowerIsBetter};
    use super::*;

    fn by_definition(points: &[[f64; 2]], directions: [Direction; 2]) -> Vec<usize> {
        let dominates = |a: &[f64; 2], b: &[f64; 2]| {
            let better = |k: usize| directions[k].is_better(a[k], b[k]);
            let worse = |k: usize| directions[k].is_better(b[k], a[k]);
            !worse(0) && !worse(1) && (better(0) || better(1))
        };
        let kept = |at: &usize| !points.iter().any(|other| dominates(other, &points[*at]));
        (0..points.len()).filter(kept).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn the_front_is_what_nothing_dominates(
            raw in prop::collection::vec((-3i8..4, -3i8..4), 0..20),
            first: bool,
            second: bool,
        ) {
            let direction = |higher| if higher { HigherIsBetter } else { LowerIsBetter };
            let directions = [direction(first), direction(second)];
            let points: Vec<[f64; 2]> = raw.iter().map(|(a, b)| [f64::from(*a), f64::from(*b)]).collect();
            prop_assert_eq!(pareto_front(&points, directions).unwrap(), by_definition(&points, directions));
        }
    }

    #[test]
    fn ties_are_kept_and_nan_refused() {
        let directions = [HigherIsBetter, LowerIsBetter];
        let front = |points: &[[f64; 2]]| pareto_front(points, directions);
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
    }
}
