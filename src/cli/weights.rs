//! The initial weights taken from files, as a table.

use super::output::Output;
use runner_core::plan::init::{InitFate, InitPlan, InitRow};
use runner_core::table::{Columns, fit};

/// The source of initial weights, with a line for every tensor, or only for those that are not simply loaded.
pub fn table(init: &InitPlan, is_whole: bool) -> String {
    let mut text = format!(
        "initial weights from {}: {}",
        init.path.display(),
        init.report.counts()
    );
    let is_shown = |row: &&InitRow| is_whole || row.fate != InitFate::Matched;
    let rows: Vec<_> = init.report.rows.iter().filter(is_shown).collect();
    if rows.is_empty() {
        return text;
    }
    let mut columns = Columns::named(["tensor", "shape", "in the file", "shape there", ""]);
    for row in rows {
        let cells = |side: &Option<(String, Vec<usize>)>| match side {
            Some((name, shape)) => [name.clone(), format!("{shape:?}")],
            None => [String::new(), String::new()],
        };
        let [ours, theirs] = [cells(&row.ours), cells(&row.theirs)];
        let fate = [row.fate.name().to_owned()];
        columns
            .rows
            .push(ours.into_iter().chain(theirs).chain(fate).collect());
    }
    text.push('\n');
    text.push_str(&fit(columns, Output::table_width(), &[]).text);
    text
}
