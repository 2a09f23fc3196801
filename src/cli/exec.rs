//! `runner exec`: the worker. Trains the run of one folder in this process and sends its events on standard output, one
//! JSON object per line.

use std::fs::OpenOptions;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::channel::Channel;
use super::leash::{Leash, leave};
use super::output::Output;
use super::{ExecArgs, FAILED, INTERRUPTED, Logging, OK, log_to};
use crate::dispatch::signal_in_words;
use crate::error::Error;
use crate::train::{self, Executed, Job, Meter, is_out_of_memory, panic_text};
use runner_core::diagnostic::{Diagnostic, Reason};
use runner_core::event::{Event, FailureClass, Outcome};
use runner_core::plan::{Room, RunPlan};
use runner_core::record::{Lock, Locked, RunFolder, take_known_build};
use runner_core::show::plain_io_error;

/// Interval between attempts to take the run's lock.
const TICK: Duration = Duration::from_millis(50);

/// Executes the run of a folder.
pub fn exec(args: &ExecArgs, logging: &Logging) -> u8 {
    let started = Instant::now();
    let channel = Arc::new(Channel::open());
    let leash = Leash::watch();
    if let Some(known) = &args.build {
        take_known_build(known);
    }
    let (folder, planned) = match open(args, logging) {
        Ok(opened) => opened,
        Err(error) => return Output.fail(&error),
    };
    // Held until the process ends.
    let _lock = match take_lock(&folder, &leash) {
        // The lease is what counts: the file system may have no locks.
        Err(e) if args.leased => {
            tracing::info!("no lock: {e}");
            None
        }
        Ok(Some(lock)) => Some(lock),
        Ok(None) => {
            channel.say(&Event::RunFinished {
                outcome: Outcome::Interrupted,
                wall_secs: started.elapsed().as_secs_f64(),
                weights_digest: String::new(),
            });
            return INTERRUPTED;
        }
        Err(e) => return Output.fail(&unusable(&e)),
    };
    if let Err(diagnostic) = limit_instructions() {
        return Output.fail(&Error::refused(*diagnostic));
    }
    train::allow_huge_pages();
    let threads = use_threads(args);
    let interrupter = leash.interrupter();
    let plan = planned.adjusted(&args.adjust);
    let room = room(args, &plan);
    let meter = Arc::new(Meter::new(&plan, room));
    let (watched, to) = (meter.clone(), channel.clone());
    meter.start(interrupter.clone(), move |outcome| {
        // The training is in a step that does not end; pending allocations are not awaited.
        tracing::error!(?outcome, "worker terminated");
        finish(&to, &watched, started, outcome.into());
        leave(FAILED)
    });
    let to = channel.clone();
    let job = Job {
        plan,
        planned,
        meter: meter.clone(),
        is_probe: args.probe,
        folder,
        emit: Arc::new(move |event| to.say(&event)),
        interrupter,
        has_stopped: leash.has_stopped(),
        threads,
        started,
        kernels: args
            .kernels
            .clone()
            .unwrap_or_else(|| args.folder.join("kernels")),
        initial: args.initial.clone(),
        teacher: args.teacher.clone(),
        last_step: args.last_step,
        pause: args.prune_after,
        adjustments: args.adjust.clone(),
        fault: args.inject_fault.clone(),
    };
    tracing::info!(run = job.plan.id, threads, "worker started");
    let mut executed =
        caught(|| train::execute(&job)).unwrap_or_else(|Reason(text)| of_panic(&text));
    if let (Outcome::Interrupted, Some(signal)) = (&executed.outcome, leash.signal()) {
        executed.outcome = ended_by(signal);
    }
    tracing::info!(outcome = ?executed.outcome, "worker exits");
    if !meter.end() {
        // The watchdog ends this process.
        loop {
            std::thread::park();
        }
    }
    finish(&channel, &meter, started, executed)
}

/// Lets runner's kernels use only some instructions of the processor, as `RUNNER_SIMD` asks, so that portable arithmetic
/// can be proved.
#[cfg(feature = "flex")]
#[expect(
    clippy::disallowed_methods,
    reason = "the command line reads the environment"
)]
fn limit_instructions() -> Result<(), Box<Diagnostic>> {
    use runner_network::{Instructions, limit};
    let Some(name) = std::env::var_os("RUNNER_SIMD") else {
        return Ok(());
    };
    let mut known = Instructions::ALL.into_iter();
    let Some(most) = known.find(|it| name == it.name()) else {
        let name = name.display();
        let message = format!("`RUNNER_SIMD` is `{name}`, which is not a set of instructions");
        let diagnostic = Diagnostic::error("argument", message);
        return Err(Box::new(
            diagnostic.help("use `baseline`, `avx2` or `avx512`, or unset it"),
        ));
    };
    let used = limit(most);
    tracing::info!(?used, "instructions of kernels are limited");
    Ok(())
}

/// No kernels, no instructions.
#[cfg(not(feature = "flex"))]
fn limit_instructions() -> Result<(), Box<Diagnostic>> {
    Ok(())
}

/// The folder of the run and its plan; from here on, logs are written to the folder.
fn open(args: &ExecArgs, logging: &Logging) -> Result<(RunFolder, RunPlan), Error> {
    let folder = RunFolder(args.folder.clone());
    let plan = folder.read_plan().map_err(|e| unusable(&e))?;
    let plan = plan.ok_or_else(|| {
        let place = folder.0.display();
        let message = format!("`{place}` is not the folder of a run: it has no run.toml");
        Error::refused(Diagnostic::error("results", message))
    })?;
    folder.check_links().map_err(|e| unusable(&e))?;
    start_log(&folder, logging)
        .map_err(|reason| Error::refused(Diagnostic::error("results", reason)))?;
    Ok((folder, plan))
}

fn unusable(error: &io::Error) -> Error {
    Error::refused(Diagnostic::error("results", plain_io_error(error)))
}

/// Limits the threads of this process as requested; returns their number.
fn use_threads(args: &ExecArgs) -> usize {
    let threads = args
        .threads
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, |n| n.get()));
    let mut pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    // This thread computes too: work that it gives away would wait for another thread to wake up, in each operation.
    if threads > 1 {
        pool = pool.use_current_thread();
    }
    let built = pool.build_global().and_then(|()| match threads {
        // Where it is the only one, the batches that it waits for would wait for it: it has a pool of its own.
        1 => rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .use_current_thread()
            .build()
            .map(std::mem::forget),
        _ => Ok(()),
    });
    if let Err(e) = built {
        tracing::warn!("the number of threads cannot be set: {e}");
    }
    threads
}

/// The memory limit: that of the plan, or for a probe the memory that is free.
fn room(args: &ExecArgs, plan: &RunPlan) -> Option<Room> {
    if !args.probe {
        return plan.room(None);
    }
    let unlimited = RunPlan {
        memory_limit_bytes: None,
        memory_reserve_bytes: 0,
        ..plan.clone()
    };
    unlimited.room(Some(args.probe_limit?))
}

/// Takes the run's lock as soon as it is free: another worker may still be saving its checkpoint. None if this one is
/// asked to stop in the meantime.
fn take_lock(folder: &RunFolder, leash: &Leash) -> io::Result<Option<Lock>> {
    let mut has_waited = false;
    loop {
        if let Locked::Taken(lock) = folder.try_lock()? {
            return Ok(Some(lock));
        }
        if !std::mem::replace(&mut has_waited, true) {
            tracing::info!("another worker has the run: waiting for it");
        }
        if leash.is_told() {
            return Ok(None);
        }
        thread::sleep(TICK);
    }
}

/// The failure of a worker that was ended by a signal that its runner did not send.
fn ended_by(signal: i32) -> Outcome {
    Outcome::Failed {
        class: FailureClass::Killed,
        message: format!(
            "the worker was asked to end by {} from outside, and stopped at a checkpoint; run the command again to resume",
            signal_in_words(signal)
        ),
        signal: Some(signal),
    }
}

/// Reports the peak memory, and the outcome of the run; returns the exit code.
fn finish(channel: &Channel, meter: &Meter, started: Instant, executed: Executed) -> u8 {
    let Executed {
        outcome,
        weights_digest,
    } = executed;
    let code = match outcome {
        Outcome::Completed | Outcome::Skipped { .. } | Outcome::Pruned { .. } => OK,
        Outcome::Interrupted => INTERRUPTED,
        Outcome::Failed { .. } => FAILED,
    };
    channel.say(&Event::MemoryMeasured(meter.peak()));
    channel.say(&Event::RunFinished {
        outcome,
        wall_secs: started.elapsed().as_secs_f64(),
        weights_digest,
    });
    code
}

fn start_log(folder: &RunFolder, logging: &Logging) -> Result<(), Reason> {
    let path = folder.run_log();
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let file =
        file.map_err(|e| format!("cannot write `{}`: {}", path.display(), plain_io_error(&e)))?;
    let level = if logging.verbose > 0 { "debug" } else { "info" };
    log_to(logging, level, Mutex::new(file))
}

/// Runs a job; a panic on any thread that ends it becomes an error with the first message and its place.
pub fn caught<T>(execute: impl FnOnce() -> T) -> Result<T, Reason> {
    let first: Arc<Mutex<Option<(String, String)>>> = Arc::default();
    let seen = first.clone();
    panic::set_hook(Box::new(move |info| {
        let place = info.location().map_or(String::new(), |l| {
            format!(" ({}:{})", short_path(l.file()), l.line())
        });
        let text = panic_text(info.payload());
        let backtrace = std::backtrace::Backtrace::force_capture();
        tracing::error!("panic: {text}{place}\n{backtrace}");
        seen.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert((text, place));
    }));
    panic::catch_unwind(AssertUnwindSafe(execute)).map_err(|payload| {
        let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let last = panic_text(&*payload);
        Reason(match first {
            // The last one may say more about the first: in whose code it was.
            Some((text, place)) if last.contains(&text) => format!("{last}{place}"),
            Some((text, place)) => format!("{text}{place}"),
            None => last,
        })
    })
}

/// The failure for a panic.
fn of_panic(text: &str) -> Executed {
    let class = match text.to_lowercase() {
        t if is_out_of_memory(&t) => FailureClass::OutOfMemory,
        t if t.contains("device lost") || t.contains("poisoned device") => FailureClass::DeviceLost,
        _ => FailureClass::Panic,
    };
    Outcome::failed(class, format!("{text}; the backtrace is in run.log")).into()
}

/// A source path without the folder that the crate was built in.
fn short_path(path: &str) -> &str {
    match path.rfind("/registry/src/") {
        Some(at) => path[at + "/registry/src/".len()..]
            .split_once('/')
            .map_or(path, |(_, rest)| rest),
        None => path,
    }
}
