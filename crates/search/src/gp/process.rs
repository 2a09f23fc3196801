//! The Gaussian process: distances of points, its likelihood, and what it predicts.

use std::f64::consts::{PI, SQRT_2};
use std::rc::Rc;

use statrs::distribution::{ContinuousCDF, Normal};

use crate::cholesky::{Cholesky, dot};
use crate::space::{Axis, Point, Space};

/// A point for each axis in a space with Euclidean distances: its position, and whether it has one. Choices are the
/// number of their value.
pub type Embedded = Vec<[f64; 2]>;

/// The distance between two choices.
const OTHER_CHOICE: f64 = 0.5;

/// Lengths and noise are fitted to this many trials at most, spread over all from the best to the worst.
const NUM_FITTED: usize = 60;

/// The most updates of lengths and noise.
const NUM_UPDATES: usize = 60;

/// Updates without a clearly higher posterior probability after which there are no more.
const PATIENCE: usize = 15;

/// The smallest improvement of the posterior's logarithm that counts.
const IMPROVEMENT: f64 = 1e-3;

/// The largest change of a logarithm in an update.
const STEP: f64 = 0.15;

/// Added to the variance of each trial, relative to that of all values.
const JITTER: f64 = 1e-8;

/// The prior of the noise's standard deviation: median, and standard deviation of the logarithm.
const NOISE: (f64, f64) = (0.02, 1.0);

/// The position and the presence of a point on each axis, so that distances are Euclidean.
pub fn embed(space: &Space, point: &Point) -> Embedded {
    let axes = space.axes.iter().zip(point);
    let embedded = axes.map(|(axis, position)| match (position, axis) {
        (None, _) => [0.5, 0.0],
        (Some(position), Axis::Choice(_)) => {
            // Values are told apart below.
            [axis.index(*position).unwrap_or(0) as f64 + 2.0, 1.0]
        }
        (Some(position), _) => [*position, 1.0],
    });
    embedded.collect()
}

/// The squared distance on an axis.
fn squared(a: [f64; 2], b: [f64; 2]) -> f64 {
    let is_choice = a[0] >= 2.0 || b[0] >= 2.0;
    if is_choice {
        let differs = a != b;
        return f64::from(u8::from(differs)) * OTHER_CHOICE * OTHER_CHOICE;
    }
    let presence = (a[1] - b[1]) * OTHER_CHOICE;
    (a[0] - b[0]).powi(2) + presence * presence
}

/// Matérn's kernel with ν = 5/2, and its derivative by the squared distance times -2.
fn matern(squared: f64) -> (f64, f64) {
    let scaled = (5.0 * squared).sqrt();
    let decay = (-scaled).exp();
    (
        (1.0 + scaled + scaled * scaled / 3.0) * decay,
        5.0 / 3.0 * (1.0 + scaled) * decay,
    )
}

/// A mean and a standard deviation.
pub struct Belief {
    mean: f64,
    deviation: f64,
}

/// A fitted process.
pub struct Process {
    points: Rc<[Embedded]>,
    values: Vec<f64>,
    /// The logarithms of the length of each axis, and of the noise's variance.
    logs: Vec<f64>,
    /// What squared distances on each axis are multiplied by.
    scales: Vec<f64>,
    /// The kernel's derivatives for each pair of trials, as [`matern`] gives them, row by row below the diagonal.
    slopes: Vec<f64>,
    factor: Cholesky,
    /// The solution of the system for the values.
    weights: Vec<f64>,
}

impl Process {
    /// The process with the lengths and the noise of the highest posterior probability; none without points.
    pub fn fit(num_axes: usize, points: Vec<Embedded>, values: Vec<f64>) -> Option<Self> {
        if points.is_empty() {
            return None;
        }
        let every = points.len().div_ceil(NUM_FITTED);
        let few = points.iter().step_by(every).cloned().collect();
        let of_few = values.iter().step_by(every).copied().collect();
        let fitted = Self::fitted(num_axes, few, of_few)?;
        if every == 1 {
            return Some(fitted);
        }
        Self::with(fitted.logs, points.into(), values)
    }

    /// The same for all of these points.
    fn fitted(num_axes: usize, points: Rc<[Embedded]>, values: Vec<f64>) -> Option<Self> {
        let prior = Prior::of(num_axes);
        let mut logs = prior.modes();
        let (mut first, mut second) = (vec![0.0; logs.len()], vec![0.0; logs.len()]);
        let mut best: Option<(f64, Self)> = None;
        let mut improved = (f64::NEG_INFINITY, 0);
        for update in 1..=NUM_UPDATES {
            let Some(process) = Self::with(logs.clone(), points.clone(), values.clone()) else {
                break;
            };
            let (likelihood, mut slopes) = process.likelihood();
            let posterior = likelihood + prior.add(&logs, &mut slopes);
            if best.as_ref().is_none_or(|(value, _)| posterior > *value) {
                best = Some((posterior, process));
            }
            if posterior > improved.0 + IMPROVEMENT {
                improved = (posterior, update);
            } else if update >= improved.1 + PATIENCE {
                break;
            }
            // Adam's rule: steps do not depend on the scale of the slopes.
            for (at, slope) in slopes.iter().enumerate() {
                first[at] = 0.9 * first[at] + 0.1 * slope;
                second[at] = 0.99 * second[at] + 0.01 * slope * slope;
                let mean = first[at] / (1.0 - 0.9_f64.powi(update as i32));
                let square = second[at] / (1.0 - 0.99_f64.powi(update as i32));
                logs[at] += STEP * mean / (square.sqrt() + 1e-12);
            }
        }
        Some(best?.1)
    }

    /// The process with these lengths and noise; none if they cannot be computed with.
    fn with(logs: Vec<f64>, points: Rc<[Embedded]>, values: Vec<f64>) -> Option<Self> {
        let num = points.len();
        let noise = logs.last()?.exp() + JITTER;
        let scales = scales(&logs);
        let mut matrix = vec![0.0; num * num];
        let mut slopes = Vec::with_capacity(num * num / 2);
        for row in 0..num {
            for column in 0..row {
                let (value, slope) = matern(distance(&scales, &points[row], &points[column]));
                slopes.push(slope);
                matrix[row * num + column] = value;
                matrix[column * num + row] = value;
            }
            matrix[row * num + row] = 1.0 + noise;
        }
        let factor = Cholesky::of(matrix, num)?;
        Some(Self {
            weights: factor.solve(values.clone()),
            points,
            values,
            logs,
            scales,
            slopes,
            factor,
        })
    }

    /// The logarithm of the likelihood of the values, without constants, and its slopes by `logs`.
    fn likelihood(&self) -> (f64, Vec<f64>) {
        let num = self.points.len();
        let inverse = self.factor.inverse();
        let mut slopes = vec![0.0; self.logs.len()];
        let mut by_distances = self.slopes.iter();
        for row in 0..num {
            for column in 0..row {
                let (a, b) = (&self.points[row], &self.points[column]);
                let by_distance = by_distances.next().copied().unwrap_or_default();
                let outer = self.weights[row] * self.weights[column] - inverse[row * num + column];
                let axes = a.iter().zip(b).zip(&self.scales);
                for (slope, ((a, b), scale)) in slopes.iter_mut().zip(axes) {
                    // Twice, for both halves of the matrix, and one half.
                    *slope += outer * by_distance * squared(*a, *b) * scale;
                }
            }
        }
        let noise = self.logs.last().map_or(0.0, |log| log.exp());
        let diagonal = (0..num).map(|at| self.weights[at].powi(2) - inverse[at * num + at]);
        if let Some(slope) = slopes.last_mut() {
            *slope = 0.5 * noise * diagonal.sum::<f64>();
        }
        let fit = dot(&self.values, &self.weights);
        (-0.5 * (fit + self.factor.log_determinant()), slopes)
    }

    /// Its similarity to each trial.
    fn kernel(&self, point: &Embedded) -> Vec<f64> {
        let points = self.points.iter();
        let similarity = |other| matern(distance(&self.scales, point, other)).0;
        points.map(similarity).collect()
    }

    /// The mean of what is believed of a point.
    fn mean(&self, point: &Embedded) -> f64 {
        dot(&self.kernel(point), &self.weights)
    }

    /// What is believed of a point.
    pub fn at(&self, point: &Embedded) -> Belief {
        let kernel = self.kernel(point);
        let mean = dot(&kernel, &self.weights);
        let explained = self.factor.forward(kernel);
        let variance = 1.0 - dot(&explained, &explained);
        Belief {
            mean,
            deviation: variance.max(1e-12).sqrt(),
        }
    }

    /// The lowest mean at the points of the trials.
    pub fn best_mean(&self) -> f64 {
        let means = self.points.iter().map(|point| self.mean(point));
        means.fold(f64::INFINITY, f64::min)
    }

    /// The same as if points had the values that are expected of them.
    pub fn with_pending(self, pending: Vec<Embedded>) -> Self {
        if pending.is_empty() {
            return self;
        }
        let means: Vec<f64> = pending.iter().map(|point| self.mean(point)).collect();
        let points = self.points.iter().cloned().chain(pending).collect();
        let values = [self.values.clone(), means].concat();
        Self::with(self.logs.clone(), points, values).unwrap_or(self)
    }
}

/// What squared distances on each axis are multiplied by.
fn scales(logs: &[f64]) -> Vec<f64> {
    let lengths = &logs[..logs.len() - 1];
    lengths.iter().map(|log| (-2.0 * log).exp()).collect()
}

fn distance(scales: &[f64], a: &Embedded, b: &Embedded) -> f64 {
    let axes = a.iter().zip(b).zip(scales);
    axes.map(|((a, b), scale)| squared(*a, *b) * scale).sum()
}

/// Log-normal priors of the lengths, which grow with the root of the number of axes (Hvarfner et al., 2024), and of the
/// noise.
struct Prior {
    /// Mean and standard deviation of each logarithm.
    normals: Vec<(f64, f64)>,
}

impl Prior {
    fn of(num_axes: usize) -> Self {
        let length = (SQRT_2 + 0.5 * (num_axes as f64).ln(), 3.0_f64.sqrt());
        let mut normals = vec![length; num_axes];
        // Of the variance.
        normals.push((2.0 * NOISE.0.ln(), 2.0 * NOISE.1));
        Self { normals }
    }

    /// The logarithms of the most probable lengths and noise.
    fn modes(&self) -> Vec<f64> {
        let mode = |(mean, spread): &(f64, f64)| mean - spread * spread;
        self.normals.iter().map(mode).collect()
    }

    /// The logarithm of the density of these logarithms, whose slopes are added.
    fn add(&self, logs: &[f64], slopes: &mut [f64]) -> f64 {
        let mut sum = 0.0;
        for ((log, slope), (mean, spread)) in logs.iter().zip(slopes).zip(&self.normals) {
            let off = (log - mean) / spread;
            // The density of the number itself, of which this is the logarithm.
            sum -= 0.5 * off * off + log;
            *slope -= off / spread + 1.0;
        }
        sum
    }
}

/// The logarithm of the expected improvement on a value, of which lower is better.
pub fn log_improvement(belief: &Belief, best: f64) -> f64 {
    let better = (best - belief.mean) / belief.deviation;
    let log_density = -0.5 * better * better - 0.5 * (2.0 * PI).ln();
    let log_part = if better > -10.0 {
        let normal = Normal::standard();
        let expected = log_density.exp() + better * normal.cdf(better);
        expected.max(f64::MIN_POSITIVE).ln()
    } else {
        // The next term of the expansion is 15 / better^4.
        log_density - 2.0 * better.abs().ln() + (1.0 - 3.0 / (better * better)).ln()
    };
    log_part + belief.deviation.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(num: usize) -> Vec<Embedded> {
        let point = |at: usize| {
            let x = at as f64 / num as f64;
            vec![
                [x, 1.0],
                [(x * 7.3).fract(), 1.0],
                [2.0 + (at % 3) as f64, 1.0],
            ]
        };
        (0..num).map(point).collect()
    }

    fn values(points: &[Embedded]) -> Vec<f64> {
        let value = |point: &Embedded| (6.0 * point[0][0]).sin() + 0.3 * (point[2][0] - 3.0);
        points.iter().map(value).collect()
    }

    #[test]
    fn slopes_are_those_of_the_likelihood() {
        let points = points(12);
        let values = values(&points);
        let logs = vec![-1.0, 0.3, 0.1, -3.0];
        let at = |logs: &[f64]| {
            let process =
                Process::with(logs.to_vec(), points.clone().into(), values.clone()).unwrap();
            let (likelihood, mut slopes) = process.likelihood();
            let prior = Prior::of(3).add(logs, &mut slopes);
            (likelihood + prior, slopes)
        };
        let (_, slopes) = at(&logs);
        for (number, slope) in slopes.iter().enumerate() {
            let moved = |by: f64| {
                let mut logs = logs.clone();
                logs[number] += by;
                at(&logs).0
            };
            let found = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((found - slope).abs() < 1e-6, "{number} {found} {slope}");
        }
    }

    #[test]
    fn trials_are_believed_and_what_does_not_matter_has_a_great_length() {
        let points = points(40);
        let values = values(&points);
        let process = Process::fit(3, points.clone(), values.clone()).unwrap();
        for (point, value) in points.iter().zip(&values) {
            let belief = process.at(point);
            assert!((belief.mean - value).abs() < 0.05);
            assert!(belief.deviation < 0.1);
        }
        assert!(
            process.logs[1] > process.logs[0] + 1.0,
            "{:?}",
            process.logs
        );
        // Nothing is known far away.
        let nowhere = vec![[0.5, 0.0], [0.5, 0.0], [9.0, 1.0]];
        assert!(process.at(&nowhere).deviation > 0.2);
    }

    #[test]
    fn many_trials_are_all_believed() {
        let points = points(NUM_FITTED * 5 / 2);
        let values = values(&points);
        let process = Process::fit(3, points.clone(), values.clone()).unwrap();
        assert_eq!(process.points.len(), points.len());
        for (point, value) in points.iter().zip(&values) {
            assert!((process.at(point).mean - value).abs() < 0.05);
        }
    }

    #[test]
    fn pending_points_are_known_better() {
        let points = points(10);
        let values = values(&points);
        let process = Process::fit(3, points, values).unwrap();
        let between = vec![[0.55, 1.0], [0.9, 1.0], [4.0, 1.0]];
        let before = process.at(&between);
        let after = process.with_pending(vec![between.clone()]).at(&between);
        assert!((after.mean - before.mean).abs() < 0.01);
        assert!(after.deviation < before.deviation / 2.0);
    }

    #[test]
    fn the_expected_improvement_is_that_of_the_definition() {
        let at = |mean: f64, deviation: f64| log_improvement(&Belief { mean, deviation }, 0.5);
        // Of a mean at the best value: the deviation over the root of 2 pi.
        assert!((at(0.5, 2.0) - (2.0 / (2.0 * PI).sqrt()).ln()).abs() < 1e-12);
        // Of a certain improvement: the improvement.
        assert!((at(-3.0, 1e-3) - 3.5_f64.ln()).abs() < 1e-9);
        // Both forms agree where one passes into the other, and decrease beyond.
        let (near, far) = (at(0.5 + 9.999, 1.0), at(0.5 + 10.001, 1.0));
        assert!((near - far - 0.0204).abs() < 0.02, "{near} {far}");
        assert!(at(100.0, 1.0) < far && at(100.0, 1.0).is_finite());
    }
}
