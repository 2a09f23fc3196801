//! Before anything trains: the data is read once, the results folder is looked at and locked, what does
//! not belong together is refused, and every run's plan is written.

use std::collections::BTreeSet;
use std::path::Path;

use super::builds::other_builds;
use super::experiment::{refuse, show as show_refusals};
use super::output::Output;
use runner_core::data::{self, DataPlan, Trust};
use runner_core::diagnostic::{Diagnostic, Diagnostics};
use runner_core::event::Event;
use runner_core::plan::{Forecast, Plan, RunPlan, put_together};
use runner_core::record::{
    ExperimentFolder, RunFolder, Status, is_other_format, is_unwritable, leftovers, remedy, status,
    total_memory, unwritable, write_json_synced, write_whole,
};
use runner_core::spec::document::{Document, plain_io_error};
use runner_core::spec::kind::show_bytes;
use runner_core::spec::render::render;
use runner_report::console::Mode;

/// Reads every data set once, so that a damaged one is refused before anything is written.
pub fn verify_data(
    document: &Document,
    plan: &Plan,
    trust: Trust,
    output: &mut Output,
) -> Result<(), u8> {
    let mut verified: Vec<&DataPlan> = Vec::new();
    for run in &plan.runs {
        if verified.contains(&&run.data) {
            continue;
        }
        if let Err(error) = data::load_by(&run.data, trust, &|_, _| {}) {
            return Err(refuse_at(
                document,
                "data.type",
                error.to_diagnostic(),
                output,
            ));
        }
        verified.push(&run.data);
    }
    Ok(())
}

/// Refuses runs that the machine certainly cannot hold, on devices that use its memory.
pub fn verify_memory(document: &Document, plan: &Plan, output: &mut Output) -> Result<(), u8> {
    let there = Some(total_memory()).filter(|there| *there > 0);
    let on_host = plan.runs.iter().filter(|run| run.device.backend.is_host());
    let too_large = |run: &RunPlan| {
        let least = Forecast::least_after(&run.demand(), &run.on_exceed.rungs)?;
        let room = run.room(there)?;
        (least > room.bytes).then_some((least, room))
    };
    let found = on_host
        .filter_map(|run| Some((run, too_large(run)?)))
        .next();
    let Some((run, (least, room))) = found else {
        return Ok(());
    };
    let message = format!(
        "run `{}` holds at least {}, and on this machine {}",
        run.id,
        show_bytes(least),
        room.in_words()
    );
    let diagnostic = Diagnostic::error("memory", message).help(format!(
        "{}; `runner memory` shows what would fit",
        room.remedy()
    ));
    Err(refuse_at(document, room.key(), diagnostic, output))
}

/// Refuses with the place of a key, where the file has it.
fn refuse_at(
    document: &Document,
    key: &str,
    mut diagnostic: Diagnostic,
    output: &mut Output,
) -> u8 {
    diagnostic.span = document.root.at(key).map(|entry| entry.node.span);
    show_refusals(&document.sources, &Diagnostics(vec![diagnostic]), output)
}

/// Refuses a file that cannot be written.
pub fn disk(path: &Path, error: &std::io::Error, output: &mut Output) -> u8 {
    let message = if is_unwritable(error) {
        error.to_string()
    } else {
        format!(
            "cannot write `{}`: {}",
            path.display(),
            plain_io_error(error)
        )
    };
    let diagnostic = Diagnostic::error("results", message);
    refuse(
        diagnostic.help("choose another folder with `--results DIR`, or make this one writable"),
        output,
    )
}

/// Refuses what the folder of a run holds and cannot be read.
pub fn unreadable(error: &std::io::Error, folder: &RunFolder, output: &mut Output) -> u8 {
    let diagnostic = Diagnostic::error("results", plain_io_error(error));
    let place = folder.0.display();
    let diagnostic = if is_other_format(error) {
        diagnostic
    .help("keep both: choose another folder with `--results DIR`, or another `experiment.name`")
    .help(format!("or move that run away to train it again: mv '{place}' ELSEWHERE"))
    } else {
        diagnostic.help(remedy(error))
    };
    refuse(diagnostic, output)
}

/// Looks at what the folder holds, refuses what does not belong together, and writes the plans of all
/// runs before anything trains. Returns the runs that are left to do.
pub fn prepare(
    folder: &ExperimentFolder,
    document: &Document,
    plan: &Plan,
    selected: &[&RunPlan],
    left_out: &str,
    mode: Mode,
    output: &mut Output,
) -> Result<Vec<(RunPlan, RunFolder)>, u8> {
    let orphans = leftovers(plan.runs.iter().map(|run| run.id.as_str()), folder);
    let statuses = plan.runs.iter().map(|run| {
        let folder = folder.run(&run.id);
        status(run, &folder).map_err(|e| unreadable(&e, &folder, output))
    });
    let statuses: Vec<Status> = statuses.collect::<Result<_, _>>()?;
    refuse_unrelated(folder, &statuses, &orphans, output)?;
    // Before anything is written: what is refused stays as it was.
    let unfinished = plan.runs.iter().zip(&statuses);
    let mut unfinished = unfinished.filter(|(_, status)| **status != Status::Completed);
    folder
        .check_links()
        .and_then(|()| unfinished.try_for_each(|(run, _)| folder.run(&run.id).check_links()))
        .map_err(|e| disk(&folder.0, &e, output))?;
    let chosen: BTreeSet<&str> = selected.iter().map(|run| run.id.as_str()).collect();
    let write = || -> std::io::Result<()> {
        let copy = document.sources.0[0].text.as_bytes();
        write_whole(&folder.experiment_toml(), copy)
            .map_err(|e| unwritable(&folder.experiment_toml(), e))?;
        write_resolved(folder, document, plan)?;
        write_json_synced(&folder.plan_json(), plan)
            .map_err(|e| unwritable(&folder.plan_json(), e))?;
        for (run, status) in plan.runs.iter().zip(&statuses) {
            let there = folder.run(&run.id);
            let is_chosen = chosen.contains(run.id.as_str());
            match status {
                // It keeps the file that it was made from.
                Status::Completed => continue,
                // What is not asked for stays as it is.
                Status::Shorter { .. } | Status::Different { .. } | Status::Damaged { .. }
                    if !is_chosen =>
                {
                    continue;
                }
                Status::Unreadable { .. } => continue,
                Status::Shorter { epochs, .. } => {
                    // Said before the new plan is there: a kill in between must not leave a run that looks
                    // as if it had come to the new end.
                    there.append_event(&Event::RunExtended {
                        from_epochs: *epochs,
                        to_epochs: run.train.epochs,
                        fingerprint: run.fingerprint.clone(),
                    })?;
                    there.sync_events()?;
                }
                Status::Different { .. } | Status::Damaged { .. } => {
                    drop(folder.replace(&run.id)?);
                }
                Status::New | Status::Begun { .. } | Status::Failed { .. } => {}
            }
            // The present file is the same work, or its continuation, but the data may have moved.
            there.write_plan(run)?;
        }
        Ok(())
    };
    write().map_err(|e| disk(&folder.0, &e, output))?;
    let mut todo = Vec::new();
    let (mut num_completed, mut num_begun, mut num_failed) = (0, 0, 0);
    let (mut num_shorter, mut replaced, mut damaged) = (0, Vec::new(), Vec::new());
    let mut num_unreadable = 0;
    for (run, status) in plan.runs.iter().zip(&statuses) {
        if !chosen.contains(run.id.as_str()) {
            continue;
        }
        match status {
            Status::Completed => {
                num_completed += 1;
                continue;
            }
            Status::Begun { .. } => num_begun += 1,
            Status::Failed { .. } => num_failed += 1,
            Status::Shorter { .. } => num_shorter += 1,
            Status::Different { reasons } => replaced.push((&run.id, reasons.clone())),
            Status::Damaged { reason } => damaged.push((&run.id, vec![reason.clone()])),
            Status::Unreadable { reason, remedy } => {
                num_unreadable += 1;
                output.say(&format!("`{}` is left alone: {reason}", run.id));
                output.say(&format!("  help: {remedy}"));
                continue;
            }
            Status::New => {}
        }
        todo.push((run.clone(), folder.run(&run.id)));
    }
    if mode == Mode::Normal {
        let mut words = vec![format!("{} of {} runs to do", todo.len(), plan.runs.len())];
        let mut add = |num: usize, what: &str| {
            if num > 0 {
                words.push(format!("{num} {what}"));
            }
        };
        add(plan.runs.len() - selected.len(), left_out);
        add(num_completed, "skipped as they are completed");
        add(num_begun, "go on from where they were stopped");
        add(num_shorter, "go on to more epochs");
        add(replaced.len(), "made anew");
        add(damaged.len(), "damaged and trained again");
        add(num_unreadable, "left alone as they cannot be read");
        add(num_failed, "tried again after a failure");
        add(orphans.len(), "in the folder are not part of this plan");
        output.say(&format!("{}: {}", folder.0.display(), words.join(", ")));
    }
    // Damage is said to those too who asked for quiet.
    for (id, reason) in &damaged {
        output.say(&format!("`{id}` is trained again: {}", reason.join("; ")));
    }
    if mode == Mode::Normal {
        say_replaced(&replaced, output);
    }
    if !damaged.is_empty() || !replaced.is_empty() && mode == Mode::Normal {
        let place = folder.0.join("replaced");
        output.say(&format!(
            "what was there before is kept in {}",
            place.display()
        ));
    }
    if mode == Mode::Normal {
        let runs = plan.runs.iter().zip(&statuses);
        let runs = runs.filter(|(run, _)| chosen.contains(run.id.as_str()));
        for note in other_builds(folder, runs) {
            output.say(&note);
        }
    }
    Ok(todo)
}

/// An input of several layers is no use by its copy alone: beside it stands what they come to, which can
/// be run by itself.
fn write_resolved(
    folder: &ExperimentFolder,
    document: &Document,
    plan: &Plan,
) -> std::io::Result<()> {
    let path = folder.resolved_toml();
    let is_alone = document.sources.0.len() == 1 && document.environment.is_empty();
    let base = Path::new(&plan.source).parent().unwrap_or(Path::new(""));
    let base = std::path::absolute(Path::new(".").join(base))?;
    match put_together(document, None, Some(&base)) {
        Ok((root, axes)) if !is_alone => {
            let text = render(document, &root, &axes, &plan.experiment);
            write_whole(&path, text.as_bytes())
        }
        _ => match std::fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        },
    }
}

/// Says why runs are made anew, each reason once.
fn say_replaced(replaced: &[(&String, Vec<String>)], output: &mut Output) {
    const SHOWN: usize = 3;
    let mut seen: Vec<&Vec<String>> = Vec::new();
    for (id, reasons) in replaced {
        if seen.contains(&reasons) {
            continue;
        }
        seen.push(reasons);
        if seen.len() <= SHOWN {
            output.say(&format!("`{id}` is made anew: {}", reasons.join("; ")));
        }
    }
}

/// A folder that holds other runs alone is most likely another experiment of the same name.
fn refuse_unrelated(
    folder: &ExperimentFolder,
    statuses: &[Status],
    orphans: &[String],
    output: &mut Output,
) -> Result<(), u8> {
    let is_unrelated = statuses.iter().all(|status| *status == Status::New);
    let Some(first) = orphans.first().filter(|_| is_unrelated) else {
        return Ok(());
    };
    let message = format!("`{}` was made by another plan", folder.0.display());
    let diagnostic = Diagnostic::error("results", message).note(format!(
        "it holds {} runs, such as `{first}`, none of them of this plan",
        orphans.len()
    ));
    Err(refuse(
        diagnostic
            .help("keep both: choose another folder with `--results DIR`, or another `experiment.name`")
            .help(format!("or delete the old results: rm -r {}", folder.0.display())),
        output,
    ))
}
