//! The command line: one function for each verb, which wires the layers and holds no logic of its own.

mod bundle;
mod calibrate;
mod compare;
mod data;
mod describe;
mod devices;
mod diff;
mod exec;
mod experiment;
mod explain;
mod export;
mod follow;
mod init;
mod list;
mod lock;
mod memory;
mod output;
mod parity;
mod prepare;
mod prove;
mod render;
mod reproduce;
mod retry;
mod run;
mod scratch;
mod serve;
mod template;
mod verbs;
mod watch;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::TypedValueParser;
use clap::{ArgAction, Args, Parser, Subcommand};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::event::Adjustment;
use crate::reproduce::AtLeast;
use crate::spec::backend::{Backend, DeviceName, Precision};
use crate::spec::task::TaskKind;
use crate::train::Fault;
use crate::train::parity::WrongLayer;
use output::Output;
use retry::Retry;

/// Everything was done.
const OK: u8 = 0;
/// Some run failed.
const FAILED: u8 = 1;
/// The spec or the command line is wrong.
const WRONG: u8 = 2;
/// Stopped by the user.
const INTERRUPTED: u8 = 130;

/// Trains what an experiment file says, on any backend of Burn, and reports.
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

/// What is logged.
#[derive(Args, Clone, Debug)]
pub struct Logging {
    /// Log more: -v for steps taken, -vv for everything
    #[arg(short, long, action = ArgAction::Count, global = true)]
    verbose: u8,
    /// Log what FILTER says, such as `runner=debug,burn_train=warn`
    #[arg(long, value_name = "FILTER", global = true)]
    log: Option<String>,
}

#[derive(Subcommand)]
enum Verb {
    /// Write a first experiment file for data of yours, every line explained
    Init(InitArgs),
    /// Check an experiment file: every mistake at once, nothing written
    Check(SpecArgs),
    /// Show the runs of an experiment file
    Plan {
        #[command(flatten)]
        spec: SpecArgs,
        /// Print the plan as JSON
        #[arg(long)]
        json: bool,
        /// Say what became of every point of the sweep, and which rule dropped it
        #[arg(long)]
        explain: bool,
        /// The folder that experiments' folders are in: what is there says what is left to do
        #[arg(long, value_name = "DIR", default_value = "results")]
        results: PathBuf,
    },
    /// Show the data: columns, splits, missing values, a few items
    Data(DataArgs),
    /// Show the network: layers, shapes, parameters, multiply-adds, memory
    Describe(DescribeArgs),
    /// Show what a run would hold of memory with other batches and precisions, and whether that fits
    Memory(MemoryArgs),
    /// Print an experiment file with its layers, references and edits put together, and where each value is from
    Render(RenderArgs),
    /// Train the runs of an experiment file that are not completed yet, and report
    Run(RunArgs),
    /// Make a run again from its folder, compare it step by step, and grade the reproduction
    Reproduce(ReproduceArgs),
    /// Try which guarantees hold for an experiment file on this machine, on a shortened run
    Prove(ProveArgs),
    /// Train on two devices in lock-step, or try every type of layer on both, and say where they part
    Parity(ParityArgs),
    /// Rebuild the report of a results folder and show it
    Report {
        /// The folder of an experiment, such as `results/mnist_sweep`
        #[arg(required_unless_present = "print_template")]
        folder: Option<PathBuf>,
        /// Print the report as JSON
        #[arg(long)]
        json: bool,
        /// Write report.html by this template in place of the built-in one
        #[arg(long, value_name = "FILE")]
        template: Option<PathBuf>,
        /// Print the built-in template, to be copied and changed
        #[arg(long, conflicts_with_all = ["folder", "json", "template"])]
        print_template: bool,
    },
    /// Compare trials with a baseline: differences, intervals, verdicts, costs
    Compare(CompareArgs),
    /// List the runs of a results folder: filtered, sorted, grouped
    List(ListArgs),
    /// Show runs as `runner run` does, from another terminal, until nothing runs any more
    Watch(WatchArgs),
    /// Show the reports of a results folder in a browser, up to date while runs go on
    Serve(ServeArgs),
    /// Say what differs between two runs, or between the runs of two experiments
    Diff(diff::DiffArgs),
    /// Write records for other programs: TensorBoard, MLflow, pandas, DuckDB
    #[command(subcommand)]
    Export(export::Form),
    /// Pack a run into one file that it can be reproduced from elsewhere
    Bundle(BundleArgs),
    /// List the devices of this build on this machine
    Devices {
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
        /// Ask for the devices of one backend alone, in this process
        #[arg(long, hide = true, value_parser = devices::backend)]
        backend: Option<Backend>,
    },
    /// Write the JSON Schema of experiment files
    Schema {
        /// Where to; `-` for standard output
        #[arg(default_value = "schemas/experiment.schema.json")]
        path: PathBuf,
    },
    /// Train one run in this process (what `run` starts for each run)
    #[command(hide = true)]
    Exec(ExecArgs),
    /// Compare two devices in this process (what `parity` starts)
    #[command(hide = true)]
    ParityExec(ParityExecArgs),
}

/// An experiment file with its edits.
#[derive(Args)]
struct SpecArgs {
    /// The experiment file
    spec: PathBuf,
    /// Set a key of the file for this time, such as `optimizer.learning_rate=1e-2`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

#[derive(Args)]
struct InitArgs {
    /// A file or folder of data; without it, the iris flowers inside this program
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// What is to be learned; guessed from the data when not given
    #[arg(long, value_name = "TASK", value_parser = init::task)]
    task: Option<TaskKind>,
    /// Where to write; by default the data's name with `.toml`, in this folder; `-` for standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
struct DataArgs {
    #[command(flatten)]
    spec: SpecArgs,
    /// Write a page with pictures of each split
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Args)]
struct DescribeArgs {
    #[command(flatten)]
    spec: SpecArgs,
    /// Print the graph for Graphviz: `runner describe SPEC --dot | dot -Tsvg > network.svg`
    #[arg(long, conflicts_with = "as_layers")]
    dot: bool,
    /// Print the network as the layers of an experiment file, to be copied and changed
    #[arg(long)]
    as_layers: bool,
}

#[derive(Args)]
struct MemoryArgs {
    /// The experiment file
    #[arg(required_unless_present = "reference")]
    spec: Option<PathBuf>,
    /// Set a key of the file for this time, such as `train.gradient_checkpointing=true`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The trial to show; the first one by default
    #[arg(long, value_name = "ID")]
    trial: Option<String>,
    /// Items that are computed at a time; by default halves and doubles of the file's
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1 << 24).map(|n| n as usize))]
    batch_sizes: Vec<usize>,
    /// Precisions, such as `f32,bf16`; by default those of the device
    #[arg(long, value_name = "P,P", value_delimiter = ',')]
    precisions: Vec<Precision>,
    /// Measure first: train a few steps with two batch sizes in each precision, and keep what comes of it
    #[arg(long)]
    calibrate: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Show a known sheet of budgets beside what follows from its models
    #[arg(long, conflicts_with = "spec")]
    reference: bool,
}

#[derive(Args)]
struct RenderArgs {
    #[command(flatten)]
    spec: SpecArgs,
    /// Print one trial with its values in place, such as `learning_rate=0.01`
    #[arg(long, value_name = "ID")]
    trial: Option<String>,
    /// Print the keys that are not written as well, with their defaults
    #[arg(long)]
    defaults: bool,
}

#[derive(Args)]
struct RunArgs {
    #[command(flatten)]
    spec: SpecArgs,
    /// Runs at once; by default as many as the processor has cores, 4 at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// The folder that experiments' folders are made in
    #[arg(long, value_name = "DIR", default_value = "results")]
    results: PathBuf,
    /// Only the runs whose id matches, such as `*seed*` or `hidden=64*`; may be repeated
    #[arg(long, value_name = "GLOB")]
    only: Vec<String>,
    /// Only runs that have failed: `failed`, or a class such as `out_of_memory`; may be repeated
    #[arg(long, value_name = "failed|CLASS", value_parser = retry::retry)]
    retry: Vec<Retry>,
    /// Wait for another `runner run` that writes to the same folder
    #[arg(long)]
    wait: bool,
    /// Show failures and the result alone
    #[arg(long)]
    quiet: bool,
    /// Print the events of all runs as JSON, one object a line
    #[arg(long)]
    json: bool,
    /// Make matching runs fail: GLOB@FAULT
    #[arg(long, hide = true, value_name = "GLOB@FAULT")]
    inject_fault: Option<String>,
}

#[derive(Args)]
struct WatchArgs {
    /// A results folder, or the folder of one experiment
    #[arg(default_value = "results")]
    folder: PathBuf,
    /// Show what there is now, and end
    #[arg(long)]
    once: bool,
}

#[derive(Args)]
struct ServeArgs {
    /// A results folder, or the folder of one experiment
    #[arg(default_value = "results")]
    folder: PathBuf,
    /// The port; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// The address to listen at; any but this machine's own needs a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    listen: IpAddr,
    /// Answer only those who have this: as `?token=` in the address once, or as `Authorization: Bearer`
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

#[derive(Args)]
struct ReproduceArgs {
    /// The folder of a run, of an experiment for all of its completed runs, or a capsule of `runner bundle`
    path: PathBuf,
    /// The folder that the data's files are in, when they are not where they were
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The least that is good enough for exit code 0: `bitwise`, `ulp:N` or `equivalent`
    #[arg(long, value_name = "GRADE", default_value = "bitwise")]
    at_least: AtLeast,
    /// Another device than then, such as `wgpu`
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceName>,
    /// Make and compare the first N updates alone
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    steps: Option<usize>,
    /// Where the new run is put; by default below `reproduced/` of the experiment, for a capsule in this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the verdict as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ProveArgs {
    #[command(flatten)]
    spec: SpecArgs,
    /// The trial to try; the first one by default
    #[arg(long, value_name = "ID")]
    trial: Option<String>,
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ParityArgs {
    /// The experiment file
    #[arg(required_unless_present = "layers")]
    spec: Option<PathBuf>,
    /// Set a key of the file for this time, such as `optimizer.learning_rate=1e-2`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The devices, such as `flex,wgpu`: all others are held against the first
    #[arg(long, value_name = "A,B", value_delimiter = ',', required = true)]
    devices: Vec<DeviceName>,
    /// Updates to make
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    steps: usize,
    /// The trial to train; the first one by default
    #[arg(long, value_name = "ID")]
    trial: Option<String>,
    /// Try every type of layer by itself, instead of a file
    #[arg(long, conflicts_with_all = ["spec", "set", "steps", "trial"])]
    layers: bool,
    /// Only the types of layers that match, such as `conv*`; may be repeated
    #[arg(long, value_name = "GLOB", conflicts_with = "spec")]
    only: Vec<String>,
    /// Print everything as JSON, one object a device
    #[arg(long, conflicts_with = "md")]
    json: bool,
    /// Print tables as Markdown
    #[arg(long)]
    md: bool,
    /// Make a layer of the other device wrong: LAYER@STEP=MISTAKE
    #[arg(long, hide = true, value_name = "LAYER@STEP=MISTAKE")]
    inject_error: Option<WrongLayer>,
}

#[derive(Args)]
struct CompareArgs {
    /// Folders of experiments or of runs, a results folder, saved `report.json` files, or patterns of such paths
    #[arg(required = true)]
    what: Vec<String>,
    /// The trial that others are compared with; the file's `objective.baseline` or the highest ranked one by default
    #[arg(long, value_name = "TRIAL")]
    baseline: Option<String>,
    /// The metric that is compared, such as `valid/accuracy`; the objective by default
    #[arg(long, value_name = "METRIC")]
    value: Option<String>,
    /// Show the value in a table with a row for each value of this key
    #[arg(long, value_name = "KEY", requires = "cols")]
    rows: Option<String>,
    /// The key of the table's columns, such as `backend.device`
    #[arg(long, value_name = "KEY", requires = "rows")]
    cols: Option<String>,
    /// Show the best trade-offs of two numbers, such as `valid/accuracy,epoch_secs`
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pareto: Vec<String>,
    /// How probable a wrong claim may be, for all verdicts together
    #[arg(long, value_name = "P", default_value = "0.05", value_parser = compare::alpha)]
    alpha: f64,
    /// Print the comparison as JSON
    #[arg(long, conflicts_with_all = ["csv", "md"])]
    json: bool,
    /// Print the trials as CSV
    #[arg(long, conflicts_with = "md")]
    csv: bool,
    /// Print Markdown
    #[arg(long)]
    md: bool,
}

#[derive(Args)]
struct ListArgs {
    /// A results folder, or the folder of one experiment
    #[arg(default_value = "results")]
    folder: PathBuf,
    /// Only runs for which this holds, such as `valid/accuracy > 0.9 and optimizer.type == 'adamw' and age < 2d`
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    filter: Option<String>,
    /// Sort by a metric, a key of the file, or `objective`, which puts the best first; `-KEY` for the largest first
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    sort: Option<String>,
    /// Turn the order
    #[arg(long)]
    reverse: bool,
    /// What to show of each run, such as `run,optimizer.type,valid/loss,age`
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Vec<String>,
    /// A row for each value of this key: how many runs, and their objective over those that completed
    #[arg(long, value_name = "KEY", conflicts_with_all = ["columns", "sort", "reverse"])]
    group: Option<String>,
    /// Show at most N rows
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print one JSON object a line, with all that is known of each run
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV, with a column for everything that runs differ in
    #[arg(long)]
    csv: bool,
}

#[derive(Args)]
struct BundleArgs {
    /// The folder of a run, such as `results/mnist_sweep/runs/hidden=64-s1`
    run: PathBuf,
    /// Where to write; by default the experiment's and the run's name with `.capsule.tar.zst`, in this folder
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Whether the data's files are packed: `auto` for as long as they are not too large
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    data: bundle::PackData,
    /// The most data that `auto` packs
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = bundle::size)]
    max_data: u64,
    /// Write over a file that is there
    #[arg(long)]
    force: bool,
    /// Print what was packed as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ExecArgs {
    /// The folder of a run
    folder: PathBuf,
    /// Threads that the run may use; by default all cores
    #[arg(long)]
    threads: Option<usize>,
    /// Keep the kernels that are chosen by their times in this folder
    #[arg(long, value_name = "DIR")]
    kernels: Option<PathBuf>,
    /// Begin with the weights of this file
    #[arg(long, value_name = "FILE")]
    initial: Option<PathBuf>,
    /// End the training for good after so many updates
    #[arg(long)]
    last_step: Option<usize>,
    /// Change something from the update after STEP on; may be repeated
    #[arg(long, value_name = "STEP:KEY=VALUE")]
    adjust: Vec<Adjustment>,
    /// Validate and test few batches alone, since nothing but memory is to be learned
    #[arg(long)]
    probe: bool,
    /// Instead of the plan's limit: the bytes that a probe may hold
    #[arg(long, value_name = "BYTES", requires = "probe")]
    probe_limit: Option<u64>,
    /// Fail at this moment
    #[arg(long, hide = true)]
    inject_fault: Option<Fault>,
}

#[derive(Args)]
struct ParityExecArgs {
    /// The folder of the run to train; without one, examples of layers are tried
    folder: Option<PathBuf>,
    /// The reference and the other
    #[arg(long, value_delimiter = ',', required = true)]
    devices: Vec<DeviceName>,
    /// Updates to make
    #[arg(long)]
    steps: usize,
    /// The first example to try
    #[arg(long)]
    from: usize,
    /// Only the types of layers that match
    #[arg(long)]
    only: Vec<String>,
    /// Make a layer wrong
    #[arg(long)]
    inject_error: Option<WrongLayer>,
}

/// Reads the arguments and runs the verb.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are no mistakes; clap prints each where it belongs.
            let code = if e.use_stderr() { WRONG } else { OK };
            let _ = e.print();
            return ExitCode::from(code);
        }
    };
    let mut output = Output::default();
    if !matches!(cli.verb, Verb::Exec(_)) {
        let level = match cli.logging.verbose {
            0 => "warn",
            1 => "info",
            _ => "debug",
        };
        if let Err(reason) = log_to(&cli.logging, level, std::io::stderr) {
            output.say(&format!("error: {reason}"));
            return ExitCode::from(WRONG);
        }
    }
    let code = match cli.verb {
        Verb::Init(args) => init::init(&args, &mut output),
        Verb::Check(args) => verbs::check(&args, &mut output),
        Verb::Plan {
            spec,
            json,
            explain: true,
            ..
        } => explain::explain(&spec, json, &mut output),
        Verb::Plan {
            spec,
            json,
            results,
            ..
        } => verbs::plan(&spec, json, &results, &mut output),
        Verb::Data(args) => data::data(&args, &mut output),
        Verb::Describe(args) => describe::describe(&args, &mut output),
        Verb::Memory(args) => memory::memory(&args, &mut output),
        Verb::Render(args) => render::render(&args, &mut output),
        Verb::Run(args) => run::run(&args, &cli.logging, &mut output),
        Verb::Reproduce(args) => reproduce::reproduce(&args, &cli.logging, &mut output),
        Verb::Prove(args) => prove::prove(&args, &cli.logging, &mut output),
        Verb::Parity(args) => parity::parity(&args, &cli.logging, &mut output),
        Verb::Report {
            folder: Some(folder),
            json,
            template,
            ..
        } => verbs::report(&folder, json, template.as_deref(), &mut output),
        Verb::Report { folder: None, .. } => template::print(&mut output),
        Verb::Compare(args) => compare::compare(&args, &mut output),
        Verb::List(args) => list::list(&args, &mut output),
        Verb::Watch(args) => watch::watch(&args, &mut output),
        Verb::Serve(args) => serve::serve(&args, &mut output),
        Verb::Diff(args) => diff::diff(&args, &mut output),
        Verb::Export(form) => export::export(form, &mut output),
        Verb::Bundle(args) => bundle::bundle(&args, &mut output),
        Verb::Devices { json, backend } => devices::devices(json, backend, &mut output),
        Verb::Schema { path } => verbs::schema(&path, &mut output),
        Verb::Exec(args) => exec::exec(&args, &cli.logging),
        Verb::ParityExec(args) => parity::parity_exec(&args),
    };
    ExitCode::from(code)
}

/// Sends logs that pass the filter to `writer`. The error is a phrase.
fn log_to<W>(logging: &Logging, default: &str, writer: W) -> Result<(), String>
where
    W: for<'w> tracing_subscriber::fmt::MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = logging.log.as_deref().unwrap_or(default);
    let targets: Targets = filter.parse().map_err(|e| {
        format!(
            "`--log {filter}` is no filter: {e}; write `info`, or `runner=debug,burn_train=warn`"
        )
    })?;
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(writer);
    tracing_subscriber::registry()
        .with(layer)
        .with(targets)
        .try_init()
        .map_err(|e| e.to_string())
}
