//! Runs as jobs of a cluster: submission, what the cluster says about them, and the jobs themselves.
//!
//! A job trains its runs with the same workers as `runner run`, and records them itself, under a lease. Nothing else of
//! runner runs on the cluster: whoever asks for the state of jobs queries the cluster, and the next `runner run` deals
//! with jobs that have ended without recording why.

mod anchor;
mod cancel;
mod commands;
mod follow;
mod hold;
mod settle;
mod slurm;
mod states;
mod submit;
mod work;

pub use cancel::{CancelJobs, CancelledJobs, cancel_jobs};
pub(super) use follow::{Following, follow};
pub(super) use hold::Submitter;
pub(super) use settle::{busy, settle};
pub(super) use states::busy_runs;
pub use states::refresh_jobs;
pub(super) use submit::{Request, launch_of, refuse_without_programs, submit};
pub use work::{Work, work};

use std::fmt;
use std::process::Command;
use std::time::Duration;

use runner_core::record::{Answered, answer_with_errors};
use runner_core::show::plain_io_error;

/// The longest time for an answer of a cluster.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a cluster did not do what it was asked for.
#[derive(Debug)]
struct Refusal {
    /// What was executed.
    program: String,
    /// Its own words, or why there are none.
    words: String,
    /// Whether the program is missing.
    is_missing: bool,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.program, self.words)
    }
}

/// What a program of a cluster prints.
fn ask(command: Command) -> Result<String, Refusal> {
    let program = command.get_program().to_string_lossy().into_owned();
    let refusal = |words: String, is_missing: bool| Refusal {
        program: program.clone(),
        words,
        is_missing,
    };
    let answered = answer_with_errors(command, PATIENCE);
    let answered = answered.map_err(|e| {
        let is_missing = e.kind() == std::io::ErrorKind::NotFound;
        refusal(plain_io_error(&e), is_missing)
    })?;
    let Answered {
        status,
        output,
        errors,
    } = answered;
    let words = match (errors.trim(), output.trim()) {
        ("", "") => "no message".to_owned(),
        ("", output) => output.to_owned(),
        (errors, _) => errors.to_owned(),
    };
    let words: Vec<&str> = words.lines().map(str::trim).collect();
    let words = words.join("; ");
    match status {
        Some(status) if status.success() => Ok(output),
        Some(_) => Err(refusal(words, false)),
        None => Err(refusal(
            format!("no answer within {} s: {words}", PATIENCE.as_secs()),
            false,
        )),
    }
}
