//! Plots of the effects of axes: each separately, two as a heat map, more as parallel coordinates.

use std::collections::BTreeSet;

use super::figures::{Figure, MAX_POINTS, apt_for, better_is, which};
use crate::report::model::{Report, Trial};
use crate::report::numbers::{interval, mean_and_sd, percent, short_number, value_text};
use crate::report::plot::*;
use crate::report::sample::{bounds, direction};
use crate::report::sections::{Important, important};
use runner_statistics::{Direction, LevelEffect};

/// More levels than this become points of a scatter plot.
const MAX_LEVELS: usize = 12;
/// Rows and columns of a heat map.
const MAX_SIDE: usize = 15;

/// The trials with an objective, and the text of an axis.
fn by_level<'a>(report: &'a Report, key: &str) -> Vec<(&'a Trial, f64, String)> {
    let trials = report.trials.iter().take(MAX_POINTS);
    let found = trials.filter_map(|trial| {
        let mean = report.objective_of(trial)?.mean();
        Some((
            trial,
            mean,
            trial.axes.get(key).map_or("-".into(), value_text),
        ))
    });
    found.collect()
}

/// All levels of an axis in file order, as far as it is known, or ascending if all of them are numbers.
fn levels_of(report: &Report, key: &str) -> (Vec<String>, bool) {
    let mut seen = BTreeSet::new();
    let effect = report.effects.iter().find(|effect| effect.key == key);
    let of_file = effect
        .into_iter()
        .flat_map(|effect| &effect.marginal.levels);
    let of_file = of_file.map(|level| level.level.clone());
    let of_trials = by_level(report, key).into_iter().map(|(_, _, text)| text);
    let texts = of_file.chain(of_trials);
    let mut levels: Vec<String> = texts.filter(|text| seen.insert(text.clone())).collect();
    let is_ordered = sort(&mut levels, |level| level.as_str());
    (levels, is_ordered)
}

/// Sorts numeric names; returns whether all are numeric.
fn sort<T>(items: &mut [T], name: impl Fn(&T) -> &str) -> bool {
    let number = |item: &T| name(item).parse::<f64>().ok().filter(|v| v.is_finite());
    let is_ordered = items.iter().all(|item| number(item).is_some());
    if is_ordered {
        items.sort_by(|a, b| {
            number(a)
                .partial_cmp(&number(b))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
    }
    is_ordered
}

/// The effect of one axis.
pub fn effect(report: &Report, key: &str) -> Option<Figure> {
    let found = report.effects.iter().find(|effect| effect.key == key);
    if let Some(found) = found.filter(|found| found.marginal.levels.len() <= MAX_LEVELS) {
        let mut shown: Vec<Level> = found.marginal.levels.iter().map(level).collect();
        let is_ordered = sort(&mut shown, |level| level.name.as_str());
        return Some(plot_levels(
            report,
            key,
            &shown,
            is_ordered,
            "The small dots are seeds.",
        ));
    }
    let trials = by_level(report, key);
    let (names, is_ordered) = levels_of(report, key);
    if trials.len() < 2 || names.len() < 2 {
        return None;
    }
    if report.axes.len() == 1 && names.len() <= MAX_LEVELS {
        let levels = trials
            .iter()
            .filter_map(|(trial, _, name)| of_trial(report, trial, name));
        let mut shown: Vec<Level> = levels.collect();
        let is_ordered = sort(&mut shown, |level| level.name.as_str());
        return Some(plot_levels(
            report,
            key,
            &shown,
            is_ordered,
            "The small dots are seeds.",
        ));
    }
    if !is_ordered {
        return None;
    }
    let dots = trials.iter().filter_map(|(trial, mean, text)| {
        Some(Dot {
            x: text.parse().ok()?,
            y: *mean,
            series: 0,
            title: format!("{}: {}", trial.id, short_number(*mean)),
        })
    });
    let dots: Vec<Dot> = dots.collect();
    let svg = scatter(&Scatter {
        description: &format!("{} by {key}, of {} trials", report.objective, dots.len()),
        x_label: key,
        y_label: &report.objective,
        is_log: is_log_apt(dots.iter().map(|dot| dot.x)),
        y: apt_for(&report.objective, dots.iter().map(|dot| dot.y)),
        points: &dots,
        line: Reference::None,
    });
    Some(Figure::new(
        svg,
        format!(
            "Each point is a trial; {}.{}",
            better_is(report),
            which(report)
        ),
    ))
}

fn plot_levels(
    report: &Report,
    key: &str,
    shown: &[Level],
    is_ordered: bool,
    dots: &str,
) -> Figure {
    let plot = Levels {
        description: &format!("{} by {key}, of {} values", report.objective, shown.len()),
        x_label: key,
        y_label: &report.objective,
        levels: shown,
        is_ordered,
        bounds: bounds(&report.objective),
    };
    let svg = levels(&plot);
    let intervals = match (
        shown.iter().any(|level| level.interval.is_some()),
        plot.is_cut(),
    ) {
        (true, true) => {
            " with Student's 95 % intervals; arrows mark intervals that extend beyond the plot"
        }
        (true, false) => " with Student's 95 % intervals",
        (false, _) => "",
    };
    Figure::new(
        svg,
        format!("Means{intervals}; {}. {dots}", better_is(report)),
    )
}

fn level(found: &LevelEffect) -> Level {
    let between = found.interval.as_ref();
    Level {
        name: found.level.clone(),
        mean: found.mean,
        interval: between.map(|between| (between.low, between.high)),
        dots: found.by_seed.iter().map(|(_, value)| *value).collect(),
        title: format!(
            "{}: {}{}, n = {} seeds",
            found.level,
            short_number(found.mean),
            between.map_or(String::new(), |b| format!(
                ", 95 % interval {}",
                interval(b)
            )),
            found.n
        ),
    }
}

fn of_trial(report: &Report, trial: &Trial, name: &str) -> Option<Level> {
    let sample = report.objective_of(trial)?;
    Some(Level {
        name: name.to_owned(),
        mean: sample.mean(),
        interval: sample.student.map(|student| (student.low, student.high)),
        dots: sample.by_seed.iter().map(|(_, value)| *value).collect(),
        title: format!(
            "{name}: {}, n = {}",
            mean_and_sd(&sample.description),
            trial.n_in_words()
        ),
    })
}

/// How much each axis matters.
pub fn importance(report: &Report) -> Option<Figure> {
    let found = important(report);
    let bar = |axis: &Important| Bar {
        name: axis.key.to_owned(),
        value: axis.share,
        text: percent((1e3 * axis.share).round() / 1e3),
        rank: None,
        mark: None,
        title: format!("{}: {}", axis.key, percent(axis.share)),
    };
    let shown: Vec<Bar> = found.iter().map(bar).collect();
    let svg = bars(&Bars {
        description: &format!(
            "fraction of the variance of {1} explained by {0} axes",
            shown.len(),
            report.objective
        ),
        label: match report.importance {
            Some(_) => "fraction of the variance between trials",
            None => "fraction of the variance between settings",
        },
        bars: &shown,
    });
    (shown.len() > 1).then(|| {
        Figure::new(
            svg,
            match report.importance {
                Some(_) => "The longer the bar, the more important the axis is.",
                None => "The longer the bar, the more important the axis is by itself.",
            },
        )
    })
}

/// All axes together.
pub fn together(report: &Report) -> Option<Figure> {
    map(report).or_else(|| coordinates(report))
}

/// Two axes as a heat map of their trials.
fn map(report: &Report) -> Option<Figure> {
    let [down, across] = report.axes.as_slice() else {
        return None;
    };
    let ((rows, _), (columns, _)) = (levels_of(report, down), levels_of(report, across));
    let is_map = |side: &[String]| (2..=MAX_SIDE).contains(&side.len());
    let trials = by_level(report, down);
    // A map with more gaps than cells is useless.
    if !is_map(&rows) || !is_map(&columns) || 2 * trials.len() < rows.len() * columns.len() {
        return None;
    }
    let mut cells = vec![vec![Cell::default(); columns.len()]; rows.len()];
    for (trial, mean, row) in &trials {
        let column = trial.axes.get(across).map_or("-".into(), value_text);
        let at = rows.iter().position(|name| name == row);
        let at = at.zip(columns.iter().position(|name| *name == column));
        if let (Some((row, column)), Some(sample)) = (at, report.objective_of(trial)) {
            cells[row][column] = Cell {
                value: Some(*mean),
                text: short_number(*mean),
                title: format!(
                    "{}: {}, n = {}",
                    trial.id,
                    mean_and_sd(&sample.description),
                    trial.n_in_words()
                ),
            };
        }
    }
    let is_low_dark = direction(&report.objective) == Some(Direction::LowerIsBetter);
    let svg = heat(&Heat {
        description: &format!("{} by {down} and {across}", report.objective),
        x_label: across,
        y_label: down,
        columns: &columns,
        rows: &rows,
        cells: &cells,
        is_low_dark,
    });
    Some(Figure::new(
        svg,
        format!(
            "`{}` of each trial; the stronger the color, the better.",
            report.objective
        ),
    ))
}

/// Any number of axes side by side, with the objective last.
fn coordinates(report: &Report) -> Option<Figure> {
    let columns = report.axes.iter().map(|key| {
        let (levels, is_ordered) = levels_of(report, key);
        let is_drawn = is_ordered && levels.len() > MAX_LEVELS;
        (key, levels, is_drawn)
    });
    let columns: Vec<(&String, Vec<String>, bool)> = columns.collect();
    let trials: Vec<(&Trial, f64)> = report
        .trials
        .iter()
        .filter_map(|trial| Some((trial, report.objective_of(trial)?.mean())))
        .take(MAX_POINTS)
        .collect();
    if trials.len() < 2 {
        return None;
    }
    let lines = trials.iter().enumerate().map(|(at, (trial, mean))| {
        let values = columns.iter().map(|(key, levels, is_drawn)| {
            let text = trial.axes.get(*key).map_or("-".into(), value_text);
            match is_drawn {
                true => text.parse().ok(),
                false => levels
                    .iter()
                    .position(|level| *level == text)
                    .map(|at| at as f64),
            }
        });
        Trace {
            values: values.chain([Some(*mean)]).collect(),
            // The trials are in rank order: the first fifth is the best.
            shade: SHADES - 1 - at * SHADES / trials.len(),
            title: format!("{}: {}", trial.id, short_number(*mean)),
        }
    });
    let mut lines: Vec<Trace> = lines.collect();
    lines.reverse();
    let axes = columns.iter().map(|(key, levels, is_drawn)| Coordinate {
        name: short(key, &report.axes),
        levels: (!is_drawn).then(|| levels.clone()),
        kind: {
            let values = levels.iter().filter_map(|level| level.parse().ok());
            apt(values.collect::<Vec<f64>>().into_iter(), false)
        },
    });
    let means = trials.iter().map(|(_, mean)| *mean);
    let objective = Coordinate {
        name: report.objective.clone(),
        levels: None,
        kind: apt_for(&report.objective, means),
    };
    let svg = parallel(&Parallel {
        description: &format!(
            "{} trials by {} axes and {}",
            trials.len(),
            columns.len(),
            report.objective
        ),
        axes: &axes.chain([objective]).collect::<Vec<_>>(),
        lines: &lines,
    });
    Some(Figure {
        is_wide: true,
        ..Figure::new(
            svg,
            format!(
                "Each line is a trial; the better it ranks, the stronger and thicker it is.{}",
                which(report)
            ),
        )
    })
}

/// The last part of a key, if it is unique: there is little room above an axis.
fn short(key: &str, keys: &[String]) -> String {
    let last = |key: &str| match key.rsplit_once('.') {
        Some((_, "type")) | None => key.to_owned(),
        Some((_, last)) => last.to_owned(),
    };
    let own = last(key);
    match keys.iter().filter(|other| last(other) == own).count() {
        1 => own,
        _ => key.to_owned(),
    }
}
