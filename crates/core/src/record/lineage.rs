//! What a copy of population-based training begins as: the plans of the runs that it continues, in its own folder, so
//! that it can be reproduced and packed without the others.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::damage::damaged;
use super::{RunFolder, format, name, run_folder::run_toml, unwritable, write_whole};
use crate::plan::RunPlan;

/// The folder of the plans, below that of a run.
const FOLDER: &str = "lineage";
/// More runs than a training has epochs.
const MAX_RUNS: usize = 100_000;

impl RunFolder {
    /// The plans of the runs that it begins as copies of.
    pub fn lineage(&self) -> PathBuf {
        self.0.join(FOLDER)
    }

    fn lineage_toml(&self, number: usize) -> PathBuf {
        self.lineage().join(format!("{number}.toml"))
    }

    /// Writes the plans of the runs that it begins as copies of, the oldest first.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub fn write_lineage(&self, lineage: &[&RunPlan]) -> io::Result<()> {
        if lineage.is_empty() {
            return Ok(());
        }
        self.check_links()?;
        let folder = self.lineage();
        fs::create_dir_all(&folder).map_err(|e| unwritable(&folder, e))?;
        for (at, plan) in lineage.iter().enumerate() {
            let path = self.lineage_toml(at + 1);
            let text = run_toml(plan)?;
            write_whole(&path, text.as_bytes()).map_err(|e| unwritable(&path, e))?;
        }
        // What follows the last one would be read as another one.
        let path = self.lineage_toml(lineage.len() + 1);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(unwritable(&path, e)),
            _ => Ok(()),
        }
    }

    /// The plans of the runs that a run begins as copies of, the oldest first; none if it begins by itself. Each must be
    /// the one that the next one names, by the fingerprint of its settings.
    ///
    /// # Errors
    ///
    /// If one is missing, or is not that run.
    pub fn read_lineage(&self, plan: &RunPlan) -> io::Result<Vec<RunPlan>> {
        let mut lineage: Vec<RunPlan> = Vec::new();
        if plan.fork.is_none() {
            return Ok(lineage);
        }
        while lineage.len() < MAX_RUNS {
            let path = self.lineage_toml(lineage.len() + 1);
            let read: Option<RunPlan> = format::read_toml(&path)?;
            let Some(read) = read else {
                break;
            };
            name::check_run(&path, &read)?;
            lineage.push(read);
        }
        let mut next = plan;
        for (at, before) in lineage.iter().enumerate().rev() {
            let is_it = next.fork.as_ref().is_some_and(|fork| {
                let first = before.fork.as_ref().map_or(0, |fork| fork.epoch);
                fork.run == before.id
                    && fork.fingerprint == before.fingerprint
                    && (first + 1..before.train.epochs).contains(&fork.epoch)
                    && before.is_as_fingerprinted()
            });
            if !is_it {
                let reason = format!("it is not the run that `{}` begins as a copy of", next.id);
                return Err(damaged(&self.lineage_toml(at + 1), reason));
            }
            next = before;
        }
        if let Some(fork) = &next.fork {
            let reason = format!(
                "`{}` does not have the plan of `{}`, which `{}` begins as a copy of",
                self.lineage().display(),
                fork.run,
                next.id
            );
            return Err(io::Error::other(reason));
        }
        Ok(lineage)
    }
}
