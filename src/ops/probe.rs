//! Memory probes: a run trained for a few steps in a separate process, with two batch sizes.

use std::fmt;
use std::io;
use std::sync::mpsc;

use super::program::{build_argument, num_cores};
use super::scratch::Scratch;
use super::{Program, Progress, Sink};
use crate::dispatch::{self, Cancel, Hardware, Observed, Settings, Task, Urgency};
use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::event::{Event, FailureClass, MemoryPeak, Outcome};
use runner_core::plan::{Calibration, Probe, Relief, Room, RunPlan};
use runner_core::record::{Calibrations, RunFolder, cache_folder};
use runner_core::show::show_bytes;
use runner_core::spec::section::Choice;

/// Multiply-adds of a probe, some seconds of processor time: a small network is therefore probed over many epochs, in
/// each of which the allocator keeps a little more.
const MULTIPLY_ADDS: u64 = 20_000_000_000;

/// Minimum and maximum number of updates of a probe.
const UPDATES: (u64, u64) = (96, 2000);

/// Minimum number of updates per epoch of a probe, if the run has as many.
const STEPS_PER_EPOCH: usize = 6;

/// How often each batch is probed on the host, where checkpoints are written during training and their buffers may or
/// may not coincide with its peak. The largest counts.
const REPEATS_ON_HOST: usize = 2;

/// The calibrations of this program on this machine.
pub(crate) fn calibrations(program: &Program) -> Calibrations {
    let program = program.path.clone().unwrap_or_default();
    Calibrations::new(&cache_folder(), &program)
}

/// Makes probes.
pub(super) struct Prober<'a> {
    /// The program that trains them.
    pub(super) program: &'a Program,
    /// The folder of measurements.
    pub(super) calibrations: &'a Calibrations,
    /// The hardware of the measurements.
    pub(super) hardware: &'a Hardware,
    /// Ends them.
    pub(super) cancel: &'a Cancel,
}

/// Why nothing was measured.
#[derive(Debug)]
pub(super) enum NotMeasured {
    /// The user stopped it.
    Stopped,
    /// The run cannot be trained here.
    Skipped(String),
    /// This system does not report the memory of a process.
    Unknown,
    /// The probe does not fit according to its forecast.
    TooLarge {
        items: usize,
        counted: u64,
        room: Room,
    },
    /// The probe cannot be started.
    NotStarted(io::Error),
    /// The probe cannot be dispatched.
    NotDispatched(Error),
    /// The probe failed.
    Failed {
        items: usize,
        class: FailureClass,
        message: String,
    },
    /// The probe did not report its memory.
    Silent,
}

impl fmt::Display for NotMeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("it was stopped"),
            Self::Skipped(reason) => f.write_str(reason),
            Self::Unknown => f.write_str("this system does not report the memory of a process"),
            Self::TooLarge {
                items,
                counted,
                room,
            } => write!(
                f,
                "a probe with {items} items at a time would hold {} as counted, and {}: it was skipped",
                show_bytes(*counted),
                room.in_words()
            ),
            Self::NotStarted(e) => write!(f, "cannot start a probe: {e}"),
            Self::NotDispatched(e) => write!(f, "{e}"),
            Self::Failed {
                items,
                class,
                message,
            } => write!(
                f,
                "a probe with {items} items at a time failed ({}): {message}",
                class.name()
            ),
            Self::Silent => f.write_str("a probe did not report its memory"),
        }
    }
}

impl Prober<'_> {
    /// Measures a run with its own batch and with half of it, and saves the result.
    pub(super) fn calibrate(
        &self,
        run: &RunPlan,
        sink: &Sink<'_>,
    ) -> Result<Calibration, NotMeasured> {
        if let Some(reason) = &run.skip {
            return Err(NotMeasured::Skipped(reason.clone()));
        }
        let items = run.train.micro_batch_size;
        let other = if items > 1 { items / 2 } else { 2 };
        let repeats = if run.device.backend.is_host() {
            REPEATS_ON_HOST
        } else {
            1
        };
        let mut probes = Vec::new();
        for items in [items, other] {
            let probed = probed(run, items);
            self.dare(&probed)?;
            let mut bytes = 0;
            for _ in 0..repeats {
                bytes = self.probe(&probed)?.bytes().max(bytes);
            }
            if bytes == 0 {
                return Err(NotMeasured::Unknown);
            }
            probes.push(Probe {
                items,
                bytes,
                kept: probed.forecast.kept,
                counted: probed.forecast.without_kept(),
            });
        }
        let key = self.calibrations.key(run);
        let calibration = Calibration::new(key, [probes[0], probes[1]]);
        if let Err(e) = self.calibrations.keep(&calibration) {
            sink(Progress::Note(&format!(
                "the measurement applies to this command only, since it cannot be saved: {e}; set XDG_CACHE_HOME to a folder that can be written"
            )));
        }
        Ok(calibration)
    }

    /// The memory limit of a probe: all available memory.
    fn room(&self, run: &RunPlan) -> Option<Room> {
        let unlimited = RunPlan {
            memory_limit_bytes: None,
            ..run.clone()
        };
        self.hardware.room(&unlimited)
    }

    /// A probe that is counted to need more is skipped.
    fn dare(&self, run: &RunPlan) -> Result<(), NotMeasured> {
        let room = self.room(run);
        match room.filter(|room| run.forecast.total() > room.bytes) {
            None => Ok(()),
            Some(room) => Err(NotMeasured::TooLarge {
                items: run.train.micro_batch_size,
                counted: run.forecast.total(),
                room,
            }),
        }
    }

    /// The peak memory of a run that is trained in a separate folder.
    fn probe(&self, run: &RunPlan) -> Result<MemoryPeak, NotMeasured> {
        if self.cancel.urgency() != Urgency::None {
            return Err(NotMeasured::Stopped);
        }
        let program = self.program.find().map_err(NotMeasured::NotDispatched)?;
        let place = Scratch::new().map_err(NotMeasured::NotStarted)?;
        let folder = RunFolder(place.path().join("run"));
        folder.write_plan(run).map_err(NotMeasured::NotStarted)?;
        let mut arguments = vec!["--probe".to_owned()];
        arguments.extend(build_argument());
        if let Some(room) = self.room(run) {
            arguments.extend(["--probe-limit".to_owned(), room.bytes.to_string()]);
        }
        let task = Task {
            shown: None,
            plan: run.clone(),
            folder: folder.0.clone(),
            log: folder.run_log(),
            arguments,
            attempts: Default::default(),
        };
        let settings = Settings {
            program: program.to_owned(),
            jobs: 1,
            threads: num_cores(),
            hardware: Hardware::unknown(),
            time_limit: None,
        };
        let (sender, receiver) = mpsc::channel::<Observed>();
        let internal = |e: dispatch::NoSlots| {
            NotMeasured::NotDispatched(Error::refused(Diagnostic::error("internal", e.to_string())))
        };
        dispatch::dispatch(&[task], &settings, self.cancel, sender).map_err(internal)?;
        if self.cancel.urgency() != Urgency::None {
            return Err(NotMeasured::Stopped);
        }
        let (mut peak, mut failure) = (None, None);
        for Observed { event, .. } in receiver {
            match event {
                Event::MemoryMeasured(measured) => peak = Some(measured),
                Event::RunFinished {
                    outcome: Outcome::Failed { class, message, .. },
                    ..
                } => failure = Some((class, message)),
                _ => {}
            }
        }
        match (peak, failure) {
            // The memory does not depend on the values.
            (Some(peak), None | Some((FailureClass::NotFinite, _))) => Ok(peak),
            (_, Some((class, message))) => Err(NotMeasured::Failed {
                items: run.train.micro_batch_size,
                class,
                message,
            }),
            (None, None) => Err(NotMeasured::Silent),
        }
    }
}

/// The same work for a few steps, without anything that could end it early. The limit stays in the plan, since it
/// determines what is kept on the device; the worker is told to ignore it.
fn probed(run: &RunPlan, items: usize) -> RunPlan {
    let mut probe = run.in_batches(items, run.precision);
    let per_item = run.network.multiply_adds_per_item.saturating_mul(3);
    let per_update = per_item.saturating_mul(probe.train.batch_size as u64);
    let updates = (MULTIPLY_ADDS / per_update.max(1)).clamp(UPDATES.0, UPDATES.1) as usize;
    probe.train.epochs = run.train.epochs.min(updates / STEPS_PER_EPOCH);
    probe.train.early_stopping = None;
    let steps = updates.div_ceil(probe.train.epochs);
    probe.steps_per_epoch = probe.steps_per_epoch.min(steps);
    probe.time_limit_secs = None;
    probe.on_failure.clear();
    probe.on_exceed = Relief::default();
    probe.with_fingerprint()
}
