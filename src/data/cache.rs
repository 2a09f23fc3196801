//! Files of the user, decoded once: the cache holds one mapped file for each content and way of reading.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::json;
use sha2::{Digest, Sha256};
use wildmatch::WildMatch;

use super::read::{self, Watch, unreadable, unwritable};
use super::records::{Records, Writer};
use super::{DataError, hex, sha256_hex};
use crate::diagnostic::nearest;
use crate::spec::data::{FilesSpec, Format};

/// A change of what readers make of the same files: older cached files are then not used.
const READERS: u32 = 4;

/// Files with absolute paths and without patterns, which start from `base`.
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

/// The files that a path stands for, sorted by name where it is a pattern.
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
        let error = DataError::new(what).note(format!("looked for {}", path.display()));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match nearest(&name, names.iter().map(String::as_str)) {
            // With the folder as it was written, so that it can be copied.
            Some(near) => match written.rsplit_once('/') {
                Some((folder, _)) => error.help(format!("did you mean `{folder}/{near}`?")),
                None => error.help(format!("did you mean `{near}`?")),
            },
            None => error.help("paths start from the folder of the experiment file"),
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
        return Err(missing(format!("there is no file `{written}`")));
    };
    let mut found = Vec::new();
    for place in places {
        if place.is_dir() != folders {
            let (is, wanted) = match folders {
                true => ("a file", "a folder of pictures"),
                false => ("a folder", "a file"),
            };
            let message = format!("`{written}` is {is}, and `{key}` takes {wanted}");
            return Err(DataError::new(message).help(match folders {
                true => "name the folder that holds the pictures",
                false => "name a file in it, or all of a kind with a pattern such as `*.csv`",
            }));
        }
        let whole = fs::canonicalize(&place).map_err(|e| unreadable(&place, &e))?;
        found.push(whole.to_string_lossy().into_owned());
    }
    Ok(found)
}

/// Refuses a file that is given twice: of two splits, what is learned would be what is measured, and within
/// one, its items would count twice.
pub fn refuse_twice(files: &FilesSpec, cache: &Path) -> Result<(), DataError> {
    // One file cannot be there twice, and reading a large folder takes a while.
    if files.path.len() + files.valid_path.len() + files.test_path.len() < 2 {
        return Ok(());
    }
    let mut known = Known::read(cache);
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
                (true, true) => format!("`{key}` names `{path}` twice"),
                (true, false) => format!("`{other_key}` and `{key}` both name `{path}`"),
                (false, _) => format!("`{path}` holds the same as `{other}`"),
            };
            let (reason, help) = match *other_key == key {
                true => ("its items would count twice", "name it once"),
                false => (
                    "what is learned by heart would count as learned",
                    "give each split files of its own, or let the fractions of `[data.split]` split one",
                ),
            };
            let error = DataError::new(message).key(format!("data.{key}"));
            return Err(error.note(reason).help(help));
        }
        seen.push((key, path, digests));
    }
    known.write();
    Ok(())
}

/// The digest of what resolved files hold and of how they are read.
pub fn digest(files: &FilesSpec, cache: &Path) -> Result<String, DataError> {
    let mut known = Known::read(cache);
    let digest = digest_by(files, &mut |path| known.digests(path))?;
    known.write();
    Ok(digest)
}

/// The same, from the digest of each file, or of all files of a folder with their names.
pub(super) fn digest_by(
    files: &FilesSpec,
    digests_of: &mut dyn FnMut(&Path) -> Result<Vec<String>, DataError>,
) -> Result<String, DataError> {
    let mut files = files.clone();
    let mut contents = Vec::new();
    for (key, paths) in lists(&mut files) {
        let mut digests = Vec::new();
        for path in paths.iter() {
            digests.extend(digests_of(Path::new(path))?);
        }
        if !digests.is_empty() {
            contents.push(json!([key, digests]));
        }
        // Where files lie does not matter.
        paths.clear();
    }
    let types: Vec<_> = files
        .roles
        .columns
        .iter()
        .map(|c| json!([c.name, c.kind, c.missing_values, c.date_format]))
        .collect();
    let work = json!({
        "readers": READERS,
        "contents": contents,
        "format": files.format,
        "on_bad_item": files.on_bad_item,
        "types": types,
        "values": files.roles.values,
        "target": files.roles.target,
        "features": files.roles.features,
        "ignore": files.roles.ignore,
        "missing_is_bad": read::missing_is_bad(&files),
    });
    Ok(sha256_hex(work.to_string().as_bytes()))
}

/// The records of resolved files with a digest, out of the cache or decoded into it.
pub fn open(
    files: &FilesSpec,
    digest: &str,
    cache: &Path,
    watch: Watch<'_>,
) -> Result<Records, DataError> {
    let path = cache.join(format!("{}.records", &digest[..32.min(digest.len())]));
    let roots: Vec<String> = lists(&mut files.clone())
        .into_iter()
        .flat_map(|(_, paths)| paths.clone())
        .collect();
    let found = || {
        let mut records = Records::open(&path).ok().flatten()?;
        records.header.move_to(&roots);
        Some(records)
    };
    if let Some(records) = found() {
        return Ok(records);
    }
    fs::create_dir_all(cache).map_err(|e| unwritable(&e))?;
    let mut writer = Writer::in_folder(cache).map_err(|e| unwritable(&e))?;
    writer.note_roots(roots.clone());
    read::read(files, &mut writer, watch)?;
    if writer.num_items() == 0 {
        let error = DataError::new("the data has no items");
        let error = error.note(format!("read {}", files.path.join(", ")));
        return Err(match writer.skipped().first() {
            None => error.help("name a file that holds a row or an item"),
            Some(skipped) => {
                error.help(format!("all were left out; the first: {}", skipped.show()))
            }
        });
    }
    writer.persist(&path).map_err(|e| unwritable(&e))?;
    found().ok_or_else(|| {
        let message = format!("the cached file {} cannot be read back", path.display());
        DataError::new(message).help("see that the disk is sound and not full")
    })
}

/// Digests of files by path, trusted while size and time of change stay the same.
struct Known {
    path: PathBuf,
    digests: BTreeMap<String, (u64, u64, String)>,
    is_changed: bool,
}

/// Smaller single files are read anew each time.
const TRUSTED_FROM_BYTES: u64 = 1 << 22;

impl Known {
    fn read(cache: &Path) -> Self {
        let path = cache.join("digests.json");
        let text = fs::read(&path).unwrap_or_default();
        Self {
            digests: serde_json::from_slice(&text).unwrap_or_default(),
            path,
            is_changed: false,
        }
    }

    /// What cannot be remembered is only slower the next time.
    fn write(&self) {
        if !self.is_changed {
            return;
        }
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let written = fs::create_dir_all(folder)
            .and_then(|()| tempfile::NamedTempFile::new_in(folder))
            .and_then(|mut file| {
                serde_json::to_writer(&mut file, &self.digests)?;
                file.persist(&self.path).map_err(|e| e.error)
            });
        if let Err(error) = written {
            tracing::debug!("digests of data files are not remembered: {error}");
        }
    }

    /// The digest of a file, or those of all files of a folder with their names.
    fn digests(&mut self, path: &Path) -> Result<Vec<String>, DataError> {
        if !path.is_dir() {
            return Ok(vec![self.digest(path, TRUSTED_FROM_BYTES)?]);
        }
        let mut digests = Vec::new();
        for file in read::files_of(path)? {
            digests.push(name_in(path, &file));
            // Of very many small files, even looking into each takes long.
            digests.push(self.digest(&file, 0)?);
        }
        Ok(digests)
    }

    fn digest(&mut self, path: &Path, trusted_from: u64) -> Result<String, DataError> {
        let meta = fs::metadata(path).map_err(|e| unreadable(path, &e))?;
        let changed = meta.modified().ok();
        let changed = changed.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let nanos = changed.map_or(0, |since| since.as_nanos() as u64);
        let name = path.to_string_lossy().into_owned();
        if meta.len() >= trusted_from
            && let Some((len, at, digest)) = self.digests.get(&name)
            && (*len, *at) == (meta.len(), nanos)
        {
            return Ok(digest.clone());
        }
        let (_, digest) = file_sum(path)?;
        if meta.len() >= trusted_from {
            self.digests
                .insert(name, (meta.len(), nanos, digest.clone()));
            self.is_changed = true;
        }
        Ok(digest)
    }
}

/// The name of a file in a folder, the same on every system.
pub(super) fn name_in(folder: &Path, file: &Path) -> String {
    let name = file.strip_prefix(folder).unwrap_or(file);
    let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// Bytes and sha256 of a file.
pub(super) fn file_sum(path: &Path) -> Result<(u64, String), DataError> {
    let mut file = File::open(path).map_err(|e| unreadable(path, &e))?;
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
