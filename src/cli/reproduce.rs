//! `runner reproduce`: a run is trained again from its folder, compared step by step, and graded.

use super::output::Output;
use super::tell::{Teller, this_program};
use super::{FAILED, Logging, OK, ReproduceArgs};
use crate::dispatch::Cancel;
use crate::ops::{self, Progress, Reproduce, Reproduced, Reproduction};
use runner_core::diagnostic::counted;
use runner_report::console::Mode;

/// Reproduces the run of a folder, or all completed runs of an experiment.
pub fn reproduce(args: &ReproduceArgs, logging: &Logging, output: &mut Output) -> u8 {
    let options = Reproduce {
        path: args.path.clone(),
        program: this_program(Some(logging)),
        data: args.data.clone(),
        at_least: args.at_least,
        device: args.device,
        steps: args.steps,
        out: args.out.clone(),
        max_unpacked: args.max_unpacked,
        cancel: Cancel::default(),
    };
    let board = if args.json { Mode::Quiet } else { Mode::Normal };
    let teller = Teller::new(Mode::Normal)
        .with_cancel(&options.cancel)
        .with_board(board);
    let sink = |progress: Progress<'_>| match progress {
        Progress::Reproduced(made) if args.json => {
            Output.print(&serde_json::to_string(made).unwrap_or_default());
        }
        Progress::Reproduced(made) => show(made, args.steps, &mut Output),
        // The error contains the same message.
        Progress::Failed(_) => {}
        progress => teller.tell(progress),
    };
    match ops::reproduce(&options, &sink) {
        Ok(reproduced) => verdict(&reproduced, args, output),
        Err(error) => output.fail(&error),
    }
}

/// Reports for several runs how well each was reproduced, and returns the exit code.
fn verdict(reproduced: &Reproduced, args: &ReproduceArgs, output: &mut Output) -> u8 {
    let runs = &reproduced.runs;
    let num_good = reproduced.num_good(args.at_least);
    if runs.len() > 1 && !args.json {
        for (id, made) in runs {
            let grade = made
                .as_ref()
                .map_or("not completed".into(), |made| made.grade.to_string());
            output.print(&format!("{id}: {grade}"));
        }
        output.say(&format!(
            "{num_good} of {} reproduced as requested",
            counted(runs.len(), "run")
        ));
    }
    if num_good == runs.len() { OK } else { FAILED }
}

/// Prints the comparison and the verdict.
fn show(reproduction: &Reproduction, steps: Option<usize>, output: &mut Output) {
    let comparison = &reproduction.comparison;
    match comparison.first_loss {
        _ if comparison.num_steps == 0 => {}
        None => output.print(&format!(
            "losses      equal in all {}",
            counted(comparison.num_steps, "step")
        )),
        Some((step, then, now)) => output.print(&format!(
            "losses      differ from step {step} of {} on: {then} originally, {now} now",
            comparison.num_steps
        )),
    }
    match &comparison.first_parameters {
        None => output.print("parameters  equal wherever they were compared"),
        Some((step, paths)) => {
            let first = &paths[0];
            let more = match paths.len() - 1 {
                0 => String::new(),
                num => format!(" and {num} more"),
            };
            output.print(&format!(
                "parameters  differ after step {step}: {first}{more}"
            ));
        }
    }
    match &comparison.first_numbers {
        _ if comparison.num_numbers == 0 => {}
        None => output.print(&format!(
            "metrics     equal in all {}",
            counted(comparison.num_numbers, "number")
        )),
        Some(first) => {
            let name = first.names.first().map_or("", String::as_str);
            let more = match first.names.len() {
                0 | 1 => String::new(),
                num => format!(", and {} more there", num - 1),
            };
            let shown = |value: Option<f64>| value.map_or("none".into(), |value| value.to_string());
            output.print(&format!(
                "metrics     differ from {} on: {name} {} originally, {} now{more}",
                first.place,
                shown(first.then),
                shown(first.now)
            ));
        }
    }
    if let Some((then, now)) = comparison.objective {
        output.print(&format!(
            "objective   {} {then:.6} originally, {now:.6} now",
            reproduction.metric
        ));
    }
    for what in &comparison.not_compared {
        output.print(&format!("not compared: {what}"));
    }
    let of_steps = match steps {
        Some(steps) => format!(" (of the first {})", counted(steps, "step")),
        None => String::new(),
    };
    output.print(&format!("verdict: {}{of_steps}", reproduction.grade));
}
