//! Tells programs and webhooks of the end of a training, and of runs that fail.
//!
//! Everything is sent by one thread, so that neither a slow program nor a dead server holds up the training. What cannot
//! be delivered is a warning: it changes neither records nor the exit code.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{RunOutcome, Stopped};
use crate::error::Error;
use crate::ops::{Progress, Sink};
use runner_core::diagnostic::Diagnostic;
use runner_core::event::{Event, FailureClass, Outcome};
use runner_core::record::Index;
use runner_core::spec::notify::{NotifySpec, Occasion};
use runner_report::report::Brief;

/// How long a program or a server may take.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// A retry is announced at once: a failure that is this old is final.
const SETTLED: Duration = Duration::from_millis(500);
/// What is shown of the errors of a program.
const MAX_ERRORS: u64 = 1000;

/// What programs and webhooks are sent.
#[derive(Clone, Debug, Serialize)]
struct Notification {
    event: Occasion,
    experiment: String,
    /// What happened, as a sentence: the key that chat services show.
    text: String,
    /// The run that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    /// The class of its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<FailureClass>,
    /// The absolute path of the experiment's results.
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<PathBuf>,
}

/// Refuses notifications that cannot be sent from here, before anything is trained.
///
/// # Errors
///
/// [`Error::Refused`] if a program is not found, or a variable does not contain an address.
pub(super) fn refuse_unreachable(all: &[NotifySpec]) -> Result<(), Error> {
    for (at, notify) in all.iter().enumerate() {
        let refuse = |message: String, help: &str| {
            Err(Error::refused(
                Diagnostic::error("notify", message).help(help),
            ))
        };
        if let Some(program) = notify.command.iter().flatten().next()
            && !is_found(program)
        {
            return refuse(
                format!("the program `{program}` of `notify[{at}].command` is not found"),
                "correct its name or path, or install it; a path is relative to the folder where `runner` is started",
            );
        }
        if let Some(name) = &notify.url_variable {
            let url = address(name);
            // It may be a secret, and is not shown.
            if !["http://", "https://"]
                .iter()
                .any(|start| url.starts_with(start))
            {
                return refuse(
                    format!(
                        "the environment variable `{name}` of `notify[{at}].url_variable` does not contain an address"
                    ),
                    "set it to the address of the webhook, which begins with https://",
                );
            }
        }
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "addresses of webhooks are secrets, which no file should contain"
)]
fn address(variable: &str) -> String {
    std::env::var(variable).unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "programs are found in PATH")]
fn is_found(program: &str) -> bool {
    let is_file =
        |path: &Path| path.is_file() || cfg!(windows) && path.with_extension("exe").is_file();
    if program.contains(['/', '\\']) {
        return is_file(Path::new(program));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| is_file(&folder.join(program)))
}

/// Runs an operation, and tells those whom its experiment names of what happens in it.
pub(super) fn told(
    sink: &Sink<'_>,
    operation: impl FnOnce(&Sink<'_>) -> Result<RunOutcome, Error>,
) -> Result<RunOutcome, Error> {
    let (send, orders) = channel();
    thread::scope(|scope| {
        scope.spawn(|| deliver(orders, sink));
        let heard = Mutex::new(Heard::new(send));
        let lock = || heard.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = operation(&|progress| {
            lock().hear(&progress);
            sink(progress);
        });
        lock().end(&outcome);
        // Without it, the other thread would wait for more.
        drop(heard);
        outcome
    })
}

type Order = (NotifySpec, usize, Notification);

/// What is known of a training.
struct Heard {
    send: Sender<Order>,
    experiment: String,
    notify: Vec<NotifySpec>,
    /// Failures that a retry may follow.
    unsettled: Vec<(Instant, Notification)>,
}

impl Heard {
    fn new(send: Sender<Order>) -> Self {
        Self {
            send,
            experiment: String::new(),
            notify: Vec::new(),
            unsettled: Vec::new(),
        }
    }

    fn hear(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Training(training) => {
                training.experiment.clone_into(&mut self.experiment);
                self.notify = training.notify.to_vec();
            }
            Progress::Event { plan, event, .. } if !self.notify.is_empty() => {
                self.hear_of_run(&plan.id, event);
            }
            Progress::Tick => self.settle(SETTLED),
            Progress::Trained => self.settle(Duration::ZERO),
            _ => {}
        }
    }

    fn hear_of_run(&mut self, id: &str, event: &Event) {
        match event {
            Event::RunFinished {
                outcome: Outcome::Failed { class, message, .. },
                ..
            } => {
                let event = if *class == FailureClass::NotFinite {
                    Occasion::Diverged
                } else {
                    Occasion::RunFailed
                };
                let failed = Notification {
                    event,
                    experiment: self.experiment.clone(),
                    text: format!("{}: run {id} failed: {message}", self.experiment),
                    run: Some(id.to_owned()),
                    class: Some(*class),
                    folder: None,
                };
                self.unsettled.push((Instant::now(), failed));
            }
            Event::RunRetried { .. } | Event::RunAdjusted { .. } => {
                self.unsettled
                    .retain(|(_, failed)| failed.run.as_deref() != Some(id));
            }
            _ => {}
        }
    }

    /// Tells of the failures that are at least this old.
    fn settle(&mut self, age: Duration) {
        let is_settled = |(since, _): &mut (Instant, _)| since.elapsed() >= age;
        let settled: Vec<_> = self.unsettled.extract_if(.., is_settled).collect();
        for (_, failed) in settled {
            self.tell(&failed);
        }
    }

    /// Tells of the end, if anything was trained and the user did not stop it.
    fn end(&mut self, outcome: &Result<RunOutcome, Error>) {
        self.settle(Duration::ZERO);
        let (event, text, folder) = match outcome {
            Err(Error::Interrupted(_)) => return,
            Err(error) => (Occasion::Failed, error.to_string(), None),
            Ok(outcome) => {
                let by_user = [Some(Stopped::User), Some(Stopped::WhileMeasuring)];
                let is_elsewhere = matches!(outcome.stopped, Some(Stopped::Submitted(_)));
                if by_user.contains(&outcome.stopped) || is_elsewhere {
                    return;
                }
                let is_finished = outcome.failure.is_none() && outcome.num_left() == 0;
                let event = if is_finished {
                    Occasion::Finished
                } else {
                    Occasion::Failed
                };
                (event, summary(outcome), Some(&outcome.folder.0))
            }
        };
        let folder = folder.map(|folder| {
            let whole = std::path::absolute(folder);
            whole.unwrap_or_else(|_| folder.clone())
        });
        self.tell(&Notification {
            event,
            text: format!("{}: {text}", self.experiment),
            experiment: self.experiment.clone(),
            run: None,
            class: None,
            folder,
        });
    }

    fn tell(&self, notification: &Notification) {
        for (at, notify) in self.notify.iter().enumerate() {
            let has = |occasion| notify.on.contains(&occasion);
            let is_wanted = has(notification.event)
                || notification.event == Occasion::Diverged && has(Occasion::RunFailed);
            if is_wanted {
                // The other thread ends after this one.
                let _ = self.send.send((notify.clone(), at, notification.clone()));
            }
        }
    }
}

/// The state of the runs, and the best trial.
fn summary(outcome: &RunOutcome) -> String {
    if let Some(failure) = &outcome.failure {
        return failure.to_string();
    }
    match Index::read(&outcome.folder) {
        Ok(Some(index)) => {
            let brief = Brief::of(&index, false);
            let best = brief.best.map(|best| format!("; best: {best}"));
            format!("{}{}", brief.state, best.unwrap_or_default())
        }
        // The report says why.
        _ => "its results cannot be read".into(),
    }
}

fn deliver(orders: Receiver<Order>, sink: &Sink<'_>) {
    for (notify, at, notification) in orders {
        let body = serde_json::to_string(&notification).unwrap_or_default();
        let sent = match (&notify.command, &notify.url_variable) {
            (Some(command), _) => run_program(command, &body),
            (None, Some(name)) => post(&address(name), &body),
            (None, None) => Ok(()),
        };
        if let Err(reason) = sent {
            let event = serde_json::to_string(&notification.event).unwrap_or_default();
            let message = format!("`notify[{at}]` was not told of {event}: {reason}");
            sink(Progress::Warning(&Diagnostic::warning("notify", message)));
        }
    }
}

fn run_program(command: &[String], body: &str) -> Result<(), String> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(());
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("`{program}` cannot be started: {e}"))?;
    if let Some(mut input) = child.stdin.take() {
        // A program may ignore what it is sent; it is smaller than the buffer of a pipe.
        let _ = input.write_all(body.as_bytes());
    }
    // Read beside it: a program that writes much would wait for a reader.
    let errors = child.stderr.take().map(|errors| {
        thread::spawn(move || {
            let mut text = Vec::new();
            let mut errors = errors.take(MAX_ERRORS);
            let _ = errors.read_to_end(&mut text);
            let _ = std::io::copy(&mut errors.into_inner(), &mut std::io::sink());
            String::from_utf8_lossy(&text).trim().to_owned()
        })
    });
    let deadline = Instant::now() + TIME_LIMIT;
    let status = loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) => break status,
            None if Instant::now() >= deadline => {
                let _ = child.kill();
                let _ = child.wait();
                let secs = TIME_LIMIT.as_secs();
                return Err(format!("`{program}` was ended after {secs} seconds"));
            }
            None => thread::park_timeout(Duration::from_millis(10)),
        }
    };
    if status.success() {
        return Ok(());
    }
    let said = errors.and_then(|errors| errors.join().ok());
    let said = said.filter(|said| !said.is_empty());
    let said = said.map(|said| format!(": {said}")).unwrap_or_default();
    Err(format!("`{program}` failed ({status}){said}"))
}

/// The address is in no message: it may be a secret.
fn post(url: &str, body: &str) -> Result<(), String> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(TIME_LIMIT))
        .http_status_as_error(false)
        .max_redirects(0)
        .user_agent(concat!("burn-runner/", env!("CARGO_PKG_VERSION")))
        .build()
        .into();
    let request = agent.post(url).header("content-type", "application/json");
    let answer = request.send(body).map_err(|error| match error {
        ureq::Error::Timeout(_) => "the webhook did not answer in time".to_owned(),
        ureq::Error::HostNotFound => "the server of the webhook is not found".to_owned(),
        ureq::Error::Io(error) => format!("the webhook cannot be reached: {}", error.kind()),
        _ => "the webhook cannot be reached".to_owned(),
    })?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    Err(format!("the webhook answered {status}"))
}
