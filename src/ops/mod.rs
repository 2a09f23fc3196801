//! Operations: what the subcommands of the command line do, as functions for programs.
//!
//! Every operation is a function of two arguments. The first is a struct with public fields that describes the request;
//! its `new` takes the fields without a default. The second is a [`Sink`] that receives [`Progress`] during the
//! operation. The function returns an outcome, which is also a struct, or an [`Error`]. Operations neither print nor
//! read command-line arguments: `cli` does both.
//!
//! ```
//! use burn_runner::ops::{self, Experiment};
//!
//! let mut experiment = Experiment::new("experiments/iris_csv.toml");
//! let planned = ops::plan(&experiment, &|progress| eprintln!("{progress:?}"))?;
//! assert_eq!(planned.plan.runs.len(), 9);
//!
//! experiment.set.push("train.epochs=none".into());
//! let error = ops::plan(&experiment, &ops::quiet).unwrap_err();
//! assert_eq!(error.exit_code(), 2);
//! # Ok::<(), burn_runner::Error>(())
//! ```

mod account;
mod builds;
mod bundle;
mod check;
mod clean;
mod cluster;
mod compare;
mod data;
mod delta;
mod describe;
mod devices;
mod diff;
mod evaluate;
mod experiment;
pub mod export;
mod generate;
pub mod import;
mod init;
mod label;
mod list;
mod lr_find;
mod memory;
mod new_project;
mod outlook;
mod parity;
pub(crate) mod place;
mod predict;
mod prior;
mod probe;
mod program;
mod prove;
mod records;
mod render;
mod report;
mod reproduce;
mod run;
mod samples;
mod scratch;
mod serve;
mod trained;
pub(crate) mod tree;
mod verify;

pub use account::{SweepAccount, account};
pub(crate) use builds::other_builds;
pub use bundle::{Bundle, Bundled, PackData, bundle};
pub use check::{Check, Checked, check};
pub use clean::{Clean, Cleaned, Removed, clean};
pub use cluster::{CancelJobs, CancelledJobs, Work, cancel_jobs, refresh_jobs, work};
pub use compare::{Compare, compare};
pub use data::{DataOptions, DataSet, DataSets, data};
pub use delta::{
    DeltaApplied, DeltaApply, DeltaAverage, DeltaDiff, DeltaFound, delta_apply, delta_average,
    delta_diff,
};
pub use describe::{Describe, Described, describe, layers};
pub use devices::{devices, devices_of};
pub use diff::{DiffOptions, Differences, In, Pair, diff};
pub use evaluate::{Evaluate, evaluate};
pub use experiment::{Experiment, Planned, default_name, open, plan, plan_with_data, trial};
pub use generate::{Generate, generate};
pub use import::{ImportHub, ImportOnnx, ImportedHub, ImportedOnnx, import_hub, import_onnx};
pub use init::{Init, Starter, init};
pub use label::{LabelChange, LabelRun, label_run};
pub use list::{List, Listing, list};
pub use lr_find::{Ended, LrFind, LrFound, lr_find};
pub use memory::{Budget, Memory, memory};
pub use new_project::{NewProject, Project, new_project};
pub use outlook::{Consequence, Excess, Outlook, OutlookOptions, outlook};
pub(crate) use parity::examples;
pub use parity::{
    DevicePair, DeviceParity, LayerParity, Parities, Parity, Subject, TrainingParity, parity,
};
pub use predict::{Asked, Predict, Predicted, predict, predict_to};
pub use program::Program;
pub use prove::{Finding, Proof, Prove, prove};
pub use records::{
    EventFiles, ExportTable, ExportedTable, Mlflow, SentRuns, WrittenFiles, export_table,
    send_to_mlflow, write_event_files,
};
pub use render::{Render, Rendered, render};
pub use report::{ReportOptions, Template, report, report_folders};
pub use reproduce::{Reproduce, Reproduced, Reproduction, reproduce};
pub(crate) use run::{Hook, document_so_far, plan_as_begun, search_so_far};
pub use run::{NoClass, Prepared, Retry, Run, RunOutcome, Stopped, run};
pub use samples::{Samples, samples};
pub(crate) use scratch::Scratch;
pub use serve::{Content, Serve, Serving, Stop, serve};
pub(crate) use verify::verify_data;

use crate::error::Error;
use runner_core::diagnostic::{Diagnostic, Diagnostics, Sources};
use runner_core::event::Event;
use runner_core::plan::RunPlan;
use runner_core::record::RunRecord;
use runner_core::spec::notify::NotifySpec;

/// The progress of an operation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// The current step, as a sentence.
    Step(&'a str),
    /// A notice for the user, as a sentence without "note:".
    Note(&'a str),
    /// The event that the operation waits for, as a sentence without "waiting:".
    Waiting(&'a str),
    /// Warnings about an experiment file, with the texts that they point into.
    Warnings(&'a Sources, &'a Diagnostics),
    /// A warning that has no place in a text.
    Warning(&'a Diagnostic),
    /// The progress of a longer step: its name, how much is done, and the total.
    Advanced(&'a str, u64, u64),
    /// The progress of a download: the file, its bytes so far, and its size if the server sends it.
    Downloaded(&'a str, u64, Option<u64>),
    /// From now on, `cancel` ends the operation early.
    MayCancel,
    /// What will be done for the runs of a plan.
    Prepared(&'a Prepared),
    /// Runs are about to be trained.
    Training(&'a Training<'a>),
    /// An event of a run has been written to its record.
    Recorded(&'a RunPlan, &'a Event),
    /// The same event, with the resulting state of the record.
    Event {
        /// The run, as an index into [`Training::runs`].
        run: usize,
        /// The run.
        plan: &'a RunPlan,
        /// What happened.
        event: &'a Event,
        /// All events so far.
        record: &'a RunRecord,
    },
    /// Time has passed during training.
    Tick,
    /// All runs of a training have ended.
    Trained,
    /// Runs cannot be trained or recorded any more. The outcome or the error of the operation contains the same
    /// message.
    Failed(&'a Error),
    /// A run was reproduced and compared.
    Reproduced(&'a Reproduction),
    /// A device was compared with the reference.
    Compared(&'a DeviceParity),
}

/// The runs of a training.
#[derive(Debug)]
pub struct Training<'a> {
    /// The experiment's name.
    pub experiment: &'a str,
    /// The runs, in the order in which they start.
    pub runs: &'a [RunPlan],
    /// For each run, the optimizer updates that need not be repeated.
    pub steps: &'a [usize],
    /// The number of concurrent runs.
    pub jobs: usize,
    /// Who is told of what happens.
    pub notify: &'a [NotifySpec],
}

/// Receives progress, possibly from several threads.
pub type Sink<'a> = dyn Fn(Progress<'_>) + Sync + 'a;

/// A [`Sink`] that ignores everything.
pub fn quiet(_: Progress<'_>) {}
