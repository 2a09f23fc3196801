//! `runner run`: prepare the results folder, dispatch what is not completed, record, report.

use std::fs::{self, File};
use std::path::Path;
use std::sync::mpsc;

use wildmatch::WildMatch;

use super::experiment::{plan as plan_experiment, refuse, show as show_refusals};
use super::output::Output;
use super::{FAILED, INTERRUPTED, Logging, OK, RunArgs};
use crate::console::{Console, Mode};
use crate::data::{self, DataPlan};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::dispatch::{self, Cancel, Observed, Settings, Task, Urgency};
use crate::event::Event;
use crate::plan::{Plan, RunPlan};
use crate::record::{
    Collector, Environment, ExperimentFolder, RunFolder, Status, leftovers, status, write_json,
    write_whole,
};
use crate::report::{self, Report};
use crate::spec::document::{Document, plain_io_error};

/// Runs by default at once, at most: more than this starves small machines of memory.
const MAX_DEFAULT_JOBS: usize = 4;

/// Trains the runs of an experiment file that are not completed, and reports.
pub fn run(args: &RunArgs, logging: &Logging, output: &mut Output) -> u8 {
    match try_run(args, logging, output) {
        Ok(code) | Err(code) => code,
    }
}

fn try_run(args: &RunArgs, logging: &Logging, output: &mut Output) -> Result<u8, u8> {
    let mode = if args.quiet {
        Mode::Quiet
    } else {
        Mode::Normal
    };
    let fault = parse_fault(args.inject_fault.as_deref(), output)?;
    let (document, plan) = plan_experiment(&args.spec, Some(mode), output)?;
    let selected = select(&plan, &args.only, output)?;
    verify_data(&document, &plan, output)?;
    let folder = ExperimentFolder(args.results.join(&plan.experiment));
    // The lock is held until the report is written.
    let _lock = lock(&folder, output)?;
    let todo = prepare(&folder, &document, &plan, &selected, mode, output)?;
    let launch = Launch {
        args,
        logging,
        folder: &folder,
        plan: &plan,
        fault,
        mode,
    };
    let outcome = match todo.is_empty() {
        true => Ok(Urgency::None),
        false => launch.train(todo, output),
    };
    let report = report::write(&folder).map_err(|e| disk(&folder.report("md"), &e, output))?;
    if let Some(report) = report {
        show(&report, &folder, args, output);
        return Ok(match outcome? {
            Urgency::None if is_done(&report, &selected) => OK,
            Urgency::None => FAILED,
            _ => INTERRUPTED,
        });
    }
    outcome.map(|_| FAILED)
}

/// Whether none of the selected runs has a problem.
fn is_done(report: &Report, selected: &[&RunPlan]) -> bool {
    !report
        .problems
        .iter()
        .any(|problem| selected.iter().any(|run| run.id == problem.run))
}

fn parse_fault(text: Option<&str>, output: &mut Output) -> Result<Option<(WildMatch, String)>, u8> {
    let Some(text) = text else {
        return Ok(None);
    };
    match text.rsplit_once('@') {
        Some((glob, epoch)) if epoch.parse::<usize>().is_ok() => {
            Ok(Some((WildMatch::new(glob), epoch.to_owned())))
        }
        _ => {
            let message = format!("`--inject-fault {text}` is not of the form GLOB@EPOCH");
            Err(refuse(Diagnostic::error("usage", message), output))
        }
    }
}

fn select<'a>(
    plan: &'a Plan,
    only: &[String],
    output: &mut Output,
) -> Result<Vec<&'a RunPlan>, u8> {
    let globs: Vec<_> = only.iter().map(|glob| WildMatch::new(glob)).collect();
    let matches =
        |run: &&RunPlan| globs.is_empty() || globs.iter().any(|glob| glob.matches(&run.id));
    let selected: Vec<_> = plan.runs.iter().filter(matches).collect();
    match selected.is_empty() {
        false => Ok(selected),
        true => {
            let message = format!("no run matches `--only {}`", only.join(" --only "));
            let example = plan.runs.first().map_or("", |run| run.id.as_str());
            let diagnostic = Diagnostic::error("usage", message);
            Err(refuse(
                diagnostic.help(format!(
                    "ids look like `{example}`; `runner plan` shows them all"
                )),
                output,
            ))
        }
    }
}

/// Reads every data set once, so that a damaged one is refused before anything is written.
fn verify_data(document: &Document, plan: &Plan, output: &mut Output) -> Result<(), u8> {
    let mut verified: Vec<&DataPlan> = Vec::new();
    for run in &plan.runs {
        if verified.contains(&&run.data) {
            continue;
        }
        if let Err(error) = data::load(&run.data) {
            let mut diagnostic = error.to_diagnostic();
            diagnostic.span = document.root.at("data.type").map(|entry| entry.node.span);
            return Err(show_refusals(
                &document.sources,
                &Diagnostics(vec![diagnostic]),
                output,
            ));
        }
        verified.push(&run.data);
    }
    Ok(())
}

fn disk(path: &Path, error: &std::io::Error, output: &mut Output) -> u8 {
    let message = format!(
        "cannot write `{}`: {}",
        path.display(),
        plain_io_error(error)
    );
    let diagnostic = Diagnostic::error("results", message);
    refuse(
        diagnostic.help("choose another folder with `--results DIR`, or make this one writable"),
        output,
    )
}

fn lock(folder: &ExperimentFolder, output: &mut Output) -> Result<File, u8> {
    match folder.lock() {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => {
            let message = format!(
                "another `runner run` is writing to `{}`",
                folder.0.display()
            );
            let diagnostic = Diagnostic::error("results", message);
            Err(refuse(
                diagnostic.help("wait for it, or choose another folder with `--results DIR`"),
                output,
            ))
        }
        Err(e) => Err(disk(&folder.0, &e, output)),
    }
}

/// Looks at what the folder holds, refuses what does not belong together, and writes the plans of all
/// runs before anything trains. Returns the runs that are left to do.
fn prepare(
    folder: &ExperimentFolder,
    document: &Document,
    plan: &Plan,
    selected: &[&RunPlan],
    mode: Mode,
    output: &mut Output,
) -> Result<Vec<(RunPlan, RunFolder)>, u8> {
    let orphans = leftovers(plan, folder);
    let statuses = plan
        .runs
        .iter()
        .map(|run| status(run, &folder.run(&run.id)));
    let statuses: Vec<Status> = statuses
        .collect::<Result<_, _>>()
        .map_err(|e| refuse(Diagnostic::error("results", plain_io_error(&e)), output))?;
    refuse_other_plan(folder, plan, &statuses, &orphans, output)?;
    let write = || -> std::io::Result<()> {
        write_whole(
            &folder.experiment_toml(),
            document.sources.0[0].text.as_bytes(),
        )?;
        write_json(&folder.plan_json(), plan)?;
        for (run, status) in plan.runs.iter().zip(&statuses) {
            // A completed run keeps the file that it was made from. Others get the present one: it is
            // the same work, but the data may have moved.
            if *status != Status::Completed {
                folder.run(&run.id).write_plan(run)?;
            }
        }
        Ok(())
    };
    write().map_err(|e| disk(&folder.0, &e, output))?;
    let mut todo = Vec::new();
    let (mut num_completed, mut num_begun, mut num_failed) = (0, 0, 0);
    for (run, status) in plan.runs.iter().zip(&statuses) {
        if !selected.iter().any(|chosen| chosen.id == run.id) {
            continue;
        }
        match status {
            Status::Completed => {
                num_completed += 1;
                continue;
            }
            Status::Begun { .. } => num_begun += 1,
            Status::Failed { .. } => num_failed += 1,
            Status::New | Status::Different { .. } => {}
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
        add(plan.runs.len() - selected.len(), "left out by --only");
        add(num_completed, "skipped as they are completed");
        add(num_begun, "go on from where they were stopped");
        add(num_failed, "tried again after a failure");
        add(orphans.len(), "in the folder are not part of this plan");
        output.say(&format!("{}: {}", folder.0.display(), words.join(", ")));
    }
    Ok(todo)
}

fn refuse_other_plan(
    folder: &ExperimentFolder,
    plan: &Plan,
    statuses: &[Status],
    orphans: &[String],
    output: &mut Output,
) -> Result<(), u8> {
    let different = plan
        .runs
        .iter()
        .zip(statuses)
        .filter_map(|(run, status)| match status {
            Status::Different { keys } => Some((run, keys)),
            _ => None,
        });
    let different: Vec<_> = different.collect();
    let unrelated = !orphans.is_empty() && statuses.iter().all(|status| *status == Status::New);
    if different.is_empty() && !unrelated {
        return Ok(());
    }
    let message = format!("`{}` was made by another plan", folder.0.display());
    let mut diagnostic = Diagnostic::error("results", message);
    if let Some((run, keys)) = different.first() {
        let shown: Vec<_> = keys.iter().take(5).cloned().collect();
        let more = match keys.len().saturating_sub(5) {
            0 => String::new(),
            num => format!(", and {num} more keys"),
        };
        diagnostic = diagnostic.note(format!("in run `{}`: {}{more}", run.id, shown.join(", ")));
        if different.len() > 1 {
            diagnostic = diagnostic.note(format!("{} runs differ", different.len()));
        }
    } else if let Some(first) = orphans.first() {
        diagnostic = diagnostic.note(format!(
            "it holds {} runs, such as `{first}`, none of them of this plan",
            orphans.len()
        ));
    }
    Err(refuse(
        diagnostic
            .help("keep both: choose another folder with `--results DIR`, or another `experiment.name`")
            .help(format!("or delete the old results: rm -r {}", folder.0.display())),
        output,
    ))
}

/// What the training of an experiment's runs needs to know.
struct Launch<'a> {
    args: &'a RunArgs,
    logging: &'a Logging,
    folder: &'a ExperimentFolder,
    plan: &'a Plan,
    fault: Option<(WildMatch, String)>,
    mode: Mode,
}

impl Launch<'_> {
    /// Trains the runs that are left to do, and says how urgently it was told to stop.
    fn train(&self, todo: Vec<(RunPlan, RunFolder)>, output: &mut Output) -> Result<Urgency, u8> {
        let settings = settings(self.args, &todo)
            .map_err(|reason| refuse(Diagnostic::error("internal", reason), output))?;
        let tasks: Vec<_> = todo
            .iter()
            .map(|(run, folder)| self.task(run, folder))
            .collect();
        for (_, run_folder) in &todo {
            // The old outcome is not the run's any more.
            let removed = fs::remove_file(run_folder.summary_json());
            if let Err(e) = removed
                && e.kind() != std::io::ErrorKind::NotFound
            {
                return Err(disk(&run_folder.summary_json(), &e, output));
            }
        }
        let plans: Vec<_> = todo.iter().map(|(plan, _)| plan.clone()).collect();
        let mut console = Console::new(&plans, settings.jobs, self.mode);
        let mut collector = Collector::new(todo, self.environment())
            .map_err(|e| disk(&self.folder.0, &e, output))?;
        let cancel = Cancel::default();
        listen_for_signals(cancel.clone());
        let (sender, receiver) = mpsc::channel::<Observed>();
        let json = self.args.json;
        let (dispatched, collected) = std::thread::scope(|scope| {
            let collecting = scope.spawn(|| -> Result<(), u8> {
                let mut failed = Ok(());
                for Observed { run, event } in receiver {
                    if json {
                        output.print(&json_line(&collector.runs[run].plan, &event));
                    }
                    let taken = collector.take(run, &event);
                    let recorded = &collector.runs[run];
                    if let (Err(e), Ok(())) = (taken, failed) {
                        // What cannot be recorded must not be trained.
                        cancel.cancel(Urgency::Graceful);
                        disk(&recorded.folder.0, &e, output);
                        failed = Err(FAILED);
                    }
                    console.observe(run, &recorded.plan, &event, &recorded.record);
                }
                console.close();
                failed
            });
            let dispatched = dispatch::dispatch(&tasks, &settings, &cancel, sender);
            (dispatched, collecting.join().unwrap_or(Err(FAILED)))
        });
        collected?;
        dispatched.map_err(|reason| refuse(Diagnostic::error("internal", reason), output))?;
        Ok(cancel.urgency())
    }

    fn task(&self, run: &RunPlan, folder: &RunFolder) -> Task {
        let fault = self
            .fault
            .as_ref()
            .filter(|(glob, _)| glob.matches(&run.id));
        Task {
            plan: run.clone(),
            folder: folder.0.clone(),
            log: folder.run_log(),
            arguments: worker_arguments(self.logging, fault),
        }
    }

    fn environment(&self) -> Environment {
        let parent = self.args.spec.spec.parent();
        let checkout = parent.filter(|parent| !parent.as_os_str().is_empty());
        let notice = self.plan.notices.first().cloned();
        Environment::here(checkout.unwrap_or(Path::new(".")), notice)
    }
}

fn settings(args: &RunArgs, todo: &[(RunPlan, RunFolder)]) -> Result<Settings, String> {
    let program =
        std::env::current_exe().map_err(|e| format!("cannot find the runner program: {e}"))?;
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    // Runs on one accelerator would compete for it.
    let on_host = todo.iter().all(|(run, _)| run.device.backend.is_host());
    let default = if on_host {
        cores.min(MAX_DEFAULT_JOBS)
    } else {
        1
    };
    let jobs = args.jobs.map_or(default, usize::from).min(todo.len());
    Ok(Settings {
        program,
        jobs,
        threads: (cores / jobs).max(1),
    })
}

fn worker_arguments(logging: &Logging, fault: Option<&(WildMatch, String)>) -> Vec<String> {
    let mut arguments = vec!["-v".to_owned(); logging.verbose.into()];
    if let Some(filter) = &logging.log {
        arguments.extend(["--log".to_owned(), filter.clone()]);
    }
    if let Some((_, epoch)) = fault {
        arguments.extend(["--inject-fault".to_owned(), epoch.clone()]);
    }
    arguments
}

fn json_line(plan: &RunPlan, event: &Event) -> String {
    let mut line = serde_json::json!({ "run": plan.id });
    if let (Some(line), Ok(serde_json::Value::Object(event))) =
        (line.as_object_mut(), serde_json::to_value(event))
    {
        line.extend(event);
    }
    line.to_string()
}

/// The first Ctrl-C lets runs save a checkpoint, the second kills them.
#[cfg(unix)]
fn listen_for_signals(cancel: Cancel) {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        return;
    };
    std::thread::spawn(move || {
        for _ in signals.forever() {
            let urgency = match cancel.urgency() {
                Urgency::None => Urgency::Graceful,
                _ => Urgency::AtOnce,
            };
            crate::console::eprintln_lossy(match urgency {
                Urgency::Graceful => {
                    "stopping: running runs save a checkpoint; press Ctrl-C again to stop at once"
                }
                _ => "stopping at once",
            });
            cancel.cancel(urgency);
        }
    });
}

/// Elsewhere Ctrl-C ends this program, and the workers save a checkpoint when their leash is gone.
#[cfg(not(unix))]
fn listen_for_signals(_: Cancel) {}

fn show(report: &Report, folder: &ExperimentFolder, args: &RunArgs, output: &mut Output) {
    if !args.json {
        output.print(&report::table(report, Some(Output::width())));
    }
    let problems = report.problems.len();
    let and_problems = match problems {
        0 => String::new(),
        _ => format!(", {problems} not"),
    };
    output.say(&format!(
        "{} of {} runs completed{and_problems}; report: {}",
        report.num_completed,
        report.num_runs,
        folder.report("md").display()
    ));
}
