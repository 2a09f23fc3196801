//! The digest of files and of how they are read: equal digest, same records.

use std::io::Read;
use std::path::Path;

use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::{IMAGES, lists};
use crate::data::known::{Known, Trust};
use crate::data::read::{self, unreadable};
use crate::data::{DataError, hex, sha256_hex};
use crate::spec::data::{ColumnSpec, FilesSpec, Format};
use crate::spec::plain_file;

/// Incremented when readers decode the same files differently: older cached files are then not used.
const READERS: u32 = 4;

/// The version for runs of format 2, whose data is identified by its digest.
const FORMER_READERS: u32 = 3;

/// The digest of the content of resolved files and of how they are read.
pub fn digest(files: &FilesSpec, cache: &Path, trust: Trust) -> Result<String, DataError> {
    Ok(digest_and_former(files, cache, trust)?[0].clone())
}

/// The same, followed by the digests of earlier versions, which their plans contain.
pub(in crate::data) fn digest_and_former(
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
pub(in crate::data) fn digests_by(
    files: &FilesSpec,
    digests_of: &mut dyn FnMut(&Path) -> Result<Vec<String>, DataError>,
) -> Result<[String; 2], DataError> {
    let mut files = files.clone();
    let (mut contents, mut former) = (Vec::new(), Vec::new());
    for (key, paths) in lists(&mut files) {
        let (mut digests, mut plain) = (Vec::new(), Vec::new());
        for path in paths.iter() {
            let of_path = digests_of(Path::new(path)).map_err(|e| match key {
                IMAGES => e.or_key("data.columns"),
                _ => e.or_key(&format!("data.{key}")),
            })?;
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
        graph,
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
    // Earlier versions read what is in lists, and whole numbers of dates, as numbers.
    let is_nested = matches!(format, Format::JsonLines | Format::Parquet);
    let has_marks = |c: &ColumnSpec| c.missing_values.as_ref().is_some_and(|all| !all.is_empty());
    let mut columns = roles.columns.iter();
    if is_nested && (!files.missing_values().is_empty() || columns.any(has_marks)) {
        work["marks_in_lists"] = json!(true);
    }
    if is_nested
        && roles
            .columns
            .iter()
            .any(|column| column.date_format.is_some())
    {
        work["dates_of_numbers"] = json!(true);
    }
    // Earlier versions learned the header of a first message of the assistant, and knew one template.
    if readers != FORMER_READERS && roles.chats().next().is_some() {
        work["conversations"] = json!(2);
    }
    let images = roles.columns.iter().filter_map(|column| {
        let image = column.image.as_ref()?;
        Some(json!([column.name, image.size, image.channels]))
    });
    let images: Vec<Json> = images.collect();
    if !images.is_empty() {
        work["images"] = json!(images);
    }
    let embedded: Vec<&str> = roles.embedded().collect();
    if !embedded.is_empty() {
        work["categories"] = json!(embedded);
    }
    if !roles.more_targets.is_empty() {
        work["more_targets"] = json!(roles.more_targets);
    }
    if let Some(graph) = graph {
        work["graph"] = json!(graph);
    }
    if let Some(weight) = &roles.weight {
        work["weight"] = json!(weight);
    }
    if readers != FORMER_READERS {
        work["values"] = json!(roles.values);
        // Short lists of integers are numbers and no tokens, unless the file says so.
        if matches!(format, Format::JsonLines | Format::Parquet) {
            work["lists"] = json!(1);
        }
    }
    sha256_hex(work.to_string().as_bytes())
}

/// Bytes and sha256 of a file.
pub(in crate::data) fn file_sum(path: &Path) -> Result<(u64, String), DataError> {
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
