//! The account of a sweep: what happened to each of its points.

use super::{Experiment, Sink, plan};
use crate::error::Error;
use runner_core::diagnostic::Sources;
use runner_core::plan::sweep::Account;

/// The points of a sweep, and the rules that dropped some of them.
#[derive(Clone, Debug)]
pub struct SweepAccount {
    /// The points, trials and runs.
    pub account: Account,
    /// The texts that contain the rules.
    pub sources: Sources,
}

/// Counts the points of an experiment's sweep, and those that each rule drops or merges.
///
/// # Errors
///
/// Like [`plan()`].
///
/// ```
/// use burn_runner::ops::{self, Experiment};
///
/// let sweep = ops::account(&Experiment::new("experiments/iris_csv.toml"), &ops::quiet)?;
/// assert_eq!((sweep.account.num_trials, sweep.account.num_runs), (3, 9));
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn account(experiment: &Experiment, sink: &Sink<'_>) -> Result<SweepAccount, Error> {
    let document = plan(experiment, sink)?.document;
    Ok(SweepAccount {
        // Every plan has one.
        account: runner_core::plan::account(&document).unwrap_or_default(),
        sources: document.sources,
    })
}
