//! User templates for `report.html`.

use std::path::Path;

use super::experiment::{refuse, show};
use super::output::Output;
use super::{FAILED, OK};
use runner_core::diagnostic::{Diagnostic, Diagnostics, Sources, Span};
use runner_core::record::{ExperimentFolder, write_whole};
use runner_core::spec::document::plain_io_error;
use runner_core::spec::plain_file;
use runner_report::report::{Report, TEMPLATE, TemplateError, html};

/// Prints the built-in template.
pub fn print(output: &mut Output) -> u8 {
    output.print(TEMPLATE.trim_end());
    OK
}

/// Reads a template. If it returns an exit code, the error was already shown.
pub fn read(path: &Path, output: &mut Output) -> Result<String, u8> {
    /// Larger files are not templates.
    const MAX_BYTES: u64 = 16 << 20;
    let text = match plain_file::read(path, MAX_BYTES) {
        Ok(Some(bytes)) => String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned()),
        Ok(None) => Err(format!("it is larger than {} MiB", MAX_BYTES >> 20)),
        Err(error) => Err(plain_io_error(&error)),
    };
    text.map_err(|reason| {
        let message = format!("cannot read the template `{}`: {reason}", path.display());
        let help = "`runner report --print-template` prints the built-in one";
        refuse(Diagnostic::error("usage", message).help(help), output)
    })
}

/// Writes `report.html` with the template in a file. If it returns an exit code, the error was already shown.
pub fn write(
    report: &Report,
    folder: &ExperimentFolder,
    path: &Path,
    text: &str,
    output: &mut Output,
) -> Result<(), u8> {
    let page = html(report, Some(text)).map_err(|error| {
        let (sources, diagnostic) = located(&error, path, text);
        show(&sources, &Diagnostics(vec![diagnostic]), output)
    })?;
    let to = folder.report("html");
    write_whole(&to, page.as_bytes()).map_err(|error| {
        let reason = plain_io_error(&error);
        let message = format!("cannot write `{}`: {reason}", to.display());
        refuse(Diagnostic::error("results", message), output);
        FAILED
    })
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
