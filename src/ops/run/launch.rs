//! The training of the runs that are left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wildmatch::WildMatch;

use super::prepare::ToDo;
use super::{Run, Stopped};
use crate::dispatch::{Hardware, Reason, Settings, Task};
use crate::error::Error;
use crate::ops::cluster::launch_of;
use crate::ops::probe::{NotMeasured, Prober, calibrations};
use crate::ops::program::{kernels_argument, num_cores};
use crate::ops::trained::{NotTrained, train_all};
use crate::ops::{Progress, Sink, Training, devices};
use crate::train::Pause;
use runner_core::event::Attempts;
use runner_core::plan::inventory::{HOST, Inventory};
use runner_core::plan::{Expected, Plan, RunPlan};
use runner_core::record::{
    Calibrations, Collector, Environment, ExperimentFolder, RunFolder, available_memory,
};
use runner_core::spec::backend::DeviceName;

/// The default maximum of concurrent runs: more than this exhausts the memory of small machines.
const MAX_DEFAULT_JOBS: usize = 4;

/// The inputs of training an experiment's runs.
pub(super) struct Launch<'a> {
    pub(super) options: &'a Run,
    pub(super) folder: &'a ExperimentFolder,
    pub(super) plan: &'a Plan,
    /// A failure to provoke, and in which runs.
    pub(super) fault: Option<(WildMatch, String)>,
    /// When the time of the experiment began.
    pub(super) began: Instant,
    /// The lease under which a job of a cluster trains.
    pub(super) leasehold: Option<Leasehold>,
}

/// How a job of a cluster trains a run.
pub(in crate::ops) struct Leasehold {
    /// The folder of the run as users know it.
    pub(in crate::ops) shown: PathBuf,
    /// The threads of the run, if the job has so many processors.
    pub(in crate::ops) threads: Option<usize>,
}

/// Trains a run under a lease, which gives it a folder of its own.
pub(in crate::ops) fn train_leased(
    (options, folder, plan): (&Run, &ExperimentFolder, &Plan),
    (run, leased, resumes_at, pause): (RunPlan, RunFolder, usize, Option<Pause>),
    (leasehold, fault, began): (Leasehold, Option<(WildMatch, String)>, Instant),
    sink: &Sink<'_>,
) -> Result<Option<Stopped>, Error> {
    let launch = Launch {
        options,
        folder,
        plan,
        fault,
        began,
        leasehold: Some(leasehold),
    };
    let todo = ToDo {
        plan: run,
        folder: leased,
        resumes_at,
        pause,
    };
    launch.train(vec![todo], sink)
}

impl Launch<'_> {
    /// Trains the remaining runs, and returns why they were stopped early, if so. The sink has been told of an error.
    pub(super) fn train(&self, todo: Vec<ToDo>, sink: &Sink<'_>) -> Result<Option<Stopped>, Error> {
        self.try_train(todo, sink).map_err(|lost| {
            if lost.is_told {
                // The request itself was valid.
                return lost.error.into_failed();
            }
            sink(Progress::Failed(&lost.error));
            lost.error
        })
    }

    fn try_train(&self, todo: Vec<ToDo>, sink: &Sink<'_>) -> Result<Option<Stopped>, NotTrained> {
        let cancel = &self.options.cancel;
        let mut hardware = self.hardware(&todo);
        let launch = launch_of(self.options, self.plan)?;
        hardware.has_any_gpu = launch.is_local() && launch.gpus().is_some();
        let calibrations = calibrations(&self.options.experiment.program);
        let prober = Prober {
            program: &self.options.experiment.program,
            calibrations: &calibrations,
            hardware: &hardware,
            cancel,
        };
        if !measure(&todo, &prober, sink) {
            return Ok(Some(Stopped::WhileMeasuring));
        }
        hardware.expect = expectation(&todo, calibrations, &hardware);
        let settings = self.settings(&todo, hardware)?;
        for run in &todo {
            // No other process has the run.
            run.folder.remove_all_unfinished();
            let removed = run.folder.remove_summary();
            removed.map_err(|e| Error::unwritable_results(&run.folder.summary_json(), &e))?;
        }
        let environment = self
            .environment()
            .with_drivers(&settings.hardware.inventory);
        let plans: Vec<_> = todo.iter().map(|run| run.plan.clone()).collect();
        let pauses: Vec<_> = todo.iter().map(|run| run.pause).collect();
        let steps: Vec<_> = todo.iter().map(|run| run.resumes_at).collect();
        let runs = todo.into_iter().map(|run| (run.plan, run.folder)).collect();
        let mut collector = Collector::new(runs, environment)
            .map_err(|e| Error::unwritable_results(&self.folder.0, &e))?;
        sink(Progress::Training(&Training {
            experiment: &self.plan.experiment,
            runs: &plans,
            steps: &steps,
            jobs: settings.jobs,
            notify: &self.plan.notify,
        }));
        let tasks = collector.runs.iter().zip(pauses);
        let tasks: Vec<_> = tasks
            .map(|(run, pause)| self.task(&run.plan, &run.folder, &run.record.attempts, pause))
            .collect();
        train_all(&tasks, &settings, cancel, &mut collector, sink)?;
        Ok(cancel.reason().map(|reason| self.stopped(reason, &tasks)))
    }

    fn stopped(&self, reason: Reason, tasks: &[Task]) -> Stopped {
        match reason {
            Reason::TimeLimit => Stopped::TimeLimit(time_limit(self.plan).unwrap_or_default()),
            Reason::Failure { run, class } => Stopped::Failure {
                run: tasks[run].plan.id.clone(),
                class,
            },
            Reason::User => Stopped::User,
            Reason::NotRecorded => Stopped::NotRecorded,
        }
    }

    fn task(
        &self,
        run: &RunPlan,
        folder: &RunFolder,
        attempts: &Attempts,
        pause: Option<Pause>,
    ) -> Task {
        let mut arguments = self.options.experiment.program.worker_arguments();
        if let Some((glob, fault)) = &self.fault
            && glob.matches(&run.id)
        {
            arguments.extend(["--inject-fault".to_owned(), fault.clone()]);
        }
        arguments.extend(kernels_argument(self.folder));
        if let Some(pause) = pause {
            arguments.extend(["--prune-after".to_owned(), pause.to_string()]);
        }
        if self.leasehold.is_some() {
            arguments.push("--leased".into());
        }
        Task {
            plan: run.clone(),
            folder: folder.0.clone(),
            shown: self.leasehold.as_ref().map(|it| it.shown.clone()),
            log: folder.run_log(),
            arguments,
            attempts: attempts.clone(),
        }
    }

    fn environment(&self) -> Environment {
        let parent = self.options.experiment.path.parent();
        let checkout = parent.filter(|parent| !parent.as_os_str().is_empty());
        let notice = self.plan.notices.first().cloned();
        Environment::here(checkout.unwrap_or(Path::new(".")), notice)
    }

    fn settings(&self, todo: &[ToDo], hardware: Hardware) -> Result<Settings, Error> {
        let program = self.options.experiment.program.find()?.to_owned();
        let cores = num_cores();
        // One slot for each core of the host, and one for each GPU.
        let on_host = todo.iter().any(|run| run.plan.device.backend.is_host());
        let on_host = if on_host {
            cores.min(MAX_DEFAULT_JOBS)
        } else {
            0
        };
        let devices = todo.iter().map(|run| run.plan.device);
        let is_found = |device: &DeviceName| {
            let mut found = hardware.inventory.found();
            found.any(|(known, _)| known == *device)
        };
        let devices = devices.filter(|device| !device.backend.is_host() && is_found(device));
        let cards: BTreeSet<String> = devices.flat_map(|device| hardware.cards(device)).collect();
        let default = (on_host + cards.len()).max(1);
        let jobs = self.options.jobs.unwrap_or(default).clamp(1, todo.len());
        Ok(Settings {
            program,
            jobs,
            threads: self
                .leasehold
                .as_ref()
                .and_then(|it| it.threads)
                .unwrap_or((cores / jobs).max(1)),
            hardware,
            time_limit: time_limit(self.plan)
                .map(|limit| limit.saturating_sub(self.began.elapsed())),
        })
    }

    /// The hardware of the runs, each forecast by its count. Drivers are only queried if some run may need them.
    fn hardware(&self, todo: &[ToDo]) -> Hardware {
        let needs = |run: &RunPlan| {
            let mut devices = run.on_exceed.devices.iter().chain([&run.device]);
            devices.any(|device| !device.backend.is_host())
        };
        if todo.iter().any(|run| needs(&run.plan)) {
            hardware_of(devices(&self.options.experiment.program))
        } else {
            hardware_of(Inventory::default())
        }
    }
}

/// Probes the memory of runs with a limit, each kind of run once and with the remedies that its count needs; returns
/// whether the user did not cancel.
fn measure(todo: &[ToDo], prober: &Prober<'_>, sink: &Sink<'_>) -> bool {
    let calibrations = prober.calibrations;
    let limited = todo.iter().map(|run| &run.plan);
    let limited = limited.filter(|run| run.skip.is_none() && run.memory_limit_bytes.is_some());
    let mut order: Vec<RunPlan> = limited
        .filter(|run| calibrations.find(run).is_none())
        .map(|run| run.relieved(|run| prober.hardware.room(run)))
        .collect();
    // The largest batch first, so that the line of its probe covers the others.
    order.sort_by_key(|run| std::cmp::Reverse(run.train.micro_batch_size));
    let mut tried: Vec<String> = Vec::new();
    for run in &order {
        let key = calibrations.key(run);
        if calibrations.find(run).is_some() || tried.contains(&key) {
            continue;
        }
        sink(Progress::Step(&format!(
            "measuring the memory of `{}`, since it has a limit",
            run.trial
        )));
        match prober.calibrate(run, sink) {
            Ok(_) => {}
            Err(NotMeasured::Stopped) => return false,
            // The limit still applies: the run itself is measured.
            Err(reason) => sink(Progress::Note(&format!(
                "the forecast of `{}` is not calibrated: {reason}",
                run.trial
            ))),
        }
        tried.push(key);
    }
    true
}

fn time_limit(plan: &Plan) -> Option<Duration> {
    Duration::try_from_secs_f64(plan.time_limit_secs?).ok()
}

/// The hardware behind devices, and the host.
pub(crate) fn hardware_of(inventory: Inventory) -> Hardware {
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
        has_any_gpu: false,
    }
}

/// Forecasts of runs, as planned and with possible adjustments. Measurements of a run, as planned or as probed, correct
/// its count otherwise.
fn expectation(
    todo: &[ToDo],
    calibrations: Calibrations,
    hardware: &Hardware,
) -> Arc<dyn Fn(&RunPlan) -> Expected + Send + Sync> {
    let corrections = todo.iter().filter_map(|ToDo { plan: run, .. }| {
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
        // Another device needs different memory for the same work.
        let known = corrections.get(&run.id);
        let known = known.filter(|(device, _)| *device == run.device);
        let lock = calibrations.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
            .expected(run, known.map(|(_, correction)| *correction))
    })
}
