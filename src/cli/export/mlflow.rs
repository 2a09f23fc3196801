//! `runner export mlflow`.

use std::env;
use std::path::PathBuf;

use clap::Args;

use crate::cli::output::Output;
use crate::cli::tell::Teller;
use crate::cli::{FAILED, OK};
use crate::ops::{self, Mlflow};
use runner_core::diagnostic::{Diagnostic, counted};
use runner_report::console::Mode;
use runner_report::export::mlflow::Credentials;

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
    /// Send the files of runs that have ended too: `run.toml`, `summary.json`, `model/best.bpk`, …
    #[arg(long)]
    artifacts: bool,
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
        return output.refuse(Diagnostic::error("usage", message).help(help));
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
    let options = Mlflow {
        folder: args.folder.clone(),
        url,
        credentials,
        steps: args.steps,
        artifacts: args.artifacts,
        follow: args.follow,
    };
    let teller = Teller::new(Mode::Normal);
    match ops::send_to_mlflow(&options, &|progress| teller.tell(progress)) {
        Ok(done) => {
            output.say(&format!(
                "{} created and {} updated at {}, {} sent",
                counted(done.sent.created, "run"),
                done.sent.updated,
                options.url,
                counted(done.sent.metrics, "number")
            ));
            if done.is_whole { OK } else { FAILED }
        }
        Err(error) => output.fail(&error),
    }
}
