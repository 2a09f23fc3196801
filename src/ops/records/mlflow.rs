//! The export of runs to an MLflow server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::pass::Pass;
use crate::error::Error;
use crate::ops::tree::none_there;
use crate::ops::{Progress, Sink};
use runner_core::diagnostic::Diagnostic;
use runner_core::plan::Plan;
use runner_core::record::ExperimentFolder;
use runner_report::export::mlflow::{
    Credentials, Experiment, Sent, Server, ServerError, Unfinished,
};

/// Which runs are sent, and to which server.
pub struct Mlflow {
    /// The folder of an experiment, or a results folder for all in it.
    pub folder: PathBuf,
    /// The server's address, such as `http://127.0.0.1:5000`.
    pub url: String,
    /// The user.
    pub credentials: Credentials,
    /// Whether to send the loss of each step too.
    pub steps: bool,
    /// Whether to send the files of runs that have ended too.
    pub artifacts: bool,
    /// Whether to continue until nothing writes to the folder any more.
    pub follow: bool,
}

/// What was sent to the server.
#[derive(Debug)]
pub struct SentRuns {
    /// The amounts.
    pub sent: Sent,
    /// Whether nothing was skipped because it is damaged.
    pub is_whole: bool,
}

/// Sends an MLflow server the runs and metrics that it does not have yet. With `follow`, a server that does not answer is
/// asked again as long as runs continue.
///
/// # Errors
///
/// [`Error::Refused`] if there is no experiment, or the address is invalid; [`Error::Failed`] if the server cannot be
/// reached or rejects the runs.
///
/// ```
/// use burn_runner::export::mlflow::Credentials;
/// use burn_runner::ops::{self, Mlflow};
///
/// let options = Mlflow {
///     folder: "results".into(),
///     url: "not an address".into(),
///     credentials: Credentials::None,
///     steps: false,
///     artifacts: false,
///     follow: false,
/// };
/// let error = ops::send_to_mlflow(&options, &ops::quiet).unwrap_err();
/// assert_eq!(error.exit_code(), 2);
/// ```
pub fn send_to_mlflow(options: &Mlflow, sink: &Sink<'_>) -> Result<SentRuns, Error> {
    let server = Server::new(&options.url, &options.credentials).map_err(|e| refused(&e))?;
    let send = (&server, options.artifacts);
    let mut pass = Pass::new(options.folder.clone(), options.follow, options.steps);
    let mut sent = Sent::default();
    let mut open: BTreeMap<PathBuf, Experiment> = BTreeMap::new();
    let mut told = None;
    loop {
        let experiments = pass.experiments();
        if experiments.is_empty() {
            return Err(none_there(&options.folder));
        }
        match send_all(&experiments, send, &mut open, &mut pass, &mut sent, sink) {
            Err(error) if pass.is_last() => return Err(refused(&error)),
            Err(error) => {
                // The state of the server is no longer known.
                pass.forget();
                if told.as_ref() != Some(&error) {
                    sink(Progress::Step(&format!("not sent, retrying: {error}")));
                    told = Some(error);
                }
            }
            Ok(()) if pass.is_last() => break,
            Ok(()) => {}
        }
        pass.wait();
    }
    Ok(SentRuns {
        sent,
        is_whole: pass.is_whole,
    })
}

fn send_all<'s>(
    experiments: &[ExperimentFolder],
    (server, artifacts): (&'s Server, bool),
    open: &mut BTreeMap<PathBuf, Experiment<'s>>,
    pass: &mut Pass,
    sent: &mut Sent,
    sink: &Sink<'_>,
) -> Result<(), ServerError> {
    for experiment in experiments {
        let Some(plan) = pass.plan(experiment, sink) else {
            continue;
        };
        let mut there = match open.remove(&experiment.0) {
            Some(there) => there,
            None => Experiment::open(server, &plan.experiment, &plan.question)?,
        };
        there.send_artifacts(artifacts);
        send_runs(&mut there, experiment, plan, pass, sent, sink)?;
        open.insert(experiment.0.clone(), there);
    }
    Ok(())
}

fn send_runs(
    there: &mut Experiment,
    experiment: &ExperimentFolder,
    plan: Plan,
    pass: &mut Pass,
    sent: &mut Sent,
    sink: &Sink<'_>,
) -> Result<(), ServerError> {
    let unfinished = if experiment.is_in_use() {
        Unfinished::Running
    } else {
        Unfinished::Abandoned
    };
    pass.each(experiment, plan, sink, |run| match run.record.started {
        Some(_) => there.export(run, unfinished, sent),
        None => Ok(()),
    })
}

fn refused(error: &ServerError) -> Error {
    let diagnostic = Diagnostic::error("server", error.to_string()).help(error.help());
    match error {
        ServerError::Address { .. } => Error::refused(diagnostic),
        _ => Error::failed(diagnostic),
    }
}
