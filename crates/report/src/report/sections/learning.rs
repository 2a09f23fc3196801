//! Learning curves as text: their start, best and end.

use super::Section;
use crate::report::curves::{Band, Curve, CurvePoint, MAX_TRIALS, TrialCurves};
use crate::report::model::Report;
use crate::report::numbers::short_number;
use crate::report::table::head_of;
use runner_core::event::Metrics;
use runner_core::plan::Ties;
use runner_core::spec::metric::Objective;
use runner_core::spec::section::Choice;

/// Maximum number of metrics in the table: the objective's and the loss.
const IN_TABLE: usize = 2;

/// The curves of the displayed trials.
pub fn learning(report: &Report) -> Option<Section> {
    let curves = &report.curves;
    if curves.is_empty() {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    for metric in curves.metrics.iter().take(IN_TABLE) {
        let all = curves.trials.iter().flat_map(|trial| &trial.curves);
        let of_metric = all.filter(|c| c.metric.split_once('/').is_some_and(|(_, m)| m == metric));
        for curve in of_metric {
            if !names.contains(&curve.metric.as_str()) {
                names.push(&curve.metric);
            }
        }
    }
    let mut head = vec!["trial".to_owned(), "runs".to_owned(), "epochs".to_owned()];
    head.extend(names.iter().map(|name| head_of(report, name)));
    let rows = curves.trials.iter().map(|trial| {
        let last = trial.curves.iter().filter_map(|curve| curve.points.last());
        let last = last.map(|point| point.epoch).max().unwrap_or(0);
        let planned = report.trials.iter().find(|t| t.id == trial.trial);
        let n = match planned.map(|planned| planned.runs.len()) {
            Some(num) if num != trial.n => format!("{} of {num}", trial.n),
            _ => trial.n.to_string(),
        };
        let mut row = vec![trial.trial.clone(), n, last.to_string()];
        row.extend(names.iter().map(|name| in_words(trial, name, report.ties)));
        row
    });
    let rows = rows.collect();
    let mut section = Section::new("curves", "Learning curves").table(head, rows);
    section.notes.push(
        "Means over the runs of a trial: after the first epoch, at the best epoch of the mean, and after the last.".into(),
    );
    let is_shorter = |trial: &TrialCurves| {
        let mut points = trial.curves.iter().flat_map(|curve| &curve.points);
        points.any(|point| point.n < trial.n)
    };
    if curves.trials.iter().any(is_shorter) {
        section.notes.push(
            "Where a run has fewer epochs than others of its trial, or a NaN, the means are over the rest.".into(),
        );
    }
    if curves.num_more_trials > 0 {
        section.notes.push(format!(
            "At most {MAX_TRIALS} trials are shown: the highest ranked, and the baseline. Omitted: {}; see `metrics.csv` of each run for their curves.",
            curves.num_more_trials
        ));
    }
    if curves.num_more_metrics > 0 {
        section.notes.push(format!(
            "Omitted metrics: {}; see `metrics.csv` of each run.",
            curves.num_more_metrics
        ));
    }
    Some(section)
}

/// `2.10, 0.31 (8), 0.33`: the first, the best with its epoch, and the last.
fn in_words(trial: &TrialCurves, name: &str, ties: Ties) -> String {
    let curve = trial.curves.iter().find(|curve| curve.metric == name);
    let ends = curve.and_then(|c| Some((c, c.points.first()?, c.points.last()?)));
    let Some((curve, first, last)) = ends else {
        return super::dash();
    };
    let (first, last) = (short_number(first.mean), short_number(last.mean));
    match best(trial, curve, ties) {
        Some((value, epoch)) => format!("{first}, {} ({epoch}), {last}", short_number(value)),
        None => format!("{first}, {last}"),
    }
}

/// The best mean with its epoch, if the metric has a direction. Ties are broken as for a run's epochs.
fn best(trial: &TrialCurves, curve: &Curve, ties: Ties) -> Option<(f64, usize)> {
    let objective = Objective::parse(&curve.metric).ok()?;
    let split = objective.split.name();
    let loss = format!("{split}/loss");
    let losses = trial.curves.iter().find(|curve| curve.metric == loss);
    let numbers = |point: &CurvePoint| {
        let same = |other: &&CurvePoint| other.epoch == point.epoch;
        let of_loss = losses.and_then(|losses| losses.points.iter().find(same));
        let of_loss = of_loss.map(|point| (loss.clone(), point.mean));
        let own = [(curve.metric.clone(), point.mean)];
        Metrics::from_iter(of_loss.into_iter().chain(own))
    };
    let points = curve.points.iter().map(|point| (point, numbers(point)));
    let (best, _) = points.reduce(|best, later| {
        if ties.prefer_later(objective, &later.1, &best.1) {
            later
        } else {
            best
        }
    })?;
    Some((best.mean, best.epoch))
}

/// The meaning of the bands.
pub fn about_bands(report: &Report) -> String {
    let all = report.curves.trials.iter().flat_map(|trial| &trial.curves);
    let bands: Vec<Band> = all.filter_map(|curve| curve.band).collect();
    let (range, student) = (
        bands.contains(&Band::Range),
        bands.contains(&Band::StudentT),
    );
    match (range, student) {
        (false, false) => "One run each, so there are no bands.",
        (true, false) => "Bands show the range over runs.",
        (false, true) => "Bands are Student's 95 % intervals for the mean.",
        (true, true) => "Bands show the range over runs for fewer than 5 runs, otherwise Student's 95 % intervals for the mean.",
    }
    .to_owned()
}
