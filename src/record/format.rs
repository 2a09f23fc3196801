//! Reading what has a format version: that is looked at before anything else, so that a file of another
//! version is called that, and not damaged.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{damaged, special};
use crate::plan::FORMAT;
use crate::spec::document::plain_io_error;

/// A file that another version of this program wrote.
#[derive(Debug)]
pub struct OtherFormat {
    path: PathBuf,
    format: u64,
}

#[derive(Deserialize)]
struct Head {
    format: u64,
}

impl fmt::Display for OtherFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` was written by format {}, this runner reads {FORMAT}",
            self.path.display(),
            self.format
        )
    }
}

impl Error for OtherFormat {}

/// Whether a file could not be read because another version wrote it.
pub fn is_other_format(error: &io::Error) -> bool {
    let inner = error.get_ref();
    inner.is_some_and(|inner| inner.is::<OtherFormat>())
}

/// The file's text; `None` when it is not there.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    match special::refuse(path).and_then(|()| std::fs::read_to_string(path)) {
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
    match format == u64::from(FORMAT) {
        true => Ok(()),
        false => Err(io::Error::other(OtherFormat {
            path: path.to_owned(),
            format,
        })),
    }
}

/// Reads a TOML file; `None` when it is not there.
pub(super) fn read_toml<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let text = read(path)?;
    text.map(|text| parse_toml(path, &text)).transpose()
}

/// What the text of a TOML file says.
pub(super) fn parse_toml<T: DeserializeOwned>(path: &Path, text: &str) -> io::Result<T> {
    let wrong = |e: toml::de::Error| damaged(path, e.message());
    let head: Head = toml::from_str(text).map_err(wrong)?;
    expect_format(path, head.format)?;
    toml::from_str(text).map_err(wrong)
}

/// Looks at the version of a TOML file alone. It stands before the first table, and the rest, which may be
/// long, is not looked at.
pub(super) fn check_toml(path: &Path) -> io::Result<()> {
    let text = read(path)?.unwrap_or_default();
    let before = text.lines().take_while(|line| !line.starts_with('['));
    let formats = before.filter_map(|line| line.strip_prefix("format = ")?.trim().parse().ok());
    match formats.take(1).next() {
        Some(format) => expect_format(path, format),
        None => Ok(()),
    }
}

/// Reads a JSON file; `None` when it is not there.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let Some(text) = read(path)? else {
        return Ok(None);
    };
    let wrong = |e: serde_json::Error| damaged(path, e);
    let format = match first_format(&text) {
        Some(format) => format,
        None => serde_json::from_str::<Head>(&text).map_err(wrong)?.format,
    };
    expect_format(path, format)?;
    serde_json::from_str(&text).map(Some).map_err(wrong)
}

/// The version of a JSON file in which it comes first, as in all that this program writes: plans are long.
fn first_format(text: &str) -> Option<u64> {
    let rest = text.trim_start().strip_prefix('{')?.trim_start();
    let rest = rest.strip_prefix("\"format\"")?.trim_start();
    let (number, _) = rest.strip_prefix(':')?.split_once(',')?;
    number.trim().parse().ok()
}
