//! Reports: records in, text out. Rebuilt from disk at any time, without a backend.

mod aggregate;
mod text;

pub use aggregate::{DataUsed, Mean, Problem, Provenance, Report, Trial, aggregate};
pub use text::{csv, footnote, markdown, short_number, table};

use std::io;

use crate::record::{ExperimentFolder, write_json, write_whole};

/// Reads an experiment's folder and writes `report.json`, `report.csv` and `report.md` into it. `None`
/// when the folder has no plan.
pub fn write(folder: &ExperimentFolder) -> io::Result<Option<Report>> {
    let Some(plan) = folder.read_plan()? else {
        return Ok(None);
    };
    let report = aggregate(&plan, folder)?;
    write_json(&folder.report("json"), &report)?;
    write_whole(&folder.report("csv"), csv(&report).as_bytes())?;
    write_whole(&folder.report("md"), markdown(&report).as_bytes())?;
    Ok(Some(report))
}
