//! The losses of single steps, from the traces of runs.

use serde::{Deserialize, Serialize};

/// Maximum number of points per trial: more are not visible.
const MAX_POINTS: usize = 100;

/// The losses of some consecutive steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepPoint {
    /// The step in their middle, from 1.
    pub step: usize,
    /// How many steps there are.
    pub num: usize,
    /// The mean over runs of the mean over the steps.
    pub mean: f64,
    /// The smallest loss of a step of any run.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

/// The losses of the steps of some runs in stretches of equal length. Losses that are not finite are left out.
pub fn step_points(runs: &[Vec<f64>]) -> Vec<StepPoint> {
    let num_steps = runs.iter().map(Vec::len).max().unwrap_or(0);
    let num = num_steps.div_ceil(MAX_POINTS).max(1);
    let starts = (0..num_steps).step_by(num);
    starts
        .filter_map(|start| point(runs, start, num.min(num_steps - start)))
        .collect()
}

fn point(runs: &[Vec<f64>], start: usize, num: usize) -> Option<StepPoint> {
    let finite = |run: &Vec<f64>| -> Vec<f64> {
        let steps = run.iter().skip(start).take(num).copied();
        steps.filter(|loss| loss.is_finite()).collect()
    };
    let all: Vec<Vec<f64>> = runs
        .iter()
        .map(finite)
        .filter(|of| !of.is_empty())
        .collect();
    // Divided first: the sum of very large numbers overflows.
    let mean = |of: &[f64]| -> f64 { of.iter().map(|value| value / of.len() as f64).sum() };
    let means: Vec<f64> = all.iter().map(|of| mean(of)).collect();
    let losses = || all.iter().flatten().copied();
    Some(StepPoint {
        step: start + num.div_ceil(2),
        num,
        mean: mean(&means),
        low: losses().reduce(f64::min)?,
        high: losses().reduce(f64::max)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_steps_are_shown_one_by_one() {
        let runs = [vec![3.0, f64::NAN, 1.0], vec![5.0, 2.0]];
        let points: Vec<_> = step_points(&runs)
            .into_iter()
            .map(|p| (p.step, p.num, p.mean, p.low, p.high))
            .collect();
        assert_eq!(
            points,
            [
                (1, 1, 4.0, 3.0, 5.0),
                (2, 1, 2.0, 2.0, 2.0),
                (3, 1, 1.0, 1.0, 1.0)
            ]
        );
        assert_eq!(step_points(&[]), []);
        assert_eq!(step_points(&[vec![f64::NAN; 500]]), []);
    }

    #[test]
    fn many_steps_keep_their_extremes() {
        let mut losses = vec![1.0; 100_001];
        losses[77_777] = 50.0;
        losses[33_333] = f64::MAX;
        let points = step_points(&[losses.clone(), losses]);
        assert!(points.len() <= MAX_POINTS && points.is_sorted_by_key(|point| point.step));
        assert_eq!(points.iter().map(|point| point.num).sum::<usize>(), 100_001);
        assert!(points.iter().any(|point| point.high == 50.0));
        assert!(points.iter().all(|point| point.mean.is_finite()));
        assert_eq!((points[0].step, points[0].num), (501, 1001));
    }
}
