//! The plots of each section.

use serde::Serialize;

use super::axes;
use crate::record::evaluation::Evaluated;
use crate::report::curves::{Band, Curve};
use crate::report::evaluation::pair;
use crate::report::model::{Report, Trial};
use crate::report::numbers::{mean_and_sd, short_number};
use crate::report::plot::*;
use crate::report::sample::direction;
use crate::report::sections::Section;
use crate::spec::kind::show_bytes;
use crate::statistics::{Direction, pareto_front};

/// Bars of a plot.
const MAX_BARS: usize = 12;
/// Targets of a regression with plots.
const MAX_TARGETS: usize = 4;
/// Points of a plot.
pub const MAX_POINTS: usize = 1000;

/// A plot.
#[derive(Serialize)]
pub struct Figure {
    /// The drawing, which is HTML already.
    pub svg: String,
    /// What it is, and how to read it.
    pub caption: String,
    /// What its series are called; empty where it has one alone.
    pub legend: Vec<Key>,
    /// Whether it wants the width of the page.
    pub is_wide: bool,
}

/// A series of a plot.
#[derive(Serialize)]
pub struct Key {
    /// Its number.
    pub series: usize,
    /// Its mark, which is HTML already.
    pub mark: String,
    /// What it is called.
    pub name: String,
}

/// A picture of an item.
#[derive(Serialize)]
pub struct Picture {
    /// Its `data:` address.
    pub source: String,
    /// What it shows.
    pub caption: String,
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
        ("curves", _) => curves(report),
        ("effect", Some(key)) => axes::effect(report, key).into_iter().collect(),
        ("together", _) => axes::together(report).into_iter().collect(),
        ("cost", _) => cost(report),
        ("memory", _) => memory(report).into_iter().collect(),
        ("confusion", _) => confusion(report).into_iter().collect(),
        ("residuals", _) => residuals(report),
        _ => Vec::new(),
    }
}

/// The direction of the objective in words for a caption.
pub fn better_is(report: &Report) -> &'static str {
    match direction(&report.objective) {
        Some(Direction::LowerIsBetter) => "lower is better",
        _ => "higher is better",
    }
}

fn curves(report: &Report) -> Vec<Figure> {
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
        let is_share = direction(metric) == Some(Direction::HigherIsBetter);
        let is_log = !is_share && is_log_apt(values());
        let svg = lines(&Lines {
            description: &format!("{metric} by epoch, of {} trials", curves.trials.len()),
            x_label: "epoch",
            y_label: metric,
            is_log,
            lines: &lines_of,
        });
        Figure::new(
            svg,
            format!(
                "`{metric}`: solid on valid, dashed on train{}.",
                ema(&lines_of)
            ),
        )
    });
    let mut figures: Vec<Figure> = figures.collect();
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

fn ema(lines: &[Line]) -> &'static str {
    match lines.iter().any(|line| line.stroke == Stroke::Dotted) {
        true => ", dotted on valid by the averaged weights",
        false => "",
    }
}

fn line(series: usize, trial: &str, curve: &Curve) -> Line {
    let split = curve.metric.split('/').next().unwrap_or_default();
    let stroke = match split {
        "train" => Stroke::Dashed,
        "valid_ema" => Stroke::Dotted,
        _ => Stroke::Solid,
    };
    // Bands of both splits would hide each other.
    let has_band = stroke == Stroke::Solid && curve.band != None::<Band>;
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

fn cost(report: &Report) -> Vec<Figure> {
    let timed = report.trials.iter();
    let timed = timed.filter_map(|trial| {
        let sample = report.objective_of(trial)?;
        Some((trial, trial.wall_secs?, sample))
    });
    let timed: Vec<_> = timed.take(MAX_POINTS).collect();
    let mut figures = Vec::new();
    if timed.len() > 1 {
        let direction = direction(&report.objective).unwrap_or(Direction::HigherIsBetter);
        let pairs: Vec<[f64; 2]> = timed
            .iter()
            .map(|(_, secs, sample)| [*secs, sample.mean()])
            .collect();
        let front = pareto_front(&pairs, [Direction::LowerIsBetter, direction]).unwrap_or_default();
        let dots = timed
            .iter()
            .enumerate()
            .map(|(at, (trial, secs, sample))| Dot {
                x: *secs,
                y: sample.mean(),
                series: usize::from(front.contains(&at)),
                title: format!(
                    "{}: {} {}, {} s/run",
                    trial.id,
                    report.objective,
                    mean_and_sd(&sample.description),
                    short_number(*secs)
                ),
            });
        let svg = scatter(&Scatter {
            description: &format!(
                "{} by seconds of a run, of {} trials",
                report.objective,
                timed.len()
            ),
            x_label: "seconds of a run",
            y_label: &report.objective,
            is_log: is_log_apt(timed.iter().map(|(_, secs, _)| *secs)),
            points: &dots.collect::<Vec<_>>(),
            line: Reference::None,
        });
        figures.push(Figure::new(
            svg,
            format!(
                "What the time buys ({}). Squares: no other trial is both as good and as fast.",
                better_is(report)
            ),
        ));
    }
    let bars_of = report.trials.iter().filter_map(|trial| {
        let secs = trial.wall_secs?;
        Some(bar(trial, secs, format!("{} s", short_number(secs)), None))
    });
    figures.extend(bar_plot("seconds of a run", bars_of));
    figures
}

fn bar(trial: &Trial, value: f64, text: String, mark: Option<f64>) -> Bar {
    Bar {
        name: match trial.rank {
            Some(rank) => format!("#{rank} {}", trial.id),
            None => trial.id.clone(),
        },
        title: format!("{}: {text}", trial.id),
        value,
        text,
        mark,
    }
}

fn bar_plot(label: &str, all: impl Iterator<Item = Bar>) -> Option<Figure> {
    let all: Vec<Bar> = all.collect();
    let shown = &all[..all.len().min(MAX_BARS)];
    let which = match all.len() > MAX_BARS {
        true => format!(", of the {MAX_BARS} highest ranked trials"),
        false => String::new(),
    };
    let svg = bars(&Bars {
        description: &format!("{label}, of {} trials", shown.len()),
        label,
        bars: shown,
    });
    (!shown.is_empty()).then(|| Figure::new(svg, format!("{}{which}.", capitalized(label))))
}

/// With a capital letter in front.
fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().collect::<String>());
    first.unwrap_or_default() + chars.as_str()
}

fn memory(report: &Report) -> Option<Figure> {
    const MIB: f64 = (1 << 20) as f64;
    let bars_of = report.trials.iter().filter_map(|trial| {
        let memory = trial.memory?;
        let forecast = memory.calibrated_bytes.unwrap_or(memory.forecast_bytes);
        let held = memory.measured.bytes();
        let mut bar = bar(
            trial,
            held as f64 / MIB,
            show_bytes(held),
            Some(forecast as f64 / MIB),
        );
        bar.title
            .push_str(&format!(", forecast {}", show_bytes(forecast)));
        Some(bar)
    });
    let mut figure = bar_plot("memory held at the peak", bars_of)?;
    figure.caption.push_str(" The line across is the forecast.");
    Some(figure)
}

fn confusion(report: &Report) -> Option<Figure> {
    let found = &report.evaluation.as_ref()?.evaluation.found;
    let (Evaluated::Classification { confusion, .. } | Evaluated::Segmentation { confusion, .. }) =
        found
    else {
        return None;
    };
    if confusion.confusion.is_empty() {
        return None;
    }
    let classes = &confusion.classes;
    let rows = confusion.confusion.iter().enumerate();
    let cells = rows.map(|(at, row)| {
        let total = row
            .iter()
            .fold(0, |sum: u64, count| sum.saturating_add(*count))
            .max(1);
        let cells = row.iter().enumerate().map(|(to, count)| {
            let share = *count as f64 / total as f64;
            Cell {
                value: Some(share),
                text: if *count == 0 {
                    String::new()
                } else {
                    count.to_string()
                },
                title: format!(
                    "{} predicted as {}: {count} of {total} ({} %)",
                    classes[at],
                    classes[to],
                    short_number(100.0 * share)
                ),
            }
        });
        cells.collect()
    });
    let cells: Vec<Vec<Cell>> = cells.collect();
    let svg = heat(&Heat {
        description: &format!("confusion of {} classes", classes.len()),
        x_label: "predicted",
        y_label: "class",
        columns: classes,
        rows: classes,
        cells: &cells,
        is_low_dark: false,
    });
    let caption = "How many items of a class (a row) are predicted as which; the darker, the larger a share of the class.";
    Some(Figure {
        is_wide: classes.len() > 12,
        ..Figure::new(svg, caption)
    })
}

fn residuals(report: &Report) -> Vec<Figure> {
    let Some(of) = &report.evaluation else {
        return Vec::new();
    };
    let Evaluated::Regression {
        targets,
        points,
        num_items,
        ..
    } = &of.evaluation.found
    else {
        return Vec::new();
    };
    let which = match points.len() as u64 == *num_items {
        true => String::new(),
        false => format!(
            " {} of {num_items} items: spread over the targets, with the worst.",
            points.len()
        ),
    };
    let mut figures = Vec::new();
    for (at, target) in targets.iter().enumerate().take(MAX_TARGETS) {
        let pairs = points
            .iter()
            .filter_map(|point| Some((point, pair(point, at)?)));
        let pairs: Vec<_> = pairs.take(MAX_POINTS).collect();
        let dots = |residual: bool| -> Vec<Dot> {
            let dots = pairs.iter().map(|(point, (wanted, predicted))| Dot {
                x: if residual { *predicted } else { *wanted },
                y: if residual {
                    predicted - wanted
                } else {
                    *predicted
                },
                series: 0,
                title: format!(
                    "{}: target {}, predicted {}",
                    point.place,
                    short_number(*wanted),
                    short_number(*predicted)
                ),
            });
            dots.collect()
        };
        let plots = [
            (
                "target",
                "predicted",
                false,
                Reference::Diagonal,
                "on the line, they are equal",
            ),
            (
                "predicted",
                "predicted less target",
                true,
                Reference::Zero,
                "on the line, there is no error",
            ),
        ];
        for (x_label, y_label, residual, line, meaning) in plots {
            let svg = scatter(&Scatter {
                description: &format!("{y_label} by {x_label}, of {} items", pairs.len()),
                x_label,
                y_label,
                is_log: false,
                points: &dots(residual),
                line,
            });
            figures.push(Figure::new(
                svg,
                format!("`{target}`: {y_label} by {x_label}; {meaning}.{which}"),
            ));
        }
    }
    figures
}

/// The pictures of a section.
pub fn pictures(report: &Report, id: &str) -> Vec<Picture> {
    let Some(of) = report.evaluation.as_ref().filter(|_| id == "mistakes") else {
        return Vec::new();
    };
    let Evaluated::Classification { mistakes, .. } = &of.evaluation.found else {
        return Vec::new();
    };
    let pictures = mistakes.iter().filter_map(|mistake| {
        Some(Picture {
            source: mistake.picture.clone()?,
            caption: format!(
                "`{}`, predicted `{}`: {}",
                mistake.target, mistake.predicted, mistake.place
            ),
        })
    });
    pictures.collect()
}
