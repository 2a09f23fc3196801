//! Operations: what the verbs of the command line do, for programs.
//!
//! Every operation is a function of two arguments. The first is a struct with public fields that says what to do; its
//! `new` takes what has no default. The second is a [`Sink`] that receives [`Progress`] while the operation works. It
//! returns an outcome, which is also a struct, or an [`Error`]. Operations neither print nor read arguments: `cli` does
//! both.
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

mod builds;
mod bundle;
mod compare;
mod devices;
mod diff;
mod experiment;
mod memory;
mod predict;
mod probe;
mod program;
mod prove;
mod reproduce;
mod run;
mod scratch;
mod trained;
mod verify;

pub(crate) use builds::other_builds;
pub use bundle::{Bundle, Bundled, PackData, bundle};
pub use compare::{Compare, compare};
pub use devices::{devices, devices_of};
pub use diff::{DiffOptions, Differences, In, Pair, diff};
pub use experiment::{Experiment, Planned, default_name, open, plan, plan_with_data, trial};
pub use memory::{Budget, Memory, memory};
pub use predict::{Asked, Predict, Predicted, predict, predict_to};
pub(crate) use probe::calibrations;
pub use program::Program;
pub use prove::{Finding, Proof, Prove, prove};
pub use reproduce::{Reproduce, Reproduced, Reproduction, reproduce};
pub use run::{NoClass, Prepared, Retry, Run, RunOutcome, Stopped, run};
pub(crate) use scratch::Scratch;
pub(crate) use verify::verify_data;

use crate::error::Error;
use runner_core::diagnostic::{Diagnostics, Sources};
use runner_core::event::Event;
use runner_core::plan::RunPlan;
use runner_core::record::RunRecord;

/// The progress of an operation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// The current step, as a sentence.
    Step(&'a str),
    /// A notice for the user, as a sentence without "note:".
    Note(&'a str),
    /// What is waited for, as a sentence without "waiting:".
    Waiting(&'a str),
    /// Warnings about an experiment file, with the texts that they point into.
    Warnings(&'a Sources, &'a Diagnostics),
    /// The progress of something that takes a while: its name, how much is done, and the total.
    Advanced(&'a str, u64, u64),
    /// The progress of a download: the file, its bytes so far, and its size if the server sends it.
    Downloaded(&'a str, u64, Option<u64>),
    /// From now on the operation ends early when its `cancel` is used.
    MayCancel,
    /// What is to be done for the runs of a plan.
    Prepared(&'a Prepared),
    /// Runs are about to be trained.
    Training(&'a Training<'a>),
    /// An event of a run has been written to its record.
    Recorded(&'a RunPlan, &'a Event),
    /// The same event, with what the record comes to.
    Event {
        /// The run, by its place in [`Training::runs`].
        run: usize,
        /// The run.
        plan: &'a RunPlan,
        /// What happened.
        event: &'a Event,
        /// All that happened.
        record: &'a RunRecord,
    },
    /// Some time has passed in a training.
    Tick,
    /// All runs of a training have ended.
    Trained,
    /// Runs cannot be trained any more, or not be recorded. The outcome or the error of the operation says the same.
    Failed(&'a Error),
    /// A run was made again and compared.
    Reproduced(&'a Reproduction),
}

/// The runs of a training.
#[derive(Debug)]
pub struct Training<'a> {
    /// The experiment's name.
    pub experiment: &'a str,
    /// The runs, in the order in which they start.
    pub runs: &'a [RunPlan],
    /// Optimizer updates of each that need not be made again.
    pub steps: &'a [usize],
    /// Runs at once.
    pub jobs: usize,
}

/// Receives progress, possibly from several threads.
pub type Sink<'a> = dyn Fn(Progress<'_>) + Sync + 'a;

/// A [`Sink`] that ignores everything.
pub fn quiet(_: Progress<'_>) {}
