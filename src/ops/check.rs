//! Checks of an experiment file.

use std::collections::BTreeSet;

use super::{Experiment, Planned, Sink, plan};
use crate::error::Error;
use runner_report::report::Prospect;

/// The experiment to check.
#[derive(Clone, Debug, Default)]
pub struct Check {
    /// The experiment file.
    pub experiment: Experiment,
}

impl Check {
    /// Checks this experiment.
    pub fn new(experiment: Experiment) -> Self {
        Self { experiment }
    }
}

/// A valid experiment.
#[derive(Debug)]
pub struct Checked {
    /// Its plan, with warnings.
    pub planned: Planned,
    /// What its seeds can show; `None` if there is nothing to compare.
    pub prospect: Option<Prospect>,
}

impl Checked {
    /// The number of trials.
    pub fn num_trials(&self) -> usize {
        let trials = self.planned.plan.runs.iter().map(|run| &run.trial);
        trials.collect::<BTreeSet<_>>().len()
    }
}

/// Checks an experiment file, and computes what its seeds can show. Nothing is written.
///
/// # Errors
///
/// [`Error::Experiment`] with everything that is wrong with the file.
///
/// ```
/// use burn_runner::ops::{self, Check, Experiment};
///
/// let mut options = Check::new(Experiment::new("experiments/iris_csv.toml"));
/// let checked = ops::check(&options, &ops::quiet)?;
/// assert_eq!(checked.num_trials(), 3);
///
/// options.experiment.set.push("train.epoch=3".into());
/// let error = ops::check(&options, &ops::quiet).unwrap_err();
/// assert_eq!(error.exit_code(), 2);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn check(options: &Check, sink: &Sink<'_>) -> Result<Checked, Error> {
    let planned = plan(&options.experiment, sink)?;
    Ok(Checked {
        prospect: Prospect::of(&planned.plan, None),
        planned,
    })
}
