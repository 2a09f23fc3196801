//! `runner export mlflow`.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

use clap::Args;

use super::pass::Pass;
use crate::cli::experiment::refuse;
use crate::cli::list::none_there;
use crate::cli::output::Output;
use crate::cli::{FAILED, WRONG};
use runner_core::diagnostic::{Diagnostic, Sources, counted};
use runner_core::plan::Plan;
use runner_core::record::ExperimentFolder;
use runner_report::export::mlflow::{
    Credentials, Experiment, Sent, Server, ServerError, Unfinished,
};

#[derive(Args)]
pub struct MlflowArgs {
    /// The folder of an experiment, or a results folder for all in it
    folder: PathBuf,
    /// The server's address, such as `http://127.0.0.1:5000`; by default that of MLFLOW_TRACKING_URI
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Send the loss of each step too
    #[arg(long)]
    steps: bool,
    /// Continue until nothing writes to the folder any more
    #[arg(long)]
    follow: bool,
}

/// Sends what the server lacks.
pub fn send(args: &MlflowArgs, output: &mut Output) -> u8 {
    #[expect(clippy::disallowed_methods, reason = "MLflow's own variables")]
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let Some(url) = args.to.clone().or_else(|| variable("MLFLOW_TRACKING_URI")) else {
        let message = "no server is set";
        let help = "add `--to http://HOST:PORT`, or set MLFLOW_TRACKING_URI";
        return refuse(Diagnostic::error("usage", message).help(help), output);
    };
    let credentials = match (
        variable("MLFLOW_TRACKING_TOKEN"),
        variable("MLFLOW_TRACKING_USERNAME"),
    ) {
        (_, Some(user)) => {
            let password = variable("MLFLOW_TRACKING_PASSWORD").unwrap_or_default();
            Credentials::Password(user, password)
        }
        (Some(token), None) => Credentials::Token(token),
        (None, None) => Credentials::None,
    };
    let server = match Server::new(&url, &credentials) {
        Ok(server) => server,
        Err(error) => return refused(&error, output),
    };
    let mut pass = Pass::new(args.folder.clone(), args.follow, args.steps);
    let mut sent = Sent::default();
    let mut open: BTreeMap<PathBuf, Experiment> = BTreeMap::new();
    let mut said = None;
    loop {
        let experiments = pass.experiments();
        if experiments.is_empty() {
            return none_there(&args.folder, output);
        }
        let mut failed = None;
        for experiment in &experiments {
            let Some(plan) = pass.plan(experiment, output) else {
                continue;
            };
            let done = match open.remove(&experiment.0) {
                Some(there) => Ok(there),
                None => Experiment::open(&server, &plan.experiment, &plan.question),
            };
            let done = done.and_then(|mut there| {
                send_runs(&mut there, experiment, plan, &mut pass, &mut sent, output)?;
                Ok(there)
            });
            match done {
                Ok(there) => {
                    open.insert(experiment.0.clone(), there);
                }
                Err(error) => {
                    // The state of the server is no longer known.
                    pass.forget();
                    failed = Some(error);
                    break;
                }
            }
        }
        match failed {
            Some(error) if pass.is_last() => return refused(&error, output),
            Some(error) if said.as_ref() != Some(&error) => {
                output.say(&format!("not sent, retrying: {error}"));
                said = Some(error);
            }
            None if pass.is_last() => break,
            _ => {}
        }
        pass.wait();
    }
    output.say(&format!(
        "{} created and {} updated at {url}, {} sent",
        counted(sent.created, "run"),
        sent.updated,
        counted(sent.metrics, "number")
    ));
    pass.code
}

fn send_runs(
    there: &mut Experiment,
    experiment: &ExperimentFolder,
    plan: Plan,
    pass: &mut Pass,
    sent: &mut Sent,
    output: &mut Output,
) -> Result<(), ServerError> {
    let unfinished = if experiment.is_in_use() {
        Unfinished::Running
    } else {
        Unfinished::Abandoned
    };
    pass.each(experiment, plan, output, |run| match run.record.started {
        Some(_) => there.export(run, unfinished, sent),
        None => Ok(()),
    })
}

fn refused(error: &ServerError, output: &mut Output) -> u8 {
    let diagnostic = Diagnostic::error("server", error.to_string()).help(error.help());
    output.show(&diagnostic.render(&Sources::default(), Output::color()));
    match error {
        ServerError::Address { .. } => WRONG,
        _ => FAILED,
    }
}
