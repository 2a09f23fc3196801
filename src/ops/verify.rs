//! Checks before any training: the data is read once, and the memory of this machine is determined.

use super::Planned;
use crate::error::Error;
use runner_core::data::{self, DataPlan, Trust};
use runner_core::diagnostic::{Diagnostic, Diagnostics};
use runner_core::plan::{Forecast, RunPlan};
use runner_core::record::total_memory;
use runner_core::show::show_bytes;

/// Reads every data set once, so that a damaged one is refused before anything is written.
pub(crate) fn verify_data(planned: &Planned, trust: Trust) -> Result<(), Error> {
    let mut verified: Vec<&DataPlan> = Vec::new();
    for run in &planned.plan.runs {
        if verified.contains(&&run.data) {
            continue;
        }
        if let Err(error) = data::load_by(&run.data, trust, &|_, _| {}) {
            return Err(refused_at(planned, "data.type", error.to_diagnostic()));
        }
        verified.push(&run.data);
    }
    Ok(())
}

/// Refuses runs that certainly exceed the machine's memory, on devices that use it.
pub(crate) fn verify_memory(planned: &Planned) -> Result<(), Error> {
    let there = Some(total_memory()).filter(|there| *there > 0);
    // Of a trial, one run is enough, unless splits by seed have other sizes.
    let runs = planned
        .plan
        .runs
        .chunk_by(|a, b| a.trial == b.trial && a.data == b.data);
    let runs = runs.map(|same| &same[0]);
    let on_host = runs.filter(|run| run.device.backend.is_host());
    let too_large = |run: &RunPlan| {
        let least = Forecast::least_after(&run.demand(), &run.on_exceed.rungs)?;
        let room = run.room(there)?;
        (least > room.bytes).then_some((least, room))
    };
    let found = on_host
        .filter_map(|run| Some((run, too_large(run)?)))
        .next();
    let Some((run, (least, room))) = found else {
        return Ok(());
    };
    let message = format!(
        "run `{}` needs at least {}, but on this machine {}",
        run.id,
        show_bytes(least),
        room.in_words()
    );
    let diagnostic = Diagnostic::error("memory", message).help(format!(
        "{}; `runner memory` shows what would fit",
        room.remedy()
    ));
    Err(refused_at(planned, room.key(), diagnostic))
}

/// A refusal with the position of a key, if the file contains it.
fn refused_at(planned: &Planned, key: &str, mut diagnostic: Diagnostic) -> Error {
    let document = &planned.document;
    diagnostic.span = document.root.at(key).map(|entry| entry.node.span);
    Error::experiment(&document.sources, Diagnostics(vec![diagnostic]))
}
