//! Compressed files: a few kilobytes of gzip or zip can contain gigabytes of zeros.

use std::io::{self, Read};
use std::path::Path;

use crate::disk;
use crate::show::show_bytes;

/// The maximum decompression ratio of a file. Tables and images rarely compress to less than a fiftieth.
const MAX_RATIO: u64 = 200;
/// Smaller results are decompressed whatever the ratio.
const ALWAYS: u64 = 1 << 30;

/// The maximum number of bytes that so many compressed bytes may decompress to.
fn limit(packed: u64) -> u64 {
    packed.saturating_mul(MAX_RATIO).max(ALWAYS)
}

/// Why so many bytes are not decompressed from so few; none if they are. Ends a sentence.
pub fn refusal(unpacked: u64, packed: u64) -> Option<String> {
    (unpacked > limit(packed)).then(|| too_much(packed))
}

fn too_much(packed: u64) -> String {
    format!(
        "its {} decompress to more than {}, which is over {MAX_RATIO} times as much; if that is correct, decompress it first",
        show_bytes(packed),
        show_bytes(limit(packed))
    )
}

/// The decompressed content of a file, which ends with an error if it is too large.
pub struct Bounded<R> {
    inner: R,
    packed: u64,
    left: u64,
}

impl<R: Read> Bounded<R> {
    /// The decompressed output of a reader.
    pub fn new(inner: R, path: &Path) -> Self {
        Self::of(inner, disk::metadata(path).map_or(0, |there| there.len()))
    }

    fn of(inner: R, packed: u64) -> Self {
        Self {
            inner,
            packed,
            left: limit(packed),
        }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let num = self.inner.read(buffer)?;
        self.left = self
            .left
            .checked_sub(num as u64)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, too_much(self.packed)))?;
        Ok(num)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bombs_end_before_they_fill_anything() {
        let mut reader = Bounded::of(io::repeat(0), 100 << 10);
        let error = io::copy(&mut reader, &mut io::sink())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("100") && error.contains("1.0 GiB"),
            "{error}"
        );
        let mut reader = Bounded::of(io::repeat(0).take(1000), 1);
        assert_eq!(io::copy(&mut reader, &mut io::sink()).unwrap(), 1000);
        assert_eq!(refusal(ALWAYS, 1), None);
        assert!(refusal(ALWAYS + 1, 1).is_some());
        assert_eq!(refusal(200 << 30, 1 << 30), None);
    }
}
