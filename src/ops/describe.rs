//! The networks of an experiment.

use super::{Experiment, Sink, open, plan};
use crate::error::Error;
use runner_core::check::forecast::trained_parameters;
use runner_core::plan::{RunPlan, specs};
use runner_core::spec::model::ModelSpec;

/// The experiment whose networks are described.
#[derive(Clone, Debug, Default)]
pub struct Describe {
    /// The experiment file.
    pub experiment: Experiment,
}

impl Describe {
    /// The networks of this experiment.
    pub fn new(experiment: Experiment) -> Self {
        Self { experiment }
    }
}

/// The networks of an experiment.
#[derive(Clone, Debug)]
pub struct Described {
    /// Each network: the first run that has it, and the trials that have it.
    pub networks: Vec<(RunPlan, Vec<String>)>,
}

/// Infers the networks of an experiment. Trials that do not differ in the network, nor in what of it is trained, have one
/// entry together.
///
/// # Errors
///
/// Like [`plan()`].
///
/// ```
/// use burn_runner::ops::{self, Describe, Experiment};
///
/// let options = Describe::new(Experiment::new("experiments/iris_csv.toml"));
/// let described = ops::describe(&options, &ops::quiet)?;
/// assert_eq!(described.networks.len(), 3);
/// assert!(described.networks[0].0.network.num_parameters > 0);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn describe(options: &Describe, sink: &Sink<'_>) -> Result<Described, Error> {
    let plan = plan(&options.experiment, sink)?.plan;
    let trained = |run: &RunPlan| trained_parameters(&run.network, &run.optimizer);
    let mut networks: Vec<(RunPlan, Vec<String>)> = Vec::new();
    for run in plan.runs {
        let same = |known: &RunPlan| {
            known.network == run.network
                && known.precision == run.precision
                && known.init == run.init
                && trained(known) == trained(&run)
        };
        match networks.iter_mut().find(|(known, _)| same(known)) {
            Some((_, trials)) if trials.last() != Some(&run.trial) => trials.push(run.trial),
            Some(_) => {}
            None => {
                let trials = vec![run.trial.clone()];
                networks.push((run, trials));
            }
        }
    }
    Ok(Described { networks })
}

/// The layers of each trial with presets and blocks expanded. Shapes are not checked, so a preset that does not fit the
/// data can be inspected too.
///
/// # Errors
///
/// [`Error::Experiment`] if the file is invalid.
///
/// ```
/// use burn_runner::ops::{self, Describe, Experiment};
///
/// let options = Describe::new(Experiment::new("experiments/iris_csv.toml"));
/// let layers = ops::layers(&options, &ops::quiet)?;
/// assert!(!layers[0].1.layers.is_empty());
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn layers(options: &Describe, _: &Sink<'_>) -> Result<Vec<(String, ModelSpec)>, Error> {
    let document = open(&options.experiment)?;
    let specs = specs(&document)
        .map_err(|diagnostics| Error::experiment(&document.sources, diagnostics))?;
    let layers = specs.into_iter();
    let layers = layers.map(|(trial, spec)| (trial, spec.model));
    Ok(layers.collect())
}
