//! `runner memory`: forecasts of a run for other batches and precisions, and whether they fit.

use serde_json::json;

use super::output::Output;
use super::tell::Teller;
use super::{MemoryArgs, OK, SpecArgs};
use crate::dispatch::Cancel;
use crate::ops::{self, Budget, Memory};
use runner_core::plan::Basis;
use runner_core::plan::budget::Verdict;
use runner_core::plan::card_sheet::{DECLARED, USABLE_BYTES};
use runner_core::show::show_bytes;
use runner_core::spec::section::Choice;
use runner_core::table::{Columns, fit, fit_numbers};
use runner_report::console::Mode;

/// `runner memory`
pub fn memory(args: &MemoryArgs, output: &mut Output) -> u8 {
    let Some(spec) = &args.spec else {
        if args.json {
            output.print(&reference_json());
        } else {
            output.print_fitted(&reference());
        }
        return OK;
    };
    let spec = SpecArgs {
        spec: spec.clone(),
        set: args.set.clone(),
    };
    let options = Memory {
        experiment: spec.experiment(),
        trial: args.trial.clone(),
        batch_sizes: args.batch_sizes.clone(),
        precisions: args.precisions.clone(),
        calibrate: args.calibrate,
        cancel: Cancel::default(),
    };
    let teller = Teller::new(Mode::Normal).with_cancel(&options.cancel);
    let budget = match ops::memory(&options, &|progress| teller.tell(progress)) {
        Ok(budget) => budget,
        Err(error) => return output.fail(&error),
    };
    if args.json {
        output.print(&json(&budget));
    } else {
        output.print_fitted(&text(&budget));
    }
    OK
}

fn text(budget: &Budget) -> String {
    let run = &budget.run;
    let against = match &budget.room {
        Some(room) => room.in_words(),
        None => {
            "no verdicts, since the memory of this device is unknown: set `memory.limit`".into()
        }
    };
    let head = format!("trial `{}` on {}; {against}", run.trial, run.device);
    let mut text = format!("{head}\n\n{}\n", table(budget));
    for (precision, reason) in &budget.refused {
        text += &format!("{} is refused: {reason}\n", precision.name());
    }
    let own = &budget.own;
    text += &format!(
        "\n{} items at a time in {}: {}, {}\n",
        own.items,
        own.precision.name(),
        show_bytes(own.bytes),
        match own.basis {
            Basis::Measured => "as measured on this machine; counted before:",
            Basis::Counted | Basis::Corrected =>
                "counted, not measured here: use `--calibrate` to measure",
        }
    );
    let mut parts = run.forecast.parts().to_vec();
    parts.push(("total", run.forecast.total()));
    let widest = parts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let parts = parts.iter();
    let parts = parts.map(|(name, bytes)| format!(" {name:>widest$}  {:>9}", show_bytes(*bytes)));
    text += &parts.collect::<Vec<_>>().join("\n");
    if !budget.advice.is_empty() {
        text += "\n\nit does not fit; possible remedies, in the order in which to try them:";
        for (at, advice) in budget.advice.iter().enumerate() {
            text += &format!("\n{}. {advice}", at + 1);
        }
    }
    text
}

fn table(budget: &Budget) -> String {
    let mut head = vec!["items at a time".to_owned()];
    let first = budget.rows.first().into_iter().flatten();
    head.extend(first.map(|cell| cell.precision.name().to_owned()));
    let names = head.clone();
    let mut rows = Vec::new();
    for row in &budget.rows {
        let cells = row.iter().map(|cell| {
            let held = format!("{} {}", show_bytes(cell.bytes), cell.basis.name());
            match cell.verdict {
                Some(Verdict::Refused) => Verdict::Refused.name().to_owned(),
                Some(verdict) => format!("{held}, {}", verdict.name()),
                None => held,
            }
        });
        let items = row.first().map_or(0, |cell| cell.items);
        let items = if items == budget.own.items {
            format!("{items} *")
        } else {
            items.to_string()
        };
        rows.push([items].into_iter().chain(cells).collect());
    }
    let numbers: Vec<&str> = names.iter().map(String::as_str).collect();
    let fitted = fit_numbers(Columns { head, rows }, Output::table_width(), &[], &numbers);
    let mut text = format!("{}\n* as in the file", fitted.text);
    let mut cells = budget.rows.iter().flatten();
    if cells.any(|cell| cell.basis == Basis::Corrected) {
        text += "\ncorrected: counted, times the ratio of measured to counted memory for the file's own batch";
    }
    text
}

fn json(budget: &Budget) -> String {
    let sheet = json!({
        "trial": budget.run.trial,
        "device": budget.run.device,
        "capacity_bytes": budget.room.map(|room| room.bytes),
        "capacity": budget.room.map(|room| room.in_words()),
        "cells": budget.rows.concat(),
        "own": budget.own,
        "forecast": budget.run.forecast,
        "advice": budget.advice,
    });
    serde_json::to_string_pretty(&sheet).unwrap_or_default()
}

/// The published budgets next to the forecasts of runner.
fn reference() -> String {
    let mut table = Columns::named([
        "model",
        "precision",
        "batch",
        "checkpointing",
        "declared",
        "safe",
        "parameters",
        "states",
        "activations",
        "room in addition to the states",
    ]);
    for row in &DECLARED {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        table.rows.push(vec![
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
        "{}\n\ndeclared and safe: according to a published memory budget for a GPU with 16 GB, which leaves {} for training\nparameters to room: counted here; states are weights, gradients and Adam's two moments, in pure half precision for f16",
        fit(table, Output::table_width(), &[]).text,
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
