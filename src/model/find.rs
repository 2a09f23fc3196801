//! Finds the run whose network is loaded, from a path.

use std::cmp::Ordering;
use std::path::Path;

use super::{Options, Refusal};
use runner_core::diagnostic::{Diagnostic, counted, nearest};
use runner_core::plan::RunPlan;
use runner_core::record::{ExperimentFolder, Index, RunEntry, RunFolder, State, capsule, remedy};
use runner_core::show::plain_io_error;
use runner_report::report::{self, Report, Trial, direction};

/// A run that was found.
#[derive(Debug)]
pub struct Found {
    /// Its folder.
    pub folder: RunFolder,
    /// Its plan.
    pub plan: RunPlan,
    /// Why this run was chosen, if there was a choice.
    pub why: Option<String>,
    /// Keeps the unpacked files of a capsule.
    _unpacked: Option<tempfile::TempDir>,
}

/// The run of a folder, of the selected trial of an experiment, or of a capsule.
pub fn find(path: &Path, options: &Options) -> Result<Found, Refusal> {
    find_seeds(path, 1, options)?
        .pop()
        .ok_or_else(|| nothing(path))
}

/// The same for several seeds of one trial, best first.
pub fn find_seeds(path: &Path, num: usize, options: &Options) -> Result<Vec<Found>, Refusal> {
    if path.is_file() {
        only_one(path, num, "a capsule")?;
        let found = of_capsule(path, options)?;
        is_of_trial(&found, path, options)?;
        return Ok(vec![found]);
    }
    let run = RunFolder(path.to_owned());
    if run.run_toml().exists() {
        let found = of_folder(run.clone())?;
        is_of_trial(&found, path, options)?;
        if num > 1 {
            return siblings(&run, num, options);
        }
        return Ok(vec![found]);
    }
    let experiment = ExperimentFolder(path.to_owned());
    if experiment.plan_json().exists() {
        return of_experiment(&experiment, num, options);
    }
    Err(nothing(path))
}

/// The answer to those who ask something of a run that has not begun; none of any other path.
pub(crate) fn yet_to_begin(path: &Path) -> Option<Diagnostic> {
    let is_yet_to_begin = RunFolder(path.to_owned()).is_yet_to_begin();
    let message = || format!("run `{}` has not begun", path.display());
    let answer = || Diagnostic::error("results", message()).help("let `runner run` train it");
    is_yet_to_begin.then(answer)
}

fn nothing(path: &Path) -> Refusal {
    if let Some(answer) = yet_to_begin(path) {
        return Box::new(answer);
    }
    let name = path.display();
    let message = if path.exists() {
        format!("`{name}` is neither the folder of a run nor of an experiment nor a capsule")
    } else {
        format!("`{name}` does not exist")
    };
    Box::new(Diagnostic::error("results", message).help(
        "give a folder such as `results/mnist_sweep/runs/base-s1` or `results/mnist_sweep`, or a capsule of `runner bundle`; `runner list` shows runs",
    ))
}

fn only_one(path: &Path, num: usize, what: &str) -> Result<(), Refusal> {
    if num <= 1 {
        return Ok(());
    }
    let message = format!(
        "`{}` is {what}, which contains a single run, but {num} are requested",
        path.display()
    );
    Err(Box::new(Diagnostic::error("usage", message).help(
        "use the folder of the experiment, or omit `--ensemble`",
    )))
}

/// Refuses a single run that is not one of the trial that is asked for.
fn is_of_trial(found: &Found, path: &Path, options: &Options) -> Result<(), Refusal> {
    let asked = options.trial.as_ref();
    let Some(asked) = asked.filter(|asked| **asked != found.plan.trial) else {
        return Ok(());
    };
    let message = format!(
        "`{}` is a run of trial `{}`, but `--trial` asks for `{asked}`",
        path.display(),
        found.plan.trial
    );
    Err(Box::new(Diagnostic::error("usage", message).help(
        "use the folder of the experiment, or omit `--trial`",
    )))
}

fn unreadable(e: &std::io::Error) -> Refusal {
    Box::new(Diagnostic::error("results", plain_io_error(e)).help(remedy(e)))
}

fn of_folder(folder: RunFolder) -> Result<Found, Refusal> {
    let plan = folder.read_plan().map_err(|e| unreadable(&e))?;
    let plan = plan.ok_or_else(|| nothing(&folder.0))?;
    Ok(Found {
        folder,
        plan,
        why: None,
        _unpacked: None,
    })
}

fn of_capsule(path: &Path, options: &Options) -> Result<Found, Refusal> {
    let place = tempfile::tempdir().map_err(|e| unreadable(&e))?;
    let capsule = capsule::unpack(path, &place.path().join("run"), options.max_unpacked);
    let capsule = capsule.map_err(|error| {
        Box::new(Diagnostic {
            notes: error.notes,
            helps: error.helps,
            ..Diagnostic::error("capsule", error.message)
        })
    })?;
    Ok(Found {
        folder: capsule.folder,
        plan: capsule.plan,
        why: None,
        _unpacked: Some(place),
    })
}

/// The other seeds of a run's trial, with the run itself.
fn siblings(run: &RunFolder, num: usize, options: &Options) -> Result<Vec<Found>, Refusal> {
    let found = of_folder(run.clone())?;
    let experiment = std::path::absolute(&run.0)
        .ok()
        .and_then(|path| Some(ExperimentFolder(path.parent()?.parent()?.to_owned())))
        .filter(|experiment| experiment.plan_json().exists());
    let Some(experiment) = experiment else {
        only_one(&run.0, num, "the folder of a run outside of an experiment")?;
        return Ok(vec![found]);
    };
    let options = Options {
        trial: Some(found.plan.trial.clone()),
        ..options.clone()
    };
    of_experiment(&experiment, num, &options)
}

/// The completed seeds of the selected trial, ranked as in reports.
fn of_experiment(
    folder: &ExperimentFolder,
    num: usize,
    options: &Options,
) -> Result<Vec<Found>, Refusal> {
    let report = report::read(folder).map_err(|e| unreadable(&e))?;
    let index = Index::read(folder).map_err(|e| unreadable(&e))?;
    let (Some(report), Some(index)) = (report, index) else {
        return Err(nothing(&folder.0));
    };
    let (trial, how) = match &options.trial {
        Some(wanted) => (named(&report, wanted, folder)?, "which was requested"),
        None => (selected(&report, folder)?, "the highest ranked trial"),
    };
    let mut runs = ranked(&index, trial, &report.objective);
    if runs.len() < num.max(1) {
        let message = format!(
            "trial `{}` of `{}` has {}, but {num} are requested",
            trial.id,
            folder.0.display(),
            counted(runs.len(), "completed run")
        );
        return Err(Box::new(
            Diagnostic::error("results", message)
                .help("complete the runs with `runner run`, or request fewer"),
        ));
    }
    let several = runs.len() > 1;
    runs.truncate(num.max(1));
    runs.iter()
        .map(|run| {
            let mut found = of_folder(folder.run(&run.id))?;
            let value = run.metrics.get(&report.objective);
            let value = value.map_or(String::new(), |value| {
                format!(", {} {}", report.objective, report::short_number(*value))
            });
            let best = if several && num <= 1 {
                " (the best of its seeds)"
            } else {
                ""
            };
            found.why = Some(format!(
                "run `{}` of `{}`, {how}{best}{value}",
                run.id, trial.id
            ));
            Ok(found)
        })
        .collect()
}

/// The trial of a report with an id.
fn named<'r>(
    report: &'r Report,
    wanted: &str,
    folder: &ExperimentFolder,
) -> Result<&'r Trial, Refusal> {
    let found = report.trials.iter().find(|trial| trial.id == wanted);
    found.ok_or_else(|| {
        let ids = report.trials.iter().map(|trial| trial.id.as_str());
        let help = match nearest(wanted, ids) {
            Some(other) => format!("did you mean `{other}`?"),
            None => "`runner report` shows the trials".into(),
        };
        let message = format!("`{}` has no trial `{wanted}`", folder.0.display());
        Box::new(Diagnostic::error("usage", message).help(help))
    })
}

/// The trial that a report selects.
fn selected<'r>(report: &'r Report, folder: &ExperimentFolder) -> Result<&'r Trial, Refusal> {
    report.selected().ok_or_else(|| {
        let message = format!(
            "no trial of `{}` is ranked: no run is completed, no trial meets the constraints, or they cannot be compared",
            folder.0.display()
        );
        let help =
            "complete the runs with `runner run`, or select one with `--trial` or by its folder";
        Box::new(Diagnostic::error("results", message).help(help))
    })
}

/// The completed runs of a trial, best first.
fn ranked<'i>(index: &'i Index, trial: &Trial, objective: &str) -> Vec<&'i RunEntry> {
    let direction = direction(objective);
    let is_better = |a: f64, b: f64| direction.is_some_and(|direction| direction.is_better(a, b));
    let mut runs: Vec<_> = index
        .runs
        .iter()
        .filter(|run| run.state == State::Completed && trial.runs.contains(&run.id))
        .collect();
    // Stable: equal ones stay in the order of the plan.
    runs.sort_by(|a, b| {
        let value = |run: &RunEntry| run.metrics.get(objective).copied();
        match (value(a), value(b)) {
            (Some(a), Some(b)) if is_better(a, b) => Ordering::Less,
            (Some(a), Some(b)) if is_better(b, a) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    });
    runs
}
