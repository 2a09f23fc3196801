//! `runner run`: prepare the results folder, dispatch what is not completed, record, report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use wildmatch::WildMatch;

use super::calibrate::{NotMeasured, Prober, calibrations};
use super::experiment::{plan as plan_experiment, refuse};
use super::follow::{follow, look};
#[cfg(unix)]
use super::leash::is_ignored;
use super::lock::lock;
use super::orphans::wait_for_workers;
use super::output::Output;
use super::prepare::{disk, prepare, verify_data, verify_memory};
use super::retry::select_failed;
use super::{FAILED, INTERRUPTED, Logging, OK, RunArgs};
use crate::dispatch::{self, Cancel, Hardware, Observed, Reason, Settings, Task, Urgency};
use crate::ops::devices;
use crate::train::Fault;
use runner_core::data::Trust;
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::event::{Attempts, Event};
use runner_core::plan::inventory::{HOST, Inventory};
use runner_core::plan::{Expected, Plan, RunPlan, quoted};
use runner_core::record::{
    Calibrations, Collector, Environment, ExperimentFolder, RunFolder, State, available_memory,
    known_build, look_at_this_build,
};
use runner_core::spec::backend::DeviceName;
use runner_core::spec::kind::show_duration;
use runner_core::spec::section::Choice;
use runner_report::console::{Board, Console, Mode};
use runner_report::report::{self, Report};

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
    verify_data(&document, &plan, Trust::Stamps, output)?;
    let folder = ExperimentFolder(args.results.join(&plan.experiment));
    // The lock is held until the report is written.
    let _lock = lock(&folder, args.wait, output)?;
    let cancel = Cancel::default();
    listen_for_signals(cancel.clone());
    let wanted = selected.iter().map(|run| folder.run(&run.id)).collect();
    // Before anything of these runs is read or moved.
    if !wait_for_workers(wanted, &cancel, output) {
        output.say(&format!(
            "stopped while waiting: no run was started; to go on: {}",
            this_command()
        ));
        return Err(INTERRUPTED);
    }
    let selected = select_failed(selected, &args.retry, &folder, output)?;
    let left_out = match (args.only.is_empty(), args.retry.is_empty()) {
        (true, _) => "left out by --retry",
        (_, true) => "left out by --only",
        _ => "left out by --only and --retry",
    };
    if !selected.is_empty() {
        look_at_this_build();
    }
    let todo = prepare(&folder, &document, &plan, &selected, left_out, mode, output)?;
    let launch = Launch {
        args,
        logging,
        folder: &folder,
        plan: &plan,
        fault,
        mode,
        cancel,
    };
    let outcome = if todo.is_empty() {
        Ok(None)
    } else {
        launch.train(todo, output)
    };
    let report = report::write(&folder).map_err(|e| disk(&folder.report("md"), &e, output))?;
    if let Some(report) = report {
        show(&report, &folder, args, output);
        let reason = outcome?;
        go_on(&report, &selected, reason.as_ref(), output);
        let num_left = num_left(&report, &selected);
        let is_all_skipped = selected.iter().all(|run| report.is_skipped(&run.id));
        return Ok(match reason.map(|stopped| stopped.reason) {
            Some(Reason::User) if num_left > 0 => INTERRUPTED,
            _ if num_left == 0 && !is_all_skipped => OK,
            _ => FAILED,
        });
    }
    outcome.map(|_| FAILED)
}

/// How many of the selected runs are neither completed nor skipped.
fn num_left(report: &Report, selected: &[&RunPlan]) -> usize {
    let chosen: BTreeSet<&str> = selected.iter().map(|run| run.id.as_str()).collect();
    let problems = report.problems.iter();
    let left =
        problems.filter(|problem| chosen.contains(problem.run.as_str()) && !problem.is_skipped());
    left.count()
}

/// Why everything was stopped.
struct Stopped {
    reason: Reason,
    /// What it means to the user; empty where that was said before.
    words: String,
}

/// Says why everything was stopped, and the command that goes on with what is left of the selected runs.
fn go_on(report: &Report, selected: &[&RunPlan], stopped: Option<&Stopped>, output: &mut Output) {
    let num_left = num_left(report, selected);
    let Some(stopped) = stopped.filter(|_| num_left > 0) else {
        return;
    };
    let why = match stopped.words.as_str() {
        "" => String::new(),
        words => format!("{words}: "),
    };
    output.say(&format!(
        "{why}{} left; to go on: {}",
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
    if !selected.is_empty() {
        Ok(selected)
    } else {
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

/// What the training of an experiment's runs needs to know.
struct Launch<'a> {
    args: &'a RunArgs,
    logging: &'a Logging,
    folder: &'a ExperimentFolder,
    plan: &'a Plan,
    fault: Option<(WildMatch, String)>,
    mode: Mode,
    cancel: Cancel,
}

impl Launch<'_> {
    /// Trains the runs that are left to do, and says why it was told to stop, if it was.
    fn train(
        &self,
        todo: Vec<(RunPlan, RunFolder)>,
        output: &mut Output,
    ) -> Result<Option<Stopped>, u8> {
        let cancel = self.cancel.clone();
        let mut hardware = hardware(&todo);
        let calibrations = calibrations();
        let prober = Prober {
            calibrations: &calibrations,
            hardware: &hardware,
            cancel: &cancel,
        };
        if !self.measure(&todo, &prober, output) {
            return Ok(Some(Stopped {
                words: String::new(),
                reason: Reason::User,
            }));
        }
        hardware.expect = expectation(&todo, calibrations, &hardware);
        let settings = settings(self.args, self.plan, &todo, hardware)
            .map_err(|reason| refuse(Diagnostic::error("internal", reason), output))?;
        for (_, run_folder) in &todo {
            let removed = run_folder.remove_summary();
            removed.map_err(|e| disk(&run_folder.summary_json(), &e, output))?;
        }
        let plans: Vec<_> = todo.iter().map(|(plan, _)| plan.clone()).collect();
        let mut board = Board::new(&self.plan.experiment, &plans, Some(settings.jobs));
        for (row, (_, folder)) in board.rows.iter_mut().zip(&todo) {
            // What is there already need not be waited for.
            let step = folder.checkpoint_steps().first().copied();
            row.step = step.unwrap_or(0).min(row.num_steps);
        }
        let environment = self
            .environment()
            .with_drivers(&settings.hardware.inventory);
        let mut collector =
            Collector::new(todo, environment).map_err(|e| disk(&self.folder.0, &e, output))?;
        // Events that are printed to the same terminal would go through the board.
        let has_data = self.args.json && Output::is_terminal();
        let mut console = Console::new(vec![board], look(self.mode, has_data, true));
        let tasks = collector.runs.iter();
        let tasks: Vec<_> = tasks
            .map(|run| self.task(&run.plan, &run.folder, &run.record.attempts))
            .collect();
        let (sender, receiver) = mpsc::channel::<Observed>();
        let json = self.args.json;
        let (dispatched, collected) = std::thread::scope(|scope| {
            let collecting = scope.spawn(|| -> Result<(), u8> {
                let mut failed = Ok(());
                follow(receiver, &mut console, &cancel, |console, observed| {
                    let Observed { run, event } = observed;
                    // Who reads the stream can rely on it that an event is in the record.
                    let taken = collector.take(run, &event);
                    if json {
                        output.print(&json_line(&collector.runs[run].plan, &event));
                    }
                    let recorded = &collector.runs[run];
                    if let (Err(e), Ok(())) = (taken, failed) {
                        // What cannot be recorded must not be trained.
                        cancel.cancel(Urgency::Graceful, Reason::NotRecorded);
                        console.make_way();
                        disk(&recorded.folder.0, &e, output);
                        failed = Err(FAILED);
                    }
                    console.observe((0, run), &recorded.plan, &event, &recorded.record);
                });
                failed
            });
            let dispatched = dispatch::dispatch(&tasks, &settings, &cancel, sender);
            (dispatched, collecting.join().unwrap_or(Err(FAILED)))
        });
        collected?;
        dispatched.map_err(|reason| refuse(Diagnostic::error("internal", reason), output))?;
        Ok(cancel.reason().map(|reason| Stopped {
            words: self.words(&reason, &tasks),
            reason,
        }))
    }

    /// Probes what runs with a limit hold, each kind of run once and as its ladder leaves it by its count; whether
    /// the user lets it go on.
    fn measure(
        &self,
        todo: &[(RunPlan, RunFolder)],
        prober: &Prober<'_>,
        output: &mut Output,
    ) -> bool {
        let calibrations = prober.calibrations;
        let limited = todo.iter().map(|(run, _)| run);
        let limited = limited.filter(|run| run.skip.is_none() && run.memory_limit_bytes.is_some());
        let mut order: Vec<RunPlan> = limited
            .filter(|run| calibrations.find(run).is_none())
            .map(|run| run.relieved(|run| prober.hardware.room(run)))
            .collect();
        // The largest batch first, so that the line of its probe goes for the others.
        order.sort_by_key(|run| std::cmp::Reverse(run.train.micro_batch_size));
        let mut tried: Vec<String> = Vec::new();
        for run in &order {
            let key = calibrations.key(run);
            if calibrations.find(run).is_some() || tried.contains(&key) {
                continue;
            }
            if self.mode == Mode::Normal {
                output.say(&format!(
                    "measuring what `{}` holds, as it has a limit",
                    run.trial
                ));
            }
            match prober.calibrate(run, output) {
                Ok(_) => {}
                Err(NotMeasured::Stopped) => {
                    output.say("stopped while it was measured: no run was started");
                    return false;
                }
                // The limit holds all the same: the run itself is measured.
                Err(NotMeasured::Because(reason)) => output.say(&format!(
                    "note: the forecast of `{}` is not calibrated: {reason}",
                    run.trial
                )),
            }
            tried.push(key);
        }
        true
    }

    fn words(&self, reason: &Reason, tasks: &[Task]) -> String {
        match reason {
            Reason::TimeLimit => {
                let limit = time_limit(self.plan).unwrap_or_default();
                format!(
                    "the experiment passed its limit of {} (`limits.experiment`)",
                    show_duration(limit)
                )
            }
            Reason::Failure { run, class } => format!(
                "stopped because `{}` failed, as `on_failure.{}.then` is \"stop\"",
                tasks[*run].plan.id,
                class.name()
            ),
            Reason::User | Reason::NotRecorded => String::new(),
        }
    }

    fn task(&self, run: &RunPlan, folder: &RunFolder, attempts: &Attempts) -> Task {
        let fault = self
            .fault
            .as_ref()
            .filter(|(glob, _)| glob.matches(&run.id));
        let mut arguments = worker_arguments(self.logging, fault);
        arguments.extend(kernels_argument(self.folder));
        arguments.extend(build_argument());
        Task {
            plan: run.clone(),
            folder: folder.0.clone(),
            log: folder.run_log(),
            arguments,
            attempts: attempts.clone(),
        }
    }

    fn environment(&self) -> Environment {
        let parent = self.args.spec.spec.parent();
        let checkout = parent.filter(|parent| !parent.as_os_str().is_empty());
        let notice = self.plan.notices.first().cloned();
        Environment::here(checkout.unwrap_or(Path::new(".")), notice)
    }
}

fn time_limit(plan: &Plan) -> Option<Duration> {
    Duration::try_from_secs_f64(plan.time_limit_secs?).ok()
}

fn settings(
    args: &RunArgs,
    plan: &Plan,
    todo: &[(RunPlan, RunFolder)],
    hardware: Hardware,
) -> Result<Settings, String> {
    let program =
        std::env::current_exe().map_err(|e| format!("cannot find the runner program: {e}"))?;
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    // A slot for each core of the host, and one for each card.
    let on_host = todo.iter().any(|(run, _)| run.device.backend.is_host());
    let on_host = if on_host {
        cores.min(MAX_DEFAULT_JOBS)
    } else {
        0
    };
    let devices: BTreeSet<String> = todo.iter().map(|(run, _)| run.device.to_string()).collect();
    let used = hardware.inventory.found();
    let cards: BTreeSet<&String> = used
        .filter(|(device, _)| !device.backend.is_host() && devices.contains(&device.to_string()))
        .map(|(_, found)| &found.card)
        .collect();
    let default = (on_host + cards.len()).max(1);
    let jobs = args.jobs.map_or(default, usize::from).min(todo.len());
    Ok(Settings {
        program,
        jobs,
        threads: (cores / jobs).max(1),
        hardware,
        time_limit: time_limit(plan),
    })
}

/// What the runs are computed on, each forecast by its count. Drivers are asked only when some run may need them.
fn hardware(todo: &[(RunPlan, RunFolder)]) -> Hardware {
    let needs = |run: &RunPlan| {
        let mut devices = run.on_exceed.devices.iter().chain([&run.device]);
        devices.any(|device| !device.backend.is_host())
    };
    if todo.iter().any(|(run, _)| needs(run)) {
        hardware_of(devices())
    } else {
        hardware_of(Inventory::default())
    }
}

/// The hardware behind devices, and the host.
pub fn hardware_of(inventory: Inventory) -> Hardware {
    let cards = inventory.found();
    let cards = cards.filter(|(_, found)| found.memory_of() != HOST);
    let known = cards.filter_map(|(_, found)| Some((found.card.clone(), found.memory_bytes?)));
    let mut capacities: BTreeMap<String, u64> = known.collect();
    let free = available_memory();
    if free > 0 {
        capacities.insert(HOST.to_owned(), free);
    }
    Hardware {
        inventory,
        capacities,
        expect: Arc::new(|run| Expected::unmeasured(run, None)),
    }
}

/// Forecasts of runs, as they are planned and as they may be adjusted. What was measured of a run, as it is planned or
/// as it was probed, corrects what is counted of it otherwise.
fn expectation(
    todo: &[(RunPlan, RunFolder)],
    calibrations: Calibrations,
    hardware: &Hardware,
) -> Arc<dyn Fn(&RunPlan) -> Expected + Send + Sync> {
    let corrections = todo.iter().filter_map(|(run, _)| {
        let planned = || Some((run.device, calibrations.correction(run)?));
        let probed = || {
            run.memory_limit_bytes?;
            let run = run.relieved(|run| hardware.room(run));
            Some((run.device, calibrations.correction(&run)?))
        };
        Some((run.id.clone(), planned().or_else(probed)?))
    });
    let corrections: BTreeMap<String, (DeviceName, f64)> = corrections.collect();
    let calibrations = Mutex::new(calibrations);
    Arc::new(move |run| {
        // Another device has its own ways to hold the same.
        let known = corrections.get(&run.id);
        let known = known.filter(|(device, _)| *device == run.device);
        let lock = calibrations.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
            .expected(run, known.map(|(_, correction)| *correction))
    })
}

/// The argument that has the runs of an experiment share the kernels that they choose.
pub fn kernels_argument(folder: &ExperimentFolder) -> [String; 2] {
    let kernels = folder.kernels();
    let kernels = std::path::absolute(&kernels).unwrap_or(kernels);
    ["--kernels".to_owned(), kernels.display().to_string()]
}

/// The argument that tells a worker of which build this program is, so that it need not read its file.
pub fn build_argument() -> Vec<String> {
    let known = known_build().map(|known| ["--build".to_owned(), known]);
    known.into_iter().flatten().collect()
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

/// The first Ctrl-C or SIGTERM lets runs save a checkpoint, the second kills them. A closed terminal (SIGHUP) lets them
/// save one too, however often it is said: shells and systemd say it beside other signals. It stays ignored under `nohup`.
#[cfg(unix)]
pub fn listen_for_signals(cancel: Cancel) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let wanted = [SIGINT, SIGTERM].into_iter().chain(hangup);
    let Ok(mut signals) = Signals::new(wanted) else {
        return;
    };
    std::thread::spawn(move || {
        let mut is_hung_up = false;
        for signal in signals.forever() {
            let urgency = match cancel.urgency() {
                Urgency::None => Urgency::Graceful,
                other if signal == SIGHUP => other,
                // What comes with the hangup is no second request.
                Urgency::Graceful if is_hung_up => Urgency::Graceful,
                _ => Urgency::AtOnce,
            };
            is_hung_up = signal == SIGHUP;
            cancel.cancel(urgency, Reason::User);
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
    for footnote in report::footnotes(report) {
        output.say(&footnote);
    }
    let num_skipped = report.problems.iter().filter(|p| p.is_skipped()).count();
    let and = |num: usize, what: &str| match num {
        0 => String::new(),
        _ => format!(", {num} {what}"),
    };
    let and_problems =
        and(report.problems.len() - num_skipped, "not") + &and(num_skipped, "skipped");
    output.say(&format!(
        "{} of {} runs completed{and_problems}; report: {}",
        report.num_completed,
        report.num_runs,
        folder.report("html").display()
    ));
    for line in not_completed(report) {
        output.say(&line);
    }
}

/// The runs that are not completed by how far they are, each state in a line.
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
