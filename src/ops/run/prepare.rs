//! Checks before any training: the results folder is inspected, conflicts are refused, and the plan of every run is
//! written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::forks::{self, Waiting};
use crate::error::Error;
use crate::ops::{Planned, other_builds};
use crate::train::Pause;
use runner_core::diagnostic::Diagnostic;
use runner_core::event::Event;
use runner_core::plan::{Plan, RunPlan, SearchPlan, put_together};
use runner_core::record::{
    Begun, ExperimentFolder, PlanFile, RunFolder, RunRecord, Status, in_parallel, leftovers,
    resume_point, statuses, unwritable, write_whole,
};
use runner_core::spec::document::Document;
use runner_core::spec::render::render;
use runner_core::spec::search::PruneRule;

/// What will be done for the runs of a plan, before any of them is trained.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// The experiment's folder.
    pub folder: ExperimentFolder,
    /// Runs of the plan.
    pub num_planned: usize,
    /// Runs to train.
    pub num_to_do: usize,
    /// Runs that were not requested.
    pub num_left_out: usize,
    /// Runs that are completed.
    pub num_completed: usize,
    /// Runs that resume from where they stopped.
    pub num_begun: usize,
    /// Runs that the search has pruned, and that are not trained further.
    pub num_pruned: usize,
    /// Runs that are extended to more epochs.
    pub num_shorter: usize,
    /// Runs that are retried after a failure.
    pub num_failed: usize,
    /// Runs in the folder that are not in the plan.
    pub num_orphans: usize,
    /// Runs with the same id but a different plan, which are trained again, each with the differences.
    pub replaced: Vec<(String, Vec<String>)>,
    /// Runs with damaged files, which are trained again, each with the damage.
    pub damaged: Vec<(String, String)>,
    /// Runs that begin as copies of others which have to be trained first.
    pub num_waiting: usize,
    /// Runs whose files cannot be read, which are not changed, each with the reason and a remedy.
    pub unreadable: Vec<(String, String, &'static str)>,
    /// Notes about runs that another build trained.
    pub other_builds: Vec<String>,
}

/// A run that remains to be trained.
pub(super) struct ToDo {
    /// The run.
    pub(super) plan: RunPlan,
    /// Its folder.
    pub(super) folder: RunFolder,
    /// Optimizer updates that need not be repeated.
    pub(super) resumes_at: usize,
    /// The epoch after which the search that it is part of ends it.
    pub(super) pause: Option<Pause>,
}

/// Where a search that prunes ends the runs of its trials.
pub(super) struct Pauses<'a>(Option<OfSearch<'a>>);

struct OfSearch<'a> {
    search: &'a SearchPlan,
    rule: PruneRule,
    /// By trial.
    epochs: BTreeMap<&'a str, usize>,
    /// Of runs that confirm trials.
    confirmed: BTreeMap<&'a str, Option<usize>>,
}

impl<'a> Pauses<'a> {
    /// Those of a plan.
    pub(super) fn of(plan: &'a Plan) -> Self {
        Self(plan.search.as_ref().and_then(|search| {
            Some(OfSearch {
                search,
                rule: search.prune.as_ref()?.rule,
                epochs: search.epochs(),
                confirmed: search.confirmed(),
            })
        }))
    }

    /// That of a run; none if it is trained to its end.
    pub(super) fn of_run(&self, run: &RunPlan) -> Option<Pause> {
        let it = self.0.as_ref()?;
        let epoch = if it.search.confirms(run.seed) {
            it.confirmed.get(run.trial.as_str()).copied().flatten()
        } else {
            it.epochs.get(run.trial.as_str()).copied()
        };
        let rule = it.rule;
        let epoch = epoch.filter(|epoch| *epoch < run.train.epochs)?;
        Some(Pause { epoch, rule })
    }
}

/// Inspects the folders of some runs, refuses conflicts, and writes the plans of these runs before anything trains.
/// Returns the selected ones that remain to be done.
pub(super) fn prepare(
    folder: &ExperimentFolder,
    planned: &Planned,
    inspected: &[&RunPlan],
    selected: &[&RunPlan],
    resumes_pruned: bool,
    plan_file: &mut PlanFile,
) -> Result<(Prepared, Vec<ToDo>, Waiting), Error> {
    let plan = &planned.plan;
    let orphans = leftovers(plan.runs.iter().map(|run| run.id.as_str()), folder);
    let begun = folder.begun();
    let statuses = inspected
        .iter()
        .zip(statuses(inspected, folder, &begun))
        .map(|(run, status)| {
            let status = status.map_err(|e| Error::unreadable(&e, &folder.run(&run.id)));
            status.map(|status| (*run, status))
        });
    let statuses: Result<_, Error> = statuses.collect();
    let mut statuses: Vec<(&RunPlan, Status)> = statuses?;
    if inspected.len() == plan.runs.len() {
        refuse_unrelated(folder, &statuses, &orphans)?;
        refuse_foreign(folder, &statuses)?;
    }
    // Before anything is written: refused content stays unchanged.
    refuse_own_sources(folder, &statuses)?;
    let unfinished = statuses.iter();
    let unfinished =
        unfinished.filter(|(run, status)| *status != Status::Completed && begun.may_have(&run.id));
    let unfinished: Vec<RunFolder> = unfinished.map(|(run, _)| folder.run(&run.id)).collect();
    folder
        .check_links()
        .and_then(|()| {
            let checked = in_parallel(&unfinished, RunFolder::check_links);
            checked.into_iter().collect::<std::io::Result<()>>()
        })
        .map_err(|e| Error::unwritable_results(&folder.0, &e))?;
    let chosen: BTreeSet<&str> = selected.iter().map(|run| run.id.as_str()).collect();
    let restarted = forks::restart(folder, plan, &mut statuses, &chosen)
        .map_err(|e| Error::unwritable_results(&folder.0, &e))?;
    write(folder, planned, &statuses, (&chosen, &begun), plan_file)
        .map_err(|e| Error::unwritable_results(&folder.0, &e))?;
    let mut prepared = Prepared {
        folder: folder.clone(),
        num_planned: plan.runs.len(),
        num_left_out: plan.runs.len() - selected.len(),
        num_orphans: orphans.len(),
        replaced: restarted,
        ..Prepared::default()
    };
    // Before any of them is trained further: a run keeps only its newest states.
    let (waiting, lost) = forks::begin(folder, plan, &statuses, &chosen);
    prepared.num_waiting = waiting.forks.len();
    prepared.unreadable.extend(lost);
    let chosen = |(run, _): &&(&RunPlan, Status)| chosen.contains(run.id.as_str());
    let chosen: Vec<_> = statuses.iter().filter(chosen).collect();
    let todo = prepared.take((&Pauses::of(plan), &waiting), &chosen, resumes_pruned);
    let runs = chosen.iter().map(|(run, status)| (*run, status));
    prepared.other_builds = other_builds(folder, runs);
    Ok((prepared, todo, waiting))
}

impl Prepared {
    /// Counts the selected runs by state, and returns those that remain to be trained. Pruned runs are resumed to their
    /// ends if that was requested.
    fn take(
        &mut self,
        (pauses, waiting): (&Pauses<'_>, &Waiting),
        chosen: &[&(&RunPlan, Status)],
        resumes_pruned: bool,
    ) -> Vec<ToDo> {
        let mut todo = Vec::new();
        for (run, status) in chosen {
            let id = run.id.clone();
            let folder = self.folder.run(&run.id);
            let mut resumes_at = 0;
            if waiting.forks.contains(&id) || self.unreadable.iter().any(|(lost, ..)| *lost == id) {
                continue;
            }
            let pause = pauses.of_run(run).filter(|_| !resumes_pruned);
            let needed = waiting.sources.get(&id).map(|epoch| Pause {
                epoch: *epoch,
                rule: PruneRule::Pbt,
            });
            let is_over =
                |epoch: usize| needed.is_none() && pause.is_some_and(|pause| pause.epoch <= epoch);
            match status {
                Status::Pruned { epoch } if is_over(*epoch) => {
                    self.num_pruned += 1;
                    continue;
                }
                Status::Completed => {
                    self.num_completed += 1;
                    continue;
                }
                Status::Unreadable { reason, remedy } => {
                    self.unreadable.push((id, reason.clone(), *remedy));
                    continue;
                }
                Status::Begun { step } => {
                    self.num_begun += 1;
                    resumes_at = *step;
                }
                Status::Shorter { step, .. } => {
                    self.num_shorter += 1;
                    resumes_at = *step;
                }
                Status::Failed { .. } | Status::Pruned { .. } => {
                    match status {
                        Status::Pruned { .. } => self.num_begun += 1,
                        _ => self.num_failed += 1,
                    }
                    // Unreadable runs were reported with their state.
                    let record = RunRecord::read_for(&folder, run).unwrap_or_default();
                    resumes_at = resume_point(run, &folder, &record).step;
                }
                Status::Different { reasons } => self.replaced.push((id, reasons.clone())),
                Status::Damaged { reason } => self.damaged.push((id, reason.clone())),
                Status::New => {}
            }
            todo.push(ToDo {
                plan: (*run).clone(),
                folder,
                resumes_at: resumes_at.max(run.first_step()),
                pause: needed.or(pause),
            });
        }
        self.num_to_do = todo.len();
        todo
    }
}

/// Refuses initial weights in a run's folder that would be moved away before they are read.
fn refuse_own_sources(
    folder: &ExperimentFolder,
    statuses: &[(&RunPlan, Status)],
) -> Result<(), Error> {
    if statuses.iter().all(|(run, _)| run.init.is_none()) {
        return Ok(());
    }
    let is_replaced =
        |status: &Status| matches!(status, Status::Different { .. } | Status::Damaged { .. });
    let replaced = statuses.iter().filter(|(_, status)| is_replaced(status));
    let replaced = replaced.filter_map(|(run, _)| folder.run(&run.id).0.canonicalize().ok());
    let replaced: Vec<PathBuf> = replaced.collect();
    let of_init = |(run, _): &(&RunPlan, Status)| {
        let path = run.init.as_ref()?.path.canonicalize().ok()?;
        let is_inside = replaced.iter().any(|folder| path.starts_with(folder));
        is_inside.then(|| (run.id.clone(), path))
    };
    let Some((run, path)) = statuses.iter().find_map(of_init) else {
        return Ok(());
    };
    let message = format!(
        "run `{run}` begins with the weights in `{}`, which belong to a run of this experiment with other settings",
        path.display()
    );
    Err(Error::refused(
        Diagnostic::error("results", message)
            .note("that run would be moved to `replaced/` first, since the file describes other work now")
            .help("set another `experiment.name`, so that both are kept"),
    ))
}

/// Writes the experiment's file and plan, and the plans of the runs that may train and have a folder.
fn write(
    folder: &ExperimentFolder,
    Planned { document, plan, .. }: &Planned,
    statuses: &[(&RunPlan, Status)],
    (chosen, begun): (&BTreeSet<&str>, &Begun),
    plan_file: &mut PlanFile,
) -> std::io::Result<()> {
    // First, since the other files are a user's own where no plan is, also after a kill. The plans of other runs have not
    // changed since they were inspected.
    let inspected = statuses.iter().map(|(run, _)| run.id.as_str());
    plan_file.write(folder, plan, &inspected.collect())?;
    let copy = document.sources.0[0].text.as_bytes();
    write_whole(&folder.experiment_toml(), copy)
        .map_err(|e| unwritable(&folder.experiment_toml(), e))?;
    write_resolved(folder, document, plan)?;
    let mut planned: Vec<&RunPlan> = Vec::new();
    for (run, status) in statuses {
        let there = folder.run(&run.id);
        let is_chosen = chosen.contains(run.id.as_str());
        match status {
            // It keeps the file that it was created from.
            Status::Completed => continue,
            // Runs that were not requested stay unchanged.
            Status::Shorter { .. } | Status::Different { .. } | Status::Damaged { .. }
                if !is_chosen =>
            {
                continue;
            }
            Status::Unreadable { .. } => continue,
            Status::Shorter { epochs, .. } => {
                if let Some(before) = there.read_plan()? {
                    folder.keep_label(&run.id, &before.fingerprint, &run.fingerprint)?;
                }
                // Reported before the new plan exists: a kill in between must not leave a run that seems to have
                // reached the new end.
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
            // Whoever trains it lets it begin; a copy begins with the state of another run, before any is trained.
            Status::New if !begun.may_have(&run.id) && run.fork.is_none() => continue,
            Status::New | Status::Begun { .. } | Status::Pruned { .. } | Status::Failed { .. } => {}
        }
        // The current file is the same work, or its continuation, but the data may have moved.
        planned.push(run);
    }
    // A file server takes some milliseconds for each.
    let written = in_parallel(&planned, |run| {
        let there = folder.run(&run.id);
        there.write_plan(run)?;
        there.write_lineage(&plan.lineage(run))
    });
    written.into_iter().collect()
}

/// A copy of an input with several layers is useless on its own: next to it is the resolved file, which can be run
/// separately.
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

/// A folder without a plan may be one that the user made for something else.
fn refuse_foreign(folder: &ExperimentFolder, statuses: &[(&RunPlan, Status)]) -> Result<(), Error> {
    let is_new = statuses.iter().all(|(_, status)| *status == Status::New);
    let is_own = folder.index_jsonl().exists() || matches!(folder.read_plan(), Ok(Some(_)));
    if !is_new || is_own {
        return Ok(());
    }
    let of_experiment = [
        folder.plan_json(),
        folder.experiment_toml(),
        folder.resolved_toml(),
    ];
    let reports = ["html", "md", "json", "csv"].map(|extension| folder.report(extension));
    let of_experiment = of_experiment.into_iter().chain(reports);
    let ids = folder.run_ids();
    let runs = ids.iter().map(|id| folder.run(id));
    let of_runs = runs.flat_map(|run| {
        let weights = ["initial", "best", "final"].map(|name| run.model(name));
        let derived = [
            run.metrics_csv(),
            run.summary_json(),
            run.environment_json(),
            run.transforms_json(),
            run.evaluation_json(),
            run.weights_json(),
        ];
        derived.into_iter().chain(weights)
    });
    let mut foreign = of_experiment.chain(of_runs).filter(|path| path.is_file());
    let Some(path) = foreign.next() else {
        return Ok(());
    };
    let message = format!(
        "`{}` might be replaced: the folder has no plan, so runner did not write it",
        path.display()
    );
    let help = "move it elsewhere, or use another folder with `--results DIR` or another `experiment.name`";
    Err(Error::refused(
        Diagnostic::error("results", message).help(help),
    ))
}

/// A folder that only contains other runs probably belongs to another experiment of the same name.
fn refuse_unrelated(
    folder: &ExperimentFolder,
    statuses: &[(&RunPlan, Status)],
    orphans: &[String],
) -> Result<(), Error> {
    let mut all = statuses.iter();
    let is_unrelated = all.all(|(_, status)| *status == Status::New);
    let Some(first) = orphans.first().filter(|_| is_unrelated) else {
        return Ok(());
    };
    let message = format!("`{}` belongs to another plan", folder.0.display());
    let diagnostic = Diagnostic::error("results", message).note(format!(
        "it contains {} runs, such as `{first}`, none of which are in this plan",
        orphans.len()
    ));
    Err(Error::refused(
        diagnostic
            .help("to keep both, use another folder with `--results DIR`, or another `experiment.name`")
            .help(format!("or delete the old results: rm -r {}", folder.0.display())),
    ))
}
