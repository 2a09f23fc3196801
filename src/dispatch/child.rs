//! One run's process, from start to end.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use super::{Cancel, Running, Settings, Task, Urgency};
use crate::event::{Event, FailureClass, Outcome};

/// Starts the worker of a task, passes its events on, and waits for its end. When the worker ends
/// without saying how, the end is told from its exit status.
pub fn run(run: usize, task: &Task, settings: &Settings, cancel: &Cancel, send: &dyn Fn(Event)) {
    let started = Instant::now();
    let finish = |outcome: Outcome| {
        send(Event::RunFinished {
            outcome,
            wall_secs: started.elapsed().as_secs_f64(),
            weights_digest: String::new(),
        });
    };
    let mut child = match command(task, settings).and_then(|mut command| command.spawn()) {
        Ok(child) => child,
        Err(e) => {
            let message = format!("the worker cannot be started: {e}");
            return finish(Outcome::failed(FailureClass::Internal, message));
        }
    };
    let output = child.stdout.take();
    let leash = child.stdin.take();
    {
        let mut cancelled = cancel.lock();
        // A cancellation between the check and the start is made up for here.
        let leash = leash.filter(|_| cancelled.urgency == Urgency::None);
        if cancelled.urgency == Urgency::AtOnce {
            let _ = child.kill();
        }
        cancelled.running[run] = Some(Running { child, leash });
    }
    let mut finished = false;
    for line in output
        .into_iter()
        .flat_map(|output| BufReader::new(output).lines())
    {
        let Ok(line) = line else { break };
        match serde_json::from_str::<Event>(&line) {
            Ok(event) => {
                finished |= matches!(event, Event::RunFinished { .. });
                send(event);
            }
            Err(e) => tracing::warn!("{}: not an event ({e}): {line}", task.plan.id),
        }
    }
    let running = cancel.lock().running[run].take();
    let status = running.and_then(|mut running| running.child.wait().ok());
    if !finished {
        finish(told_by(status, cancel.urgency(), task));
    }
}

fn command(task: &Task, settings: &Settings) -> std::io::Result<Command> {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&task.log)?;
    let mut command = Command::new(&settings.program);
    command
        .arg("exec")
        .arg(&task.folder)
        .args(["--threads", &settings.threads.to_string()])
        .args(&task.arguments)
        // Burn rebuilds saved optimizer state on its default device, which is not always the run's.
        .env("BURN_DEVICE", task.plan.device.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log);
    #[cfg(unix)]
    {
        // A group of its own, so that Ctrl-C reaches this program alone, which tells its workers.
        use std::os::unix::process::CommandExt;
        command.process_group(0);
    }
    Ok(command)
}

fn told_by(status: Option<ExitStatus>, urgency: Urgency, task: &Task) -> Outcome {
    if urgency == Urgency::AtOnce {
        return Outcome::Interrupted;
    }
    let log = task.log.display();
    #[cfg(unix)]
    if let Some(signal) =
        status.and_then(|status| std::os::unix::process::ExitStatusExt::signal(&status))
    {
        let why = match signal {
            9 => "; the system does this when memory runs out",
            6 | 11 => "; a driver or native library crashed",
            _ => "",
        };
        let message = format!(
            "the worker was killed by signal {signal}{why}; see {log}, and run the command again to go on"
        );
        return Outcome::failed(FailureClass::Killed, message);
    }
    let how = match status.and_then(|status| status.code()) {
        Some(code) => format!("with exit code {code}"),
        None => "in an unknown way".into(),
    };
    Outcome::failed(
        FailureClass::Internal,
        format!("the worker ended {how} and did not say why; see {log}"),
    )
}
