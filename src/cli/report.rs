//! `runner report`: rebuilds and shows the report of a results folder.

use std::path::Path;

use super::output::Output;
use super::{OK, template};
use crate::ops::{self, ReportOptions};
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{ExperimentFolder, sealed_json};
use runner_report::report::{self as reports, Report};

/// `runner report`
pub fn report(folder: &Path, json: bool, template: Option<&Path>, output: &mut Output) -> u8 {
    let template = template.map(|path| Ok((path, template::read(path)?)));
    let template = match template.transpose() {
        Ok(template) => template,
        Err(error) => return output.fail(&error),
    };
    let experiments = ExperimentFolder::all(folder);
    if experiments.is_empty() {
        let message = format!(
            "`{}` is not the folder of an experiment, and contains none: there is no plan.json",
            folder.display()
        );
        let diagnostic = Diagnostic::error("results", message);
        return output.refuse(diagnostic.help("use a folder such as `results/mnist_sweep`, or a results folder; `runner list` shows the existing ones"));
    }
    let is_one = experiments[0].0 == folder;
    let codes = experiments.iter().enumerate().map(|(at, experiment)| {
        if !is_one && !json {
            let space = if at > 0 { "\n" } else { "" };
            output.print(&format!("{space}{}", experiment.0.display()));
        }
        report_on(experiment, is_one, json, template.as_ref(), output)
    });
    codes.max().unwrap_or(OK)
}

/// Reports on one experiment.
fn report_on(
    experiment: &ExperimentFolder,
    is_one: bool,
    json: bool,
    template: Option<&(&Path, String)>,
    output: &mut Output,
) -> u8 {
    let folder = &experiment.0;
    let report = match ops::report(&ReportOptions::new(folder), &ops::quiet) {
        Ok(Some(report)) => report,
        // It was removed just now.
        Ok(None) => return OK,
        Err(error) => return output.fail(&error),
    };
    if let Some((path, text)) = template
        && let Err(error) = template::write(&report, experiment, path, text)
    {
        return output.fail(&error);
    }
    if json && is_one {
        print_sealed(serde_json::to_string_pretty(&report), output);
    } else if json {
        print_sealed(serde_json::to_string(&report), output);
    } else {
        show(&report, output);
    }
    output.say(&format!(
        "{} of {} runs completed; {}",
        report.num_completed,
        report.num_runs,
        experiment.report("html").display()
    ));
    OK
}

/// The table of a report, with notes.
fn show(report: &Report, output: &mut Output) {
    for notice in &report.notices {
        output.say(&format!("note: {notice}"));
    }
    output.print(&reports::table(report, Output::width()));
    reports::footnotes(report)
        .into_iter()
        .for_each(|note| output.say(&note));
    for problem in report.problems.iter().filter(|p| p.outcome.is_unreadable()) {
        output.say(&format!("skipped: {}: {}", problem.run, problem.message));
    }
}

/// Prints a report as in its file, so that saved ones can be compared.
fn print_sealed(text: serde_json::Result<String>, output: &mut Output) {
    let text = sealed_json(text.unwrap_or_default() + "\n");
    output.print(text.trim_end());
}
