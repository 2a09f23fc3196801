//! A learning rate range test (Smith, 2017): a training whose learning rate rises from update to update.

use serde::Serialize;

use super::{Experiment, Progress, Sink, plan_with_data, trial};
use crate::error::Error;
use crate::train::{device, initial_network, teacher_of};
use runner_core::data;
use runner_core::diagnostic::Diagnostic;
use runner_core::event::{FailureClass, Outcome};
use runner_core::plan::RunPlan;
use runner_core::spec::scheduler::{Curve, SchedulerSpec, Unit};
use runner_core::spec::strategy::StrategySpec;
use runner_network::trainer::Trainer;
use runner_statistics::{RatePoint, RateRange};

/// The fewest updates that a slope can be seen in.
const LEAST: usize = 20;

/// The range test of an experiment.
#[derive(Clone, Debug)]
pub struct LrFind {
    /// The experiment file.
    pub experiment: Experiment,
    /// The trial; the first one by default. Its first seed is trained.
    pub trial: Option<String>,
    /// The learning rate of the first update.
    pub min: f64,
    /// The learning rate of the last update.
    pub max: f64,
    /// The number of updates.
    pub steps: usize,
}

impl LrFind {
    /// From 1e-7 to 10 in 100 updates.
    pub fn new(experiment: Experiment) -> Self {
        Self {
            experiment,
            trial: None,
            min: 1e-7,
            max: 10.0,
            steps: 100,
        }
    }
}

/// Why a range test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// After its last update.
    Completed,
    /// The smoothed loss was four times its minimum.
    Diverged,
    /// The loss or a weight became infinite or NaN.
    NotFinite,
}

/// The losses of a range test, and what they suggest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LrFound {
    /// The run that was trained.
    pub run: String,
    /// Where.
    pub device: String,
    /// The updates.
    pub points: Vec<RatePoint>,
    /// Why it ended.
    pub ended: Ended,
    /// The learning rate at which the smoothed loss falls most steeply.
    pub steepest: Option<f64>,
    /// A tenth of the learning rate with the lowest smoothed loss.
    pub tenth_of_minimum: Option<f64>,
}

/// Trains a run with a learning rate that rises exponentially, and suggests one. Writes nothing. The schedule, averages,
/// strategy and early stopping of the file do not apply, except that a teacher is part of the loss.
///
/// # Errors
///
/// [`Error::Refused`] if the range is empty, or the trial or its device does not exist; [`Error::Experiment`] if the file
/// is invalid; [`Error::Failed`] if the training fails before its loss diverges.
///
/// ```
/// use burn_runner::ops::{self, Experiment, LrFind};
///
/// let options = LrFind::new(Experiment::new("experiments/iris_csv.toml"));
/// let found = ops::lr_find(&options, &ops::quiet)?;
/// assert!(found.steepest.is_some());
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn lr_find(options: &LrFind, sink: &Sink<'_>) -> Result<LrFound, Error> {
    refuse_range(options)?;
    let planned = plan_with_data(&options.experiment, sink)?;
    let run = trial(&planned.plan, options.trial.as_deref())?;
    if let Some(reason) = &run.skip {
        let message = format!("`{}` cannot be trained here: {reason}", run.id);
        return Err(Error::refused(Diagnostic::error("device", message)));
    }
    if run.strategy.adversarial().is_some() {
        let message = "the loss of an adversarial training does not show which learning rate is good: a better generator raises the discriminator's";
        let help = "compare rates by a sweep: `optimizer.learning_rate` with several values under `[sweep]`";
        return Err(Error::refused(
            Diagnostic::error("usage", message).help(help),
        ));
    }
    let run = rising(run, options);
    let (range, ended) = train(&run, options, sink)?;
    Ok(LrFound {
        run: run.id,
        device: run.device.to_string(),
        steepest: range.steepest(),
        tenth_of_minimum: range.tenth_of_minimum(),
        points: range.points().to_vec(),
        ended,
    })
}

fn refuse_range(options: &LrFind) -> Result<(), Error> {
    let refuse = |message: String, help: &str| {
        let diagnostic = Diagnostic::error("usage", message);
        Err(Error::refused(diagnostic.help(help.to_owned())))
    };
    let &LrFind {
        min, max, steps, ..
    } = options;
    let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
    if !is_rate(min) || !is_rate(max) || max <= min {
        return refuse(
            format!("the learning rate cannot rise from {min:e} to {max:e}"),
            "pass two positive numbers, such as `--min 1e-7 --max 10`",
        );
    }
    if steps < LEAST {
        return refuse(
            format!("{steps} updates are too few to see where the loss falls"),
            "pass at least `--steps 20`; 100 is usual",
        );
    }
    Ok(())
}

/// The run with a learning rate that rises over the updates, and without what depends on its length.
fn rising(run: &RunPlan, options: &LrFind) -> RunPlan {
    let mut run = run.clone();
    let gamma = (options.max / options.min).powf(1.0 / (options.steps - 1) as f64);
    run.optimizer.learning_rate = options.min;
    run.scheduler = SchedulerSpec {
        warmup_steps: None,
        warmup_epochs: None,
        curve: Curve::Exponential {
            gamma,
            unit: Unit::Step,
        },
    };
    // A teacher is part of the loss.
    if run.strategy.distill().is_none() {
        run.strategy = StrategySpec::Standard;
    }
    run.train.ema = None;
    run.train.early_stopping = None;
    run.train.epochs = options.steps.div_ceil(run.steps_per_epoch);
    run
}

fn train(run: &RunPlan, options: &LrFind, sink: &Sink<'_>) -> Result<(RateRange, Ended), Error> {
    let failed = |message: String| Error::failed(Diagnostic::error("training", message));
    let watch = |done, total| sink(Progress::Advanced("reading data", done, total));
    let loaded = data::load(&run.data, &watch).map_err(|e| failed(e.to_string()))?;
    let device = device::open(run.device, run.precision)
        .map_err(|reason| Error::refused(Diagnostic::error("device", reason)))?;
    let outcome = |outcome: Outcome| match outcome {
        Outcome::Failed { message, .. } => failed(message),
        other => failed(format!("{other:?}")),
    };
    let network = initial_network(run, None, &device).map_err(outcome)?;
    let teacher = teacher_of(run, &device).map_err(outcome)?;
    let trainer = Trainer::new(run, loaded, &device, Some(network), || 0.0);
    let mut trainer = trainer.taught_by(teacher);
    let mut range = RateRange::default();
    for step in 0..options.steps {
        sink(Progress::Advanced(
            "trying learning rates",
            step as u64,
            options.steps as u64,
        ));
        trainer.skip_validation();
        match trainer.advance() {
            Ok(runner_network::trainer::Advance::Updated { loss }) => {
                range.add(run.learning_rate(step), loss);
            }
            Ok(other) => return Err(failed(format!("unexpected: {other:?}"))),
            Err(Outcome::Failed {
                class: FailureClass::NotFinite,
                message,
                ..
            }) if range.points().is_empty() => {
                return Err(failed(format!(
                    "at a learning rate of {:e}, {message}",
                    options.min
                )));
            }
            Err(Outcome::Failed {
                class: FailureClass::NotFinite,
                ..
            }) => {
                return Ok((range, Ended::NotFinite));
            }
            Err(other) => return Err(outcome(other)),
        }
        if range.has_diverged() {
            return Ok((range, Ended::Diverged));
        }
    }
    Ok((range, Ended::Completed))
}
