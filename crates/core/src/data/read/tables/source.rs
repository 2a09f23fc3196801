//! The bytes of a file with a count, and a limit on the size of a row.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::data::DataError;
use crate::data::read::bounded::Bounded;
use crate::data::read::unreadable;
use crate::disk::File;
use crate::spec::plain_file;

/// The maximum size of a row; a larger one indicates an open quote, or a file in a different format.
pub const MAX_ROW: u64 = 256 << 20;

/// Opens a file, decompressed if its name ends in `.gz`; `seen` counts the bytes of the file itself.
pub fn open(path: &Path, seen: &Arc<AtomicU64>) -> Result<Limited, DataError> {
    let file = plain_file::open(path).map_err(|e| unreadable(path, &e))?;
    let counted = Counted {
        file,
        seen: Arc::clone(seen),
    };
    let reader = BufReader::with_capacity(1 << 18, counted);
    let inner: Box<dyn BufRead> = if path.extension().is_some_and(|e| e == "gz") {
        let unpacked = flate2::bufread::MultiGzDecoder::new(reader);
        let unpacked = Bounded::new(unpacked, path);
        Box::new(BufReader::with_capacity(1 << 18, unpacked))
    } else {
        Box::new(reader)
    };
    Ok(Limited {
        inner,
        taken: Arc::new(AtomicU64::new(0)),
        quotes: Arc::new(AtomicU64::new(0)),
        end: Arc::new(AtomicU8::new(0)),
        tabs_are_blanks: false,
        latest: Vec::new(),
        latest_end: 0,
        before: None,
        is_ended: false,
    })
}

struct Counted {
    file: File,
    seen: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let num = self.file.read(buffer)?;
        self.seen.fetch_add(num as u64, Ordering::Relaxed);
        Ok(num)
    }
}

/// A reader that fails if a row is too large.
pub struct Limited {
    inner: Box<dyn BufRead>,
    /// Bytes since the start of the row; reset by the row reader.
    pub taken: Arc<AtomicU64>,
    /// Total number of quotes.
    pub quotes: Arc<AtomicU64>,
    /// The last byte.
    pub end: Arc<AtomicU8>,
    /// Whether tabs are read as spaces.
    pub tabs_are_blanks: bool,
    /// The bytes that were read at last.
    latest: Vec<u8>,
    /// The number of all bytes that were read.
    latest_end: u64,
    /// The byte before the latest ones.
    before: Option<u8>,
    /// Whether the end was read.
    pub is_ended: bool,
}

impl Limited {
    /// The byte at a place, counted from the first one that was read, if it is one of the latest.
    pub fn byte(&self, at: u64) -> Option<u8> {
        let start = self.latest_end - self.latest.len() as u64;
        match at.checked_sub(start) {
            Some(at) => self.latest.get(usize::try_from(at).ok()?).copied(),
            None => self.before.filter(|_| at + 1 == start),
        }
    }

    /// Skips lines; returns how many there were.
    pub fn skip_lines(&mut self, num: usize) -> io::Result<u64> {
        let mut done = 0;
        let mut after_return = false;
        while done < num as u64 {
            let buffer = self.inner.fill_buf()?;
            let Some(&first) = buffer.first() else {
                return Ok(done);
            };
            if after_return && first == b'\n' {
                self.inner.consume(1);
                after_return = false;
                continue;
            }
            after_return = false;
            match buffer.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                Some(at) => {
                    after_return = buffer[at] == b'\r';
                    self.inner.consume(at + 1);
                    done += 1;
                }
                None => {
                    let len = buffer.len();
                    self.inner.consume(len);
                }
            }
        }
        if after_return && self.inner.fill_buf()?.first() == Some(&b'\n') {
            self.inner.consume(1);
        }
        Ok(done)
    }
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let num = self.inner.read(buffer)?;
        self.is_ended |= num == 0 && !buffer.is_empty();
        if self.tabs_are_blanks {
            let tabs = buffer[..num].iter_mut().filter(|byte| **byte == b'\t');
            tabs.for_each(|byte| *byte = b' ');
        }
        let quotes = buffer[..num].iter().filter(|byte| **byte == b'"').count();
        if let Some(last) = buffer[..num].last() {
            self.end.store(*last, Ordering::Relaxed);
            self.before = self.latest.last().copied();
            self.latest.clear();
            self.latest.extend_from_slice(&buffer[..num]);
            self.latest_end += num as u64;
        }
        self.quotes.fetch_add(quotes as u64, Ordering::Relaxed);
        if self.taken.fetch_add(num as u64, Ordering::Relaxed) > MAX_ROW {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a row is longer than {} MiB", MAX_ROW >> 20),
            ));
        }
        Ok(num)
    }
}
