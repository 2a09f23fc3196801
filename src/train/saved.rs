//! The content of a Burn file of any kind.

use std::fmt::Display;
use std::io::{self, Read};
use std::path::Path;

use burn_pack::{Bytes, Reader};

use runner_core::diagnostic::Reason;
use runner_core::spec::plain_file;
pub use runner_network::saved::Saved;

/// Reads a file.
pub fn read(path: &Path) -> Result<Saved, Reason> {
    let unreadable = |e: &dyn Display| Reason(format!("{} cannot be read: {e}", path.display()));
    // Opening a pipe in its place would block.
    plain_file::open(path).map_err(|e| unreadable(&e))?;
    let reader = Reader::from_file(path).map_err(|e| unreadable(&e))?;
    Saved::read(reader).map_err(|e| unreadable(&e))
}

/// The content of a file, where tensors can begin. A vector of bytes would be copied, because it may not be aligned, and
/// new memory for large models takes longer than reading them.
pub fn content(path: &Path) -> io::Result<Bytes> {
    const SIZE: usize = size_of::<u128>();
    const PIECE: usize = 1 << 20;
    let mut file = plain_file::open(path)?;
    let size = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut numbers: Vec<u128> = Vec::with_capacity(size.div_ceil(SIZE));
    let (mut piece, mut len) = (Vec::new(), 0);
    loop {
        piece.clear();
        let num = file.by_ref().take(PIECE as u64).read_to_end(&mut piece)?;
        len += num;
        piece.resize(num.next_multiple_of(SIZE), 0);
        let (whole, _) = piece.as_chunks::<SIZE>();
        numbers.extend(whole.iter().map(|bytes| u128::from_ne_bytes(*bytes)));
        if num < PIECE {
            break;
        }
    }
    // Without what fills up the last number.
    let bytes = Bytes::from_elems(numbers).shared().view(0, len);
    bytes.map_err(|_| io::ErrorKind::InvalidData.into())
}
