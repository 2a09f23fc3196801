//! The data of an experiment.

use super::{Experiment, Sink, plan};
use crate::error::Error;
use runner_core::data::profile::{Profile, pictures};
use runner_core::data::serve::{Moment, Split};
use runner_core::data::{self, DataPlan, Loaded};
use runner_core::diagnostic::Diagnostic;
use runner_core::spec::train::Sampler;
use runner_report::sheet::{Section, sheet};

/// Images of each split on a page.
const PICTURES: usize = 24;

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

    /// The first images of each split, as in the first epoch of the first run; nothing if the items are not images.
    pub fn pictures(&self, loaded: &Loaded) -> Vec<Section> {
        let seed = self.seed;
        let splits = [
            ("train", Some(&loaded.train)),
            ("valid", Some(&loaded.valid)),
            ("test", loaded.test.as_ref()),
        ];
        let section = |(name, split): (&str, Option<&Split>)| {
            let split = split?;
            let changed = if split.is_augmented() {
                format!(", as changed in epoch 1 of seed {seed}")
            } else {
                String::new()
            };
            Some(Section {
                heading: format!("{name}{changed}"),
                pictures: pictures(split, PICTURES, Moment::new(Sampler::Random, seed, 1)),
            })
        };
        let sections = splits.into_iter().filter_map(section);
        sections.filter(|s| !s.pictures.is_empty()).collect()
    }
}

impl DataSets {
    /// An HTML page of images.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if there are none.
    pub fn page(&self, sections: &[Section]) -> Result<String, Error> {
        if sections.is_empty() {
            let message = "there are no images to show: the items have other shapes";
            let diagnostic = Diagnostic::error("usage", message);
            return Err(Error::refused(diagnostic.help("remove `--html`")));
        }
        Ok(sheet(&self.experiment, sections))
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
