//! `runner run`: trains the runs of an experiment file that are not completed, and shows their progress.

use std::collections::BTreeMap;

use super::output::Output;
use super::tell::Teller;
use super::{INTERRUPTED, Logging, RunArgs};
use crate::dispatch::Cancel;
use crate::error::Error;
use crate::ops::{self, Prepared, Progress, Run, RunOutcome, Stopped};
use runner_core::diagnostic::counted;
use runner_core::plan::quoted;
use runner_core::record::State;
use runner_core::show::show_duration;
use runner_core::spec::section::Choice;
use runner_report::console::Mode;
use runner_report::report::{self, Report};

/// Trains the runs of an experiment file that are not completed, and reports.
pub fn run(args: &RunArgs, logging: &Logging, output: &mut Output) -> u8 {
    let mode = if args.quiet {
        Mode::Quiet
    } else {
        Mode::Normal
    };
    let options = Run {
        experiment: args.spec.experiment().logging(logging),
        results: args.results.clone(),
        jobs: args.jobs.map(usize::from),
        only: args.only.clone(),
        retry: args.retry.clone(),
        until_decided: args.until_decided,
        wait: args.wait,
        launch: args.launch,
        follow: args.follow,
        inject_fault: args.inject_fault.clone(),
        cancel: Cancel::default(),
    };
    let left_out = match (args.only.is_empty(), args.retry.is_empty()) {
        (true, true) => "already with the cluster",
        (true, _) => "excluded by --retry",
        (_, true) => "excluded by --only",
        _ => "excluded by --only and --retry",
    };
    let teller = Teller::new(mode)
        .with_cancel(&options.cancel)
        .with_events(args.json);
    let sink = |progress: Progress<'_>| match progress {
        Progress::Prepared(prepared) => show_prepared(prepared, left_out, mode),
        progress => teller.tell(progress),
    };
    let outcome = match ops::run(&options, &sink) {
        Ok(outcome) => outcome,
        Err(Error::Interrupted(message)) => {
            output.say(&format!("{message}; to continue: {}", this_command()));
            return INTERRUPTED;
        }
        Err(error) => return output.fail(&error),
    };
    if let Some(Stopped::Submitted(_)) = outcome.stopped {
        return submitted(&outcome, output);
    }
    if outcome.stopped == Some(Stopped::WhileMeasuring) {
        output.say("stopped during the measurement: no run was started");
    }
    if let Some(report) = &outcome.report {
        show(report, &outcome, args.json, output);
    }
    go_on(&outcome, output);
    outcome.exit_code()
}

/// Says how to go on after a submission. Without results, a report says nothing.
fn submitted(outcome: &RunOutcome, output: &mut Output) -> u8 {
    let folder = quoted(&outcome.folder.0.display().to_string());
    output.say(&format!(
        "`runner watch {folder}` shows the runs, and `runner cancel {folder}` cancels the jobs; run this command again to submit what is missing, or for the report when all are completed"
    ));
    outcome.exit_code()
}

/// Reports why everything was stopped, and the command that continues the selected runs.
fn go_on(outcome: &RunOutcome, output: &mut Output) {
    let num_left = outcome.num_left();
    let Some(stopped) = outcome.stopped.as_ref().filter(|_| num_left > 0) else {
        return;
    };
    let why = match stopped {
        Stopped::TimeLimit(limit) => format!(
            "the experiment exceeded its limit of {} (`limits.experiment`): ",
            show_duration(*limit)
        ),
        Stopped::Failure { run, class } => format!(
            "stopped because `{run}` failed, as `on_failure.{}.then` is \"stop\": ",
            class.name()
        ),
        Stopped::User | Stopped::WhileMeasuring | Stopped::NotRecorded | Stopped::Submitted(_) => {
            String::new()
        }
    };
    output.say(&format!(
        "{why}{} left; to continue: {}",
        counted(num_left, "run"),
        this_command()
    ));
}

/// The command that this process was started with.
fn this_command() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    let command: Vec<String> = std::iter::once("runner".to_owned()).chain(words).collect();
    command.join(" ")
}

/// Reports what will be done for the runs of the plan.
fn show_prepared(prepared: &Prepared, left_out: &str, mode: Mode) {
    let mut output = Output;
    for (id, reason, remedy) in &prepared.unreadable {
        output.say(&format!("`{id}` is not changed: {reason}"));
        output.say(&format!("  help: {remedy}"));
    }
    if mode == Mode::Normal {
        let (num, num_planned) = (prepared.num_to_do, prepared.num_planned);
        let mut words = vec![format!("{num} of {num_planned} runs to do")];
        let mut add = |num: usize, what: &str| {
            if num > 0 {
                words.push(format!("{num} {what}"));
            }
        };
        add(prepared.num_left_out, left_out);
        add(prepared.num_completed, "already completed");
        add(prepared.num_begun, "resumed from where they stopped");
        add(
            prepared.num_waiting,
            "waiting for those of which they begin as copies",
        );
        add(prepared.num_pruned, "pruned");
        add(prepared.num_shorter, "extended to more epochs");
        add(prepared.replaced.len(), "rerun");
        add(prepared.damaged.len(), "damaged and trained again");
        add(
            prepared.unreadable.len(),
            "skipped because they cannot be read or trained here",
        );
        add(prepared.num_failed, "retried after a failure");
        add(
            prepared.num_orphans,
            "in the folder that are not part of this plan",
        );
        let place = prepared.folder.0.display();
        output.say(&format!("{place}: {}", words.join(", ")));
    }
    // Damage is also reported with `--quiet`.
    for (id, reason) in &prepared.damaged {
        output.say(&format!("`{id}` is trained again: {reason}"));
    }
    if mode == Mode::Normal {
        say_replaced(&prepared.replaced, &mut output);
    }
    if !prepared.damaged.is_empty() || !prepared.replaced.is_empty() && mode == Mode::Normal {
        let place = prepared.folder.0.join("replaced");
        output.say(&format!(
            "the previous content is kept in {}",
            place.display()
        ));
    }
    if mode == Mode::Normal {
        for note in &prepared.other_builds {
            output.say(note);
        }
    }
}

/// Reports why runs are rerun, each reason once.
fn say_replaced(replaced: &[(String, Vec<String>)], output: &mut Output) {
    const SHOWN: usize = 3;
    let mut seen: Vec<&Vec<String>> = Vec::new();
    for (id, reasons) in replaced {
        if seen.contains(&reasons) {
            continue;
        }
        seen.push(reasons);
        if seen.len() <= SHOWN {
            output.say(&format!("`{id}` is rerun: {}", reasons.join("; ")));
        }
    }
}

fn show(report: &Report, outcome: &RunOutcome, json: bool, output: &mut Output) {
    if !json {
        output.print(&report::table(report, Output::width()));
    }
    for footnote in report::footnotes(report) {
        output.say(&footnote);
    }
    let num_skipped = report.problems.iter().filter(|p| p.is_skipped()).count();
    let and = |num: usize, what: &str| match num {
        0 => String::new(),
        _ => format!(", {num} {what}"),
    };
    let and_problems = and(report.problems.len() - num_skipped, "not")
        + &and(num_skipped, "skipped")
        + &and(report.num_pruned, "pruned");
    output.say(&format!(
        "{} of {} runs completed{and_problems}; report: {}",
        report.num_completed,
        report.num_runs,
        outcome.folder.report("html").display()
    ));
    for line in not_completed(report) {
        output.say(&line);
    }
}

/// The runs that are not completed by state, one line per state.
fn not_completed(report: &Report) -> Vec<String> {
    const NAMED: usize = 5;
    let mut states: BTreeMap<State, Vec<&str>> = BTreeMap::new();
    for problem in &report.problems {
        let ids = states.entry(problem.outcome).or_default();
        ids.push(&problem.run);
    }
    let lines = states.iter().map(|(state, ids)| {
        let more = match ids.len().saturating_sub(NAMED) {
            0 => String::new(),
            num => format!(" and {num} more"),
        };
        let named = ids[..ids.len().min(NAMED)].join(", ");
        format!("  {} {}: {named}{more}", ids.len(), state.word())
    });
    lines.collect()
}
