//! Predictions as an Apache Parquet table: the columns of the CSV, with types.

use std::fs::File;
use std::io;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use super::table::{Cell, Content};

/// The number of values that are kept before they are written as a row group: some 16 MiB if they are numbers.
const VALUES_OF_A_GROUP: usize = 1 << 20;

/// A table that is being written.
pub(super) struct Table {
    file: SerializedFileWriter<File>,
    columns: Vec<Column>,
    /// Values since the last row group.
    num_kept: usize,
    /// The number of values that are kept at most.
    most_kept: usize,
}

/// The values of a column since the last row group.
enum Column {
    Texts(Vec<ByteArray>),
    Integers(Vec<i64>),
    Singles(Vec<f32>),
    Doubles(Vec<f64>),
    TextLists(Lists<ByteArray>),
    SingleLists(Lists<f32>),
}

/// Lists as stored in Parquet: all their values, and two levels for each value or empty list.
struct Lists<T> {
    values: Vec<T>,
    /// 1 for a value, 0 for an empty list.
    definitions: Vec<i16>,
    /// 0 where a list begins, otherwise 1.
    repetitions: Vec<i16>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            definitions: Vec::new(),
            repetitions: Vec::new(),
        }
    }
}

impl<T> Lists<T> {
    fn add(&mut self, list: impl Iterator<Item = T>) {
        let before = self.values.len();
        self.values.extend(list);
        let num = self.values.len() - before;
        self.definitions
            .extend(std::iter::repeat_n(i16::from(num > 0), num.max(1)));
        self.repetitions
            .extend((0..num.max(1)).map(|at| i16::from(at > 0)));
    }
}

impl Column {
    fn new(content: Content) -> Self {
        match content {
            Content::Text => Column::Texts(Vec::new()),
            Content::Integer => Column::Integers(Vec::new()),
            Content::Single => Column::Singles(Vec::new()),
            Content::Double => Column::Doubles(Vec::new()),
            Content::Texts => Column::TextLists(Lists::default()),
            Content::Singles => Column::SingleLists(Lists::default()),
        }
    }

    /// Adds a cell, and returns the number of its values.
    fn add(&mut self, cell: Cell<'_>) -> usize {
        let bytes = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        match (self, cell) {
            (Column::Texts(all), Cell::Text(text)) => all.push(bytes(text)),
            // Items are counted from 1.
            (Column::Integers(all), Cell::Text(text)) => all.push(text.parse().unwrap_or(0)),
            (Column::Singles(all), Cell::Single(value)) => all.push(value),
            (Column::Doubles(all), Cell::Double(value)) => all.push(value),
            (Column::TextLists(lists), Cell::Texts(texts)) => {
                lists.add(texts.iter().map(|text| bytes(text)));
                return texts.len().max(1);
            }
            (Column::SingleLists(lists), Cell::Singles(values)) => {
                lists.add(values.iter().copied());
                return values.len().max(1);
            }
            _ => debug_assert!(false, "a cell of another type than its column"),
        }
        1
    }

    fn write(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, File>,
    ) -> Result<(), ParquetError> {
        match self {
            Column::Texts(all) => put::<ByteArrayType>(group, &std::mem::take(all), None),
            Column::Integers(all) => put::<Int64Type>(group, &std::mem::take(all), None),
            Column::Singles(all) => put::<FloatType>(group, &std::mem::take(all), None),
            Column::Doubles(all) => put::<DoubleType>(group, &std::mem::take(all), None),
            Column::TextLists(all) => {
                let all = std::mem::take(all);
                let levels = (&all.definitions[..], &all.repetitions[..]);
                put::<ByteArrayType>(group, &all.values, Some(levels))
            }
            Column::SingleLists(all) => {
                let all = std::mem::take(all);
                let levels = (&all.definitions[..], &all.repetitions[..]);
                put::<FloatType>(group, &all.values, Some(levels))
            }
        }
    }
}

/// Writes the values of the next column of a row group.
fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    levels: Option<(&[i16], &[i16])>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("a column too many".into()));
    };
    let (definitions, repetitions) = levels.unzip();
    column
        .typed::<T>()
        .write_batch(values, definitions, repetitions)?;
    column.close()
}

/// The type of a column.
fn field(name: &str, content: Content) -> Result<TypePtr, ParquetError> {
    let primitive = |name: &str, physical, is_text: bool| {
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(is_text.then_some(LogicalType::String))
            .build()
            .map(Arc::new)
    };
    let list = |element: TypePtr| {
        let values = Type::group_type_builder("list")
            .with_repetition(Repetition::REPEATED)
            .with_fields(vec![element])
            .build()?;
        Type::group_type_builder(name)
            .with_repetition(Repetition::REQUIRED)
            .with_converted_type(ConvertedType::LIST)
            .with_logical_type(Some(LogicalType::List))
            .with_fields(vec![Arc::new(values)])
            .build()
            .map(Arc::new)
    };
    match content {
        Content::Text => primitive(name, Physical::BYTE_ARRAY, true),
        Content::Integer => primitive(name, Physical::INT64, false),
        Content::Single => primitive(name, Physical::FLOAT, false),
        Content::Double => primitive(name, Physical::DOUBLE, false),
        Content::Texts => list(primitive("element", Physical::BYTE_ARRAY, true)?),
        Content::Singles => list(primitive("element", Physical::FLOAT, false)?),
    }
}

impl Table {
    /// Begins a table in a file.
    pub fn new(file: File, columns: &[(String, Content)]) -> io::Result<Self> {
        let made = || {
            let fields = columns.iter().map(|(name, content)| field(name, *content));
            let schema = Type::group_type_builder("predictions")
                .with_fields(fields.collect::<Result<_, _>>()?)
                .build()?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::SNAPPY)
                .set_created_by(concat!("runner ", env!("CARGO_PKG_VERSION")).into())
                .build();
            SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
        };
        Ok(Self {
            file: made().map_err(io::Error::other)?,
            columns: columns
                .iter()
                .map(|(_, content)| Column::new(*content))
                .collect(),
            num_kept: 0,
            most_kept: VALUES_OF_A_GROUP,
        })
    }

    /// Adds a row; `fill` adds its cells one after the other.
    pub fn add(&mut self, fill: impl FnOnce(&mut dyn FnMut(Cell<'_>))) -> io::Result<()> {
        let mut columns = self.columns.iter_mut();
        let mut num = 0;
        fill(&mut |cell| num += columns.next().map_or(0, |column| column.add(cell)));
        self.num_kept += num;
        if self.num_kept < self.most_kept {
            return Ok(());
        }
        self.write().map_err(io::Error::other)
    }

    /// Writes the kept rows as a row group.
    fn write(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for column in &mut self.columns {
            column.write(&mut group)?;
        }
        self.num_kept = 0;
        group.close().map(|_| ())
    }

    /// Completes the table, and returns its file.
    pub fn finish(mut self) -> io::Result<File> {
        if self.num_kept > 0 {
            self.write().map_err(io::Error::other)?;
        }
        self.file.into_inner().map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    #[test]
    fn every_type_of_column_is_read_back_from_all_row_groups() {
        let contents = [
            Content::Integer,
            Content::Text,
            Content::Single,
            Content::Double,
            Content::Texts,
            Content::Singles,
        ];
        let columns: Vec<(String, Content)> = (0..)
            .zip(contents)
            .map(|(at, content)| (format!("c{at}"), content))
            .collect();
        let mut table = Table::new(tempfile::tempfile().unwrap(), &columns).unwrap();
        // A row group for about every three rows.
        table.most_kept = 25;
        let labels: Vec<String> = ["a", "b|c", "\u{e9}"].map(str::to_owned).to_vec();
        for row in 0..10_usize {
            let id = (row + 1).to_string();
            let values = vec![row as f32 + 0.5; row % 4];
            let added = table.add(|put| {
                put(Cell::Text(&id));
                put(Cell::Text("x,\"y\""));
                put(Cell::Single(1.0 / row as f32));
                put(Cell::Double(0.1 * row as f64));
                put(Cell::Texts(&labels[..row % 4]));
                put(Cell::Singles(&values));
            });
            added.unwrap();
        }
        let file = table.finish().unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert!(reader.num_row_groups() > 2, "{}", reader.num_row_groups());
        let rows = reader.get_row_iter(None).unwrap();
        let rows: Vec<String> = rows.map(|row| row.unwrap().to_string()).collect();
        assert_eq!(rows.len(), 10);
        assert_eq!(
            [&rows[0], &rows[3], &rows[9]],
            [
                r#"{c0: 1, c1: "x,"y"", c2: inf, c3: 0E0, c4: [], c5: []}"#,
                r#"{c0: 4, c1: "x,"y"", c2: 0.33333334, c3: 0.30000000000000004, c4: ["a", "b|c", "é"], c5: [3.5, 3.5, 3.5]}"#,
                r#"{c0: 10, c1: "x,"y"", c2: 0.11111111, c3: 0.9, c4: ["a"], c5: [9.5]}"#,
            ]
        );
    }

    #[test]
    fn a_table_without_rows_has_its_columns() {
        let columns = [("row".to_owned(), Content::Integer)];
        let table = Table::new(tempfile::tempfile().unwrap(), &columns).unwrap();
        let reader = SerializedFileReader::new(table.finish().unwrap()).unwrap();
        assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
        let schema = reader.metadata().file_metadata().schema();
        assert_eq!(schema.get_fields()[0].name(), "row");
    }
}
