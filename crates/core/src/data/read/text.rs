//! Plain text files: one text record each.
//!
//! The text is stored as Unicode: without a byte order mark, and with `\n` as the line break on every system, so that
//! the same text is the same data on every system.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::{Watch, bad_item, broken, open, parts, unreadable, unwritable};
use crate::data::DataError;
use crate::data::incoming::{Id, Incoming, Origin, Raw, Take};
use crate::data::read::tables::MAX_ROW;
use crate::data::records::{Column, ColumnKind, Skipped, Writer};
use crate::disk;
use crate::spec::data::FilesSpec;

/// The text column.
pub const COLUMN: &str = "text";
/// Bytes of files that are in memory at once, if there are several files.
const AT_ONCE: u64 = 64 << 20;
/// Bytes between progress reports.
const STEP: u64 = 1 << 20;

/// Reads the files into the writer.
pub fn read(files: &FilesSpec, writer: &mut Writer, watch: Watch<'_>) -> Result<(), DataError> {
    writer.begin(vec![Column::scalar(COLUMN, ColumnKind::Text)]);
    let mut sizes = Vec::new();
    for (part, paths) in parts(files) {
        for path in paths {
            let size = size(Path::new(path)).map_err(|error| error.or_key(part.key()))?;
            sizes.push((part, Path::new(path), size));
        }
    }
    let total = sizes.iter().map(|(_, _, size)| size).sum();
    let done = AtomicU64::new(0);
    let mut rest = sizes.as_slice();
    while !rest.is_empty() {
        let mut left = AT_ONCE;
        let fits = rest.iter().take_while(|(_, _, size)| {
            let fits = *size <= left;
            left = left.saturating_sub(*size);
            fits
        });
        let (group, behind) = rest.split_at(fits.count().max(1));
        rest = behind;
        let texts: Vec<_> = group
            .par_iter()
            .map(|(_, path, size)| {
                let mut before = 0;
                text(path, |bytes| {
                    // Of a compressed file, only the end is known.
                    let here = bytes.map_or(*size, |bytes| bytes.min(*size));
                    let so_far = done.fetch_add(here - before, Ordering::Relaxed) + here - before;
                    before = here;
                    watch(so_far, total);
                })
            })
            .collect();
        for ((part, path, _), text) in group.iter().zip(texts) {
            writer.part(*part);
            match text.map_err(|error| error.or_key(part.key()))? {
                Ok(text) => {
                    let place = writer.text(&text).map_err(|e| unwritable(&e))?;
                    writer.push(&place).map_err(|e| unwritable(&e))?;
                }
                Err(Bad { place, reason }) => bad_item(
                    files,
                    writer,
                    format!("`{}`{place}", path.display()),
                    reason,
                )
                .map_err(|error| error.or_key(part.key()))?,
            }
        }
    }
    match writer.num_items() {
        0 => Err(none_left(writer)),
        _ => Ok(()),
    }
}

/// Passes on each line of a new text file that is not blank as an item.
pub(in crate::data) fn incoming(incoming: &Incoming<'_>, take: Take<'_>) -> Result<(), DataError> {
    let path = incoming.path;
    size(path)?;
    let mut reader = BufReader::with_capacity(1 << 16, open(path)?);
    let columns = &incoming.transforms.columns;
    let targets = incoming.transforms.targets();
    if let (true, Some(target)) = (incoming.has_targets, targets.first()) {
        let (name, column) = (incoming.name(), &columns[*target].name);
        let message = format!("{name} lacks the column `{column}`, which the run was trained on");
        return Err(DataError::new(message)
            .note("each of its lines is a text")
            .help("use a table with the text and the target, as `.csv`, `.jsonl` or `.parquet`"));
    }
    let of_text = incoming.transforms.inputs();
    // A record has other columns too, such as a target, which are not read.
    let record = |place: [u8; 16]| {
        let mut record = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            if of_text.contains(&at) {
                record.extend(place);
            } else {
                record.resize(record.len() + column.len() * column.kind.size(), 0);
            }
        }
        record
    };
    let mut number = 0;
    let mut is_ended = false;
    while !is_ended {
        let mut writer = Writer::in_memory();
        writer.begin(columns.clone());
        let (mut origins, mut bad, mut bytes) = (Vec::new(), Vec::new(), 0);
        while bytes < STEP && !is_ended {
            let mut line = Vec::new();
            let read = reader.by_ref().take(MAX_ROW).read_until(b'\n', &mut line);
            let num = read.map_err(|e| broken(path, &e))? as u64;
            is_ended = num == 0;
            number += 1;
            bytes += num;
            if num == MAX_ROW {
                return Err(DataError::new(format!(
                    "`{}:{number}`: a line exceeds {} MiB",
                    path.display(),
                    MAX_ROW >> 20
                ))
                .help("write one text per line"));
            }
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            match std::str::from_utf8(line) {
                Ok(text) => {
                    // Writing to memory cannot fail.
                    let place = writer.text(text.trim_end_matches(['\r', '\n']));
                    let _ = writer.push(&record(place.unwrap_or_default()));
                    origins.push(Origin {
                        id: Id::Row(number),
                        line: number,
                        kept: Vec::new(),
                        group: None,
                        node: None,
                    });
                }
                Err(e) => {
                    let at = e.valid_up_to();
                    let place = format!("`{}:{number}`", incoming.name());
                    let reason = format!("byte {}: {} is not UTF-8", at + 1, hex(line[at]));
                    bad.push((origins.len(), Skipped { place, reason }));
                }
            }
        }
        if !origins.is_empty() || !bad.is_empty() {
            take(Raw {
                records: writer.into_records(),
                origins,
                bad,
                left_out: Vec::new(),
                place: |shown, origin| format!("`{shown}:{}`", origin.line),
            })?;
        }
    }
    Ok(())
}

/// A file that is not text.
struct Bad {
    place: String,
    reason: String,
}

/// The raw bytes of a file. Anything but a regular file is refused, because reading a pipe or a device may never end.
fn size(path: &Path) -> Result<u64, DataError> {
    let meta = disk::metadata(path).map_err(|e| unreadable(path, &e))?;
    match meta.is_file() {
        true => Ok(meta.len()),
        false if meta.is_dir() => Err(DataError::new(format!(
            "cannot read `{}`: it is a folder",
            path.display()
        ))
        .help(format!(
            "for the files in it, set `path = \"{}/*.txt\"`",
            path.display()
        ))),
        false => Err(DataError::new(format!(
            "cannot read `{}`: it is not a regular file",
            path.display()
        ))
        .help("use a regular file, or copy the data into one")),
    }
}

/// The text of a file; `step` receives the number of bytes so far, and zero at the end.
fn text(path: &Path, mut step: impl FnMut(Option<u64>)) -> Result<Result<String, Bad>, DataError> {
    let mut reader = open(path)?;
    let mut bytes = Vec::new();
    loop {
        match reader.by_ref().take(STEP).read_to_end(&mut bytes) {
            Ok(0) => break,
            Ok(_) => step(Some(bytes.len() as u64)),
            Err(e) => return Err(broken(path, &e)),
        }
    }
    step(None);
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    Ok(decode(bytes))
}

fn decode(bytes: Vec<u8>) -> Result<String, Bad> {
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let bytes = e.as_bytes();
        let start = bytes[..at]
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |end| end + 1);
        let line = 1 + bytes[..at].iter().filter(|b| **b == b'\n').count();
        Bad {
            place: format!(", line {line}, byte {}", at - start + 1),
            reason: format!("{} is not UTF-8{}", hex(bytes[at]), kind_of(bytes)),
        }
    })?;
    if text.trim().is_empty() {
        let reason = if text.is_empty() {
            "it is empty"
        } else {
            "it contains only whitespace"
        };
        return Err(Bad {
            place: String::new(),
            reason: reason.into(),
        });
    }
    Ok(match unix_lines(&text) {
        Cow::Owned(changed) => changed,
        Cow::Borrowed(_) => text,
    })
}

/// The text of a file whose lines end with `\n` where they ended with `\r\n`.
pub(crate) fn unix_lines(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

fn hex(byte: u8) -> String {
    format!("0x{byte:02x}")
}

/// A guess at the encoding of bytes that are not UTF-8.
fn kind_of(bytes: &[u8]) -> &'static str {
    match bytes {
        [0x1f, 0x8b, ..] => "; the file is gzipped, so its name must end in `.gz`",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "; the file is UTF-16 and must be saved as UTF-8",
        _ if bytes[..bytes.len().min(1024)].contains(&0) => "; the file does not look like text",
        _ => "; if the file is in an older encoding, save it as UTF-8",
    }
}

fn none_left(writer: &Writer) -> DataError {
    let error = DataError::new("no text is left: all files were skipped");
    let notes = writer.skipped().iter().take(3);
    notes.fold(error, |error, skipped| error.note(skipped.show()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Mutex;

    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::data::records::Records;
    use crate::spec::data::{Format, OnBadItem, RolesSpec, TokensSpec};

    fn spec(path: &[String], on_bad_item: OnBadItem) -> FilesSpec {
        FilesSpec {
            format: Format::Text,
            path: path.to_vec(),
            valid_path: Vec::new(),
            test_path: Vec::new(),
            on_bad_item,
            roles: RolesSpec::default(),
            tokens: TokensSpec::default(),
            graph: None,
        }
    }

    fn read_all(files: &FilesSpec) -> Result<Records, DataError> {
        let mut writer = Writer::in_memory();
        read(files, &mut writer, &|_, _| {})?;
        Ok(writer.into_records())
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    struct Files(tempfile::TempDir);

    impl Files {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, name: &str, bytes: &[u8]) -> String {
            let path = self.0.path().join(name);
            crate::testing::rewrite(&path, bytes);
            path.display().to_string()
        }

        /// The refusal of a single file, without its folder.
        fn refusal(&self, name: &str, bytes: &[u8]) -> String {
            let path = self.write(name, bytes);
            let error = read_all(&spec(&[path], OnBadItem::Refuse)).unwrap_err();
            let folder = format!("{}/", self.0.path().display());
            error.to_string().replace(&folder, "")
        }
    }

    #[test]
    fn a_file_is_a_record_in_the_order_given() {
        let files = Files::new();
        let b = files.write("b.txt", "Zwei\r\nZeilen\rhier\n".as_bytes());
        let a = files.write("a.txt", b"\xef\xbb\xbfone");
        let c = files.write("c.txt.gz", &packed("drei \u{feff}🦀".as_bytes()));
        let mut spec = spec(&[b, a.clone()], OnBadItem::Refuse);
        spec.test_path = vec![c];
        let seen = Mutex::new(Vec::new());
        let mut writer = Writer::in_memory();
        read(&spec, &mut writer, &|done, total| {
            seen.lock().unwrap().push((done, total))
        })
        .unwrap();
        let records = writer.into_records();
        assert_eq!(records.header.parts, [2, 0, 1]);
        let text = |item| records.text(item, 0).unwrap();
        assert_eq!(text(0), "Zwei\nZeilen\rhier\n");
        assert_eq!((text(1), text(2)), ("one", "drei \u{feff}🦀"));
        let seen = seen.into_inner().unwrap();
        let (last, total) = *seen.iter().max().unwrap();
        assert_eq!(last, total);
        assert!(seen.iter().all(|(done, all)| done <= all));
    }

    #[test]
    fn many_and_large_files_keep_their_order() {
        let files = Files::new();
        let text = |at: usize| format!("{at} ").repeat(1 + (at % 7) * 60_000);
        let paths: Vec<_> = (0..40)
            .map(|at| files.write(&format!("{at}.txt"), text(at).as_bytes()))
            .collect();
        let records = read_all(&spec(&paths, OnBadItem::Refuse)).unwrap();
        for at in 0..40 {
            assert!(records.text(at, 0) == Some(&text(at)), "{at}");
        }
    }

    #[test]
    fn what_is_no_text_is_refused_with_its_place() {
        let files = Files::new();
        let mut gzip = packed(&b"some text that is long enough to be packed".repeat(20));
        let whole = gzip.clone();
        gzip.truncate(30);
        let wrong = [
            ("latin.txt", b"first\nsch\xf6n\n".to_vec()),
            ("cut.txt", "täg".as_bytes()[..2].to_vec()),
            ("wide.txt", b"\xff\xfeh\0i\0".to_vec()),
            ("packed.txt", whole),
            ("binary.txt", b"\x89PNG\0\0\0".to_vec()),
            ("empty.txt", Vec::new()),
            ("mark.txt", b"\xef\xbb\xbf".to_vec()),
            ("blank.txt", b" \n\t\r\n".to_vec()),
            ("short.gz", gzip),
            ("no.gz", b"a text that is not packed".to_vec()),
            ("empty.gz", Vec::new()),
        ];
        let said = wrong.map(|(name, bytes)| files.refusal(name, &bytes));
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn folders_and_devices_and_missing_files_are_refused() {
        let files = Files::new();
        let folder = files.0.path().display().to_string();
        let refusal = |path: &str| {
            let error = read_all(&spec(&[path.to_owned()], OnBadItem::Skip)).unwrap_err();
            error.to_string().replace(&folder, "[FOLDER]")
        };
        let missing = format!("{folder}/missing.txt");
        let said = [folder.as_str(), &missing, "/dev/zero"].map(refusal);
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn bad_files_are_left_out_where_the_spec_says_so() {
        let files = Files::new();
        let good = files.write("good.txt", b"good");
        let bad = files.write("bad.txt", b"a\n\xff");
        let empty = files.write("empty.txt", b"");
        let paths = [bad, good, empty];
        let records = read_all(&spec(&paths, OnBadItem::Skip)).unwrap();
        assert_eq!((records.len(), records.text(0, 0)), (1, Some("good")));
        let skipped = &records.header.skipped;
        assert!(
            skipped[0].place.ends_with("bad.txt`, line 2, byte 1"),
            "{skipped:?}"
        );
        assert!(skipped[1].place.ends_with("empty.txt`"), "{skipped:?}");
        let error = read_all(&spec(&[paths[2].clone()], OnBadItem::Skip)).unwrap_err();
        assert!(error.message.starts_with("no text is left"), "{error}");
    }

    #[test]
    fn damaged_files_never_panic() {
        let files = Files::new();
        let text = "Täglich 語 🦀, a line.\r\n".repeat(40);
        let mut rng = rand::rngs::ChaCha8Rng::seed_from_u64(3);
        for (name, whole) in [
            ("a.txt", text.clone().into_bytes()),
            ("a.gz", packed(text.as_bytes())),
        ] {
            for _ in 0..300 {
                let mut bytes = whole.clone();
                match rng.random_range(0..3) {
                    0 => bytes.truncate(rng.random_range(0..whole.len())),
                    1 => {
                        for _ in 0..rng.random_range(1..5) {
                            let at = rng.random_range(0..whole.len());
                            bytes[at] ^= 1 << rng.random_range(0..8);
                        }
                    }
                    _ => {
                        bytes = (0..rng.random_range(0..200))
                            .map(|_| rng.random())
                            .collect()
                    }
                }
                let path = files.write(name, &bytes);
                if let Err(error) = read_all(&spec(&[path], OnBadItem::Refuse)) {
                    assert!(
                        error.message.contains(name) && !error.helps.is_empty(),
                        "{error}"
                    );
                }
            }
        }
    }
}
