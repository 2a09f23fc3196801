//! The evolution strategy with adaptation of the covariance matrix (CMA-ES; Hansen, 2016): points are sampled from a
//! normal distribution, whose mean moves to the better ones of each generation, and whose covariance learns the
//! directions in which they lie.
//!
//! Its state is recomputed from the trials each time, in the order in which they were suggested, a generation after
//! the other: so it is a function of them. Where it no longer moves, it restarts anywhere else with twice as many points a
//! generation (Auger & Hansen, 2005).

use rand::rngs::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

use super::space::{Axis, Space};
use super::{Point, Shown, Told, Trial, in_order, stream, uniform};

/// The first standard deviation, on axes from 0 to 1.
const FIRST_STEP: f64 = 1.0 / 6.0;

/// Samples before a point outside of the axes is moved to their ends.
const MAX_OUTSIDE: usize = 100;

/// Samples before all are considered excluded, or known.
const MAX_SAMPLES: usize = 200;

/// It restarts where no axis has a larger standard deviation.
const SMALLEST_STEP: f64 = 1e-5;

/// The numbers of streams of the points from which it restarts, so that they are not those of suggestions.
const RESTART: u64 = 1 << 40;

/// Suggests a point, and whether it was learned from a generation; none if all that were sampled are excluded.
pub fn suggest(
    space: &Space,
    seed: u64,
    shown: &Shown,
    random: &mut ChaCha8Rng,
    trial: Trial<'_>,
) -> Option<(Point, bool)> {
    let strategy = Strategy::after(space, seed, &shown.told);
    let known = shown.known();
    let samples = (0..MAX_SAMPLES).filter_map(|_| trial(&strategy.sample(space, random)));
    let mut first = None;
    for point in samples {
        if !known.contains(&point) {
            return Some((point, strategy.has_learned));
        }
        first.get_or_insert(point);
    }
    Some((first?, strategy.has_learned))
}

/// Points in the first generations.
pub fn generation(space: &Space) -> usize {
    4 + (3.0 * (space.axes.len() as f64).ln()) as usize
}

/// The distribution and what it remembers.
struct Strategy {
    /// Points in a generation.
    size: usize,
    mean: Vec<f64>,
    step: f64,
    /// Row by row.
    covariance: Vec<f64>,
    /// Its eigenvectors as columns, row by row, with the roots of its eigenvalues.
    axes: (Vec<f64>, Vec<f64>),
    path_of_step: Vec<f64>,
    path_of_covariance: Vec<f64>,
    generations: i32,
    has_learned: bool,
}

impl Strategy {
    fn new(size: usize, mean: Vec<f64>) -> Self {
        let num = mean.len();
        let mut unit = vec![0.0; num * num];
        (0..num).for_each(|at| unit[at * num + at] = 1.0);
        Self {
            size,
            mean,
            step: FIRST_STEP,
            axes: (unit.clone(), vec![1.0; num]),
            covariance: unit,
            path_of_step: vec![0.0; num],
            path_of_covariance: vec![0.0; num],
            generations: 0,
            has_learned: false,
        }
    }

    /// The strategy after all complete generations of these trials.
    fn after(space: &Space, seed: u64, told: &[Told]) -> Self {
        let num = space.axes.len();
        let mut strategy = Self::new(generation(space), vec![0.5; num]);
        let mut left = told;
        let mut restarts = 0;
        while left.len() >= strategy.size {
            let (generation, others) = left.split_at(strategy.size);
            left = others;
            strategy.learn(generation);
            if strategy.step * strategy.axes.1.iter().copied().fold(0.0, f64::max) < SMALLEST_STEP {
                let mut random = stream(seed, RESTART + restarts);
                restarts += 1;
                let anywhere = (0..num).map(|_| uniform(&mut random)).collect();
                strategy = Self::new(strategy.size * 2, anywhere);
                strategy.has_learned = true;
            }
        }
        strategy
    }

    /// A position on each axis.
    fn sample(&self, space: &Space, random: &mut ChaCha8Rng) -> Vec<f64> {
        let num = self.mean.len();
        let normal = Normal::standard();
        let mut positions = Vec::new();
        for _ in 0..MAX_OUTSIDE {
            let mut drawn = || normal.inverse_cdf(uniform(random).max(f64::MIN_POSITIVE));
            let independent: Vec<f64> = (0..num).map(|_| drawn()).collect();
            positions = (0..num)
                .map(|row| {
                    let (vectors, roots) = &self.axes;
                    let moved: f64 = (0..num)
                        .map(|at| vectors[row * num + at] * roots[at] * independent[at])
                        .sum();
                    let more = self.missing_width(&space.axes[row], row) * drawn();
                    self.mean[row] + self.step * moved + more
                })
                .collect();
            if positions.iter().all(|at| (0.0..1.0).contains(at)) {
                break;
            }
        }
        let axes = space.axes.iter().zip(positions);
        axes.map(|(axis, at)| axis.snapped(at.clamp(0.0, 1.0 - f64::EPSILON)))
            .collect()
    }

    /// The standard deviation to add, so that levels beside the mean are sampled, however small steps are.
    fn missing_width(&self, axis: &Axis, row: usize) -> f64 {
        let Some(level) = axis.index(self.mean[row].clamp(0.0, 1.0 - f64::EPSILON)) else {
            return 0.0;
        };
        let least = 0.3 * axis.width(level);
        let variance = self.step * self.step * self.covariance[row * self.mean.len() + row];
        (least * least - variance).max(0.0).sqrt()
    }

    /// Learns from the trials of a generation (Hansen, 2016, equations 23 to 47).
    fn learn(&mut self, generation: &[Told]) {
        let num = self.mean.len();
        let rates = Rates::of(num as f64, self.size);
        let order = in_order(generation);
        let moved: Vec<Vec<f64>> = order
            .iter()
            .map(|at| {
                let axes = generation[*at].point.iter().zip(&self.mean);
                let by =
                    |(at, mean): (&Option<f64>, &f64)| (at.unwrap_or(*mean) - mean) / self.step;
                axes.map(by).collect()
            })
            .collect();
        let better = || moved.iter().zip(&rates.weights[..self.size / 2]);
        let mean_move: Vec<f64> = (0..num)
            .map(|row| better().map(|(one, weight)| weight * one[row]).sum())
            .collect();
        for (mean, by) in self.mean.iter_mut().zip(&mean_move) {
            *mean += self.step * by;
        }
        let is_moving = self.extend_paths(&rates, &mean_move);
        self.turn(&rates, &moved, is_moving);
        let length = norm(&self.path_of_step);
        let change = rates.step / rates.damping * (length / rates.expected_length - 1.0);
        self.step = (self.step * change.min(1.0).exp()).min(1.0);
        self.axes = eigen(self.covariance.clone(), num);
        self.has_learned = true;
    }

    /// Extends the paths that the mean has taken. Returns whether that of the covariance was: not while steps grow.
    fn extend_paths(&mut self, rates: &Rates, mean_move: &[f64]) -> bool {
        let keep = (rates.step * (2.0 - rates.step) * rates.mass).sqrt();
        let whitened = whitened(&self.axes, mean_move);
        for (path, by) in self.path_of_step.iter_mut().zip(whitened) {
            *path = (1.0 - rates.step) * *path + keep * by;
        }
        self.generations += 1;
        let settled = (1.0 - (1.0 - rates.step).powi(2 * self.generations)).sqrt();
        let longest = (1.4 + 2.0 / (mean_move.len() as f64 + 1.0)) * rates.expected_length;
        let is_moving = norm(&self.path_of_step) / settled < longest;
        let keep = (rates.path * (2.0 - rates.path) * rates.mass).sqrt();
        for (path, by) in self.path_of_covariance.iter_mut().zip(mean_move) {
            *path = (1.0 - rates.path) * *path + if is_moving { keep * by } else { 0.0 };
        }
        is_moving
    }

    /// Turns the covariance to the path and to the better points, and away from the worse ones.
    fn turn(&mut self, rates: &Rates, moved: &[Vec<f64>], is_moving: bool) {
        let num = self.mean.len();
        let weights: Vec<f64> = moved
            .iter()
            .zip(&rates.weights)
            .map(|(one, weight)| {
                let length = norm(&whitened(&self.axes, one)).powi(2);
                let is_worse = *weight < 0.0;
                weight
                    * if is_worse {
                        num as f64 / (length + 1e-8)
                    } else {
                        1.0
                    }
            })
            .collect();
        let lost = if is_moving {
            0.0
        } else {
            rates.one * rates.path * (2.0 - rates.path)
        };
        let kept = 1.0 + lost - rates.one - rates.generation * rates.weights.iter().sum::<f64>();
        for row in 0..num {
            for column in 0..num {
                let of_path = self.path_of_covariance[row] * self.path_of_covariance[column];
                let points = moved.iter().zip(&weights);
                let of_points: f64 = points
                    .map(|(one, weight)| weight * one[row] * one[column])
                    .sum();
                let value = &mut self.covariance[row * num + column];
                *value = kept * *value + rates.one * of_path + rates.generation * of_points;
            }
        }
    }
}

/// The constants of a dimension and a generation.
struct Rates {
    /// Of the points in order, the best first: those of the better half sum to 1, and those of the worse ones are negative.
    weights: Vec<f64>,
    /// How many points equal weights would have the same effect.
    mass: f64,
    /// How fast the path of steps forgets.
    step: f64,
    damping: f64,
    /// How fast the path of the covariance forgets.
    path: f64,
    /// How fast the covariance learns from its path.
    one: f64,
    /// How fast the covariance learns from a generation.
    generation: f64,
    /// The mean length of a normally distributed vector.
    expected_length: f64,
}

impl Rates {
    fn of(n: f64, size: usize) -> Self {
        let half = size / 2;
        let raw = |rank: usize| ((size as f64 + 1.0) / 2.0).ln() - (rank as f64 + 1.0).ln();
        let mut weights: Vec<f64> = (0..size).map(raw).collect();
        let (better, worse) = weights.split_at_mut(half);
        let (sum, mass) = sum_and_mass(better);
        let (sum_worse, mass_worse) = sum_and_mass(worse);
        let one = 2.0 / ((n + 1.3).powi(2) + mass);
        let generation =
            (1.0 - one - 1e-8).min(2.0 * (mass - 2.0 + 1.0 / mass) / ((n + 2.0).powi(2) + mass));
        let step = (mass + 2.0) / (n + mass + 5.0);
        let most = (1.0 + one / generation)
            .min(1.0 + 2.0 * mass_worse / (mass + 2.0))
            .min((1.0 - one - generation) / (n * generation));
        better.iter_mut().for_each(|weight| *weight /= sum);
        worse
            .iter_mut()
            .for_each(|weight| *weight *= most / sum_worse.abs().max(f64::MIN_POSITIVE));
        Self {
            weights,
            mass,
            step,
            damping: 1.0 + step + 2.0 * (((mass - 1.0) / (n + 1.0)).sqrt() - 1.0).max(0.0),
            path: (4.0 + mass / n) / (n + 4.0 + 2.0 * mass / n),
            one,
            generation,
            expected_length: n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n)),
        }
    }
}

/// The sum of weights, and how many equal ones would have the same effect.
fn sum_and_mass(weights: &[f64]) -> (f64, f64) {
    let sum: f64 = weights.iter().sum();
    let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
    (sum, sum * sum / squares)
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|at| at * at).sum::<f64>().sqrt()
}

/// A move in units of the distribution: times the inverse root of the covariance.
fn whitened((vectors, roots): &(Vec<f64>, Vec<f64>), by: &[f64]) -> Vec<f64> {
    let num = by.len();
    let along = |at: usize| -> f64 {
        let moved: f64 = (0..num).map(|row| vectors[row * num + at] * by[row]).sum();
        moved / roots[at]
    };
    let along: Vec<f64> = (0..num).map(along).collect();
    (0..num)
        .map(|row| (0..num).map(|at| vectors[row * num + at] * along[at]).sum())
        .collect()
}

/// The eigenvectors of a symmetric matrix as columns, row by row, and the roots of its eigenvalues, by Jacobi's
/// rotations.
fn eigen(mut matrix: Vec<f64>, num: usize) -> (Vec<f64>, Vec<f64>) {
    let mut vectors = vec![0.0; num * num];
    (0..num).for_each(|at| vectors[at * num + at] = 1.0);
    for _ in 0..50 {
        let off: f64 = (0..num)
            .flat_map(|row| (0..row).map(move |column| (row, column)))
            .map(|(row, column)| matrix[row * num + column].powi(2))
            .sum();
        let all: f64 = matrix.iter().map(|value| value * value).sum();
        if off <= 1e-30 * all {
            break;
        }
        for p in 0..num {
            for q in p + 1..num {
                rotate(&mut matrix, &mut vectors, num, (p, q));
            }
        }
    }
    let largest = (0..num).map(|at| matrix[at * num + at]).fold(0.0, f64::max);
    let root = |at: usize| {
        matrix[at * num + at]
            .max(1e-14 * largest)
            .max(1e-300)
            .sqrt()
    };
    (vectors, (0..num).map(root).collect())
}

/// Rotates two axes, so that the element between them becomes 0.
fn rotate(matrix: &mut [f64], vectors: &mut [f64], num: usize, (p, q): (usize, usize)) {
    let off = matrix[p * num + q];
    if off == 0.0 {
        return;
    }
    let ratio = (matrix[q * num + q] - matrix[p * num + p]) / (2.0 * off);
    let tangent = ratio.signum() / (ratio.abs() + (ratio * ratio + 1.0).sqrt());
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    let sine = tangent * cosine;
    let turn = |values: &mut [f64], a: usize, b: usize| {
        let (x, y) = (values[a], values[b]);
        values[a] = cosine * x - sine * y;
        values[b] = sine * x + cosine * y;
    };
    for at in 0..num {
        turn(matrix, at * num + p, at * num + q);
    }
    for at in 0..num {
        turn(matrix, p * num + at, q * num + at);
        turn(vectors, at * num + p, at * num + q);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_are_those_of_the_matrix() {
        let matrix = vec![4.0, 1.0, -0.5, 1.0, 3.0, 0.2, -0.5, 0.2, 0.5];
        let (vectors, roots) = eigen(matrix.clone(), 3);
        for at in 0..3 {
            for row in 0..3 {
                let product: f64 = (0..3)
                    .map(|k| matrix[row * 3 + k] * vectors[k * 3 + at])
                    .sum();
                let expected = roots[at] * roots[at] * vectors[row * 3 + at];
                assert!((product - expected).abs() < 1e-12);
            }
        }
        let moved = [0.3, -0.2, 0.9];
        let twice = whitened(
            &(vectors.clone(), roots.clone()),
            &whitened(&(vectors, roots), &moved),
        );
        let back: Vec<f64> = (0..3)
            .map(|row| (0..3).map(|k| matrix[row * 3 + k] * twice[k]).sum())
            .collect();
        assert!(back.iter().zip(moved).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    fn trial(positions: &[f64]) -> Option<Point> {
        Some(positions.iter().copied().map(Some).collect())
    }

    fn searched(space: &Space, num: usize, value: impl Fn(&[f64]) -> f64) -> Shown {
        let mut shown = Shown::default();
        for number in 0..num {
            let mut random = stream(1, number as u64);
            let (point, _) = suggest(space, 1, &shown, &mut random, &trial).unwrap();
            let positions: Vec<f64> = point.iter().flatten().copied().collect();
            shown.told.push(Told {
                point,
                value: Some(value(&positions)),
                ..Told::default()
            });
        }
        shown
    }

    #[test]
    fn a_valley_that_is_not_along_the_axes_is_followed_to_its_end() {
        let space = Space {
            axes: vec![Axis::Real; 4],
        };
        let value = |at: &[f64]| {
            let (sum, rest) = (at.iter().sum::<f64>() - 2.4, at[0] - 0.4);
            1e4 * sum * sum + rest * rest + (at[1] - 0.7).powi(2) + (at[2] - 0.5).powi(2)
        };
        let shown = searched(&space, 700, value);
        let best = shown.told.iter().filter_map(|told| told.value);
        let best = best.fold(f64::INFINITY, f64::min);
        // The lowest value in the valley is 0, at 0.8 of the last axis.
        assert!(best < 1e-6, "{best}");
    }

    #[test]
    fn it_restarts_where_it_no_longer_moves() {
        let space = Space {
            axes: vec![Axis::Real; 2],
        };
        let shown = searched(&space, 900, |at| {
            (at[0] - 0.3).powi(2) + (at[1] - 0.6).powi(2)
        });
        let first = Strategy::after(&space, 1, &shown.told[..60]);
        let last = Strategy::after(&space, 1, &shown.told);
        assert_eq!(first.size, 6);
        assert!(last.size >= 12);
    }

    #[test]
    fn a_single_axis_is_searched() {
        let space = Space {
            axes: vec![Axis::Real],
        };
        let shown = searched(&space, 80, |at| (at[0] - 0.93).abs());
        let best = shown.told.iter().filter_map(|told| told.value);
        assert!(best.fold(f64::INFINITY, f64::min) < 1e-3);
    }

    #[test]
    fn levels_beside_the_mean_are_tried() {
        let space = Space {
            axes: vec![Axis::Real, Axis::levels(&[1.0; 12])],
        };
        // The best level is beside those that are better at first.
        let value = |at: &[f64]| (at[0] - 0.3).powi(2) + (at[1] - 0.875).abs();
        let shown = searched(&space, 200, value);
        let best = shown.told.iter().filter_map(|told| told.value);
        assert!(best.fold(f64::INFINITY, f64::min) < 1e-4);
    }
}
