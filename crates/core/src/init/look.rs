//! The content of a path: the format by name and content, the columns by the reader of the format.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Found, Line, mend, pictures};
use crate::data::DataError;
use crate::data::oddity::Oddity;
use crate::data::profile::{ColumnProfile, ValueProfile};
use crate::data::read::tables::head::Head;
use crate::data::read::{magic, open, read, unreadable, unwritable};
use crate::data::records::{Opened, Records, Writer};
use crate::data::suspects;
use crate::disk;
use crate::spec::data::{DataKind, FilesSpec, Format};
use crate::spec::section::Choice;

/// Bytes that identify a format.
const HEAD: u64 = 1 << 16;
/// Larger files are read into a file of records instead of memory.
const IN_MEMORY: u64 = 64 << 20;

/// Inspects a file or folder; paths in the result are relative to `base`, the experiment file's folder.
pub fn look(path: &Path, base: &Path) -> Result<Found, DataError> {
    let meta = disk::metadata(path).map_err(|e| unreadable(path, &e))?;
    if meta.is_dir() {
        return match pictures::look(path, base)? {
            Some(found) => Ok(found),
            None => folder(path, base),
        };
    }
    if !meta.is_file() {
        let message = format!("`{}` is neither a file nor a folder", path.display());
        return Err(DataError::new(message).help("copy the data into a file"));
    }
    files(&[path.to_owned()], relative(path, base)?, base)
}

/// A folder of files of one type.
fn folder(path: &Path, base: &Path) -> Result<Found, DataError> {
    let entries = disk::read_dir(path).map_err(|e| unreadable(path, &e))?;
    let mut inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let is_hidden = |path: &Path| name_of(path).starts_with('.');
    inside.retain(|path| disk::is_file(path) && !is_hidden(path));
    inside.sort();
    let extension = |path: &Path| {
        let name = name_of(path);
        let (_, extension) = name.split_once('.')?;
        Some(extension.to_owned())
    };
    let first = inside.first().and_then(|path| extension(path));
    let is_one_kind = inside.iter().all(|path| extension(path) == first);
    let (Some(first), true) = (first, is_one_kind) else {
        return Err(DataError::new(format!(
            "`{}` is not a folder of images, and its files are of different types",
            path.display()
        ))
        .note(
            "a folder of images contains one folder per class, or the folders `images` and `masks`",
        )
        .help(
            "pass one file, such as `--data table.csv`, or a folder that contains only the data",
        ));
    };
    // Refused here with the folder's name rather than that of its first file.
    if let Err(error) = kind_of(&inside[0], &head(&inside[0])?) {
        return Err(error.note(format!("it is the first file in `{}`", path.display())));
    }
    let pattern = format!("{}/*.{first}", relative(path, base)?);
    files(&inside, pattern, base)
}

fn files(paths: &[PathBuf], written: String, base: &Path) -> Result<Found, DataError> {
    let first = &paths[0];
    let head = head(first)?;
    let kind = kind_of(first, &head)?;
    let mut files = FilesSpec::usual(kind, written.clone());
    files.path = Vec::new();
    for path in paths {
        let path = disk::canonicalize(path).map_err(|e| unreadable(path, &e))?;
        files.path.push(path.display().to_string());
    }
    let mut found = Found {
        kind,
        path: written,
        keys: Vec::new(),
        said: Vec::new(),
        columns: Vec::new(),
        num_items: 0,
        warnings: Vec::new(),
    };
    match &mut files.format {
        Format::Csv {
            delimiter,
            header,
            rows,
            ..
        } => {
            let is_cut = head.len() as u64 == HEAD;
            let dialect = Head::of(&String::from_utf8_lossy(&head), is_cut).dialect();
            (*delimiter, *header) = (dialect.delimiter, dialect.header);
            (rows.skip_rows, rows.comment) = (dialect.skip_rows, dialect.comment);
        }
        Format::Npy { targets } | Format::Idx { targets } => {
            if let ([inputs], Some(path)) = (paths, targets_beside(first)) {
                let written = relative(&path, base)?;
                let path = disk::canonicalize(&path).map_err(|e| unreadable(&path, &e))?;
                targets.path = vec![path.display().to_string()];
                let meaning = format!("the targets, one per item of {}", name_of(inputs));
                found
                    .keys
                    .push(Line::text("target_path", &written, meaning));
            }
        }
        _ => {}
    }
    let records = mend::read(&mut files, &mut found)?;
    found.columns = ColumnProfile::all(&records);
    for (at, column) in found.columns.iter_mut().enumerate() {
        // Row numbers may have been shuffled together with their rows.
        if let ValueProfile::Numbers(numbers) = &mut column.values {
            numbers.is_counting |= suspects::numbers_rows(&records, at);
        }
    }
    found.num_items = records.len();
    let nearly = &records.header.nearly_numbers;
    found.warnings = nearly.iter().map(|nearly| nearly.error(&files)).collect();
    let oddities = records.header.oddities.iter();
    found.warnings.extend(oddities.map(Oddity::error));
    Ok(found)
}

pub(super) fn records(files: &FilesSpec) -> Result<Records, DataError> {
    let sizes = files
        .path
        .iter()
        .map(|path| disk::metadata(Path::new(path)));
    let size: u64 = sizes.flatten().map(|meta| meta.len()).sum();
    if size <= IN_MEMORY || disk::IS_MEMORY {
        let mut writer = Writer::in_memory();
        read(files, &mut writer, &|_, _| {})?;
        return Ok(writer.into_records());
    }
    let folder = tempfile::tempdir().map_err(|e| unwritable(&e))?;
    let mut writer = Writer::in_folder(folder.path()).map_err(|e| unwritable(&e))?;
    read(files, &mut writer, &|_, _| {})?;
    let path = folder.path().join("records");
    writer.persist(&path).map_err(|e| unwritable(&e))?;
    // The map outlives the folder's name.
    match Records::open(&path).map_err(|e| unreadable(&path, &e))? {
        Opened::Records(records) => Ok(*records),
        Opened::Damaged(_) | Opened::Older => Err(DataError::new("the data cannot be read again")),
    }
}

fn head(path: &Path) -> Result<Vec<u8>, DataError> {
    let mut head = Vec::new();
    let read = open(path)?.take(HEAD).read_to_end(&mut head);
    read.map_err(|e| unreadable(path, &e))?;
    Ok(head)
}

pub(super) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The format of a file, by its extension or its first bytes.
fn kind_of(path: &Path, head: &[u8]) -> Result<DataKind, DataError> {
    let name = name_of(path).to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let refuse = |reason: &str, help: &str| {
        let message = format!("`{}` {reason}", path.display());
        Err(DataError::new(message).help(help))
    };
    let starts = |magic: &[u8]| head.starts_with(magic);
    let unread = magic::unread(head);
    Ok(match extension {
        "csv" | "tsv" | "tab" => DataKind::Csv,
        "jsonl" | "ndjson" => DataKind::JsonLines,
        "npy" => DataKind::Npy,
        "npz" => DataKind::Npz,
        "safetensors" => DataKind::Safetensors,
        "parquet" | "pq" => DataKind::Parquet,
        "md" => DataKind::Text,
        "png" | "jpg" | "jpeg" => {
            return refuse(
                "is a single image",
                "use a folder with one folder of images per class",
            );
        }
        _ if unread.is_some() => {
            let (what, help) = unread.unwrap_or_default();
            return refuse(&format!("is {what}"), help);
        }
        _ if starts(b"\x93NUMPY") => DataKind::Npy,
        _ if starts(b"PAR1") => DataKind::Parquet,
        _ if starts(b"PK\x03\x04") => DataKind::Npz,
        _ if matches!(head, [0, 0, 8..=14, 1..=4, ..]) => DataKind::Idx,
        _ => {
            let text = match std::str::from_utf8(head) {
                Ok(text) => text,
                // The head may end inside a character.
                Err(e) if e.error_len().is_none() => &String::from_utf8_lossy(head),
                Err(_) => {
                    let kinds = DataKind::ALL.iter().filter(|(kind, _, _)| kind.is_files());
                    let names: Vec<_> = kinds.map(|(_, name, _)| format!("`{name}`")).collect();
                    let help = format!("the formats are {}", names.join(", "));
                    return refuse("has no known extension or content", &help);
                }
            };
            match text.trim_start().chars().next() {
                None => return refuse("is empty", "use a file that contains data"),
                Some('{') => DataKind::JsonLines,
                Some('[') if extension == "json" => {
                    return refuse(
                        "is one JSON array",
                        "write one object per line: `jq -c '.[]' FILE > FILE.jsonl`",
                    );
                }
                _ if Head::of(text, head.len() as u64 == HEAD).is_table() => DataKind::Csv,
                _ if extension == "txt" => DataKind::Text,
                _ => {
                    return refuse(
                        "has no known extension or content",
                        "supported are .csv, .tsv, .jsonl, .parquet, .npy, .npz and .safetensors for data, .txt and .md for text, each optionally followed by .gz, and folders of images",
                    );
                }
            }
        }
    })
}

/// The file of targets next to a file of inputs, by the usual pairs of names.
fn targets_beside(inputs: &Path) -> Option<PathBuf> {
    const PAIRS: [(&str, &str); 9] = [
        ("images-idx3", "labels-idx1"),
        ("images", "labels"),
        ("inputs", "targets"),
        ("input", "target"),
        ("features", "labels"),
        ("features", "targets"),
        ("data", "labels"),
        ("X", "y"),
        ("x", "y"),
    ];
    let name = name_of(inputs);
    let other = PAIRS.iter().filter_map(|(from, to)| {
        let at = name.rfind(from)?;
        // `x` is a word of its own, not a letter of another word.
        let apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        let (before, behind) = (&name[..at], &name[at + from.len()..]);
        let is_word = apart(before.chars().next_back()) && apart(behind.chars().next());
        (is_word).then(|| inputs.with_file_name(format!("{before}{to}{behind}")))
    });
    other.into_iter().find(|path| disk::is_file(path))
}

/// A path relative to a folder, or the whole path if there is none.
pub(super) fn relative(path: &Path, base: &Path) -> Result<String, DataError> {
    let whole = |path: &Path| {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        disk::canonicalize(path).map_err(|e| unreadable(path, &e))
    };
    let (path, base) = (whole(path)?, whole(base)?);
    let shared = path.components().zip(base.components());
    let shared = shared.take_while(|(a, b)| a == b).count();
    let up = base.components().count() - shared;
    // A relative path through the root is less clear than the whole path.
    if shared <= 1 && up > 0 {
        return Ok(path.display().to_string());
    }
    let mut parts = vec!["..".to_owned(); up];
    let down = path.components().skip(shared);
    parts.extend(down.map(|part| part.as_os_str().to_string_lossy().into_owned()));
    if parts.is_empty() {
        Ok(".".into())
    } else {
        Ok(parts.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn formats_are_told_by_names_then_by_content() {
        let kind = |name: &str, head: &[u8]| kind_of(Path::new(name), head).unwrap();
        assert_eq!(kind("A.CSV.gz", b""), DataKind::Csv);
        assert_eq!(kind("a.tsv", b""), DataKind::Csv);
        assert_eq!(kind("a.json", b"\n {\"a\": 1}"), DataKind::JsonLines);
        assert_eq!(kind("a", b"\x93NUMPY\x01"), DataKind::Npy);
        assert_eq!(kind("a.zip", b"PK\x03\x04..x.npy"), DataKind::Npz);
        for (name, head, what) in [
            (
                "a.xlsx",
                &b"PK\x03\x04..[Content_Types].xml"[..],
                "an Excel workbook",
            ),
            ("a.pkl", b"\x80\x04\x95\0", "a Python pickle"),
            ("a.db", b"SQLite format 3\0", "an SQLite database"),
        ] {
            let error = kind_of(Path::new(name), head).unwrap_err();
            assert_eq!(error.message, format!("`{name}` is {what}"));
        }
        assert_eq!(
            kind("t10k-images-idx3-ubyte", &[0, 0, 8, 3, 0]),
            DataKind::Idx
        );
        assert_eq!(kind("a.pq", b""), DataKind::Parquet);
        assert_eq!(kind("a.txt", b"a;b\n1;2\n3;4"), DataKind::Csv);
        assert_eq!(kind("a.md", "A täxt".as_bytes()), DataKind::Text);
        assert_eq!(kind("a.txt", &"täg".as_bytes()[..2]), DataKind::Text);
    }

    #[test]
    fn targets_stand_beside_their_inputs() {
        let folder = tempfile::tempdir().unwrap();
        let pairs = [
            ("iris_x.npy", "iris_y.npy"),
            ("X_train.npy", "y_train.npy"),
            ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
            ("inputs.npy", "targets.npy"),
        ];
        for (inputs, targets) in pairs {
            let (inputs, targets) = (folder.path().join(inputs), folder.path().join(targets));
            assert_eq!(targets_beside(&inputs), None);
            fs::write(&targets, "").unwrap();
            assert_eq!(targets_beside(&inputs), Some(targets));
        }
        fs::write(folder.path().join("bo_y.npy"), "").unwrap();
        assert_eq!(targets_beside(&folder.path().join("box.npy")), None);
    }

    #[test]
    fn paths_start_from_the_experiments_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/d.csv"), "").unwrap();
        assert_eq!(relative(&at("a/d.csv"), &at("a/b")).unwrap(), "../d.csv");
        assert_eq!(relative(&at("a/b/../d.csv"), &at("a")).unwrap(), "d.csv");
        assert_eq!(relative(&at("a"), &at("a")).unwrap(), ".");
        assert_eq!(relative(&at("a/d.csv"), folder.path()).unwrap(), "a/d.csv");
    }
}
