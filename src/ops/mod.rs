//! Operations: what the verbs of the command line do, for programs.
//!
//! Every operation is a function of two arguments. The first says what to do, in a struct of its own whose fields are
//! public and whose `new` takes what has no default. The second is a [`Sink`] that is told of [`Progress`] while the
//! operation works. It returns an outcome, again a struct of its own, or an [`Error`]. Operations neither print nor
//! read arguments: `cli` does both.
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

/// What an operation tells of while it works.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// What is done now, as a sentence.
    Step(&'a str),
    /// What the user should know, as a sentence without "note:".
    Note(&'a str),
    /// What is waited for, as a sentence without "waiting:".
    Waiting(&'a str),
    /// Warnings about an experiment file, with the texts that they point into.
    Warnings(&'a Sources, &'a Diagnostics),
    /// How far something is that takes a while: what it is, how much is done, and how much there is.
    Advanced(&'a str, u64, u64),
    /// How far a download is: the file, its bytes so far, and all of them if the server says so.
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

/// Is told of progress, maybe from several threads.
pub type Sink<'a> = dyn Fn(Progress<'_>) + Sync + 'a;

/// A [`Sink`] that passes over everything.
pub fn quiet(_: Progress<'_>) {}
