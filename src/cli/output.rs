//! Data goes to standard output, words to standard error. A closed pipe is no error: what was to be
//! read was read, and work goes on.

use std::io::{self, IsTerminal, Write};

use crate::console::eprintln_lossy;

/// The two streams.
#[derive(Default)]
pub struct Output {
    closed: bool,
    /// Whether warnings were shown.
    pub has_warned: bool,
}

impl Output {
    /// Writes data with a final newline.
    pub fn print(&mut self, text: &str) {
        if self.closed {
            return;
        }
        let mut stdout = io::stdout().lock();
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        let written = write!(stdout, "{text}{newline}").and_then(|()| stdout.flush());
        self.closed = written.is_err();
    }

    /// Writes words.
    pub fn say(&mut self, text: &str) {
        eprintln_lossy(text.trim_end());
    }

    /// Whether words may be coloured.
    pub fn color() -> bool {
        io::stderr().is_terminal()
    }

    /// What `COLUMNS` says, or the columns of the terminal that data goes to, or a width that suits files.
    pub fn width() -> u16 {
        columns().or_else(Self::terminal_width).unwrap_or(160)
    }

    /// Columns of the terminal that data goes to, if it goes to one; as many as `COLUMNS` says.
    pub fn terminal_width() -> Option<u16> {
        let size = terminal_size::terminal_size_of(io::stdout());
        size.map(|(terminal_size::Width(width), _)| columns().unwrap_or(width.max(20)))
    }
}

fn columns() -> Option<u16> {
    let columns = std::env::var("COLUMNS").ok()?;
    columns.parse().ok().map(|columns: u16| columns.max(20))
}
