//! Arrays of new items, in the format of the array that a run was trained on.

use std::path::Path;

use super::element::Layout;
use super::named::{Found, Visit};
use super::stream::Marks;
use super::{Array, Open, damaged, idx, npy, npz, safetensors, wrong_length};
use crate::data::DataError;
use crate::data::incoming::{Id, Incoming, Origin, Raw, Take};
use crate::data::records::{self, Column, ColumnKind, NO_NUMBER, Skipped, Writer};
use crate::diagnostic::{Reason, counted};
use crate::show::plain_io_error;
use crate::spec::data::DataKind;

/// The number of bytes that are read at once.
const PIECE: usize = 4 << 20;

/// Reads the array of inputs, together with that of targets.
pub(in crate::data) fn read(
    incoming: &Incoming<'_>,
    kind: DataKind,
    take: Take<'_>,
) -> Result<(), DataError> {
    let transforms = incoming.transforms;
    if transforms.has_named_inputs() {
        return match kind {
            DataKind::Npz => read_inputs(incoming, npz::visit, take),
            _ => read_inputs(incoming, safetensors::visit, take),
        };
    }
    let Some((at, column)) = transforms.array() else {
        return Err(DataError::new("the run was not trained on arrays"));
    };
    let open: Open = match kind {
        DataKind::Npz => return read_named(incoming, npz::visit, (at, column), take),
        DataKind::Safetensors => {
            return read_named(incoming, safetensors::visit, (at, column), take);
        }
        DataKind::Idx => idx::open,
        _ => npy::open,
    };
    let array = open(incoming.path, false)?;
    read_arrays(incoming, vec![(at, array)], None, take)
}

/// The items of an array in memory.
pub(in crate::data) fn of_memory(
    incoming: &Incoming<'_>,
    layout: Layout,
    shape: &[usize],
    bytes: &[u8],
    take: Take<'_>,
) -> Result<(), DataError> {
    if incoming.transforms.has_named_inputs() {
        return Err(DataError::new(
            "the network has several named inputs, and this is a single array",
        )
        .help("pass the values of each column by its name"));
    }
    let Some((at, _)) = incoming.transforms.array() else {
        return Err(DataError::new("the run was not trained on arrays"));
    };
    let array = Array {
        place: incoming.name(),
        layout,
        shape: shape.to_vec(),
        data: Box::new(bytes),
    };
    read_arrays(incoming, vec![(at, array)], None, take)
}

/// Reads a file with an array for each column of the named inputs.
fn read_inputs(
    incoming: &Incoming<'_>,
    visit: fn(&Path, Visit<'_>) -> Result<(), DataError>,
    take: Take<'_>,
) -> Result<(), DataError> {
    let transforms = incoming.transforms;
    visit(incoming.path, &mut |mut found| {
        let names: Vec<String> = found
            .iter()
            .map(|array| format!("`{}`", array.name))
            .collect();
        let mut pick = |at: usize| {
            let name = &transforms.columns[at].name;
            let place = found.iter().position(|array| array.name == *name)?;
            Some(found.remove(place).array)
        };
        let target = match transforms.target.columns()[..] {
            [at] => pick(at).transpose()?,
            _ => None,
        };
        let mut arrays = Vec::new();
        for at in transforms.inputs() {
            let Some(array) = pick(at) else {
                return Err(DataError::new(format!(
                    "{} has no array `{}`, which the network takes",
                    incoming.name(),
                    transforms.columns[at].name
                ))
                .note(format!("its arrays: {}", names.join(", ")))
                .help("save an array with this name"));
            };
            arrays.push((at, array?));
        }
        read_arrays(incoming, arrays, target, take)
    })
}

/// Reads a file of named arrays: the one with the name of the run's column, or the only one.
fn read_named(
    incoming: &Incoming<'_>,
    visit: fn(&Path, Visit<'_>) -> Result<(), DataError>,
    (at, column): (usize, &Column),
    take: Take<'_>,
) -> Result<(), DataError> {
    let transforms = incoming.transforms;
    let target = match transforms.target.columns()[..] {
        [at] => Some(&transforms.columns[at].name),
        _ => None,
    };
    visit(incoming.path, &mut |mut found| {
        let beside = target.and_then(|name| found.iter().position(|array| array.name == *name));
        let beside = beside.map(|at| found.remove(at));
        let place = incoming.name();
        let names: Vec<String> = found.iter().map(|array| array.name.clone()).collect();
        let named = names.iter().position(|name| *name == column.name);
        let Some(picked) = named.or((names.len() == 1).then_some(0)) else {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let name = &column.name;
            return Err(DataError::new(format!(
                "{place} has no array `{name}`, which the network takes"
            ))
            .note(format!("its arrays: {}", names.join(", ")))
            .help(format!(
                "save the array as `{name}`, or on its own with `numpy.save`"
            )));
        };
        let Found { array, .. } = found.remove(picked);
        let beside = beside.map(|found| found.array).transpose()?;
        read_arrays(incoming, vec![(at, array?)], beside, take)
    })
}

/// Reads arrays of inputs together with that of targets, which is next to them or in a separate file.
fn read_arrays(
    incoming: &Incoming<'_>,
    arrays: Vec<(usize, Array<'_>)>,
    beside: Option<Array<'_>>,
    take: Take<'_>,
) -> Result<(), DataError> {
    let transforms = incoming.transforms;
    let mut columns = transforms.columns.clone();
    let mut streams = Vec::with_capacity(arrays.len() + 1);
    for (at, array) in arrays {
        if incoming.unit().is_some() {
            columns[at].kind = ColumnKind::Numbers;
        }
        let column = &transforms.columns[at];
        streams.push((at, Values::of(array, column, false, &columns[at].kind)?));
    }
    if incoming.has_targets && !transforms.more_targets.is_empty() {
        return Err(DataError::new(
            "arrays of new data have one target, but the losses of the run compare outputs with several",
        )
        .help("save the items with all targets as a table, such as CSV or JSON lines"));
    }
    let targets = transforms.target.columns();
    if let (true, Some(at)) = (incoming.has_targets, targets.first()) {
        let array = match (incoming.targets, beside) {
            (Some(path), _) if targets.len() == 1 => match crate::data::incoming::kind_of(path) {
                Some(DataKind::Idx) => idx::open(path, true)?,
                _ => npy::open(path, true)?,
            },
            (None, Some(array)) => array,
            _ => {
                return Err(
                    DataError::new(format!("{} has no targets", incoming.name()))
                        .help("pass the array of targets with `--targets FILE`"),
                );
            }
        };
        let target = &transforms.columns[*at];
        streams.push((*at, Values::of(array, target, true, &target.kind)?));
    }
    let (_, first) = &streams[0];
    if let Some((_, other)) = streams.iter().find(|(_, other)| other.num != first.num) {
        let what = if other.is_target { "target" } else { "input" };
        return Err(DataError::new(format!(
            "there are {} in {}, but {} in {}",
            counted(first.num, "input"),
            first.array.place,
            counted(other.num, what),
            other.array.place
        ))
        .help("use files whose arrays have the same first dimension"));
    }
    // As in the files of the run, whatever the type of this one is.
    let marks = Marks::of(&incoming.files(DataKind::Npy), &columns);
    pump(incoming, (columns, marks), streams, take)
}

fn pump(
    incoming: &Incoming<'_>,
    (columns, marks): (Vec<Column>, Marks),
    mut streams: Vec<(usize, Values<'_>)>,
    take: Take<'_>,
) -> Result<(), DataError> {
    let num = streams[0].1.num;
    let size: usize = streams.iter().map(|(_, values)| values.size).sum();
    let empty = empty(&columns);
    let starts = starts(&columns);
    let mut done = 0;
    while done < num {
        let piece = (PIECE / (size + empty.len()).max(1)).max(1).min(num - done);
        for (_, values) in &mut streams {
            values.take(piece)?;
        }
        let mut writer = Writer::of_new_data();
        writer.begin(columns.clone());
        let (mut origins, mut bad) = (Vec::with_capacity(piece), Vec::new());
        let mut record = empty.clone();
        for item in 0..piece {
            let number = (done + item) as u64;
            let written = streams.iter().try_for_each(|(at, values)| {
                let len = columns[*at].len() * columns[*at].kind.size();
                let out = &mut record[starts[*at]..starts[*at] + len];
                let unit = incoming.unit().filter(|_| !values.is_target);
                let written = values.convert(item, &columns[*at].kind, unit, out);
                written.map_err(|reason| (values.array.place.clone(), reason))?;
                marks.take_out(*at, out);
                Ok(())
            });
            match written {
                Ok(()) => {
                    // Writing to memory cannot fail.
                    let _ = writer.push(&record);
                    origins.push(Origin {
                        id: Id::Row(number),
                        line: number,
                        kept: Vec::new(),
                        group: None,
                        node: None,
                    });
                }
                Err((place, Reason(reason))) => {
                    let place = format!("{place}, item {number}");
                    bad.push((origins.len(), Skipped { place, reason }));
                }
            }
        }
        take(Raw {
            records: writer.into_records(),
            origins,
            bad,
            left_out: Vec::new(),
            place: |shown, origin| format!("`{shown}`, item {}", origin.line),
        })?;
        done += piece;
    }
    for (_, values) in &mut streams {
        values.check_end()?;
    }
    Ok(())
}

/// A record without values.
fn empty(columns: &[Column]) -> Vec<u8> {
    let size = |column: &Column| column.len() * column.kind.size();
    vec![0; columns.iter().map(size).sum()]
}

/// The offset of each column in a record.
fn starts(columns: &[Column]) -> Vec<usize> {
    let mut at = 0;
    let start = |column: &Column| {
        let start = at;
        at += column.len() * column.kind.size();
        start
    };
    columns.iter().map(start).collect()
}

/// The values of one array.
struct Values<'a> {
    array: Array<'a>,
    is_target: bool,
    num: usize,
    /// Bytes of an item in the file.
    size: usize,
    /// The number of items read so far.
    done: usize,
    raw: Vec<u8>,
}

impl<'a> Values<'a> {
    fn of(
        mut array: Array<'a>,
        column: &Column,
        is_target: bool,
        kind: &ColumnKind,
    ) -> Result<Self, DataError> {
        let of_one = |shape: &[usize]| {
            // A class per item can be a separate column.
            shape == column.shape || (column.len() == 1 && matches!(shape, [] | [1]))
        };
        let shape = array.shape.clone();
        let num = match shape.split_first() {
            Some((num, rest)) if of_one(rest) => *num,
            // A single item without a dimension for the items.
            _ if !column.shape.is_empty() && shape == column.shape => {
                array.shape.insert(0, 1);
                1
            }
            _ => {
                let what = if is_target {
                    "the run has targets"
                } else {
                    "the network takes items"
                };
                let sizes = column.shape.iter().map(|size| format!(" {size}"));
                return Err(DataError::new(format!(
                    "{} has the shape {shape:?}, but {what} of shape {:?}",
                    array.place, column.shape
                ))
                .help(format!(
                    "save an array of shape (N,{}), with the items as its first dimension",
                    sizes.collect::<Vec<_>>().join(",")
                )));
            }
        };
        if num == 0 {
            return Err(DataError::new(format!("{} contains no items", array.place))
                .help("save an array whose first dimension is the items"));
        }
        let own = array.layout.element.kind(is_target);
        let fits = match (kind, &own) {
            (kind, own) if kind == own => true,
            (ColumnKind::Numbers | ColumnKind::Doubles, _) => true,
            (ColumnKind::Whole, ColumnKind::Bytes) | (ColumnKind::Bytes, ColumnKind::Whole) => true,
            (ColumnKind::Categories { .. }, ColumnKind::Whole) => true,
            _ => false,
        };
        if !fits {
            return Err(DataError::new(format!(
                "{} contains {}, but the run was trained on {}",
                array.place,
                own.show(),
                kind.show()
            ))
            .help(match kind {
                ColumnKind::Bytes => {
                    "save it as bytes from 0 to 255, for example with `x.astype(np.uint8)`"
                }
                _ => "save it as integers, for example with `x.astype(np.int32)`",
            }));
        }
        Ok(Self {
            size: array.item_size().unwrap_or(0),
            array,
            is_target,
            num,
            done: 0,
            raw: Vec::new(),
        })
    }

    fn take(&mut self, num: usize) -> Result<(), DataError> {
        use std::io::Read;
        let expected = num * self.size;
        self.raw.clear();
        let result = (&mut self.array.data)
            .take(expected as u64)
            .read_to_end(&mut self.raw);
        match result {
            Err(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => {
                Err(damaged(&self.array.place, plain_io_error(&e)))
            }
            _ if self.raw.len() < expected => {
                let found = (self.done * self.size + self.raw.len()) as u64;
                Err(wrong_length(
                    &self.array.place,
                    self.array.size(),
                    Some(found),
                ))
            }
            _ => {
                self.done += num;
                Ok(())
            }
        }
    }

    /// Checks that nothing follows the last item.
    fn check_end(&mut self) -> Result<(), DataError> {
        use std::io::Read;
        match self.array.data.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err(wrong_length(&self.array.place, self.array.size(), None)),
            Err(e) => Err(damaged(&self.array.place, plain_io_error(&e))),
        }
    }

    /// Writes an item of the piece as values of a column.
    fn convert(
        &self,
        item: usize,
        kind: &ColumnKind,
        unit: Option<f64>,
        out: &mut [u8],
    ) -> Result<(), Reason> {
        let layout: Layout = self.array.layout;
        let raw = &self.raw[item * self.size..(item + 1) * self.size];
        let own = layout.element.kind(self.is_target);
        if own == *kind && unit.is_none() {
            return layout.convert(raw, self.is_target, false, out);
        }
        let divisor = unit.unwrap_or(1.0);
        if let (ColumnKind::Bytes, ColumnKind::Numbers) = (&own, kind) {
            for (value, out) in raw.iter().zip(out.chunks_exact_mut(4)) {
                let value = (f64::from(*value) / divisor) as f32;
                out.copy_from_slice(&value.to_le_bytes());
            }
            return Ok(());
        }
        let num = raw.len() / layout.element.size();
        let mut values = vec![0; num * own.size()];
        layout.convert(raw, self.is_target, false, &mut values)?;
        let values = values.chunks_exact(own.size());
        for (value, out) in values.zip(out.chunks_exact_mut(kind.size())) {
            let value = records::number(&own, value);
            write_number(value / divisor, kind, out)?;
        }
        Ok(())
    }
}

/// Writes a number as a value of a column.
fn write_number(value: f64, kind: &ColumnKind, out: &mut [u8]) -> Result<(), Reason> {
    match kind {
        ColumnKind::Bytes if (0.0..=255.0).contains(&value) => out[0] = value as u8,
        ColumnKind::Bytes => {
            return Err(Reason(format!("it contains {value}, which is not a byte")));
        }
        ColumnKind::Doubles => out.copy_from_slice(&value.to_le_bytes()),
        ColumnKind::Numbers => out.copy_from_slice(&(value as f32).to_le_bytes()),
        _ if value.is_nan() => out.copy_from_slice(&NO_NUMBER.to_le_bytes()),
        _ => out.copy_from_slice(&(value as i32).to_le_bytes()),
    }
    Ok(())
}
