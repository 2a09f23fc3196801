//! The content of a Burn file of any kind.

use std::fmt::Display;
use std::path::Path;

use burn_pack::Reader;

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
