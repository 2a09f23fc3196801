//! Items as records of fixed size, in memory or in a mapped file: written by readers, and served from by everything
//! else.
//!
//! A record contains a value of each column, one after the other, as little-endian bytes. Texts of any length follow
//! the records, which contain their positions.

mod header;
mod writer;

use std::io;
use std::ops::Range;
use std::path::Path;

use super::sums;
use crate::diagnostic::Reason;
use crate::disk::{self, Map};
use crate::spec::plain_file;
pub(super) use header::number;
pub use header::{
    Column, ColumnKind, Extent, Header, NO_NUMBER, NO_TEXT, NearlyNumbers, Part, Skipped,
};
pub use writer::Writer;

/// All items of a data set.
#[derive(Debug)]
pub struct Records {
    /// Columns and sizes.
    pub header: Header,
    ranges: Vec<Range<usize>>,
    record_size: usize,
    store: Store,
}

#[derive(Debug)]
enum Store {
    Memory { records: Vec<u8>, texts: Vec<u8> },
    Mapped(Map),
}

impl Records {
    fn new(header: Header, store: Store) -> Self {
        let ranges = header.ranges();
        Self {
            record_size: ranges.last().map_or(0, |range| range.end),
            ranges,
            header,
            store,
        }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.header.num_items()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.header.columns
    }

    /// The number of a record's file, counted over all parts.
    pub fn file_of(&self, item: usize) -> usize {
        self.header.files.partition_point(|start| *start <= item)
    }

    /// The number of an item in its file, from 0, where skipped items count.
    pub fn number_in_file(&self, item: usize) -> usize {
        let start = self.header.files[..self.file_of(item)].last();
        let start = start.copied().unwrap_or(0);
        let skips = self.header.skips.as_deref().unwrap_or_default();
        let upto = |record| skips.partition_point(|next| *next <= record);
        let before_file = skips.partition_point(|next| *next < start);
        item - start + upto(item) - before_file
    }

    /// Whether two records may be neighbors in a series: both are in the same uninterrupted stretch of a file.
    pub fn is_one_stretch(&self, a: usize, b: usize) -> bool {
        let stretch = |item| {
            self.header
                .stretches
                .partition_point(|start| *start <= item)
        };
        stretch(a) == stretch(b)
    }

    /// Whether an item has a missing value in a column.
    pub fn lacks(&self, item: usize, column: usize) -> bool {
        match self.columns()[column].kind {
            ColumnKind::Text => self.text(item, column).is_none(),
            ColumnKind::Categories { .. } => self.category(item, column).is_none(),
            ColumnKind::Bytes => false,
            // Large arrays are of these.
            ColumnKind::Numbers => {
                let values = self.bytes(item, column).chunks_exact(4);
                values.fold(false, |found, b| {
                    found | f32::from_le_bytes([b[0], b[1], b[2], b[3]]).is_nan()
                })
            }
            _ => {
                let mut found = false;
                self.numbers(item, column, |value| found |= value.is_nan());
                found
            }
        }
    }

    /// The index of the column with a name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|column| column.name == name)
    }

    /// Bytes of all records together.
    pub fn size(&self) -> u64 {
        (self.len() * self.record_size) as u64 + self.header.text_bytes
    }

    /// Bytes of one record.
    pub fn record_size(&self) -> usize {
        self.record_size
    }

    /// The bytes of some records.
    pub fn record(&self, items: Range<usize>) -> &[u8] {
        let range = items.start * self.record_size..items.end * self.record_size;
        match &self.store {
            Store::Memory { records, .. } => &records[range],
            Store::Mapped(map) => &map[range],
        }
    }

    /// The bytes of an item's values in a column.
    pub fn bytes(&self, item: usize, column: usize) -> &[u8] {
        &self.record(item..item + 1)[self.ranges[column].clone()]
    }

    /// One number of an item in a column that is not text; NaN if missing.
    pub fn number(&self, item: usize, column: usize, at: usize) -> f64 {
        let bytes = self.bytes(item, column);
        let kind = &self.columns()[column].kind;
        let bytes = &bytes[at * kind.size()..(at + 1) * kind.size()];
        number(kind, bytes)
    }

    /// Calls `see` with each number of an item in a column that is not text, in order.
    pub fn numbers(&self, item: usize, column: usize, mut see: impl FnMut(f64)) {
        let kind = &self.columns()[column].kind;
        let values = self.bytes(item, column).chunks_exact(kind.size());
        values.for_each(|bytes| see(number(kind, bytes)));
    }

    /// The name of an item's category, or `None` if missing.
    pub fn category(&self, item: usize, column: usize) -> Option<usize> {
        let code = self.number(item, column, 0);
        (code >= 0.0).then_some(code as usize)
    }

    /// The text of an item in a text column.
    pub fn text(&self, item: usize, column: usize) -> Option<&str> {
        let place = self.bytes(item, column);
        if place == NO_TEXT {
            return None;
        }
        let number = |bytes: &[u8]| {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            u64::from_le_bytes(word) as usize
        };
        let (start, len) = (number(&place[..8]), number(&place[8..]));
        let texts = match &self.store {
            Store::Memory { texts, .. } => texts.as_slice(),
            Store::Mapped(map) => {
                let start = self.len() * self.record_size;
                &map[start..start + self.header.text_bytes as usize]
            }
        };
        let bytes = texts.get(start..start.checked_add(len)?)?;
        std::str::from_utf8(bytes).ok()
    }

    /// Maps a file that a [`Writer`] created. Header and structure are checked, but not the values:
    /// [`Records::first_damage`] checks those.
    pub fn open(path: &Path) -> io::Result<Opened> {
        let damaged = |reason: &str| Ok(Opened::Damaged(reason.into()));
        let file = plain_file::open(path)?;
        if file.metadata()?.len() < TAIL as u64 {
            return damaged("it is too short");
        }
        // SAFETY: cached files are created under a temporary name, renamed, and never written again; a user who
        // truncates one while it is read gets a bus error, as with every mapped file.
        let map = unsafe { disk::map(&file)? };
        let (rest, tail) = map.split_at(map.len() - TAIL);
        let Some(numbers) = tail.strip_suffix(MAGIC) else {
            return if tail.ends_with(OLDER) {
                Ok(Opened::Older)
            } else {
                damaged("it has an unexpected end")
            };
        };
        let (mut len, mut sum) = ([0; 8], [0; 4]);
        len.copy_from_slice(&numbers[..8]);
        sum.copy_from_slice(&numbers[8..]);
        let Some(start) = rest.len().checked_sub(u64::from_le_bytes(len) as usize) else {
            return damaged("its header is incomplete");
        };
        if crc32c::crc32c(&rest[start..]) != u32::from_le_bytes(sum) {
            return damaged("the checksum of its header does not match");
        }
        let Ok(header) = serde_json::from_slice::<Header>(&rest[start..]) else {
            return damaged("its header has another version");
        };
        if header.skips.is_none() && !header.skipped.is_empty() {
            return Ok(Opened::Older);
        }
        let size = header.ranges().last().map_or(0, |range| range.end);
        let expected = (header.num_items() as u64)
            .checked_mul(size as u64)
            .and_then(|bytes| bytes.checked_add(header.text_bytes));
        if expected != Some(start as u64) {
            return damaged("its size does not match its header");
        }
        let records = Self::new(header, Store::Mapped(map));
        Ok(Opened::Records(Box::new(records)))
    }

    /// The position of the first damaged values, if any; reads all of them. Records in memory cannot be damaged.
    pub fn first_damage(&self) -> Option<usize> {
        let Store::Mapped(map) = &self.store else {
            return None;
        };
        let end = self.size() as usize;
        sums::first_damage(&map[..end], &self.header.sums)
    }
}

/// The result of opening a file of records.
#[derive(Debug)]
pub enum Opened {
    /// The expected records.
    Records(Box<Records>),
    /// Something else, as text.
    Damaged(Reason),
    /// A file of an earlier version, which lacks checksums or the places of skipped items.
    Older,
}

/// The end of a file: the length and checksum of the header, and a magic mark.
const TAIL: usize = 8 + 4 + MAGIC.len();
const MAGIC: &[u8] = b"runner-records-2";
/// The mark of files without checksums.
const OLDER: &[u8] = b"runner-records-1";

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        let names = vec!["no".to_owned(), "yes".to_owned()];
        vec![
            Column::scalar("age", ColumnKind::Doubles),
            Column::scalar("answer", ColumnKind::Categories { names }),
            Column {
                name: "image".into(),
                kind: ColumnKind::Bytes,
                shape: vec![1, 2, 2],
            },
            Column::scalar("note", ColumnKind::Text),
        ]
    }

    fn fill(writer: &mut Writer) {
        writer.begin(columns());
        for (part, num) in [(Part::Train, 3), (Part::Test, 1)] {
            writer.part(part);
            for at in 0_i32..num {
                let note = match at {
                    1 => NO_TEXT,
                    _ => writer.text(&format!("täg {at}")).unwrap(),
                };
                let mut record = Vec::new();
                record.extend(f64::from(at).to_le_bytes());
                record.extend((at - 1).to_le_bytes());
                record.extend([at as u8; 4]);
                record.extend(note);
                writer.push(&record).unwrap();
            }
        }
    }

    fn hold(records: &Records) {
        assert_eq!((records.len(), records.header.parts), (4, [3, 0, 1]));
        assert_eq!(records.number(2, 0, 0), 2.0);
        assert_eq!(
            (records.category(0, 1), records.category(2, 1)),
            (None, Some(1))
        );
        assert_eq!(records.bytes(2, 2), [2; 4]);
        assert_eq!(records.text(0, 3), Some("täg 0"));
        assert_eq!(records.text(1, 3), None);
        assert_eq!(records.column("note"), Some(3));
    }

    /// `!` is an item that is skipped.
    #[test]
    fn numbers_in_files_count_skipped_items() {
        let mut writer = Writer::in_memory();
        writer.begin(vec![Column::scalar("at", ColumnKind::Doubles)]);
        writer.part(Part::Train);
        let files = ["!0!1!!", "!!", "01!2!", "!0"];
        for file in files {
            writer.begin_file();
            for item in file.chars() {
                match item {
                    '!' => writer.skip(Skipped {
                        place: String::new(),
                        reason: String::new(),
                    }),
                    _ => writer.push(&0_f64.to_le_bytes()).unwrap(),
                }
            }
        }
        let records = writer.into_records();
        let expected = files
            .iter()
            .flat_map(|file| file.match_indices(|item| item != '!').map(|(at, _)| at));
        let numbers = (0..records.len()).map(|item| records.number_in_file(item));
        assert_eq!(numbers.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn records_are_the_same_in_memory_and_in_a_file() {
        let mut writer = Writer::in_memory();
        fill(&mut writer);
        hold(&writer.into_records());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.records");
        let mut writer = Writer::in_folder(folder.path()).unwrap();
        fill(&mut writer);
        writer.persist(&path).unwrap();
        let Opened::Records(records) = Records::open(&path).unwrap() else {
            panic!("it was just written");
        };
        hold(&records);
        assert_eq!(records.first_damage(), None);
        let whole = std::fs::read(&path).unwrap();
        let is_noticed = |bytes: &[u8]| {
            crate::testing::rewrite(&path, bytes);
            match Records::open(&path).unwrap() {
                Opened::Records(records) => records.first_damage().is_some(),
                Opened::Damaged(_) | Opened::Older => true,
            }
        };
        assert!(!is_noticed(&whole));
        for len in 0..whole.len() {
            assert!(is_noticed(&whole[..len]), "{len}");
        }
        assert!(is_noticed(&[&whole[4..], &whole[..4]].concat()));
        assert!(is_noticed(&[&whole[..], b"x"].concat()));
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                assert!(is_noticed(&flipped), "bit {bit} of byte {at}");
            }
        }
    }
}
