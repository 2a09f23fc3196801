//! `runner diff`: what differs between two runs, or between the runs of two experiments.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::bundle;
use super::experiment::refuse;
use super::output::Output;
use super::{FAILED, OK};
use crate::train::weight_distances;
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::record::{ExperimentFolder, RunFolder, capsule, commits_between};
use runner_core::reproduce::WeightDistance;
use runner_core::spec::document::plain_io_error;
use runner_report::diff::{Diff, Side, brief, show};

#[derive(Args)]
pub struct DiffArgs {
    /// The folder of a run, of an experiment, or a capsule of `runner bundle`
    a: PathBuf,
    /// What to hold against it: another one of the same kind
    b: PathBuf,
    /// Print everything as JSON: one object for two runs, one a line for those of experiments
    #[arg(long)]
    json: bool,
    /// Unpack capsules up to this size, as in 4GiB; by default up to 200 times what they are packed
    #[arg(long, value_name = "SIZE", value_parser = bundle::size)]
    max_unpacked: Option<u64>,
}

/// What a path stands for.
enum Found {
    /// A run, and the folder that it was unpacked to, if it was.
    Run(Box<Side>, Option<tempfile::TempDir>),
    Experiment(ExperimentFolder),
}

/// Compares, and returns 0 where all was compared and is equal, 1 where it is not.
pub fn diff(args: &DiffArgs, output: &mut Output) -> u8 {
    let found = find(&args.a, args, output).and_then(|a| Ok((a, find(&args.b, args, output)?)));
    match found {
        Err(code) => code,
        Ok((Found::Run(a, _at), Found::Run(b, _bt))) => {
            let mut diff = Diff::of(&a, &b, || distances(&a, &b));
            if let Some(range) = commits(&a, &b) {
                diff.code_note = Some(range);
            }
            if args.json {
                output.print(&serde_json::to_string_pretty(&diff).unwrap_or_default())
            } else {
                output.print(&show(&diff))
            }
            if diff.is_equal { OK } else { FAILED }
        }
        Ok((Found::Experiment(a), Found::Experiment(b))) => experiments(&a, &b, args.json, output),
        Ok(_) => {
            let message = format!(
                "of `{}` and `{}` one is a run and the other an experiment",
                args.a.display(),
                args.b.display()
            );
            let help =
                "give two runs or two experiments; an experiment's runs are in its folder `runs`";
            refuse(Diagnostic::error("usage", message).help(help), output)
        }
    }
}

fn find(path: &Path, args: &DiffArgs, output: &mut Output) -> Result<Found, u8> {
    let name = path.display().to_string();
    let run = RunFolder(path.to_owned());
    if path.is_file() {
        let unpacked = tempfile::tempdir().map(|place| {
            let capsule = capsule::unpack(path, &place.path().join("run"), args.max_unpacked);
            (place, capsule)
        });
        return match unpacked {
            Ok((place, Ok(capsule))) => {
                let side = Side::read(name, capsule.folder);
                Ok(Found::Run(Box::new(side), Some(place)))
            }
            Ok((_, Err(error))) => Err(refuse(*bundle::shown(&error), output)),
            Err(e) => {
                let message = format!("`{name}` cannot be unpacked: {}", plain_io_error(&e));
                Err(refuse(Diagnostic::error("results", message), output))
            }
        };
    }
    if run.run_toml().exists() {
        return Ok(Found::Run(Box::new(Side::read(name, run)), None));
    }
    let experiment = ExperimentFolder(path.to_owned());
    if experiment.plan_json().exists() {
        return Ok(Found::Experiment(experiment));
    }
    let message =
        format!("`{name}` is neither the folder of a run nor of an experiment nor a capsule");
    let help = "give a folder such as `results/mnist_sweep/runs/base-s1`; `runner list` shows them";
    Err(refuse(
        Diagnostic::error("results", message).help(help),
        output,
    ))
}

/// The distances of final weights by parameter. The error is a phrase.
fn distances(a: &Side, b: &Side) -> Result<Vec<WeightDistance>, String> {
    let plans = (
        a.plan.as_ref().map_err(String::clone)?,
        b.plan.as_ref().map_err(String::clone)?,
    );
    a.check_weights()?;
    b.check_weights()?;
    let [file_a, file_b] = [a, b].map(|side| side.folder.model("final"));
    weight_distances((&file_a, plans.0), (&file_b, plans.1))
}

/// The commits from one to the other, where the repository here has both.
fn commits(a: &Side, b: &Side) -> Option<String> {
    let commit = |side: &Side| side.environment.as_ref().ok()?.git_commit.clone();
    let (a, b) = (commit(a)?, commit(b)?);
    if a == b {
        return None;
    }
    let count = |from: &str, to: &str| commits_between(Path::new("."), from, to);
    let (ahead, behind) = (count(&a, &b)?, count(&b, &a)?);
    let short = |commit: &str| commit.chars().take(10).collect::<String>();
    let range = format!("{}..{}", short(&a), short(&b));
    Some(match behind {
        0 => format!("git log {range}: {}", counted(ahead, "commit")),
        _ => format!(
            "git log {range}: {}, and {} that only a has",
            counted(ahead, "commit"),
            counted(behind, "commit")
        ),
    })
}

/// The runs of two experiments in pairs of one id. Weights are compared by their digests alone.
fn experiments(a: &ExperimentFolder, b: &ExperimentFolder, json: bool, output: &mut Output) -> u8 {
    let (of_a, of_b) = (a.run_ids(), b.run_ids());
    let mut ids: Vec<_> = of_a.iter().chain(&of_b).collect();
    ids.sort();
    ids.dedup();
    let mut num_equal = 0;
    for id in &ids {
        let side = |folder: &ExperimentFolder| {
            let run = folder.run(id);
            Side::read(run.0.display().to_string(), run)
        };
        let (is_in_a, is_in_b) = (of_a.contains(id), of_b.contains(id));
        let only = match (is_in_a, is_in_b) {
            (true, true) => None,
            (true, false) => Some(("a", &a.0)),
            _ => Some(("b", &b.0)),
        };
        if let Some((which, folder)) = only {
            if json {
                output.print(&json!({ "run": id, "only_in": which }).to_string())
            } else {
                output.print(&format!("{id}: only in {}", folder.display()))
            }
            continue;
        }
        let (a, b) = (side(a), side(b));
        let diff = Diff::of(&a, &b, || Ok(Vec::new()));
        num_equal += usize::from(diff.is_equal);
        if json {
            output.print(&json!({ "run": id, "diff": diff }).to_string())
        } else {
            output.print(&format!("{id}: {}", brief(&diff)))
        }
    }
    output.say(&format!(
        "{num_equal} of {} equal",
        counted(ids.len(), "run")
    ));
    if num_equal == ids.len() { OK } else { FAILED }
}
