//! Tables of columns in memory: as NumPy reads them, and as Arrow's C data interface.

use std::sync::Arc;

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use arrow_data::ffi::FFI_ArrowArray;
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Fields};
use burn_runner::report::value_text;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use serde_json::Value as Json;

use crate::border::{self, Failure, compute, wrong};

const TABLE: &std::ffi::CStr = c"burn_runner.table";

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<(String, Arc<Column>)>,
    num_rows: usize,
}

/// A column with equal types of values. `None` is a missing value.
#[derive(Debug)]
enum Column {
    Numbers(Vec<f64>, Option<Vec<bool>>),
    Whole(Vec<i64>, Option<Vec<bool>>),
    Flags(Vec<bool>, Option<Vec<bool>>),
    Texts(Vec<Option<String>>),
}

/// Which values are there; none if all are.
fn there<'a>(values: impl Iterator<Item = &'a Json>) -> Option<Vec<bool>> {
    let there: Vec<bool> = values.map(|value| !value.is_null()).collect();
    there.contains(&false).then_some(there)
}

impl Column {
    /// Of the narrowest type that holds all values.
    fn of(values: &[Json]) -> Self {
        let is_all = |fits: fn(&Json) -> bool| {
            values.iter().all(|value| value.is_null() || fits(value))
                && values.iter().any(|value| !value.is_null())
        };
        let there = there(values.iter());
        if is_all(|value| value.as_i64().is_some()) {
            let whole = values
                .iter()
                .map(|value| value.as_i64().unwrap_or_default());
            Self::Whole(whole.collect(), there)
        } else if is_all(Json::is_number) || values.iter().all(Json::is_null) {
            let number = |value: &Json| value.as_f64().unwrap_or(f64::NAN);
            Self::Numbers(values.iter().map(number).collect(), there)
        } else if is_all(Json::is_boolean) {
            let flags = values
                .iter()
                .map(|value| value.as_bool().unwrap_or_default());
            Self::Flags(flags.collect(), there)
        } else {
            let text = |value: &Json| (!value.is_null()).then(|| value_text(value));
            Self::Texts(values.iter().map(text).collect())
        }
    }

    fn repeated(&self, nums: &[usize]) -> Self {
        fn each<T: Clone>(values: &[T], nums: &[usize]) -> Vec<T> {
            let values = values.iter().zip(nums);
            values
                .flat_map(|(value, num)| std::iter::repeat_n(value.clone(), *num))
                .collect()
        }
        let there = |there: &Option<Vec<bool>>| there.as_ref().map(|there| each(there, nums));
        match self {
            Self::Numbers(values, is) => Self::Numbers(each(values, nums), there(is)),
            Self::Whole(values, is) => Self::Whole(each(values, nums), there(is)),
            Self::Flags(values, is) => Self::Flags(each(values, nums), there(is)),
            Self::Texts(values) => Self::Texts(each(values, nums)),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Numbers(..) => DataType::Float64,
            Self::Whole(..) => DataType::Int64,
            Self::Flags(..) => DataType::Boolean,
            Self::Texts(_) => DataType::LargeUtf8,
        }
    }

    fn arrow(&self) -> Result<ArrayData, ArrowError> {
        let nulls = |there: &Option<Vec<bool>>| {
            let there = there.as_ref()?;
            Some(NullBuffer::new(BooleanBuffer::from(there.as_slice())))
        };
        let build = |len: usize, nulls: Option<NullBuffer>, buffers: Vec<Buffer>| {
            let builder = ArrayDataBuilder::new(self.data_type())
                .len(len)
                .nulls(nulls);
            builder.buffers(buffers).build()
        };
        match self {
            Self::Numbers(values, there) => {
                let buffer = Buffer::from_slice_ref(values);
                build(values.len(), nulls(there), vec![buffer])
            }
            Self::Whole(values, there) => {
                let buffer = Buffer::from_slice_ref(values);
                build(values.len(), nulls(there), vec![buffer])
            }
            Self::Flags(values, there) => {
                let buffer = BooleanBuffer::from(values.as_slice()).into_inner();
                build(values.len(), nulls(there), vec![buffer])
            }
            Self::Texts(values) => {
                let lens = values
                    .iter()
                    .map(|text| text.as_ref().map_or(0, String::len));
                let offsets = OffsetBuffer::<i64>::from_lengths(lens);
                let text: String = values.iter().flatten().map(String::as_str).collect();
                let there: Vec<bool> = values.iter().map(Option::is_some).collect();
                let there = there.contains(&false).then_some(there);
                let offsets = offsets.into_inner().into_inner();
                let buffers = vec![offsets, Buffer::from(text.into_bytes())];
                build(values.len(), nulls(&there), buffers)
            }
        }
    }

    /// `(kind, values, which are there or None)`.
    fn python(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let bytes = |flags: &[bool]| {
            let bytes: Vec<u8> = flags.iter().map(|flag| u8::from(*flag)).collect();
            border::block(py, &bytes)
        };
        let mask = |there: &Option<Vec<bool>>| there.as_ref().map(|there| bytes(there));
        let column = match self {
            Self::Numbers(values, there) => ("float64", border::numbers(py, values), mask(there)),
            Self::Whole(values, there) => ("int64", border::numbers(py, values), mask(there)),
            Self::Flags(values, there) => ("bool", bytes(values), mask(there)),
            Self::Texts(values) => {
                let list = PyList::new(py, values)?.into_any().unbind();
                ("text", list, None)
            }
        };
        Ok(column.into_pyobject(py)?.into_any().unbind())
    }
}

impl Table {
    /// Columns with a value for each run, repeated as often as the run has rows.
    pub fn repeating(columns: Vec<(String, Vec<Json>)>, nums: &[usize]) -> Self {
        let columns = columns.into_iter();
        let columns = columns.map(|(name, values)| {
            let column = Column::of(&values).repeated(nums);
            (name, Arc::new(column))
        });
        Self {
            columns: columns.collect(),
            num_rows: nums.iter().sum(),
        }
    }

    /// Adds a column of whole numbers.
    pub fn push_whole(&mut self, name: &str, values: Vec<i64>) {
        self.push(name, Column::Whole(values, None));
    }

    /// Adds a column of numbers.
    pub fn push_numbers(&mut self, name: &str, values: impl Iterator<Item = f64>) {
        self.push(name, Column::Numbers(values.collect(), None));
    }

    /// Adds a column of numbers, some of which may be missing.
    pub fn push_some(&mut self, name: &str, values: Vec<Option<f64>>) {
        let there: Vec<bool> = values.iter().map(Option::is_some).collect();
        let values = values.into_iter().map(|value| value.unwrap_or(f64::NAN));
        let there = there.contains(&false).then_some(there);
        self.push(name, Column::Numbers(values.collect(), there));
    }

    fn push(&mut self, name: &str, column: Column) {
        // A setting may have the name of a column: the first one keeps it.
        if !self.columns.iter().any(|(other, _)| other == name) {
            self.columns.push((name.to_owned(), Arc::new(column)));
        }
    }
}

/// Keeps a table for Python.
pub fn keep(py: Python<'_>, table: Table) -> PyResult<Py<PyAny>> {
    border::keep(py, table, TABLE)
}

/// `table_of_rows(JSON lines) -> table`: columns in the order in which they first occur.
pub fn of_rows(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (text,): (String,) = args.extract()?;
    let table = compute(py, || {
        let mut names: Vec<String> = Vec::new();
        let mut rows = Vec::new();
        for line in text.lines() {
            let row: serde_json::Map<String, Json> = serde_json::from_str(line)
                .map_err(|e| wrong(format!("a row is not an object: {e}"), "pass JSON lines"))?;
            for name in row.keys() {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            rows.push(row);
        }
        let columns = names.into_iter().map(|name| {
            let values = rows.iter().map(|row| row.get(&name).cloned());
            let values: Vec<Json> = values.map(Option::unwrap_or_default).collect();
            (name, Arc::new(Column::of(&values)))
        });
        Ok(Table {
            columns: columns.collect(),
            num_rows: rows.len(),
        })
    })?;
    keep(py, table)
}

/// `table_columns(table) -> (number of rows, [(name, (kind, values, mask))])`
pub fn columns(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (table,): (Bound<'_, PyAny>,) = args.extract()?;
    let table: Table = border::kept(&table, TABLE)?;
    let columns = table.columns.iter();
    let columns = columns.map(|(name, column)| Ok((name, column.python(py)?)));
    let columns = columns.collect::<PyResult<Vec<_>>>()?;
    Ok((table.num_rows, columns)
        .into_pyobject(py)?
        .into_any()
        .unbind())
}

/// `table_arrow(table) -> (schema, array)`: the capsules of `__arrow_c_array__`.
pub fn arrow(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (table,): (Bound<'_, PyAny>,) = args.extract()?;
    let table: Table = border::kept(&table, TABLE)?;
    let (schema, array) = compute(py, || {
        let made = || -> Result<_, ArrowError> {
            let fields = table.columns.iter();
            let fields = fields.map(|(name, column)| Field::new(name, column.data_type(), true));
            let data_type = DataType::Struct(fields.collect::<Fields>());
            let children = table.columns.iter().map(|(_, column)| column.arrow());
            let builder = ArrayDataBuilder::new(data_type.clone()).len(table.num_rows);
            let data = builder
                .child_data(children.collect::<Result<_, _>>()?)
                .build()?;
            Ok((
                FFI_ArrowSchema::try_from(data_type)?,
                FFI_ArrowArray::new(&data),
            ))
        };
        made().map_err(|e| Failure::Panic(e.to_string()))
    })?;
    let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
    let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
    Ok((schema, array).into_pyobject(py)?.into_any().unbind())
}
