//! A worker of a comparison, from start to end: drivers may crash it, which ends nothing else.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::{Job, Parity};
use crate::dispatch::{Urgency, ended_by, environment, lines};
use runner_core::diagnostic::Reason;
use runner_core::parity::{Example, Outcome, Said};
use runner_core::spec::plain_file;

/// How long a worker may be silent until both devices are open.
const OPENING: Duration = Duration::from_secs(30);

/// The same after that: a step of six trainings takes time, and the first one compiles kernels.
const COMPUTING: Duration = Duration::from_secs(600);

/// Polling interval.
const TICK: Duration = Duration::from_millis(50);

/// Starts a worker for a job and passes its messages to `take`. The error says how it ended early; its other output is
/// in `log`.
pub(super) fn worker(
    job: &Job,
    options: &Parity,
    log: &Path,
    take: &mut dyn FnMut(Said),
) -> Result<(), Reason> {
    let mut child = spawn(job, options, log)
        .map_err(|e| Reason(format!("the worker cannot be started: {e}")))?;
    // The leash is held until the worker ends on its own.
    let leash = child.stdin.take();
    let mut is_told = false;
    let silence = listen(&mut child, options, &mut |said| {
        is_told |= tells_end(&said);
        take(said);
    });
    if silence.is_some() {
        let _ = child.kill();
    }
    let status = child.wait();
    drop(leash);
    match (silence, status) {
        (Some(reason), _) => Err(reason),
        (None, Ok(status)) if status.success() || is_told => Ok(()),
        (None, Ok(status)) => Err(Reason(format!("{}{}", ended_by(status), last_words(log)))),
        (None, Err(e)) => Err(Reason(format!("the worker is lost: {e}"))),
    }
}

fn spawn(job: &Job, options: &Parity, log: &Path) -> io::Result<Child> {
    let program = match &options.program.path {
        Some(path) => path.clone(),
        None => return Err(io::Error::other("the runner program is unknown")),
    };
    let devices = job.devices.map(|device| device.to_string()).join(",");
    let mut command = Command::new(program);
    command
        .arg("parity-exec")
        .args(&job.folder)
        .args(["--devices", &devices])
        .args(["--steps", &job.steps.to_string()])
        .args(["--from", &job.from.to_string()])
        .args(&options.program.arguments)
        .envs(environment(job.devices[0]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(File::create(log)?);
    for glob in &job.only {
        command.args(["--only", glob]);
    }
    if let Some(text) = &options.inject_error {
        command.args(["--inject-error", &text.to_string()]);
    }
    command.spawn()
}

/// Passes on the messages of a worker until it closes its output; returns why it has to be killed, if it has to.
fn listen(child: &mut Child, options: &Parity, take: &mut dyn FnMut(Said)) -> Option<Reason> {
    let mut lines = child.stdout.take().into_iter().flat_map(lines);
    let (sender, receiver) = mpsc::channel();
    // Read concurrently, so that silence can be noticed.
    std::thread::spawn(move || lines.try_for_each(|line| sender.send(line)));
    let mut patience = OPENING;
    let mut heard = Instant::now();
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(said) => {
                    heard = Instant::now();
                    if matches!(said, Said::Opened { .. }) {
                        patience = COMPUTING;
                    }
                    take(said);
                }
                Err(e) => tracing::warn!("parity-exec: invalid message ({e}): {line}"),
            },
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if options.cancel.urgency() != Urgency::None => {
                return Some("it was stopped".into());
            }
            Err(RecvTimeoutError::Timeout) if heard.elapsed() > patience => {
                let secs = patience.as_secs();
                let reason = format!("its driver is not responding: no result for {secs} s");
                return Some(reason.into());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Whether it says why the worker cannot continue.
fn tells_end(said: &Said) -> bool {
    match said {
        Said::Refused { .. } | Said::Failed { .. } => true,
        Said::Tried(Example { outcome, .. }) => matches!(outcome, Outcome::Failed { .. }),
        Said::Opened { .. } | Said::Began { .. } | Said::Stepped(_) => false,
    }
}

/// The last line of a worker's other output, as the end of a sentence.
fn last_words(log: &Path) -> String {
    let text = plain_file::read_whole(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.map_or(String::new(), |line| {
        format!("; its last output: {}", line.trim())
    })
}
