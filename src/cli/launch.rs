//! Jobs of a cluster: `runner cancel`, and `runner work`, which jobs execute.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::output::Output;
use super::tell::Teller;
use super::{CancelArgs, FAILED, INTERRUPTED, Logging, OK, WorkArgs};
use crate::dispatch::{Cancel, Urgency};
use crate::ops::{self, CancelJobs, Experiment, Work};
use runner_core::diagnostic::{Reason, counted};
use runner_core::spec::launch::SystemKind;
use runner_core::spec::section::{Choice, by_name};
use runner_report::console::Mode;

/// The name of a system.
pub fn system(name: &str) -> Result<SystemKind, Reason> {
    by_name(name).ok_or_else(|| {
        let names = SystemKind::ALL
            .iter()
            .map(|(_, name, _)| format!("`{name}`"));
        let names: Vec<String> = names.collect();
        Reason(format!("use {}", names.join(", ")))
    })
}

/// Cancels the jobs of an experiment.
pub fn cancel(args: &CancelArgs, output: &mut Output) -> u8 {
    let teller = Teller::new(Mode::Normal);
    let options = CancelJobs {
        folder: args.folder.clone(),
    };
    let cancelled = match ops::cancel_jobs(&options, &|progress| teller.tell(progress)) {
        Ok(cancelled) => cancelled,
        Err(error) => return output.fail(&error),
    };
    let (queued, running) = (cancelled.num_queued, cancelled.num_running);
    if queued + running == 0 {
        output.say(
            "no job of a cluster is queued or running; to stop a `runner run` on this machine, press Ctrl-C in its terminal",
        );
        return OK;
    }
    output.say(&format!(
        "cancelled {} and {}; runs that have started keep their checkpoints, and `runner run` resumes them",
        counted(queued, "queued job"),
        counted(running, "running job")
    ));
    if cancelled.num_untold > 0 {
        output.say("note: `launch.cancel` is not set, so the cluster still has the jobs; those that start end at once");
    }
    OK
}

/// Trains the runs of a job.
pub fn work(args: &WorkArgs, logging: &Logging, output: &mut Output) -> u8 {
    let teller = Teller::new(Mode::Normal);
    let options = Work {
        job: args.job.clone(),
        arguments: Experiment::default().logging(logging).program.arguments,
        ..Work::new(&args.folder, args.key.as_str(), args.element)
    };
    listen(&options.cancel, &options.is_short_of_time);
    match ops::work(&options, &|progress| teller.tell(progress)) {
        Ok(true) => OK,
        Ok(false) if options.cancel.urgency() != Urgency::None => INTERRUPTED,
        Ok(false) => FAILED,
        Err(error) => output.fail(&error),
    }
}

/// A signal makes the run save a checkpoint. The cluster sends SIGUSR1 some time before the limit of the job, and
/// SIGTERM at its end: the second one must not end the saving.
#[cfg(unix)]
fn listen(cancel: &Cancel, is_short_of_time: &Arc<AtomicBool>) {
    use crate::dispatch::Reason;
    use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
    use signal_hook::iterator::Signals;
    use std::sync::atomic::Ordering;

    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGUSR1]) else {
        return;
    };
    let (cancel, is_short_of_time) = (cancel.clone(), is_short_of_time.clone());
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGUSR1 {
                is_short_of_time.store(true, Ordering::Release);
            }
            cancel.cancel(Urgency::Graceful, Reason::User);
        }
    });
}

#[cfg(not(unix))]
fn listen(_: &Cancel, _: &Arc<AtomicBool>) {}
