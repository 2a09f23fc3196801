//! The genetic algorithm NSGA-II (Deb et al., 2002): a point is a mixture of two good trials, with a few changes.
//!
//! The population is the best [`POPULATION`] of all trials so far, in the order of [`in_order`]: by fronts, and on a front
//! by how far away their neighbours are. That is the elite that the original keeps from each generation to the next, but
//! new trials join it as soon as they have ended. Parents are the better ones of two that are drawn from it. Numbers are
//! mixed by simulated binary crossover and changed by polynomial mutation (Deb and Agrawal, 1995), and choices are those
//! of one parent or the other.

use rand::rngs::ChaCha8Rng;

use super::space::{Axis, Point, Space};
use super::{Shown, Trial, in_order, uniform};

/// The trials from which parents are drawn. As many are sampled first.
pub const POPULATION: usize = 20;

/// How often two parents are mixed, rather than one of them copied.
const CROSSED: f64 = 0.9;

/// How near children are to their parents: higher is nearer.
const CROSSOVER_INDEX: f64 = 5.0;

/// How near a changed number is to what it was: higher is nearer.
const MUTATION_INDEX: f64 = 10.0;

/// Samples before a point that was tried already is accepted again.
const MAX_SAMPLES: usize = 200;

/// Suggests a point; none if all that were sampled are excluded, or no trial has a value.
pub fn suggest(
    space: &Space,
    shown: &Shown,
    random: &mut ChaCha8Rng,
    trial: Trial<'_>,
) -> Option<Point> {
    let mut population = in_order(&shown.told);
    population.retain(|at| shown.told[*at].value.is_some());
    population.truncate(POPULATION);
    if population.is_empty() {
        return None;
    }
    let known = shown.known();
    let mut first = None;
    for _ in 0..MAX_SAMPLES {
        let parents = [(); 2].map(|()| {
            let drawn = [(); 2].map(|()| (uniform(random) * population.len() as f64) as usize);
            &shown.told[population[drawn[0].min(drawn[1])]].point
        });
        let Some(point) = trial(&child(space, parents, random)) else {
            continue;
        };
        if !known.contains(&point) {
            return Some(point);
        }
        first.get_or_insert(point);
    }
    first
}

/// A position on each axis, mixed from those of two points.
fn child(space: &Space, [first, second]: [&Point; 2], random: &mut ChaCha8Rng) -> Vec<f64> {
    let is_crossed = uniform(random) < CROSSED;
    let changed = 1.0 / space.axes.len() as f64;
    let mut positions = Vec::with_capacity(space.axes.len());
    for (at, axis) in space.axes.iter().enumerate() {
        // As many numbers are drawn for each axis, whatever they are used for.
        let [turn, mix, spread, change, to] = [(); 5].map(|()| uniform(random));
        let (a, b) = match (first[at], second[at]) {
            (Some(a), Some(b)) if turn < 0.5 => (a, b),
            (Some(a), Some(b)) => (b, a),
            // The other parent does not set it.
            (Some(only), None) | (None, Some(only)) => (only, only),
            (None, None) => (to, to),
        };
        let is_choice = matches!(axis, Axis::Choice(_));
        let inherited = match (is_crossed, is_choice) {
            (false, _) => first[at].unwrap_or(a),
            (true, true) => a,
            (true, false) if mix < 0.5 => a,
            (true, false) => crossed(a, b, spread),
        };
        let position = match (change < changed, is_choice) {
            (false, _) => inherited,
            (true, true) => to,
            (true, false) => mutated(inherited, to),
        };
        positions.push(axis.snapped(position.clamp(0.0, 1.0 - f64::EPSILON)));
    }
    positions
}

/// Simulated binary crossover: a number near the first of two, by how far they are from each other.
fn crossed(a: f64, b: f64, drawn: f64) -> f64 {
    let power = 1.0 / (CROSSOVER_INDEX + 1.0);
    let spread = if drawn < 0.5 {
        (2.0 * drawn).powf(power)
    } else {
        (1.0 / (2.0 * (1.0 - drawn))).powf(power)
    };
    ((1.0 + spread) * a + (1.0 - spread) * b) / 2.0
}

/// Polynomial mutation: a number of [0, 1) near another one.
fn mutated(at: f64, drawn: f64) -> f64 {
    let power = 1.0 / (MUTATION_INDEX + 1.0);
    if drawn < 0.5 {
        let far = 2.0 * drawn + (1.0 - 2.0 * drawn) * (1.0 - at).powf(MUTATION_INDEX + 1.0);
        at + far.powf(power) - 1.0
    } else {
        let far = 2.0 * (1.0 - drawn) + (2.0 * drawn - 1.0) * at.powf(MUTATION_INDEX + 1.0);
        at + 1.0 - far.powf(power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_near_those_of_parents() {
        let num = 999;
        let drawn = || (0..num).map(|at| (f64::from(at) + 0.5) / f64::from(num));
        // Symmetric around the first parent's side, and never far beyond both.
        let children: Vec<f64> = drawn().map(|drawn| crossed(0.4, 0.6, drawn)).collect();
        assert!(children.is_sorted_by(|a, b| a >= b));
        let near = children.iter().filter(|at| (**at - 0.4).abs() < 0.05);
        assert!(near.count() > 800);
        assert!((crossed(0.3, 0.3, 0.999) - 0.3).abs() < 1e-12);
        for at in [0.0, 0.2, 0.999] {
            let changed: Vec<f64> = drawn().map(|drawn| mutated(at, drawn)).collect();
            assert!(changed.iter().all(|to| (-1e-12..=1.0).contains(to)));
            let near = changed.iter().filter(|to| (**to - at).abs() < 0.2);
            assert!(near.count() > 700, "{at}");
        }
    }
}
