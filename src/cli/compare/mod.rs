//! `runner compare`: trials of experiments, runs and saved reports against a baseline.

mod sources;

use super::experiment::refuse;
use super::output::Output;
use super::{CompareArgs, OK};
use runner_core::diagnostic::Diagnostic;
use runner_report::report::compare::{Question, compare as answer, csv, markdown, plain};

/// Compares what the arguments name.
pub fn compare(args: &CompareArgs, output: &mut Output) -> u8 {
    let refuse_with = |(message, help): (String, String), output: &mut Output| {
        let mut diagnostic = Diagnostic::error("compare", message);
        if !help.is_empty() {
            diagnostic = diagnostic.help(help);
        }
        refuse(diagnostic, output)
    };
    let sources = match sources::read(&args.what, |word| output.say(word)) {
        Ok(sources) => sources,
        Err(wrong) => return refuse_with(wrong, output),
    };
    let question = Question {
        value: args.value.clone(),
        baseline: args.baseline.clone(),
        alpha: args.alpha,
        pivot: args.rows.clone().zip(args.cols.clone()),
        pareto: match args.pareto.as_slice() {
            [] => None,
            [a, b] => Some((a.clone(), b.clone())),
            other => {
                let wrong = format!("`--pareto` takes two numbers, found {}", other.len());
                let help = "write `--pareto valid/accuracy,epoch_secs`".to_owned();
                return refuse_with((wrong, help), output);
            }
        },
    };
    let comparison = match answer(&sources, &question) {
        Ok(comparison) => comparison,
        Err(wrong) => return refuse_with(wrong, output),
    };
    let text = match (args.json, args.csv, args.md) {
        (true, _, _) => serde_json::to_string_pretty(&comparison).unwrap_or_default(),
        (_, true, _) => csv(&comparison),
        (_, _, true) => markdown(&comparison),
        _ => plain(&comparison, Output::width()),
    };
    output.print(&text);
    OK
}

/// A level of significance.
pub fn alpha(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(alpha) if alpha > 0.0 && alpha < 1.0 => Ok(alpha),
        _ => Err("it has to be between 0 and 1, such as 0.05".into()),
    }
}
