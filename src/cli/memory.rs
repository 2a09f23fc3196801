//! `runner memory`: what a run would hold with other batches and precisions, and whether that fits.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde_json::json;

use super::calibrate::{calibrate, calibrations};
use super::experiment::{plan as plan_experiment, refuse, trial};
use super::output::Output;
use super::prepare::verify_data;
use super::{FAILED, MemoryArgs, OK, SpecArgs};
use crate::console::Mode;
use crate::diagnostic::Diagnostic;
use crate::plan::RunPlan;
use crate::plan::budget::{Cell, Verdict, advice};
use crate::plan::reference::{DECLARED, USABLE_BYTES};
use crate::record::{Calibrations, total_memory};
use crate::spec::backend::Precision;
use crate::spec::kind::show_bytes;
use crate::spec::section::Choice;
use crate::train::device;

/// `runner memory`
pub fn memory(args: &MemoryArgs, output: &mut Output) -> u8 {
    let Some(spec) = &args.spec else {
        output.print(&reference());
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
    let precisions = match args.precisions.is_empty() {
        false => args.precisions.clone(),
        true => precisions(run),
    };
    let calibrations = calibrations();
    if args.calibrate {
        if let Err(code) = verify_data(&document, &plan, output) {
            return code;
        }
        for precision in &precisions {
            let run = run.in_batches(run.train.micro_batch_size, *precision);
            output.say(&format!(
                "probing `{}` on {} {}",
                run.trial,
                run.device,
                precision.name()
            ));
            if let Err(reason) = calibrate(&run, threads(), &calibrations) {
                refuse(Diagnostic::error("run", reason), output);
                return FAILED;
            }
        }
    }
    let sheet = Sheet::new(run, &args.batch_sizes, &precisions, &calibrations);
    output.print(&match args.json {
        true => sheet.json(),
        false => sheet.text(),
    });
    OK
}

/// A precision by its name; the error is a phrase.
pub fn precision(text: &str) -> Result<Precision, String> {
    let mut all = Precision::ALL.iter();
    let found = all.find(|(_, name, _)| *name == text);
    found.map(|(precision, _, _)| *precision).ok_or_else(|| {
        let names: Vec<_> = Precision::ALL.iter().map(|(_, name, _)| *name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// What the run's device computes in; what the run asks for where the device is not there.
fn precisions(run: &RunPlan) -> Vec<Precision> {
    let mut there = device::precisions(run.device);
    if !there.contains(&run.precision) {
        there.insert(0, run.precision);
    }
    there
}

/// A budget sheet.
struct Sheet<'a> {
    run: &'a RunPlan,
    /// What there is, and in words what that is.
    capacity: Option<(u64, String)>,
    /// Batches from small to large, each with its precisions.
    rows: Vec<Vec<Cell>>,
    own: Cell,
    advice: Vec<String>,
}

impl<'a> Sheet<'a> {
    fn new(
        run: &'a RunPlan,
        batch_sizes: &[usize],
        precisions: &[Precision],
        calibrations: &Calibrations,
    ) -> Self {
        let items = run.train.micro_batch_size;
        let mut sizes = match batch_sizes.is_empty() {
            false => batch_sizes.to_vec(),
            true => vec![items / 4, items / 2, items, items * 2, items * 4],
        };
        sizes.retain(|items| *items > 0);
        sizes.sort_unstable();
        sizes.dedup();
        let capacity = capacity(run);
        let cell = |items: usize, precision: Precision| {
            let run = run.in_batches(items, precision);
            let expected = calibrations.expected(&run);
            Cell {
                items,
                precision,
                bytes: expected.bytes,
                is_calibrated: expected.is_calibrated,
                verdict: capacity
                    .as_ref()
                    .map(|(there, _)| Verdict::of(expected.bytes, *there)),
            }
        };
        let row = |items: &usize| precisions.iter().map(|p| cell(*items, *p)).collect();
        let own = cell(items, run.precision);
        let advice = match (&capacity, own.verdict) {
            (Some((there, _)), Some(Verdict::TooLarge)) => {
                advice(run, calibrations.find(run).as_ref(), *there)
            }
            _ => Vec::new(),
        };
        Self {
            run,
            rows: sizes.iter().map(row).collect(),
            own,
            advice,
            capacity,
        }
    }

    fn text(&self) -> String {
        let run = self.run;
        let against = match &self.capacity {
            Some((bytes, what)) => format!("against {} ({what})", show_bytes(*bytes)),
            None => {
                "without a verdict: it is not known how much this device has; write `memory.limit`"
                    .into()
            }
        };
        let head = format!("trial `{}` on {}, {against}", run.trial, run.device);
        let mut text = format!("{head}\n\n{}\n", self.table());
        let own = &self.own;
        text += &format!(
            "\n{} items at a time in {}: {}, {}\n",
            own.items,
            own.precision.name(),
            show_bytes(own.bytes),
            match own.is_calibrated {
                true => "as measured on this machine; counted beforehand:",
                false => "counted, not measured here: `--calibrate` does that",
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
        head.extend(self.rows.first().into_iter().flatten().map(|cell| {
            let calibrated = match cell.is_calibrated {
                true => " (calibrated)",
                false => "",
            };
            format!("{}{calibrated}", cell.precision.name())
        }));
        let columns = head.len();
        table.set_header(head);
        for row in &self.rows {
            let cells = row.iter().map(|cell| match cell.verdict {
                Some(verdict) => format!("{} {}", show_bytes(cell.bytes), verdict.name()),
                None => show_bytes(cell.bytes),
            });
            let items = row.first().map_or(0, |cell| cell.items);
            let items = match items == self.own.items {
                true => format!("{items} *"),
                false => items.to_string(),
            };
            table.add_row([items].into_iter().chain(cells));
        }
        align(&mut table, columns);
        format!("{}\n* as the file has it", table.trim_fmt())
    }

    fn json(&self) -> String {
        let sheet = json!({
            "trial": self.run.trial,
            "device": self.run.device,
            "capacity_bytes": self.capacity.as_ref().map(|(bytes, _)| bytes),
            "capacity": self.capacity.as_ref().map(|(_, what)| what),
            "cells": self.rows.concat(),
            "own": self.own,
            "forecast": self.run.forecast,
            "advice": self.advice,
        });
        serde_json::to_string_pretty(&sheet).unwrap_or_default()
    }
}

/// What a run may hold, with what that is in words: its limit, or the machine's memory where it computes there.
fn capacity(run: &RunPlan) -> Option<(u64, String)> {
    if let Some(limit) = run.memory_limit_bytes {
        return Some((limit, "`memory.limit`".into()));
    }
    let there = total_memory();
    if !run.device.backend.is_host() || there == 0 {
        return None;
    }
    let reserve = run.memory_reserve_bytes;
    let what = match reserve {
        0 => "this machine's memory".into(),
        _ => format!(
            "this machine's memory less `memory.reserve` of {}",
            show_bytes(reserve)
        ),
    };
    Some((there.saturating_sub(reserve), what))
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

fn gigabytes(bytes: u64) -> String {
    format!("{:.3} GB", bytes as f64 / 1e9)
}
