//! Items as records of one size, in memory or in a mapped file: what readers make, and what everything
//! else serves from.
//!
//! A record holds a value of each column, one behind the other, as little-endian bytes. Texts are of
//! any length: they stand behind the records, and a record holds their places.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::ops::Range;
use std::path::Path;

use super::oddity::Oddity;
use super::sentinel::Ends;
use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::sums::{self, Sums};

/// One named value of every item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name, unique in the data set.
    pub name: String,
    /// What its values are.
    pub kind: ColumnKind,
    /// The shape of an item's value; empty for a single one.
    pub shape: Vec<usize>,
}

/// What the values of a column are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnKind {
    /// Bytes, such as pixels.
    Bytes,
    /// Numbers of 32 bits; NaN where there is none.
    Numbers,
    /// Numbers of 64 bits; NaN where there is none.
    Doubles,
    /// Whole numbers, such as classes or tokens; [`NO_NUMBER`] where there is none.
    Whole,
    /// Places in a sorted list of names; -1 where there is none.
    Categories {
        /// The names.
        names: Vec<String>,
    },
    /// A text; where there is none, its place is [`NO_TEXT`].
    Text,
}

/// Stands for a missing whole number.
pub const NO_NUMBER: i32 = i32::MIN;
/// Stands for a missing text.
pub const NO_TEXT: [u8; 16] = [0xff; 16];

impl ColumnKind {
    /// Bytes of one value.
    pub fn size(&self) -> usize {
        match self {
            ColumnKind::Bytes => 1,
            ColumnKind::Numbers | ColumnKind::Whole | ColumnKind::Categories { .. } => 4,
            ColumnKind::Doubles => 8,
            ColumnKind::Text => 16,
        }
    }

    /// In words, for sentences.
    pub fn show(&self) -> &'static str {
        match self {
            ColumnKind::Bytes => "bytes",
            ColumnKind::Numbers | ColumnKind::Doubles => "numbers",
            ColumnKind::Whole => "whole numbers",
            ColumnKind::Categories { .. } => "categories",
            ColumnKind::Text => "texts",
        }
    }

    /// One of its values, by the word that `type` takes where it takes one.
    pub fn word(&self) -> &'static str {
        match self {
            ColumnKind::Bytes => "byte",
            ColumnKind::Numbers | ColumnKind::Doubles => "number",
            ColumnKind::Whole => "whole number",
            ColumnKind::Categories { .. } => "category",
            ColumnKind::Text => "text",
        }
    }
}

impl Column {
    /// A column of single values.
    pub fn scalar(name: impl Into<String>, kind: ColumnKind) -> Self {
        Self {
            name: name.into(),
            kind,
            shape: Vec::new(),
        }
    }

    /// Values of one item.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether an item has no values here.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Which split files were given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Items that are split by the fractions.
    Train,
    /// Items of the valid split.
    Valid,
    /// Items of the test split.
    Test,
}

impl Part {
    /// The key of the experiment file that names its files.
    pub fn key(self) -> &'static str {
        match self {
            Part::Train => "data.path",
            Part::Valid => "data.valid_path",
            Part::Test => "data.test_path",
        }
    }

    /// The key that names the files of its targets.
    pub fn target_key(self) -> &'static str {
        match self {
            Part::Train => "data.target_path",
            Part::Valid => "data.valid_target_path",
            Part::Test => "data.test_target_path",
        }
    }
}

/// An item that could not be decoded and was left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    /// The file, with the line or record where there is one.
    pub place: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Skipped {
    /// Place and reason as one sentence.
    pub fn show(&self) -> String {
        let Self { place, reason } = self;
        if ["is ", "has ", "takes ", "cannot "]
            .iter()
            .any(|verb| reason.starts_with(verb))
        {
            format!("{place} {reason}")
        } else {
            format!("{place}: {reason}")
        }
    }
}

/// What is known of records besides their bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The columns in the order in which a record holds them.
    pub columns: Vec<Column>,
    /// Records of each part, in the order train, valid, test, which is their order in the file.
    pub parts: [usize; 3],
    /// Bytes of all texts.
    pub text_bytes: u64,
    /// Items that were left out.
    pub skipped: Vec<Skipped>,
    /// What each column's values reach from and to.
    pub extents: Vec<Extent>,
    /// The first records of files, ascending.
    #[serde(default)]
    pub files: Vec<usize>,
    /// The first records of stretches, ascending: before each a file begins, or items were left out.
    #[serde(default)]
    pub stretches: Vec<usize>,
    /// Columns that were found to be no numbers although most of their values are.
    #[serde(default)]
    pub nearly_numbers: Vec<NearlyNumbers>,
    /// What else is most likely a mistake in how the files are read.
    #[serde(default)]
    pub oddities: Vec<Oddity>,
    /// The least and the largest values of each column of numbers.
    #[serde(default)]
    pub ends: Vec<Ends>,
    /// Where the files and folders were that the records were read from, in the order of the plan.
    #[serde(default)]
    pub roots: Vec<String>,
    /// The digest of what the records were read from, and of how.
    #[serde(default)]
    pub content: String,
    /// Checksums of all values and texts.
    #[serde(default)]
    sums: Vec<u32>,
}

/// A column of categories or texts of which most values can be read as numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NearlyNumbers {
    /// Its name.
    pub column: String,
    /// Values that are numbers.
    pub numbers: u64,
    /// Values that are there.
    pub present: u64,
    /// Where the first stands that is none.
    pub place: String,
    /// That value, shortened.
    pub text: String,
}

impl NearlyNumbers {
    /// In words.
    pub fn show(&self) -> String {
        format!(
            "{} of {} values of `{}` are numbers, and {} holds `{}`",
            self.numbers, self.present, self.column, self.place, self.text
        )
    }
}

/// What the values of a column reach from and to, over all items.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extent {
    /// The smallest number; for texts and where there is none, `None`.
    pub min: Option<f64>,
    /// The largest number.
    pub max: Option<f64>,
    /// Items of which a value is missing.
    pub missing: u64,
    /// Items of which a number is infinite.
    pub infinite: u64,
}

impl Header {
    /// Where each column's bytes stand in a record.
    fn ranges(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let range = |column: &Column| {
            let range = start..start + column.len() * column.kind.size();
            start = range.end;
            range
        };
        self.columns.iter().map(range).collect()
    }

    fn num_items(&self) -> usize {
        self.parts.iter().sum()
    }

    /// What is odd about a column.
    pub fn oddity_of(&self, column: &str) -> Option<&Oddity> {
        let mut oddities = self.oddities.iter();
        oddities.find(|odd| odd.columns.iter().any(|name| name == column))
    }

    /// Names places by where the same files are now: records are found by what files hold, and may have
    /// been read elsewhere.
    pub fn move_to(&mut self, roots: &[String]) {
        let mut moves: Vec<_> = self.roots.iter().zip(roots).collect();
        // One root may begin as another one does.
        moves.sort_by_key(|(then, _)| std::cmp::Reverse(then.len()));
        let skipped = self.skipped.iter_mut().map(|skipped| &mut skipped.place);
        let odd = self.nearly_numbers.iter_mut().map(|odd| &mut odd.place);
        let oddities = self.oddities.iter_mut().map(|odd| &mut odd.message);
        for place in skipped.chain(odd).chain(oddities) {
            let then_now = moves.iter().find(|(then, _)| place.contains(then.as_str()));
            if let Some((then, now)) = then_now {
                *place = place.replacen(then.as_str(), now, 1);
            }
        }
        self.roots = roots.to_vec();
    }
}

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
    Mapped(Mmap),
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

    /// The number of the file that a record is of, over those of all parts.
    pub fn file_of(&self, item: usize) -> usize {
        self.header.files.partition_point(|start| *start <= item)
    }

    /// Whether two records may stand side by side in a series: both are of one unbroken stretch of a file.
    pub fn is_one_stretch(&self, a: usize, b: usize) -> bool {
        let stretch = |item| {
            self.header
                .stretches
                .partition_point(|start| *start <= item)
        };
        stretch(a) == stretch(b)
    }

    /// Whether an item lacks a value of a column.
    pub fn lacks(&self, item: usize, column: usize) -> bool {
        match self.columns()[column].kind {
            ColumnKind::Text => self.text(item, column).is_none(),
            ColumnKind::Categories { .. } => self.category(item, column).is_none(),
            _ => {
                let mut found = false;
                self.numbers(item, column, |value| found |= value.is_nan());
                found
            }
        }
    }

    /// The number of the column with a name.
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

    /// One number of an item in a column of any kind but text; NaN where there is none.
    pub fn number(&self, item: usize, column: usize, at: usize) -> f64 {
        let bytes = self.bytes(item, column);
        let kind = &self.columns()[column].kind;
        let bytes = &bytes[at * kind.size()..(at + 1) * kind.size()];
        number(kind, bytes)
    }

    /// Calls `see` with each number of an item in a column of any kind but text, in order.
    pub fn numbers(&self, item: usize, column: usize, mut see: impl FnMut(f64)) {
        let kind = &self.columns()[column].kind;
        let values = self.bytes(item, column).chunks_exact(kind.size());
        values.for_each(|bytes| see(number(kind, bytes)));
    }

    /// The name of an item's category, or `None` where there is none.
    pub fn category(&self, item: usize, column: usize) -> Option<usize> {
        let code = self.number(item, column, 0);
        (code >= 0.0).then_some(code as usize)
    }

    /// The text of an item in a column of texts.
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

    /// Maps a file that a [`Writer`] made. Header and structure are checked, and the values not: that is done by
    /// [`Records::first_damage`].
    pub fn open(path: &Path) -> io::Result<Opened> {
        let damaged = |reason: &str| Ok(Opened::Damaged(reason.into()));
        let file = File::open(path)?;
        if file.metadata()?.len() < TAIL as u64 {
            return damaged("it is too short");
        }
        // SAFETY: files of the cache are made under another name, renamed, and never written again; a user
        // who truncates one while it is read gets a bus error, as with every mapped file.
        let map = unsafe { Mmap::map(&file)? };
        let (rest, tail) = map.split_at(map.len() - TAIL);
        let Some(numbers) = tail.strip_suffix(MAGIC) else {
            return if tail.ends_with(OLDER) {
                Ok(Opened::Older)
            } else {
                damaged("it has another end")
            };
        };
        let (mut len, mut sum) = ([0; 8], [0; 4]);
        len.copy_from_slice(&numbers[..8]);
        sum.copy_from_slice(&numbers[8..]);
        let Some(start) = rest.len().checked_sub(u64::from_le_bytes(len) as usize) else {
            return damaged("its header is incomplete");
        };
        if crc32c::crc32c(&rest[start..]) != u32::from_le_bytes(sum) {
            return damaged("its header has another checksum");
        }
        let Ok(header) = serde_json::from_slice::<Header>(&rest[start..]) else {
            return damaged("its header is of another version");
        };
        let size = header.ranges().last().map_or(0, |range| range.end);
        let expected = (header.num_items() as u64)
            .checked_mul(size as u64)
            .and_then(|bytes| bytes.checked_add(header.text_bytes));
        if expected != Some(start as u64) {
            return damaged("it has another size than its header says");
        }
        let records = Self::new(header, Store::Mapped(map));
        Ok(Opened::Records(Box::new(records)))
    }

    /// Where the first values begin that are not those that were written, if there are such; reads all of them. What is
    /// in memory was never written.
    pub fn first_damage(&self) -> Option<usize> {
        let Store::Mapped(map) = &self.store else {
            return None;
        };
        let end = self.size() as usize;
        sums::first_damage(&map[..end], &self.header.sums)
    }
}

/// What a file of records turned out to be.
#[derive(Debug)]
pub enum Opened {
    /// What it is said to be.
    Records(Box<Records>),
    /// Something else, in words.
    Damaged(String),
    /// A file of an earlier version of this program, which had no checksums.
    Older,
}

impl Extent {
    /// Takes in the values of one item.
    fn see(&mut self, kind: &ColumnKind, bytes: &[u8]) {
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        let (mut is_missing, mut is_infinite) = (false, false);
        match kind {
            ColumnKind::Text => is_missing = bytes == NO_TEXT,
            // The same as below, eight times as fast: pictures are large.
            ColumnKind::Bytes => {
                min = bytes.iter().min().map_or(min, |byte| f64::from(*byte));
                max = bytes.iter().max().map_or(max, |byte| f64::from(*byte));
            }
            _ => {
                for value in bytes.chunks_exact(kind.size()) {
                    let value = number(kind, value);
                    let is_none = matches!(kind, ColumnKind::Categories { .. }) && value < 0.0;
                    if value.is_nan() || is_none {
                        is_missing = true;
                    } else if value.is_infinite() {
                        is_infinite = true;
                    } else {
                        min = min.min(value);
                        max = max.max(value);
                    }
                }
            }
        }
        self.missing += u64::from(is_missing);
        self.infinite += u64::from(is_infinite);
        if min <= max {
            self.min = Some(self.min.map_or(min, |known| known.min(min)));
            self.max = Some(self.max.map_or(max, |known| known.max(max)));
        }
    }
}

/// The number that the bytes of one value hold; NaN where there is none.
pub(super) fn number(kind: &ColumnKind, bytes: &[u8]) -> f64 {
    let word = || {
        let mut word = [0; 4];
        word.copy_from_slice(bytes);
        word
    };
    match kind {
        ColumnKind::Bytes => f64::from(bytes[0]),
        ColumnKind::Numbers => f64::from(f32::from_le_bytes(word())),
        ColumnKind::Doubles => {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            f64::from_le_bytes(word)
        }
        ColumnKind::Whole | ColumnKind::Categories { .. } => match i32::from_le_bytes(word()) {
            NO_NUMBER => f64::NAN,
            whole => f64::from(whole),
        },
        ColumnKind::Text => f64::NAN,
    }
}

/// The end of a file: the header's length and checksum, and a mark.
const TAIL: usize = 8 + 4 + MAGIC.len();
const MAGIC: &[u8] = b"runner-records-2";
/// The mark of files without checksums.
const OLDER: &[u8] = b"runner-records-1";

/// Takes items one after the other.
///
/// First [`Writer::begin`] with the columns, then for each part [`Writer::part`] and its records.
#[derive(Debug)]
pub struct Writer {
    header: Header,
    ranges: Vec<Range<usize>>,
    record_size: usize,
    part: usize,
    sums: Sums,
    out: Out,
}

#[derive(Debug)]
enum Out {
    Memory {
        records: Vec<u8>,
        texts: Vec<u8>,
    },
    File {
        records: BufWriter<NamedTempFile>,
        texts: BufWriter<File>,
    },
}

impl Writer {
    /// Keeps all in memory.
    pub fn in_memory() -> Self {
        Self::new(Out::Memory {
            records: Vec::new(),
            texts: Vec::new(),
        })
    }

    /// Writes a file into a folder, under a name that [`Writer::persist`] changes.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        let named = tempfile::Builder::new()
            .prefix(".partial-")
            .tempfile_in(folder)?;
        Ok(Self::new(Out::File {
            records: BufWriter::with_capacity(1 << 20, named),
            texts: BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(folder)?),
        }))
    }

    fn new(out: Out) -> Self {
        Self {
            header: Header::default(),
            ranges: Vec::new(),
            record_size: 0,
            part: 0,
            sums: Sums::default(),
            out,
        }
    }

    /// States the columns.
    pub fn begin(&mut self, columns: Vec<Column>) {
        self.header.columns = columns;
        self.ranges = self.header.ranges();
        self.record_size = self.ranges.last().map_or(0, |range| range.end);
        let none = Extent {
            min: None,
            max: None,
            missing: 0,
            infinite: 0,
        };
        self.header.extents = vec![none; self.header.columns.len()];
        self.header.ends = vec![Ends::default(); self.header.columns.len()];
    }

    /// The columns that were stated, empty before.
    pub fn columns(&self) -> &[Column] {
        &self.header.columns
    }

    /// The records that follow are of a part. Parts come in the order train, valid, test.
    pub fn part(&mut self, part: Part) {
        self.part = part as usize;
        self.begin_file();
    }

    /// The records that follow are of another file.
    pub fn begin_file(&mut self) {
        let at = self.header.num_items();
        if self.header.files.last() != Some(&at) {
            self.header.files.push(at);
        }
        self.begin_stretch();
    }

    /// Adds one record, or several of them.
    pub fn push(&mut self, records: &[u8]) -> io::Result<()> {
        let num = records.len() / self.record_size.max(1);
        debug_assert_eq!(num * self.record_size, records.len());
        self.header.parts[self.part] += num;
        for record in records.chunks_exact(self.record_size.max(1)) {
            let columns = self.header.columns.iter().zip(&self.ranges);
            let measured = self.header.extents.iter_mut().zip(&mut self.header.ends);
            for ((column, range), (extent, ends)) in columns.zip(measured) {
                let bytes = &record[range.clone()];
                extent.see(&column.kind, bytes);
                if matches!(
                    column.kind,
                    ColumnKind::Numbers | ColumnKind::Doubles | ColumnKind::Whole
                ) {
                    let values = bytes.chunks_exact(column.kind.size());
                    values.for_each(|value| ends.see(number(&column.kind, value)));
                }
            }
        }
        match &mut self.out {
            Out::Memory { records: all, .. } => {
                all.extend_from_slice(records);
                Ok(())
            }
            Out::File { records: out, .. } => {
                self.sums.add(records);
                out.write_all(records)
            }
        }
    }

    /// Adds a text; returns what the record holds for it.
    pub fn text(&mut self, text: &str) -> io::Result<[u8; 16]> {
        let mut place = [0; 16];
        place[..8].copy_from_slice(&self.header.text_bytes.to_le_bytes());
        place[8..].copy_from_slice(&(text.len() as u64).to_le_bytes());
        self.header.text_bytes += text.len() as u64;
        match &mut self.out {
            Out::Memory { texts, .. } => texts.extend_from_slice(text.as_bytes()),
            Out::File { texts, .. } => texts.write_all(text.as_bytes())?,
        }
        Ok(place)
    }

    /// Notes an item that is left out.
    pub fn skip(&mut self, skipped: Skipped) {
        self.header.skipped.push(skipped);
        self.begin_stretch();
    }

    /// The records that follow do not follow those before: they are some were left out between.
    fn begin_stretch(&mut self) {
        let at = self.header.num_items();
        if self.header.stretches.last() != Some(&at) {
            self.header.stretches.push(at);
        }
    }

    /// Notes columns that are no numbers although most of their values are.
    pub fn note_nearly_numbers(&mut self, columns: Vec<NearlyNumbers>) {
        self.header.nearly_numbers = columns;
    }

    /// Notes what is most likely a mistake in how the files are read.
    pub fn note_oddities(&mut self, oddities: Vec<Oddity>) {
        self.header.oddities = oddities;
    }

    /// Says where the files and folders are that are read, in the order of the plan.
    pub fn note_roots(&mut self, roots: Vec<String>) {
        self.header.roots = roots;
    }

    /// Says which digest what is read has.
    pub fn note_content(&mut self, digest: &str) {
        self.header.content = digest.to_owned();
    }

    /// The items that were left out so far.
    pub fn skipped(&self) -> &[Skipped] {
        &self.header.skipped
    }

    /// Items so far.
    pub fn num_items(&self) -> usize {
        self.header.num_items()
    }

    /// The records of a writer in memory.
    ///
    /// # Panics
    /// When the writer was made with [`Writer::in_folder`].
    pub fn into_records(self) -> Records {
        let Out::Memory { records, texts } = self.out else {
            panic!("the records are in a file");
        };
        Records::new(self.header, Store::Memory { records, texts })
    }

    /// Ends a file and gives it its name, all at once.
    ///
    /// # Panics
    /// When the writer was made with [`Writer::in_memory`].
    pub fn persist(self, path: &Path) -> io::Result<()> {
        let Out::File { mut records, texts } = self.out else {
            panic!("the records are in memory");
        };
        let mut texts = texts.into_inner().map_err(|e| e.into_error())?;
        texts.rewind()?;
        let mut sums = self.sums;
        let mut buffer = vec![0; 1 << 18];
        loop {
            match texts.read(&mut buffer)? {
                0 => break,
                num => {
                    sums.add(&buffer[..num]);
                    records.write_all(&buffer[..num])?;
                }
            }
        }
        let header = Header {
            sums: sums.end(),
            ..self.header
        };
        let header = serde_json::to_vec(&header)?;
        records.write_all(&header)?;
        records.write_all(&(header.len() as u64).to_le_bytes())?;
        records.write_all(&crc32c::crc32c(&header).to_le_bytes())?;
        records.write_all(MAGIC)?;
        let file = records.into_inner().map_err(|e| e.into_error())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    }
}

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
            std::fs::write(&path, bytes).unwrap();
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
