//! Reports: records in, text out. Rebuilt from disk at any time, without a backend.

mod aggregate;
mod backends;
pub mod compare;
mod csv;
mod markdown;
mod memory;
mod model;
mod numbers;
mod sample;
mod table;
mod verdict;

pub use aggregate::{aggregate, of_all_metrics};
pub use backends::{Against, OnBackend};
pub use csv::csv;
pub use markdown::markdown;
pub use model::{AxisEffect, Baseline, Problem, Provenance, Report, Trial};
pub use numbers::{short_number, value_text};
pub use sample::{ALPHA, CONFIDENCE, Sample, direction};
pub use table::{footnote, table};

use std::io;

use crate::record::{ExperimentFolder, Index, leftovers, unwritable, write_json, write_whole};

/// Reads an experiment's folder and writes `report.json`, `report.csv` and `report.md` into it. `None`
/// when the folder has no plan.
pub fn write(folder: &ExperimentFolder) -> io::Result<Option<Report>> {
    let Some(index) = Index::mend(folder)? else {
        return Ok(None);
    };
    let planned = index.runs.iter().map(|run| run.id.as_str());
    let report = aggregate(&index, leftovers(planned, folder));
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
