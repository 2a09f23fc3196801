//! The plots of each section.

use serde::Serialize;

use super::{axes, contours, cost, curves, evaluation, search, verdicts, weights};
use crate::report::model::Report;
use crate::report::plot::{Kind, apt};
use crate::report::sample::{bounds, direction};
use crate::report::sections::Section;
use runner_statistics::Direction;

/// Maximum number of points per plot.
pub const MAX_POINTS: usize = 1000;

/// A plot.
#[derive(Serialize)]
pub struct Figure {
    /// The drawing, already as HTML.
    pub svg: String,
    /// Its caption.
    pub caption: String,
    /// The names of its series; empty if there is only one.
    pub legend: Vec<Key>,
    /// Whether it needs the width of the page.
    pub is_wide: bool,
}

/// A series of a plot.
#[derive(Serialize)]
pub struct Key {
    /// Its number.
    pub series: usize,
    /// Its mark, already as HTML.
    pub mark: String,
    /// Its name.
    pub name: String,
}

/// The images of an item.
#[derive(Serialize)]
pub struct Picture {
    /// One or several side by side.
    pub images: Vec<Image>,
    /// The caption.
    pub caption: String,
}

/// An image.
#[derive(Serialize)]
pub struct Image {
    /// Its `data:` address.
    pub source: String,
    /// What it is; empty if the caption says so.
    pub name: &'static str,
}

impl Figure {
    /// A plot of one series.
    pub fn new(svg: String, caption: impl Into<String>) -> Self {
        Self {
            svg,
            caption: caption.into(),
            legend: Vec::new(),
            is_wide: false,
        }
    }
}

/// The plots of a section.
pub fn figures(report: &Report, section: &Section) -> Vec<Figure> {
    match (section.id, &section.axis) {
        ("curves", _) => curves::curves(report),
        ("effect", Some(key)) => axes::effect(report, key).into_iter().collect(),
        ("together", _) => axes::together(report)
            .into_iter()
            .chain(contours::contours(report))
            .chain(search::search(report))
            .collect(),
        ("importance", _) => axes::importance(report).into_iter().collect(),
        ("verdicts", _) => verdicts::differences(report).into_iter().collect(),
        ("tradeoffs", _) => cost::tradeoffs(report),
        ("cost", _) => cost::cost(report),
        ("memory", _) => cost::memory(report).into_iter().collect(),
        ("confusion", _) => evaluation::confusion(report).into_iter().collect(),
        ("probabilities", _) => evaluation::probabilities(report),
        ("residuals", _) => evaluation::residuals(report),
        ("gradients", _) => weights::gradients(report).into_iter().collect(),
        ("weights", _) => weights::histograms(report),
        _ => Vec::new(),
    }
}

/// The apt kind of axis for a metric.
pub fn apt_for(metric: &str, values: impl Iterator<Item = f64> + Clone) -> Kind {
    let is_best_at_1 =
        direction(metric) == Some(Direction::HigherIsBetter) && bounds(metric).1 == 1.0;
    match direction(metric) {
        Some(Direction::HigherIsBetter) if !is_best_at_1 => Kind::Linear,
        _ => apt(values, is_best_at_1),
    }
}

/// The direction of the objective as text for a caption.
pub fn better_is(report: &Report) -> &'static str {
    match direction(&report.objective) {
        Some(Direction::LowerIsBetter) => "lower is better",
        _ => "higher is better",
    }
}

/// The trials of a plot, if it does not show all.
pub fn which(report: &Report) -> String {
    let trials = report.trials.iter();
    let num = trials
        .filter(|trial| report.objective_of(trial).is_some())
        .count();
    if num > MAX_POINTS {
        format!(" The {MAX_POINTS} highest ranked of {num} trials.")
    } else {
        String::new()
    }
}
