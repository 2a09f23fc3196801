//! One `runner run` at a time in an experiment's folder: the second is refused, or waits.

use super::experiment::refuse;
use super::output::Output;
use super::prepare::disk;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{ExperimentFolder, Holder, Lock, Locked};

/// Takes the lock of the experiment's folder, with `wait` as soon as it is free.
pub fn lock(folder: &ExperimentFolder, wait: bool, output: &mut Output) -> Result<Lock, u8> {
    let locked = folder.lock().map_err(|e| disk(&folder.0, &e, output))?;
    let holder = match locked {
        Locked::Taken(lock) => return Ok(lock),
        Locked::Busy(holder) => holder,
    };
    let message = format!(
        "another `runner run` is writing to `{}`",
        folder.0.display()
    );
    if wait {
        let who = holder.as_ref().map_or(String::new(), |holder| {
            format!(" ({}, since {})", process(holder), holder.since)
        });
        output.say(&format!("waiting: {message}{who}"));
        return folder
            .wait_for_lock()
            .map_err(|e| disk(&folder.0, &e, output));
    }
    let mut diagnostic = Diagnostic::error("results", message);
    if let Some(holder) = holder {
        diagnostic = diagnostic.note(format!(
            "it is {}, since {}: {}",
            process(&holder),
            holder.since,
            holder.command
        ));
    }
    Err(refuse(
        diagnostic
            .help("wait for it: add `--wait`")
            .help("or choose another folder with `--results DIR`"),
        output,
    ))
}

fn process(holder: &Holder) -> String {
    format!("process {} on host `{}`", holder.pid, holder.host)
}
