//! Values sampled from distributions.
//!
//! A sample depends only on the seed, the sampler, the axis' position and the point's number: more points, or a new
//! axis at the end, keep the earlier samples. Numbers are rounded, so that ids and files are readable, and so that a
//! last bit in which two machines' logarithms differ has no effect.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use runner_search::Axis;
use serde_json::Value as Json;

use crate::data::order::{Purpose, stream_seed};
use crate::diagnostic::Span;
use crate::spec::distribution::{Distribution, Range};
use crate::spec::document::{Node, Value};
use crate::spec::sweep::{RandomSpec, Sampler};

/// The number of dimensions of the Sobol sequence.
pub const MAX_SOBOL_AXES: usize = sobol_burley::NUM_DIMENSIONS as usize;

/// The values of the axis with index `axis`, one per point; their place is `span`.
pub fn draw(
    random: &RandomSpec,
    axis: usize,
    distribution: &Distribution,
    span: Span,
) -> Vec<Node> {
    let seed = random.seed;
    let mut stream = ChaCha8Rng::seed_from_u64(stream_seed(seed, Purpose::Sweep, axis as u64));
    let points = 0..random.num_trials as u32;
    let values = points.map(|point| {
        let at = match random.sampler {
            Sampler::Sobol => sobol_burley::sample(point, axis as u32, seed as u32).into(),
            // The 53 bits of a float between 0 and 1.
            Sampler::Uniform => (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64,
        };
        node_at(distribution, span, at)
    });
    values.collect()
}

/// The value at a position of a distribution, from 0 to below 1. A sampled number has the place `span`.
pub fn node_at(distribution: &Distribution, span: Span, position: f64) -> Node {
    match value(distribution, position) {
        // A chosen value has its own place in the file.
        Drawn::Choice(node) => node.clone(),
        Drawn::Number(value) => Node { span, value },
    }
}

/// With more values than this, the values of an axis are treated as any numbers.
const MAX_LEVELS: f64 = 256.0;

/// A distribution as an axis of a search.
pub fn axis_of(distribution: &Distribution) -> Axis {
    if let Distribution::Choice { weights, .. } = distribution {
        return Axis::choice(weights);
    }
    let Some((min, step, num)) = levels(distribution) else {
        return Axis::Real;
    };
    // Where one value ends and the next begins.
    let ends = (0..num).map(|at| match distribution {
        Distribution::LogUniform(_) | Distribution::Integer { log: true, .. } => {
            let (low, high) = bounds(distribution);
            let end = min + (at as f64 + 0.5) * step;
            ((end / low).ln() / (high / low).ln()).clamp(0.0, 1.0)
        }
        _ => (at + 1) as f64 / num as f64,
    });
    let ends: Vec<f64> = ends.collect();
    let mut start = 0.0;
    let weights = ends.iter().enumerate().map(|(at, end)| {
        let end = if at + 1 == num { 1.0 } else { *end };
        let weight = end - start;
        start = end;
        weight
    });
    Axis::levels(&weights.collect::<Vec<_>>())
}

/// The first value, the step and the number of values, if there are few.
fn levels(distribution: &Distribution) -> Option<(f64, f64, usize)> {
    let (min, step, num) = match distribution {
        Distribution::Uniform(range) | Distribution::LogUniform(range) => {
            let step = range.step?;
            (range.min, step, num_steps(range, step))
        }
        Distribution::Integer { min, max, step, .. } => {
            (*min as f64, *step as f64, ((max - min) / step + 1) as f64)
        }
        Distribution::Choice { .. } => return None,
    };
    (num <= MAX_LEVELS).then_some((min, step, num as usize))
}

/// The ends of the range that positions are mapped to. Integers are the middles of their parts of it.
fn bounds(distribution: &Distribution) -> (f64, f64) {
    match distribution {
        Distribution::Uniform(range) | Distribution::LogUniform(range) => (range.min, range.max),
        Distribution::Integer { min, max, .. } => (*min as f64 - 0.5, *max as f64 + 0.5),
        Distribution::Choice { .. } => (0.0, 1.0),
    }
}

/// The position of a value in its distribution; none if the distribution does not have it.
pub fn position_of(distribution: &Distribution, value: &Json) -> Option<f64> {
    if let Distribution::Choice { values, .. } = distribution {
        let at = values
            .iter()
            .position(|node| node.value.to_json() == *value)?;
        return Some(axis_of(distribution).middle(at));
    }
    let number = value.as_f64()?;
    if let Some((min, step, num)) = levels(distribution) {
        let at = ((number - min) / step).round();
        let is_value =
            at >= 0.0 && at < num as f64 && (min + at * step - number).abs() < 1e-6 * step;
        return is_value.then(|| axis_of(distribution).middle(at as usize));
    }
    let (low, high) = bounds(distribution);
    let position = match distribution {
        Distribution::LogUniform(_) | Distribution::Integer { log: true, .. } => {
            (number / low).ln() / (high / low).ln()
        }
        _ => (number - low) / (high - low),
    };
    (0.0..=1.0)
        .contains(&position)
        .then(|| position.min(1.0 - f64::EPSILON))
}

enum Drawn<'a> {
    Choice(&'a Node),
    Number(Value),
}

/// The quantile `at` of a distribution, from 0 to below 1.
fn value(distribution: &Distribution, at: f64) -> Drawn<'_> {
    Drawn::Number(match distribution {
        Distribution::Uniform(range) => Value::Float(match range.step {
            None => rounded(range.min + at * (range.max - range.min), range),
            Some(step) => stepped((at * num_steps(range, step)).floor(), range, step),
        }),
        Distribution::LogUniform(range) => {
            let drawn = range.min * (range.max / range.min).powf(at);
            Value::Float(match range.step {
                None => rounded(drawn, range),
                Some(step) => {
                    let last = num_steps(range, step) - 1.0;
                    let nearest = ((drawn - range.min) / step).round();
                    stepped(nearest.min(last), range, step)
                }
            })
        }
        Distribution::Integer {
            min,
            max,
            step,
            log: false,
        } => {
            let num = (max - min) / step + 1;
            let place = (at * num as f64).floor() as i64;
            Value::Int(min + place.min(num - 1) * step)
        }
        Distribution::Integer {
            min,
            max,
            step,
            log: true,
        } => {
            // The bounds are formatted like the other numbers.
            let (low, high) = bounds(distribution);
            let drawn = low * (high / low).powf(at);
            let last = (max - min) / step;
            let nearest = ((drawn - *min as f64) / *step as f64).round() as i64;
            Value::Int(min + nearest.clamp(0, last) * step)
        }
        Distribution::Choice { values, weights } => {
            let mut left = at * weights.iter().sum::<f64>();
            let chosen = weights.iter().position(|weight| {
                left -= weight;
                left < 0.0
            });
            return Drawn::Choice(&values[chosen.unwrap_or(values.len() - 1)]);
        }
    })
}

/// A value multiplied by a factor, and brought back into its distribution. It is another value, if there is one: where it
/// is at the end of the range already, it is divided instead. Zero stays zero.
pub fn multiplied(distribution: &Distribution, value: &Json, factor: f64) -> Json {
    let Some(old) = value.as_f64() else {
        return value.clone();
    };
    let moved = |to: f64| match distribution {
        Distribution::Uniform(range) | Distribution::LogUniform(range) => {
            let to = to.clamp(range.min, range.max);
            Json::from(match range.step {
                None => rounded(to, range),
                Some(step) => {
                    let place = next_place((old - range.min) / step, (to - range.min) / step);
                    let last = num_steps(range, step) - 1.0;
                    stepped(place.clamp(0.0, last), range, step)
                }
            })
        }
        Distribution::Integer { min, max, step, .. } => {
            let place = |number: f64| (number - *min as f64) / *step as f64;
            let place = next_place(place(old), place(to)) as i64;
            Json::from(min + place.clamp(0, (max - min) / step) * step)
        }
        Distribution::Choice { .. } => value.clone(),
    };
    let by = moved(old * factor);
    if by.as_f64() == Some(old) {
        moved(old / factor)
    } else {
        by
    }
}

/// The whole number next to `to`: at least one away from that at `from`, unless both are equal.
fn next_place(from: f64, to: f64) -> f64 {
    let (start, end) = (from.round(), to.round());
    if start != end || to == from {
        end
    } else {
        start + (to - from).signum()
    }
}

/// How many values a step allows; a last one that misses `max` by a rounding error counts.
fn num_steps(range: &Range, step: f64) -> f64 {
    ((range.max - range.min) / step + 1e-9).floor() + 1.0
}

fn stepped(place: f64, range: &Range, step: f64) -> f64 {
    to_digits(range.min + place * step, 12).clamp(range.min, range.max)
}

/// Rounded to 4 significant digits of the number or of the range's width, whichever is finer.
fn rounded(value: f64, range: &Range) -> f64 {
    let finer = exponent(value) - exponent(range.max - range.min);
    let digits = 4 + finer.clamp(0, 12) as usize;
    to_digits(value, digits).clamp(range.min, range.max)
}

/// Rounded by its decimal form, which is exact on every machine.
fn to_digits(value: f64, digits: usize) -> f64 {
    let text = format!("{value:.*e}", digits - 1);
    text.parse().unwrap_or(value)
}

fn exponent(value: f64) -> i32 {
    let text = format!("{value:e}");
    let exponent = text.split_once('e').map_or("0", |(_, exponent)| exponent);
    exponent.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(distribution: &Distribution, sampler: Sampler, num_trials: usize) -> Vec<String> {
        let random = RandomSpec {
            num_trials,
            seed: 1,
            sampler,
            written: Vec::new(),
            axes: Vec::new(),
            span: Span::default(),
        };
        let nodes = draw(&random, 2, distribution, Span::default());
        nodes.iter().map(|node| node.value.to_toml()).collect()
    }

    fn range(min: f64, max: f64, step: Option<f64>) -> Range {
        Range { min, max, step }
    }

    fn all() -> Vec<Distribution> {
        let value = |value| Node {
            span: Span::default(),
            value,
        };
        let integer = |min, max, step, log| Distribution::Integer {
            min,
            max,
            step,
            log,
        };
        vec![
            Distribution::Uniform(range(0.8, 0.99, None)),
            Distribution::Uniform(range(1000.0, 1001.0, None)),
            Distribution::Uniform(range(0.0, 0.5, Some(0.1))),
            Distribution::LogUniform(range(1e-5, 1e-1, None)),
            Distribution::LogUniform(range(0.001, 0.1, Some(0.001))),
            integer(-3, 3, 1, false),
            integer(16, 128, 16, false),
            integer(1, 1000, 1, true),
            integer(0, 10_000, 10, false),
            Distribution::Choice {
                values: ["a", "b"].map(|t| value(Value::Str(t.into()))).to_vec(),
                weights: vec![1.0, 3.0],
            },
        ]
    }

    #[test]
    fn draws_are_pinned() {
        // They determine what published experiments tried.
        let mut text = String::new();
        for sampler in [Sampler::Sobol, Sampler::Uniform] {
            for distribution in all() {
                let values = drawn(&distribution, sampler, 8).join(" ");
                text.push_str(&format!("{values}\n"));
            }
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn more_points_leave_the_earlier_ones() {
        for sampler in [Sampler::Sobol, Sampler::Uniform] {
            for distribution in all() {
                let many = drawn(&distribution, sampler, 20);
                assert_eq!(drawn(&distribution, sampler, 7), many[..7]);
            }
        }
    }

    #[test]
    fn sobol_points_fill_the_range_evenly() {
        let values = drawn(&all()[5], Sampler::Sobol, 7 * 64);
        for number in -3..=3 {
            let num = values.iter().filter(|v| **v == number.to_string()).count();
            assert!((62..=66).contains(&num), "{number}: {num}");
        }
        let choices = drawn(&all()[9], Sampler::Sobol, 256);
        assert_eq!(choices.iter().filter(|v| *v == "\"a\"").count(), 64);
    }

    #[test]
    fn values_and_their_positions_agree() {
        for distribution in all() {
            let axis = axis_of(&distribution);
            for at in 0..1000 {
                let position = (at as f64 + 0.5) / 1000.0;
                let node = node_at(&distribution, Span::default(), position);
                let found = position_of(&distribution, &node.value.to_json()).unwrap();
                assert_eq!(axis.index(found), axis.index(position));
                // Numbers are rounded to 4 digits: the position is another one, the value is not.
                assert_eq!(
                    node_at(&distribution, Span::default(), found).value,
                    node.value,
                    "{distribution:?} {position} {found}"
                );
                assert_eq!(
                    node_at(&distribution, Span::default(), axis.snapped(position)).value,
                    node.value
                );
            }
            assert_eq!(position_of(&distribution, &Json::from("other")), None);
            assert_eq!(position_of(&distribution, &Json::from(-7.3)), None);
        }
    }

    #[test]
    fn a_multiplied_value_is_another_one_of_its_distribution() {
        for distribution in all() {
            for at in 0..100 {
                let node = node_at(&distribution, Span::default(), f64::from(at) / 100.0);
                let old = node.value.to_json();
                assert_eq!(multiplied(&distribution, &old, 1.0), old);
                for factor in [0.8, 1.2] {
                    let new = multiplied(&distribution, &old, factor);
                    assert!(position_of(&distribution, &new).is_some(), "{old} {new}");
                    let stays = new == old;
                    let is_choice = matches!(distribution, Distribution::Choice { .. });
                    assert_eq!(stays, is_choice || old.as_f64() == Some(0.0), "{old}");
                }
            }
        }
        let rate = Distribution::LogUniform(range(1e-4, 1.0, None));
        assert_eq!(multiplied(&rate, &0.01.into(), 1.2), 0.012);
        // Past the end, at the end, and from a small integer.
        assert_eq!(multiplied(&rate, &0.9.into(), 1.2), 1.0);
        assert_eq!(multiplied(&rate, &1.0.into(), 1.25), 0.8);
        assert_eq!(multiplied(&all()[5], &1.into(), 1.2), 2);
        assert_eq!(multiplied(&all()[6], &128.into(), 1.2), 112);
    }

    #[test]
    fn ends_of_ranges_are_kept() {
        for distribution in all() {
            for at in [0.0, 1.0 - f64::EPSILON] {
                let (Drawn::Number(Value::Float(drawn)), Distribution::Uniform(range)) =
                    (value(&distribution, at), &distribution)
                else {
                    continue;
                };
                assert!(drawn >= range.min && drawn <= range.max);
            }
        }
    }
}
