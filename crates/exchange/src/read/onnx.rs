//! The weights of an ONNX file.

use std::path::{Path, PathBuf};

use runner_core::data::DataError;
use runner_core::disk;
use runner_core::show::show_bytes;
use runner_core::spec::plain_file;

use super::{Entry, Source, damaged, entry_of, unreadable};
use crate::onnx::MAX_BYTES;
use crate::onnx::import::weights;

/// Opens a file with those that its values are in; all of them are read.
pub fn open(path: &Path) -> Result<(Vec<Entry>, Source, Vec<PathBuf>), DataError> {
    let bytes = plain_file::read(path, MAX_BYTES as u64).map_err(|e| unreadable(path, &e))?;
    let Some(bytes) = bytes else {
        let reason = format!("it has more than {}", show_bytes(MAX_BYTES as u64));
        return Err(damaged(path, reason));
    };
    let folder = disk::folder_of(path);
    let (tensors, beside) = weights(&bytes, folder).map_err(|error| DataError {
        helps: error.helps.clone(),
        ..damaged(path, &error.message)
    })?;
    let entries = tensors.iter().map(entry_of).collect();
    Ok((entries, Source::Memory(tensors), beside))
}
