//! `runner report`: rebuilds and shows the report of a results folder.

use std::path::Path;

use super::OK;
use super::output::Output;
use super::tell::Teller;
use crate::ops::{self, Progress, ReportOptions, Template};
use runner_core::record::{ExperimentFolder, sealed_json};
use runner_report::console::Mode;
use runner_report::report::{self as reports, Report, TEMPLATE};

/// Prints the built-in template.
pub fn print_template(output: &mut Output) -> u8 {
    output.print(TEMPLATE.trim_end());
    OK
}

/// `runner report`
pub fn report(folder: &Path, json: bool, template: Option<&Path>, output: &mut Output) -> u8 {
    let template = template.map(Template::read).transpose();
    let teller = Teller::new(Mode::Normal);
    let sink = |progress: Progress<'_>| teller.tell(progress);
    let found = template.and_then(|template| Ok((template, ops::report_folders(folder, &sink)?)));
    let (template, experiments) = match found {
        Ok(found) => found,
        Err(error) => return output.fail(&error),
    };
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
    template: Option<&Template>,
    output: &mut Output,
) -> u8 {
    let options = ReportOptions {
        folder: experiment.0.clone(),
        template: template.cloned(),
    };
    let report = match ops::report(&options, &ops::quiet) {
        Ok(Some(report)) => report,
        // It was removed just now.
        Ok(None) => return OK,
        Err(error) => return output.fail(&error),
    };
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
