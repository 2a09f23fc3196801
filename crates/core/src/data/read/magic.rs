//! The format of a file by its first bytes, whatever the experiment says.

use std::io::Read;
use std::path::Path;

use super::{open, unreadable};
use crate::data::DataError;
use crate::disk;
use crate::spec::data::DataKind;
use crate::spec::section::Choice;

/// Bytes that identify a file.
const HEAD: u64 = 1 << 12;

/// The format of a file.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    /// As text, with an article.
    what: &'static str,
    /// The type that reads it, if any.
    kind: Option<DataKind>,
    /// What to do with it.
    help: &'static str,
}

const SHEET: &str = "open it in its program and save the sheet as CSV in UTF-8, or in Python: `pd.read_excel(path).to_csv(\"data.csv\", index=False)`";
const PICTURE: &str = "for images, set `type = \"image_folder\"` and set `path` to a folder with one folder of images per class";
const ZIP: &str = "a zip archive";
const UNPACK: &str = "extract it, and use the file in it";

/// Refuses a file in a different format than its type reads, and names the format.
pub fn check(path: &Path, kind: DataKind) -> Result<(), DataError> {
    let shown = path.display();
    let Some(head) = head(path)? else {
        return Ok(());
    };
    let Some(known) = known(&head) else {
        return check_unknown(path, kind, &head);
    };
    // The readers of arrays report problems of archives.
    let is_archive = known.what == ZIP && matches!(kind, DataKind::Npy | DataKind::Npz);
    let is_read = known.kind == Some(kind) || is_archive;
    if is_read || kind == DataKind::Text && known.kind.is_some_and(is_text) {
        return Ok(());
    }
    if kind == DataKind::Text && known.what.ends_with("page") {
        return Ok(());
    }
    let message = format!(
        "`{shown}` is {}, which `type = \"{}\"` does not read",
        known.what,
        kind.name()
    );
    let error = DataError::new(message).key("data.type");
    Err(match known.kind {
        Some(other) if known.help.is_empty() => {
            error.help(format!("set `type = \"{}\"`", other.name()))
        }
        _ => error.help(known.help),
    })
}

/// The format of a file that no type reads, with a remedy; `None` if its first bytes do not identify it.
pub fn unread(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let known = known(head).filter(|known| known.kind.is_none())?;
    Some((known.what, known.help))
}

/// The first bytes, decompressed if the name ends in `.gz`; `None` if the reader will report the problem.
fn head(path: &Path) -> Result<Option<Vec<u8>>, DataError> {
    if !disk::is_file(path) {
        return Ok(None);
    }
    let mut head = Vec::new();
    match open(path)?.take(HEAD).read_to_end(&mut head) {
        Ok(_) => Ok(Some(head)),
        Err(e)
            if matches!(
                e.kind(),
                std::io::ErrorKind::InvalidInput
                    | std::io::ErrorKind::InvalidData
                    | std::io::ErrorKind::UnexpectedEof
            ) =>
        {
            Ok(None)
        }
        Err(e) => Err(unreadable(path, &e)),
    }
}

fn is_text(kind: DataKind) -> bool {
    matches!(kind, DataKind::Csv | DataKind::JsonLines | DataKind::Text)
}

/// A file without a known magic number: text where bytes are expected, or the reverse.
fn check_unknown(path: &Path, kind: DataKind, head: &[u8]) -> Result<(), DataError> {
    let shown = path.display();
    let looks_like_text = match std::str::from_utf8(head) {
        Ok(_) => true,
        // The head may end inside a character.
        Err(e) => e.error_len().is_none(),
    } && !head.contains(&0);
    let has_mark = matches!(kind, DataKind::Parquet | DataKind::Npy | DataKind::Npz);
    let has_mark = has_mark && !head.starts_with(b"PAR1");
    if has_mark && looks_like_text && !head.is_empty() {
        let message = format!(
            "`{shown}` is a text file, which `type = \"{}\"` does not read",
            kind.name()
        );
        return Err(DataError::new(message)
            .key("data.type")
            .help("for a table, set `type = \"csv\"`; for one JSON object per line, `type = \"json_lines\"`"));
    }
    let zeros = head.iter().filter(|byte| **byte == 0).count();
    if !is_text(kind) || zeros == 0 {
        return Ok(());
    }
    let message = format!("`{shown}` is not text: it contains zero bytes");
    let error = DataError::new(message).key("data.type");
    // Text with two bytes per character is half zeros.
    if zeros * 3 > head.len() && zeros < head.len() {
        return Err(error.help(
            "if it is UTF-16, save it as UTF-8, for example with `iconv -f utf-16le -t utf-8`",
        ));
    }
    let kinds = DataKind::ALL.iter().filter(|(kind, _, _)| kind.is_files());
    let names: Vec<_> = kinds.map(|(_, name, _)| format!("`{name}`")).collect();
    Err(error.help(format!(
        "use a text file, or the type that reads this one: {}",
        names.join(", ")
    )))
}

fn known(head: &[u8]) -> Option<Known> {
    let found = |what, kind, help| Some(Known { what, kind, help });
    if let Some(known) = by_mark(head) {
        return Some(known);
    }
    if matches!(head, [0, 0, 8 | 9 | 11 | 12 | 13 | 14, 1..=4, ..]) {
        return found("an IDX array", Some(DataKind::Idx), "");
    }
    if head.get(8) == Some(&b'{') && head[..8].contains(&0) {
        return found("a safetensors file", Some(DataKind::Safetensors), "");
    }
    if head.get(257..262) == Some(b"ustar") {
        return found("a tar archive", None, UNPACK);
    }
    if let [0x80, 2..=5, ..] = head {
        return found(
            "a Python pickle",
            None,
            "save it in a format without code, in Python: `pd.read_pickle(path).to_csv(\"data.csv\", index=False)` for a table, `np.save` for an array",
        );
    }
    let text = head
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(head)
        .trim_ascii_start();
    let begins = |word: &str| {
        text.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    };
    if begins("<!doctype html") || begins("<html") {
        return found(
            "an HTML page",
            None,
            "the link probably led to a page about the file: download the file itself",
        );
    }
    if begins("<?xml") {
        return found(
            "XML",
            None,
            "convert it to CSV, for example with `pd.read_xml(path)`",
        );
    }
    if begins("version https://git-lfs.github.com/spec") {
        return found(
            "a Git LFS pointer",
            None,
            "download the actual file: `git lfs pull`",
        );
    }
    if begins("@relation") {
        return found(
            "an ARFF file",
            None,
            "convert it to CSV, in Python: `pd.DataFrame(scipy.io.arff.loadarff(path)[0]).to_csv(\"data.csv\", index=False)`",
        );
    }
    json(text)
}

/// JSON in a text file: one object per line, or one list of objects.
fn json(text: &[u8]) -> Option<Known> {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if text.starts_with(b"{") && serde_json::from_slice::<serde_json::Value>(line).is_ok() {
        return Some(Known {
            what: "JSON with one object per line",
            kind: Some(DataKind::JsonLines),
            help: "",
        });
    }
    let inner = text.strip_prefix(b"[")?.trim_ascii_start();
    inner.starts_with(b"{").then_some(Known {
        what: "one JSON list, not one object per line",
        // Its reader reports the rest.
        kind: Some(DataKind::JsonLines),
        help: "write one object per line, for example with `jq -c '.[]'`, and set `type = \"json_lines\"`",
    })
}

/// Formats with a magic number: the mark, the format, the type that reads it, and a remedy.
const MARKS: [(&[u8], &str, Option<DataKind>, &str); 30] = [
    (b"\x89PNG", "a PNG image", None, PICTURE),
    (b"\xff\xd8\xff", "a JPEG image", None, PICTURE),
    (
        b"GIF8",
        "a GIF image",
        None,
        "save images as PNG or JPEG, and set `type = \"image_folder\"`",
    ),
    (
        b"II*\0",
        "a TIFF image",
        None,
        "save images as PNG or JPEG, and set `type = \"image_folder\"`",
    ),
    (
        b"MM\0*",
        "a TIFF image",
        None,
        "save images as PNG or JPEG, and set `type = \"image_folder\"`",
    ),
    (
        b"\x1f\x8b",
        "compressed with gzip",
        None,
        "rename it to end in `.gz`, as in `data.csv.gz`: such files are decompressed while they are read",
    ),
    (
        b"BZh",
        "compressed with bzip2",
        None,
        "decompress it with `bunzip2`, or compress it with gzip, which is supported",
    ),
    (
        b"\xfd7zXZ\0",
        "compressed with xz",
        None,
        "decompress it with `unxz`, or compress it with gzip, which is supported",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed with Zstandard",
        None,
        "decompress it with `unzstd`, or compress it with gzip, which is supported",
    ),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", None, UNPACK),
    (b"Rar!", "a RAR archive", None, UNPACK),
    (b"PAR1", "a Parquet file", Some(DataKind::Parquet), ""),
    (b"\x93NUMPY", "a NumPy array", Some(DataKind::Npy), ""),
    (
        b"SQLite format 3\0",
        "an SQLite database",
        None,
        "save a table of it as CSV: `sqlite3 -header -csv FILE 'select * from TABLE' > data.csv`",
    ),
    (
        b"\x89HDF\r\n\x1a\n",
        "an HDF5 file",
        None,
        "save its arrays with NumPy: `np.savez(\"data.npz\", x=file[\"x\"][:], y=file[\"y\"][:])`, or a table with `pd.read_hdf(path).to_csv(\"data.csv\", index=False)`",
    ),
    (
        b"MATLAB 5.0",
        "a MATLAB file",
        None,
        "save its arrays with NumPy: `np.savez(\"data.npz\", **scipy.io.loadmat(path))`",
    ),
    (
        b"ARROW1",
        "an Arrow file",
        None,
        "save it as Parquet or CSV: `pd.read_feather(path).to_csv(\"data.csv\", index=False)`",
    ),
    (
        b"FEA1",
        "a Feather file",
        None,
        "save it as Parquet or CSV: `pd.read_feather(path).to_csv(\"data.csv\", index=False)`",
    ),
    (
        b"ORC",
        "an ORC file",
        None,
        "save it as Parquet or CSV: `pd.read_orc(path).to_csv(\"data.csv\", index=False)`",
    ),
    (
        b"Obj\x01",
        "an Avro file",
        None,
        "convert it to Parquet or CSV",
    ),
    (b"%PDF-", "a PDF", None, "use the table itself as CSV"),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an old Excel workbook",
        None,
        SHEET,
    ),
    (
        b"<stata_dta>",
        "a Stata file",
        None,
        "convert it: `pd.read_stata(path).to_csv(\"data.csv\", index=False)`",
    ),
    (
        b"$FL2",
        "an SPSS file",
        None,
        "convert it: `pd.read_spss(path).to_csv(\"data.csv\", index=False)`",
    ),
    (
        b"RDX2\n",
        "R data",
        None,
        "write the table in R: `write.csv(x, \"data.csv\", row.names = FALSE)`",
    ),
    (
        b"RDX3\n",
        "R data",
        None,
        "write the table in R: `write.csv(x, \"data.csv\", row.names = FALSE)`",
    ),
    (
        b"\xff\xfe\0\0",
        "UTF-32 text",
        None,
        "save it as UTF-8, for example with `iconv -f utf-32 -t utf-8`",
    ),
    (
        b"\0\0\xfe\xff",
        "UTF-32 text",
        None,
        "save it as UTF-8, for example with `iconv -f utf-32 -t utf-8`",
    ),
    (
        b"\xff\xfe",
        "UTF-16 text",
        None,
        "save it as UTF-8, for example with `iconv -f utf-16 -t utf-8`",
    ),
    (
        b"\xfe\xff",
        "UTF-16 text",
        None,
        "save it as UTF-8, for example with `iconv -f utf-16 -t utf-8`",
    ),
];

/// A zip archive, identified by the names at its beginning.
fn zip(head: &[u8]) -> (&'static str, Option<DataKind>, &'static str) {
    let within = |name: &[u8]| head.windows(name.len()).any(|bytes| bytes == name);
    if within(b"xl/") || within(b"[Content_Types].xml") {
        ("an Excel workbook", None, SHEET)
    } else if within(b"opendocument.spreadsheet") {
        ("an OpenDocument spreadsheet", None, SHEET)
    } else if within(b".npy") {
        ("an npz archive of arrays", Some(DataKind::Npz), "")
    } else if within(b"data.pkl") {
        (
            "a PyTorch checkpoint",
            None,
            "save its tensors in Python: `safetensors.torch.save_file(tensors, \"data.safetensors\")`",
        )
    } else {
        (ZIP, None, UNPACK)
    }
}

/// Formats with a magic number.
fn by_mark(head: &[u8]) -> Option<Known> {
    if head.starts_with(b"PK\x03\x04") {
        let (what, kind, help) = zip(head);
        return Some(Known { what, kind, help });
    }
    if head.starts_with(b"RIFF") && head.get(8..12) == Some(b"WEBP") {
        return Some(Known {
            what: "a WebP image",
            kind: None,
            help: "save images as PNG or JPEG, and set `type = \"image_folder\"`",
        });
    }
    let mut marks = MARKS.into_iter();
    // Words may begin with the letters of a mark: binary files contain bytes that text does not.
    let is_binary = |mark: &[u8]| {
        let has_letters = mark.iter().all(u8::is_ascii_graphic);
        !has_letters || mark.len() >= 5 || head.iter().any(|byte| *byte < 9 || *byte >= 0xf8)
    };
    let found = marks.find(|(mark, ..)| head.starts_with(mark) && is_binary(mark));
    found.map(|(_, what, kind, help)| Known { what, kind, help })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn said(bytes: &[u8], kind: DataKind) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.csv");
        fs::write(&path, bytes).unwrap();
        let result = check(&path, kind);
        result.map_or_else(
            |error| error.message.replace(&path.display().to_string(), "F"),
            |()| String::new(),
        )
    }

    #[test]
    fn files_of_other_formats_are_named() {
        for (bytes, what) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "a PNG image"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG image"),
            (b"GIF89a\x01\0\x01\0", "a GIF image"),
            (b"RIFF\x10\0\0\0WEBPVP8 ", "a WebP image"),
            (b"\x1f\x8b\x08\0\0\0\0\0", "compressed with gzip"),
            (
                b"PK\x03\x04\x14\0\0\0\x08\0....[Content_Types].xml",
                "an Excel workbook",
            ),
            (
                b"PK\x03\x04\x14\0\0\0\x08\0....arr_0.npy",
                "an npz archive of arrays",
            ),
            (b"PK\x03\x04\x14\0\0\0\x08\0....train.csv", "a zip archive"),
            (b"PAR1\x15\x04\x15", "a Parquet file"),
            (b"\x93NUMPY\x01\0v\0", "a NumPy array"),
            (b"SQLite format 3\0\x10\0", "an SQLite database"),
            (b"\x80\x04\x95\x1a\0\0\0", "a Python pickle"),
            (b"\xff\xfea\0,\0b\0\n\0", "UTF-16 text"),
            (b"\x89HDF\r\n\x1a\n\0", "an HDF5 file"),
            (
                b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0",
                "an old Excel workbook",
            ),
            (b"\n<!DOCTYPE html><html>", "an HTML page"),
            (
                b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
                "a Git LFS pointer",
            ),
            (b"{\"a\": 1}\n{\"a\": 2}\n", "JSON with one object per line"),
            (
                b"[\n {\"a\": 1},\n",
                "one JSON list, not one object per line",
            ),
            (b"\x40\0\0\0\0\0\0\0{\"x\":{\"dtype\"", "a safetensors file"),
            (b"\0\0\x08\x03\0\0\0\x01", "an IDX array"),
        ] {
            let expected = format!("`F` is {what}, which `type = \"csv\"` does not read");
            assert_eq!(said(bytes, DataKind::Csv), expected);
        }
        assert_eq!(
            said(b"a\0,\0b\0\n\x001\0,\x002\0\n\0", DataKind::Csv),
            "`F` is not text: it contains zero bytes"
        );
    }

    #[test]
    fn what_is_read_is_not_refused() {
        for (bytes, kind) in [
            (&b"a,b\n1,2\n"[..], DataKind::Csv),
            (b"\xef\xbb\xbfa,b\n", DataKind::Csv),
            (b"ORC,BZh,PAR1\n1,2,3\n", DataKind::Csv),
            (b"Rar!,GIF8\n1,2\n", DataKind::Csv),
            (b"{x},[y]\n1,2\n", DataKind::Csv),
            (b"", DataKind::Csv),
            (b"K\xf6ln,b\n", DataKind::Csv),
            (b"{\"a\": 1}\n", DataKind::JsonLines),
            (b"{\"a\": 1}\n", DataKind::Text),
            (b"<html> as a text", DataKind::Text),
            (b"\x93NUMPY\x01\0v\0", DataKind::Npy),
            (b"PAR1\x15\x04", DataKind::Parquet),
            (b"", DataKind::Npy),
        ] {
            assert_eq!(said(bytes, kind), "", "{}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(
            said(b"a,b\n1,2\n", DataKind::Npy),
            "`F` is a text file, which `type = \"npy\"` does not read"
        );
        assert_eq!(
            said(b"PAR1\x15\x04", DataKind::Npy),
            "`F` is a Parquet file, which `type = \"npy\"` does not read"
        );
    }
}
