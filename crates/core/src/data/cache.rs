//! The user's files, decoded once: the cache contains one mapped file for each content and way of reading.

mod identity;
mod paths;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use super::DataError;
use super::known::{self, Known, Trust};
use super::read::{self, Watch, unwritable};
use super::records::{Opened, Records, Writer};
use crate::diagnostic::Reason;
use crate::disk;
use crate::show::plain_io_error;
use crate::spec::data::FilesSpec;
pub use identity::digest;
pub(super) use identity::{digest_and_former, digests_by, file_sum};
pub(super) use paths::lists;
pub use paths::{refuse_twice, resolve};

/// Incremented when readers find other oddities or refuse other files: these are cached with the records, whose digest
/// stays the same.
const FINDINGS: u32 = 2;

/// The records of resolved files with a digest, from the cache or decoded into it. With [`Trust::Bytes`], everything in
/// the cache is checked; otherwise only if the stamp of the cached file does not prove that it was checked before.
pub fn open(
    files: &FilesSpec,
    digest: &str,
    cache: &Path,
    trust: Trust,
    watch: Watch<'_>,
) -> Result<Records, DataError> {
    if disk::IS_MEMORY {
        let writer = build(files, digest, cache, Writer::in_memory(), watch)?;
        return Ok(writer.into_records());
    }
    let name = &digest[..32.min(digest.len())];
    let path = cache.join(format!("{name}-{FINDINGS}.records"));
    let roots = roots(files);
    let found = |trust| -> Result<Option<Records>, Reason> {
        let mut records = sound(&path, digest, cache, trust)?;
        if let Some(records) = &mut records {
            records.header.move_to(&roots);
        }
        Ok(records)
    };
    match found(trust) {
        Ok(Some(records)) => return Ok(records),
        Ok(None) => {}
        Err(reason) => tracing::warn!(
            "the cached file {} cannot be used and is rebuilt from the data: {reason}",
            path.display()
        ),
    }
    fs::create_dir_all(cache).map_err(|e| unwritable(&e))?;
    let writer = Writer::in_folder(cache).map_err(|e| unwritable(&e))?;
    let writer = build(files, digest, cache, writer, watch)?;
    writer.persist(&path).map_err(|e| unwritable(&e))?;
    let unusable = |reason: Reason| {
        let message = format!(
            "the cached file {} cannot be read back: {reason}",
            path.display()
        );
        DataError::new(message).help("check that the disk is healthy and not full")
    };
    found(Trust::Bytes)
        .and_then(|records| records.ok_or_else(|| "it does not exist".into()))
        .map_err(unusable)
}

/// Every path of resolved files, in the order of [`lists`].
fn roots(files: &FilesSpec) -> Vec<String> {
    let mut files = files.clone();
    let lists = lists(&mut files).into_iter();
    lists.flat_map(|(_, paths)| std::mem::take(paths)).collect()
}

/// Decodes files, which must still have this digest afterwards.
fn build(
    files: &FilesSpec,
    digest: &str,
    cache: &Path,
    mut writer: Writer,
    watch: Watch<'_>,
) -> Result<Writer, DataError> {
    let roots = roots(files);
    let stamps = || known::stamps_of(roots.iter().map(Path::new));
    let before = stamps()?;
    writer.note_roots(roots.clone());
    writer.note_content(digest);
    let read = read::read(files, &mut writer, watch);
    let changed = || {
        DataError::new("the data changed while it was being read")
            .help("run the command again once nothing writes to the files")
    };
    // An error in a file that is changing may be in neither of its states.
    if stamps()? != before {
        return Err(changed());
    }
    read?;
    // Nothing changed during the read, and the files now have the digest: so does what was read.
    if self::digest(files, cache, Trust::Stamps)? != digest || stamps()? != before {
        return Err(changed());
    }
    if writer.num_items() == 0 {
        let error = DataError::new("the data has no items");
        let error = error.note(format!("read {}", files.path.join(", ")));
        return Err(match writer.skipped().first() {
            None => error.help("name a file that contains a row or an item"),
            Some(skipped) => error.help(format!("all were skipped; the first: {}", skipped.show())),
        });
    }
    Ok(writer)
}

/// The records of a cached file. `None` if there is none, or one of an older format; the error says what is wrong with
/// it.
fn sound(path: &Path, digest: &str, cache: &Path, trust: Trust) -> Result<Option<Records>, Reason> {
    let opened = Records::open(path).map_err(|e| Reason(plain_io_error(&e)));
    let records = match opened {
        Ok(Opened::Records(records)) => records,
        Ok(Opened::Damaged(reason)) => return Err(reason),
        Ok(Opened::Older) => return Ok(None),
        Err(_) if !path.exists() => return Ok(None),
        Err(reason) => return Err(reason),
    };
    if records.header.content != digest {
        return Err("its content does not match its name".into());
    }
    let mut known = Known::of_cached(cache, trust);
    let checked = known.sum("", path, 0, &mut || match records.first_damage() {
        None => Ok(digest.to_owned()),
        Some(at) => Err(DataError::new(format!(
            "its checksum does not match in the MiB from byte {at}"
        ))),
    });
    known.write();
    match checked {
        Ok(_) => Ok(Some(*records)),
        Err(damage) => Err(Reason(damage.message)),
    }
}
