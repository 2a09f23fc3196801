//! Makes records, in memory or in a file.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::ops::Range;
use std::path::Path;

use tempfile::NamedTempFile;

use super::header::number;
use super::{
    Column, ColumnKind, Extent, Header, MAGIC, NearlyNumbers, Part, Records, Skipped, Store,
};
use crate::data::oddity::Oddity;
use crate::data::sentinel::Ends;
use crate::data::sums::Sums;

/// Receives items one after the other.
///
/// First [`Writer::begin`] with the columns, then for each part [`Writer::part`] and its records.
#[derive(Debug)]
pub struct Writer {
    header: Header,
    ranges: Vec<Range<usize>>,
    record_size: usize,
    part: usize,
    sums: Sums,
    /// Whether to track extents and probable sentinels.
    is_measured: bool,
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
    /// Keeps everything in memory.
    pub fn in_memory() -> Self {
        Self::new(Out::Memory {
            records: Vec::new(),
            texts: Vec::new(),
        })
    }

    /// Keeps records of new data in memory, without statistics.
    pub fn of_new_data() -> Self {
        Self {
            is_measured: false,
            ..Self::in_memory()
        }
    }

    /// Writes a file into a folder, under a temporary name that [`Writer::persist`] changes.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        let named = tempfile::Builder::new()
            .prefix(".partial-")
            .tempfile_in(folder)?;
        Ok(Self::new(Out::File {
            records: BufWriter::with_capacity(1 << 20, named),
            texts: BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(folder)?),
        }))
    }

    /// Without statistics.
    pub fn unmeasured(self) -> Self {
        Self {
            is_measured: false,
            ..self
        }
    }

    fn new(out: Out) -> Self {
        Self {
            header: Header::default(),
            ranges: Vec::new(),
            record_size: 0,
            part: 0,
            sums: Sums::default(),
            is_measured: true,
            out,
        }
    }

    /// Declares the columns.
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

    /// Makes room for so many records, if they are kept in memory: growing would copy them again and again.
    pub fn reserve(&mut self, num_items: usize) {
        if let Out::Memory { records, .. } = &mut self.out {
            records.reserve_exact(num_items * self.record_size);
        }
    }

    /// The declared columns, empty before.
    pub fn columns(&self) -> &[Column] {
        &self.header.columns
    }

    /// The following records belong to a part. Parts come in the order train, valid, test.
    pub fn part(&mut self, part: Part) {
        self.part = part as usize;
        self.begin_file();
    }

    /// The following records belong to another file.
    pub fn begin_file(&mut self) {
        let at = self.header.num_items();
        if self.header.files.last() != Some(&at) {
            self.header.files.push(at);
        }
        self.begin_stretch();
        // None of the former file follows its last ones.
        let skips = self.header.skips.get_or_insert_default();
        while skips.last() == Some(&at) {
            skips.pop();
        }
    }

    /// Adds one record, or several of them.
    pub fn push(&mut self, records: &[u8]) -> io::Result<()> {
        let num = records.len() / self.record_size.max(1);
        debug_assert_eq!(num * self.record_size, records.len());
        self.header.parts[self.part] += num;
        let measured = if self.is_measured { records } else { &[] };
        for record in measured.chunks_exact(self.record_size.max(1)) {
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

    /// Adds a text; returns its reference for the record.
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

    /// Reports a skipped item.
    pub fn skip(&mut self, skipped: Skipped) {
        self.header.skipped.push(skipped);
        let next = self.header.num_items();
        self.header.skips.get_or_insert_default().push(next);
        self.begin_stretch();
    }

    /// The following records do not directly follow the previous ones: some were skipped in between.
    fn begin_stretch(&mut self) {
        let at = self.header.num_items();
        if self.header.stretches.last() != Some(&at) {
            self.header.stretches.push(at);
        }
    }

    /// Reports columns that are not numeric although most of their values are numbers.
    pub fn note_nearly_numbers(&mut self, columns: Vec<NearlyNumbers>) {
        self.header.nearly_numbers = columns;
    }

    /// Reports a probable mistake in how the files are read.
    pub fn note_oddities(&mut self, oddities: Vec<Oddity>) {
        self.header.oddities = oddities;
    }

    /// Sets the paths of the files and folders that are read, in the order of the plan.
    pub fn note_roots(&mut self, roots: Vec<String>) {
        self.header.roots = roots;
    }

    /// Sets the digest of what is read.
    pub fn note_content(&mut self, digest: &str) {
        self.header.content = digest.to_owned();
    }

    /// Adds a text that belongs to the records.
    pub fn note(&mut self, note: String) {
        self.header.note = note;
    }

    /// The items that were skipped so far.
    pub fn skipped(&self) -> &[Skipped] {
        &self.header.skipped
    }

    /// Items so far.
    pub fn num_items(&self) -> usize {
        self.header.num_items()
    }

    /// The records of a writer in memory.
    ///
    /// # Panics If the writer was created with [`Writer::in_folder`].
    pub fn into_records(self) -> Records {
        let Out::Memory { records, texts } = self.out else {
            panic!("the records are in a file");
        };
        Records::new(self.header, Store::Memory { records, texts })
    }

    /// Completes a file and renames it into place atomically.
    ///
    /// # Panics If the writer was created with [`Writer::in_memory`].
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
