//! Contours of the objective over two axes whose values were drawn.

use std::collections::BTreeSet;

use super::figures::{Figure, MAX_POINTS, apt_for, better_is, which};
use crate::report::model::{Report, Trial};
use crate::report::numbers::{mean_and_sd, short_number, value_text};
use crate::report::plot::*;
use crate::report::sample::direction;
use runner_statistics::Direction;

/// With fewer trials than this, there is nothing to interpolate.
const FEWEST: usize = 8;

/// Axes of which each pair has a plot: those that go with the objective most.
const MAX_AXES: usize = 3;

/// An axis with the value of each trial.
struct Drawn<'a> {
    key: &'a str,
    values: Vec<f64>,
}

/// A plot for each pair of numeric axes of which most trials have values of their own.
pub fn contours(report: &Report) -> Vec<Figure> {
    let trials = report.trials.iter().take(MAX_POINTS);
    let trials: Vec<(&Trial, f64)> = trials
        .filter_map(|trial| Some((trial, report.objective_of(trial)?.mean())))
        .filter(|(_, mean)| mean.is_finite())
        .collect();
    if trials.len() < FEWEST {
        return Vec::new();
    }
    let mut axes: Vec<Drawn> = report
        .axes
        .iter()
        .filter_map(|key| Drawn::of(key, &trials))
        .collect();
    let objective: Vec<f64> = trials.iter().map(|(_, mean)| *mean).collect();
    // Stable: of axes that say equally much, the first in the file.
    axes.sort_by(|a, b| b.strength(&objective).total_cmp(&a.strength(&objective)));
    axes.truncate(MAX_AXES);
    let pairs = axes
        .iter()
        .enumerate()
        .flat_map(|(at, x)| axes[at + 1..].iter().map(move |y| (x, y)));
    pairs
        .map(|(x, y)| figure(report, &trials, [x, y], report.axes.len() > 2))
        .collect()
}

impl<'a> Drawn<'a> {
    /// `None` for an axis with a few chosen values, or with values that are not numbers.
    fn of(key: &'a str, trials: &[(&Trial, f64)]) -> Option<Self> {
        let number = |trial: &Trial| {
            let text = value_text(trial.axes.get(key)?);
            text.parse().ok().filter(|value: &f64| value.is_finite())
        };
        let values: Option<Vec<f64>> = trials.iter().map(|(trial, _)| number(trial)).collect();
        let values = values?;
        let distinct: BTreeSet<u64> = values.iter().map(|value| value.to_bits()).collect();
        let is_drawn = distinct.len() >= FEWEST && 2 * distinct.len() > values.len();
        is_drawn.then_some(Self { key, values })
    }

    /// How strongly its ranks go with those of the objective (Spearman, 1904), in either direction.
    fn strength(&self, objective: &[f64]) -> f64 {
        let (a, b) = (ranks(&self.values), ranks(objective));
        let middle = 0.5 * (a.len() as f64 - 1.0);
        let product = |a: &[f64], b: &[f64]| -> f64 {
            let pairs = a.iter().zip(b);
            pairs.map(|(a, b)| (a - middle) * (b - middle)).sum()
        };
        let spread = (product(&a, &a) * product(&b, &b)).sqrt();
        if spread > 0.0 {
            (product(&a, &b) / spread).abs()
        } else {
            0.0
        }
    }
}

/// The rank of each value from 0; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let equal = values.iter().filter(|other| *other == value).count() as f64;
        below + 0.5 * (equal - 1.0)
    };
    values.iter().map(rank).collect()
}

fn figure(
    report: &Report,
    trials: &[(&Trial, f64)],
    [x, y]: [&Drawn; 2],
    has_more: bool,
) -> Figure {
    let known = trials.iter().enumerate().map(|(at, (trial, mean))| {
        let sample = report.objective_of(trial);
        let shown = sample.map(|sample| mean_and_sd(&sample.description));
        Known {
            x: x.values[at],
            y: y.values[at],
            value: *mean,
            title: format!(
                "{}: {}, n = {}",
                trial.id,
                shown.unwrap_or_else(|| short_number(*mean)),
                trial.n_in_words()
            ),
        }
    });
    let svg = contour(&Contour {
        description: &format!(
            "{} by {} and {}, of {} trials",
            report.objective,
            x.key,
            y.key,
            trials.len()
        ),
        x_label: x.key,
        y_label: y.key,
        is_log: [x, y].map(|axis| is_log_apt(axis.values.iter().copied())),
        points: &known.collect::<Vec<_>>(),
        bands: apt_for(&report.objective, trials.iter().map(|(_, mean)| *mean)),
        is_low_dark: direction(&report.objective) == Some(Direction::LowerIsBetter),
    });
    let others = if has_more {
        " Trials differ in other axes too."
    } else {
        ""
    };
    Figure::new(
        svg,
        format!(
            "`{}`, interpolated linearly between the trials (dots); the stronger the color, the better ({}).{others}{}",
            report.objective,
            better_is(report),
            which(report)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strength_is_that_of_ranks() {
        let axis = |values: &[f64]| Drawn {
            key: "a",
            values: values.to_vec(),
        };
        let objective = [0.1, 0.2, 0.4, 0.8];
        assert_eq!(axis(&[1.0, 2.0, 3.0, 900.0]).strength(&objective), 1.0);
        assert_eq!(axis(&[4.0, 3.0, 2.0, 1.0]).strength(&objective), 1.0);
        assert_eq!(axis(&[1.0; 4]).strength(&objective), 0.0);
        // scipy.stats.spearmanr([1, 1, 3, 2], [.1, .2, .4, .8])
        let ties = axis(&[1.0, 1.0, 3.0, 2.0]).strength(&objective);
        assert!((ties - 0.737_864_787_372_622).abs() < 1e-12, "{ties}");
    }
}
