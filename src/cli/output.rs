//! Data goes to standard output, messages to standard error.
//!
//! Everything on standard output goes through [`Stdout`], which keeps the first error: a full disk must not look like a
//! shorter result. A closed pipe is not an error: the reader is done, and work continues. Nothing is written after an
//! error, so that the output is a prefix of the complete one. Other work is not stopped by it: a training that prints
//! its events is still recorded, and the exit code finally reports that the stream is incomplete.

#![expect(clippy::disallowed_methods, reason = "this is the one place")]

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use super::{FAILED, OK};
use runner_core::diagnostic::{Diagnostic, Sources, printable_lines};
use runner_core::show::plain_io_error;
use runner_core::table::folded;
use runner_report::console::{eprint_in_color, eprintln_lossy};

/// The first error of standard output.
static FAILURE: OnceLock<(ErrorKind, String)> = OnceLock::new();

/// Standard output of this process.
pub struct Stdout;

impl Stdout {
    /// Keeps the error of a write, which [`close`] reports.
    pub fn keep<T>(written: io::Result<T>) -> io::Result<T> {
        written.inspect_err(|e| {
            if e.kind() != ErrorKind::Interrupted {
                let _ = FAILURE.set((e.kind(), plain_io_error(e)));
            }
        })
    }

    /// Writes a whole line at once; errors are kept.
    pub fn line(text: &str) {
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        let _ = Self
            .write_all(format!("{text}{newline}").as_bytes())
            .and_then(|()| Self.flush());
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match FAILURE.get() {
            Some((kind, _)) => Err((*kind).into()),
            None => Self::keep(io::stdout().lock().write(bytes)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match FAILURE.get() {
            Some((kind, _)) => Err((*kind).into()),
            None => Self::keep(io::stdout().lock().flush()),
        }
    }
}

/// The exit code of a verb once everything is written: that of a failure if standard output is incomplete.
pub fn close(code: u8) -> u8 {
    let _ = Stdout.flush();
    let Some(reason) = incomplete() else {
        return code;
    };
    let message = format!("cannot write to standard output: {reason}");
    let diagnostic = Diagnostic::error("output", message)
        .note("the output is incomplete; what runs recorded in their folders is not affected")
        .help("free some space, or choose another path");
    eprint_in_color(&diagnostic.render(&Sources::default(), Output::color()));
    if code == OK { FAILED } else { code }
}

/// Why standard output is incomplete, if somebody still reads it.
fn incomplete() -> Option<&'static str> {
    let failed = FAILURE
        .get()
        .filter(|(kind, _)| *kind != ErrorKind::BrokenPipe);
    failed.map(|(_, reason)| reason.as_str())
}

/// The two streams.
pub struct Output;

impl Output {
    /// Writes data with a final newline. Terminal control characters are escaped, in JSON by JSON's own escapes.
    pub fn print(&mut self, text: &str) {
        Stdout::line(&printable_lines(text));
    }

    /// Writes tables that fit, and sentences in lines of the same width that break at spaces.
    pub fn print_fitted(&mut self, text: &str) {
        match Self::table_width() {
            None => self.print(text),
            Some(width) => self.print(&folded(text, width.into()).join("\n")),
        }
    }

    /// Whether work that is only printed is useless: it cannot be written.
    pub fn has_failed(&self) -> bool {
        incomplete().is_some()
    }

    /// Writes messages, on a terminal in lines of its width that break at spaces.
    pub fn say(&mut self, text: &str) {
        let size = terminal_size::terminal_size_of(io::stderr());
        let Some((terminal_size::Width(width), _)) = size else {
            return eprintln_lossy(text.trim_end());
        };
        let width = usize::from(columns().unwrap_or(width.max(20)));
        let text = text.trim_end();
        if text.is_empty() {
            return eprintln_lossy("");
        }
        for line in folded(text, width) {
            eprintln_lossy(&line);
        }
    }

    /// Writes a rendered diagnostic, which may be colored.
    pub fn show(&mut self, rendered: &str) {
        eprint_in_color(rendered.trim_end());
    }

    /// Whether messages may be colored: on a terminal, unless `NO_COLOR` is set (<https://no-color.org>).
    pub fn color() -> bool {
        io::stderr().is_terminal() && !is_without_color()
    }

    /// Whether data goes to a terminal.
    pub fn is_terminal() -> bool {
        io::stdout().is_terminal()
    }

    /// The value of `COLUMNS`, or the columns of the terminal that data goes to, or a width that suits files.
    pub fn width() -> u16 {
        columns().or_else(Self::terminal_width).unwrap_or(160)
    }

    /// The width for tables: that of `COLUMNS` or of the terminal that data is written to; none for a file.
    pub fn table_width() -> Option<u16> {
        columns().or_else(Self::terminal_width)
    }

    /// Columns of the terminal that data goes to, if any; `COLUMNS` overrides them.
    pub fn terminal_width() -> Option<u16> {
        let size = terminal_size::terminal_size_of(io::stdout());
        size.map(|(terminal_size::Width(width), _)| columns().unwrap_or(width.max(20)))
    }
}

/// Whether `NO_COLOR` is set.
pub fn is_without_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

fn columns() -> Option<u16> {
    let columns = std::env::var("COLUMNS").ok()?;
    columns.parse().ok().map(|columns: u16| columns.max(20))
}

/// Where logs are written: to standard error, line by line, without terminal control characters and without a panic if
/// it cannot be written to.
pub struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let _ = io::stderr().write_all(printable_lines(&text).as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
