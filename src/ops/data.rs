//! The data of an experiment.

use super::{Experiment, Sink, plan};
use crate::error::Error;
use runner_core::data::profile::Profile;
use runner_core::data::{self, DataPlan, Loaded};

/// The experiment whose data is read.
#[derive(Clone, Debug, Default)]
pub struct DataOptions {
    /// The experiment file.
    pub experiment: Experiment,
}

impl DataOptions {
    /// The data of this experiment.
    pub fn new(experiment: Experiment) -> Self {
        Self { experiment }
    }
}

/// The data sets of an experiment.
#[derive(Clone, Debug)]
pub struct DataSets {
    /// The experiment's name.
    pub experiment: String,
    /// Each data set with the trials that train on it.
    pub sets: Vec<DataSet>,
}

/// A planned data set, whose items are not in memory.
#[derive(Clone, Debug)]
pub struct DataSet {
    /// Its plan.
    pub plan: DataPlan,
    /// The seed of the first run that trains on it.
    pub seed: u64,
    /// The trials that train on it.
    pub trials: Vec<String>,
}

impl DataSet {
    /// Reads its items.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if they cannot be read.
    pub fn load(&self) -> Result<Loaded, Error> {
        data::load(&self.plan, &|_, _| {}).map_err(|error| Error::refused(error.to_diagnostic()))
    }

    /// Describes its items: columns, splits, missing values, the first items.
    pub fn profile(&self, loaded: &Loaded) -> Profile {
        Profile::of(&self.plan, loaded)
    }
}

/// Finds the data sets of an experiment. Trials that do not differ in the data have one data set together.
///
/// # Errors
///
/// Like [`plan()`].
///
/// ```
/// use burn_runner::ops::{self, DataOptions, Experiment};
///
/// let options = DataOptions::new(Experiment::new("experiments/iris_csv.toml"));
/// let data = ops::data(&options, &ops::quiet)?;
/// assert_eq!(data.sets.len(), 1);
/// let set = &data.sets[0];
/// assert_eq!(set.trials.len(), 3);
/// let loaded = set.load()?;
/// assert!(set.profile(&loaded).show(100).contains("species"));
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn data(options: &DataOptions, sink: &Sink<'_>) -> Result<DataSets, Error> {
    let plan = plan(&options.experiment, sink)?.plan;
    let mut sets: Vec<DataSet> = Vec::new();
    for run in plan.runs {
        match sets.iter_mut().find(|set| set.plan == run.data) {
            Some(set) if set.trials.last() != Some(&run.trial) => set.trials.push(run.trial),
            Some(_) => {}
            None => sets.push(DataSet {
                plan: run.data,
                seed: run.seed,
                trials: vec![run.trial],
            }),
        }
    }
    Ok(DataSets {
        experiment: plan.experiment,
        sets,
    })
}
