//! Probes of memory: a run trained for a few steps in a process of its own, with two batch sizes.

use std::path::PathBuf;
use std::sync::mpsc;

use super::experiment::cache_folder;
use crate::dispatch::{self, Cancel, Hardware, Observed, Settings, Task};
use crate::event::{Event, MemoryPeak, Outcome};
use crate::plan::{Calibration, Probe, RunPlan};
use crate::record::{Calibrations, RunFolder};

/// Multiplications with addition that a probe is to take, some seconds of a processor's time: a small
/// network is so probed over many epochs, in each of which the allocator keeps a little more.
const MULTIPLY_ADDS: u64 = 20_000_000_000;

/// Updates of a probe, at least and at most.
const UPDATES: (u64, u64) = (96, 2000);

/// Updates in an epoch of a probe, at least, where the run has as many.
const STEPS_PER_EPOCH: usize = 6;

/// The calibrations of this program on this machine.
pub fn calibrations() -> Calibrations {
    let program = std::env::current_exe().unwrap_or_default();
    Calibrations::new(&cache_folder(), &program)
}

/// Measures a run with its own batch and with half of it, and keeps what comes of it. The error is a phrase.
pub fn calibrate(
    run: &RunPlan,
    threads: usize,
    calibrations: &Calibrations,
) -> Result<Calibration, String> {
    let items = run.train.micro_batch_size;
    let other = if items > 1 { items / 2 } else { 2 };
    let mut probes = Vec::new();
    for items in [items, other] {
        let peak = probe(&probed(run, items), threads)?;
        let bytes = peak.bytes();
        if bytes == 0 {
            return Err("this system does not say what a process holds".into());
        }
        probes.push(Probe { items, bytes });
    }
    let calibration = Calibration::new(calibrations.key(run), [probes[0], probes[1]]);
    let kept = calibrations.keep(&calibration);
    kept.map_err(|e| e.to_string())?;
    Ok(calibration)
}

/// The same work for a few steps, with nothing that could end it before.
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
    probe.with_fingerprint()
}

/// The most that a run holds that is made in a folder of its own.
fn probe(run: &RunPlan, threads: usize) -> Result<MemoryPeak, String> {
    let wrong = |e: std::io::Error| format!("cannot start a probe: {e}");
    let place = tempfile::tempdir().map_err(wrong)?;
    let folder = RunFolder(PathBuf::from(place.path()));
    folder.write_plan(run).map_err(wrong)?;
    let task = Task {
        plan: run.clone(),
        folder: folder.0.clone(),
        log: folder.run_log(),
        arguments: vec!["--probe".into()],
        attempts: Default::default(),
    };
    let settings = Settings {
        program: std::env::current_exe().map_err(wrong)?,
        jobs: 1,
        threads,
        hardware: Hardware::unknown(),
        time_limit: None,
    };
    let (sender, receiver) = mpsc::channel::<Observed>();
    dispatch::dispatch(&[task], &settings, &Cancel::default(), sender)?;
    let mut peak = None;
    for Observed { event, .. } in receiver {
        match event {
            Event::MemoryMeasured(measured) => peak = Some(measured),
            Event::RunFinished {
                outcome: Outcome::Failed { class, message, .. },
                ..
            } => {
                let items = run.train.micro_batch_size;
                let class = crate::spec::section::Choice::name(class);
                return Err(format!(
                    "a probe with {items} items at a time failed ({class}): {message}"
                ));
            }
            _ => {}
        }
    }
    peak.ok_or_else(|| "a probe did not say what it held".into())
}
