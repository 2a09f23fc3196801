//! Tables that do not have the columns of a run.

use std::collections::BTreeSet;

use super::of_nodes;
use crate::data::DataError;
use crate::data::incoming::Incoming;
use crate::data::read::tables::encode;
use crate::data::records::Column;
use crate::diagnostic::{counted, nearest};
use crate::show::listed;

/// Refuses rows with a different number of values than the array.
pub(super) fn refuse_other_width(
    incoming: &Incoming<'_>,
    names: &[String],
    apart: &BTreeSet<String>,
    column: &Column,
) -> Result<(), DataError> {
    let values: Vec<&String> = names.iter().filter(|name| !apart.contains(*name)).collect();
    if values.len() == column.len() {
        return Ok(());
    }
    let named = format!("or name the array `{}` in JSON lines", column.name);
    let error = DataError::new(format!(
        "{} has {} per item, but the network takes {} (shape {:?})",
        incoming.name(),
        counted(values.len(), "value"),
        column.len(),
        column.shape
    ));
    let more = values.len().saturating_sub(column.len());
    Err(match more {
        1..=8 => {
            let last: Vec<_> = values[column.len()..]
                .iter()
                .map(|name| format!("`{}`", encode::shorten(name)))
                .collect();
            error.help(format!(
                "exclude the columns that are not part of it with `--ignore COLUMN`, such as {}; {named}",
                last.join(", ")
            ))
        }
        _ => error.help(format!(
            "provide one column per value, in the order of the array; {named}"
        )),
    })
}

/// Refuses to ignore columns that do not exist, and those that the run needs.
pub(super) fn refuse_ignored(
    incoming: &Incoming<'_>,
    names: &[String],
    used: &BTreeSet<String>,
) -> Result<(), DataError> {
    let mut ignored = incoming.ignore.iter();
    if let Some(name) = ignored.clone().find(|name| used.contains(*name)) {
        let message = format!("`--ignore` names the column `{name}`, which the run was trained on");
        return Err(DataError::new(message).help(format!("remove `--ignore {name}`")));
    }
    let is_unknown = |name: &&String| !names.is_empty() && !names.contains(name);
    let Some(name) = ignored.find(is_unknown) else {
        return Ok(());
    };
    let error = DataError::new(format!(
        "{} has no column `{name}`, which `--ignore` names",
        incoming.name()
    ))
    .note(format!("its columns are {}", first_of(names)));
    Err(match nearest(name, names.iter().map(String::as_str)) {
        Some(other) => error.help(format!("did you mean `{other}`?")),
        None => error.help(format!("remove `--ignore {name}`")),
    })
}

/// The first of some names.
fn first_of<T: AsRef<str>>(names: &[T]) -> String {
    const SHOWN: usize = 8;
    let shown = names.iter().take(SHOWN);
    let shown = listed(shown.map(|name| encode::shorten(name.as_ref())));
    let more = if names.len() > SHOWN { ", …" } else { "" };
    format!("{shown}{more}")
}

/// A table without some of the columns.
pub(super) fn lacks(incoming: &Incoming<'_>, lacking: &[&String], names: &[String]) -> DataError {
    let is_kept = lacking.iter().all(|name| incoming.keep.contains(name));
    let what = if is_kept {
        "which `--keep` names"
    } else {
        "which the run was trained on"
    };
    let error = DataError::new(format!(
        "{} lacks the {} {}, {what}",
        incoming.name(),
        if lacking.len() == 1 {
            "column"
        } else {
            "columns"
        },
        first_of(lacking)
    ))
    .note(format!("its columns are {}", first_of(names)));
    let meant = nearest(lacking[0], names.iter().map(String::as_str));
    match meant {
        Some(other) => error.help(format!(
            "rename the column `{other}` if it is `{}`",
            lacking[0]
        )),
        None if incoming.are_pairs() => {
            let ends = of_nodes(incoming).join("` and `");
            error.help(format!(
                "name both nodes of each pair in the columns `{ends}`"
            ))
        }
        None => error.help(
            "use a table with the columns of the run's data; for `predict`, the target is optional",
        ),
    }
}
