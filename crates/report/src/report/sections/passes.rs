//! What trainings that predict updates computed.

use super::{Section, dash, head};
use crate::report::model::{Report, Trial};
use crate::report::numbers::short_number;

/// The counters in the order of the table: the name of the metric, and the heading.
const COUNTERS: [(&str, &str); 7] = [
    ("forwards", "forwards"),
    ("backwards", "backwards"),
    ("probe_forwards", "probe forwards"),
    ("predicted_updates", "predicted updates"),
    ("rolled_back_updates", "rolled back"),
    ("predictions", "predictions"),
    ("rejected_predictions", "rejected"),
];

/// Passes and updates of the trials that predict updates.
pub fn passes(report: &Report) -> Option<Section> {
    let mean = |trial: &Trial, counter: &str| {
        let sample = trial.metrics.get(&format!("last/train/{counter}"));
        sample.map(|sample| sample.description.mean)
    };
    let counted = report.trials.iter();
    let counted = counted.filter(|trial| mean(trial, "predicted_updates").is_some());
    let rows = counted.map(|trial| {
        let cells = COUNTERS.iter();
        let cells = cells.map(|(name, _)| mean(trial, name).map_or_else(dash, short_number));
        [trial.id.clone()].into_iter().chain(cells).collect()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let names: Vec<&str> = COUNTERS.iter().map(|(_, title)| *title).collect();
    (!rows.is_empty()).then(|| {
        Section::new("passes", "Passes and predicted updates")
            .table(head_of_trials(&names), rows)
            .note("Means over the runs of a trial, at the end of the training: forward and backward passes over batches of the train split, forward passes over batches of the probe, predicted updates and those that were rolled back, predictions and those that ended with a rollback. The other trials compute a forward pass, a backward pass and an update in each step.")
    })
}

fn head_of_trials(names: &[&str]) -> Vec<String> {
    head(["trial"])
        .into_iter()
        .chain(names.iter().map(|name| (*name).to_owned()))
        .collect()
}
