//! What is known about files without reading them again: sums by path, trusted only while the file's stamp proves that
//! it did not change.
//!
//! A sum is remembered if the file was settled before it was read and its stamp was the same afterwards, and trusted
//! while the stamp stays the same. If a stamp proves nothing (on systems without a time that programs cannot set),
//! every file is read each time. Losing this cache only costs time.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::DataError;
use super::read::{self, unreadable};
use crate::disk;
use crate::spec::plain_file;
use crate::stamp::{Stamp, keeps_times, now};

/// The source of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// From the cache if the file's stamp proves that it is still valid.
    Stamps,
    /// Always from the bytes of the file.
    Bytes,
}

/// A larger file is not one of runner's caches.
const MOST_BYTES: u64 = 1 << 30;

/// Smaller single files are read each time.
const TRUSTED_FROM_BYTES: u64 = 1 << 22;

/// Sums of files by kind of sum and path.
#[derive(Debug)]
pub struct Known {
    path: PathBuf,
    sums: BTreeMap<String, (Stamp, String)>,
    trust: Trust,
    /// The time of reading; that of the clock if none is set.
    time_ns: Option<i64>,
    is_changed: bool,
}

impl Known {
    /// The sums of data files in a cache folder.
    pub fn read(cache: &Path, trust: Trust) -> Self {
        Self::in_file(cache.join("digests.json"), trust)
    }

    /// The sums of the cached files themselves.
    pub fn of_cached(cache: &Path, trust: Trust) -> Self {
        Self::in_file(cache.join("checked.json"), trust)
    }

    fn in_file(path: PathBuf, trust: Trust) -> Self {
        let text = plain_file::read(&path, MOST_BYTES).ok().flatten();
        let text = text.unwrap_or_default();
        Self {
            sums: serde_json::from_slice(&text).unwrap_or_default(),
            path,
            trust,
            time_ns: None,
            is_changed: false,
        }
    }

    /// The same at another time. For tests, which cannot wait until a file is settled.
    #[cfg(all(test, unix))]
    fn at(self, time_ns: i64) -> Self {
        Self {
            time_ns: Some(time_ns),
            ..self
        }
    }

    /// Saves new sums. Failing to save them only makes the next time slower.
    pub fn write(&self) {
        if !self.is_changed {
            return;
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let written = fs::create_dir_all(folder)
            .and_then(|()| tempfile::NamedTempFile::new_in(folder))
            .and_then(|mut file| {
                serde_json::to_writer(&mut file, &self.sums)?;
                file.persist(&self.path).map_err(|e| e.error)
            });
        if let Err(error) = written {
            tracing::debug!("digests of data files are not cached: {error}");
        }
    }

    /// The sha256 of a file, or those of all files of a folder with their names.
    pub fn digests(&mut self, path: &Path) -> Result<Vec<String>, DataError> {
        if !disk::is_dir(path) {
            return Ok(vec![self.digest(path, TRUSTED_FROM_BYTES)?]);
        }
        let mut digests = Vec::new();
        let (files, lost) = read::files_and_lost(path)?;
        for file in files {
            digests.push(name_in(path, &file));
            // For very many small files, even their metadata takes long.
            digests.push(self.digest(&file, 0)?);
        }
        // Records that were read without such a link are not those of the folder.
        for link in lost {
            digests.extend([name_in(path, &link), "leads to nothing".into()]);
        }
        Ok(digests)
    }

    fn digest(&mut self, path: &Path, from_bytes: u64) -> Result<String, DataError> {
        self.sum("", path, from_bytes, &mut || {
            Ok(super::cache::file_sum(path)?.1)
        })
    }

    /// The result of `find` for a file: from the cache if that is proven, otherwise computed. Files smaller than
    /// `from_bytes` are not cached. `what` distinguishes several sums of one file.
    pub fn sum(
        &mut self,
        what: &str,
        path: &Path,
        from_bytes: u64,
        find: &mut dyn FnMut() -> Result<String, DataError>,
    ) -> Result<String, DataError> {
        let stamp = || Stamp::of(path).map_err(|e| unreadable(path, &e));
        let before = stamp()?;
        let key = format!("{what}{}", path.to_string_lossy());
        if self.trust == Trust::Stamps
            && let Some((then, sum)) = self.sums.get(&key)
            && Some(*then) == before
        {
            return Ok(sum.clone());
        }
        let begun = self.time_ns.unwrap_or_else(now);
        let sum = find()?;
        let is_large = disk::metadata(path).is_ok_and(|metadata| metadata.len() >= from_bytes);
        let proof = before.filter(|stamp| stamp.is_proof() && stamp.is_settled_for_maps_at(begun));
        // Tests, which use their own time, may be on any file system.
        let proof = proof.filter(|_| self.time_ns.is_some() || keeps_times(path));
        let is_same = stamp()? == before;
        let proof = proof.filter(|_| is_same && is_large);
        let known = match proof {
            Some(proof) => {
                self.sums.insert(key, (proof, sum.clone())).as_ref() != Some(&(proof, sum.clone()))
            }
            None => self.sums.remove(&key).is_some(),
        };
        self.is_changed |= known;
        Ok(sum)
    }
}

/// The sha256 of a single file that is not data, from the cache if that is proven to be valid.
pub fn file_digest(path: &Path, cache: &Path) -> Result<String, DataError> {
    let known = Known::read(cache, Trust::Stamps);
    single_digest(known, path, TRUSTED_FROM_BYTES)
}

/// The sha256 of a program's file. Apart from those of data, of which there may be very many.
pub fn program_digest(path: &Path, cache: &Path) -> Result<String, DataError> {
    let known = Known::in_file(cache.join("program.json"), Trust::Stamps);
    single_digest(known, path, 0)
}

fn single_digest(mut known: Known, path: &Path, from_bytes: u64) -> Result<String, DataError> {
    let digest = known.digest(path, from_bytes)?;
    known.write();
    Ok(digest)
}

/// The name of a file in a folder, equal on every system.
pub(super) fn name_in(folder: &Path, file: &Path) -> String {
    let name = file.strip_prefix(folder).unwrap_or(file);
    let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// Every file of some files and folders with its stamp: if it is equal at two moments, nothing changed in between.
pub fn stamps_of<'a>(
    paths: impl Iterator<Item = &'a Path>,
) -> Result<Vec<(PathBuf, Option<Stamp>)>, DataError> {
    let mut stamps = Vec::new();
    for path in paths {
        let files = if disk::is_dir(path) {
            read::files_of(path)?
        } else {
            vec![path.to_owned()]
        };
        for file in files {
            let stamp = Stamp::of(&file).map_err(|e| unreadable(&file, &e))?;
            stamps.push((file, stamp));
        }
    }
    Ok(stamps)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::File;

    use super::*;

    /// Long after all files of a test were written, so that their stamps are settled.
    fn later() -> i64 {
        now() + 3_600_000_000_000
    }

    /// Replaces a file in each of the ways that keep its size and modification time.
    fn replaced(path: &Path, way: usize, with: &[u8]) {
        let modified = fs::metadata(path).unwrap().modified().unwrap();
        match way {
            // `cp -p` over it.
            0 => fs::write(path, with).unwrap(),
            // `mv` over it.
            _ => {
                let other = path.with_extension("other");
                fs::write(&other, with).unwrap();
                fs::rename(&other, path).unwrap();
            }
        }
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(modified).unwrap();
    }

    #[test]
    fn a_replaced_file_of_the_same_size_and_time_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let large = folder.path().join("large.csv");
        let pictures = folder.path().join("pictures");
        fs::create_dir_all(pictures.join("cat")).unwrap();
        let picture = pictures.join("cat/a.png");
        for (root, file) in [(&large, &large), (&pictures, &picture)] {
            for way in 0..2 {
                let bytes = vec![b'1'; TRUSTED_FROM_BYTES as usize];
                fs::write(file, &bytes).unwrap();
                let digests = |trust| {
                    let mut known = Known::read(&cache, trust).at(later());
                    let digests = known.digests(root).unwrap();
                    known.write();
                    digests
                };
                let before = digests(Trust::Stamps);
                assert_eq!(digests(Trust::Stamps), before);
                assert_eq!(digests(Trust::Bytes), before);
                replaced(file, way, &vec![b'2'; bytes.len()]);
                assert_ne!(digests(Trust::Stamps), before, "{root:?} {way}");
                assert_ne!(digests(Trust::Bytes), before);
            }
        }
    }

    #[test]
    fn what_was_changed_shortly_before_is_not_remembered_and_what_is_settled_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "1").unwrap();
        let mut num_read = 0;
        let mut sums = |time: Option<i64>, trust| {
            let mut known = Known::read(folder.path(), trust);
            known.time_ns = time;
            let sum = known.sum("", &path, 0, &mut || {
                num_read += 1;
                Ok("sum".into())
            });
            assert_eq!(sum.unwrap(), "sum");
            known.write();
            num_read
        };
        assert_eq!(
            [sums(None, Trust::Stamps), sums(None, Trust::Stamps)],
            [1, 2]
        );
        // A page that was written through a memory map may still be written unnoticed.
        let soon = Some(now() + 30_000_000_000);
        assert_eq!(
            [sums(soon, Trust::Stamps), sums(soon, Trust::Stamps)],
            [3, 4]
        );
        let time = Some(later());
        assert_eq!(
            [sums(time, Trust::Stamps), sums(time, Trust::Stamps)],
            [5, 5]
        );
        assert_eq!(sums(time, Trust::Bytes), 6);
        // The bytes override the cached sum.
        assert_eq!(
            [sums(None, Trust::Bytes), sums(None, Trust::Stamps)],
            [7, 8]
        );
    }

    #[test]
    fn adding_removing_and_replacing_pictures_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, root) = (folder.path().join("cache"), folder.path().join("pictures"));
        fs::create_dir_all(root.join("cat")).unwrap();
        let [a, b] = ["a", "b"].map(|name| root.join("cat").join(name));
        fs::write(&a, "1").unwrap();
        let folder_time = fs::metadata(root.join("cat")).unwrap().modified().unwrap();
        let digests = || {
            // The time of a folder proves nothing.
            let cat = File::open(root.join("cat")).unwrap();
            cat.set_modified(folder_time).unwrap();
            let mut known = Known::read(&cache, Trust::Stamps).at(later());
            let digests = known.digests(&root).unwrap();
            known.write();
            digests
        };
        let mut seen = vec![digests()];
        fs::write(&b, "2").unwrap();
        seen.push(digests());
        replaced(&b, 0, b"3");
        seen.push(digests());
        fs::rename(&b, root.join("cat/c")).unwrap();
        seen.push(digests());
        for (at, one) in seen.iter().enumerate() {
            assert!(!seen[..at].contains(one), "{at}");
        }
        fs::remove_file(root.join("cat/c")).unwrap();
        assert_eq!(digests(), seen[0]);
    }
}
