//! `runner diff`: what differs between two runs, or between the runs of two experiments.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::bundle;
use super::output::Output;
use super::{FAILED, OK};
use crate::ops::{self, DiffOptions, Differences, In, Pair};
use runner_core::diagnostic::counted;
use runner_report::diff::{brief, show};

#[derive(Args)]
pub struct DiffArgs {
    /// The folder of a run, of an experiment, or a capsule of `runner bundle`
    a: PathBuf,
    /// The other side of the comparison, of the same kind
    b: PathBuf,
    /// Print everything as JSON: one object for two runs, one per line for those of experiments
    #[arg(long)]
    json: bool,
    /// Unpack capsules up to this size, as in 4GiB; by default up to 200 times their packed size
    #[arg(long, value_name = "SIZE", value_parser = bundle::size)]
    max_unpacked: Option<u64>,
}

/// Compares, and returns 0 if everything was compared and is equal, otherwise 1.
pub fn diff(args: &DiffArgs, output: &mut Output) -> u8 {
    let options = DiffOptions {
        a: args.a.clone(),
        b: args.b.clone(),
        max_unpacked: args.max_unpacked,
    };
    let differences = match ops::diff(&options, &ops::quiet) {
        Ok(differences) => differences,
        Err(error) => return output.fail(&error),
    };
    match &differences {
        Differences::Runs(diff) if args.json => {
            output.print(&serde_json::to_string_pretty(diff).unwrap_or_default());
        }
        Differences::Runs(diff) => output.print_fitted(&show(diff, Output::table_width())),
        Differences::Experiments(pairs) => {
            for pair in pairs {
                if args.json {
                    output.print(&line_of_json(pair));
                } else {
                    output.print_fitted(&line(pair));
                }
            }
            let num_equal = pairs.iter().filter(|pair| pair.is_equal()).count();
            output.say(&format!(
                "{num_equal} of {} equal",
                counted(pairs.len(), "run")
            ));
        }
    }
    if differences.is_equal() { OK } else { FAILED }
}

fn line_of_json(pair: &Pair) -> String {
    match &pair.found {
        In::Both(diff) => json!({ "run": pair.run, "diff": diff }),
        In::A(_) => json!({ "run": pair.run, "only_in": "a" }),
        In::B(_) => json!({ "run": pair.run, "only_in": "b" }),
    }
    .to_string()
}

fn line(pair: &Pair) -> String {
    match &pair.found {
        In::Both(diff) => format!("{}: {}", pair.run, brief(diff)),
        In::A(folder) | In::B(folder) => format!("{}: only in {}", pair.run, folder.display()),
    }
}
