//! `runner compare`: trials of experiments, runs and saved reports compared with a baseline.

use super::output::Output;
use super::tell::Teller;
use super::{CompareArgs, OK};
use crate::ops::{self, Compare};
use runner_core::diagnostic::{Diagnostic, Reason};
use runner_report::console::Mode;
use runner_report::report::compare::{Question, csv, markdown, plain};

/// Compares the sources in the arguments.
pub fn compare(args: &CompareArgs, output: &mut Output) -> u8 {
    let pareto = match args.pareto.as_slice() {
        [] => None,
        [a, b] => Some((a.clone(), b.clone())),
        other => {
            let message = format!("`--pareto` needs two metrics, found {}", other.len());
            let help = "use `--pareto valid/accuracy,epoch_secs`";
            return output.refuse(Diagnostic::error("compare", message).help(help));
        }
    };
    let options = Compare {
        what: args.what.clone(),
        question: Question {
            value: args.value.clone(),
            baseline: args.baseline.clone(),
            alpha: args.alpha,
            pivot: args.rows.clone().zip(args.cols.clone()),
            pareto,
        },
    };
    let teller = Teller::new(Mode::Normal);
    let comparison = match ops::compare(&options, &|progress| teller.tell(progress)) {
        Ok(comparison) => comparison,
        Err(error) => return output.fail(&error),
    };
    match (args.json, args.csv, args.md) {
        (true, _, _) => {
            output.print(&serde_json::to_string_pretty(&comparison).unwrap_or_default())
        }
        (_, true, _) => output.print(&csv(&comparison)),
        (_, _, true) => output.print(&markdown(&comparison)),
        _ => output.print_fitted(&plain(&comparison, Output::width())),
    }
    OK
}

/// A significance level.
pub fn alpha(text: &str) -> Result<f64, Reason> {
    match text.parse::<f64>() {
        Ok(alpha) if alpha > 0.0 && alpha < 1.0 => Ok(alpha),
        _ => Err("it must be between 0 and 1, such as 0.05".into()),
    }
}
