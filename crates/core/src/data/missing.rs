//! Items that lack a value: refused with their places, or left out.

use rayon::prelude::*;

use super::DataError;
use super::read::tables::first_place;
use super::records::Records;
use super::uses::Uses;
use crate::diagnostic::counted;
use crate::spec::data::{FilesSpec, Format, Missing};

/// The columns in which a missing value matters.
fn needed(uses: &Uses) -> Vec<usize> {
    let all = uses.used().chain(uses.order_by).chain(uses.group_by);
    let mut needed: Vec<usize> = all.collect();
    needed.sort_unstable();
    needed.dedup();
    needed
}

/// Refuses columns without a single value: there is nothing to learn from or to fill them with.
pub(super) fn refuse_empty_columns(
    files: &FilesSpec,
    records: &Records,
    uses: &Uses,
) -> Result<(), DataError> {
    let is_empty = |at: &usize| records.header.extents[*at].missing == records.len() as u64;
    let empty: Vec<_> = needed(uses).into_iter().filter(is_empty).collect();
    let Some(first) = empty.first() else {
        return Ok(());
    };
    // An item of an array lacks a value when it lacks one of several.
    if records.columns()[*first].len() > 1 {
        return Ok(());
    }
    let names: Vec<_> = empty
        .iter()
        .map(|at| &records.columns()[*at].name)
        .collect();
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    let have = if names.len() == 1 {
        "column {} has no"
    } else {
        "columns {} have no"
    };
    let error = DataError::new(format!(
        "{} value at all",
        have.replace("{}", &quoted.join(", "))
    ));
    let is_target = uses.targets.contains(first);
    Err(match has_names(files) {
        true if is_target || !uses.features.contains(first) => error
            .key(if is_target {
                "data.target"
            } else {
                "data.split"
            })
            .help("name another column"),
        true => error
            .key("data.ignore")
            .help(format!("name {} in `ignore`", quoted.join(", "))),
        false => error.help("give arrays that hold numbers"),
    })
}

/// Whether the file can say something of single columns.
fn has_names(files: &FilesSpec) -> bool {
    !matches!(
        files.format,
        Format::Npy { .. } | Format::Idx { .. } | Format::ImageFolder { .. } | Format::Text
    )
}

/// Columns with how many values they lack, and where the first is lacked.
fn show_missing(files: &FilesSpec, records: &Records, columns: &[usize]) -> String {
    /// Looking for a place reads the files once more.
    const PLACED: usize = 3;
    let shown = columns.iter().enumerate().map(|(num, at)| {
        let name = &records.columns()[*at].name;
        let missing = records.header.extents[*at].missing;
        let place = (num < PLACED)
            .then(|| missing_place(files, records, *at))
            .flatten();
        match place {
            Some(place) if missing == 1 => format!("`{name}` 1, at {place}"),
            Some(place) => format!("`{name}` {missing}, the first at {place}"),
            None => format!("`{name}` {missing}"),
        }
    });
    shown.collect::<Vec<_>>().join("; ")
}

/// Where a column lacks a value first.
fn missing_place(files: &FilesSpec, records: &Records, column: usize) -> Option<String> {
    let name = &records.columns()[column].name;
    if let Some(place) = first_place(files, name, &|value| value.is_none()) {
        return Some(place);
    }
    let row = (0..records.len()).find(|row| records.lacks(*row, column))?;
    // Counted from the beginning of its file, unless items were left out.
    if records.header.skipped.is_empty() {
        let start = records.header.files.iter().rfind(|start| **start <= row);
        let number = row - start.copied().unwrap_or(0);
        let path = super::read::parts(files)
            .flat_map(|(_, paths)| paths)
            .nth(records.file_of(row).saturating_sub(1));
        match (path, &files.format) {
            (Some(path), Format::Npz | Format::Safetensors) => {
                Some(format!("`{path}`, item {number}"))
            }
            _ => Some(format!("item {number}")),
        }
    } else {
        Some(format!("item {row}"))
    }
}

/// Nothing is left, since each item lacks a value.
pub(super) fn all_dropped(files: &FilesSpec, records: &Records, uses: &Uses) -> DataError {
    let missing = |at: &usize| records.header.extents[*at].missing > 0;
    let policy = |at: &usize| files.roles.missing_of(&records.columns()[*at].name);
    let columns: Vec<_> = needed(uses)
        .into_iter()
        .filter(|at| missing(at) && policy(at) == Missing::Drop)
        .collect();
    DataError::new(
        "no item is left to train on: each lacks a value of a column that leaves such items out",
    )
    .key("data.missing")
    .note(format!(
        "of {}, values are missing in {}",
        counted(records.len(), "item"),
        show_missing(files, records, &columns)
    ))
    .help("fill them, such as with `missing = \"median\"`, or name the columns in `ignore`")
}

/// Which rows are left out because a value is missing; empty when none is. Refuses missing values that
/// the file says nothing about.
pub(super) fn dropped(
    files: &FilesSpec,
    records: &Records,
    uses: &Uses,
) -> Result<Vec<bool>, DataError> {
    let missing = |at: usize| records.header.extents[at].missing;
    let policy = |at: usize| files.roles.missing_of(&records.columns()[at].name);
    let mut used = needed(uses);
    used.retain(|at| missing(*at) > 0);
    let is_filled = |at: &usize| uses.features.contains(at) && !uses.targets.contains(at);
    let refused: Vec<usize> = used
        .iter()
        .copied()
        .filter(|at| match policy(*at) {
            Missing::Refuse => true,
            Missing::Drop => false,
            _ => !is_filled(at),
        })
        .collect();
    if !refused.is_empty() {
        let mut error = DataError::new(format!(
            "{}: values are missing in {}",
            counted(records.len(), "item"),
            show_missing(files, records, &refused)
        ))
        .key("data.missing");
        let is_array = |at: &usize| records.columns()[*at].shape.len() > 1;
        let has_names = has_names(files);
        // Without names of columns, what is said holds for the targets too.
        if refused.iter().any(is_filled) && (has_names || refused.iter().all(is_filled)) {
            let some = if refused.iter().any(is_array) {
                "`missing = \"zero\"` or `\"drop\"`"
            } else {
                "`missing = \"mean\"`, `\"median\"`, `\"most_common\"`, `\"zero\"` or `\"drop\"`"
            };
            error = error.help(if has_names {
                format!("write {some} under `[data]`, or in `[[data.columns]]` for one column")
            } else {
                format!("write {some} under `[data]`")
            });
        }
        if let Some(at) = refused.iter().find(|at| !is_filled(at)) {
            let name = &records.columns()[*at].name;
            error = error.help(if has_names { format!(
                "what is to be learned or ordered by cannot be filled in: write `[[data.columns]]` with `name = \"{name}\"` and `missing = \"drop\"` to leave such items out"
            ) } else { "targets cannot be filled in: write `missing = \"drop\"` under `[data]` to leave such items out".into() });
        }
        return Err(error);
    }
    let drops: Vec<usize> = used
        .into_iter()
        .filter(|at| policy(*at) == Missing::Drop)
        .collect();
    if drops.is_empty() {
        return Ok(Vec::new());
    }
    let is_missing = |row: usize| drops.iter().any(|at| records.lacks(row, *at));
    Ok((0..records.len()).into_par_iter().map(is_missing).collect())
}
