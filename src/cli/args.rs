//! The arguments of each verb.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use clap::builder::TypedValueParser;

use super::{bundle, compare, init, launch};
use crate::error::Error;
use crate::ops::Retry;
use crate::ops::place::{File, apart};
use crate::train::parity::WrongLayer;
use crate::train::{Fault, Pause};
use runner_core::event::Adjustment;
use runner_core::reproduce::AtLeast;
use runner_core::spec::backend::{DeviceName, Precision};
use runner_core::spec::launch::SystemKind;
use runner_core::spec::task::TaskKind;

/// An experiment file with its edits.
#[derive(Args)]
pub(super) struct SpecArgs {
    /// The experiment file
    pub(super) spec: PathBuf,
    /// Override a key of the file, such as `optimizer.learning_rate=1e-2`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
}

impl SpecArgs {
    /// A file to write, which is not the experiment's.
    pub(super) fn destination<'a>(&self, path: &'a Path, force: bool) -> Result<File<'a>, Error> {
        apart(path, [self.spec.as_path()])?;
        File::new(path, force)
    }
}

#[derive(Args)]
pub(super) struct InitArgs {
    /// A file or folder of data; without it, the embedded iris flowers
    #[arg(long, value_name = "PATH")]
    pub(super) data: Option<PathBuf>,
    /// The prediction task; inferred from the data by default
    #[arg(long, value_name = "TASK", value_parser = init::task)]
    pub(super) task: Option<TaskKind>,
    /// The file to write; by default the data's name with `.toml`, in this folder; `-` for standard output
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    pub(super) spec: SpecArgs,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
pub(super) struct DataArgs {
    #[command(flatten)]
    pub(super) spec: SpecArgs,
    /// Print the result as JSON, one object for each data set
    #[arg(long)]
    pub(super) json: bool,
    /// Write an HTML page with images of each split
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Replace an existing page
    #[arg(long, requires = "html")]
    pub(super) force: bool,
}

#[derive(Args)]
pub(super) struct DescribeArgs {
    #[command(flatten)]
    pub(super) spec: SpecArgs,
    /// Print the graph for Graphviz: `runner describe SPEC --dot | dot -Tsvg > network.svg`
    #[arg(long, conflicts_with = "as_layers")]
    pub(super) dot: bool,
    /// Print the network as JSON, one object for each variant
    #[arg(long, conflicts_with_all = ["as_layers", "dot"])]
    pub(super) json: bool,
    /// Print the network as the layers of an experiment file, for copying and editing
    #[arg(long)]
    pub(super) as_layers: bool,
}

#[derive(Args)]
pub(super) struct LrFindArgs {
    #[command(flatten)]
    pub(super) spec: SpecArgs,
    /// The trial to train; the first one by default
    #[arg(long, value_name = "ID")]
    pub(super) trial: Option<String>,
    /// The learning rate of the first update
    #[arg(long, value_name = "RATE", default_value = "1e-7")]
    pub(super) min: f64,
    /// The learning rate of the last update, unless the loss diverges before
    #[arg(long, value_name = "RATE", default_value = "10")]
    pub(super) max: f64,
    /// Number of updates
    #[arg(long, value_name = "N", default_value = "100")]
    pub(super) steps: usize,
    /// Print the losses and the suggestions as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Also draw the losses over the learning rates into this file
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Also write the plot and all numbers as a page into this file
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(Args)]
pub(super) struct MemoryArgs {
    /// The experiment file
    #[arg(required_unless_present = "reference")]
    pub(super) spec: Option<PathBuf>,
    /// Override a key of the file, such as `train.gradient_checkpointing=true`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// The trial to show; the first one by default
    #[arg(long, value_name = "ID")]
    pub(super) trial: Option<String>,
    /// Items computed at a time; by default, the number in the file times powers of 2
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1 << 24).map(|n| n as usize))]
    pub(super) batch_sizes: Vec<usize>,
    /// Precisions, such as `f32,bf16`; by default those of the device
    #[arg(long, value_name = "P,P", value_delimiter = ',')]
    pub(super) precisions: Vec<Precision>,
    /// Measure first: train a few steps with two batch sizes in each precision, and save the result
    #[arg(long)]
    pub(super) calibrate: bool,
    /// Print as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Show the memory budgets of a published sheet next to forecasts for its models
    #[arg(long, conflicts_with = "spec")]
    pub(super) reference: bool,
}

#[derive(Args)]
pub(super) struct RenderArgs {
    #[command(flatten)]
    pub(super) spec: SpecArgs,
    /// Print one trial with its values, such as `learning_rate=0.01`
    #[arg(long, value_name = "ID")]
    pub(super) trial: Option<String>,
    /// The parent folder of the experiments' folders, for the trials that a search has suggested
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(super) results: PathBuf,
    /// Also print the keys that are not set, with their defaults
    #[arg(long)]
    pub(super) defaults: bool,
}

#[derive(Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) spec: SpecArgs,
    /// Concurrent runs; by default as many as the processor has cores, at most 4
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) jobs: Option<u16>,
    /// The parent folder of the experiments' folders
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(super) results: PathBuf,
    /// Only runs whose id matches, such as `*seed*` or `hidden=64*`; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(super) only: Vec<String>,
    /// Only runs that ended early: `failed`, `pruned`, or a class of failure such as `out_of_memory`; may be repeated
    #[arg(long, value_name = "failed|pruned|CLASS", value_parser = Retry::from_str)]
    pub(super) retry: Vec<Retry>,
    /// Add seeds until every verdict is decided, up to `verdict.max_seeds`, in as many steps as `verdict.looks`
    #[arg(long, conflicts_with_all = ["only", "retry"])]
    pub(super) until_decided: bool,
    /// Wait for another `runner run` that is writing to the same folder
    #[arg(long)]
    pub(super) wait: bool,
    /// Train on this machine or as jobs of a cluster: `local`, `slurm` or `command`, instead of `launch.type`
    #[arg(long, value_name = "TYPE", value_parser = launch::system)]
    pub(super) launch: Option<SystemKind>,
    /// Wait for the jobs of a cluster, submit runs again as `[on_failure]` says, and report at the end
    #[arg(long)]
    pub(super) follow: bool,
    /// Show only failures and the result
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Print the events of all runs as JSON, one object per line
    #[arg(long)]
    pub(super) json: bool,
    /// Make matching runs fail: GLOB@FAULT
    #[arg(long, hide = true, value_name = "GLOB@FAULT")]
    pub(super) inject_fault: Option<String>,
}

#[derive(Args)]
pub(super) struct WatchArgs {
    /// A results folder, or the folder of one experiment
    #[arg(default_value = "results")]
    pub(super) folder: PathBuf,
    /// Show the current state and exit
    #[arg(long)]
    pub(super) once: bool,
}

#[derive(Args)]
pub(super) struct ServeArgs {
    /// A results folder, or the folder of one experiment; with `--predict` a run, an experiment or a capsule
    #[arg(default_value = "results")]
    pub(super) folder: PathBuf,
    /// The port; 0 for any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(super) port: u16,
    /// The address to listen on; any address except a local one needs a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(super) listen: IpAddr,
    /// Answer only requests with this token: as `?token=` in the address once, or as `Authorization: Bearer`
    #[arg(long, value_name = "TOKEN")]
    pub(super) token: Option<String>,
    /// Serve predictions of a trained network instead of reports
    #[arg(long)]
    pub(super) predict: bool,
    /// The name of the model in URLs; by default the name of the experiment
    #[arg(long, value_name = "NAME", requires = "predict")]
    pub(super) name: Option<String>,
    /// The maximum number of items in a batch
    #[arg(long, value_name = "N", requires = "predict", default_value = "64", value_parser = clap::value_parser!(u64).range(1..=1 << 20).map(|n| n as usize))]
    pub(super) max_batch: usize,
    /// The maximum number of waiting items; beyond it, requests are answered with 503
    #[arg(long, value_name = "N", requires = "predict", default_value = "1024", value_parser = clap::value_parser!(u64).range(1..=1 << 24).map(|n| n as usize))]
    pub(super) max_waiting: usize,
    /// With `--predict`, for an experiment: a trial other than the selected one
    #[arg(long, value_name = "ID", requires = "predict")]
    pub(super) trial: Option<String>,
    /// With `--predict`, a device other than the one that the run was trained on, such as `flex`
    #[arg(long, value_name = "DEVICE", requires = "predict")]
    pub(super) device: Option<DeviceName>,
}

#[derive(Args)]
pub(super) struct ReproduceArgs {
    /// The folder of a run, of an experiment for all of its completed runs, or a capsule of `runner bundle`
    pub(super) path: PathBuf,
    /// The folder of the data's files, if they have moved
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// The minimum grade for exit code 0: `bitwise`, `ulp:N` or `equivalent`
    #[arg(long, value_name = "GRADE", default_value = "bitwise")]
    pub(super) at_least: AtLeast,
    /// Use another device than the original run, such as `wgpu`
    #[arg(long, value_name = "DEVICE")]
    pub(super) device: Option<DeviceName>,
    /// Train and compare only the first N updates
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    pub(super) steps: Option<usize>,
    /// The folder of the new run; by default below `reproduced/` of the experiment, for a capsule in this folder
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Unpack capsules up to this size, as in 4GiB; by default up to 200 times their packed size
    #[arg(long, value_name = "SIZE", value_parser = super::bundle::size)]
    pub(super) max_unpacked: Option<u64>,
    /// Print the verdict as one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
pub(super) struct ProveArgs {
    #[command(flatten)]
    pub(super) spec: SpecArgs,
    /// The trial to test; the first one by default
    #[arg(long, value_name = "ID")]
    pub(super) trial: Option<String>,
    /// Print the findings as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
pub(super) struct ParityArgs {
    /// The experiment file
    #[arg(required_unless_present = "layers")]
    pub(super) spec: Option<PathBuf>,
    /// Override a key of the file, such as `optimizer.learning_rate=1e-2`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) set: Vec<String>,
    /// The devices, such as `flex,wgpu`: all others are compared with the first
    #[arg(long, value_name = "A,B", value_delimiter = ',', required = true)]
    pub(super) devices: Vec<DeviceName>,
    /// Number of updates
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u64).range(1..).map(|n| n as usize))]
    pub(super) steps: usize,
    /// The trial to train; the first one by default
    #[arg(long, value_name = "ID")]
    pub(super) trial: Option<String>,
    /// Compare every type of layer in isolation, instead of a file
    #[arg(long, conflicts_with_all = ["spec", "set", "steps", "trial"])]
    pub(super) layers: bool,
    /// Only matching types of layers, such as `conv*`; may be repeated
    #[arg(long, value_name = "GLOB", conflicts_with = "spec")]
    pub(super) only: Vec<String>,
    /// Print everything as JSON, one object per device
    #[arg(long, conflicts_with = "md")]
    pub(super) json: bool,
    /// Print tables as Markdown
    #[arg(long)]
    pub(super) md: bool,
    /// Make a layer of the other device wrong: LAYER@STEP=MISTAKE
    #[arg(long, hide = true, value_name = "LAYER@STEP=MISTAKE")]
    pub(super) inject_error: Option<WrongLayer>,
}

#[derive(Args)]
pub(super) struct CompareArgs {
    /// Folders of experiments or of runs, a results folder, saved `report.json` files, or patterns of such paths
    #[arg(required = true)]
    pub(super) what: Vec<String>,
    /// The baseline trial; by default the file's `objective.baseline` or the highest ranked trial
    #[arg(long, value_name = "TRIAL")]
    pub(super) baseline: Option<String>,
    /// The metric to compare, such as `valid/accuracy`; the objective by default
    #[arg(long, value_name = "METRIC")]
    pub(super) value: Option<String>,
    /// Show the value in a pivot table with one row per value of this key
    #[arg(long, value_name = "KEY", requires = "cols")]
    pub(super) rows: Option<String>,
    /// The key of the table's columns, such as `backend.device`
    #[arg(long, value_name = "KEY", requires = "rows")]
    pub(super) cols: Option<String>,
    /// Show the Pareto front of two metrics, such as `valid/accuracy,epoch_secs`
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(super) pareto: Vec<String>,
    /// The probability of a wrong claim, for all verdicts together
    #[arg(long, value_name = "P", default_value = "0.05", value_parser = compare::alpha)]
    pub(super) alpha: f64,
    /// Print the comparison as JSON
    #[arg(long, conflicts_with_all = ["csv", "md"])]
    pub(super) json: bool,
    /// Print the trials as CSV
    #[arg(long, conflicts_with = "md")]
    pub(super) csv: bool,
    /// Print Markdown
    #[arg(long)]
    pub(super) md: bool,
}

#[derive(Args)]
pub(super) struct ListArgs {
    /// A results folder, or the folder of one experiment
    #[arg(default_value = "results")]
    pub(super) folder: PathBuf,
    /// Only runs that satisfy this condition, such as `valid/accuracy > 0.9 and optimizer.type == 'adamw' and age < 2d`
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true)]
    pub(super) filter: Option<String>,
    /// Also list runs of earlier settings, by generation with what changed
    #[arg(long)]
    pub(super) all: bool,
    /// Sort by a metric, a key of the file, or `objective` (best first); `-KEY` sorts descending; groups by `objective`
    /// or one of their columns
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    pub(super) sort: Option<String>,
    /// Reverse the order
    #[arg(long)]
    pub(super) reverse: bool,
    /// Columns to show, such as `run,optimizer.type,valid/loss,age`
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(super) columns: Vec<String>,
    /// One row per value of this key: the number of runs, and their objective over the completed ones
    #[arg(long, value_name = "KEY", conflicts_with = "columns")]
    pub(super) group: Option<String>,
    /// Show at most N rows
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<usize>,
    /// Print one JSON object per line, with everything known about each run
    #[arg(long, conflicts_with = "csv")]
    pub(super) json: bool,
    /// Print CSV, with a column for everything in which runs differ
    #[arg(long)]
    pub(super) csv: bool,
}

#[derive(Args)]
pub(super) struct BundleArgs {
    /// The folder of a run, such as `results/mnist_sweep/runs/hidden=64-s1`
    pub(super) run: PathBuf,
    /// The file to write; by default the experiment's and the run's name with `.capsule.tar.zst`, in this folder
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Whether to pack the data's files: `auto` if they are not too large
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(super) data: bundle::PackDataArg,
    /// The maximum size of data that `auto` packs
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = bundle::size)]
    pub(super) max_data: u64,
    /// Overwrite an existing file
    #[arg(long)]
    pub(super) force: bool,
    /// Print what was packed as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Args)]
pub(super) struct ExecArgs {
    /// The folder of a run
    pub(super) folder: PathBuf,
    /// Threads that the run may use; by default all cores
    #[arg(long)]
    pub(super) threads: Option<usize>,
    /// Save the kernels that are selected by timing in this folder
    #[arg(long, value_name = "DIR")]
    pub(super) kernels: Option<PathBuf>,
    /// Start with the weights of this file
    #[arg(long, value_name = "FILE")]
    pub(super) initial: Option<PathBuf>,
    /// Use the weights of the teacher in this file
    #[arg(long, value_name = "FILE")]
    pub(super) teacher: Option<PathBuf>,
    /// End the training after this many updates
    #[arg(long)]
    pub(super) last_step: Option<usize>,
    /// End the training after this epoch, as the rule of a search has decided
    #[arg(long, value_name = "EPOCH:RULE")]
    pub(super) prune_after: Option<Pause>,
    /// Apply a change from the update after STEP on; may be repeated
    #[arg(long, value_name = "STEP:KEY=VALUE")]
    pub(super) adjust: Vec<Adjustment>,
    /// Validate and test only a few batches, since only memory is measured
    #[arg(long)]
    pub(super) probe: bool,
    /// The memory limit of a probe in bytes, instead of the plan's limit
    #[arg(long, value_name = "BYTES", requires = "probe")]
    pub(super) probe_limit: Option<u64>,
    /// The parent has the run by a lease
    #[arg(long, hide = true)]
    pub(super) leased: bool,
    /// The known digest of this program's file
    #[arg(long, hide = true)]
    pub(super) build: Option<String>,
    /// Fail at this moment
    #[arg(long, hide = true)]
    pub(super) inject_fault: Option<Fault>,
}

#[derive(Args)]
pub(super) struct CancelArgs {
    /// The folder of an experiment, such as `results/mnist_sweep`, or a results folder for all of its experiments
    #[arg(default_value = "results")]
    pub(super) folder: PathBuf,
}

#[derive(Args)]
pub(super) struct WorkArgs {
    /// The folder of an experiment
    pub(super) folder: PathBuf,
    /// The key of the submission
    pub(super) key: String,
    /// The number of the job in it
    pub(super) element: usize,
    /// The id of the job
    #[arg(long, value_name = "ID", default_value = "")]
    pub(super) job: String,
}

#[derive(Args)]
pub(super) struct ParityExecArgs {
    /// The folder of the run to train; without one, examples of layers are compared
    pub(super) folder: Option<PathBuf>,
    /// The reference and the other device
    #[arg(long, value_delimiter = ',', required = true)]
    pub(super) devices: Vec<DeviceName>,
    /// Number of updates
    #[arg(long)]
    pub(super) steps: usize,
    /// The first example to compare
    #[arg(long)]
    pub(super) from: usize,
    /// Only matching types of layers
    #[arg(long)]
    pub(super) only: Vec<String>,
    /// Make a layer wrong
    #[arg(long)]
    pub(super) inject_error: Option<WrongLayer>,
}
