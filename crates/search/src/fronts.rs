//! The order of trials in a search for trade-offs: by fronts, as in NSGA-II (Deb et al., 2002).
//!
//! A trial dominates another if none of its values is worse and one is better. The first front is what no trial
//! dominates, the second what only trials of the first dominate, and so on. On a front, trials whose neighbours are far
//! away come first, so that all of the front is explored. Trials that violate constraints come after all fronts, those
//! that violate them less first: they are dominated by those that do not, and by each other in this order.

use std::cmp::Ordering;

use crate::Told;

/// The numbers of trials, the best first; those that violate constraints behind the others, and those without values
/// last.
pub fn in_order(told: &[Told]) -> Vec<usize> {
    let values = |at: usize| -> Option<Vec<f64>> {
        let first = told[at].value?;
        Some([&[first], told[at].others.as_slice()].concat())
    };
    let (valued, without): (Vec<usize>, Vec<usize>) =
        (0..told.len()).partition(|at| told[*at].value.is_some());
    let (with, mut violating): (Vec<usize>, Vec<usize>) =
        valued.into_iter().partition(|at| told[*at].is_feasible());
    let violation = |at: usize| told[at].violation;
    violating.sort_by(|a, b| violation(*a).total_cmp(&violation(*b)));
    let points: Vec<Vec<f64>> = with.iter().filter_map(|at| values(*at)).collect();
    let mut order: Vec<usize> = Vec::with_capacity(told.len());
    for front in fronts(&points) {
        let room = distances(&points, &front);
        let mut ranked: Vec<(usize, f64)> = front.into_iter().zip(room).collect();
        ranked.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
        order.extend(ranked.into_iter().map(|(at, _)| with[at]));
    }
    order.extend(violating);
    order.extend(without);
    order
}

/// Whether a point dominates another.
fn dominates(a: &[f64], b: &[f64]) -> bool {
    let is_worse = a.iter().zip(b).any(|(a, b)| a > b);
    !is_worse && a.iter().zip(b).any(|(a, b)| a < b)
}

/// The points of each front, the best first.
fn fronts(points: &[Vec<f64>]) -> Vec<Vec<usize>> {
    // What dominates a point is before it in this order, so that its front is known then.
    let mut order: Vec<usize> = (0..points.len()).collect();
    let compare = |a: &[f64], b: &[f64]| {
        let differing = a.iter().zip(b).map(|(a, b)| a.total_cmp(b));
        differing.fold(Ordering::Equal, Ordering::then)
    };
    order.sort_by(|a, b| compare(&points[*a], &points[*b]).then(a.cmp(b)));
    let mut fronts: Vec<Vec<usize>> = Vec::new();
    for at in order {
        let is_below = |front: &Vec<usize>| {
            let mut others = front.iter().rev();
            others.any(|other| dominates(&points[*other], &points[at]))
        };
        let free = fronts.partition_point(is_below);
        match fronts.get_mut(free) {
            Some(front) => front.push(at),
            None => fronts.push(vec![at]),
        }
    }
    fronts
}

/// How far the neighbours of each point of a front are from each other, over all values; infinite at the ends.
fn distances(points: &[Vec<f64>], front: &[usize]) -> Vec<f64> {
    let mut distances = vec![0.0; front.len()];
    let num_values = points.first().map_or(0, Vec::len);
    let values = |value: usize| front.iter().map(|at| points[*at][value]).collect();
    let values = (0..num_values).map(values);
    for numbers in values.collect::<Vec<Vec<f64>>>() {
        let mut order: Vec<usize> = (0..front.len()).collect();
        let number = |at: usize| numbers[at];
        order.sort_by(|a, b| number(*a).total_cmp(&number(*b)).then(a.cmp(b)));
        let (first, last) = (order[0], order[order.len() - 1]);
        let extent = number(last) - number(first);
        distances[first] = f64::INFINITY;
        distances[last] = f64::INFINITY;
        for three in order.windows(3) {
            if extent > 0.0 {
                distances[three[1]] += (number(three[2]) - number(three[0])) / extent;
            }
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Method, Shown, Space, suggest};

    fn told(values: &[f64]) -> Told {
        Told {
            value: values.first().copied(),
            others: values.iter().skip(1).copied().collect(),
            ..Told::default()
        }
    }

    #[test]
    fn fronts_are_those_of_the_definition() {
        let points: Vec<Vec<f64>> = (0..60)
            .map(|at| {
                let number = |by: usize| f64::from(((at * by) % 17) as u8);
                vec![number(7), number(11), number(5)]
            })
            .collect();
        let mut left: Vec<usize> = (0..points.len()).collect();
        for front in fronts(&points) {
            let free = |at: &usize| {
                !left
                    .iter()
                    .any(|other| dominates(&points[*other], &points[*at]))
            };
            let expected: Vec<usize> = left.iter().copied().filter(free).collect();
            let mut found = front.clone();
            found.sort_unstable();
            assert_eq!(found, expected);
            left.retain(|at| !front.contains(at));
        }
        assert!(left.is_empty());
    }

    #[test]
    fn the_ends_of_a_front_and_lonely_trials_come_first() {
        let all = [
            told(&[0.0, 4.0]),
            told(&[2.0, 2.1]),
            told(&[1.9, 2.2]),
            told(&[1.0, 3.0]),
            told(&[4.0, 0.0]),
            told(&[4.0, 4.0]),
            Told::default(),
        ];
        assert_eq!(in_order(&all), [0, 4, 1, 3, 2, 5, 6]);
    }

    #[test]
    fn trials_that_violate_constraints_come_after_all_fronts() {
        let with = |values: &[f64], violation: f64| Told {
            violation,
            ..told(values)
        };
        let all = [
            with(&[0.0, 0.0], 0.5),
            with(&[9.0, 9.0], 0.0),
            Told::default(),
            with(&[5.0, 5.0], 0.25),
            with(&[0.0, 0.0], f64::INFINITY),
            with(&[1.0, 1.0], 0.0),
        ];
        assert_eq!(in_order(&all), [5, 1, 3, 0, 4, 2]);
        // The same with a single value.
        let single = all.map(|told| Told {
            others: Vec::new(),
            ..told
        });
        assert_eq!(crate::in_order(&single), [5, 1, 3, 0, 4, 2]);
    }

    /// The part of the square up to (1.1, 1.1) that the front of two values dominates.
    fn dominated(told: &[Told]) -> f64 {
        let mut points: Vec<(f64, f64)> = told
            .iter()
            .map(|told| (told.value.unwrap(), told.others[0]))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut area, mut lowest) = (0.0, 1.1_f64);
        for (x, y) in points {
            if x < 1.1 && y < lowest {
                area += (1.1 - x) * (lowest - y);
                lowest = y;
            }
        }
        area
    }

    #[test]
    fn trade_offs_are_learned() {
        // ZDT1 of Zitzler et al. (2000) with four axes.
        let value = |at: &[f64]| {
            let far = 1.0 + 9.0 * at[1..].iter().sum::<f64>() / (at.len() - 1) as f64;
            (at[0], far * (1.0 - (at[0] / far).sqrt()))
        };
        let space = Space {
            axes: vec![Axis::Real; 4],
        };
        let trial = |positions: &[f64]| Some(positions.iter().copied().map(Some).collect());
        let area = |method: Method, seed: u64| {
            let mut shown = Shown::default();
            for number in 0..100 {
                let suggestion = suggest(method, &space, (seed, number), &shown, &trial).unwrap();
                let at: Vec<f64> = suggestion.point.iter().flatten().copied().collect();
                let (first, second) = value(&at);
                shown.told.push(Told {
                    point: suggestion.point,
                    value: Some(first),
                    others: vec![second],
                    ..Told::default()
                });
            }
            dominated(&shown.told)
        };
        let mean = |method| (0..5).map(|seed| area(method, seed)).sum::<f64>() / 5.0;
        let sobol = mean(Method::Sobol);
        for method in [Method::Tpe, Method::Nsga2] {
            let learned = mean(method);
            assert!(learned > sobol + 0.2, "{method:?} {learned} {sobol}");
        }
    }
}
