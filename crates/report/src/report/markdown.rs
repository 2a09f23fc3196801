//! `report.md`: the content of the report, without plots.

use comfy_table::presets;

use super::answer::{about_runs, about_table, adjusted, answer};
use super::escaped::{fenced, prose};
use super::model::Report;
use super::sections::{Section, cut, sections};
use super::table::{about_losses, about_verdicts, lay_out, ranked};
use runner_core::table::Columns;

/// The text of `report.md`.
pub fn markdown(report: &Report) -> String {
    let mut text = format!("# {}\n\n", prose(&report.experiment));
    for notice in &report.notices {
        text.push_str(&format!("> **Note.** {}.\n\n", prose(notice)));
    }
    if !report.question.is_empty() {
        text.push_str(&format!("{}\n\n", prose(&report.question)));
    }
    text.push_str(&format!("{}\n\n", prose(&answer(report))));
    let mut table = ranked(report, true);
    let is_cut = cut(&mut table);
    push_table(&mut text, table);
    let notes = [about_table(report)].into_iter();
    let notes = notes.chain(about_verdicts(report));
    let notes = notes.chain(about_runs(report)).chain(is_cut);
    let notes = notes.chain(about_losses(report).map(str::to_owned));
    for note in notes.chain(adjusted(report)) {
        text.push_str(&format!("\n{}\n", prose(&note)));
    }
    for section in sections(report) {
        push_section(&mut text, section);
    }
    text
}

fn push_section(text: &mut String, section: Section) {
    // Sections that only have plots are omitted.
    let is_empty =
        section.table.is_none() && section.list.is_empty() && section.commands.is_empty();
    if is_empty && section.notes.is_empty() {
        return;
    }
    text.push_str(&format!("\n## {}\n\n", prose(&section.title)));
    let has_intro = !section.intro.is_empty();
    for (at, paragraph) in section.intro.iter().enumerate() {
        let space = if at > 0 { "\n" } else { "" };
        text.push_str(&format!("{space}{}\n", prose(paragraph)));
    }
    if has_intro && !is_empty {
        text.push('\n');
    }
    if let Some(table) = section.table {
        push_table(text, table);
    }
    for line in &section.list {
        text.push_str(&format!("- {}\n", prose(line)));
    }
    if !section.commands.is_empty() {
        text.push_str(&fenced(&section.commands));
    }
    for (at, note) in section.notes.iter().enumerate() {
        let space = if at > 0 || has_intro || !is_empty {
            "\n"
        } else {
            ""
        };
        text.push_str(&format!("{space}{}\n", prose(note)));
    }
}

fn push_table(text: &mut String, table: Columns) {
    text.push_str(&lay_out(table, presets::ASCII_MARKDOWN));
    text.push('\n');
}
