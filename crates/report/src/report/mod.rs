//! Reports: records in, text out. Rebuilt from disk at any time, without a backend.

mod aggregate;
mod answer;
pub mod assessment;
mod backends;
mod brief;
pub mod compare;
mod confirmed;
mod csv;
mod curves;
mod effects;
mod escaped;
mod evaluation;
mod folds;
mod html;
mod infeasible;
mod judge;
pub mod list;
mod looks;
mod markdown;
mod memory;
mod mixture;
mod model;
mod norms;
mod numbers;
pub mod plot;
mod population;
mod prospect;
mod rank;
mod sample;
mod searched;
mod sections;
mod separation;
mod steps;
mod table;
mod tradeoffs;
mod unbeaten;
mod varied;
mod verdict;
mod weights;

pub use aggregate::{aggregate, of_all_metrics};
pub use backends::{Against, OnBackend};
pub use brief::Brief;
pub use confirmed::Confirmed;
pub use csv::csv;
pub use curves::{Band, Curve, CurvePoint, Curves, TrialCurves};
pub use evaluation::Selected;
pub use html::{TEMPLATE, TemplateError, html};
pub use infeasible::Violated;
pub use looks::{Looking, looks_before};
pub use markdown::markdown;
pub use mixture::{Differing, Having, SameData};
pub use model::{AxisEffect, Baseline, Problem, Provenance, Report, Trial, Unbeaten};
pub use norms::{Norms, ParameterNorms};
pub use numbers::{short_number, value_text};
pub use population::{Copied, PopulationReport, Segment};
pub use prospect::{Prospect, Spread};
pub use sample::{ALPHA, CONFIDENCE, Sample, direction};
pub use searched::{Improvement, Pruning, Rung, Searched};
pub use steps::StepPoint;
pub use table::{footnotes, table};
pub use verdict::in_words;
pub use weights::SelectedWeights;

use std::io;

use serde_json::{Map, Value as Json};

use runner_core::diagnostic::counted;
use runner_core::plan::quoted;
use runner_core::record::{
    ExperimentFolder, Index, Look, State, leftovers, unwritable, write_json, write_whole,
};

/// Reads an experiment's folder, and writes nothing there except the cached index. `None` if the folder has no plan.
pub fn read(folder: &ExperimentFolder) -> io::Result<Option<Report>> {
    let index = Index::read(folder)?;
    let mut report = index.map(|index| sum_up(&index, folder));
    // Queued runs need not be queried again.
    if let Some(report) = report.as_mut().filter(|_| folder.is_in_use()) {
        let problems = report.problems.iter_mut();
        for problem in problems.filter(|problem| problem.outcome == State::NotStarted) {
            problem.message = "queued behind the current `runner run`".into();
        }
    }
    Ok(report)
}

/// Reads an experiment's folder in memory.
pub fn in_memory(folder: &ExperimentFolder) -> io::Result<Option<Report>> {
    let index = Index::in_memory(folder)?;
    Ok(index.map(|index| sum_up(&index, folder)))
}

/// Reads an experiment's folder and writes `report.json`, `report.csv`, `report.md` and `report.html` into it. `None`
/// if the folder has no plan.
pub fn write(folder: &ExperimentFolder) -> io::Result<Option<Report>> {
    let Some(index) = Index::mend(folder)? else {
        return Ok(None);
    };
    let report = sum_up(&index, folder);
    if looks::is_over(&index) && report.has_tests() {
        // Verdicts are of the runs of a search, without those that confirm its best trials.
        let (searched, _) = confirmed::apart(&index);
        folder.record_look(Look::at(&searched.runs, index.plan.verdict.looks))?;
    }
    let named = |extension: &str, written: io::Result<()>| {
        written.map_err(|e| unwritable(&folder.report(extension), e))
    };
    named("json", write_json(&folder.report("json"), &report))?;
    let page = html(&report, None).map_err(io::Error::other)?;
    let texts = [
        ("csv", csv(&report)),
        ("md", markdown(&report)),
        ("html", page),
    ];
    for (extension, text) in texts {
        named(
            extension,
            write_whole(&folder.report(extension), text.as_bytes()),
        )?;
    }
    Ok(Some(report))
}

/// The report of an index, with data from outside it: curves, and the errors of the selected trial.
fn sum_up(index: &Index, folder: &ExperimentFolder) -> Report {
    let planned = index.runs.iter().map(|run| run.id.as_str());
    let mut report = aggregate(
        index,
        &folder.command(&index.plan),
        leftovers(planned, folder),
    );
    if index.plan.search.is_some() {
        report.commands = reproductions(index, folder);
    }
    let mut remarks = index.mended.clone();
    report.curves = Curves::read(&report, index, folder, &mut remarks);
    let num_earlier = folder
        .num_earlier(index)
        .saturating_sub(report.leftovers.len());
    if num_earlier > 0 {
        remarks.push(format!(
            "{} of earlier settings not counted here: `runner list {} --all` shows them",
            counted(num_earlier, "run"),
            quoted(&folder.0.display().to_string())
        ));
    }
    unbeaten::withdraw(&mut report, folder);
    report.evaluation = Selected::read(&report, index, folder, &mut remarks);
    report.weights = SelectedWeights::read(&report, index, folder, &mut remarks);
    report.remarks.extend(remarks);
    report
}

/// The commands that train runs of a search again and compare them. Those that were not trained to their ends have no
/// result to compare.
fn reproductions(index: &Index, folder: &ExperimentFolder) -> Map<String, Json> {
    let completed = index.runs.iter();
    let completed = completed.filter(|run| run.state == State::Completed);
    let command = |id: &String| {
        let folder = folder.run(id).0;
        format!("runner reproduce {}", quoted(&folder.display().to_string()))
    };
    completed
        .map(|run| (run.id.clone(), Json::String(command(&run.id))))
        .collect()
}
