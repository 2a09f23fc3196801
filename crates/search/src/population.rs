//! Population-based training (Jaderberg et al., 2017): members of a population train together. After each interval, the
//! worst of them take over what some of the best have trained, and continue with changed hyperparameters. So it finds a
//! schedule of them, rather than one value for all of a training.
//!
//! What the members do next is a function of their values after the interval, of the seed and of the number of the
//! interval: not of which member was the first to reach it.

use std::cmp::Ordering;

use crate::{stream, uniform};

/// A population, and how its worst members are replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct Population {
    /// The part of the members that is replaced, and the part that they are replaced by: truncation selection. From 0,
    /// which replaces only members that failed, to 0.5.
    pub quantile: f64,
    /// The probability that a hyperparameter is sampled again, rather than multiplied by a factor.
    pub resample_probability: f64,
    /// The factors, one of which is chosen with equal probability.
    pub factors: Vec<f64>,
}

/// What a member does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// It trains on, with the same hyperparameters.
    Continue,
    /// It is replaced.
    Replace {
        /// The member whose weights and hyperparameters it takes over.
        by: usize,
        /// How each hyperparameter is changed then.
        changes: Vec<Change>,
    },
}

/// How a hyperparameter is changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Multiplied, and brought back into its range.
    Multiply(f64),
    /// Sampled again, at this quantile of its distribution.
    Resample(f64),
}

impl Population {
    /// What each member does after an interval, from its value there, of which lower is better; none if it failed. Every
    /// member that failed is replaced, if another one has not. `axes` is the number of hyperparameters.
    pub fn next(
        &self,
        values: &[Option<f64>],
        axes: usize,
        (seed, interval): (u64, usize),
    ) -> Vec<Next> {
        let value = |at: usize| values[at].filter(|value| value.is_finite());
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| match (value(*a), value(*b)) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        });
        let num_values = (0..values.len()).filter(|at| value(*at).is_some()).count();
        let part = (self.quantile * values.len() as f64).floor() as usize;
        // No member is among the best and the worst.
        let part = part.min(values.len() / 2);
        let num_best = part.max(1).min(num_values);
        let num_replaced = part.max(values.len() - num_values);
        let num_replaced = num_replaced.min(values.len() - num_best);
        let mut next = vec![Next::Continue; values.len()];
        if num_best == 0 {
            return next;
        }
        for at in &order[values.len() - num_replaced..] {
            // A stream of its own, so that it does not depend on how many others are replaced.
            let mut random = stream(seed, (interval * values.len() + at) as u64);
            let by = order[choice(uniform(&mut random), num_best)];
            let changes = (0..axes).map(|_| {
                let (is_resampled, chosen) = (uniform(&mut random), uniform(&mut random));
                if is_resampled < self.resample_probability || self.factors.is_empty() {
                    Change::Resample(chosen)
                } else {
                    Change::Multiply(self.factors[choice(chosen, self.factors.len())])
                }
            });
            next[*at] = Next::Replace {
                by,
                changes: changes.collect(),
            };
        }
        next
    }
}

/// One of so many, by a number of [0, 1).
fn choice(at: f64, num: usize) -> usize {
    ((at * num as f64) as usize).min(num - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn population() -> Population {
        Population {
            quantile: 0.25,
            resample_probability: 0.25,
            factors: vec![0.8, 1.2],
        }
    }

    fn replaced(next: &[Next]) -> Vec<(usize, usize)> {
        let replaced = next.iter().enumerate().filter_map(|(at, next)| match next {
            Next::Continue => None,
            Next::Replace { by, .. } => Some((at, *by)),
        });
        replaced.collect()
    }

    #[test]
    fn the_worst_quarter_is_replaced_by_the_best_one() {
        let values = [5.0, 1.0, 7.0, 3.0, 8.0, 2.0, 6.0, 4.0].map(Some);
        let mut sources = [0; 8];
        for interval in 0..200 {
            let next = population().next(&values, 2, (1, interval));
            let found = replaced(&next);
            assert_eq!(found.len(), 2);
            assert_eq!((found[0].0, found[1].0), (2, 4));
            found.iter().for_each(|(_, by)| sources[*by] += 1);
        }
        assert_eq!(sources[1] + sources[5], 400);
        assert!((160..240).contains(&sources[1]), "{sources:?}");
    }

    #[test]
    fn failed_members_are_replaced_and_never_copied() {
        let mut values = vec![
            Some(3.0),
            None,
            Some(f64::NAN),
            Some(1.0),
            None,
            None,
            None,
            None,
        ];
        let found = replaced(&population().next(&values, 1, (1, 0)));
        // Two of eight are the best, and the only ones with a value.
        assert_eq!(
            found.iter().map(|(at, _)| *at).collect::<Vec<_>>(),
            [1, 2, 4, 5, 6, 7]
        );
        assert!(found.iter().all(|(_, by)| [0, 3].contains(by)));
        values.fill(None);
        assert_eq!(replaced(&population().next(&values, 1, (1, 0))), []);
        // A part of less than one member, and none.
        assert_eq!(
            replaced(&population().next(&[Some(1.0), Some(2.0)], 1, (1, 0))),
            []
        );
        assert_eq!(
            replaced(&population().next(&[Some(1.0), None], 1, (1, 0))),
            [(1, 0)]
        );
        assert_eq!(population().next(&[], 1, (1, 0)), []);
    }

    #[test]
    fn changes_are_factors_or_new_samples() {
        let values: Vec<_> = (0..40).map(|at| Some(f64::from(at))).collect();
        let (mut factors, mut samples) = (Vec::new(), Vec::new());
        for interval in 0..20 {
            let next = population().next(&values, 5, (3, interval));
            assert_eq!(next, population().next(&values, 5, (3, interval)));
            for next in next {
                let Next::Replace { changes, .. } = next else {
                    continue;
                };
                assert_eq!(changes.len(), 5);
                for change in changes {
                    match change {
                        Change::Multiply(factor) => factors.push(factor),
                        Change::Resample(at) => samples.push(at),
                    }
                }
            }
        }
        // Of a thousand.
        assert!((200..300).contains(&samples.len()), "{}", samples.len());
        let num_low = factors.iter().filter(|factor| **factor == 0.8).count();
        assert!(factors.iter().all(|factor| [0.8, 1.2].contains(factor)));
        assert!((330..420).contains(&num_low), "{num_low}");
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        assert!((0.43..0.57).contains(&mean), "{mean}");
        assert!(samples.iter().all(|at| (0.0..1.0).contains(at)));
    }

    /// A member of the problems below: what it trains, its hyperparameters, and those of each interval so far.
    #[derive(Clone)]
    struct Member {
        weights: [f64; 2],
        hyper: Vec<f64>,
        history: Vec<Vec<f64>>,
    }

    /// Trains a population with hyperparameters from 0 to 1, and returns it.
    fn trained(
        rule: &Population,
        (num, num_axes, num_intervals, seed): (usize, usize, usize, u64),
        first: [f64; 2],
        step: impl Fn(&mut Member, usize),
        value: impl Fn(&Member) -> f64,
    ) -> Vec<Member> {
        let mut random = stream(seed, u64::MAX >> 1);
        let mut members: Vec<Member> = (0..num)
            .map(|_| Member {
                weights: first,
                hyper: (0..num_axes).map(|_| uniform(&mut random)).collect(),
                history: Vec::new(),
            })
            .collect();
        for interval in 0..num_intervals {
            for member in &mut members {
                member.history.push(member.hyper.clone());
                step(member, interval);
            }
            if interval + 1 == num_intervals {
                break;
            }
            let values: Vec<_> = members.iter().map(|member| Some(value(member))).collect();
            let before = members.clone();
            for (at, next) in rule
                .next(&values, num_axes, (seed, interval))
                .iter()
                .enumerate()
            {
                let Next::Replace { by, changes } = next else {
                    continue;
                };
                members[at] = before[*by].clone();
                for (hyper, change) in members[at].hyper.iter_mut().zip(changes) {
                    *hyper = match change {
                        Change::Multiply(factor) => (*hyper * factor).clamp(0.0, 1.0),
                        Change::Resample(at) => *at,
                    };
                }
            }
        }
        members.sort_by(|a, b| value(a).total_cmp(&value(b)));
        members
    }

    fn alone() -> Population {
        Population {
            quantile: 0.0,
            ..population()
        }
    }

    /// Figure 2 of the paper: 1.2 - t0^2 - t1^2 is to be maximized, and what a member descends along is
    /// 1.2 - h0 t0^2 - h1 t1^2.
    #[test]
    fn the_example_of_the_paper_is_solved() {
        let step = |member: &mut Member, _| {
            for _ in 0..4 {
                for (weight, hyper) in member.weights.iter_mut().zip(&member.hyper) {
                    *weight -= 0.02 * hyper * *weight;
                }
            }
        };
        let value = |member: &Member| -1.2 + member.weights.iter().map(|w| w * w).sum::<f64>();
        for seed in 0..20 {
            let sizes = (8, 2, 40, seed);
            let best = &trained(&population(), sizes, [0.9, 0.9], step, value)[0];
            let without = &trained(&alone(), sizes, [0.9, 0.9], step, value)[0];
            // Both hyperparameters are as large as they may be for most of the time, which is best.
            assert!(value(best) <= value(without), "{seed}");
            let last = &best.history[20..];
            let mean: f64 = last.iter().flatten().sum::<f64>() / (2 * last.len()) as f64;
            assert!(mean > 0.85, "{seed} {mean}");
            assert!(value(best) < -1.19, "{seed} {}", value(best));
        }
    }

    /// Stochastic gradients of a parabola: a large learning rate is best far away, and a small one at the end. No
    /// constant rate is as good as what the population finds, which falls.
    #[test]
    fn a_schedule_is_found_that_no_constant_is_as_good_as() {
        let noise = |interval: usize, at: usize| {
            let mut random = stream(77, (interval * 8 + at) as u64);
            (0..12).map(|_| uniform(&mut random)).sum::<f64>() - 6.0
        };
        // Rates from 0.001 to 1, on a logarithmic axis.
        let rate = |hyper: f64| 1e-3_f64.powf(1.0 - hyper);
        let step = |member: &mut Member, interval: usize| {
            for at in 0..8 {
                let gradient = member.weights[0] + noise(interval, at);
                member.weights[0] -= rate(member.hyper[0]) * gradient;
                // What is measured is not the noise of the last step.
                member.weights[1] = 0.8 * member.weights[1] + 0.2 * member.weights[0].powi(2);
            }
        };
        let value = |member: &Member| member.weights[1];
        let mut num_better = 0;
        for seed in 0..20 {
            let best = &trained(&population(), (16, 1, 30, seed), [30.0, 900.0], step, value)[0];
            let rates: Vec<f64> = best.history.iter().map(|hyper| rate(hyper[0])).collect();
            let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
            let falls = mean(&rates[..10]) > mean(&rates[20..]);
            let constant = (0..=100).map(|at| {
                let mut member = Member {
                    weights: [30.0, 900.0],
                    hyper: vec![f64::from(at) / 100.0],
                    history: Vec::new(),
                };
                (0..30).for_each(|interval| step(&mut member, interval));
                value(&member)
            });
            let constant = constant.fold(f64::INFINITY, f64::min);
            num_better += usize::from(falls && value(best) < constant);
        }
        assert!(num_better >= 15, "{num_better}");
    }
}
