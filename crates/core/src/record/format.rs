//! Reading versioned files. An existing seal is checked first, since a flipped bit can change the version too; then the
//! version, so that a file of another version is reported as such, and not as damaged.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::damage::damaged;
use super::seal::{check_seal, refuse_broken, refuse_unsealed};
use crate::plan::{FORMAT, OLDEST_FORMAT};
use crate::show::plain_io_error;
use crate::spec::plain_file;

/// A file that another version of this program wrote.
#[derive(Debug)]
pub struct OtherFormat {
    path: PathBuf,
    wrote: String,
}

#[derive(Deserialize)]
struct Head {
    format: u64,
}

impl fmt::Display for OtherFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.path.display(), self.wrote)
    }
}

impl Error for OtherFormat {}

/// An error about a file that another version wrote, with the evidence: "was written by …".
pub(super) fn of_another_version(path: &Path, wrote: String) -> io::Error {
    let path = path.to_owned();
    io::Error::other(OtherFormat { path, wrote })
}

/// Whether a file could not be read because another version wrote it.
pub fn is_other_format(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(|inner| inner.is::<OtherFormat>())
}

/// The file's text; `None` if it does not exist.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    match plain_file::read_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::InvalidData => Err(damaged(path, "it is not UTF-8")),
        Err(e) => Err(unreadable(path, &e)),
    }
}

/// An error that names the file.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> io::Error {
    let reason = plain_io_error(error);
    io::Error::new(
        error.kind(),
        format!("`{}` cannot be read: {reason}", path.display()),
    )
}

fn expect_format(path: &Path, format: u64) -> io::Result<()> {
    if (u64::from(OLDEST_FORMAT)..=u64::from(FORMAT)).contains(&format) {
        return Ok(());
    }
    let wrote = format!(
        "was written in format {format}; this runner reads formats {OLDEST_FORMAT} to {FORMAT}"
    );
    Err(of_another_version(path, wrote))
}

/// Reads a TOML file; `None` if it does not exist.
pub(super) fn read_toml<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let text = read(path)?;
    text.map(|text| parse_toml(path, &text)).transpose()
}

/// Parses the text of a TOML file.
pub(super) fn parse_toml<T: DeserializeOwned>(path: &Path, text: &str) -> io::Result<T> {
    let is_sealed = refuse_broken(path, text)?;
    let (value, format) = parse_unsealed(path, text)?;
    refuse_unsealed(path, is_sealed, format)?;
    Ok(value)
}

/// Parses the text of a TOML file regardless of its seal, with its format.
pub(super) fn parse_unsealed<T: DeserializeOwned>(path: &Path, text: &str) -> io::Result<(T, u64)> {
    let wrong = |e: toml::de::Error| damaged(path, e.message());
    let head: Head = toml::from_str(text).map_err(wrong)?;
    expect_format(path, head.format)?;
    Ok((toml::from_str(text).map_err(wrong)?, head.format))
}

/// Reads only the version of a TOML file. It comes before the first table, and the rest, which may be long, is not
/// parsed.
pub(super) fn check_toml(path: &Path) -> io::Result<()> {
    let text = read(path)?.unwrap_or_default();
    let before = text.lines().take_while(|line| !line.starts_with('['));
    let formats = before.filter_map(|line| line.strip_prefix("format = ")?.trim().parse().ok());
    match formats.take(1).next() {
        Some(format) => expect_format(path, format),
        None => Ok(()),
    }
}

/// Reads a JSON file; `None` if it does not exist.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let text = read(path)?;
    text.map(|text| parse_json(path, &text)).transpose()
}

/// Parses the text of a JSON file, or of a line of one that is sealed by itself.
pub(super) fn parse_json<T: DeserializeOwned>(path: &Path, text: &str) -> io::Result<T> {
    let wrong = |e: serde_json::Error| damaged(path, e);
    let is_sealed = refuse_broken(path, text)?;
    let format = match first_format(text) {
        Some(format) => format,
        None => serde_json::from_str::<Head>(text).map_err(wrong)?.format,
    };
    expect_format(path, format)?;
    refuse_unsealed(path, is_sealed, format)?;
    serde_json::from_str(text).map_err(wrong)
}

/// Reads a JSON file without its own format that belongs to a run of a format; `None` if it does not exist.
pub(super) fn read_json_of<T: DeserializeOwned>(path: &Path, format: u32) -> io::Result<Option<T>> {
    let Some(text) = read(path)? else {
        return Ok(None);
    };
    check_seal(path, &text, format.into())?;
    let value = serde_json::from_str(&text);
    value.map(Some).map_err(|e| damaged(path, e))
}

/// The version of a JSON file whose first key it is, as in everything that this program writes: plans are long.
fn first_format(text: &str) -> Option<u64> {
    let rest = text.trim_start().strip_prefix('{')?.trim_start();
    let rest = rest.strip_prefix("\"format\"")?.trim_start();
    let (number, _) = rest.strip_prefix(':')?.split_once(',')?;
    number.trim().parse().ok()
}
