//! `runner delta`: differences between weights.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::OK;
use super::bundle;
use super::output::Output;
use super::predict::weights;
use super::tell::Teller;
use crate::model::{Options, Weights};
use crate::ops::{
    DeltaApply, DeltaAverage, DeltaDiff, DeltaFound, delta_apply, delta_average, delta_diff,
};
use runner_core::diagnostic::{Reason, counted};
use runner_core::spec::backend::DeviceName;
use runner_core::table::{Columns, fit_numbers};
use runner_exchange::delta::Change;
use runner_report::console::Mode;
use runner_report::report::short_number;

/// What to do with differences between weights.
#[derive(Subcommand)]
pub enum Delta {
    /// Compare two sets of weights by parameter, and write the differences to a file
    Diff(DiffArgs),
    /// Add the differences of a file to weights
    Apply(ApplyArgs),
    /// Average several files of differences
    Average(AverageArgs),
}

/// How runs are opened.
#[derive(Args)]
struct RunArgs {
    /// Of runs, which weights: `best`, `final`, `ema`, `swa` or `initial`; by default those of the best epoch
    #[arg(long, value_name = "WHICH", value_parser = weights)]
    weights: Option<Weights>,
    /// For runs, a device other than the one that they were trained on, such as `flex`
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceName>,
    /// Unpack capsules up to this size, as in 4GiB; by default up to 200 times their packed size
    #[arg(long, value_name = "SIZE", value_parser = bundle::size)]
    max_unpacked: Option<u64>,
}

impl RunArgs {
    fn options(&self) -> Options {
        Options {
            weights: self.weights,
            device: self.device,
            trial: None,
            max_unpacked: self.max_unpacked,
        }
    }
}

#[derive(Args)]
pub struct DiffArgs {
    /// The weights to start from: the folder of a run or of an experiment, a capsule, or a file such as `.safetensors`
    base: PathBuf,
    /// The weights to lead to
    target: PathBuf,
    /// The file of the differences, which ends in `.safetensors`; without it, only the table is printed
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    runs: RunArgs,
    /// Which weights of the first run, if others than of the second one
    #[arg(long, value_name = "WHICH", value_parser = weights)]
    base_weights: Option<Weights>,
    /// Print the table as JSON
    #[arg(long)]
    json: bool,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub struct ApplyArgs {
    /// The file of the differences
    delta: PathBuf,
    /// The weights to add them to: the folder of a run or of an experiment, a capsule, or a file such as `.safetensors`
    #[arg(long, value_name = "WEIGHTS")]
    to: PathBuf,
    /// The file of the sum, which ends in `.safetensors`
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Multiply the differences by this: 0.5 goes half the way, -1 goes back
    #[arg(long, value_name = "X", default_value = "1", value_parser = scale)]
    scale: f64,
    /// Add them to other weights than those that they start from, too
    #[arg(long)]
    any_base: bool,
    #[command(flatten)]
    runs: RunArgs,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub struct AverageArgs {
    /// The files of differences
    #[arg(required = true, num_args = 1..)]
    deltas: Vec<PathBuf>,
    /// The file of the mean, which ends in `.safetensors`
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The share of each file, once for each in their order, such as the size of its data set; by default equal
    #[arg(long, value_name = "X", value_parser = factor)]
    factor: Vec<f64>,
    /// Average differences that start from different weights, too
    #[arg(long)]
    any_base: bool,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
}

fn scale(text: &str) -> Result<f64, Reason> {
    let value = text.parse::<f64>().ok();
    value
        .filter(|value| value.is_finite() && *value != 0.0)
        .ok_or_else(|| "expected a number other than 0, such as 0.5".into())
}

fn factor(text: &str) -> Result<f64, Reason> {
    let value = text.parse::<f64>().ok();
    value
        .filter(|value| value.is_finite() && *value > 0.0)
        .ok_or_else(|| "expected a number above 0, such as 600".into())
}

/// `runner delta`
pub fn delta(verb: &Delta, output: &mut Output) -> u8 {
    match verb {
        Delta::Diff(args) => diff(args, output),
        Delta::Apply(args) => apply(args, output),
        Delta::Average(args) => average(args, output),
    }
}

fn diff(args: &DiffArgs, output: &mut Output) -> u8 {
    let asked = DeltaDiff {
        options: args.runs.options(),
        base_weights: args.base_weights,
        out: args.out.clone(),
        force: args.force,
        ..DeltaDiff::new(&args.base, &args.target)
    };
    let teller = Teller::new(Mode::Normal);
    let found = delta_diff(&asked, &|progress| teller.tell(progress));
    drop(teller);
    let found = match found {
        Ok(found) => found,
        Err(error) => return output.fail(&error),
    };
    if args.json {
        output.print(&json_of(&found).to_string());
    } else {
        output.print_fitted(&format!(
            "from {}\nto {}\n\n{}",
            found.base,
            found.target,
            table(&found)
        ));
    }
    if let Some(out) = &args.out {
        let which = args.base_weights.or(args.runs.weights);
        let which = which.filter(|_| found.has_choice);
        let which = which.map_or(String::new(), |which| {
            format!(" --weights {}", which.name())
        });
        output.say(&format!(
            "wrote the differences of {} to {}; add them with: runner delta apply '{}' --to '{}'{which} --out FILE",
            counted(found.changes.parameters.len(), "parameter"),
            out.display(),
            out.display(),
            args.base.display(),
        ));
    }
    OK
}

fn apply(args: &ApplyArgs, output: &mut Output) -> u8 {
    let asked = DeltaApply {
        options: args.runs.options(),
        scale: args.scale,
        any_base: args.any_base,
        force: args.force,
        ..DeltaApply::new(&args.delta, &args.to, &args.out)
    };
    let teller = Teller::new(Mode::Normal);
    let applied = delta_apply(&asked, &|progress| teller.tell(progress));
    drop(teller);
    match applied {
        Ok(applied) => {
            let what = if applied.is_target {
                "exactly the weights that the delta leads to".to_owned()
            } else {
                format!("{} plus the differences", applied.to)
            };
            output.say(&format!(
                "wrote {} to {}: {what}",
                counted(applied.num_tensors, "tensor"),
                args.out.display()
            ));
            OK
        }
        Err(error) => output.fail(&error),
    }
}

fn average(args: &AverageArgs, output: &mut Output) -> u8 {
    let asked = DeltaAverage {
        factors: args.factor.clone(),
        any_base: args.any_base,
        force: args.force,
        ..DeltaAverage::new(args.deltas.clone(), &args.out)
    };
    match delta_average(&asked) {
        Ok(num) => {
            output.say(&format!(
                "wrote the mean of {} with {} to {}",
                counted(args.deltas.len(), "delta"),
                counted(num, "parameter"),
                args.out.display()
            ));
            OK
        }
        Err(error) => output.fail(&error),
    }
}

fn table(found: &DeltaFound) -> String {
    let mut table = Columns::named([
        "parameter",
        "shape",
        "changed",
        "norm",
        "relative",
        "largest",
    ]);
    let row = |change: &Change, name: &str, shape: String| {
        vec![
            name.to_owned(),
            shape,
            format!("{} of {}", change.num_changed, change.num_values),
            short_number(change.norm),
            change.relative.map_or_else(|| "-".into(), short_number),
            short_number(change.largest),
        ]
    };
    let parameters = found.changes.parameters.iter();
    let rows = parameters.map(|change| row(change, &change.name, format!("{:?}", change.shape)));
    table.rows.extend(rows);
    table
        .rows
        .push(row(&found.changes.all, "all", String::new()));
    let numbers = ["changed", "norm", "relative", "largest"];
    fit_numbers(table, Output::table_width(), &[], &numbers).text
}

fn json_of(found: &DeltaFound) -> Value {
    let change = |change: &Change| {
        json!({
            "name": change.name,
            "shape": change.shape,
            "num_values": change.num_values,
            "num_changed": change.num_changed,
            "norm": change.norm,
            "relative_norm": change.relative,
            "largest_change": change.largest,
        })
    };
    let mut all = change(&found.changes.all);
    if let Value::Object(all) = &mut all {
        all.shift_remove("name");
        all.shift_remove("shape");
    }
    let parameters: Vec<Value> = found.changes.parameters.iter().map(change).collect();
    json!({
        "base": { "weights": found.base, "digest": found.base_digest },
        "target": { "weights": found.target, "digest": found.target_digest },
        "parameters": parameters,
        "all": all,
        "num_kept": found.num_kept,
    })
}
