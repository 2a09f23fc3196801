//! Samplers that suggest the next point of a search, and rules that end trials early. Handles only numbers: no keys,
//! files or clocks.
//!
//! A point is a position on each axis of a [`Space`], as a quantile of the axis' distribution: a number of [0, 1).
//! Sampling from the distributions is then sampling uniformly, whatever they are. An axis whose condition is false at
//! a point has no position there.
//!
//! A suggestion is a function of the search's seed, its own number and what it was shown ([`Shown`]): no clock, no
//! global state, no order of arrival.

mod cholesky;
mod cma;
mod fronts;
mod gp;
mod parzen;
mod rungs;
mod sampler;
mod space;
mod tpe;

use std::cmp::Ordering;
use std::collections::BTreeSet;

pub use rungs::{Climber, Job, Rule, Rungs};
pub use sampler::{By, Method, NUM_STARTUP, Suggestion, suggest};
pub use space::{Axis, Point, Space};

/// A trial that has ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// The point that was tried.
    pub point: Point,
    /// Its value, of which lower is better; none if it failed or its value is not finite.
    pub value: Option<f64>,
    /// The epoch after which it was pruned, and whose value this is; none if it was trained completely.
    pub pruned_at: Option<usize>,
    /// Further values, of which lower is better too, in a search for trade-offs: as many for each trial with a value.
    pub others: Vec<f64>,
}

/// The numbers of trials, the best first. Pruned trials come after those that were trained completely: those with more
/// epochs first, and among equals by their value. Failed ones are the last. In a search for trade-offs, trials come in
/// the order of [`fronts`].
fn in_order(told: &[Told]) -> Vec<usize> {
    if told.iter().any(|told| !told.others.is_empty()) {
        return fronts::in_order(told);
    }
    let mut order: Vec<usize> = (0..told.len()).collect();
    let epochs = |at: usize| told[at].pruned_at.unwrap_or(usize::MAX);
    order.sort_by(|a, b| match (told[*a].value, told[*b].value) {
        (Some(x), Some(y)) => epochs(*b).cmp(&epochs(*a)).then(x.total_cmp(&y)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
    order
}

/// What a suggestion is made from.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The trials that have ended, in the order in which they were suggested.
    pub told: Vec<Told>,
    /// Points that were suggested and have not ended.
    pub pending: Vec<Point>,
}

impl Shown {
    /// Trials that have a value.
    pub fn num_values(&self) -> usize {
        self.told.iter().filter(|told| told.value.is_some()).count()
    }

    /// All points that were suggested.
    fn known(&self) -> Known {
        let told = self.told.iter().map(|told| &told.point);
        Known(told.chain(&self.pending).map(bits).collect())
    }
}

/// A set of points.
struct Known(BTreeSet<Vec<Option<u64>>>);

impl Known {
    fn contains(&self, point: &Point) -> bool {
        self.0.contains(&bits(point))
    }
}

/// Positions as numbers that can be looked up.
fn bits(point: &Point) -> Vec<Option<u64>> {
    // 0 and -0 are one position.
    let bits = |position: &Option<f64>| position.map(|position| (position + 0.0).to_bits());
    point.iter().map(bits).collect()
}

/// The point of the trial at these positions, one on every axis, as the sampler is told of it afterwards: with no
/// position on axes whose condition is false, and the others as the trial's values, which may be rounded, have them. None
/// if the point is excluded. Two trials are the same if their points are equal.
pub type Trial<'a> = &'a dyn Fn(&[f64]) -> Option<Point>;

/// The stream of random numbers of one suggestion.
fn stream(seed: u64, number: usize) -> rand::rngs::ChaCha8Rng {
    use rand::SeedableRng;
    let mut stream = rand::rngs::ChaCha8Rng::seed_from_u64(seed);
    stream.set_stream(number as u64);
    stream
}

/// A number from 0 to below 1, with the 53 bits that a float has there.
fn uniform(stream: &mut rand::rngs::ChaCha8Rng) -> f64 {
    use rand::Rng;
    (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}
