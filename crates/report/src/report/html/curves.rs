//! Plots of learning curves.

use super::figures::{Figure, Key, apt_for};
use crate::report::curves::{Curve, TrialCurves};
use crate::report::model::Report;
use crate::report::plot::*;
use crate::report::sections::about_bands;
use crate::report::steps::StepPoint;

/// A plot for each metric.
pub fn curves(report: &Report) -> Vec<Figure> {
    let curves = &report.curves;
    let figures = curves.metrics.iter().map(|metric| {
        let mut lines_of = Vec::new();
        // The best trial is drawn last, over all others.
        for (series, trial) in curves.trials.iter().enumerate().rev() {
            let of_metric = |curve: &&Curve| {
                let split = curve.metric.split_once('/');
                split.is_some_and(|(_, name)| name == metric)
            };
            let found = trial.curves.iter().filter(of_metric);
            lines_of.extend(found.map(|curve| line(series, &trial.trial, curve)));
        }
        let values = || {
            lines_of
                .iter()
                .flat_map(|line| line.points.iter().map(|point| point.y))
        };
        let svg = lines(&Lines {
            description: &format!("{metric} by epoch, of {} trials", curves.trials.len()),
            x_label: "epoch",
            y_label: metric,
            y: apt_for(metric, values()),
            lines: &lines_of,
        });
        Figure::new(
            svg,
            format!(
                "`{metric}`: solid on valid, dashed on train{}. {}",
                ema(&lines_of),
                about_bands(report)
            ),
        )
    });
    let losses = steps(report, ("loss", "loss of a step"), |trial| &trial.steps);
    let norm = ("norm of the gradients", "gradient norm of a step");
    let norms = steps(report, norm, |trial| &trial.norms);
    let mut figures: Vec<Figure> = figures.chain(losses).chain(norms).collect();
    if let Some(first) = figures.first_mut() {
        let keys = curves.trials.iter().enumerate();
        let keys = keys.map(|(series, trial)| Key {
            series,
            mark: legend_mark(series),
            name: trial.trial.clone(),
        });
        first.legend = keys.collect();
    }
    figures
}

/// Numbers of the steps of a trial.
type OfSteps = fn(&TrialCurves) -> &[StepPoint];

/// The losses of steps, or the norms of their gradients.
fn steps(report: &Report, (what, label): (&str, &str), of: OfSteps) -> Option<Figure> {
    let trials = report.curves.trials.iter().enumerate().rev();
    let with_steps = trials.filter(|(_, trial)| !of(trial).is_empty());
    let lines_of = with_steps.map(|(series, trial)| {
        let points = of(trial).iter().map(|of| Point {
            x: of.step as f64,
            y: of.mean,
            band: (of.low < of.high).then_some((of.low, of.high)),
        });
        Line {
            series,
            name: trial.trial.clone(),
            stroke: Stroke::Solid,
            points: points.collect(),
        }
    });
    let lines_of: Vec<Line> = lines_of.collect();
    let points = || report.curves.trials.iter().flat_map(of);
    let num = points().map(|of| of.num).max()?;
    let svg = lines(&Lines {
        description: &format!(
            "the {what} of each step on train, of {} trials",
            lines_of.len()
        ),
        x_label: "step",
        y_label: label,
        y: apt(points().flat_map(|of| [of.mean, of.low]), false),
        lines: &lines_of,
    });
    Some(Figure::new(
        svg,
        match num {
            1 => format!("The {what} of each step on train. Bands show the range over runs."),
            num => format!(
                "The {what} of each step on train: means of {num} steps each. Bands show the range of single steps over all runs."
            ),
        },
    ))
}

fn ema(lines: &[Line]) -> &'static str {
    if lines.iter().any(|line| line.stroke == Stroke::Dotted) {
        ", dotted on valid with the averaged weights"
    } else {
        ""
    }
}

fn line(series: usize, trial: &str, curve: &Curve) -> Line {
    let split = curve.metric.split('/').next().unwrap_or_default();
    let stroke = match split {
        "train" => Stroke::Dashed,
        "valid_ema" | "valid_swa" => Stroke::Dotted,
        _ => Stroke::Solid,
    };
    // Bands of both splits would hide each other.
    let has_band = stroke == Stroke::Solid && curve.band.is_some();
    let points = curve.points.iter().map(|point| Point {
        x: point.epoch as f64,
        y: point.mean,
        band: point.band.filter(|_| has_band),
    });
    Line {
        series,
        name: format!("{trial}, {split}"),
        stroke,
        points: points.collect(),
    }
}
