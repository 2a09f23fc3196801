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

mod devices;
mod experiment;

pub use devices::{devices, devices_of};
pub use experiment::{Experiment, Planned, default_name, open, plan, plan_with_data, trial};
pub(crate) use experiment::{cache_folder, plan_document};

use runner_core::diagnostic::{Diagnostics, Sources};

/// What an operation tells of while it works.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// What is done now, as a sentence.
    Step(&'a str),
    /// What the user should know, as a sentence without "note:".
    Note(&'a str),
    /// Warnings about an experiment file, with the texts that they point into.
    Warnings(&'a Sources, &'a Diagnostics),
    /// How far something is that takes a while: what it is, how much is done, and how much there is.
    Advanced(&'a str, u64, u64),
    /// How far a download is: the file, its bytes so far, and all of them if the server says so.
    Downloaded(&'a str, u64, Option<u64>),
}

/// Is told of progress, maybe from several threads.
pub type Sink<'a> = dyn Fn(Progress<'_>) + Sync + 'a;

/// A [`Sink`] that passes over everything.
pub fn quiet(_: Progress<'_>) {}
