//! The values of a template.

use serde::Serialize;

use super::evaluation::{classes, pictures};
use super::figures::{Figure, Key, Picture, apt_for, figures};
use crate::report::answer::{about_runs, about_table, adjusted, answer};
use crate::report::model::{Report, Trial};
use crate::report::plot::{Kind, is_beyond_strip, strip, strip_scale};
use crate::report::sample::Sample;
use crate::report::sections::{MAX_ROWS, Section, cut, in_words, sections};
use crate::report::table::{about_losses, about_verdicts, head_of, metric, ranked};
use runner_core::table::Columns;

/// A page. All texts are plain; words between backticks are names or values, which the filter `code` formats.
#[derive(Serialize)]
pub struct Page<'a> {
    /// The report itself, as in `report.json`.
    pub report: &'a Report,
    /// The style of the built-in template.
    pub style: &'static str,
    /// Its script.
    pub script: &'static str,
    /// The answer in sentences.
    pub answer: String,
    /// The ranked trials.
    pub ranked: Table,
    /// What its numbers mean, and what it omits.
    pub about: Vec<String>,
    /// The origin of the numbers, in a few lines: names and values.
    pub facts: Vec<(&'static str, String)>,
    /// The other sections, in order.
    pub sections: Vec<Part>,
}

/// A table.
#[derive(Serialize)]
pub struct Table {
    /// The column names.
    pub head: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<Cell>>,
    /// How many of its first rows are highlighted.
    pub num_first: usize,
}

/// A cell of a table.
#[derive(Serialize)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// Whether it is a number or a missing one, and so right-aligned.
    pub is_number: bool,
    /// A small plot, already as HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plot: Option<String>,
}

/// A section with its plots.
#[derive(Serialize)]
pub struct Part {
    /// The kind of section.
    pub id: &'static str,
    /// Its place in the page.
    pub anchor: String,
    /// Its title.
    pub title: String,
    /// Paragraphs at the start.
    pub intro: Vec<String>,
    /// Its plots.
    pub figures: Vec<Figure>,
    /// Its pictures.
    pub pictures: Vec<Picture>,
    /// The colors in its pictures.
    pub colors: Vec<Key>,
    /// Its table.
    pub table: Option<Table>,
    /// Whether the table repeats the plots, so that it may be folded.
    pub is_folded: bool,
    /// Its lines.
    pub list: Vec<String>,
    /// Commands for a shell.
    pub commands: Vec<String>,
    /// Paragraphs at the end.
    pub notes: Vec<String>,
}

impl<'a> Page<'a> {
    /// The page of a report.
    pub fn of(report: &'a Report) -> Self {
        let mut about = vec![about_table(report)];
        about.extend(about_verdicts(report));
        about.extend(about_runs(report));
        let mut columns = ranked(report, true);
        about.extend(cut(&mut columns));
        about.extend(about_losses(report).map(str::to_owned));
        about.extend(adjusted(report));
        let (ranked, is_strip_cut, kind) = with_strips(report, columns);
        about[0].push_str(match kind {
            Kind::Linear => "",
            Kind::Log => " The small plots have a logarithmic axis.",
            Kind::NearOne(_) => " The small plots show the logarithm of the distance from 1.",
        });
        if is_strip_cut {
            about[0].push_str(
                " An arrow at the end of a small plot means that the interval extends beyond it.",
            );
        }
        let mut parts: Vec<Part> = Vec::new();
        for section in sections(report) {
            let number = parts.iter().filter(|part| part.id == section.id).count();
            parts.push(Part::of(report, section, number));
        }
        Self {
            report,
            style: include_str!("style.css"),
            script: include_str!("script.js"),
            answer: answer(report),
            ranked,
            about,
            facts: facts(report),
            sections: parts.into_iter().filter(Part::has_content).collect(),
        }
    }
}

impl Part {
    fn of(report: &Report, section: Section, number: usize) -> Self {
        let figures = figures(report, &section);
        Self {
            id: section.id,
            anchor: match number {
                0 => section.id.to_owned(),
                _ => format!("{}-{}", section.id, number + 1),
            },
            title: section.title,
            intro: section.intro,
            is_folded: !figures.is_empty()
                || matches!(section.id, "samples" | "samples_by_epoch")
                // Of many trials of which none can be tested, without a plot.
                || section.id == "verdicts" && section.table.as_ref().is_some_and(|of| of.rows.len() > 1),
            figures,
            pictures: pictures(report, section.id),
            colors: classes(report, section.id),
            table: section.table.map(Table::of),
            list: section.list,
            commands: section.commands,
            notes: section.notes,
        }
    }

    fn has_content(&self) -> bool {
        let has_text = !self.list.is_empty() || !self.commands.is_empty() || !self.notes.is_empty();
        has_text || self.table.is_some() || !self.figures.is_empty()
    }
}

impl Table {
    fn of(columns: Columns) -> Self {
        let rows = columns.rows.into_iter();
        let rows = rows.map(|row| row.into_iter().map(Cell::of).collect());
        Self {
            head: columns.head,
            rows: rows.collect(),
            num_first: 0,
        }
    }
}

impl Cell {
    fn of(text: String) -> Self {
        let first = text.trim_start_matches(['+', '-']).chars().next();
        Self {
            is_number: first.is_none_or(|c| c.is_ascii_digit()),
            text,
            plot: None,
        }
    }
}

/// The ranked table with a plot of each trial's seeds next to its objective, whether an interval extends beyond one, and
/// the kind of their axis.
fn with_strips(report: &Report, columns: Columns) -> (Table, bool, Kind) {
    let objective = head_of(report, &report.objective);
    let after = columns.head.iter().position(|name| *name == objective);
    let mut table = Table::of(columns);
    // The best ones are highlighted if others are worse.
    let num_first = report.num_first();
    if num_first < report.trials.iter().filter(|trial| trial.n > 0).count() {
        table.num_first = num_first;
    }
    let shown = report.trials.iter().take(MAX_ROWS);
    let samples = shown.clone().filter_map(|trial| report.objective_of(trial));
    // The full intervals of two seeds would leave no room for the others.
    let values = samples.flat_map(|sample| sample.by_seed.iter().map(|(_, value)| *value));
    let kind = apt_for(&report.objective, values.clone());
    let scale = strip_scale(values, kind);
    let Some(after) = after.filter(|_| report.trials.iter().any(|trial| trial.n > 0)) else {
        return (table, false, Kind::Linear);
    };
    let mut is_cut = false;
    let name = if report.folds.is_some() {
        "folds"
    } else {
        "seeds"
    };
    table.head.insert(after + 1, name.into());
    for (row, trial) in table.rows.iter_mut().zip(shown) {
        let plot = report.objective_of(trial).map(|sample| {
            let values: Vec<f64> = sample.by_seed.iter().map(|(_, value)| *value).collect();
            let ends = sample.student.map(|student| (student.low, student.high));
            is_cut |= ends.is_some_and(|ends| is_beyond_strip(&scale, ends));
            let title = format!("{}: {}", trial.id, seeds_in_words(report, trial, sample));
            strip(&scale, sample.mean(), ends, &values, &title)
        });
        let cell = Cell {
            text: String::new(),
            is_number: false,
            plot,
        };
        row.insert((after + 1).min(row.len()), cell);
    }
    (table, is_cut, scale.kind())
}

fn seeds_in_words(report: &Report, trial: &Trial, sample: &Sample) -> String {
    let mean = metric(trial, &report.objective);
    let interval = sample.student.as_ref().map_or(String::new(), |student| {
        format!(
            ", 95 % interval {}",
            crate::report::numbers::interval(student)
        )
    });
    format!("{mean}{interval}, n = {}", trial.n_in_words())
}

/// The origin of the numbers, at a glance.
fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let mut facts = vec![("objective", format!("`{}`", report.objective))];
    let several = |mut lines: Vec<String>| {
        lines.dedup();
        match lines.len() {
            0..=2 => lines.join("; "),
            num => format!("{}; and {} more, below", lines[0], num - 1),
        }
    };
    let data = report.provenance.data.iter().map(|used| used.what.clone());
    facts.push(("data", several(data.collect())));
    let environments = report.provenance.environments.iter();
    facts.push((
        "computed with",
        several(environments.map(in_words).collect()),
    ));
    facts.retain(|(_, what)| !what.is_empty());
    facts
}
