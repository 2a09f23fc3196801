//! `runner memory`: what a run would hold with other batches and precisions, and whether that fits.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::json;

use super::calibrate::{NotMeasured, Prober, calibrations};
use super::experiment::{plan as plan_experiment, trial};
use super::output::Output;
use super::prepare::verify_data;
use super::run::{hardware_of, listen_for_signals};
use super::{INTERRUPTED, MemoryArgs, OK, SpecArgs};
use crate::dispatch::Cancel;
use crate::ops::{self, Experiment, devices_of, plan_document};
use runner_core::data::Trust;
use runner_core::diagnostic::Severity;
use runner_core::plan::budget::{Cell, Verdict, advice};
use runner_core::plan::inventory::{HOST, Inventory};
use runner_core::plan::reference::{DECLARED, USABLE_BYTES};
use runner_core::plan::{Basis, Plan, Room, RunPlan};
use runner_core::record::{Calibrations, total_memory};
use runner_core::spec::backend::Precision;
use runner_core::spec::kind::show_bytes;
use runner_core::spec::section::Choice;
use runner_report::console::Mode;

/// `runner memory`
pub fn memory(args: &MemoryArgs, output: &mut Output) -> u8 {
    let Some(spec) = &args.spec else {
        output.print(&if args.json {
            reference_json()
        } else {
            reference()
        });
        return OK;
    };
    let spec = SpecArgs {
        spec: spec.clone(),
        set: args.set.clone(),
    };
    let download = args.calibrate.then_some(Mode::Normal);
    let (document, plan) = match plan_experiment(&spec, download, output) {
        Ok(planned) => planned,
        Err(code) => return code,
    };
    let run = match trial(&plan, args.trial.as_deref(), output) {
        Ok(run) => run,
        Err(code) => return code,
    };
    let inventory = devices_of(run.device.backend);
    let precisions = if !args.precisions.is_empty() {
        args.precisions.clone()
    } else {
        precisions(run, &inventory)
    };
    let precisions: Vec<(Precision, Option<String>)> = precisions
        .into_iter()
        .map(|precision| (precision, refusal(&spec, &plan, run, precision)))
        .collect();
    let calibrations = calibrations();
    if args.calibrate {
        if let Err(code) = verify_data(&document, &plan, Trust::Stamps, output) {
            return code;
        }
        let cancel = Cancel::default();
        listen_for_signals(cancel.clone());
        let prober = Prober {
            calibrations: &calibrations,
            hardware: &hardware_of(inventory.clone()),
            cancel: &cancel,
        };
        for (precision, refusal) in &precisions {
            let run = run.in_batches(run.train.micro_batch_size, *precision);
            let on = format!("`{}` on {} {}", run.trial, run.device, precision.name());
            if refusal.is_some() {
                continue;
            }
            output.say(&format!("probing {on}"));
            match prober.calibrate(&run, output) {
                Ok(_) => {}
                Err(NotMeasured::Stopped) => {
                    output.say("stopped: what was measured before is kept");
                    return INTERRUPTED;
                }
                Err(NotMeasured::Because(reason)) => {
                    output.say(&format!("note: {on} is not measured: {reason}"));
                }
            }
        }
    }
    let sheet = Sheet::new(
        run,
        &args.batch_sizes,
        &precisions,
        &calibrations,
        &inventory,
    );
    output.print(&if args.json {
        sheet.json()
    } else {
        sheet.text()
    });
    OK
}

/// What the run's device computes in; what the run asks for where the device is not there.
fn precisions(run: &RunPlan, inventory: &Inventory) -> Vec<Precision> {
    let mut devices = inventory.found();
    let device = devices.find(|(device, _)| *device == run.device);
    let mut there = device.map_or(Vec::new(), |(_, found)| found.precisions.clone());
    if !there.contains(&run.precision) {
        there.insert(0, run.precision);
    }
    there
}

/// Why the file is refused in a precision that it does not ask for; none where it is not, or where the precision is an
/// axis, so that it cannot be told for this trial.
fn refusal(spec: &SpecArgs, plan: &Plan, run: &RunPlan, precision: Precision) -> Option<String> {
    let key = "backend.precision";
    if precision == run.precision || plan.axes.iter().any(|axis| axis == key) {
        return None;
    }
    let mut set = spec.set.clone();
    set.push(format!("{key}=\"{}\"", precision.name()));
    let experiment = Experiment {
        path: spec.spec.clone(),
        set,
    };
    let document = ops::open(&experiment).ok()?;
    let refused = plan_document(&spec.spec, &document, false, &ops::quiet).err()?;
    let mut errors = refused
        .0
        .into_iter()
        .filter(|d| d.severity == Severity::Error);
    errors.next().map(|error| error.message)
}

/// A budget sheet.
struct Sheet<'a> {
    run: &'a RunPlan,
    /// What it may hold.
    room: Option<Room>,
    /// Precisions that the file is refused in, with the reason.
    refused: Vec<(Precision, String)>,
    /// Batches from small to large, each with its precisions.
    rows: Vec<Vec<Cell>>,
    own: Cell,
    advice: Vec<String>,
}

impl<'a> Sheet<'a> {
    fn new(
        run: &'a RunPlan,
        batch_sizes: &[usize],
        precisions: &[(Precision, Option<String>)],
        calibrations: &Calibrations,
        inventory: &Inventory,
    ) -> Self {
        let items = run.train.micro_batch_size;
        let mut sizes = if !batch_sizes.is_empty() {
            batch_sizes.to_vec()
        } else {
            vec![items / 4, items / 2, items, items * 2, items * 4]
        };
        sizes.retain(|items| *items > 0);
        sizes.sort_unstable();
        sizes.dedup();
        let room = run.room(there(run, inventory));
        let correction =
            |precision: Precision| calibrations.correction(&run.in_batches(items, precision));
        let cell = |items: usize, precision: Precision, refused: bool, correction: Option<f64>| {
            let expected = calibrations.expected(&run.in_batches(items, precision), correction);
            let verdict = room.map(|room| Verdict::of(expected.bytes, room.bytes));
            Cell {
                items,
                precision,
                bytes: expected.bytes,
                basis: expected.basis,
                verdict: if refused {
                    Some(Verdict::Refused)
                } else {
                    verdict
                },
            }
        };
        let columns: Vec<_> = precisions
            .iter()
            .map(|(precision, refusal)| (*precision, refusal.is_some(), correction(*precision)))
            .collect();
        let row = |items: &usize| {
            let cells = columns.iter();
            cells
                .map(|(precision, refused, correction)| {
                    cell(*items, *precision, *refused, *correction)
                })
                .collect()
        };
        let correction = correction(run.precision);
        let own = cell(items, run.precision, false, correction);
        let advice = match (&room, own.verdict) {
            (Some(room), Some(Verdict::TooLarge)) => advice(run, correction, room.bytes),
            _ => Vec::new(),
        };
        let refused = precisions
            .iter()
            .filter_map(|(precision, refusal)| Some((*precision, refusal.clone()?)));
        Self {
            run,
            room,
            refused: refused.collect(),
            rows: sizes.iter().map(row).collect(),
            own,
            advice,
        }
    }

    fn text(&self) -> String {
        let run = self.run;
        let against = match &self.room {
            Some(room) => room.in_words(),
            None => {
                "no verdicts, as it is not known how much this device has: write `memory.limit`"
                    .into()
            }
        };
        let head = format!("trial `{}` on {}; {against}", run.trial, run.device);
        let mut text = format!("{head}\n\n{}\n", self.table());
        for (precision, reason) in &self.refused {
            text += &format!("{} is refused: {reason}\n", precision.name());
        }
        let own = &self.own;
        text += &format!(
            "\n{} items at a time in {}: {}, {}\n",
            own.items,
            own.precision.name(),
            show_bytes(own.bytes),
            match own.basis {
                Basis::Measured => "as measured on this machine; counted beforehand:",
                Basis::Counted | Basis::Corrected =>
                    "counted, not measured here: `--calibrate` does that",
            }
        );
        let mut parts = plain();
        for (name, bytes) in run.forecast.parts() {
            parts.add_row([name.to_owned(), show_bytes(bytes)]);
        }
        parts.add_row(["in all".to_owned(), show_bytes(run.forecast.total())]);
        align(&mut parts, 1);
        text += &parts.trim_fmt();
        if !self.advice.is_empty() {
            text += "\n\nit does not fit; what would help, in the order in which to try:";
            for (at, advice) in self.advice.iter().enumerate() {
                text += &format!("\n{}. {advice}", at + 1);
            }
        }
        text
    }

    fn table(&self) -> String {
        let mut table = plain();
        let mut head = vec!["items at a time".to_owned()];
        let first = self.rows.first().into_iter().flatten();
        head.extend(first.map(|cell| cell.precision.name().to_owned()));
        let columns = head.len();
        table.set_header(head);
        for row in &self.rows {
            let cells = row.iter().map(|cell| {
                let held = format!("{} {}", show_bytes(cell.bytes), cell.basis.name());
                match cell.verdict {
                    Some(Verdict::Refused) => Verdict::Refused.name().to_owned(),
                    Some(verdict) => format!("{held}, {}", verdict.name()),
                    None => held,
                }
            });
            let items = row.first().map_or(0, |cell| cell.items);
            let items = if items == self.own.items {
                format!("{items} *")
            } else {
                items.to_string()
            };
            table.add_row([items].into_iter().chain(cells));
        }
        align(&mut table, columns);
        let mut text = format!("{}\n* as the file has it", table.trim_fmt());
        let mut cells = self.rows.iter().flatten();
        if cells.any(|cell| cell.basis == Basis::Corrected) {
            text += "\ncorrected: counted, times what the file's own batch was measured to be off its count";
        }
        text
    }

    fn json(&self) -> String {
        let sheet = json!({
            "trial": self.run.trial,
            "device": self.run.device,
            "capacity_bytes": self.room.map(|room| room.bytes),
            "capacity": self.room.map(|room| room.in_words()),
            "cells": self.rows.concat(),
            "own": self.own,
            "forecast": self.run.forecast,
            "advice": self.advice,
        });
        serde_json::to_string_pretty(&sheet).unwrap_or_default()
    }
}

/// The bytes that the run's device has, where that is known.
fn there(run: &RunPlan, inventory: &Inventory) -> Option<u64> {
    let mut devices = inventory.found();
    let device = devices.find(|(device, _)| *device == run.device);
    match device {
        Some((_, found)) if found.memory_of() != HOST => found.memory_bytes,
        None if !run.device.backend.is_host() => None,
        _ => Some(total_memory()).filter(|bytes| *bytes > 0),
    }
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn align(table: &mut Table, num_columns: usize) {
    for column in table.column_iter_mut().take(num_columns.max(2)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// The sheet of declared budgets beside ours.
fn reference() -> String {
    let mut table = plain();
    table.set_header([
        "model",
        "precision",
        "batch",
        "checkpointing",
        "declared",
        "safe",
        "parameters",
        "states",
        "activations",
        "room beside the states",
    ]);
    for row in &DECLARED {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        table.add_row([
            row.model.to_owned(),
            if row.float == 2 { "f16" } else { "f32" }.to_owned(),
            row.batch.to_string(),
            yes(row.gradient_checkpointing),
            row.declared.to_owned(),
            yes(row.is_safe),
            row.num_parameters().to_string(),
            gigabytes(row.state_bytes()),
            format!("{:.1} kB {}", row.kept_bytes() as f64 / 1e3, row.unit()),
            match row.num_that_fit() {
                Some(num) => {
                    let unit = row
                        .unit()
                        .trim_start_matches("an ")
                        .trim_start_matches("a ");
                    format!("{num} {unit}s")
                }
                None => "none".into(),
            },
        ]);
    }
    format!(
        "{}\n\ndeclared and safe: as a known budget sheet for a card of 16 GB says, of which it leaves {} to a training\nparameters to room: counted here; states are weights, gradients and Adam's two, in pure half where it is f16",
        table.trim_fmt(),
        gigabytes(USABLE_BYTES)
    )
}

/// The same as JSON.
fn reference_json() -> String {
    let rows = DECLARED.iter().map(|row| {
        json!({
            "model": row.model,
            "precision": if row.float == 2 { "f16" } else { "f32" },
            "batch": row.batch,
            "gradient_checkpointing": row.gradient_checkpointing,
            "declared": row.declared,
            "is_declared_safe": row.is_safe,
            "parameters": row.num_parameters(),
            "state_bytes": row.state_bytes(),
            "activation_bytes": row.kept_bytes(),
            "activations_of": row.unit(),
            "room": row.num_that_fit(),
        })
    });
    serde_json::to_string_pretty(&rows.collect::<Vec<_>>()).unwrap_or_default()
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.3} GB", bytes as f64 / 1e9)
}
