//! The runs of an experiment in brief, with what many of them share.

use std::io;

use super::entry::{DataUsed, Read, RunEntry};
use super::{Environment, ExperimentFolder};
use crate::plan::Plan;

/// An experiment's plan and what became of its runs. Lists, reports and comparisons are made from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// The plan, without its runs.
    pub plan: Plan,
    /// The runs in the order of the plan.
    pub runs: Vec<RunEntry>,
    /// The data sets that they use.
    pub data: Vec<DataUsed>,
    /// Where they were computed, without clocks and digests of data.
    pub environments: Vec<Environment>,
}

impl Index {
    /// Reads an experiment's folder, and writes nothing. `None` when it has no plan.
    pub fn read(folder: &ExperimentFolder) -> io::Result<Option<Self>> {
        Self::build(folder, false)
    }

    /// Reads an experiment's folder, and writes anew what is derived in the folders of its runs and was lost, damaged
    /// or never written. `None` when it has no plan.
    pub fn mend(folder: &ExperimentFolder) -> io::Result<Option<Self>> {
        Self::build(folder, true)
    }

    fn build(folder: &ExperimentFolder, mend: bool) -> io::Result<Option<Self>> {
        let Some(mut plan) = folder.read_plan()? else {
            return Ok(None);
        };
        let runs = std::mem::take(&mut plan.runs);
        let mut index = Self {
            plan,
            runs: Vec::with_capacity(runs.len()),
            data: Vec::new(),
            environments: Vec::new(),
        };
        for run in &runs {
            index.push(Read::of(run, &folder.run(&run.id), mend));
        }
        Ok(Some(index))
    }

    fn push(&mut self, read: Read) {
        let mut entry = read.entry;
        let data = self.data.iter().position(|data| *data == read.data);
        entry.data = data.unwrap_or_else(|| {
            self.data.push(read.data);
            self.data.len() - 1
        });
        entry.environment = read.environment.map(|environment| {
            let known = self.environments.iter().position(|e| *e == environment);
            known.unwrap_or_else(|| {
                self.environments.push(environment);
                self.environments.len() - 1
            })
        });
        self.runs.push(entry);
    }
}
