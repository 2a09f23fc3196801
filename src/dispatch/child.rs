//! One worker process, from start to end.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::cancel::{Cancel, Ended, Urgency};
use super::hardware::Visible;
use super::{Settings, Task};
use runner_core::event::{Adjustment, Event, FailureClass, Outcome};
use runner_core::show::plain_io_error;
use runner_core::spec::backend::DeviceName;
use runner_core::spec::plain_file;

/// The environment variable with the process id of the leash holder.
pub const HOLDER: &str = "RUNNER_PID";

/// How often kills for lack of memory are counted, at most: Linux adds up the numbers of all processors for it.
const COUNTED_EVERY: Duration = Duration::from_secs(1);

/// Starts the worker of a task, passes its events on, and waits for its end. If the worker ends without an outcome, it
/// is derived from its exit status.
pub fn run(
    run: usize,
    task: &Task,
    (device, visible, adjustments): (DeviceName, Option<Visible>, &[Adjustment]),
    deadline: Option<Instant>,
    settings: &Settings,
    cancel: &Cancel,
    send: &mut dyn FnMut(Event),
) {
    let started = Instant::now();
    let log_before = std::fs::metadata(&task.log).map_or(0, |log| log.len());
    let finished = |outcome: Outcome| Event::RunFinished {
        outcome,
        wall_secs: started.elapsed().as_secs_f64(),
        weights_digest: String::new(),
    };
    let environment = environment(device).into_iter().chain(visible);
    let mut command = match command(task, environment, adjustments, settings) {
        Ok(command) => command,
        Err(e) => {
            let log = task.shown_log();
            let reason = plain_io_error(&e);
            let message = format!(
                "`{log}` cannot be written: {reason}; make it writable, and run the command again"
            );
            return send(finished(Outcome::failed(FailureClass::Disk, message)));
        }
    };
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            let message = format!("the worker cannot be started: {e}");
            return send(finished(Outcome::failed(FailureClass::Internal, message)));
        }
    };
    let output = child.stdout.take();
    cancel.hold(run, child, deadline);
    let mut is_told = false;
    let mut killed_before = killed_for_memory();
    let mut counted = Instant::now();
    for line in output.into_iter().flat_map(lines) {
        let line = task.as_shown(line);
        match serde_json::from_str::<Event>(&line) {
            Ok(event) => {
                is_told |= matches!(event, Event::RunFinished { .. });
                // Counted again while it lives, so that an earlier kill is not mistaken for its end.
                if counted.elapsed() > COUNTED_EVERY {
                    (killed_before, counted) = (killed_for_memory(), Instant::now());
                }
                send(event);
            }
            Err(e) => tracing::warn!("{}: not an event ({e}): {line}", task.plan.id),
        }
    }
    let ended = cancel.wait(run);
    if !is_told {
        let was_killed_for_memory = killed_before
            .zip(killed_for_memory())
            .is_some_and(|(before, now)| now > before);
        let urgency = cancel.urgency_of(run);
        send(finished(told_by(
            &ended,
            urgency,
            was_killed_for_memory,
            (task, log_before),
        )));
    }
}

fn command(
    task: &Task,
    environment: impl IntoIterator<Item = Visible>,
    adjustments: &[Adjustment],
    settings: &Settings,
) -> std::io::Result<Command> {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&task.log)?;
    let mut command = Command::new(&settings.program);
    command
        .arg("exec")
        .arg(no_flag(&task.folder).as_ref())
        .args(["--threads", &settings.threads.to_string()])
        .args(&task.arguments)
        .envs(environment)
        .env(HOLDER, std::process::id().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log);
    for adjustment in adjustments {
        command.args(["--adjust", &adjustment.to_string()]);
    }
    #[cfg(unix)]
    {
        // A separate process group, so that Ctrl-C only reaches this program, which notifies its workers.
        use std::os::unix::process::CommandExt;
        command.process_group(0);
    }
    #[cfg(windows)]
    {
        // `CREATE_NEW_PROCESS_GROUP`: Ctrl-C in the console would end the worker before it saves a checkpoint.
        use std::os::windows::process::CommandExt;
        command.creation_flags(0x0000_0200);
    }
    Ok(command)
}

/// A path that is no flag, also if its name begins like one.
fn no_flag(path: &Path) -> Cow<'_, Path> {
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        Cow::Owned(Path::new(".").join(path))
    } else {
        Cow::Borrowed(path)
    }
}

impl Task {
    /// A text of the worker, with the folder as users know it.
    fn as_shown(&self, text: String) -> String {
        match &self.shown {
            Some(shown) => {
                let folder = format!("{}/", self.folder.display());
                text.replace(&folder, &format!("{}/", shown.display()))
            }
            None => text,
        }
    }

    fn shown_log(&self) -> String {
        self.as_shown(self.log.display().to_string())
    }
}

/// The environment of a process that computes on a device.
pub fn environment(device: DeviceName) -> [(&'static str, String); 3] {
    [
        // Burn creates some tensors, such as saved optimizer state, on its default device, which is not always the
        // run's.
        ("BURN_DEVICE", device.to_string()),
        // Both are read by `mimalloc`. Huge pages multiply the memory of a small run, without making it faster; pages
        // that it keeps for a second double it, and make it vary.
        ("MIMALLOC_ALLOW_THP", "0".into()),
        ("MIMALLOC_PURGE_DELAY", "0".into()),
    ]
}

/// The outcome of a worker that did not report it. Its log output starts after this many bytes.
fn told_by(
    ended: &Ended,
    urgency: Urgency,
    was_killed_for_memory: bool,
    (task, log_before): (&Task, u64),
) -> Outcome {
    if ended.is_killed || urgency == Urgency::AtOnce {
        // A time limit, or the user; the former's message is written by `retry`.
        return Outcome::Interrupted;
    }
    let log = task.shown_log();
    if let Some(signal) = ended.status.and_then(signal_of) {
        let remedy = "set `memory.limit`, a smaller `train.micro_batch_size` or fewer `--jobs`";
        if signal == 9 && was_killed_for_memory {
            return Outcome::Failed {
                class: FailureClass::OutOfMemory,
                message: format!(
                    "the system killed the worker because memory ran out; {remedy}; see {log}"
                ),
                signal: Some(signal),
            };
        }
        if signal == 6
            && let Some(bytes) = refused_bytes(task, log_before)
        {
            return Outcome::Failed {
                class: FailureClass::OutOfMemory,
                message: format!(
                    "the system refused to allocate {bytes} bytes for the worker; {remedy}; see {log}"
                ),
                signal: Some(signal),
            };
        }
        let message = format!(
            "{}; see {log}, and run the command again to resume",
            killed_by(signal)
        );
        return Outcome::Failed {
            class: FailureClass::Killed,
            message,
            signal: Some(signal),
        };
    }
    Outcome::failed(
        FailureClass::Internal,
        format!("{}; see {log}", untold(ended.status)),
    )
}

/// The end of a worker without an outcome, as text.
pub fn ended_by(status: ExitStatus) -> String {
    match signal_of(status) {
        Some(signal) => killed_by(signal),
        None => untold(Some(status)),
    }
}

fn killed_by(signal: i32) -> String {
    let why = match signal {
        9 => "; the system does this when it runs out of memory",
        6 | 11 => "; a driver or native library crashed",
        _ => "",
    };
    format!("the worker was killed by {}{why}", signal_in_words(signal))
}

/// A signal by number and name.
pub fn signal_in_words(signal: i32) -> String {
    format!("signal {signal}{}", signal_name(signal))
}

/// The lines that a worker writes. Bytes that are not text are replaced, and end nothing: a worker is read until it
/// closes its output.
pub fn lines(output: impl Read) -> impl Iterator<Item = String> {
    let pieces = BufReader::new(output).split(b'\n');
    let pieces = pieces.map_while(Result::ok);
    pieces.map(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        String::from_utf8_lossy(line).into_owned()
    })
}

fn untold(status: Option<ExitStatus>) -> String {
    let how = match status.and_then(|status| status.code()) {
        Some(code) => format!("with exit code {code}"),
        None => "in an unknown way".into(),
    };
    format!("the worker ended {how} without giving a reason")
}

/// Processes that Linux has killed for lack of memory since it started, if reported: including those of limited groups.
fn killed_for_memory() -> Option<u64> {
    let counts = plain_file::read_text(std::path::Path::new("/proc/vmstat")).ok()?;
    let count = counts
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?;
    count.trim().parse().ok()
}

/// The size of a refused allocation that ended the worker. Rust reports it in the log, and may write more after it,
/// such as a backtrace; other threads may write in the meantime.
fn refused_bytes(task: &Task, log_before: u64) -> Option<u64> {
    const TAIL: u64 = 1 << 18;
    let mut log = plain_file::open(&task.log).ok()?;
    let size = log.metadata().ok()?.len();
    let from = size.saturating_sub(TAIL).max(log_before);
    log.seek(SeekFrom::Start(from)).ok()?;
    let mut tail = Vec::new();
    log.take(TAIL).read_to_end(&mut tail).ok()?;
    let tail = String::from_utf8_lossy(&tail);
    let mut said = tail.lines().rev().filter_map(|line| {
        let (_, rest) = line.split_once("memory allocation of ")?;
        rest.split_once(" bytes failed")?.0.parse().ok()
    });
    said.next()
}

#[cfg(unix)]
fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal_of(_: ExitStatus) -> Option<i32> {
    None
}

/// ` (SIGKILL)`, if the signal has a name.
#[cfg(unix)]
fn signal_name(signal: i32) -> String {
    let name = signal_hook::low_level::signal_name(signal);
    name.map_or(String::new(), |name| format!(" ({name})"))
}

#[cfg(not(unix))]
fn signal_name(_: i32) -> String {
    String::new()
}
