//! Plots of time and memory.

use super::figures::{Figure, MAX_POINTS, apt_for, better_is, which};
use crate::report::model::{Report, Trial};
use crate::report::numbers::{mean_and_sd, short_number};
use crate::report::plot::*;
use crate::report::sample::direction;
use runner_core::show::show_bytes;
use runner_core::table::shortened;
use runner_statistics::{Direction, pareto_front};

/// Bars of a plot.
const MAX_BARS: usize = 12;

/// Longer names lose their keys.
const LONGEST: usize = 18;

/// Quality against time, and the memory of each trial.
pub fn cost(report: &Report) -> Vec<Figure> {
    let timed = report.trials.iter();
    let timed = timed.filter_map(|trial| {
        let sample = report.objective_of(trial)?;
        Some((trial, trial.wall_secs?, sample))
    });
    let timed: Vec<_> = timed.take(MAX_POINTS).collect();
    let mut figures = Vec::new();
    if timed.len() > 1 && report.selected().is_some() {
        let direction = direction(&report.objective).unwrap_or(Direction::HigherIsBetter);
        let pairs: Vec<[f64; 2]> = timed
            .iter()
            .map(|(_, secs, sample)| [*secs, sample.mean()])
            .collect();
        let front =
            pareto_front(&pairs, &[Direction::LowerIsBetter, direction]).unwrap_or_default();
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
            y: apt_for(
                &report.objective,
                timed.iter().map(|(.., sample)| sample.mean()),
            ),
            points: &dots.collect::<Vec<_>>(),
            line: Reference::None,
        });
        figures.push(Figure::new(
            svg,
            format!(
                "Quality against time ({}). Squares: no other trial is both as good and as fast.{}",
                better_is(report),
                which(report)
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

/// The objective against each further objective of a search.
pub fn tradeoffs(report: &Report) -> Vec<Figure> {
    let tradeoffs = report
        .search
        .as_ref()
        .and_then(|search| search.tradeoffs.as_ref());
    let Some(tradeoffs) = tradeoffs.filter(|tradeoffs| tradeoffs.trials.len() > 1) else {
        return Vec::new();
    };
    let names = tradeoffs.objectives.iter().enumerate().skip(1);
    let figure = |(at, name): (usize, &String)| {
        let trials = tradeoffs.trials.iter().take(MAX_POINTS);
        let dots = trials.map(|trial| Dot {
            x: trial.values[at],
            y: trial.values[0],
            series: usize::from(trial.is_best),
            title: format!(
                "{}: {} {}, {name} {}",
                trial.trial,
                report.objective,
                short_number(trial.values[0]),
                short_number(trial.values[at])
            ),
        });
        let dots: Vec<Dot> = dots.collect();
        let svg = scatter(&Scatter {
            description: &format!("{} by {name}, of {} trials", report.objective, dots.len()),
            x_label: name,
            y_label: &report.objective,
            is_log: is_log_apt(dots.iter().map(|dot| dot.x)),
            y: apt_for(&report.objective, dots.iter().map(|dot| dot.y)),
            points: &dots,
            line: Reference::None,
        });
        Figure::new(
            svg,
            format!(
                "{} against {name} ({}). Squares: the best trade-offs of all objectives.{}",
                report.objective,
                better_is(report),
                which(report)
            ),
        )
    };
    names.map(figure).collect()
}

fn bar(trial: &Trial, value: f64, text: String, mark: Option<f64>) -> Bar {
    Bar {
        name: trial.id.clone(),
        rank: trial.rank,
        title: format!("{}: {text}", trial.id),
        value,
        text,
        mark,
    }
}

fn bar_plot(label: &str, all: impl Iterator<Item = Bar>) -> Option<Figure> {
    let mut all: Vec<Bar> = all.collect();
    let which = if all.len() > MAX_BARS {
        format!(", of the {MAX_BARS} highest ranked trials")
    } else {
        String::new()
    };
    all.truncate(MAX_BARS);
    // What trials have in common would hide what they differ in.
    let names = all.iter().map(|bar| bar.name.clone()).collect();
    let (names, keys) = shortened(names, LONGEST);
    for (bar, name) in all.iter_mut().zip(names) {
        bar.name = match bar.rank {
            Some(rank) => format!("#{rank} {name}"),
            None => name,
        };
    }
    let keys = keys.map_or(String::new(), |keys| {
        format!(" Trials are named by {keys}.")
    });
    let shown = &all[..];
    let svg = bars(&Bars {
        description: &format!("{label}, of {} trials", shown.len()),
        label,
        bars: shown,
    });
    (!shown.is_empty()).then(|| Figure::new(svg, format!("{}{which}.{keys}", capitalized(label))))
}

/// With an initial capital letter.
fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().collect::<String>());
    first.unwrap_or_default() + chars.as_str()
}

/// The memory of each trial.
pub fn memory(report: &Report) -> Option<Figure> {
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
    let mut figure = bar_plot("peak memory", bars_of)?;
    figure.caption.push_str(" The line marks the forecast.");
    Some(figure)
}
