//! The samplers by name.

use super::{Point, Shown, Space, Trial, cma, gp, nsga2, stream, tpe, uniform};

/// Points that are sampled at random before the model is used.
pub const NUM_STARTUP: usize = 10;

/// How points are suggested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Independent points.
    Random,
    /// A Sobol sequence with Owen scrambling (Burley, 2020).
    Sobol,
    /// The tree-structured Parzen estimator (Bergstra et al., 2011), with one density over all axes.
    Tpe,
    /// A Gaussian process (Snoek et al., 2012).
    Gp,
    /// The evolution strategy CMA-ES (Hansen, 2016). Axes have neither choices nor conditions.
    CmaEs,
    /// The genetic algorithm NSGA-II (Deb et al., 2002).
    Nsga2,
}

impl Method {
    /// The number of points that are sampled before results are used; none if results are not used.
    pub fn num_startup(self, space: &Space) -> Option<usize> {
        match self {
            Method::Random | Method::Sobol => None,
            Method::Tpe | Method::Gp => Some(NUM_STARTUP),
            Method::CmaEs => Some(cma::generation(space)),
            Method::Nsga2 => Some(nsga2::POPULATION),
        }
    }
}

/// What chose a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Sampled from the space.
    Sample,
    /// Chosen from results.
    Model,
}

/// A suggested point.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// The point.
    pub point: Point,
    /// What chose it.
    pub by: By,
}

/// Samples before a space is considered empty.
const MAX_EXCLUDED: usize = 1000;

/// Suggests the point with this number, from 0; none if no point was found that is not excluded. The Sobol sequence has
/// 2^16 points and 256 dimensions; beyond those, and for points that are excluded, independent points are sampled.
pub fn suggest(
    method: Method,
    space: &Space,
    (seed, number): (u64, usize),
    shown: &Shown,
    trial: Trial<'_>,
) -> Option<Suggestion> {
    let mut random = stream(seed, number as u64);
    let startup = method.num_startup(space).unwrap_or(NUM_STARTUP);
    let can_learn = number.max(shown.told.len()) >= startup && shown.num_values() >= 2;
    let chosen = match method {
        Method::Tpe if can_learn => tpe::suggest(space, shown, &mut random, trial),
        Method::Gp if can_learn => gp::suggest(space, shown, &mut random, trial),
        Method::Nsga2 if can_learn => nsga2::suggest(space, shown, &mut random, trial),
        Method::CmaEs => {
            let sampled = cma::suggest(space, seed, shown, &mut random, trial);
            if let Some((point, false)) = sampled {
                return Some(Suggestion {
                    point,
                    by: By::Sample,
                });
            }
            sampled.map(|(point, _)| point)
        }
        _ => None,
    };
    if let Some(point) = chosen {
        return Some(Suggestion {
            point,
            by: By::Model,
        });
    }
    let points = (0..MAX_EXCLUDED).map(|sample| {
        let is_even = method != Method::Random && sample == 0 && number < 1 << 16;
        let axes = space.axes.iter().enumerate();
        let positions: Vec<f64> = axes
            .map(|(at, axis)| {
                let independent = uniform(&mut random);
                axis.snapped(if is_even && at < sobol_burley::NUM_DIMENSIONS as usize {
                    sobol_burley::sample(number as u32, at as u32, seed as u32).into()
                } else {
                    independent
                })
            })
            .collect();
        trial(&positions)
    });
    Some(Suggestion {
        point: points.flatten().next()?,
        by: By::Sample,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Told};

    fn space() -> Space {
        Space {
            axes: vec![
                Axis::choice(&[1.0, 1.0]),
                Axis::Real,
                Axis::Real,
                Axis::levels(&[1.0; 5]),
            ],
        }
    }

    /// The second axis needs the first choice, the third the second one.
    fn trial(positions: &[f64]) -> Option<Point> {
        let is_first = positions[0] < 0.5;
        let is_set = [true, is_first, !is_first, true];
        let set = positions.iter().zip(is_set);
        Some(set.map(|(at, is_set)| is_set.then_some(*at)).collect())
    }

    fn all(positions: &[f64]) -> Option<Point> {
        Some(positions.iter().copied().map(Some).collect())
    }

    /// The lowest value is 0, at 0.2 of the second axis or 0.7 of the third; the last level is best.
    fn value(point: &Point) -> f64 {
        let first = point[1].map(|at| (at - 0.2).powi(2));
        let second = point[2].map(|at| (at - 0.7).powi(2) + 0.3);
        first.or(second).unwrap() + (0.9 - point[3].unwrap()) * 0.1
    }

    fn search(
        method: Method,
        seed: u64,
        num: usize,
        fails: impl Fn(usize) -> bool,
    ) -> Vec<(Suggestion, Option<f64>)> {
        let mut shown = Shown::default();
        let mut all = Vec::new();
        for number in 0..num {
            let suggestion = suggest(method, &space(), (seed, number), &shown, &trial).unwrap();
            let value = (!fails(number)).then(|| value(&suggestion.point));
            shown.told.push(Told {
                point: suggestion.point.clone(),
                value,
                ..Told::default()
            });
            all.push((suggestion, value));
        }
        all
    }

    fn best(all: &[(Suggestion, Option<f64>)]) -> f64 {
        all.iter()
            .filter_map(|(_, value)| *value)
            .fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn a_suggestion_is_a_function_of_seed_number_and_what_was_shown() {
        for method in [Method::Random, Method::Sobol, Method::Tpe, Method::Gp] {
            let many = search(method, 7, 40, |_| false);
            assert_eq!(search(method, 7, 30, |_| false), many[..30]);
            assert_ne!(search(method, 8, 30, |_| false), many[..30]);
        }
    }

    #[test]
    fn points_have_positions_exactly_where_conditions_hold() {
        for method in [Method::Random, Method::Sobol, Method::Tpe, Method::Gp] {
            let all = search(method, 1, 60, |_| false);
            for (suggestion, _) in &all {
                let point = &suggestion.point;
                assert_eq!(point[1].is_some(), point[0].unwrap() < 0.5);
                assert_eq!(point[2].is_none(), point[1].is_some());
                assert!(point.iter().flatten().all(|at| (0.0..1.0).contains(at)));
            }
            let num_modelled = all.iter().filter(|(s, _)| s.by == By::Model).count();
            assert_eq!(
                num_modelled,
                method
                    .num_startup(&space())
                    .map_or(0, |startup| 60 - startup)
            );
        }
    }

    #[test]
    fn models_learn() {
        let mean = |method| {
            (0..10)
                .map(|seed| best(&search(method, seed, 60, |_| false)))
                .sum::<f64>()
                / 10.0
        };
        let random = mean(Method::Random);
        for method in [Method::Tpe, Method::Gp] {
            let found = mean(method);
            assert!(found < random / 2.0, "{method:?} {found} {random}");
        }
    }

    #[test]
    fn failures_teach_where_not_to_go() {
        // Everything on the first choice fails, although it would be better.
        for method in [Method::Tpe, Method::Gp] {
            let mut shown = Shown::default();
            let mut num_failed = 0;
            for number in 0..60 {
                let point = suggest(method, &space(), (3, number), &shown, &trial)
                    .unwrap()
                    .point;
                let value = point[1].is_none().then(|| value(&point));
                num_failed += (number >= 30 && value.is_none()) as usize;
                shown.told.push(Told {
                    point,
                    value,
                    ..Told::default()
                });
            }
            assert!(num_failed < 6, "{method:?} {num_failed}");
            // Without any value, and with a single one, there is nothing to learn from.
            let none = search(method, 3, 30, |number| number > 0);
            assert!(
                none.iter()
                    .all(|(suggestion, _)| suggestion.by == By::Sample)
            );
        }
    }

    #[test]
    fn points_of_small_spaces_are_not_repeated_before_all_were_tried() {
        for method in [Method::Tpe, Method::Gp] {
            all_are_tried(method);
        }
    }

    fn all_are_tried(method: Method) {
        let space = Space {
            axes: vec![Axis::choice(&[1.0; 4]), Axis::levels(&[1.0; 5])],
        };
        let mut shown = Shown::default();
        for number in 0..30 {
            let point = suggest(method, &space, (1, number), &shown, &all)
                .unwrap()
                .point;
            let value = point[0].unwrap() + point[1].unwrap();
            shown.told.push(Told {
                point,
                value: Some(value),
                ..Told::default()
            });
        }
        let mut tried: Vec<String> = shown
            .told
            .iter()
            .map(|told| format!("{:?}", told.point))
            .collect();
        let modelled = &tried[NUM_STARTUP..15];
        let is_new = |(at, point): (usize, &String)| !tried[..NUM_STARTUP + at].contains(point);
        assert!(modelled.iter().enumerate().all(is_new));
        tried.sort();
        tried.dedup();
        assert!(tried.len() >= 15, "{}", tried.len());
    }

    #[test]
    fn rounded_points_are_not_repeated() {
        let space = Space {
            axes: vec![Axis::Real],
        };
        let rounded = |positions: &[f64]| Some(vec![Some((positions[0] * 200.0).floor() / 200.0)]);
        let mut shown = Shown::default();
        for number in 0..60 {
            let point = suggest(Method::Tpe, &space, (1, number), &shown, &rounded)
                .unwrap()
                .point;
            let is_known = shown.told.iter().any(|told| told.point == point);
            assert!(number < NUM_STARTUP || !is_known, "{number} {point:?}");
            shown.told.push(Told {
                value: point[0].map(|at| (at - 0.3).abs()),
                point,
                ..Told::default()
            });
        }
    }

    #[test]
    fn pruned_trials_teach_by_their_epochs_and_their_last_value() {
        // Values of early epochs are lower here, and say nothing about how good a trial ends.
        let share = |pruned_at: fn(usize) -> Option<usize>| {
            let mut shown = Shown::default();
            for number in 0..40 {
                let at = (number as f64 + 0.5) / 40.0;
                shown.told.push(Told {
                    point: vec![Some(at)],
                    value: Some(at),
                    pruned_at: pruned_at(number),
                    ..Told::default()
                });
            }
            let space = Space {
                axes: vec![Axis::Real],
            };
            let suggested = (0..200).map(|number| {
                let stream = (1, NUM_STARTUP + number);
                suggest(Method::Tpe, &space, stream, &shown, &all)
            });
            let is_high = |suggestion: &Suggestion| suggestion.point[0] > Some(0.5);
            suggested.flatten().filter(is_high).count() as f64 / 200.0
        };
        assert!(share(|_| None) < 0.3);
        assert!(share(|number| (number < 20).then_some(3)) > 0.7);
        // Of pruned trials, those with more epochs are better, and then those with lower values.
        assert!(share(|number| Some(if number < 20 { 1 } else { 3 })) > 0.7);
        assert!(share(|_| Some(1)) < 0.3);
    }

    #[test]
    fn pending_points_are_not_suggested_again() {
        let mut shown = Shown::default();
        for (suggestion, value) in search(Method::Tpe, 1, 30, |_| false) {
            shown.told.push(Told {
                point: suggestion.point,
                value,
                ..Told::default()
            });
        }
        for method in [Method::Tpe, Method::Gp] {
            let mut shown = shown.clone();
            let suggested = |shown: &Shown| {
                let suggestion = suggest(method, &space(), (1, 31), shown, &trial);
                suggestion.unwrap().point
            };
            let alone = suggested(&shown);
            shown.pending.push(alone.clone());
            assert_ne!(alone, suggested(&shown));
        }
    }

    #[test]
    fn excluded_points_are_not_suggested() {
        // A tenth of the second axis is left, and nothing.
        let narrow = |positions: &[f64]| all(positions).filter(|_| positions[1] < 0.1);
        let methods = [
            Method::Random,
            Method::Sobol,
            Method::Tpe,
            Method::Gp,
            Method::CmaEs,
        ];
        for method in methods {
            let mut shown = Shown::default();
            for number in 0..30 {
                let point = suggest(method, &space(), (3, number), &shown, &narrow)
                    .unwrap()
                    .point;
                assert!(point[1].unwrap() < 0.1);
                shown.told.push(Told {
                    value: point[2],
                    point,
                    ..Told::default()
                });
            }
            assert_eq!(suggest(method, &space(), (3, 30), &shown, &|_| None), None);
        }
    }
}
