//! The values of trials on a scale that a Gaussian process can model.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::{Told, in_order};

/// At most `most` trials, the best first: the better half of them, and the newest of the others.
pub fn kept(told: &[Told], most: usize) -> Vec<&Told> {
    let order = in_order(told);
    let (best, others) = order.split_at(order.len().min(most / 2));
    let mut newest = others.to_vec();
    newest.sort_unstable();
    let newest = &newest[newest.len().saturating_sub(most - most / 2)..];
    let is_kept = |at: &&usize| best.contains(at) || newest.contains(at);
    order.iter().filter(is_kept).map(|at| &told[*at]).collect()
}

/// A number for each trial, of which lower is better, given in order, the best first. The better half keeps its
/// distances, if all of it was trained completely and meets the constraints; the others are only ranked, so that diverged,
/// failed and pruned trials do not determine the scale (as in Song et al., 2022), and a trial that violates constraints is
/// not good for its value. Mean 0 and variance 1.
pub fn comparable(told: &[&Told]) -> Vec<f64> {
    let num = told.len();
    let quantile = |rank: usize| (rank as f64 + 0.5) / num as f64;
    let ranked = |rank: usize| Normal::standard().inverse_cdf(quantile(rank));
    let half = num.div_ceil(2);
    let better: Option<Vec<f64>> = told[..half]
        .iter()
        .map(|told| {
            let is_whole = told.pruned_at.is_none() && told.is_feasible();
            told.value.filter(|_| is_whole)
        })
        .collect();
    let scaled = better.and_then(|values| {
        let median = *values.last()?;
        let squares: f64 = values.iter().map(|value| (value - median).powi(2)).sum();
        // Half of a normal distribution has the variance of all of it around the median.
        let spread = (squares / half as f64).sqrt();
        let is_usable = spread.is_finite() && spread > 0.0;
        let scaled = values.iter().map(|value| (value - median) / spread);
        is_usable.then(|| scaled.collect::<Vec<f64>>())
    });
    let mut all: Vec<f64> = match scaled {
        Some(scaled) => {
            let others = (half..num).map(|rank| ranked(rank).max(0.0));
            scaled.into_iter().chain(others).collect()
        }
        None => (0..num).map(ranked).collect(),
    };
    level_ties(told, &mut all);
    standardize(&mut all);
    all
}

/// Trials of the same result have the mean of what their ranks gave them.
fn level_ties(told: &[&Told], all: &mut [f64]) {
    let mut from = 0;
    let is_same = |a: &Told, b: &Told| {
        a.value == b.value && a.pruned_at == b.pruned_at && a.violation == b.violation
    };
    for to in 1..=told.len() {
        if to < told.len() && is_same(told[from], told[to]) {
            continue;
        }
        let mean = all[from..to].iter().sum::<f64>() / (to - from) as f64;
        all[from..to].fill(mean);
        from = to;
    }
}

fn standardize(all: &mut [f64]) {
    let num = all.len() as f64;
    let mean = all.iter().sum::<f64>() / num;
    let variance = all.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / num;
    let spread = if variance > 0.0 { variance.sqrt() } else { 1.0 };
    for value in all {
        *value = (*value - mean) / spread;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(value: Option<f64>, pruned_at: Option<usize>) -> Told {
        Told {
            point: vec![],
            value,
            pruned_at,
            ..Told::default()
        }
    }

    #[test]
    fn outliers_and_failures_do_not_determine_the_scale() {
        let values = [0.1, 0.2, 0.3, 0.4, 0.5, 1e9].map(|value| told(Some(value), None));
        let all: Vec<Told> = values.into_iter().chain([told(None, None)]).collect();
        let kept = kept(&all, 150);
        let numbers = comparable(&kept);
        assert!(numbers.is_sorted());
        let steps: Vec<f64> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((steps[0] - steps[1]).abs() < 1e-9);
        assert!(numbers[6] - numbers[5] < 10.0 * steps[0]);
        assert!(numbers.iter().sum::<f64>().abs() < 1e-9);
    }

    #[test]
    fn pruned_trials_come_after_complete_ones_and_ties_are_equal() {
        let all = [
            told(Some(0.5), None),
            told(Some(0.1), Some(3)),
            told(Some(0.1), Some(3)),
            told(Some(0.9), Some(9)),
        ];
        let order = kept(&all, 150);
        assert_eq!(order[0].value, Some(0.5));
        assert_eq!(order[1].value, Some(0.9));
        let numbers = comparable(&order);
        assert_eq!(numbers[2], numbers[3]);
        assert!(numbers[0] < numbers[1] && numbers[1] < numbers[2]);
        let equal = [told(Some(1.0), None), told(Some(1.0), None)];
        assert_eq!(comparable(&kept(&equal, 150)), [0.0, 0.0]);
    }

    #[test]
    fn the_best_and_the_newest_are_kept() {
        let all: Vec<Told> = (0..10).map(|at| told(Some(f64::from(at)), None)).collect();
        let values = kept(&all, 4).into_iter().map(|told| told.value.unwrap());
        assert_eq!(values.collect::<Vec<_>>(), [0.0, 1.0, 8.0, 9.0]);
    }
}
