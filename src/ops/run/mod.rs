//! Trains the runs of an experiment that are not completed, and writes its report.

mod forks;
mod hook;
mod launch;
mod notify;
mod on_cluster;
mod prepare;
mod search;
mod select;
mod until;
mod wait;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use wildmatch::WildMatch;

use super::cluster::{self, Submitter, launch_of};
use super::verify::{verify_data, verify_memory};
use super::{Experiment, Planned, Progress, Sink};
use crate::dispatch::Cancel;
use crate::error::{Error, FAILED, INTERRUPTED, OK};
use crate::train::Fault;
use forks::Waiting;
use launch::Launch;
use on_cluster::on_cluster;
use runner_core::data::Trust;
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::event::FailureClass;
use runner_core::plan::{Plan, RunPlan};
use runner_core::record::{ExperimentFolder, Lock, PlanFile, look_at_this_build};
use runner_core::spec::launch::SystemKind;
use runner_report::report::{self, Problem, Report};

pub(crate) use hook::Hook;
pub(crate) use launch::hardware_of;
pub(super) use launch::{Leasehold, train_leased};
pub use prepare::Prepared;
pub(crate) use search::{document_so_far, plan_as_begun, search_so_far};
pub use select::{NoClass, Retry};

/// Which runs of which experiment are trained, and into which folder.
#[derive(Clone)]
pub struct Run {
    /// The experiment file, and the program that trains its runs.
    pub experiment: Experiment,
    /// The folder that contains the folders of experiments.
    pub results: PathBuf,
    /// The number of concurrent runs; by default as many as fit on the machine.
    pub jobs: Option<usize>,
    /// Patterns of ids such as `*seed*`: only runs that match one of them; all runs if there are none.
    pub only: Vec<String>,
    /// Only runs with this outcome; all runs if none is set.
    pub retry: Vec<Retry>,
    /// Whether to add seeds until every verdict is decided, as `verdict.looks` and `verdict.max_seeds` allow.
    pub until_decided: bool,
    /// Whether to wait for another `runner run` that writes to the same folder.
    pub wait: bool,
    /// What trains the runs, instead of what the file says.
    pub launch: Option<SystemKind>,
    /// Whether to wait for the jobs of a cluster, and to submit runs again as `[on_failure]` says. Always done where the
    /// next runs depend on results.
    pub follow: bool,
    /// A failure to inject into the matching runs, as `GLOB@FAULT`, for tests.
    pub inject_fault: Option<String>,
    /// Cancels the operation, from [`Progress::MayCancel`] on.
    pub cancel: Cancel,
}

impl Run {
    /// All runs of an experiment, in the folder `results`.
    pub fn new(experiment: Experiment) -> Self {
        Self {
            experiment,
            results: "results".into(),
            jobs: None,
            only: Vec::new(),
            retry: Vec::new(),
            until_decided: false,
            wait: false,
            launch: None,
            follow: false,
            inject_fault: None,
            cancel: Cancel::default(),
        }
    }
}

/// The results of the runs.
#[derive(Debug)]
pub struct RunOutcome {
    /// The experiment's folder.
    pub folder: ExperimentFolder,
    /// The ids of the requested runs.
    pub selected: BTreeSet<String>,
    /// Why the training ended before all runs had ended.
    pub stopped: Option<Stopped>,
    /// The error that prevented training or recording; the sink has received it as [`Progress::Failed`].
    pub failure: Option<Error>,
    /// The report of the experiment; none if its folder has been removed in the meantime, or if jobs of a cluster train
    /// its runs.
    pub report: Option<Report>,
}

/// Why a training ended early.
#[derive(Clone, Debug, PartialEq)]
pub enum Stopped {
    /// By the user, before any run was started.
    WhileMeasuring,
    /// By the user.
    User,
    /// The experiment exceeded its time limit.
    TimeLimit(Duration),
    /// A run failed, and the experiment file requests a stop in that case.
    Failure {
        /// The run's id.
        run: String,
        /// The kind of failure.
        class: FailureClass,
    },
    /// The events could not be recorded.
    NotRecorded,
    /// Nothing was stopped: jobs of a cluster train so many runs.
    Submitted(usize),
}

impl RunOutcome {
    /// How many of the requested runs are neither completed nor skipped.
    pub fn num_left(&self) -> usize {
        self.left().count()
    }

    /// What happened to those.
    pub(super) fn left(&self) -> impl Iterator<Item = &Problem> {
        let problems = self.report.iter().flat_map(|report| &report.problems);
        problems.filter(|problem| self.selected.contains(&problem.run) && !problem.is_skipped())
    }

    /// The exit code for the state of the runs: 0 if all requested runs are completed or skipped, unless all were
    /// skipped.
    pub fn exit_code(&self) -> u8 {
        if let Some(failure) = &self.failure {
            return failure.exit_code();
        }
        if let Some(Stopped::Submitted(_)) = self.stopped {
            return OK;
        }
        let Some(report) = &self.report else {
            return FAILED;
        };
        let num_left = self.num_left();
        let is_all_skipped = self.selected.iter().all(|run| report.is_skipped(run));
        match self.stopped {
            Some(Stopped::User | Stopped::WhileMeasuring) if num_left > 0 => INTERRUPTED,
            _ if num_left == 0 && !is_all_skipped => OK,
            _ => FAILED,
        }
    }
}

/// Trains the runs of an experiment that are not completed, each in its own process, records their events in the
/// experiment's folder, and writes its report.
///
/// # Errors
///
/// [`Error::Experiment`] and [`Error::Refused`] before anything is written, if the experiment file, its data, the
/// folder or the request is invalid; [`Error::Interrupted`] if it was cancelled before any run was started. A failed
/// run is not an error: see [`RunOutcome::exit_code`].
///
/// ```no_run
/// use burn_runner::ops::{self, Experiment, Program, Run};
///
/// let mut experiment = Experiment::new("experiments/iris_csv.toml");
/// experiment.program = Program::at("target/release/runner");
/// let mut options = Run::new(experiment);
/// options.only.push("*-s1".into());
/// let outcome = ops::run(&options, &ops::quiet)?;
/// assert_eq!(outcome.num_left(), 0);
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn run(options: &Run, sink: &Sink<'_>) -> Result<RunOutcome, Error> {
    let run = |sink: &Sink<'_>| {
        if options.until_decided {
            until::run(options, sink)
        } else {
            run_once(options, sink)
        }
    };
    hook::called(sink, |sink| notify::told(sink, run))
}

/// Trains the runs of a plan.
fn run_once(options: &Run, sink: &Sink<'_>) -> Result<RunOutcome, Error> {
    let mut planned = plan_as_begun(&options.experiment, &options.results, true, sink)?;
    assume_devices(options, &mut planned)?;
    notify::refuse_unreachable(&planned.plan.notify)?;
    if planned.plan.search.is_some() {
        return search::run(options, planned, sink);
    }
    let selected = requested(options, &planned)?;
    let session = Session::begin(options, &planned.plan, sink)?;
    let all: Vec<&RunPlan> = planned.plan.runs.iter().collect();
    let trained = session.train(&planned, &all, selected, sink)?;
    session.finish(trained)
}

/// The devices of a cluster's machines are not those of this one: no run is skipped because of the latter.
///
/// # Errors
///
/// [`Error::Refused`] if the cluster cannot be used from here, or if jobs are to be followed and there are none.
fn assume_devices(options: &Run, planned: &mut Planned) -> Result<(), Error> {
    let launch = launch_of(options, &planned.plan)?;
    if launch.is_local() {
        if options.follow {
            return Err(nothing_to_follow());
        }
    } else {
        cluster::refuse_without_programs(&launch)?;
        for run in &mut planned.plan.runs {
            run.skip = None;
        }
    }
    Ok(())
}

fn nothing_to_follow() -> Error {
    let message =
        "`--follow` waits for the jobs of a cluster, but these runs are trained on this machine";
    let diagnostic = Diagnostic::error("usage", message);
    Error::refused(
        diagnostic
            .help("remove it: `runner run` waits for its runs; elsewhere, `runner watch FOLDER` shows active runs")
            .help("to train on a cluster, add `--launch slurm`, or `[launch]` to the experiment file"),
    )
}

/// The requested runs of a plan, after checks that refuse it before anything is written.
fn requested<'a>(options: &Run, planned: &'a Planned) -> Result<Vec<&'a RunPlan>, Error> {
    parse_fault(options.inject_fault.as_deref())?;
    let selected = select::by_id(&planned.plan, &options.only)?;
    verify_memory(planned)?;
    // Both take a while, and on one processor each.
    look_at_this_build();
    verify_data(planned, Trust::Stamps)?;
    Ok(selected)
}

/// A command that has the experiment's folder for itself.
struct Session<'a> {
    options: &'a Run,
    folder: ExperimentFolder,
    fault: Option<(WildMatch, String)>,
    /// On a cluster, where locks may not reach other machines. Both are held until the report is written.
    submitter: Option<Submitter>,
    _lock: Option<Lock>,
    began: Instant,
    plan_file: RefCell<PlanFile>,
}

/// What was trained.
struct Trained {
    selected: BTreeSet<String>,
    stopped: Option<Stopped>,
    failure: Option<Error>,
}

impl<'a> Session<'a> {
    /// Takes the folder.
    fn begin(options: &'a Run, plan: &Plan, sink: &Sink<'_>) -> Result<Self, Error> {
        let fault = parse_fault(options.inject_fault.as_deref())?;
        let folder = ExperimentFolder(options.results.join(&plan.experiment));
        let is_local = launch_of(options, plan)?.is_local();
        let lock = wait::lock(&folder, (options.wait, is_local), sink)?;
        sink(Progress::MayCancel);
        folder.remove_unfinished();
        let submitter = if is_local && !folder.launch().is_dir() {
            None
        } else {
            let how = (lock.is_some(), options.wait);
            Some(Submitter::take(&folder, how, &options.cancel, sink)?)
        };
        Ok(Self {
            options,
            folder,
            fault,
            submitter,
            _lock: lock,
            began: Instant::now(),
            plan_file: RefCell::default(),
        })
    }

    /// Trains the selected runs of a plan, after the inspected ones, which include them, were prepared.
    fn train(
        &self,
        planned: &Planned,
        inspected: &[&RunPlan],
        selected: Vec<&RunPlan>,
        sink: &Sink<'_>,
    ) -> Result<Trained, Error> {
        let (options, folder) = (self.options, &self.folder);
        let on = launch_of(options, &planned.plan)?;
        cluster::settle(folder, sink)?;
        let busy = cluster::busy_runs(folder);
        let (held, selected): (Vec<_>, Vec<_>) =
            selected.into_iter().partition(|run| busy.contains(&run.id));
        if !held.is_empty() {
            if on.is_local() {
                return Err(cluster::busy(folder, held.len()));
            }
            let num = counted(held.len(), "run");
            sink(Progress::Step(&format!(
                "{num} already queued or running as jobs"
            )));
        }
        let begun = folder.begun();
        let wanted = selected.iter().filter(|run| begun.may_have(&run.id));
        let wanted = wanted.map(|run| folder.run(&run.id)).collect();
        // Before anything of these runs is read or moved.
        if !wait::wait_for_workers(wanted, &options.cancel, sink) {
            let message = "stopped while waiting: no run was started";
            return Err(Error::Interrupted(message.into()));
        }
        let selected = select::by_failure(selected, &options.retry, folder)?;
        let launch = Launch {
            options,
            folder,
            plan: &planned.plan,
            fault: self.fault.clone(),
            began: self.began,
            leasehold: None,
        };
        let mut waited = Waiting::default();
        let trained = loop {
            if let Some(submitter) = &self.submitter {
                // Before plans and copies are written into folders that jobs of another command may have by now.
                submitter.check()?;
            }
            let (prepared, todo, waiting) = prepare::prepare(
                folder,
                planned,
                inspected,
                &selected,
                options.retry.contains(&Retry::Pruned),
                &mut self.plan_file.borrow_mut(),
            )?;
            sink(Progress::Prepared(&prepared));
            let trained = if !on.is_local() {
                let waits = options.follow || planned.plan.search.is_some();
                // No run of this process has results yet: there is nothing to report after a refusal.
                Ok(on_cluster(
                    &launch,
                    on.clone(),
                    (todo, held.clone()),
                    waits,
                    sink,
                )?)
            } else if todo.is_empty() {
                Ok(None)
            } else {
                launch.train(todo, sink)
            };
            let is_over = waiting.forks.is_empty() || waiting == waited;
            if is_over || !matches!(trained, Ok(None)) {
                break trained;
            }
            waited = waiting;
        };
        if let Some(submitter) = &self.submitter {
            submitter.check()?;
        }
        let (stopped, failure) = match trained {
            Ok(stopped) => (stopped, None),
            Err(error) => (None, Some(error)),
        };
        Ok(Trained {
            selected: selected
                .iter()
                .chain(&held)
                .map(|run| run.id.clone())
                .collect(),
            stopped,
            failure,
        })
    }

    /// Writes the report.
    fn finish(self, trained: Trained) -> Result<RunOutcome, Error> {
        let folder = self.folder;
        // While jobs wait, it says nothing, and with very many runs it takes longer than to submit them.
        let report = match trained.stopped {
            Some(Stopped::Submitted(_)) => None,
            _ => report::write(&folder)
                .map_err(|e| Error::unwritable_results(&folder.report("md"), &e))?,
        };
        Ok(RunOutcome {
            selected: trained.selected,
            folder,
            stopped: trained.stopped,
            failure: trained.failure,
            report,
        })
    }
}

pub(super) fn parse_fault(text: Option<&str>) -> Result<Option<(WildMatch, String)>, Error> {
    let Some(text) = text else {
        return Ok(None);
    };
    let refused = |message: String| Error::refused(Diagnostic::error("usage", message));
    let Some((glob, fault)) = text.rsplit_once('@') else {
        return Err(refused(format!(
            "`--inject-fault {text}` must have the form GLOB@FAULT"
        )));
    };
    match fault.parse::<Fault>() {
        Ok(_) => Ok(Some((WildMatch::new(glob), fault.to_owned()))),
        Err(reason) => Err(refused(reason.to_string())),
    }
}
