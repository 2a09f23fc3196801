//! Unpacking an untrusted capsule into memory, where there is no disk.

use std::io::{Read, Write};
use std::path::Path;

use ruzstd::decoding::StreamingDecoder;

use super::CapsuleError;
use super::archive::{below, check_tail, check_zstd, content, damaged, entries, more};
use super::manifest::HOSTILE;
use super::opened::{Capsule, in_archive, read_back};
use crate::disk::memory;
use crate::show::show_bytes;

/// The most unpacked bytes: the files and what is made of them need memory too.
const MAX_BYTES: u64 = 512 << 20;

/// Unpacks a capsule into a folder in memory, whose files are replaced. After a refusal nothing of it is left.
///
/// # Errors
/// If it is damaged, or is not as its manifest says.
pub fn unpack_in_memory(name: &str, bytes: &[u8], into: &Path) -> Result<Capsule, CapsuleError> {
    memory::remove(into);
    unpacked(bytes, into).map_err(|error| {
        memory::remove(into);
        in_archive(Path::new(name), error)
    })
}

fn unpacked(bytes: &[u8], into: &Path) -> Result<Capsule, CapsuleError> {
    check_zstd(bytes)?;
    let mut rest = bytes;
    let decoder = StreamingDecoder::new(&mut rest)
        .map_err(|e| damaged(&std::io::Error::other(e.to_string())))?;
    let mut archive = tar::Archive::new(decoder);
    let check = |total| {
        if total <= MAX_BYTES {
            return Ok(());
        }
        let message = format!("the capsule contains {}", show_bytes(total));
        let limit = show_bytes(MAX_BYTES);
        Err(CapsuleError::new(message, HOSTILE).note(format!("the page unpacks at most {limit}")))
    };
    let manifest = entries(&mut archive, &check, &mut |sum, entry| {
        let mut bytes = Vec::new();
        content(entry, sum, &mut |piece| {
            bytes.write_all(piece).map_err(|e| damaged(&e))
        })?;
        memory::put(&below(into, &sum.path), bytes);
        Ok(())
    })?;
    check_tail(&mut archive.into_inner())?;
    if rest.read(&mut [0]).is_ok_and(|num| num > 0) {
        return Err(more());
    }
    let (plan, lineage, siblings) = read_back(&manifest, into)?;
    Ok(Capsule::in_folder(
        manifest,
        siblings,
        (plan, lineage),
        into,
    ))
}
