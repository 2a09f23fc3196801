//! The calibrations of this machine, in the user's cache folder: small JSON files, named by key. All of them may be
//! removed; they are measured again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::{Value as Json, json};
use sysinfo::System;

use super::seal::{FIRST_SEALED, check_seal};
use super::{unwritable, write_json};
use crate::plan::{Calibration, Expected, RunPlan};
use crate::spec::backend::compiled;
use crate::spec::plain_file;

/// The calibrations for one build on one machine.
pub struct Calibrations {
    folder: PathBuf,
    place: Json,
    /// The measurements of this process, which also apply if nothing can be written.
    fresh: RefCell<BTreeMap<String, Calibration>>,
    /// The last used keys: the runs of a sweep usually share one.
    last: RefCell<Option<(RunPlan, String)>>,
}

impl Calibrations {
    /// Those in a cache folder, for the build `program`.
    pub fn new(cache: &Path, program: &Path) -> Self {
        let file = fs::metadata(program);
        let changed = file.as_ref().ok().and_then(|file| file.modified().ok());
        let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let mut system = System::new().ok();
        if let Some(system) = &mut system {
            system.refresh_cpu_list(sysinfo::CpuRefreshKind::nothing());
        }
        let cpu = system.and_then(|s| Some(s.cpus().first()?.brand().to_owned()));
        Self {
            folder: cache.join("memory"),
            place: json!({
                "runner": env!("CARGO_PKG_VERSION"),
                "backends": compiled(),
                "program": [
                    file.map_or(0, |file| file.len()),
                    changed.map_or(0, |time| time.as_nanos() as u64),
                ],
                "host": System::host_name().unwrap_or_default(),
                "cpu": cpu,
            }),
            fresh: RefCell::default(),
            last: RefCell::default(),
        }
    }

    /// Everything that determines the memory of a run on this machine.
    pub fn key(&self, run: &RunPlan) -> String {
        let is_same = |known: &RunPlan| {
            // The inputs of `RunPlan::memory_key`.
            (known.device, known.precision) == (run.device, run.precision)
                && known.network == run.network
                && known.optimizer == run.optimizer
                && known.train == run.train
                && known.data == run.data
                && (&known.task, &known.loss, &known.losses) == (&run.task, &run.loss, &run.losses)
        };
        if let Some((known, key)) = &*self.last.borrow()
            && is_same(known)
        {
            return key.clone();
        }
        let key = run.memory_key(&self.place);
        *self.last.borrow_mut() = Some((run.clone(), key.clone()));
        key
    }

    /// The measurements of similar runs, if they apply to its batch. An unreadable or invalid file counts as missing.
    pub fn find(&self, run: &RunPlan) -> Option<Calibration> {
        if !self.folder.is_dir() && self.fresh.borrow().is_empty() {
            return None;
        }
        let key = self.key(run);
        let fresh = self.fresh.borrow().get(&key).cloned();
        let calibration = match fresh {
            Some(calibration) => calibration,
            None => {
                let path = self.path(&key);
                let text = plain_file::read_text(&path).ok()?;
                // The available memory determines how a run is computed: a damaged number must not.
                check_seal(&path, &text, FIRST_SEALED.into()).ok()?;
                serde_json::from_str(&text).ok()?
            }
        };
        let is_good = calibration.is_sound(&key) && calibration.covers(run.train.micro_batch_size);
        is_good.then_some(calibration)
    }

    /// The memory of a run: as measured for such runs, otherwise as counted, times the correction if there is one.
    pub fn expected(&self, run: &RunPlan, correction: Option<f64>) -> Expected {
        match self.find(run) {
            Some(calibration) => calibration.expected(run),
            None => Expected::unmeasured(run, correction),
        }
    }

    /// The correction from runs that differ only in their batch, if measured.
    pub fn correction(&self, run: &RunPlan) -> Option<f64> {
        Some(self.find(run)?.correction(run))
    }

    /// Saves a calibration, at least for the lifetime of this process.
    pub fn keep(&self, calibration: &Calibration) -> io::Result<()> {
        let fresh = calibration.clone();
        self.fresh.borrow_mut().insert(fresh.key.clone(), fresh);
        let path = self.path(&calibration.key);
        write_json(&path, calibration).map_err(|e| unwritable(&path, e))
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}
