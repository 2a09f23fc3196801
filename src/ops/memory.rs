//! The memory of a run with other batch sizes and precisions, and whether it fits.

use super::experiment::plan_document;
use super::probe::{NotMeasured, Prober, calibrations};
use super::run::hardware_of;
use super::verify::verify_data;
use super::{Experiment, Planned, Progress, Sink, devices_of, open, plan, plan_with_data, trial};
use crate::dispatch::Cancel;
use crate::error::Error;
use runner_core::data::Trust;
use runner_core::diagnostic::Severity;
use runner_core::plan::budget::{Cell, Verdict, advice};
use runner_core::plan::inventory::{HOST, Inventory};
use runner_core::plan::{Room, RunPlan};
use runner_core::record::{Calibrations, total_memory};
use runner_core::spec::backend::Precision;
use runner_core::spec::section::Choice;

/// The trial whose memory is forecast.
#[derive(Clone, Default)]
pub struct Memory {
    /// The experiment file, and the program that probes.
    pub experiment: Experiment,
    /// The trial; the first one by default.
    pub trial: Option<String>,
    /// Items that are computed at a time; by default halves and doubles of the number in the file.
    pub batch_sizes: Vec<usize>,
    /// Precisions; by default those of the device.
    pub precisions: Vec<Precision>,
    /// Whether to train for a few steps first, with two batch sizes in each precision, and to save the measurements.
    pub calibrate: bool,
    /// Cancels the probes, from [`Progress::MayCancel`] on.
    pub cancel: Cancel,
}

impl Memory {
    /// The first trial of an experiment, without measurements.
    pub fn new(experiment: Experiment) -> Self {
        Self {
            experiment,
            ..Self::default()
        }
    }
}

/// Forecasts the memory of a run with other batch sizes and precisions, and compares it with the memory of its device.
///
/// # Errors
///
/// Like [`plan`]; [`Error::Interrupted`] if probes were cancelled, in which case earlier measurements are saved.
///
/// ```
/// use burn_runner::ops::{self, Experiment, Memory};
///
/// let mut options = Memory::new(Experiment::new("experiments/iris_csv.toml"));
/// options.batch_sizes = vec![16, 32];
/// let budget = ops::memory(&options, &ops::quiet)?;
/// assert_eq!(budget.rows.len(), 2);
/// assert!(budget.rows[1][0].bytes > budget.rows[0][0].bytes);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn memory(options: &Memory, sink: &Sink<'_>) -> Result<Budget, Error> {
    let planned = if options.calibrate {
        plan_with_data(&options.experiment, sink)?
    } else {
        plan(&options.experiment, sink)?
    };
    let run = trial(&planned.plan, options.trial.as_deref())?;
    let inventory = devices_of(run.device.backend, &options.experiment.program);
    let precisions = if options.precisions.is_empty() {
        precisions(run, &inventory)
    } else {
        options.precisions.clone()
    };
    let with_refusal = |precision| {
        let refusal = refusal(&options.experiment, &planned, run, precision);
        (precision, refusal)
    };
    let precisions: Vec<(Precision, Option<String>)> =
        precisions.into_iter().map(with_refusal).collect();
    let calibrations = calibrations(&options.experiment.program);
    if options.calibrate {
        verify_data(&planned, Trust::Stamps)?;
        sink(Progress::MayCancel);
        let prober = Prober {
            program: &options.experiment.program,
            calibrations: &calibrations,
            hardware: &hardware_of(inventory.clone()),
            cancel: &options.cancel,
        };
        calibrate(run, &precisions, &prober, sink)?;
    }
    Ok(Budget::new(
        run,
        &options.batch_sizes,
        &precisions,
        &calibrations,
        &inventory,
    ))
}

/// Probes the run in each precision in which it is valid.
fn calibrate(
    run: &RunPlan,
    precisions: &[(Precision, Option<String>)],
    prober: &Prober<'_>,
    sink: &Sink<'_>,
) -> Result<(), Error> {
    for (precision, refusal) in precisions {
        let run = run.in_batches(run.train.micro_batch_size, *precision);
        let on = format!("`{}` on {} {}", run.trial, run.device, precision.name());
        if refusal.is_some() {
            continue;
        }
        sink(Progress::Step(&format!("probing {on}")));
        match prober.calibrate(&run, sink) {
            Ok(_) => {}
            Err(NotMeasured::Stopped) => {
                let message = "stopped: earlier measurements are kept";
                return Err(Error::Interrupted(message.into()));
            }
            Err(reason) => {
                sink(Progress::Note(&format!("{on} is not measured: {reason}")));
            }
        }
    }
    Ok(())
}

/// The precisions of the run's device; that of the run if the device is not available.
fn precisions(run: &RunPlan, inventory: &Inventory) -> Vec<Precision> {
    let mut devices = inventory.found();
    let device = devices.find(|(device, _)| *device == run.device);
    let mut there = device.map_or(Vec::new(), |(_, found)| found.precisions.clone());
    if !there.contains(&run.precision) {
        there.insert(0, run.precision);
    }
    there
}

/// Why the file is invalid in another precision; none if it is valid, or if the precision is an axis, in which case
/// this trial cannot tell.
fn refusal(
    experiment: &Experiment,
    planned: &Planned,
    run: &RunPlan,
    precision: Precision,
) -> Option<String> {
    let key = "backend.precision";
    if precision == run.precision || planned.plan.axes.iter().any(|axis| axis == key) {
        return None;
    }
    let mut other = experiment.clone();
    other.set.push(format!("{key}=\"{}\"", precision.name()));
    let document = open(&other).ok()?;
    let refused = plan_document(&other, &document, false, &super::quiet).err()?;
    let mut errors = refused
        .0
        .into_iter()
        .filter(|d| d.severity == Severity::Error);
    errors.next().map(|error| error.message)
}

/// The memory of a run.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The run as in the file.
    pub run: RunPlan,
    /// Its memory limit, if known.
    pub room: Option<Room>,
    /// Precisions in which the file is invalid, with the reason.
    pub refused: Vec<(Precision, String)>,
    /// Batch sizes in ascending order, each with its precisions.
    pub rows: Vec<Vec<Cell>>,
    /// The memory of the run as in the file.
    pub own: Cell,
    /// Remedies if it does not fit, in the order in which to try them.
    pub advice: Vec<String>,
}

impl Budget {
    fn new(
        run: &RunPlan,
        batch_sizes: &[usize],
        precisions: &[(Precision, Option<String>)],
        calibrations: &Calibrations,
        inventory: &Inventory,
    ) -> Self {
        let items = run.train.micro_batch_size;
        let mut sizes = if !batch_sizes.is_empty() {
            batch_sizes.to_vec()
        } else {
            vec![items / 4, items / 2, items, items * 2, items * 4]
        };
        sizes.retain(|items| *items > 0);
        sizes.sort_unstable();
        sizes.dedup();
        let room = run.room(there(run, inventory));
        let correction =
            |precision: Precision| calibrations.correction(&run.in_batches(items, precision));
        let cell = |items: usize, precision: Precision, refused: bool, correction: Option<f64>| {
            let expected = calibrations.expected(&run.in_batches(items, precision), correction);
            let verdict = room.map(|room| Verdict::of(expected.bytes, room.bytes));
            Cell {
                items,
                precision,
                bytes: expected.bytes,
                basis: expected.basis,
                verdict: if refused {
                    Some(Verdict::Refused)
                } else {
                    verdict
                },
            }
        };
        let columns: Vec<_> = precisions
            .iter()
            .map(|(precision, refusal)| (*precision, refusal.is_some(), correction(*precision)))
            .collect();
        let row = |items: &usize| {
            let cells = columns.iter();
            cells
                .map(|(precision, refused, correction)| {
                    cell(*items, *precision, *refused, *correction)
                })
                .collect()
        };
        let correction = correction(run.precision);
        let own = cell(items, run.precision, false, correction);
        let advice = match (&room, own.verdict) {
            (Some(room), Some(Verdict::TooLarge)) => advice(run, correction, room.bytes),
            _ => Vec::new(),
        };
        let refused = precisions
            .iter()
            .filter_map(|(precision, refusal)| Some((*precision, refusal.clone()?)));
        Self {
            run: run.clone(),
            room,
            refused: refused.collect(),
            rows: sizes.iter().map(row).collect(),
            own,
            advice,
        }
    }
}

/// The memory of the run's device in bytes, if known.
fn there(run: &RunPlan, inventory: &Inventory) -> Option<u64> {
    let mut devices = inventory.found();
    let device = devices.find(|(device, _)| *device == run.device);
    match device {
        Some((_, found)) if found.memory_of() != HOST => found.memory_bytes,
        None if !run.device.backend.is_host() => None,
        _ => Some(total_memory()).filter(|bytes| *bytes > 0),
    }
}
