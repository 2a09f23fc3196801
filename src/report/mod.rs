//! Reports: records in, text out. Rebuilt from disk at any time, without a backend.

mod aggregate;
mod backends;
mod memory;
mod text;

pub use aggregate::{DataUsed, Mean, Problem, Provenance, Report, Trial, aggregate};
pub use backends::{Against, OnBackend};
pub use memory::{TrialMemory, growth_in_words};
pub use text::{csv, footnote, markdown, short_number, table, value_text};

use std::io;

use crate::record::{ExperimentFolder, unwritable, write_json, write_whole};

/// Reads an experiment's folder and writes `report.json`, `report.csv` and `report.md` into it. `None`
/// when the folder has no plan.
pub fn write(folder: &ExperimentFolder) -> io::Result<Option<Report>> {
    let Some(plan) = folder.read_plan()? else {
        return Ok(None);
    };
    let report = aggregate(&plan, folder)?;
    let named = |extension: &str, written: io::Result<()>| {
        written.map_err(|e| unwritable(&folder.report(extension), e))
    };
    named("json", write_json(&folder.report("json"), &report))?;
    let texts = [("csv", csv(&report)), ("md", markdown(&report))];
    for (extension, text) in texts {
        named(
            extension,
            write_whole(&folder.report(extension), text.as_bytes()),
        )?;
    }
    Ok(Some(report))
}
