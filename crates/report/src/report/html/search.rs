//! Plots of a search: the best so far, and the distribution of trials.

use super::figures::{Figure, MAX_POINTS, apt_for, better_is, which};
use crate::report::infeasible::has_constraints;
use crate::report::model::Report;
use crate::report::numbers::short_number;
use crate::report::plot::*;
use crate::report::sample::direction;
use runner_statistics::Direction;

/// With fewer trials than this, the table is enough.
const FEWEST: usize = 8;

/// The best so far over the trials in the order of the file, and their empirical distribution.
pub fn search(report: &Report) -> Vec<Figure> {
    let Some(direction) = direction(&report.objective) else {
        return Vec::new();
    };
    let trials = report.trials.iter().take(MAX_POINTS);
    let valued = trials.filter_map(|trial| {
        let mean = report.objective_of(trial)?.mean();
        Some((trial.place, mean, trial.is_feasible()))
    });
    let mut valued: Vec<(usize, f64, bool)> = valued.collect();
    if valued.len() < FEWEST {
        return Vec::new();
    }
    valued.sort_by_key(|(place, ..)| *place);
    let so_far = so_far(&valued, direction);
    let single = valued
        .iter()
        .enumerate()
        .map(|(at, (_, value, _))| point(at, *value));
    let history = lines(&Lines {
        description: &format!(
            "the best {} after each of {} trials",
            report.objective,
            valued.len()
        ),
        x_label: "trial, in the order of the file",
        y_label: &report.objective,
        y: apt_for(&report.objective, valued.iter().map(|(_, value, _)| *value)),
        lines: &[
            line(6, "each trial", Stroke::Dotted, single.collect()),
            line(0, "best so far", Stroke::Solid, so_far),
        ],
    });
    let mut sorted: Vec<f64> = valued.iter().map(|(_, value, _)| *value).collect();
    sorted.sort_by(f64::total_cmp);
    let num = sorted.len() as f64;
    let mut steps = Vec::new();
    for (at, value) in sorted.iter().enumerate() {
        for share in [at, at + 1] {
            steps.push(Point {
                x: *value,
                y: share as f64 / num,
                band: None,
            });
        }
    }
    let distribution = lines(&Lines {
        description: &format!("the fraction of trials by {}", report.objective),
        x_label: &report.objective,
        y_label: "fraction of trials at or below",
        y: Kind::Linear,
        lines: &[line(0, "share", Stroke::Solid, steps)],
    });
    let half = sorted[(sorted.len() - 1) / 2];
    vec![
        Figure::new(
            history,
            format!(
                "The best `{}` so far{}; dots show that of each trial; {}.{}",
                report.objective,
                if has_constraints(report) {
                    " of a trial that meets the constraints"
                } else {
                    ""
                },
                better_is(report),
                which(report)
            ),
        ),
        Figure::new(
            distribution,
            format!(
                "The empirical distribution of `{}` over the trials; half of them are at {} or below.",
                report.objective,
                short_number(half)
            ),
        ),
    ]
}

/// The best value of a trial that meets the constraints after each trial, as steps.
fn so_far(valued: &[(usize, f64, bool)], direction: Direction) -> Vec<Point> {
    let mut best: Option<f64> = None;
    let mut so_far = Vec::new();
    for (at, (_, value, is_feasible)) in valued.iter().enumerate() {
        let next = match best {
            None if !is_feasible => continue,
            Some(best) if !is_feasible || !direction.is_better(*value, best) => best,
            _ => *value,
        };
        // As steps, since a value only counts once it is found.
        so_far.extend(
            best.filter(|best| *best != next)
                .map(|best| point(at, best)),
        );
        so_far.push(point(at, next));
        best = Some(next);
    }
    so_far
}

fn point(at: usize, value: f64) -> Point {
    Point {
        x: (at + 1) as f64,
        y: value,
        band: None,
    }
}

fn line(series: usize, name: &str, stroke: Stroke, points: Vec<Point>) -> Line {
    Line {
        series,
        name: name.to_owned(),
        stroke,
        points,
    }
}
