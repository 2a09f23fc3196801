//! A density over the points of a space, from examples: a mixture of one kernel around each example, and one that
//! covers the whole space.

use rand::rngs::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

use super::space::{Axis, Point, Space};
use super::uniform;

/// A mixture of kernels, each a product over the axes. Where an example has no position, its kernel is the distribution
/// of the axis itself.
pub struct Parzen<'a> {
    space: &'a Space,
    examples: Vec<&'a Point>,
    /// For each axis, what its kernels have in common.
    kernels: Vec<Kernel>,
}

enum Kernel {
    /// A normal distribution of this width, truncated to the axis. For each example, the logarithm of its normalizing
    /// factor.
    Real { width: f64, log_scales: Vec<f64> },
    /// For each value of the example and each value of the point, the logarithm of the probability relative to the
    /// distribution of the axis.
    Table(Vec<Vec<f64>>),
}

fn normal() -> Normal {
    Normal::standard()
}

impl<'a> Parzen<'a> {
    /// A density around examples. The widths of kernels follow Scott's rule (1992): on each axis, the spread of the
    /// examples times n^(-1/(d + 4)) for n examples in d dimensions.
    pub fn new(space: &'a Space, examples: Vec<&'a Point>) -> Self {
        let num = examples.len() as f64;
        let set = |point: &&Point| point.iter().flatten().count();
        let dimensions = examples.iter().map(set).max().unwrap_or(1) as f64;
        let shrunk = num.max(1.0).powf(-1.0 / (dimensions + 4.0));
        let axes = space.axes.iter().enumerate();
        let kernels = axes.map(|(at, axis)| {
            let positions = examples.iter().filter_map(|point| point[at]);
            let width = (WIDTH * spread(positions) * shrunk).max(NARROWEST);
            match axis {
                Axis::Real => {
                    let log_scale = |point: &&Point| {
                        point[at].map_or(0.0, |center| -(mass(center, width) * width * ROOT).ln())
                    };
                    Kernel::Real {
                        width,
                        log_scales: examples.iter().map(log_scale).collect(),
                    }
                }
                Axis::Levels(ends) => Kernel::Table(levels(axis, ends.len(), width)),
                Axis::Choice(ends) => Kernel::Table(choices(axis, ends.len(), num)),
            }
        });
        Self {
            space,
            kernels: kernels.collect(),
            examples,
        }
    }

    /// Samples a position on every axis.
    pub fn sample(&self, random: &mut ChaCha8Rng) -> Vec<f64> {
        let chosen = (uniform(random) * (self.examples.len() + 1) as f64) as usize;
        let example = self.examples.get(chosen);
        let axes = self.space.axes.iter().zip(&self.kernels).enumerate();
        let positions = axes.map(|(at, (axis, kernel))| {
            let drawn = uniform(random);
            let Some(center) = example.and_then(|example| example[at]) else {
                return axis.snapped(drawn);
            };
            match kernel {
                Kernel::Real { width, .. } => truncated(center, *width, drawn),
                Kernel::Table(rows) => {
                    let row = &rows[axis.index(center).unwrap_or(0)];
                    let mut left = drawn;
                    let is_drawn = |(value, log): (usize, &f64)| {
                        left -= log.exp() * axis.width(value);
                        (left < 0.0).then_some(value)
                    };
                    let value = row.iter().enumerate().find_map(is_drawn);
                    axis.middle(value.unwrap_or(row.len() - 1))
                }
            }
        });
        positions.collect()
    }

    /// The logarithm of the density at a point, relative to the distribution of the space.
    pub fn log_density(&self, point: &Point) -> f64 {
        // The kernel that covers the space.
        let mut logs = vec![0.0];
        logs.extend((0..self.examples.len()).map(|example| self.log_kernel(example, point)));
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
        most + sum.ln() - (logs.len() as f64).ln()
    }

    fn log_kernel(&self, example: usize, point: &Point) -> f64 {
        let mut log = 0.0;
        for (at, kernel) in self.kernels.iter().enumerate() {
            let (Some(center), Some(position)) = (self.examples[example][at], point[at]) else {
                continue;
            };
            log += match kernel {
                Kernel::Real { width, log_scales } => {
                    let distance = (position - center) / width;
                    log_scales[example] - distance * distance / 2.0
                }
                Kernel::Table(rows) => {
                    let index = |position| self.space.axes[at].index(position).unwrap_or(0);
                    rows[index(center)][index(position)]
                }
            };
        }
        log
    }
}

/// The standard deviation of positions. The ends of the axis count a little, so that examples at one position keep some
/// spread.
fn spread(positions: impl Iterator<Item = f64>) -> f64 {
    let (mut num, mut sum, mut squares) = (2.0 * ENDS, ENDS, ENDS);
    for position in positions {
        num += 1.0;
        sum += position;
        squares += position * position;
    }
    let mean = sum / num;
    (squares / num - mean * mean).max(0.0).sqrt()
}

/// The square root of 2 pi.
const ROOT: f64 = 2.506_628_274_631_000_5;

/// The width of a kernel as part of the rule's. It and the other constants were chosen on the functions of
/// `benches/search_optuna.py`, with other seeds than those of the figures in `docs/search.md`.
const WIDTH: f64 = 0.6;

/// The weight of each end of an axis in the spread of examples.
const ENDS: f64 = 0.25;

/// Narrower kernels would only repeat an example.
const NARROWEST: f64 = 0.01;

/// The part of a normal distribution that is on the axis.
fn mass(center: f64, width: f64) -> f64 {
    normal().cdf((1.0 - center) / width) - normal().cdf(-center / width)
}

/// A quantile of a normal distribution that is truncated to the axis.
fn truncated(center: f64, width: f64, at: f64) -> f64 {
    let below = normal().cdf(-center / width);
    let position = center + width * normal().inverse_cdf(below + at * mass(center, width));
    position.clamp(0.0, 1.0 - f64::EPSILON)
}

/// The kernels of ordered values, as sampled normal distributions.
fn levels(axis: &Axis, num: usize, width: f64) -> Vec<Vec<f64>> {
    let row = |example: usize| {
        let center = axis.middle(example);
        let log = |value: usize| {
            let distance = (axis.middle(value) - center) / width;
            -distance * distance / 2.0
        };
        let sum: f64 = (0..num)
            .map(|value| log(value).exp() * axis.width(value))
            .sum();
        (0..num).map(|value| log(value) - sum.ln()).collect()
    };
    (0..num).map(row).collect()
}

/// The kernels of values without an order: the example's value, and all in proportion to their weights. The latter counts
/// as one example among all.
fn choices(axis: &Axis, num: usize, num_examples: f64) -> Vec<Vec<f64>> {
    let prior = 1.0 / (num_examples + 1.0) * num as f64;
    let row = |example: usize| {
        let log = |value: usize| {
            let own = if value == example {
                1.0 / axis.width(value)
            } else {
                0.0
            };
            ((own + prior) / (1.0 + prior)).ln()
        };
        (0..num).map(log).collect()
    };
    (0..num).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream;

    fn space() -> Space {
        Space {
            axes: vec![
                Axis::Real,
                Axis::levels(&[1.0, 2.0, 1.0]),
                Axis::choice(&[1.0, 3.0]),
            ],
        }
    }

    #[test]
    fn densities_integrate_to_one() {
        let points: Vec<Point> = vec![
            vec![Some(0.05), Some(0.1), Some(0.1)],
            vec![Some(0.9), Some(0.5), None],
            vec![None, Some(0.9), Some(0.9)],
        ];
        let space = space();
        let parzen = Parzen::new(&space, points.iter().collect());
        let (mut sum, num) = (0.0, 2000);
        for at in 0..num {
            let position = (at as f64 + 0.5) / num as f64;
            for level in 0..3 {
                for choice in 0..2 {
                    let point = vec![
                        Some(position),
                        Some(space.axes[1].middle(level)),
                        Some(space.axes[2].middle(choice)),
                    ];
                    let part =
                        space.axes[1].width(level) * space.axes[2].width(choice) / num as f64;
                    sum += parzen.log_density(&point).exp() * part;
                }
            }
        }
        assert!((sum - 1.0).abs() < 1e-4, "{sum}");
    }

    #[test]
    fn samples_follow_the_density() {
        let points: Vec<Point> = vec![vec![Some(0.1), Some(0.1), Some(0.9)]];
        let space = space();
        let parzen = Parzen::new(&space, points.iter().collect());
        let mut random = stream(1, 0);
        let samples: Vec<_> = (0..20_000).map(|_| parzen.sample(&mut random)).collect();
        assert!(samples.iter().flatten().all(|at| (0.0..1.0).contains(at)));
        let part = |is: &dyn Fn(&[f64]) -> bool| {
            samples.iter().filter(|s| is(s)).count() as f64 / 20_000.0
        };
        // From the density, with both other axes anywhere.
        let expected = |axis: usize, position: f64| {
            let mut point: Point = vec![None; 3];
            point[axis] = Some(position);
            let index = space.axes[axis].index(position).unwrap();
            parzen.log_density(&point).exp() * space.axes[axis].width(index)
        };
        for level in 0..3 {
            let drawn = part(&|s| space.axes[1].index(s[1]) == Some(level));
            assert!((drawn - expected(1, space.axes[1].middle(level))).abs() < 0.02);
        }
        let drawn = part(&|s| space.axes[2].index(s[2]) == Some(1));
        assert!((drawn - expected(2, 0.9)).abs() < 0.02);
        assert!(part(&|s| s[0] < 0.3) > 0.5);
    }

    #[test]
    fn no_example_is_everywhere() {
        let space = space();
        let parzen = Parzen::new(&space, Vec::new());
        let point = vec![Some(0.3), Some(0.5), Some(0.9)];
        assert_eq!(parzen.log_density(&point), 0.0);
        assert_eq!(parzen.sample(&mut stream(1, 0)).len(), 3);
    }
}
