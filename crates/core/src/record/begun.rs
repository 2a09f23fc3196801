//! Which runs of an experiment have begun. A run has no folder before that, and an experiment may have very many runs: the
//! folder of all of them is listed once, instead of looking for the files of each.

use std::collections::BTreeSet;
use std::io;

use super::{ExperimentFolder, RunFolder};
use crate::disk;
use crate::plan::RunPlan;

/// The runs with a folder when it was listed; all of them if that failed.
#[derive(Debug)]
pub struct Begun(Option<BTreeSet<String>>);

impl ExperimentFolder {
    /// Lists the runs that have begun.
    pub fn begun(&self) -> Begun {
        let list = || -> io::Result<BTreeSet<String>> {
            let mut ids = BTreeSet::new();
            for entry in disk::read_dir(self.runs())? {
                ids.extend(entry?.file_name().into_string());
            }
            Ok(ids)
        };
        Begun(match list() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Some(BTreeSet::new()),
            listed => listed.ok(),
        })
    }
}

impl Begun {
    /// Whether a run may have a folder.
    pub fn may_have(&self, run: &str) -> bool {
        // Some file systems list other characters than those that a name was created with.
        let is_listed = |ids: &BTreeSet<String>| ids.contains(run) || !run.is_ascii();
        self.0.as_ref().is_none_or(is_listed)
    }
}

impl RunFolder {
    /// Lets a run begin, unless it has.
    pub fn begin(&self, plan: &RunPlan) -> io::Result<()> {
        if self.run_toml().exists() {
            return Ok(());
        }
        self.write_plan(plan)
    }

    /// Reads the run; one that has not begun from the plan of its experiment.
    pub fn read_planned(&self) -> io::Result<Option<RunPlan>> {
        if let Some(plan) = self.read_plan()? {
            return Ok(Some(plan));
        }
        let experiment = ExperimentFolder::of_run(&self.0);
        let (Some(experiment), Some(id)) = (experiment, self.0.file_name()) else {
            return Ok(None);
        };
        let plan = experiment.read_plan()?;
        let mut runs = plan.into_iter().flat_map(|plan| plan.runs);
        Ok(runs.find(|run| id == run.id.as_str()))
    }

    /// Whether it is a run that is planned and has not begun.
    pub fn is_yet_to_begin(&self) -> bool {
        !self.run_toml().exists() && matches!(self.read_planned(), Ok(Some(_)))
    }
}
