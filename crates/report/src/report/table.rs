//! The ranked trials as rows, and as a table for a terminal.

use std::collections::BTreeSet;

use comfy_table::{ContentArrangement, Table, TableStyle, presets};

use super::answer::about_runs;
use super::escaped::cell;
use super::infeasible::{has_constraints, violation};
use super::model::{Report, Trial};
use super::numbers::{interval, mean_and_sd, short_number, value_text};
use super::verdict;
use runner_core::spec::printable_lines;
use runner_core::table::{Columns, fit};

/// Adds a column with a cell for each trial.
fn push(
    columns: &mut Columns,
    report: &Report,
    name: impl Into<String>,
    cell: impl Fn(&Trial) -> String,
) {
    columns.head.push(name.into());
    columns.rows.resize(report.trials.len(), Vec::new());
    for (row, trial) in columns.rows.iter_mut().zip(&report.trials) {
        row.push(cell(trial));
    }
}

/// Columns in a style of the table library, without text that a terminal or a Markdown renderer would interpret.
pub fn lay_out(mut columns: Columns, style: TableStyle) -> String {
    let is_markdown = style == presets::ASCII_MARKDOWN;
    let cells = columns.rows.iter_mut().flatten().chain(&mut columns.head);
    for text in cells {
        *text = if is_markdown {
            cell(text)
        } else {
            printable_lines(text).into_owned()
        };
    }
    let mut table = Table::new();
    table.load_style(style);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(columns.head);
    table.add_rows(columns.rows);
    table.trim_fmt()
}

/// With more metrics than this, they have a separate table, and the ranked one only has their loss.
pub const MOST_METRICS: usize = 3;

/// The columns of interest besides the objective: valid metrics, the loss last.
pub fn more_metrics(report: &Report) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for split in ["valid/", "valid_ema/", "valid_swa/"] {
        let measured = report.trials.iter().flat_map(|trial| trial.metrics.keys());
        let of_split =
            measured.filter(|name| name.starts_with(split) && **name != report.objective);
        let mut of_split: Vec<&str> = of_split.map(String::as_str).collect();
        of_split.sort_by_key(|name| (name.ends_with("/loss"), *name));
        of_split.dedup();
        names.extend(of_split);
    }
    names
}

/// The ranked trials: by the values of the axes, with the objective, its interval and the verdict, and with `more`
/// metrics and times.
pub fn ranked(report: &Report, with_more: bool) -> Columns {
    let mut columns = Columns::default();
    push(&mut columns, report, "#", rank(report));
    if report.axes.is_empty() {
        push(&mut columns, report, "trial", |trial| trial.id.clone());
    }
    for key in &report.axes {
        push(&mut columns, report, key, |trial| {
            trial.axes.get(key).map_or("-".into(), value_text)
        });
    }
    push_objective(&mut columns, report, true, with_more);
    if has_constraints(report) {
        push(&mut columns, report, "violation", violation_of);
    }
    if with_more {
        let names = more_metrics(report);
        let is_narrow = names.len() > MOST_METRICS;
        for name in names
            .into_iter()
            .filter(|name| !is_narrow || name.ends_with("/loss"))
        {
            push(&mut columns, report, head_of(report, name), |trial| {
                metric(trial, name)
            });
        }
        push(&mut columns, report, "s/run", |trial| {
            let secs = trial.wall_secs;
            secs.map_or("-".into(), |secs| format!("{secs:.2}"))
        });
    }
    columns
}

/// All metrics of the trials, if the ranked table does not have all of them.
pub fn all_metrics(report: &Report) -> Option<Columns> {
    let names = more_metrics(report);
    if names.len() <= MOST_METRICS {
        return None;
    }
    let mut columns = Columns::default();
    push(&mut columns, report, "trial", |trial| trial.id.clone());
    push(&mut columns, report, "n", |trial| {
        trial.n_in_words() + mark(trial)
    });
    for name in [report.objective.as_str()].into_iter().chain(names) {
        push(&mut columns, report, head_of(report, name), |trial| {
            metric(trial, name)
        });
    }
    Some(columns)
}

fn push_objective(columns: &mut Columns, report: &Report, with_interval: bool, with_last: bool) {
    push(columns, report, "n", |trial| {
        trial.n_in_words() + mark(trial)
    });
    push(
        columns,
        report,
        head_of(report, &report.objective),
        |trial| {
            if trial.has_mixed_data() {
                "mixed data".to_owned()
            } else {
                metric(trial, &report.objective)
            }
        },
    );
    if with_last && shows_last(report) {
        push(columns, report, "last epoch", |trial| last(report, trial));
    }
    if with_interval && report.trials.iter().any(|trial| trial.n > 1) {
        push(columns, report, "95 % interval", |trial| {
            let sample = report.objective_of(trial);
            let student = sample.and_then(|sample| sample.student.as_ref());
            student.map_or("-".into(), interval)
        });
    }
    if let Some(baseline) = &report.baseline {
        let name = if baseline.is_picked {
            "against #1"
        } else {
            "against baseline"
        };
        push(columns, report, name, |trial| match &trial.verdict {
            Some(verdict) if !verdict::is_claim(verdict) && report.is_ruled_out(trial) => {
                RULED_OUT.into()
            }
            Some(verdict) if trial.n > 0 => verdict::code(verdict),
            _ => verdict_of(report, trial),
        });
    }
}

/// The code of a trial that is not the best.
const RULED_OUT: &str = "not best~";

/// The verdict of a trial in a few words.
pub fn verdict_of(report: &Report, trial: &Trial) -> String {
    match (&trial.verdict, &report.baseline) {
        _ if trial.n == 0 => "-".into(),
        (Some(verdict), _) if !verdict::is_claim(verdict) && report.is_ruled_out(trial) => {
            "not the best (if the noise is normal)".into()
        }
        (Some(verdict), _) => verdict::in_words(verdict),
        (None, Some(baseline)) if baseline.unbeaten.is_some() && !report.is_baseline(trial) => {
            "no claim".into()
        }
        (None, Some(_)) if trial.has_other_items => "other items".into(),
        (None, Some(baseline)) if !baseline.is_picked && report.is_baseline(trial) => {
            "baseline".into()
        }
        _ => "-".into(),
    }
}

/// The heading of a metric's column; marked if its values cannot be compared.
pub fn head_of(report: &Report, metric: &str) -> String {
    if report.is_measured_differently(metric) {
        format!("{metric} †")
    } else {
        metric.to_owned()
    }
}

/// The meaning of the mark on a heading, if there is one.
pub fn about_losses(report: &Report) -> Option<&'static str> {
    let mut measured = report.trials.iter().flat_map(|trial| trial.metrics.keys());
    let is_marked = measured.any(|name| report.is_measured_differently(name));
    is_marked.then_some("† Another quantity in different trials, by the values of the axes: they cannot be compared with each other.")
}

/// The meaning of the codes of verdicts that occur in the ranked table.
pub fn about_verdicts(report: &Report) -> Option<String> {
    let judged = report.trials.iter().filter(|trial| trial.n > 0);
    let is_out = |trial: &&Trial| {
        let verdict = trial.verdict.as_ref();
        report.is_ruled_out(trial) && !verdict.is_some_and(verdict::is_claim)
    };
    let shown = judged.clone().filter(|trial| !is_out(trial));
    let notes = verdict::notes(shown.filter_map(|trial| trial.verdict.as_ref()));
    let out = judged.into_iter().any(|trial| is_out(&trial)).then(|| {
        format!("`{RULED_OUT}` some other trial is better, if the noise is normal: with 95 % confidence, the best trial is not among these.")
    });
    match (out, notes) {
        (Some(out), Some(notes)) => Some(format!("{out} {notes}")),
        (out, notes) => out.or(notes),
    }
}

/// The rank of a trial, and whether it is shared.
fn rank(report: &Report) -> impl Fn(&Trial) -> String + use<> {
    let ranks: Vec<usize> = report
        .trials
        .iter()
        .filter_map(|trial| trial.rank)
        .collect();
    let pairs = ranks.windows(2).filter(|pair| pair[0] == pair[1]);
    let tied: BTreeSet<usize> = pairs.map(|pair| pair[0]).collect();
    move |trial| match trial.rank {
        Some(rank) if tied.contains(&rank) => format!("{rank} tied"),
        Some(rank) => rank.to_string(),
        None => "-".into(),
    }
}

/// How far a trial is from meeting the constraints.
pub fn violation_of(trial: &Trial) -> String {
    match violation(trial) {
        _ if trial.n == 0 => "-".into(),
        sum if sum.is_finite() => short_number(sum),
        _ => "unknown".into(),
    }
}

/// A metric of a trial: mean and standard deviation.
pub fn metric(trial: &Trial, name: &str) -> String {
    let sample = trial.metrics.get(name);
    sample.map_or("-".into(), |sample| mean_and_sd(&sample.description))
}

/// The mean of the objective after the last epochs of a trial's runs. Unlike the best epoch's, it was not selected by
/// its value.
fn last(report: &Report, trial: &Trial) -> String {
    let sample = trial.metrics.get(&format!("last/{}", report.objective));
    sample.map_or("-".into(), |sample| short_number(sample.mean()))
}

/// Whether the last epochs have a column next to the best ones: if their displayed digits differ.
pub fn shows_last(report: &Report) -> bool {
    report.trials.iter().any(|trial| {
        let best = report.objective_of(trial);
        let best = best.map(|sample| short_number(sample.mean()));
        best.is_some_and(|best| ![best.as_str(), "-"].contains(&last(report, trial).as_str()))
    })
}

/// Marks a trial with runs that differ from the plan.
fn mark(trial: &Trial) -> &'static str {
    match trial.num_adjusted {
        0 => "",
        _ => "*",
    }
}

/// The meaning of the marks in a table and of its spread, and runs that do not belong together.
pub fn footnotes(report: &Report) -> Vec<String> {
    let mut trials = report.trials.iter();
    let marked = trials.any(|trial| trial.num_adjusted > 0);
    let adjusted = marked.then_some(
        "* includes runs that were adjusted, after a failure or to fit into memory: see the remarks in report.md",
    );
    let marks = adjusted.into_iter().chain(about_losses(report));
    let marks = marks.map(str::to_owned);
    let codes = about_verdicts(report).into_iter();
    marks.chain(codes).chain(about_runs(report)).collect()
}

/// The ranked trials for a terminal of `width` columns: with all columns, with those of the objective, or by the names of
/// trials, which are set row by row where nothing else fits.
pub fn table(report: &Report, width: u16) -> String {
    for columns in [ranked(report, true), ranked(report, false)] {
        let text = lay_out(columns, presets::NOTHING);
        let fits = |line: &str| runner_core::table::width(line) <= width as usize;
        if text.lines().all(fits) {
            return text;
        }
    }
    let mut columns = Columns::default();
    push(&mut columns, report, "#", rank(report));
    push(&mut columns, report, "trial", |trial| trial.id.clone());
    push_objective(&mut columns, report, false, false);
    fit(columns, Some(width), &[]).text
}
