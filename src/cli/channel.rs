//! Where a worker says what happens: one JSON object a line, on a file descriptor of its own.
//!
//! The reader of a worker's standard output takes each line for an event. Drivers and native libraries print to standard
//! output too, in the middle of a line if they like; so before anything is loaded, the pipe is moved to a descriptor that
//! nobody else knows, and what is printed goes where standard error goes, which is the run's log.

use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::output::Stdout;

/// The pipe to whoever started this worker.
pub struct Channel(Mutex<Option<File>>);

impl Channel {
    /// Takes standard output for itself. To be called once, before there are other threads.
    pub fn open() -> Self {
        Self(Mutex::new(take_stdout()))
    }

    /// Says something, in one write. When nobody reads any more, the leash has gone too.
    pub fn say(&self, what: &impl Serialize) {
        let Ok(mut line) = serde_json::to_string(what) else {
            return;
        };
        line.push('\n');
        let mut pipe = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *pipe {
            Some(pipe) => drop(Stdout::keep(pipe.write_all(line.as_bytes()))),
            None => Stdout::line(&line),
        }
    }
}

/// Standard output under another number, which no process that is started from here inherits.
#[cfg(unix)]
fn take_stdout() -> Option<File> {
    use std::os::fd::FromRawFd;

    const FIRST: i32 = 3;
    // SAFETY: the calls take numbers; the new descriptor is open, and nobody else's.
    unsafe {
        let pipe = libc::fcntl(libc::STDOUT_FILENO, libc::F_DUPFD_CLOEXEC, FIRST);
        if pipe < 0 {
            return None;
        }
        libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO);
        Some(File::from_raw_fd(pipe))
    }
}

#[cfg(not(unix))]
fn take_stdout() -> Option<File> {
    None
}
