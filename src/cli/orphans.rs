//! Waiting for workers that a killed `runner run` has left behind.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::output::Output;
use crate::dispatch::{Cancel, Urgency};
use runner_core::record::{Holder, Locked, RunFolder};

/// How long is waited without a word: a worker that saves its checkpoint is mostly done by then.
const MOMENT: Duration = Duration::from_secs(1);

/// How often it is looked.
const TICK: Duration = Duration::from_millis(50);

/// Waits until no worker of an earlier command has any of these runs; whether the user lets it.
pub fn wait_for_workers(mut held: Vec<RunFolder>, cancel: &Cancel, output: &mut Output) -> bool {
    let started = Instant::now();
    let mut named = BTreeSet::new();
    loop {
        // Nobody takes the others meanwhile: this process has the experiment.
        held.retain(RunFolder::is_in_use);
        if held.is_empty() {
            return true;
        }
        if cancel.urgency() != Urgency::None {
            return false;
        }
        if started.elapsed() >= MOMENT {
            for folder in &held {
                if named.insert(folder.0.clone())
                    && let Ok(Locked::Busy(holder)) = folder.try_lock()
                {
                    output.say(&words(folder, holder.as_ref()));
                }
            }
        }
        std::thread::sleep(TICK);
    }
}

fn words(folder: &RunFolder, holder: Option<&Holder>) -> String {
    let run = folder.0.file_name().unwrap_or_default().to_string_lossy();
    let resumes = "the run then resumes from its newest checkpoint";
    let (who, end) = match holder {
        Some(holder) => (
            format!(
                "process {} on host `{}`, since {}: {}",
                holder.pid, holder.host, holder.since, holder.command
            ),
            format!("`kill -9 {}`", holder.pid),
        ),
        None => (
            "it does not say which process it is".to_owned(),
            format!("`fuser -k -KILL {}`", folder.0.join(".lock").display()),
        ),
    };
    format!(
        "waiting: a worker of an earlier command still has the run `{run}` ({who})\n  it saves a checkpoint and ends, or ends itself after 10 s if it hangs; to end it now: {end} ({resumes}); to stop waiting: Ctrl-C"
    )
}
