//! Passes over the runs of a tree, once or until nothing writes to it any more.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::ops::Sink;
use crate::ops::tree::{pass_over, pass_over_experiment};
use runner_core::plan::Plan;
use runner_core::record::ExperimentFolder;
use runner_report::export::Exported;

/// Interval between passes over a tree that is written to.
const EVERY: Duration = Duration::from_secs(2);

/// One or several passes over a tree.
pub struct Pass {
    folder: PathBuf,
    follow: bool,
    with_losses: bool,
    is_last: bool,
    /// Unreadable runs were reported in an earlier pass.
    is_told: bool,
    /// The last sizes of records, which only grow.
    seen: BTreeMap<PathBuf, u64>,
    /// Whether nothing was skipped because it is damaged.
    pub is_whole: bool,
}

impl Pass {
    /// Over the experiment of a folder, or those in it, with the losses of steps if requested.
    pub fn new(folder: PathBuf, follow: bool, with_losses: bool) -> Self {
        Self {
            folder,
            follow,
            with_losses,
            is_last: !follow,
            is_told: false,
            seen: BTreeMap::new(),
            is_whole: true,
        }
    }

    /// The experiments of the next pass. It is the last one if nothing writes to them before it begins.
    pub fn experiments(&mut self) -> Vec<ExperimentFolder> {
        let all = ExperimentFolder::all(&self.folder);
        self.is_last = !self.follow || !all.iter().any(ExperimentFolder::is_in_use);
        all
    }

    /// Reads an experiment's plan; an unreadable one is skipped with a message.
    pub fn plan(&mut self, experiment: &ExperimentFolder, sink: &Sink<'_>) -> Option<Plan> {
        experiment.read_plan().unwrap_or_else(|e| {
            if !self.is_told {
                self.is_whole &= !pass_over_experiment(&experiment.0, &e, sink);
            }
            None
        })
    }

    /// Visits each run of a plan with new content, and in the last pass all of them; unreadable ones are skipped with a
    /// message.
    pub fn each<E>(
        &mut self,
        experiment: &ExperimentFolder,
        plan: Plan,
        sink: &Sink<'_>,
        mut see: impl FnMut(&Exported) -> Result<(), E>,
    ) -> Result<(), E> {
        for run in plan.runs {
            let folder = experiment.run(&run.id);
            let size = fs::metadata(folder.events_jsonl()).map_or(0, |data| data.len());
            if !self.is_last && self.seen.get(&folder.0) == Some(&size) {
                continue;
            }
            match Exported::read(experiment, run, self.with_losses) {
                Ok(run) => see(&run)?,
                Err(e) if !self.is_told => {
                    self.is_whole &= !pass_over(&folder.0, &e, sink);
                }
                Err(_) => {}
            }
            self.seen.insert(folder.0, size);
        }
        Ok(())
    }

    /// Visits everything again in the next pass, since earlier results may be lost.
    pub fn forget(&mut self) {
        self.seen.clear();
    }

    /// Whether this is the last pass.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// A message is not repeated.
    pub fn be_told(&mut self) {
        self.is_told = true;
    }

    /// Waits for the next pass.
    pub fn wait(&mut self) {
        self.be_told();
        std::thread::sleep(EVERY);
    }
}
