//! Columns of numbers that are probably not quantities: markers of missing values, and row numbers.

use std::collections::{BTreeMap, BTreeSet};

use super::DataError;
use super::profile::short;
use super::records::{ColumnKind, Records};
use super::sentinel::Sentinel;
use crate::diagnostic::counted;
use crate::spec::data::{FilesSpec, Format};
use crate::spec::document::Value;

/// Columns that are listed in one message.
const NAMED: usize = 6;

/// Numbers that probably mean missing, one warning each.
pub fn sentinels(files: &FilesSpec, records: &Records, used: &[usize]) -> Vec<DataError> {
    let mut found: BTreeMap<String, Vec<(usize, Sentinel)>> = BTreeMap::new();
    for (at, sentinel) in all(files, records, used) {
        found
            .entry(short(sentinel.value))
            .or_default()
            .push((at, sentinel));
    }
    let warnings = found.into_iter().map(|(value, columns)| {
        let (at, first) = columns[0];
        let name = &records.columns()[at].name;
        let times = match first.times {
            1 => "once".to_owned(),
            num => format!("{num} times"),
        };
        let rest = first.rest.map(short);
        let message = match columns.as_slice() {
            [_] => format!(
                "`{name}` contains {value} {times}, while its other values are from {} to {}: it probably means missing",
                rest[0], rest[1]
            ),
            _ => {
                let names: Vec<_> = columns.iter().take(NAMED).map(|(at, s)| format!("`{}` ({})", records.columns()[*at].name, s.times)).collect();
                let more = match columns.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!(
                    "{} contain {value}, which probably means missing: {}{more}; the other values of `{name}` are from {} to {}",
                    counted(columns.len(), "column"), names.join(", "), rest[0], rest[1]
                )
            }
        };
        let mark = if first.value.fract() == 0.0 && first.value.abs() < 1e15 { format!("{}", first.value) } else { value };
        DataError::new(message).key("data.path").help(how(files, name, &mark, columns.len() > 1))
    });
    warnings.collect()
}

/// The columns with numbers that probably mean missing, without a setting about them.
pub fn all(files: &FilesSpec, records: &Records, used: &[usize]) -> Vec<(usize, Sentinel)> {
    let mut used = used.to_vec();
    used.sort_unstable();
    used.dedup();
    if files.roles.values.missing_values.is_some() {
        return Vec::new();
    }
    let is_open = |at: &usize| {
        let name = &records.columns()[*at].name;
        let said = files.roles.of(name);
        said.is_none_or(|said| said.missing_values.is_none())
    };
    let found = used.into_iter().filter(is_open).flat_map(|at| {
        let ends = records.header.ends.get(at);
        let found = ends.map(|ends| ends.sentinels()).unwrap_or_default();
        let column = &records.columns()[at];
        // -1 follows the end of a list, and marks ignored pixels in a mask.
        let is_padded = column.kind == ColumnKind::Whole && column.len() > 1;
        let found = found
            .into_iter()
            .filter(move |found| !is_padded || found.value != -1.0);
        found.map(move |sentinel| (at, sentinel))
    });
    found.collect()
}

/// The keys that treat a number as missing.
fn how(files: &FilesSpec, name: &str, mark: &str, are_several: bool) -> String {
    let missing = "and how to handle missing values, such as `missing = \"drop\"`";
    let of_column = format!("`[[data.columns]]` with `name = {}` and", quoted(name));
    match &files.format {
        Format::Csv { missing_values, .. } if are_several => {
            // Known markers stay known: the key replaces them.
            let mut all: Vec<_> = missing_values.iter().map(|text| quoted(text)).collect();
            all.push(mark.to_owned());
            format!(
                "set `missing_values = [{}]` under `[data]`, {missing}; if it is a number, set {of_column} `missing_values = []`",
                all.join(", ")
            )
        }
        Format::Npy { .. } | Format::Idx { .. } => format!(
            "set `missing_values = [{mark}]` under `[data]`, {missing}; if it is a number, set `missing_values = []`"
        ),
        _ if are_several => format!(
            "set `missing_values = [{mark}]` under `[data]`, {missing}; if it is a number, set `missing_values = []`"
        ),
        _ => format!(
            "set {of_column} `missing_values = [{mark}]`, {missing}; if it is a number, set `missing_values = []` there"
        ),
    }
}

/// Features that number the rows, unless the experiment lists them.
pub fn row_numbers(files: &FilesSpec, records: &Records, features: &[usize]) -> Vec<DataError> {
    if files.roles.features.is_some() {
        return Vec::new();
    }
    let inputs = files.roles.inputs.as_slice();
    let is_listed = |name: &String| {
        let mut listed = inputs
            .iter()
            .flat_map(|input| input.columns.iter().flatten());
        listed.any(|column| column == name)
    };
    let place = if inputs.is_empty() {
        "list it with the others in `features`"
    } else {
        "list it in the `columns` of an input"
    };
    let numbered = features.iter().filter_map(|at| {
        let column = &records.columns()[*at];
        if is_listed(&column.name) {
            return None;
        }
        let is_number = matches!(column.kind, ColumnKind::Doubles | ColumnKind::Numbers | ColumnKind::Whole);
        if !is_number || column.len() != 1 || !names_rows(&column.name) {
            return None;
        }
        let [first, last] = distinct_whole(records, *at)?;
        let name = &column.name;
        let is_counting = last - first + 1.0 == records.len() as f64;
        // Without column names, the first column is arbitrary.
        if !is_counting && name == "column_1" {
            return None;
        }
        let message = if is_counting { format!("the feature `{name}` numbers the rows from {first} to {last}") } else { format!("the feature `{name}` is a different integer in each row, like an identifier") };
        Some(
            DataError::new(message)
                .key("data.path")
                .note("it carries no information about new items, and in a file sorted by target it leaks the target")
                .help(format!("set `ignore = [{}]`; to keep it, {place}", quoted(name))),
        )
    });
    numbered.collect()
}

/// Whether a column numbers the rows, judged by its name and values, in any order.
pub fn numbers_rows(records: &Records, column: usize) -> bool {
    let of = &records.columns()[column];
    let is_number = matches!(of.kind, ColumnKind::Doubles | ColumnKind::Whole);
    is_number
        && of.shape.is_empty()
        && names_rows(&of.name)
        && distinct_whole(records, column)
            .is_some_and(|[first, last]| last - first + 1.0 == records.len() as f64)
}

/// Whether a column's name is a usual name for row numbers.
pub fn names_rows(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "id",
        "index",
        "row",
        "rowid",
        "rownames",
        "row_number",
        "rownumber",
        "idx",
        "column_1",
    ];
    let name = name.trim().to_lowercase();
    NAMES.contains(&name.as_str()) || name.ends_with("_id") || name.starts_with("unnamed: 0")
}

/// The least and the largest value of a column, if all are distinct integers.
fn distinct_whole(records: &Records, column: usize) -> Option<[f64; 2]> {
    const FEWEST: usize = 5;
    if records.len() < FEWEST {
        return None;
    }
    let mut seen = BTreeSet::new();
    for row in 0..records.len() {
        let value = records.number(row, column, 0);
        if value.fract() != 0.0 || !seen.insert(value as i64) {
            return None;
        }
    }
    Some([*seen.first()? as f64, *seen.last()? as f64])
}

fn quoted(text: &str) -> String {
    Value::Str(text.to_owned()).to_toml()
}
