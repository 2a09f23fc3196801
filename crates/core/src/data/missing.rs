//! Items with missing values: refused with their places, or dropped.

use rayon::prelude::*;

use super::DataError;
use super::read::tables::first_place;
use super::records::{ColumnKind, Records};
use super::uses::Uses;
use crate::diagnostic::counted;
use crate::spec::data::{FilesSpec, Format, Missing};

/// The columns in which a missing value matters.
fn needed(uses: &Uses) -> Vec<usize> {
    let others = [uses.weight, uses.order_by, uses.group_by];
    let all = uses.used().chain(others.into_iter().flatten());
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
    // An item of an array is missing if one of its values is.
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
        "{} values at all",
        have.replace("{}", &quoted.join(", "))
    ));
    let is_target = uses.all_targets().any(|at| at == *first);
    Err(match has_names(files) {
        true if is_target || !uses.features.contains(first) => error
            .key(if is_target {
                "data.target"
            } else if uses.weight == Some(*first) {
                "data.weight"
            } else {
                "data.split"
            })
            .help("use another column"),
        true => error
            .key("data.ignore")
            .help(format!("list {} in `ignore`", quoted.join(", "))),
        false => error.help("use arrays that contain numbers"),
    })
}

/// Whether the file can configure single columns.
fn has_names(files: &FilesSpec) -> bool {
    !matches!(
        files.format,
        Format::Npy { .. } | Format::Idx { .. } | Format::ImageFolder { .. } | Format::Text
    )
}

/// Columns with their number of missing values, and the place of the first one.
fn show_missing(files: &FilesSpec, records: &Records, columns: &[usize]) -> String {
    /// Finding a place reads the files again.
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

/// The first missing value of a column.
fn missing_place(files: &FilesSpec, records: &Records, column: usize) -> Option<String> {
    let name = &records.columns()[column].name;
    if let Some(place) = first_place(files, name, &|value| value.is_none()) {
        return Some(place);
    }
    let row = (0..records.len()).find(|row| records.lacks(*row, column))?;
    Some(item_place(files, records, row))
}

/// The place of an item by its number.
pub(super) fn item_place(files: &FilesSpec, records: &Records, row: usize) -> String {
    let number = records.number_in_file(row);
    let path = super::read::parts(files)
        .flat_map(|(_, paths)| paths)
        .nth(records.file_of(row).saturating_sub(1));
    match (path, &files.format) {
        (Some(path), Format::Npz | Format::Safetensors) => {
            format!("`{path}`, item {number}")
        }
        _ => format!("item {number}"),
    }
}

/// Nothing is left, since each item has a missing value.
pub(super) fn all_dropped(files: &FilesSpec, records: &Records, uses: &Uses) -> DataError {
    let missing = |at: &usize| records.header.extents[*at].missing > 0;
    let policy = |at: &usize| files.roles.missing_of(&records.columns()[*at].name);
    let columns: Vec<_> = needed(uses)
        .into_iter()
        .filter(|at| missing(at) && policy(at) == Missing::Drop)
        .collect();
    // Elements of arrays have no typical value.
    let has_arrays = columns
        .iter()
        .any(|at| !records.columns()[*at].shape.is_empty());
    let with = if has_arrays { "zero" } else { "median" };
    DataError::new(
        "no items are left to train on: each is missing a value in a column with `missing = \"drop\"`",
    )
    .key("data.missing")
    .note(format!(
        "{}: values are missing in {}",
        counted(records.len(), "item"),
        show_missing(files, records, &columns)
    ))
    .help(format!(
        "impute them, for example with `missing = \"{with}\"`, or list the columns in `ignore`"
    ))
}

/// The columns whose missing values drop their rows. Refuses missing values that the file does not handle.
pub(super) fn dropping(
    files: &FilesSpec,
    records: &Records,
    uses: &Uses,
) -> Result<Vec<usize>, DataError> {
    let missing = |at: usize| records.header.extents[at].missing;
    let policy = |at: usize| files.roles.missing_of(&records.columns()[at].name);
    let mut used = needed(uses);
    used.retain(|at| missing(*at) > 0);
    let is_filled =
        |at: &usize| uses.features.contains(at) && !uses.all_targets().any(|target| target == *at);
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
        // Without column names, the settings apply to the targets too.
        if refused.iter().any(is_filled) && (has_names || refused.iter().all(is_filled)) {
            let is_text = |at: &usize| records.columns()[*at].kind == ColumnKind::Text;
            let some = if refused.iter().all(is_text) {
                "`missing = \"drop\"`"
            } else if refused.iter().any(is_array) {
                "`missing = \"zero\"` or `\"drop\"`"
            } else {
                "`missing = \"mean\"`, `\"median\"`, `\"most_common\"`, `\"zero\"` or `\"drop\"`"
            };
            error = error.help(if has_names {
                format!("set {some} under `[data]`, or in `[[data.columns]]` for one column")
            } else {
                format!("set {some} under `[data]`")
            });
        }
        if let Some(at) = refused.iter().find(|at| !is_filled(at)) {
            let name = &records.columns()[*at].name;
            error = error.help(if has_names { format!(
                "targets, weights and the values of `order_by` cannot be imputed: add `[[data.columns]]` with `name = \"{name}\"` and `missing = \"drop\"` to drop such items"
            ) } else { "targets cannot be imputed: set `missing = \"drop\"` under `[data]` to drop such items".into() });
        }
        return Err(error);
    }
    used.retain(|at| policy(*at) == Missing::Drop);
    Ok(used)
}

/// Which rows are dropped because a value is missing; empty if none is. Refuses as [`dropping`] does.
pub(super) fn dropped(
    files: &FilesSpec,
    records: &Records,
    uses: &Uses,
) -> Result<Vec<bool>, DataError> {
    let drops = dropping(files, records, uses)?;
    if drops.is_empty() {
        return Ok(Vec::new());
    }
    let is_missing = |row: usize| drops.iter().any(|at| records.lacks(row, *at));
    Ok((0..records.len()).into_par_iter().map(is_missing).collect())
}
