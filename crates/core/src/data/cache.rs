//! The user's files, decoded once: the cache contains one mapped file for each content and way of reading.

mod cached;
mod identity;
mod paths;
#[cfg(test)]
mod tests;

use std::path::Path;

use super::DataError;
use super::known::{self, Trust};
use super::read::{self, Watch};
use super::records::{Records, Writer};
use crate::disk;
use crate::spec::data::FilesSpec;
pub(super) use cached::Cached;
pub use identity::digest;
pub(super) use identity::{digest_and_former, digests_by, file_sum};
pub(super) use paths::{IMAGES, lists};
pub use paths::{refuse_twice, resolve};

/// Incremented when readers find other oddities or refuse other files: these are cached with the records, whose digest
/// stays the same.
const FINDINGS: u32 = 3;

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
        let mut writer = Writer::in_memory();
        writer.note_content(digest);
        let writer = build(files, digest, cache, writer, watch)?;
        return Ok(writer.into_records());
    }
    let name = &digest[..32.min(digest.len())];
    let name = format!("{name}-{FINDINGS}.records");
    let cached = Cached::new(cache, &name, digest.to_owned());
    let mut records = match cached.open(trust) {
        Some(records) => records,
        None => cached.persist(build(files, digest, cache, cached.writer()?, watch)?)?,
    };
    records.header.move_to(&roots(files));
    Ok(records)
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
