//! The command line: one function per verb, which connects the layers and contains no logic.

mod account;
mod args;
mod bundle;
mod channel;
mod check;
mod compare;
mod data;
mod delta;
mod describe;
mod devices;
mod diff;
mod evaluate;
mod exec;
mod explain;
mod export;
mod follow;
mod generate;
mod history;
mod import;
mod init;
mod launch;
mod leash;
mod list;
mod lr_find;
pub mod manual;
mod memory;
mod new_project;
mod output;
mod parity;
mod plan;
mod predict;
mod prove;
mod render;
mod report;
mod reproduce;
mod run;
mod schema;
mod serve;
mod signals;
mod tell;
mod usage;
mod watch;
mod weights;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgAction, Args, Parser, Subcommand};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::error::{FAILED, INTERRUPTED, OK, WRONG};
use args::*;
use output::{Log, Output, Stdout};
use runner_core::diagnostic::{Diagnostic, Reason};
use runner_core::spec::backend::Backend;

/// The meaning of each exit code, for the manual.
pub const EXIT_CODES: [(u8, &str); 4] = [
    (
        OK,
        "Everything succeeded. Runs that were skipped because their device is not available do not affect it, unless all were skipped.",
    ),
    (
        FAILED,
        "A run failed or all runs were skipped, a guarantee did not hold, or a file could not be written.",
    ),
    (
        WRONG,
        "The experiment file or the command line is invalid. Nothing was written.",
    ),
    (INTERRUPTED, "Stopped by the user; the runs can be resumed."),
];

/// Train experiment files on any backend of Burn, and report the results.
#[derive(Parser)]
#[command(
    name = "runner",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    logging: Logging,
}

/// The log level.
#[derive(Args, Clone, Debug)]
pub struct Logging {
    /// Log more: -v for the main steps, -vv for everything
    #[arg(short, long, action = ArgAction::Count, global = true)]
    verbose: u8,
    /// Log according to FILTER, such as `runner=debug,burn_train=warn`
    #[arg(long, value_name = "FILTER", global = true)]
    log: Option<String>,
}

#[derive(Subcommand)]
enum Verb {
    /// Create a first experiment file for your data, with a comment on every line
    Init(InitArgs),
    /// Check an experiment file: report every mistake at once, write nothing
    Check(CheckArgs),
    /// Show the runs of an experiment file
    Plan {
        #[command(flatten)]
        spec: SpecArgs,
        /// Print the plan as JSON
        #[arg(long)]
        json: bool,
        /// Show what happened to every point of the sweep, and which rule dropped it
        #[arg(long)]
        explain: bool,
        /// The parent folder of the experiments' folders, from which the remaining work is determined
        #[arg(long, value_name = "DIR", default_value = "results")]
        results: PathBuf,
    },
    /// Show the data: columns, splits, missing values, a few items
    Data(DataArgs),
    /// Show the network: layers, shapes, parameters, multiply-adds, memory
    Describe(DescribeArgs),
    /// Train with a rising learning rate, and suggest one: a range test (Smith, 2017)
    LrFind(LrFindArgs),
    /// Forecast the memory of a run for other batches and precisions, and show whether it fits
    Memory(MemoryArgs),
    /// Print an experiment file with its layers, references and edits resolved, and the origin of each value
    Render(RenderArgs),
    /// Train the runs of an experiment file that are not completed, and report
    Run(RunArgs),
    /// Cancel the jobs of an experiment on a cluster; their runs can be resumed
    Cancel(CancelArgs),
    /// Train a run again from its folder, compare it step by step, and grade the reproduction
    Reproduce(ReproduceArgs),
    /// Verify the guarantees for an experiment file on this machine, with a shortened run
    Prove(ProveArgs),
    /// Train on two devices in lockstep, or compare every type of layer on both, and show where they differ
    Parity(ParityArgs),
    /// Rebuild and show the report of a results folder
    Report {
        /// The folder of an experiment, such as `results/mnist_sweep`, or a results folder for all of its experiments
        #[arg(required_unless_present = "print_template")]
        folder: Option<PathBuf>,
        /// Print the report as JSON; those of several experiments as one object per line
        #[arg(long)]
        json: bool,
        /// Write report.html with this template instead of the built-in one
        #[arg(long, value_name = "FILE")]
        template: Option<PathBuf>,
        /// Print the built-in template, for copying and editing
        #[arg(long, conflicts_with_all = ["folder", "json", "template"])]
        print_template: bool,
    },
    /// Compare trials with a baseline: differences, intervals, verdicts, costs
    Compare(CompareArgs),
    /// List the runs of a results folder: filtered, sorted, grouped
    List(ListArgs),
    /// Tag a run, or show or remove its tags
    Tag(history::TagArgs),
    /// Add a note to a run, or show or remove it
    Note(history::NoteArgs),
    /// Remove runs of earlier settings, after showing which
    Clean(history::CleanArgs),
    /// Show active runs as `runner run` does, from another terminal, until all have ended
    Watch(WatchArgs),
    /// Serve the reports of a results folder to a browser, updated while runs continue
    Serve(ServeArgs),
    /// Show the differences between two runs, or between the runs of two experiments
    Diff(diff::DiffArgs),
    /// Export records to other programs: TensorBoard, MLflow, pandas, DuckDB
    #[command(subcommand)]
    Export(export::Form),
    /// Convert a network from another program to an experiment file with its weights
    #[command(subcommand)]
    Import(import::Source),
    /// Compare weights by parameter, and apply or average the differences
    #[command(subcommand)]
    Delta(delta::Delta),
    /// Predict new data with the network of a run
    Predict(predict::PredictArgs),
    /// Evaluate the network of a run on data with targets, or compare two networks on the same data
    Evaluate(evaluate::EvaluateArgs),
    /// Continue a text with the network of a run, or write items that a generator makes
    Generate(generate::GenerateArgs),
    /// Pack a run into one file from which it can be reproduced elsewhere
    Bundle(BundleArgs),
    /// Write a first program with runner as a library: layers, losses and other parts of its own
    NewProject(new_project::NewProjectArgs),
    /// Explain a table, a key, a layer, a metric or a class of failure of the experiment file
    Explain {
        /// A path such as `optimizer.adam` or `train.batch_size`, or the end of one, such as `conv2d`; without it, all
        /// tables
        topic: Option<String>,
    },
    /// List the devices of this build on this machine
    Devices {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
        /// List only the devices of one backend, in this process
        #[arg(long, hide = true, value_parser = devices::backend)]
        backend: Option<Backend>,
    },
    /// Write the JSON Schema of experiment files
    Schema {
        /// The file to write; `-` for standard output
        #[arg(default_value = "schemas/experiment.schema.json")]
        path: PathBuf,
    },
    /// Print a shell completion script, such as `runner completions bash`
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one per command
    #[command(hide = true)]
    Man {
        /// The folder to write to
        folder: PathBuf,
    },
    /// Write the generated chapters of the manual
    #[command(hide = true)]
    Manual {
        /// The folder to write to
        #[arg(default_value = "docs/reference")]
        folder: PathBuf,
    },
    /// Train one run in this process (what `run` starts for each run)
    #[command(hide = true)]
    Exec(ExecArgs),
    /// Train the runs of a job (what jobs of a cluster start)
    #[command(hide = true)]
    Work(WorkArgs),
    /// Compare two devices in this process (what `parity` starts)
    #[command(hide = true)]
    ParityExec(ParityExecArgs),
}

/// Reads the arguments and runs the verb.
pub fn main() -> ExitCode {
    ExitCode::from(code())
}

/// The same for a caller that is not a Rust program: the exit code as a number.
pub fn code() -> u8 {
    let cli = match Cli::try_parse_from(arguments()) {
        Ok(cli) => cli,
        Err(e) => return show_usage(&e),
    };
    let mut output = Output;
    if !matches!(cli.verb, Verb::Exec(_)) {
        let level = match cli.logging.verbose {
            0 => "warn",
            1 => "info",
            _ => "debug",
        };
        if let Err(reason) = log_to(&cli.logging, level, || Log) {
            output.say(&format!("error: {reason}"));
            return WRONG;
        }
    }
    output::close(run_verb(cli, &mut output))
}

/// The arguments of this process. A negative number after a flag is the flag's value, which says what is wrong with it;
/// clap would take `-1e-3` for a flag.
fn arguments() -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    for argument in std::env::args_os() {
        let number = argument.to_str().filter(|text| is_negative_number(text));
        let flag = joined.last_mut().filter(|flag| is_flag(flag));
        match (number, flag) {
            (Some(number), Some(flag)) => flag.push(format!("={number}")),
            _ => joined.push(argument),
        }
    }
    joined
}

fn is_negative_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or_default();
    digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') && digits.parse::<f64>().is_ok()
}

/// Whether an argument is a long flag whose value may follow.
fn is_flag(argument: &OsString) -> bool {
    let text = argument.to_str().unwrap_or_default();
    text.len() > 2 && text.starts_with("--") && !text.contains('=')
}

/// Refuses to start; returns the exit code of the process.
pub fn refuse(diagnostic: Diagnostic) -> ExitCode {
    ExitCode::from(output::close(Output.refuse(diagnostic)))
}

/// Shows why the arguments do not name a verb to run: they are invalid, or ask for help. Returns the exit code.
fn show_usage(e: &clap::Error) -> u8 {
    // Help and version are not errors; clap prints each to the right stream.
    if e.use_stderr() {
        let arguments = std::env::args_os().skip(1);
        let arguments: Vec<_> = arguments
            .map(|a| a.to_string_lossy().into_owned())
            .collect();
        if let Some(refusal) = usage::refusal(e, &arguments) {
            return Output.refuse(refusal);
        }
        let _ = e.print();
        return WRONG;
    }
    if Output::is_terminal() {
        // In color, if wanted.
        let _ = e.print();
    } else {
        Stdout::line(&e.render().to_string());
    }
    output::close(OK)
}

/// Runs a verb; returns the exit code.
fn run_verb(cli: Cli, output: &mut Output) -> u8 {
    match cli.verb {
        Verb::Init(args) => init::init(&args, output),
        Verb::Check(args) => check::check(&args, output),
        Verb::Plan {
            spec,
            json,
            explain: true,
            ..
        } => account::explain(&spec, json, output),
        Verb::Plan {
            spec,
            json,
            results,
            ..
        } => plan::plan(&spec, json, &results, output),
        Verb::Data(args) => data::data(&args, output),
        Verb::Describe(args) => describe::describe(&args, output),
        Verb::LrFind(args) => lr_find::lr_find(&args, output),
        Verb::Memory(args) => memory::memory(&args, output),
        Verb::Render(args) => render::render(&args, output),
        Verb::Run(args) => run::run(&args, &cli.logging, output),
        Verb::Cancel(args) => launch::cancel(&args, output),
        Verb::Reproduce(args) => reproduce::reproduce(&args, &cli.logging, output),
        Verb::Prove(args) => prove::prove(&args, &cli.logging, output),
        Verb::Parity(args) => parity::parity(&args, &cli.logging, output),
        Verb::Report {
            folder: Some(folder),
            json,
            template,
            ..
        } => report::report(&folder, json, template.as_deref(), output),
        Verb::Report { folder: None, .. } => report::print_template(output),
        Verb::Compare(args) => compare::compare(&args, output),
        Verb::List(args) => list::list(&args, output),
        Verb::Tag(args) => history::tag(&args, output),
        Verb::Note(args) => history::note(&args, output),
        Verb::Clean(args) => history::clean(&args, output),
        Verb::Watch(args) => watch::watch(&args, output),
        Verb::Serve(args) => serve::serve(&args, output),
        Verb::Diff(args) => diff::diff(&args, output),
        Verb::Export(form) => export::export(form, output),
        Verb::Import(source) => import::import(&source, output),
        Verb::Delta(verb) => delta::delta(&verb, output),
        Verb::Predict(args) => predict::predict(&args, output),
        Verb::Evaluate(args) => evaluate::evaluate(&args, output),
        Verb::Generate(args) => generate::generate(&args, output),
        Verb::Bundle(args) => bundle::bundle(&args, output),
        Verb::NewProject(args) => new_project::project(&args, output),
        Verb::Explain { topic } => explain::explain(topic.as_deref(), output),
        Verb::Completions { shell } => manual::completions(shell, output),
        Verb::Man { folder } => manual::man(&folder, output),
        Verb::Manual { folder } => manual::manual(&folder, output),
        Verb::Devices { json, backend } => devices::devices(json, backend, output),
        Verb::Schema { path } => schema::schema(&path, output),
        Verb::Exec(args) => exec::exec(&args, &cli.logging),
        Verb::Work(args) => launch::work(&args, &cli.logging, output),
        Verb::ParityExec(args) => parity::parity_exec(&args),
    }
}

/// Sends logs that pass the filter to `writer`.
fn log_to<W>(logging: &Logging, default: &str, writer: W) -> Result<(), Reason>
where
    W: for<'w> tracing_subscriber::fmt::MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = logging.log.as_deref().unwrap_or(default);
    let targets: Targets = filter.parse().map_err(|e| {
        format!(
            "invalid filter `--log {filter}`: {e}; use `info`, or `runner=debug,burn_train=warn`"
        )
    })?;
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(writer);
    tracing_subscriber::registry()
        .with(layer)
        .with(targets)
        .try_init()
        .map_err(|e| Reason(e.to_string()))
}
