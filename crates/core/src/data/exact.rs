//! Numbers that are names: of nodes, graphs and groups.

use super::DataError;
use super::records::{Column, ColumnKind, Records};

/// All whole numbers below are numbers of 64 bits.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Refuses numbers that stand for something else, such as for a node, and may be rounded: two of them could be one. With
/// the type `category`, which the help says to give to a column, they are read as text.
pub(super) fn refuse_rounded(
    records: &Records,
    column: usize,
    key: &str,
    typed: &str,
) -> Result<(), DataError> {
    let Column { name, kind, .. } = &records.columns()[column];
    if matches!(kind, ColumnKind::Text | ColumnKind::Categories { .. }) {
        return Ok(());
    }
    let mut rows = 0..records.len();
    let Some(row) = rows.find(|row| records.number(*row, column, 0).abs() >= EXACT) else {
        return Ok(());
    };
    let message = format!(
        "the values of `{name}` are rounded, so that different ones are equal: row {} has one of about {}",
        row + 1,
        records.number(row, column, 0)
    );
    Err(DataError::new(message)
        .key(key)
        .note(format!("as numbers, only whole ones below {EXACT} are exact"))
        .help(format!(
            "add `[[data.columns]]` with `name = \"{typed}\"` and `type = \"category\"`, so that they are read as text"
        )))
}
