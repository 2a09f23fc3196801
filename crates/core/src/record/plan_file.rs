//! Writing `plan.json` again and again, as a search does in each of its rounds: the text of a run is kept, so that only
//! runs that may have changed are formatted.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::ExperimentFolder;
use super::seal;
use super::write::{unwritable, write_synced};
use crate::plan::Plan;

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
        let mut text = head.to_owned() + "\"runs\": [";
        let mut before = "\n    ";
        for run in &plan.runs {
            text.push_str(before);
            before = ",\n    ";
            match self.runs.get(&run.id) {
                Some(known) if !changed.contains(run.id.as_str()) => text.push_str(known),
                _ => {
                    // Line breaks within texts are escaped.
                    let new = serde_json::to_string_pretty(run)?.replace('\n', "\n    ");
                    text.push_str(&new);
                    self.runs.insert(run.id.clone(), new);
                }
            }
        }
        text.push_str("\n  ]\n}\n");
        Ok(text)
    }
}
