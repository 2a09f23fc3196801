//! Writing `plan.json` again and again, as a search does in each of its rounds: the text of a run is kept, so that only
//! runs that may have changed are formatted.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::seal;
use super::write::{unwritable, write_synced};
use super::{ExperimentFolder, in_parallel};
use crate::plan::{Plan, RunPlan};

/// The key of the runs, which is the last one, without any.
const NO_RUNS: &str = "\"runs\": []\n}";

/// What is known of the text of a `plan.json`.
#[derive(Debug, Default)]
pub struct PlanFile {
    /// The text of each run, by its id, as it is in the file.
    runs: BTreeMap<String, String>,
}

impl PlanFile {
    /// Writes a plan, of which only these runs may differ from the plan before. Returns when it is on disk.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(
        &mut self,
        folder: &ExperimentFolder,
        plan: &Plan,
        changed: &BTreeSet<&str>,
    ) -> io::Result<()> {
        let text = self.text(plan, changed).map_err(io::Error::other)?;
        let path = folder.plan_json();
        write_synced(&path, seal::json(text).as_bytes()).map_err(|e| unwritable(&path, e))
    }

    /// The text, as a serializer would write all of it, without its seal.
    fn text(&mut self, plan: &Plan, changed: &BTreeSet<&str>) -> serde_json::Result<String> {
        let head = serde_json::to_string_pretty(&plan.without_runs())?;
        let Some(head) = head.strip_suffix(NO_RUNS).filter(|_| !plan.runs.is_empty()) else {
            return Ok(head + "\n");
        };
        let is_new =
            |run: &&RunPlan| changed.contains(run.id.as_str()) || !self.runs.contains_key(&run.id);
        let new: Vec<&RunPlan> = plan.runs.iter().filter(is_new).collect();
        let texts = in_parallel(&new, |run| nested(run));
        for (run, text) in new.into_iter().zip(texts) {
            self.runs.insert(run.id.clone(), text?);
        }
        let length: usize = self.runs.values().map(|text| text.len() + 6).sum();
        // With room for the seal.
        let mut text = String::with_capacity(head.len() + length + 100);
        text.push_str(head);
        text.push_str("\"runs\": [");
        let mut before = "\n    ";
        for run in &plan.runs {
            text.push_str(before);
            before = ",\n    ";
            text.push_str(self.runs.get(&run.id).map_or("", String::as_str));
        }
        text.push_str("\n  ]\n}\n");
        Ok(text)
    }
}

/// The text of a run as it is in the list of the plan's runs.
fn nested(run: &RunPlan) -> serde_json::Result<String> {
    let mut formatter = PrettyFormatter::new();
    for _ in 0..2 {
        // As deep as within the brackets of the plan and of the list.
        let begun = formatter.begin_array(&mut io::sink());
        begun.map_err(serde_json::Error::io)?;
    }
    let mut text = Vec::new();
    run.serialize(&mut Serializer::with_formatter(&mut text, formatter))?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}
