//! The event channel of a worker: one JSON object per line, on a separate file descriptor.
//!
//! The reader of a worker's standard output parses each line as an event. Drivers and native libraries print to
//! standard output too, possibly in the middle of a line; so before anything is loaded, the pipe is moved to a
//! descriptor that nothing else knows, and other output goes to standard error, which is the run's log.

use std::fs::File;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::output::Stdout;

/// The pipe to whoever started this worker.
pub struct Channel(Mutex<Option<File>>);

impl Channel {
    /// Takes over standard output. Must be called once, before there are other threads.
    pub fn open() -> Self {
        Self(Mutex::new(take_stdout()))
    }

    /// Sends an event, in one write. If nobody reads any more, the leash is closed too.
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

/// Standard output under another number, which child processes do not inherit.
#[cfg(unix)]
fn take_stdout() -> Option<File> {
    use std::os::fd::FromRawFd;

    const FIRST: i32 = 3;
    // SAFETY: the calls take numbers; the new descriptor is open, and not used elsewhere.
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
