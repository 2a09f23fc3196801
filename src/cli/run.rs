//! `runner run`: prepare the results folder, dispatch what is not completed, record, report.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::mpsc;

use wildmatch::WildMatch;

use super::experiment::{plan as plan_experiment, refuse};
use super::output::Output;
use super::prepare::{disk, lock, prepare, verify_data, verify_memory};
use super::{FAILED, INTERRUPTED, Logging, OK, RunArgs};
use crate::console::{Console, Mode};
use crate::diagnostic::Diagnostic;
use crate::dispatch::{self, Cancel, Observed, Settings, Task, Urgency};
use crate::event::Event;
use crate::plan::{Plan, RunPlan};
use crate::record::{Collector, Environment, ExperimentFolder, RunFolder};
use crate::report::{self, Report};
use crate::train::Fault;

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
    verify_memory(&document, &plan, output)?;
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
    let chosen: BTreeSet<&str> = selected.iter().map(|run| run.id.as_str()).collect();
    let mut problems = report.problems.iter();
    !problems.any(|problem| chosen.contains(problem.run.as_str()))
}

fn parse_fault(text: Option<&str>, output: &mut Output) -> Result<Option<(WildMatch, String)>, u8> {
    let Some(text) = text else {
        return Ok(None);
    };
    let Some((glob, fault)) = text.rsplit_once('@') else {
        let message = format!("`--inject-fault {text}` is not of the form GLOB@FAULT");
        return Err(refuse(Diagnostic::error("usage", message), output));
    };
    match fault.parse::<Fault>() {
        Ok(_) => Ok(Some((WildMatch::new(glob), fault.to_owned()))),
        Err(reason) => Err(refuse(Diagnostic::error("usage", reason), output)),
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

/// Arguments that every worker gets.
pub fn worker_arguments(logging: &Logging, fault: Option<&(WildMatch, String)>) -> Vec<String> {
    let mut arguments = vec!["-v".to_owned(); logging.verbose.into()];
    if let Some(filter) = &logging.log {
        arguments.extend(["--log".to_owned(), filter.clone()]);
    }
    if let Some((_, fault)) = fault {
        arguments.extend(["--inject-fault".to_owned(), fault.clone()]);
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
pub fn listen_for_signals(cancel: Cancel) {
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
pub fn listen_for_signals(_: Cancel) {}

fn show(report: &Report, folder: &ExperimentFolder, args: &RunArgs, output: &mut Output) {
    if !args.json {
        output.print(&report::table(report, Output::width()));
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
