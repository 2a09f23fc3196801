//! A distance between two sets of items: the sliced Wasserstein distance (Rabin et al., 2012).
//!
//! Items are projected to fixed directions, whose seed is the same for all runs. Along each, the Wasserstein distance of
//! order 1 between two sets of equally many numbers is the mean distance of those of equal rank.

use runner_core::data::order::{Purpose, normal};

/// The number of directions.
pub const NUM_DIRECTIONS: usize = 128;

/// The directions for items of `width` numbers, one after the other: each is drawn from the sphere.
pub fn directions(width: usize) -> Vec<f64> {
    let each = (0..NUM_DIRECTIONS).flat_map(|at| {
        let drawn = normal(width, 0, Purpose::Directions, at as u64);
        let length = drawn.iter().map(|x| x * x).sum::<f64>().sqrt();
        drawn.into_iter().map(move |x| x / length)
    });
    each.collect()
}

/// The coordinate of each item along each direction: \[items, directions\]. Those of an item depend on nothing else.
pub fn projected(items: &[f64], directions: &[f64]) -> Vec<f64> {
    let width = directions.len() / NUM_DIRECTIONS;
    let of_item = |item| {
        let along = directions.chunks_exact(width);
        along.map(move |direction| product(item, direction))
    };
    items.chunks_exact(width).flat_map(of_item).collect()
}

/// A scalar product, whose sums are independent so that they can be computed at once.
fn product(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let (chunks, others) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = chunks.remainder().iter().zip(others.remainder());
    let rest: f64 = rest.map(|(a, b)| a * b).sum();
    for (a, b) in chunks.zip(others) {
        for at in 0..LANES {
            sums[at] += a[at] * b[at];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// The mean over directions of the distance along each, for two sets of as many projected items.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    let along = |of: &[f64], at: usize| {
        let mut all: Vec<f64> = of[at.min(of.len())..]
            .iter()
            .step_by(NUM_DIRECTIONS)
            .copied()
            .collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let distances = (0..NUM_DIRECTIONS).map(|at| {
        let (a, b) = (along(a, at), along(b, at));
        let pairs = a.iter().zip(&b).map(|(a, b)| (a - b).abs());
        pairs.sum::<f64>() / a.len().max(1) as f64
    });
    distances.sum::<f64>() / NUM_DIRECTIONS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_is_as_far_as_it_is_along_each_direction() {
        let directions = directions(3);
        let items: Vec<f64> = (0..30).map(|at| (f64::from(at) * 0.7).sin()).collect();
        let shift = [0.5, -1.0, 2.0];
        // The other order does not matter.
        let moved = items.chunks_exact(3).rev();
        let moved = moved.flat_map(|item| item.iter().zip(shift).map(|(x, by)| x + by));
        let moved: Vec<f64> = moved.collect();
        let found = distance(
            &projected(&items, &directions),
            &projected(&moved, &directions),
        );
        let along = directions.chunks_exact(3);
        let along = along.map(|direction| product(direction, &shift).abs());
        let wanted = along.sum::<f64>() / NUM_DIRECTIONS as f64;
        assert!((found - wanted).abs() < 1e-12, "{found}, {wanted}");
        let same = projected(&items, &directions);
        assert_eq!(distance(&same, &same), 0.0);
    }
}
