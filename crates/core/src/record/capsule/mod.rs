//! Capsules: a run in one file, from which it can be reproduced elsewhere.
//!
//! ```text
//! <experiment>-<run>.capsule.tar.zst
//!   capsule.json        the manifest: every other file with its size and sum, and what the data was data/<key>/<n>/…    the data, if packed: the roots of the plan, with files in their original folders
//!   run/…               the run's folder without checkpoints and log; of a copy, with the runs it begins as copies of
//!   siblings.json       the other seeds of the trial: what their numbers were
//! ```
//!
//! The same run gives the same bytes, wherever it is packed: paths and the name of the machine are omitted. A capsule
//! is untrusted input: only what its manifest lists is read, and everything in the manifest is checked.

mod archive;
mod contents;
#[cfg(feature = "native")]
mod extract;
mod in_memory;
mod manifest;
mod opened;
#[cfg(feature = "native")]
mod pack;
#[cfg(feature = "native")]
mod reduced;
#[cfg(feature = "native")]
mod room;
mod siblings;
mod stored;
#[cfg(feature = "native")]
mod unpack;
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod unpack_in_memory;
#[cfg(feature = "native")]
mod write;

pub use contents::DataHere;
pub use in_memory::{default_name, pack_in_memory};
pub use manifest::{DataManifest, DataRoot, FileSum, Manifest, Needs};
pub use opened::Capsule;
#[cfg(feature = "native")]
pub use pack::{Packed, Packing, pack};
#[cfg(feature = "native")]
pub use room::{MAX_BYTES, usual_limit};
pub use siblings::{Sibling, siblings};
#[cfg(feature = "native")]
pub use unpack::unpack;
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub use unpack_in_memory::unpack_in_memory;

use std::fmt;

/// The version of the layout of capsules.
pub const FORMAT: u32 = 1;

/// The manifest in the archive.
const MANIFEST: &str = "capsule.json";
/// The other seeds in the archive.
const SIBLINGS: &str = "siblings.json";
/// The run in the archive.
const RUN_TOML: &str = "run/run.toml";

/// The outcome of a run that has not ended.
const INCOMPLETE: &str = "incomplete";

/// The maximum size of a manifest in bytes.
const MAX_MANIFEST: u64 = 16 << 20;
/// The maximum number of files in a capsule.
const MAX_FILES: usize = 1_000_000;

/// Why a capsule cannot be created or used, described for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct CapsuleError {
    /// What is wrong, with the file or entry.
    pub message: String,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// The remedy.
    pub helps: Vec<String>,
}

impl CapsuleError {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            notes: Vec::new(),
            helps: vec![help.into()],
        }
    }

    fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

impl fmt::Display for CapsuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let mut more = self.notes.iter().chain(&self.helps);
        more.try_for_each(|line| write!(f, "; {line}"))
    }
}

impl std::error::Error for CapsuleError {}
