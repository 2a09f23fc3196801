//! User templates for `report.html`.

use std::path::{Path, PathBuf};

use crate::error::Error;
use runner_core::diagnostic::{Diagnostic, Diagnostics, Sources, Span};
use runner_core::record::{ExperimentFolder, write_whole};
use runner_core::show::plain_io_error;
use runner_core::spec::plain_file;
use runner_report::report::{Report, TemplateError, html};

/// A template that replaces the built-in one of `report.html`.
#[derive(Clone, Debug)]
pub struct Template {
    path: PathBuf,
    text: String,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it cannot be read, is larger than 16 MiB, or is not UTF-8.
    pub fn read(path: &Path) -> Result<Self, Error> {
        /// Larger files are not templates.
        const MAX_BYTES: u64 = 16 << 20;
        let text = match plain_file::read(path, MAX_BYTES) {
            Ok(Some(bytes)) => {
                String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
            }
            Ok(None) => Err(format!("it is larger than {} MiB", MAX_BYTES >> 20)),
            Err(error) => Err(plain_io_error(&error)),
        };
        let path = path.to_owned();
        match text {
            Ok(text) => Ok(Self { path, text }),
            Err(reason) => {
                let message = format!("cannot read the template `{}`: {reason}", path.display());
                let help = "`runner report --print-template` prints the built-in one";
                Err(Error::refused(
                    Diagnostic::error("usage", message).help(help),
                ))
            }
        }
    }

    /// Writes `report.html`.
    pub(super) fn write(&self, report: &Report, folder: &ExperimentFolder) -> Result<(), Error> {
        let page = html(report, Some(&self.text)).map_err(|error| {
            let (sources, diagnostic) = located(&error, &self.path, &self.text);
            Error::experiment(&sources, Diagnostics(vec![diagnostic]))
        })?;
        let to = folder.report("html");
        write_whole(&to, page.as_bytes()).map_err(|error| {
            let reason = plain_io_error(&error);
            let message = format!("cannot write `{}`: {reason}", to.display());
            Error::failed(Diagnostic::error("results", message))
        })
    }
}

/// An error in a template, with its place.
fn located(error: &TemplateError, path: &Path, text: &str) -> (Sources, Diagnostic) {
    let mut sources = Sources::default();
    let source = sources.add(path.display().to_string(), text);
    let message = format!("the template is invalid: {}", error.reason);
    let help = "`runner report --print-template` prints the built-in one, whose first lines describe the values of a template";
    let diagnostic = Diagnostic::error("usage", message).help(help);
    let range = error.range.clone().or_else(|| line(text, error.line?));
    let diagnostic = match range {
        Some(range) => diagnostic.at(Span {
            source,
            start: range.start as u32,
            end: range.end as u32,
            via: None,
        }),
        None => diagnostic.note(format!("in `{}`", path.display())),
    };
    (sources, diagnostic)
}

/// The byte range of a line, counted from 1.
fn line(text: &str, number: usize) -> Option<std::ops::Range<usize>> {
    let mut start = 0;
    for (at, line) in text.split('\n').enumerate() {
        if at + 1 == number {
            return Some(start..start + line.len());
        }
        start += line.len() + 1;
    }
    None
}
