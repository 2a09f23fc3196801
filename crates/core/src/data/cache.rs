//! The user's files, decoded once: the cache contains one mapped file for each content and way of reading.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use wildmatch::WildMatch;

use super::known::{self, Known, Trust};
use super::read::{self, Watch, unreadable, unwritable};
use super::records::{Opened, Records, Writer};
use super::{DataError, hex, sha256_hex};
use crate::diagnostic::nearest;
use crate::spec::data::{FilesSpec, Format};
use crate::spec::document::plain_io_error;
use crate::spec::plain_file;

/// Incremented when readers decode the same files differently: older cached files are then not used.
const READERS: u32 = 4;

/// The version for runs of format 2, whose data is identified by its digest.
const FORMER_READERS: u32 = 3;

/// Files with absolute paths and without patterns, relative to `base`.
pub fn resolve(spec: &FilesSpec, base: &Path) -> Result<FilesSpec, DataError> {
    let mut files = spec.clone();
    let folders = matches!(spec.format, Format::ImageFolder { .. });
    for (key, paths) in lists(&mut files) {
        let mut found = Vec::new();
        for written in paths.iter() {
            let places = expand(&base.join(written), written, key, folders)
                .map_err(|error| error.key(format!("data.{key}")))?;
            found.extend(places);
        }
        *paths = found;
    }
    Ok(files)
}

/// Every list of paths with its key.
pub(super) fn lists(files: &mut FilesSpec) -> Vec<(&'static str, &mut Vec<String>)> {
    let mut lists = vec![
        ("path", &mut files.path),
        ("valid_path", &mut files.valid_path),
        ("test_path", &mut files.test_path),
    ];
    if let Format::Npy { targets }
    | Format::Idx { targets }
    | Format::ImageFolder { masks: targets, .. } = &mut files.format
    {
        lists.extend([
            ("target_path", &mut targets.path),
            ("valid_target_path", &mut targets.valid_path),
            ("test_target_path", &mut targets.test_path),
        ]);
    }
    lists
}

/// The files of a path, sorted by name if it is a pattern.
fn expand(path: &Path, written: &str, key: &str, folders: bool) -> Result<Vec<String>, DataError> {
    let missing = |what: String| {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut names: Vec<_> = fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let error = DataError::new(what).note(format!("searched {}", path.display()));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match nearest(&name, names.iter().map(String::as_str)) {
            // With the folder as it was written, so that it can be copied.
            Some(near) => match written.rsplit_once('/') {
                Some((folder, _)) => error.help(format!("did you mean `{folder}/{near}`?")),
                None => error.help(format!("did you mean `{near}`?")),
            },
            None => error.help("paths are relative to the folder of the experiment file"),
        }
    };
    let is_pattern = written.contains(['*', '?']);
    let places: Vec<PathBuf> = if is_pattern {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let pattern = WildMatch::new(&name);
        let folder = path.parent().unwrap_or(Path::new("."));
        let entries = fs::read_dir(folder).map_err(|e| unreadable(folder, &e))?;
        let mut places: Vec<_> = entries
            .flatten()
            .filter(|entry| pattern.matches(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
        places.sort();
        if places.is_empty() {
            return Err(missing(format!("no file matches `{written}`")));
        }
        places
    } else if path.exists() {
        vec![path.to_owned()]
    } else {
        return Err(missing(format!("the file `{written}` does not exist")));
    };
    let mut found = Vec::new();
    for place in places {
        let metadata = fs::metadata(&place).map_err(|e| unreadable(&place, &e))?;
        if let (false, Err(what)) = (metadata.is_dir(), plain_file::check(&metadata)) {
            let message = format!("`{written}` cannot be read: {what}");
            return Err(DataError::new(message).help("name a regular file that contains the data"));
        }
        if metadata.is_dir() != folders {
            let (is, wanted) = if folders {
                ("a file", "a folder of images")
            } else {
                ("a folder", "a file")
            };
            let message = format!("`{written}` is {is}, but `{key}` needs {wanted}");
            return Err(DataError::new(message).help(if folders {
                "name the folder that contains the images"
            } else {
                "name a file in it, or use a pattern such as `*.csv` for all files of a kind"
            }));
        }
        let whole = fs::canonicalize(&place).map_err(|e| unreadable(&place, &e))?;
        found.push(whole.to_string_lossy().into_owned());
    }
    Ok(found)
}

/// Refuses a file that is listed twice: in two splits, training items would also be evaluated, and within one, its
/// items would count twice.
pub fn refuse_twice(files: &FilesSpec, cache: &Path) -> Result<(), DataError> {
    // A file cannot occur twice in a folder, and reading a large folder takes a while.
    if files.path.len() + files.valid_path.len() + files.test_path.len() < 2 {
        return Ok(());
    }
    let mut known = Known::read(cache, Trust::Stamps);
    let mut seen: Vec<(&str, &String, Vec<String>)> = Vec::new();
    let given = [
        ("path", &files.path),
        ("valid_path", &files.valid_path),
        ("test_path", &files.test_path),
    ];
    for (key, path) in given
        .into_iter()
        .flat_map(|(key, paths)| paths.iter().map(move |p| (key, p)))
    {
        let digests = known.digests(Path::new(path))?;
        let same = |(_, other, others): &&(&str, &String, Vec<String>)| {
            *other == path || !digests.is_empty() && digests == *others
        };
        if let Some((other_key, other, _)) = seen.iter().find(same) {
            let message = match (*other == path, *other_key == key) {
                (true, true) => format!("`{key}` lists `{path}` twice"),
                (true, false) => format!("`{other_key}` and `{key}` both list `{path}`"),
                (false, _) => format!("`{path}` has the same content as `{other}`"),
            };
            let (reason, help) = if *other_key == key {
                ("its items would count twice", "list it once")
            } else {
                (
                    "memorized training items would count as correct predictions",
                    "use separate files for each split, or let the fractions of `[data.split]` split one",
                )
            };
            let error = DataError::new(message).key(format!("data.{key}"));
            return Err(error.note(reason).help(help));
        }
        seen.push((key, path, digests));
    }
    known.write();
    Ok(())
}

/// The digest of the content of resolved files and of how they are read.
pub fn digest(files: &FilesSpec, cache: &Path, trust: Trust) -> Result<String, DataError> {
    Ok(digest_and_former(files, cache, trust)?[0].clone())
}

/// The same, followed by the digests of earlier versions, which their plans contain.
pub(super) fn digest_and_former(
    files: &FilesSpec,
    cache: &Path,
    trust: Trust,
) -> Result<[String; 2], DataError> {
    let mut known = Known::read(cache, trust);
    let digests = digests_by(files, &mut |path| known.digests(path));
    // Also after a refusal: what was read need not be read again.
    known.write();
    digests
}

/// The same two, from the digest of each file, or of all files of a folder with their names.
pub(super) fn digests_by(
    files: &FilesSpec,
    digests_of: &mut dyn FnMut(&Path) -> Result<Vec<String>, DataError>,
) -> Result<[String; 2], DataError> {
    let mut files = files.clone();
    let (mut contents, mut former) = (Vec::new(), Vec::new());
    for (key, paths) in lists(&mut files) {
        let (mut digests, mut plain) = (Vec::new(), Vec::new());
        for path in paths.iter() {
            let of_path =
                digests_of(Path::new(path)).map_err(|e| e.or_key(&format!("data.{key}")))?;
            // Which masks belong to which images depends on where one folder ends.
            if paths.len() > 1 && of_path.len() != 1 {
                digests.push(format!("{} in a folder", of_path.len() / 2));
            }
            digests.extend(of_path.iter().cloned());
            plain.extend(of_path);
            // A reader uses the name of a file only to detect compression.
            if path.ends_with(".gz") {
                digests.push("packed".into());
            }
        }
        if !plain.is_empty() {
            contents.push(json!([key, digests]));
            former.push(json!([key, plain]));
        }
        // The location of files does not matter.
        paths.clear();
    }
    Ok([
        digest_of(&files, contents, READERS),
        digest_of(&files, former, FORMER_READERS),
    ])
}

/// The digest of contents that are read like these files, by a given version of the readers.
fn digest_of(files: &FilesSpec, contents: Vec<Json>, readers: u32) -> String {
    // Every new field needs a decision whether readers depend on it.
    let FilesSpec {
        format,
        path: _,
        valid_path: _,
        test_path: _,
        on_bad_item,
        roles,
        // This is fitted to texts after they were read; the run's fingerprint includes it.
        tokens: _,
    } = files;
    let types = roles.columns.iter().map(|c| {
        if readers == FORMER_READERS {
            json!([c.name, c.kind])
        } else {
            json!([c.name, c.kind, c.missing_values, c.date_format])
        }
    });
    let mut work = json!({
        "readers": readers,
        "contents": contents,
        "format": format,
        "on_bad_item": on_bad_item,
        "types": types.collect::<Vec<_>>(),
        "target": roles.target,
        "features": roles.features,
        "ignore": roles.ignore,
        "missing_is_bad": read::missing_is_bad(files),
    });
    if readers != FORMER_READERS {
        work["values"] = json!(roles.values);
    }
    sha256_hex(work.to_string().as_bytes())
}

/// The records of resolved files with a digest, from the cache or decoded into it. With [`Trust::Bytes`], everything in
/// the cache is checked; otherwise only if the stamp of the cached file does not prove that it was checked before.
pub fn open(
    files: &FilesSpec,
    digest: &str,
    cache: &Path,
    trust: Trust,
    watch: Watch<'_>,
) -> Result<Records, DataError> {
    let path = cache.join(format!("{}.records", &digest[..32.min(digest.len())]));
    let roots = roots(files);
    let found = |trust| -> Result<Option<Records>, String> {
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
    build(files, digest, &path, watch)?;
    let unusable = |reason: String| {
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

/// Decodes files into the cached file of a digest, which is only created if the files still have that digest.
fn build(files: &FilesSpec, digest: &str, path: &Path, watch: Watch<'_>) -> Result<(), DataError> {
    let cache = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(cache).map_err(|e| unwritable(&e))?;
    let mut writer = Writer::in_folder(cache).map_err(|e| unwritable(&e))?;
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
    writer.persist(path).map_err(|e| unwritable(&e))
}

/// The records of a cached file. `None` if there is none, or one of an older format; the error says what is wrong with
/// it.
fn sound(path: &Path, digest: &str, cache: &Path, trust: Trust) -> Result<Option<Records>, String> {
    let opened = Records::open(path).map_err(|e| plain_io_error(&e));
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
        Err(damage) => Err(damage.message),
    }
}

/// Bytes and sha256 of a file.
pub(super) fn file_sum(path: &Path) -> Result<(u64, String), DataError> {
    let mut file = plain_file::open(path).map_err(|e| unreadable(path, &e))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer).map_err(|e| unreadable(path, &e))? {
            0 => return Ok((bytes, hex(&hasher.finalize()))),
            num => {
                hasher.update(&buffer[..num]);
                bytes += num as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::spec::data::DataKind;

    fn rows(shift: usize) -> String {
        // Of equal length, so that no line is partial.
        let rows = (0..40_000).map(|at| format!("{},{}\n", 10_000 + at + shift, at % 7));
        String::from("a,b\n") + &rows.collect::<String>()
    }

    /// Opens the records of a file, applying `change` when reading has begun.
    fn opened(
        folder: &Path,
        change: impl Fn(&Path) + Sync,
    ) -> (Result<Records, DataError>, Vec<PathBuf>) {
        let (cache, path) = (folder.join("cache"), folder.join("rows.csv"));
        fs::write(&path, rows(0)).unwrap();
        let files = FilesSpec::usual(DataKind::Csv, path.to_string_lossy().into_owned());
        let digest = digest(&files, &cache, Trust::Stamps).unwrap();
        let calls = AtomicUsize::new(0);
        let opened = open(&files, &digest, &cache, Trust::Bytes, &|_, _| {
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                change(&path);
            }
        });
        assert!(calls.load(Ordering::SeqCst) > 1);
        let entries = fs::read_dir(&cache).unwrap().flatten();
        let mut kept: Vec<_> = entries.map(|entry| entry.path()).collect();
        kept.retain(|path| path.extension().is_some_and(|e| e == "records"));
        (opened, kept)
    }

    #[test]
    fn a_file_that_is_replaced_while_it_is_read_leaves_nothing_in_the_cache() {
        let replace = |path: &Path| fs::write(path, rows(1)).unwrap();
        let move_over = |path: &Path| {
            let other = path.with_extension("other");
            fs::write(&other, rows(1)).unwrap();
            fs::rename(other, path).unwrap();
        };
        // The content at the end equals the content at the beginning.
        let and_back = |path: &Path| {
            let aside = path.with_extension("aside");
            fs::rename(path, &aside).unwrap();
            fs::write(path, rows(1)).unwrap();
            fs::rename(aside, path).unwrap();
        };
        let changes: [&(dyn Fn(&Path) + Sync); 3] = [&replace, &move_over, &and_back];
        for (at, change) in changes.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let (opened, kept) = opened(folder.path(), change);
            let refused = opened.unwrap_err();
            assert_eq!(
                refused.message, "the data changed while it was being read",
                "{at}"
            );
            assert!(kept.is_empty(), "{at}: {kept:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let (opened, kept) = opened(folder.path(), |_| {});
        assert_eq!((opened.unwrap().len(), kept.len()), (40_000, 1));
    }

    #[test]
    fn several_may_build_the_same_file_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, path) = (folder.path().join("cache"), folder.path().join("rows.csv"));
        fs::write(&path, rows(0)).unwrap();
        let files = FilesSpec::usual(DataKind::Csv, path.to_string_lossy().into_owned());
        let digest = digest(&files, &cache, Trust::Stamps).unwrap();
        std::thread::scope(|scope| {
            let one = || open(&files, &digest, &cache, Trust::Bytes, &|_, _| {});
            let all: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
            for one in all {
                assert_eq!(one.join().unwrap().unwrap().len(), 40_000);
            }
        });
    }

    #[test]
    fn the_digest_sees_which_folder_a_file_is_in_and_whether_it_is_packed() {
        let folder = tempfile::tempdir().unwrap();
        let files = |paths: &[&str]| {
            let mut files = FilesSpec::usual(DataKind::Csv, String::new());
            files.path = paths
                .iter()
                .map(|path| folder.path().join(path).to_string_lossy().into_owned())
                .collect();
            files
        };
        let digest = |paths: &[&str]| {
            digest(&files(paths), &folder.path().join("cache"), Trust::Stamps).unwrap()
        };
        for name in [
            "a/1",
            "b/2",
            "c/1",
            "c/2",
            "d/",
            "plain.csv",
            "packed.csv.gz",
        ] {
            let path = folder.path().join(name);
            if name.ends_with('/') {
                fs::create_dir(path).unwrap();
            } else {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(
                    path,
                    name.rsplit('/').next().unwrap().replace(['p', '.'], ""),
                )
                .unwrap();
            }
        }
        assert_ne!(digest(&["a", "b"]), digest(&["c", "d"]));
        fs::copy(
            folder.path().join("plain.csv"),
            folder.path().join("packed.csv.gz"),
        )
        .unwrap();
        assert_ne!(digest(&["plain.csv"]), digest(&["packed.csv.gz"]));
        // Plans of earlier versions have a digest without that, and are still read.
        let both = |name: &str| {
            let cache = folder.path().join("cache");
            digest_and_former(&files(&[name]), &cache, Trust::Stamps).unwrap()
        };
        let [now, former] = both("packed.csv.gz");
        assert_eq!(now, digest(&["packed.csv.gz"]));
        assert_eq!(former, both("plain.csv")[1]);
    }
}
