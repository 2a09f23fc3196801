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
mod nsga2;
mod parzen;
mod population;
mod rungs;
mod sampler;
mod space;
mod tpe;

use std::cmp::Ordering;
use std::collections::BTreeSet;

pub use population::{Change, Next, Population};
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
    /// How far it is from meeting the constraints of the search: 0 if it meets them, infinite if that is not known.
    pub violation: f64,
}

impl Told {
    /// Whether it meets the constraints of the search.
    pub fn is_feasible(&self) -> bool {
        self.violation == 0.0
    }
}

/// The numbers of trials, the best first. Those that violate constraints come after those that do not, whatever their
/// values: those that violate them less first (the constrained domination of Deb et al., 2002). Pruned trials come after
/// those that were trained completely: those with more epochs first, and among equals by their value. Failed ones are
/// the last. In a search for trade-offs, trials that meet the constraints come in the order of fronts.
pub fn in_order(told: &[Told]) -> Vec<usize> {
    if told.iter().any(|told| !told.others.is_empty()) {
        return fronts::in_order(told);
    }
    let mut order: Vec<usize> = (0..told.len()).collect();
    let epochs = |at: usize| told[at].pruned_at.unwrap_or(usize::MAX);
    let violation = |at: usize| told[at].violation;
    order.sort_by(|a, b| match (told[*a].value, told[*b].value) {
        (Some(x), Some(y)) => violation(*a)
            .total_cmp(&violation(*b))
            .then(epochs(*b).cmp(&epochs(*a)))
            .then(x.total_cmp(&y)),
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
fn stream(seed: u64, number: u64) -> rand::rngs::ChaCha8Rng {
    use rand::SeedableRng;
    let mut stream = rand::rngs::ChaCha8Rng::seed_from_u64(seed);
    stream.set_stream(number);
    stream
}

/// A number from 0 to below 1, with the 53 bits that a float has there.
fn uniform(stream: &mut rand::rngs::ChaCha8Rng) -> f64 {
    use rand::Rng;
    (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least square distance from a point at which the first position is at least 0.6, which the point itself does not
    /// meet, and how many of the last 20 points meet it.
    fn constrained(method: Method, seed: u64, num: usize) -> (f64, usize) {
        let space = Space {
            axes: vec![Axis::Real; 2],
        };
        let trial = |positions: &[f64]| Some(positions.iter().copied().map(Some).collect());
        let mut shown = Shown::default();
        for number in 0..num {
            let suggestion = suggest(method, &space, (seed, number), &shown, &trial).unwrap();
            let at: Vec<f64> = suggestion.point.iter().flatten().copied().collect();
            shown.told.push(Told {
                point: suggestion.point,
                value: Some((at[0] - 0.3).powi(2) + (at[1] - 0.4).powi(2)),
                violation: (0.6 - at[0]).max(0.0) / 0.6,
                ..Told::default()
            });
        }
        let feasible = shown.told.iter().filter(|told| told.is_feasible());
        let best = feasible.filter_map(|told| told.value);
        let last = shown.told[num - 20..]
            .iter()
            .filter(|told| told.is_feasible());
        (best.fold(f64::INFINITY, f64::min), last.count())
    }

    #[test]
    fn searches_that_learn_go_to_the_best_point_that_meets_the_constraints() {
        for method in [Method::Tpe, Method::Gp, Method::CmaEs, Method::Nsga2] {
            // A Gaussian process takes longer, and learns faster.
            let (num_seeds, num) = if method == Method::Gp {
                (1, 32)
            } else {
                (3, 60)
            };
            for seed in 0..num_seeds {
                let (best, num_met) = constrained(method, seed, num);
                let (even, _) = constrained(Method::Sobol, seed, num);
                assert!(best < even && best < 0.12, "{method:?} {best} {even}");
                assert!(num_met >= 10, "{method:?} {num_met}");
            }
        }
    }
}
