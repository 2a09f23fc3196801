//! Tables in the width of a terminal. Names and numbers are never truncated: common parts of names are removed, the
//! least important columns are omitted, and rows that still do not fit are split into several lines.
//!
//! The library for tables measures and wraps every cell, which takes seconds for ten thousand rows.

use std::borrow::Cow;
use std::collections::BTreeSet;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::diagnostic::printable;

/// Columns of text with their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// The names.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

impl Columns {
    /// Columns of these names without rows.
    pub fn named<const N: usize>(head: [&str; N]) -> Self {
        Self {
            head: head.map(str::to_owned).to_vec(),
            rows: Vec::new(),
        }
    }

    /// Removes what a terminal would interpret: names and messages come from foreign files.
    fn printable(&mut self) {
        for cell in self.rows.iter_mut().flatten().chain(&mut self.head) {
            if let Cow::Owned(shown) = printable(cell) {
                *cell = shown;
            }
        }
    }
}

/// The column separator.
const GAP: &str = "  ";

/// Characters after which a name may be broken if it is longer than a line.
const BREAKS: [char; 6] = [' ', ',', '/', '=', ']', '_'];

/// A table that fits the width.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fitted {
    /// Its lines, without a newline at the end.
    pub text: String,
    /// The omitted columns.
    pub left_out: Vec<String>,
}

/// The columns of a terminal that a text takes: wide characters, such as Chinese ones, take two.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Lays columns out, each as wide as its content, in at most `width` characters if there is a limit. `least` are the
/// names of columns that are omitted if necessary, starting with the first.
pub fn fit(columns: Columns, width: Option<u16>, least: &[&str]) -> Fitted {
    fit_numbers(columns, width, least, &[])
}

/// The same with the columns of some names aligned on the right.
pub fn fit_numbers(
    mut columns: Columns,
    width: Option<u16>,
    least: &[&str],
    numbers: &[&str],
) -> Fitted {
    columns.printable();
    let mut fitted = Fitted::default();
    let Some(width) = width.map(usize::from) else {
        fitted.text = in_columns(&columns, numbers);
        return fitted;
    };
    if total(&columns) > width {
        for at in 0..columns.head.len() {
            shorten(&mut columns, at, false);
        }
    }
    let named = columns.clone();
    if total(&columns) > width {
        for at in 0..columns.head.len() {
            shorten(&mut columns, at, true);
        }
    }
    for name in least {
        if total(&columns) <= width {
            break;
        }
        remove(&mut columns, name, &mut fitted.left_out);
    }
    if total(&columns) > width {
        // Keys that have no room in the head are above it.
        let mut below = named;
        let mut keys = Vec::new();
        for at in 0..below.head.len() {
            keys.extend(without_keys(&mut below, at));
        }
        let mut left_out = Vec::new();
        for name in least {
            if total(&below) <= width {
                break;
            }
            remove(&mut below, name, &mut left_out);
        }
        if total(&below) <= width && !keys.is_empty() {
            fitted.left_out = left_out;
            let keys = keys.iter().flat_map(|keys| wrap(keys, width, "  "));
            let lines: Vec<String> = keys.chain([in_columns(&below, numbers)]).collect();
            fitted.text = lines.join("\n");
            return fitted;
        }
    }
    fitted.text = if total(&columns) <= width {
        in_columns(&columns, numbers)
    } else {
        in_rows(&columns, width)
    };
    fitted
}

/// Removes the column of a name.
fn remove(columns: &mut Columns, name: &str, left_out: &mut Vec<String>) {
    if let Some(at) = columns.head.iter().position(|head| head == name) {
        columns.head.remove(at);
        columns.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        left_out.push(name.to_owned());
    }
}

/// Lays columns out whose cells contain sentences: they are broken at spaces where all words have room, and otherwise
/// the rows are split as by [`fit`]. The columns of some names are aligned on the right.
pub fn fit_sentences(mut columns: Columns, width: u16, numbers: &[&str]) -> String {
    columns.printable();
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(width);
    if columns.head.iter().any(|name| !name.is_empty()) {
        table.set_header(&columns.head);
    }
    table.add_rows(&columns.rows);
    for (column, name) in table.column_iter_mut().zip(&columns.head) {
        if numbers.contains(&name.as_str()) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text = table.trim_fmt();
    let mut left: Vec<&str> = text.split_whitespace().collect();
    let cells = columns.rows.iter().flatten().chain(&columns.head);
    let is_whole = cells.flat_map(|cell| cell.split_whitespace()).all(|word| {
        let found = left.iter().position(|other| *other == word);
        found.is_some_and(|at| {
            left.swap_remove(at);
            true
        })
    });
    let is_narrow = text.lines().all(|line| self::width(line) <= width.into());
    if is_whole && is_narrow {
        text
    } else {
        in_rows(&columns, width.into())
    }
}

/// The width of each column.
fn widths(columns: &Columns) -> Vec<usize> {
    let mut widths = vec![0; columns.head.len()];
    for line in std::iter::once(&columns.head).chain(&columns.rows) {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(self::width(cell));
        }
    }
    widths
}

/// The width of all of them.
fn total(columns: &Columns) -> usize {
    let widths = widths(columns);
    1 + widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

fn in_columns(columns: &Columns, numbers: &[&str]) -> String {
    let widths = widths(columns);
    let on_the_right = |at: usize| {
        let name = columns.head.get(at);
        name.is_some_and(|name| numbers.contains(&name.as_str()))
    };
    let mut text = String::new();
    for line in std::iter::once(&columns.head).chain(&columns.rows) {
        let mut row = String::from(" ");
        for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
            if at > 0 {
                row.push_str(GAP);
            }
            let room = std::iter::repeat_n(' ', width - self::width(cell));
            if on_the_right(at) {
                row.extend(room);
                row.push_str(cell);
            } else {
                row.push_str(cell);
                row.extend(room);
            }
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text.pop();
    text
}

/// A row in several lines: its first cells up to the name, then each other cell after the name of its column.
fn in_rows(columns: &Columns, width: usize) -> String {
    let name = name_column(columns);
    let mut lines: Vec<String> = Vec::new();
    let heads = columns
        .head
        .iter()
        .take(name + 1)
        .filter(|head| !head.is_empty());
    flow(&mut lines, heads.cloned(), width, " ", "   ");
    for row in &columns.rows {
        let (first, rest) = row.split_at((name + 1).min(row.len()));
        let mut head: Vec<String> = Vec::new();
        let words = first.iter().filter(|cell| !cell.is_empty());
        flow(&mut head, words.cloned(), width, " ", "   ");
        lines.append(&mut head);
        let items = columns.head[first.len()..].iter().zip(rest);
        let items = items.filter(|(_, cell)| !["", "-"].contains(&cell.as_str()));
        let items = items.map(|(head, cell)| format!("{head} {cell}").trim_start().to_owned());
        flow(&mut lines, items, width, "   ", "     ");
    }
    lines.join("\n")
}

/// The column that identifies a row: the first one that contains names.
fn name_column(columns: &Columns) -> usize {
    let is_name = |head: &String| {
        ["trial", "run", "experiment"]
            .iter()
            .any(|name| head.starts_with(name))
            || head.contains(", ")
    };
    columns.head.iter().position(is_name).unwrap_or(0)
}

/// Packs items into lines, each unbroken if a line has room for it.
fn flow(
    lines: &mut Vec<String>,
    items: impl Iterator<Item = String>,
    width: usize,
    indent: &str,
    hanging: &str,
) {
    let mut line = String::new();
    for item in items {
        let len = self::width(&item);
        if !line.is_empty() && self::width(&line) + GAP.len() + len <= width {
            line.push_str(GAP);
            line.push_str(&item);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        line = format!("{indent}{item}");
        if self::width(&line) > width {
            let mut pieces = wrap(&line, width, hanging);
            line = pieces.pop().unwrap_or_default();
            lines.append(&mut pieces);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
}

/// A text in lines of at most `width` characters, broken after spaces if there are any, otherwise after separators in
/// names; a word without either is not broken. Lines after the first begin with `hanging`.
pub fn wrap(text: &str, width: usize, hanging: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    loop {
        let indent = rest.iter().take_while(|c| **c == ' ').count();
        // The characters that have room in the line.
        let room = fitting(&rest, width);
        if rest.len() <= room {
            break;
        }
        let last = |is_end: &dyn Fn(char) -> bool| {
            let ends = (indent..room.min(rest.len() - 1)).rev();
            let mut ends = ends.filter(|at| is_end(rest[*at]));
            ends.find(|at| at + 1 > indent + hanging.len().min(2))
        };
        // A space may also follow the last character.
        let at = (rest[room] == ' ' && room > indent).then(|| room - 1);
        let at = at.or_else(|| last(&|c| c == ' '));
        let at = at.or_else(|| last(&|c| BREAKS.contains(&c)));
        let at = at.or_else(|| {
            let next = rest.iter().enumerate().skip(room);
            next.map(|(at, c)| (at, *c))
                .find(|(_, c)| BREAKS.contains(c))
                .map(|(at, _)| at)
        });
        // Each line is longer than the indent of the next one.
        let Some(at) = at.filter(|at| at + 1 < rest.len() && *at >= hanging.chars().count()) else {
            break;
        };
        let tail = rest.split_off(at + 1);
        lines.push(rest.iter().collect::<String>().trim_end().to_owned());
        let tail: String = tail.into_iter().collect();
        rest = format!("{hanging}{}", tail.trim_start()).chars().collect();
    }
    lines.push(rest.into_iter().collect::<String>().trim_end().to_owned());
    lines
}

/// How many of some characters have room in a line.
fn fitting(text: &[char], width: usize) -> usize {
    let mut used = 0;
    let fits = text.iter().take_while(|c| {
        used += c.width().unwrap_or(0);
        used <= width
    });
    fits.count()
}

/// A text in lines of at most `width` characters, each broken as by [`wrap`]. Lines that continue others are indented.
pub fn folded(text: &str, width: usize) -> Vec<String> {
    let lines = text.lines().flat_map(|line| {
        let indent = line.len() - line.trim_start().len();
        let hanging = " ".repeat(if indent > 0 { indent } else { 2 });
        wrap(line, width, &hanging)
    });
    lines.collect()
}

/// A name such as `optimizer=adam,learning_rate=0.01` by its parts: each key with its value.
fn parts(name: &str) -> Option<Vec<(&str, &str)>> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, c) in name.char_indices().chain([(name.len(), ',')]) {
        match c {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth -= 1,
            ',' if depth <= 0 || at == name.len() => {
                parts.push(name[start..at].split_once('=')?);
                start = at + 1;
            }
            _ => {}
        }
    }
    Some(parts)
}

/// Names without what all of them have in common, and without their keys where one is still longer than `most`; then
/// also the keys, for a caption.
pub fn shortened(names: Vec<String>, most: usize) -> (Vec<String>, Option<String>) {
    let mut columns = Columns {
        head: vec![String::new()],
        rows: names.into_iter().map(|name| vec![name]).collect(),
    };
    shorten(&mut columns, 0, false);
    let short: Vec<String> = columns.rows.into_iter().flatten().collect();
    let are_long = short.iter().any(|name| width(name) > most);
    let all: Option<Vec<Vec<(&str, &str)>>> = short.iter().map(|name| parts(name)).collect();
    let all = all.filter(|_| are_long).unwrap_or_default();
    let joined = |parts: &mut dyn Iterator<Item = &str>| parts.collect::<Vec<_>>().join(", ");
    let keys = |names: &Vec<(&str, &str)>| joined(&mut names.iter().map(|(key, _)| *key));
    let first = all.first().map(keys);
    match first {
        Some(first) if all.iter().all(|names| keys(names) == first) => {
            let values = all
                .iter()
                .map(|names| joined(&mut names.iter().map(|(_, value)| *value)));
            (values.collect(), Some(first))
        }
        _ => (short.clone(), None),
    }
}

/// Removes the common parts of the names in a column; with `without_keys` also their keys, which are moved to the
/// header. Names of other forms are not changed.
fn shorten(columns: &mut Columns, at: usize, without_keys: bool) {
    let Some((keys, names)) = differing(columns, at, without_keys) else {
        return;
    };
    let head = without_keys.then(|| format!("{} ({})", columns.head[at], keys.join(", ")));
    // A header with many keys can be wider than the names.
    let before = columns.rows.iter().map(|row| width(&row[at])).max();
    if head
        .as_ref()
        .is_some_and(|head| Some(width(head)) >= before)
    {
        return;
    }
    for (row, name) in columns.rows.iter_mut().zip(names) {
        row[at] = name;
    }
    if let Some(head) = head {
        columns.head[at] = head;
    }
}

/// Removes the keys of the names in a column, and returns them as a line.
fn without_keys(columns: &mut Columns, at: usize) -> Option<String> {
    let (keys, names) = differing(columns, at, true)?;
    let line = format!(" {} by {}", columns.head[at], keys.join(", "));
    for (row, name) in columns.rows.iter_mut().zip(names) {
        row[at] = name;
    }
    Some(line)
}

/// The keys by which the names in a column differ, and the names with only these; none if there is nothing to remove.
fn differing(
    columns: &Columns,
    at: usize,
    without_keys: bool,
) -> Option<(Vec<String>, Vec<String>)> {
    if columns.rows.len() < 2 {
        return None;
    }
    let all: Option<Vec<Vec<(&str, &str)>>> =
        columns.rows.iter().map(|row| parts(row.get(at)?)).collect();
    let all = all?;
    let keys: Vec<&str> = all[0].iter().map(|(key, _)| *key).collect();
    let same =
        |names: &Vec<(&str, &str)>| names.iter().map(|(key, _)| *key).eq(keys.iter().copied());
    if !all.iter().all(same) {
        return None;
    }
    let differs = |part: &usize| {
        let values = all.iter().map(|names| names[*part].1);
        values.collect::<BTreeSet<_>>().len() > 1
    };
    let kept: Vec<usize> = (0..keys.len()).filter(differs).collect();
    if kept.is_empty() || !without_keys && kept.len() == keys.len() {
        return None;
    }
    let shown = |names: &Vec<(&str, &str)>| {
        let shown = kept.iter().map(|part| match (names[*part], without_keys) {
            ((_, value), true) => value.to_owned(),
            ((key, value), false) => format!("{key}={value}"),
        });
        shown
            .collect::<Vec<_>>()
            .join(if without_keys { ", " } else { "," })
    };
    let names = all.iter().map(shown).collect();
    let keys = kept.iter().map(|part| keys[*part].to_owned());
    Some((keys.collect(), names))
}

#[cfg(test)]
mod tests;
