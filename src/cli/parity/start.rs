//! A worker of `runner parity`, from start to end: drivers may crash it, which ends nothing else.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::super::tell::this_program;
use super::super::{Logging, ParityExecArgs};
use crate::dispatch::{Cancel, Urgency, ended_by, environment, lines};
use runner_core::diagnostic::Reason;
use runner_core::parity::{Example, Outcome, Said};
use runner_core::spec::plain_file;

/// How long a worker may be silent until both devices are open.
const OPENING: Duration = Duration::from_secs(30);

/// The same after that: a step of six trainings takes time, and the first one compiles kernels.
const COMPUTING: Duration = Duration::from_secs(600);

/// Polling interval.
const TICK: Duration = Duration::from_millis(50);

/// Starts a worker with these arguments and passes its messages to `take`. The error says how it ended early; its other
/// output is in `log`.
pub fn worker(
    args: &ParityExecArgs,
    logging: &Logging,
    log: &Path,
    cancel: &Cancel,
    take: &mut dyn FnMut(Said),
) -> Result<(), Reason> {
    let wrong = |e: std::io::Error| format!("the worker cannot be started: {e}");
    let program = std::env::current_exe().map_err(wrong)?;
    let devices = args.devices.iter().map(ToString::to_string);
    let devices = devices.collect::<Vec<_>>().join(",");
    let mut command = Command::new(program);
    command
        .arg("parity-exec")
        .args(&args.folder)
        .args(["--devices", &devices])
        .args(["--steps", &args.steps.to_string()])
        .args(["--from", &args.from.to_string()])
        .args(this_program(Some(logging)).arguments)
        .envs(environment(args.devices[0]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(File::create(log).map_err(wrong)?);
    for glob in &args.only {
        command.args(["--only", glob]);
    }
    if let Some(text) = &args.inject_error {
        command.args(["--inject-error", &text.to_string()]);
    }
    let mut child = command.spawn().map_err(wrong)?;
    // The leash is held until the worker ends on its own.
    let leash = child.stdin.take();
    let mut lines = child.stdout.take().into_iter().flat_map(lines);
    let (sender, receiver) = mpsc::channel();
    // Read concurrently, so that silence can be noticed.
    std::thread::spawn(move || lines.try_for_each(|line| sender.send(line)));
    let (mut is_told, mut patience) = (false, OPENING);
    let mut heard = Instant::now();
    let silence = loop {
        match receiver.recv_timeout(TICK) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(said) => {
                    heard = Instant::now();
                    if matches!(said, Said::Opened { .. }) {
                        patience = COMPUTING;
                    }
                    is_told |= tells_end(&said);
                    take(said);
                }
                Err(e) => tracing::warn!("parity-exec: invalid message ({e}): {line}"),
            },
            Err(mpsc::RecvTimeoutError::Disconnected) => break None,
            Err(mpsc::RecvTimeoutError::Timeout) if cancel.urgency() != Urgency::None => {
                break Some("it was stopped".to_owned());
            }
            Err(mpsc::RecvTimeoutError::Timeout) if heard.elapsed() > patience => {
                let secs = patience.as_secs();
                break Some(format!(
                    "its driver is not responding: no result for {secs} s"
                ));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    };
    if silence.is_some() {
        let _ = child.kill();
    }
    let status = child.wait();
    drop(leash);
    match status {
        _ if silence.is_some() => Err(Reason(silence.unwrap_or_default())),
        Ok(status) if status.success() || is_told => Ok(()),
        Ok(status) => Err(Reason(format!("{}{}", ended_by(status), last_words(log)))),
        Err(e) => Err(Reason(format!("the worker is lost: {e}"))),
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
