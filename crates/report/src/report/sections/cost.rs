//! Time and memory.

use super::{Section, dash, head};
use crate::report::backends::rows as backend_rows;
use crate::report::memory as measured;
use crate::report::model::Report;
use crate::report::numbers::{mean_and_sd, short_number};
use crate::report::table::head_of;
use runner_core::spec::backend::Precision;
use runner_core::spec::section::Choice;

/// The costs of trials.
pub fn cost(report: &Report) -> Option<Section> {
    let timed = report
        .trials
        .iter()
        .filter(|trial| trial.wall_secs.is_some());
    let number = |secs: Option<f64>| secs.map_or_else(dash, short_number);
    let rows = timed.map(|trial| {
        let objective = report.objective_of(trial);
        vec![
            trial.id.clone(),
            objective.map_or_else(dash, |sample| mean_and_sd(&sample.description)),
            number(trial.wall_secs),
            number(trial.epoch_secs),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    let objective = head_of(report, &report.objective);
    let names = head(["trial", &objective, "s/run", "s/epoch"]);
    let section = Section::new("cost", "Time");
    (!rows.is_empty()).then(|| {
        section.table(names, rows).note(
            "Seconds of wall time: the mean of a run, and of the training of an epoch without validation (the median epoch of each run). Concurrent runs slow each other down.",
        )
    })
}

/// The same trials on several backends.
pub fn backends(report: &Report) -> Option<Section> {
    if report.backends.is_empty() {
        return None;
    }
    let table = backend_rows(&report.backends, &report.objective);
    let f64 = Precision::F64.name();
    let but = if report.trials.iter().any(|trial| trial.precision == f64) {
        ", except for those in f64, which sample their own"
    } else {
        ""
    };
    Some(Section::new("backends", "By backend").columns(table).note(format!(
        "Each trial compared with the same trial on its first backend: the difference of the means with its verdict, the speedup of an epoch's training (the median epoch of each run, without validation), and the ratio of peak memory, of the process on the CPU and of the device's pool on a GPU. All of them use the same batches and start with the same weights{but}.",
    )))
}

/// The memory of the trials.
pub fn memory(report: &Report) -> Option<Section> {
    let used = report.trials.iter();
    let used: Vec<_> = used
        .filter_map(|trial| Some((&trial.id, trial.memory.as_ref()?)))
        .collect();
    let of_cards = used
        .iter()
        .any(|(_, memory)| memory.measured.card_bytes.is_some());
    let rows = used
        .iter()
        .map(|(trial, memory)| [vec![(*trial).clone()], measured::row(memory, of_cards)].concat());
    let rows: Vec<Vec<String>> = rows.collect();
    let names = [vec!["trial"], measured::names(of_cards)].concat();
    let names = names.into_iter().map(str::to_owned).collect();
    (!rows.is_empty()).then(|| {
        let card = if of_cards { ", and of the whole GPU, all processes included, as reported by its driver" } else { "" };
        Section::new("memory", "Memory").table(names, rows).note(format!(
            "The peak over a trial's runs: as computed from shapes, as predicted from measurements (`runner memory --calibrate`), and as measured. Measured are the process without mapped files, and the bytes in use and reserved in the device's pool (on the CPU, of the process){card}. The error is that of the better forecast relative to the reserved bytes.",
        ))
    })
}
