//! Rows of new tables, by the columns that a run was trained on.

mod refused;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rayon::prelude::*;

use super::cell::{Cells, List};
use super::encode::{self, Chunk, Encoder};
use super::ends::{Tried, is_total};
use super::infer::{Decided, Names};
use super::writing::Writing;
use super::{BATCH_BYTES, Cell, Table, batches, csv, json_lines};
use crate::data::DataError;
use crate::data::encode::{InputEncoder, TargetEncoder};
use crate::data::incoming::{Id, Incoming, Origin, Raw, Take};
use crate::data::records::{Column, Skipped, Writer};
use crate::diagnostic::{Reason, counted};
use crate::spec::data::{DataKind, FilesSpec, RowsSpec};
use refused::{lacks, refuse_ignored, refuse_other_width};

/// Reads a table.
pub(in crate::data) fn read(
    incoming: &Incoming<'_>,
    files: &FilesSpec,
    take: Take<'_>,
) -> Result<(), DataError> {
    let transforms = incoming.transforms;
    if let Some(mut table) = csv::Csv::of(files) {
        let names = transforms.columns.iter().map(|column| column.name.as_str());
        table.named = names
            .chain(incoming.keep.iter().map(String::as_str))
            .collect();
        let around = table.rows;
        let inner = RowsSpec {
            skip_rows_after_header: 0,
            skip_footer: 0,
            ..around.clone()
        };
        table.rows = &inner;
        return rows(&table, incoming, files, around, take);
    }
    let around = RowsSpec::default();
    #[cfg(feature = "parquet")]
    if files.format == crate::spec::data::Format::Parquet {
        let ignore = unused(incoming);
        let table = super::parquet::Parquet { ignore: &ignore };
        return rows(&table, incoming, files, &around, take);
    }
    #[cfg(not(feature = "parquet"))]
    if files.format == crate::spec::data::Format::Parquet {
        return Err(super::without_parquet());
    }
    let ignore = unused(incoming);
    let chats = files.roles.chats().collect();
    let table = json_lines::JsonLines {
        ignore: &ignore,
        chats,
    };
    rows(&table, incoming, files, &around, take)
}

/// The records of JSON objects, one per line, for programs that have rows instead of a file.
pub(in crate::data) fn of_objects(
    incoming: &Incoming<'_>,
    lines: &[&str],
    take: Take<'_>,
) -> Result<(), DataError> {
    let files = incoming.files(DataKind::JsonLines);
    let ignore = unused(incoming);
    let chats = files.roles.chats().collect();
    let table = json_lines::JsonLines {
        ignore: &ignore,
        chats,
    };
    let rows = lines.iter().map(|line| line.as_bytes().to_vec());
    let rows: Vec<(u64, Vec<u8>)> = (1..).zip(rows).collect();
    let writing = Writing::of(&files);
    let mut layout = Layout::of(&table, incoming, &writing, &rows)?;
    layout.has_all = true;
    layout.encoder.refuse_paths();
    take(layout.raw(&table, &writing, incoming, &rows, 0))
}

/// Columns that may contain anything.
fn unused(incoming: &Incoming<'_>) -> Vec<String> {
    let used = incoming.used();
    let columns = incoming.transforms.columns.iter().enumerate();
    let unused = columns.filter(|(at, _)| !used.contains(at));
    let of_nodes = of_nodes(incoming);
    let unused = unused.map(|(_, column)| column.name.clone());
    let unused = unused.filter(|name| !of_nodes.contains(name));
    unused.chain(incoming.ignore.iter().cloned()).collect()
}

/// The rows of a file; those that `around` leaves out in the run's files may be items.
fn rows<T: Table>(
    table: &T,
    incoming: &Incoming<'_>,
    files: &FilesSpec,
    around: &RowsSpec,
    take: Take<'_>,
) -> Result<(), DataError> {
    let mut tried = Tried::of(around);
    let seen = Arc::new(AtomicU64::new(0));
    let writing = Writing::of(files);
    let mut layout = None;
    let mut done = 0;
    let mut take_items = |layout: &Layout, rows: &[(u64, T::Row)], left_out: &[(u64, T::Row)]| {
        let shown = incoming.name();
        let left_out = left_out.iter().map(|(line, _)| Skipped {
            place: T::place(Path::new(&shown), *line),
            reason: "not an item: the run's data has such rows at its ends, too".to_owned(),
        });
        let left_out: Vec<Skipped> = left_out.collect();
        if !left_out.is_empty() {
            let nothing = layout.raw(table, &writing, incoming, &[], done);
            take(Raw {
                left_out,
                ..nothing
            })?;
        }
        let at_once = (BATCH_BYTES / layout.encoder.record_size().max(1)).max(1);
        for rows in rows.chunks(at_once) {
            take(layout.raw(table, &writing, incoming, rows, done))?;
            done += rows.len() as u64;
        }
        Ok(())
    };
    batches(table, incoming.path, &seen, |rows| {
        if layout.is_none() {
            layout = Some(Layout::of(table, incoming, &writing, &rows)?);
        }
        let Some(layout) = &layout else {
            return Ok(());
        };
        let is_item = |row: &T::Row| layout.is_item(table, &writing, row);
        let (items, left_out) = tried.next(rows, is_item);
        take_items(layout, &items, &left_out)
    })?;
    let Some(layout) = &layout else {
        return Ok(());
    };
    let is_item = |row: &T::Row| layout.is_item(table, &writing, row);
    let (items, left_out) = tried.last(is_item);
    take_items(layout, &items, &left_out)
}

/// What happens to the values of a row.
struct Layout {
    encoder: Encoder,
    columns: Vec<Column>,
    /// Names of the columns that are read.
    used: BTreeSet<String>,
    /// Whether each row must have all of them, whatever the other rows have.
    has_all: bool,
    /// Set if the values of a row form an array: its name and shape, and the names of its values, in their order in the
    /// first row.
    in_order: Option<(String, Vec<usize>, Names)>,
    /// Columns that are not part of the array.
    apart: BTreeSet<String>,
    unit: Option<f64>,
    keep: Vec<String>,
    group: Option<String>,
    /// The column of the names of nodes.
    node: Option<String>,
}

/// The values of a row that are not part of its record.
struct Apart {
    kept: Vec<String>,
    group: Option<String>,
    node: Option<String>,
}

impl Layout {
    /// From the names in the first rows.
    fn of<T: Table>(
        table: &T,
        incoming: &Incoming<'_>,
        writing: &Writing<'_>,
        rows: &[(u64, T::Row)],
    ) -> Result<Self, DataError> {
        let mut names: Vec<String> = Vec::new();
        let mut known = BTreeSet::new();
        for (_, row) in rows {
            let Ok(cells) = table.cells(row) else {
                continue;
            };
            for (name, _) in writing.read(cells) {
                if known.insert(name.to_string()) {
                    names.push(name.into_owned());
                }
            }
        }
        let transforms = incoming.transforms;
        let targets = transforms.targets();
        let name = |at: &usize| transforms.columns[*at].name.clone();
        let mut apart: BTreeSet<String> = targets.iter().map(name).collect();
        let of_nodes = of_nodes(incoming);
        let apart_too = incoming.ignore.iter().chain(incoming.keep).chain(&of_nodes);
        apart.extend(apart_too.cloned());
        let array = transforms
            .array()
            .filter(|(_, column)| !known.is_empty() && !known.contains(&column.name));
        let in_order = array.map(|(_, column)| {
            let mut of_array = Names::default();
            let inner = names.iter().filter(|name| !apart.contains(*name));
            inner.for_each(|name| of_array.push(name));
            (column.name.clone(), column.shape.clone(), of_array)
        });
        if let Some((_, column)) = array {
            refuse_other_width(incoming, &names, &apart, column)?;
        }
        let used: BTreeSet<String> = incoming.used().iter().map(name).collect();
        refuse_ignored(incoming, &names, &used)?;
        let group = group_by(incoming).filter(|name| known.contains(name));
        if !known.is_empty() {
            let is_array =
                |name: &String| in_order.as_ref().is_some_and(|(array, ..)| array == name);
            let needed = used.iter().filter(|name| !is_array(name));
            let needed = needed.chain(incoming.keep).chain(&of_nodes);
            let lacking: Vec<&String> = needed.filter(|name| !known.contains(*name)).collect();
            if !lacking.is_empty() {
                return Err(lacks(incoming, &lacking, &names));
            }
        }
        let columns = incoming.all_columns();
        let unit = incoming.unit();
        let branches = transforms.input.branches();
        let roles = incoming.trained_on().map(|files| &files.roles);
        let is_padded = |at: usize| {
            // As in training, padding is missing numbers.
            roles.is_some_and(|roles| transforms.columns[at].is_filled_up(roles))
                || branches.iter().any(|input| match input {
                    InputEncoder::Tokens { column, shift, .. } => *column == at && *shift > 0,
                    _ => false,
                })
                // Positions without a class are left out.
                || matches!(transforms.target, TargetEncoder::Classes { column, .. } if column == at)
        };
        let decided = columns
            .iter()
            .cloned()
            .enumerate()
            .map(|(at, column)| Decided {
                is_padded: is_padded(at),
                column,
            });
        let unused: Vec<String> = columns
            .iter()
            .map(|column| column.name.clone())
            .filter(|name| !used.contains(name))
            .collect();
        let encoder = Encoder::of_known(decided.collect(), &unused);
        Ok(Self {
            encoder: match roles {
                Some(roles) => encoder.with_images(roles, |image| incoming.folder_of_images(image)),
                None => encoder,
            },
            columns,
            used,
            has_all: false,
            in_order,
            apart,
            unit,
            keep: incoming.keep.to_vec(),
            group,
            node: match incoming.ends() {
                Some([_, to]) => Some(to.clone()),
                None => incoming.graph().and_then(|graph| graph.id.clone()),
            },
        })
    }

    /// The records of some rows, after the first `done` rows.
    fn raw<T: Table>(
        &self,
        table: &T,
        writing: &Writing<'_>,
        incoming: &Incoming<'_>,
        rows: &[(u64, T::Row)],
        done: u64,
    ) -> Raw {
        let shown = incoming.name();
        let num_rows = self.encoder.rows_of_a_thread();
        let parts: Vec<(Chunk, Vec<Origin>)> = rows
            .par_chunks(num_rows)
            .enumerate()
            .map(|(part, rows)| {
                let mut chunk = Chunk::default();
                let mut origins = Vec::with_capacity(rows.len());
                for (at, (line, row)) in rows.iter().enumerate() {
                    let number = done + (part * num_rows + at) as u64 + 1;
                    let read = table
                        .cells(row)
                        .and_then(|cells| self.encode(writing.read(cells), &mut chunk));
                    match read {
                        Ok(apart) => origins.push(Origin {
                            id: Id::Row(number),
                            line: *line,
                            kept: apart.kept,
                            group: apart.group,
                            node: apart.node,
                        }),
                        Err(Reason(reason)) => {
                            let place = T::place(Path::new(&shown), *line);
                            chunk.bad.push((origins.len(), place, reason));
                        }
                    }
                }
                (chunk, origins)
            })
            .collect();
        let mut writer = Writer::of_new_data();
        writer.begin(self.columns.clone());
        let (mut all, mut wrong) = (Vec::with_capacity(rows.len()), Vec::new());
        for (mut chunk, origins) in parts {
            for (at, text) in chunk.texts {
                // Writing to memory cannot fail.
                let place = writer.text(&text).unwrap_or_default();
                chunk.records[at..at + place.len()].copy_from_slice(&place);
            }
            let _ = writer.push(&chunk.records);
            for (before, place, reason) in chunk.bad {
                wrong.push((all.len() + before, Skipped { place, reason }));
            }
            all.extend(origins);
        }
        Raw {
            records: writer.into_records(),
            origins: all,
            bad: wrong,
            left_out: Vec::new(),
            place: |shown, origin| T::place(Path::new(shown), origin.line),
        }
    }

    /// Whether a row can be an item: it can be read, and is neither empty nor a total.
    fn is_item<T: Table>(&self, table: &T, writing: &Writing<'_>, row: &T::Row) -> bool {
        let Ok(cells) = table.cells(row).map(|cells| writing.read(cells)) else {
            return false;
        };
        let is_used = |name: &str| {
            self.used.contains(name) || (self.in_order.is_some() && !self.apart.contains(name))
        };
        let mut used = cells.iter().filter(|(name, _)| is_used(name));
        let has_content = used.any(|(_, cell)| !matches!(cell, Cell::Missing));
        let mut texts = cells.iter().filter_map(|(_, cell)| cell.text());
        has_content
            && !texts.any(|text| is_total(&text))
            && self.encode(cells, &mut Chunk::default()).is_ok()
    }

    /// Adds the record of a row; returns its other values.
    fn encode(&self, cells: Cells<'_>, chunk: &mut Chunk) -> Result<Apart, Reason> {
        let text = |name: &String| {
            let found = cells.iter().find(|(other, _)| other == name);
            found.and_then(|(_, cell)| cell.text()).unwrap_or_default()
        };
        let kept = self.keep.iter().map(|name| text(name).into_owned());
        let kept = kept.collect();
        let named = |name: &Option<String>| Some(text(name.as_ref()?).into_owned());
        let (group, node) = (named(&self.group), named(&self.node));
        let mut used: Cells<'_> = Vec::with_capacity(self.used.len());
        let mut numbers = Vec::new();
        for (name, cell) in cells {
            if self.used.contains(name.as_ref()) {
                let cell = match (cell, self.unit) {
                    (Cell::List(list), Some(unit)) => Cell::List(in_units(list, unit)),
                    (cell, _) => cell,
                };
                used.push((name, cell));
            } else if let Some((_, _, order)) = &self.in_order
                && !self.apart.contains(name.as_ref())
            {
                let number = match cell {
                    Cell::Missing => None,
                    cell => Some(
                        encode::number(&cell)
                            .map_err(|reason| Reason(format!("column `{name}`: {reason}")))?,
                    ),
                };
                let place = order.place(&name, numbers.len());
                let place = place.ok_or_else(|| {
                    Reason(format!(
                        "the first rows have no `{}`",
                        encode::shorten(&name)
                    ))
                })?;
                numbers.push((place, number));
            }
        }
        if let Some((name, shape, _)) = &self.in_order {
            // The order of the keys of an object means nothing.
            numbers.sort_by_key(|(place, _)| *place);
            let mut list = List::new();
            numbers
                .into_iter()
                .for_each(|(_, number)| list.push(number));
            if list.values.len() != shape.iter().product::<usize>() {
                return Err(Reason(format!(
                    "it has {}, but an item of shape {shape:?} has {}",
                    counted(list.values.len(), "value"),
                    shape.iter().product::<usize>()
                )));
            }
            list.shape = shape.clone();
            let list = match self.unit {
                Some(unit) => in_units(list, unit),
                None => list,
            };
            used.push((Cow::Borrowed(name.as_str()), Cell::List(list)));
        }
        if self.has_all && used.len() < self.used.len() {
            let has = |name: &&String| used.iter().any(|(other, _)| other == *name);
            let lacking = self.used.iter().find(|name| !has(name));
            return Err(Reason(format!(
                "has no column `{}`",
                lacking.map_or("", String::as_str)
            )));
        }
        self.encoder.encode(used, chunk)?;
        Ok(Apart { kept, group, node })
    }
}

/// Converts numbers in units of the data to the units of its records, which are integers.
fn in_units(mut list: List, unit: f64) -> List {
    for value in &mut list.values {
        let (scaled, whole) = (*value / unit, (*value / unit).round());
        // The unit is a 32-bit number.
        *value = if (scaled - whole).abs() < 1e-4 {
            whole
        } else {
            scaled
        };
    }
    list
}

/// The column that windows are grouped by, of the graph of each node, or of the first node of each pair.
fn group_by(incoming: &Incoming<'_>) -> Option<String> {
    if let Some([from, _]) = incoming.ends() {
        return Some(from.clone());
    }
    match incoming.transforms.input.window() {
        Some(_) => incoming.plan.split.group_by.clone(),
        None => incoming.graph().and_then(|graph| graph.of.clone()),
    }
}

/// The columns that tell the nodes of graphs apart, or those of both nodes of each pair.
fn of_nodes(incoming: &Incoming<'_>) -> Vec<String> {
    if let Some(ends) = incoming.ends() {
        return ends.map(String::clone).to_vec();
    }
    let columns = incoming.graph().map(|graph| [&graph.of, &graph.id]);
    columns.into_iter().flatten().flatten().cloned().collect()
}
