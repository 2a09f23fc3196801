//! Items in order: what they are ordered and grouped by, and which of them directly follow each other.

use std::collections::BTreeMap;

use super::DataError;
use super::exact::refuse_rounded;
use super::read::tables::first_place;
use super::records::{ColumnKind, Records};
use super::split::Assigned;
use super::time::{FORMS, instant};
use super::uses::Uses;
use crate::spec::data::{FilesSpec, WindowSpec};

/// The order of all records, including those outside the splits.
#[derive(Debug)]
pub struct Series {
    /// The sort key of each; NaN if missing.
    pub keys: Option<Vec<f64>>,
    /// The group of each.
    pub groups: Option<Vec<i64>>,
}

impl Series {
    /// Reads keys and groups.
    pub fn new(files: &FilesSpec, records: &Records, uses: &Uses) -> Result<Self, DataError> {
        Ok(Self {
            keys: match uses.order_by {
                Some(column) => Some(keys(files, records, column)?),
                None => None,
            },
            groups: match uses.group_by {
                Some(column) => {
                    let name = &records.columns()[column].name;
                    refuse_rounded(records, column, "data.split.group_by", name)?;
                    Some(groups(records, column))
                }
                None => None,
            },
        })
    }

    fn group(&self, row: u32) -> i64 {
        self.groups
            .as_ref()
            .map_or(0, |groups| groups[row as usize])
    }

    /// Refuses a group with items in two splits, which happens if splits have files of their own.
    pub fn refuse_shared(
        &self,
        records: &Records,
        uses: &Uses,
        assigned: &Assigned,
    ) -> Result<(), DataError> {
        let (Some(_), Some(column)) = (&self.groups, uses.group_by) else {
            return Ok(());
        };
        let splits = [
            ("train", &assigned.train),
            ("valid", &assigned.valid),
            ("test", &assigned.test),
        ];
        let mut seen = BTreeMap::new();
        for (split, rows) in splits {
            for row in rows {
                let (other, first) = *seen.entry(self.group(*row)).or_insert((split, *row));
                if other == split {
                    continue;
                }
                let name = &records.columns()[column].name;
                let shown = shown_value(records, first, column);
                let message = format!(
                    "the group {shown} of `{name}` is in the {other} and the {split} split"
                );
                return Err(DataError::new(message)
                    .key("data.split.group_by")
                    .note("`group_by` keeps all items of a group in one split, since a network that knows a group predicts its other items better than those of new groups")
                    .help("remove the items of the group from one of the files, or name all files in `path`, so that whole groups are split")
                    .help("or remove `group_by`, if groups may be in several splits"));
            }
        }
        Ok(())
    }

    /// The first row of each window, as its position in `rows`, which are sorted by file and group. No window crosses
    /// the end of a file or group, or a row that is not in `rows`: the rows on its two sides are not consecutive.
    pub fn window_starts(
        &self,
        records: &Records,
        places: &[u32],
        rows: &mut [u32],
        window: &WindowSpec,
    ) -> Vec<u32> {
        rows.sort_by_key(|row| places[*row as usize]);
        let follows = |a: &u32, b: &u32| {
            places[*a as usize] + 1 == places[*b as usize]
                && self.group(*a) == self.group(*b)
                && records.is_one_stretch(*a as usize, *b as usize)
        };
        let mut starts = Vec::new();
        let mut before = 0;
        for piece in rows.chunk_by(follows) {
            let reach = window.length + window.horizon;
            let num = (piece.len() + 1).saturating_sub(reach);
            let inside = (0..num).step_by(window.stride);
            starts.extend(inside.map(|at| (before + at) as u32));
            before += piece.len();
        }
        starts
    }

    /// The position of each record among all, by file, group and order.
    pub fn places(&self, records: &Records) -> Vec<u32> {
        let mut order: Vec<u32> = (0..records.len() as u32).collect();
        let key = |row: u32| self.keys.as_ref().map_or(0.0, |keys| keys[row as usize]);
        order.sort_by(|a, b| {
            let file = |row: u32| records.file_of(row as usize);
            let (of_a, of_b) = ((file(*a), self.group(*a)), (file(*b), self.group(*b)));
            of_a.cmp(&of_b).then(key(*a).total_cmp(&key(*b)))
        });
        let mut places = vec![0; order.len()];
        for (place, row) in (0..).zip(order) {
            places[row as usize] = place;
        }
        places
    }
}

/// The sort keys of records. Text sorts alphabetically, with ten before two and April before January: so keys must be
/// numbers or dates.
fn keys(files: &FilesSpec, records: &Records, column: usize) -> Result<Vec<f64>, DataError> {
    let of = &records.columns()[column];
    let refuse = |what: String| {
        let message = format!("items cannot be ordered by `{}`: {what}", of.name);
        let error = DataError::new(message).key("data.split.order_by");
        let known = records
            .header
            .oddity_of(&of.name)
            .filter(|odd| odd.message.contains("dates"));
        let error = match known {
            Some(odd) => DataError {
                notes: odd.notes.clone(),
                helps: odd
                    .helps
                    .iter()
                    .filter(|help| help.contains("date_format"))
                    .cloned()
                    .collect(),
                ..error
            },
            None => error.help(format!(
                "use numbers or dates such as {FORMS}; set `date_format` for other dates"
            )),
        };
        error.help(
            "or, if the items are already in order, set `order = \"time\"` instead of `order_by`",
        )
    };
    if of.len() != 1 {
        return Err(refuse(format!("an item has {} values there", of.len())));
    }
    let wrong = |text: &str| {
        let place = first_place(files, &of.name, &|value| value == Some(text));
        let place = place.map_or(String::new(), |place| format!("{place} contains "));
        refuse(format!(
            "{place}`{text}`, which is neither a number nor a date"
        ))
    };
    match &of.kind {
        ColumnKind::Categories { names } => {
            let instants: Vec<Option<f64>> = names.iter().map(|name| instant(name)).collect();
            // The first in file order, not by name.
            let code = |row| records.category(row, column);
            let mut codes = (0..records.len()).filter_map(code);
            if instants.contains(&None)
                && let Some(code) = codes.find(|code| instants[*code].is_none())
            {
                return Err(wrong(&names[code]));
            }
            let key = |row| {
                code(row)
                    .and_then(|code| instants[code])
                    .unwrap_or(f64::NAN)
            };
            Ok((0..records.len()).map(key).collect())
        }
        ColumnKind::Text => {
            let key = |row| match records.text(row, column) {
                Some(text) => instant(text).ok_or_else(|| wrong(text)),
                None => Ok(f64::NAN),
            };
            (0..records.len()).map(key).collect()
        }
        _ => Ok((0..records.len())
            .map(|row| records.number(row, column, 0))
            .collect()),
    }
}

/// A value as it is shown.
fn shown_value(records: &Records, row: u32, column: usize) -> String {
    let row = row as usize;
    let text = match &records.columns()[column].kind {
        ColumnKind::Categories { names } => {
            let code = records.category(row, column);
            code.and_then(|code| names.get(code)).cloned()
        }
        ColumnKind::Text => records.text(row, column).map(str::to_owned),
        _ => Some(records.number(row, column, 0).to_string()),
    };
    text.map_or("without a value".to_owned(), |text| format!("`{text}`"))
}

fn groups(records: &Records, column: usize) -> Vec<i64> {
    let rows = 0..records.len();
    if records.columns()[column].kind != ColumnKind::Text {
        return rows
            .map(|row| records.number(row, column, 0).to_bits() as i64)
            .collect();
    }
    let texts: BTreeMap<&str, i64> = rows
        .clone()
        .filter_map(|row| records.text(row, column))
        .map(|text| (text, 0))
        .collect();
    let texts: BTreeMap<&str, i64> = texts.into_keys().zip(0..).collect();
    rows.map(|row| {
        let text = records.text(row, column);
        text.and_then(|text| texts.get(text).copied()).unwrap_or(-1)
    })
    .collect()
}
