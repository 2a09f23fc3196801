//! The sections of a report after the answer, as text and tables. `report.md` and `report.html` both consist of them,
//! so that their content is the same.

mod cost;
mod effects;
mod evaluation;
mod learning;
mod origin;
mod passes;
mod problems;
mod search;
mod verdicts;
mod weights;

pub use effects::{Important, effect_columns, effect_note, important};
pub use learning::about_bands;
pub use origin::in_words;
pub use weights::moment;

use super::model::Report;
use runner_core::table::Columns;

/// Further rows are only in `report.csv` and `report.json`.
pub const MAX_ROWS: usize = 200;

/// A section of a report. In its texts, words between backticks are names or values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// The kind of section: its place in a page, and its plots.
    pub id: &'static str,
    /// Its axis, if it is about one.
    pub axis: Option<String>,
    /// Its title.
    pub title: String,
    /// Paragraphs before the table.
    pub intro: Vec<String>,
    /// Its table, with at most [`MAX_ROWS`] rows.
    pub table: Option<Columns>,
    /// Its lines.
    pub list: Vec<String>,
    /// Commands for a shell.
    pub commands: Vec<String>,
    /// Paragraphs at the end.
    pub notes: Vec<String>,
}

impl Section {
    /// An empty section.
    fn new(id: &'static str, title: impl Into<String>) -> Self {
        Self {
            id,
            title: title.into(),
            ..Self::default()
        }
    }

    /// Adds a paragraph at the start.
    fn intro(mut self, text: impl Into<String>) -> Self {
        self.intro.push(text.into());
        self
    }

    /// Adds a paragraph at the end.
    fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// Adds paragraphs at the end.
    fn notes(mut self, texts: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(texts);
        self
    }

    /// Adds a table, truncated if it is too long for a reader.
    fn columns(mut self, mut table: Columns) -> Self {
        self.notes.extend(cut(&mut table));
        self.table = Some(table);
        self
    }

    /// Adds a table of these names and rows.
    fn table(self, head: Vec<String>, rows: Vec<Vec<String>>) -> Self {
        self.columns(Columns { head, rows })
    }
}

/// Truncates a table to [`MAX_ROWS`] rows, with a note if it had more.
pub fn cut(table: &mut Columns) -> Option<String> {
    let num = table.rows.len();
    table.rows.truncate(MAX_ROWS);
    (num > MAX_ROWS)
        .then(|| format!("The first {MAX_ROWS} of {num} rows; `report.csv` contains all."))
}

/// All sections, in order; empty ones are omitted.
pub fn sections(report: &Report) -> Vec<Section> {
    let mut all: Vec<Section> = Vec::new();
    all.extend(problems::not_completed(report));
    all.extend(verdicts::test(report));
    all.extend(learning::learning(report));
    all.extend(search::search(report));
    all.extend(search::schedule(report));
    all.extend(search::copies(report));
    all.extend(search::infeasible(report));
    all.extend(search::tradeoffs(report));
    all.extend(search::confirmation(report));
    all.extend(effects::importance(report));
    all.extend(effects::effects(report));
    all.extend(effects::together(report));
    all.extend(verdicts::verdicts(report));
    all.extend(verdicts::seeds(report));
    all.extend(verdicts::metrics(report));
    all.extend(cost::cost(report));
    all.extend(passes::passes(report));
    all.extend(cost::backends(report));
    all.extend(cost::memory(report));
    all.extend(evaluation::evaluation(report));
    all.extend(weights::gradients(report));
    all.extend(weights::weights(report));
    all.extend(problems::remarks(report));
    all.extend(problems::leftovers(report));
    all.extend(origin::data(report));
    all.extend(origin::environment(report));
    all.extend(origin::reproduce(report));
    all
}

fn head<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

fn dash() -> String {
    "-".to_owned()
}
