//! Trials that are suggested in rounds, from the results of the rounds before.
//!
//! Each round is the run of a plan in which the points so far are in the file. They are recorded in `plan.json` before
//! any of them is trained, so that a search that was stopped or killed first completes its last round, and continues
//! with what is suggested from the same results.

use std::collections::BTreeMap;
use std::path::Path;

use super::prepare::Pauses;
use super::{Run, RunOutcome, Session, Trained, requested};
use crate::error::Error;
use crate::ops::experiment::plan_opened;
use crate::ops::{Experiment, Planned, Progress, Sink, default_name, quiet};
use runner_core::diagnostic::{Diagnostic, Diagnostics, counted};
use runner_core::plan::{Plan, RunPlan, Search, SearchPlan, TrialResult};
use runner_core::record::{
    ExperimentFolder, Index, OTHER_FORMAT_REMEDY, RunEntry, RunRecord, State, is_damaged,
    is_other_format, remedy,
};
use runner_core::show::{plain_io_error, show_duration};
use runner_core::spec::document::{Document, Value};
use runner_core::spec::search::Suggestion;

/// Trains the trials of a search, round by round.
pub(super) fn run(options: &Run, planned: Planned, sink: &Sink<'_>) -> Result<RunOutcome, Error> {
    let refused = |message: &str, help: &str| {
        let diagnostic = Diagnostic::error("usage", message);
        Err(Error::refused(diagnostic.help(help.to_owned())))
    };
    if options.until_decided {
        return refused(
            "`--until-decided` cannot be combined with `[search]`",
            "remove it: seeds are added to all trials of an experiment, also to those that a search has given up",
        );
    }
    let folder = ExperimentFolder(options.results.join(&planned.plan.experiment));
    let planned = search_so_far(&options.experiment, planned, &folder)?;
    requested(options, &planned)?;
    let session = Session::begin(options, &planned.plan, sink)?;
    // Another command may have trained until now.
    let mut planned = search_so_far(&options.experiment, planned, &folder)?;
    // Known runs that are not completed come first.
    let known = requested(options, &planned)?;
    let mut trained = session.train(&planned, known, sink)?;
    let mut selected = trained.selected.clone();
    let takes_more = options.only.is_empty() && options.retry.is_empty();
    let mut curves = Curves::default();
    while takes_more && !trained.is_stopped() {
        let index = read_index(&session.folder)?;
        let results = results(&planned.plan, &index, &session.folder, &mut curves);
        let next = match next_round(&planned, &index, &results)? {
            Next::Round(next) => next,
            Next::End(reason) => {
                sink(Progress::Step(&reason));
                break;
            }
        };
        sink(Progress::Step(&in_words(&planned.plan, &next, &index)));
        let mut document = planned.document;
        document.suggestions = Some(next);
        let before = next_epochs(&planned.plan);
        planned = match plan_opened(&options.experiment, document, true, &quiet) {
            Ok(planned) => planned,
            Err(error) => {
                let help = "exclude such points with `exclude` in `[sweep]`, and run the command again: the trials so far are kept";
                sink(Progress::Note(&format!(
                    "a suggested point cannot be trained: {help}"
                )));
                trained.failure = Some(error);
                break;
            }
        };
        let now = next_epochs(&planned.plan);
        let is_due = |run: &&RunPlan| before.get(&run.id) != now.get(&run.id);
        let new: Vec<_> = planned.plan.runs.iter().filter(is_due).collect();
        trained = session.train(&planned, new, &|progress| match progress {
            // The step above says what follows.
            Progress::Prepared(_) => {}
            progress => sink(progress),
        })?;
        selected.extend(trained.selected.iter().cloned());
    }
    trained.selected = selected;
    session.finish(trained)
}

/// The plan of a search with the suggestions that the folder contains; any other plan as it is.
pub(crate) fn search_so_far(
    experiment: &Experiment,
    planned: Planned,
    folder: &ExperimentFolder,
) -> Result<Planned, Error> {
    let Some(search) = &planned.plan.search else {
        return Ok(planned);
    };
    let Some(recorded) = suggestions_of(folder, &search.digest)? else {
        return Ok(planned);
    };
    let mut document: Document = planned.document;
    document.suggestions = Some(recorded);
    plan_opened(experiment, document, true, &quiet)
}

/// The document of a search with the suggestions that its folder below `results` contains; any other as it is.
pub(crate) fn document_so_far(
    experiment: &Experiment,
    mut document: Document,
    results: &Path,
) -> Result<Document, Error> {
    let Some(digest) = Search::of(&document).map(|search| search.digest()) else {
        return Ok(document);
    };
    let name = document.root.at("experiment.name");
    let name = match name.map(|entry| &entry.node.value) {
        Some(Value::Str(name)) => name.clone(),
        _ => default_name(&experiment.path),
    };
    let folder = ExperimentFolder(results.join(name));
    document.suggestions = suggestions_of(&folder, &digest)?;
    Ok(document)
}

/// The suggestions that a folder contains, which must be those of the search with this digest.
fn suggestions_of(
    folder: &ExperimentFolder,
    digest: &str,
) -> Result<Option<Vec<Suggestion>>, Error> {
    let Some(recorded) = recorded(folder)? else {
        return Ok(None);
    };
    if recorded.digest != digest {
        let message = format!("`{}` contains another search", folder.0.display());
        let diagnostic = Diagnostic::error("results", message)
            .note("the axes, or `type`, `seed`, `parallel`, `prune` or `enqueue` of `[search]`, have changed since, or `train.epochs` of a search that prunes")
            .help("to keep both, use another folder with `--results DIR`, or another `experiment.name`")
            .help(format!("or delete the old results: rm -r {}", folder.0.display()));
        return Err(Error::refused(diagnostic));
    }
    Ok(Some(recorded.suggestions))
}

/// The search that a folder contains. A damaged plan is rebuilt: its suggestions follow from the results.
fn recorded(folder: &ExperimentFolder) -> Result<Option<SearchPlan>, Error> {
    match folder.read_plan() {
        Ok(plan) => Ok(plan.and_then(|plan| plan.search)),
        Err(error) if is_damaged(&error) => Ok(None),
        Err(error) => Err(unreadable(&error)),
    }
}

fn unreadable(error: &std::io::Error) -> Error {
    let diagnostic = Diagnostic::error("results", plain_io_error(error));
    Error::refused(diagnostic.help(if is_other_format(error) {
        OTHER_FORMAT_REMEDY
    } else {
        remedy(error)
    }))
}

fn read_index(folder: &ExperimentFolder) -> Result<Index, Error> {
    let index = Index::read(folder).map_err(|error| unreadable(&error))?;
    index.ok_or_else(|| {
        let message = format!("`{}` was removed during the search", folder.0.display());
        Error::failed(Diagnostic::error("results", message))
    })
}

enum Next {
    /// All suggestions, with those of the next round at the end.
    Round(Vec<Suggestion>),
    /// Why there are no more.
    End(String),
}

fn next_round(planned: &Planned, index: &Index, results: &[TrialResult]) -> Result<Next, Error> {
    let (Some(search), Some(plan)) = (Search::of(&planned.document), &planned.plan.search) else {
        return Ok(Next::End("the experiment has no search".into()));
    };
    let known = &plan.suggestions;
    let trials = counted(known.len(), "trial");
    if let Some(reason) = spent(plan, index) {
        return Ok(Next::End(format!("{reason}, after {trials}")));
    }
    if !index.runs.is_empty() && index.runs.iter().all(|run| run.state == State::Skipped) {
        return Ok(Next::End(format!("all of {trials} were skipped")));
    }
    let round = search.round(known, results).map_err(|diagnostic| {
        Error::experiment(&planned.document.sources, Diagnostics(vec![*diagnostic]))
    })?;
    if round.is_empty() {
        return Ok(Next::End(format!("the search has its {trials}")));
    }
    Ok(Next::Round(round))
}

/// The epochs up to which each run is trained.
fn next_epochs(plan: &Plan) -> BTreeMap<String, usize> {
    let pauses = Pauses::of(plan);
    let epochs = |run: &RunPlan| {
        pauses
            .of_run(run)
            .map_or(run.train.epochs, |pause| pause.epoch)
    };
    let runs = plan.runs.iter();
    runs.map(|run| (run.id.clone(), epochs(run))).collect()
}

/// The best values so far after each epoch, by run, with the number of epochs: those of a run only change with it.
type Curves = BTreeMap<String, (usize, Vec<f64>)>;

/// The results of the suggestions, as the search is shown them: lower values are better.
fn results(
    plan: &Plan,
    index: &Index,
    folder: &ExperimentFolder,
    curves: &mut Curves,
) -> Vec<TrialResult> {
    let Some(search) = &plan.search else {
        return Vec::new();
    };
    let sign = if plan.objective.is_better(1.0, 0.0) {
        -1.0
    } else {
        1.0
    };
    if search.prune.is_none() {
        let means = search.suggestions.iter();
        let means = means.map(|known| mean(plan, index, &known.trial));
        let result = |mean: Option<f64>| {
            mean.map_or(TrialResult::failed(), |mean| TrialResult::of(sign * mean))
        };
        return means.map(result).collect();
    }
    let mut of_trial: BTreeMap<&str, Vec<&RunEntry>> = BTreeMap::new();
    for run in &index.runs {
        of_trial.entry(&run.trial).or_default().push(run);
        if curves
            .get(&run.id)
            .is_none_or(|(epochs, _)| *epochs != run.epochs)
            && let Some(planned) = plan.runs.iter().find(|planned| planned.id == run.id)
        {
            // Without a record that can be read, it has no value.
            let record = RunRecord::read_for(&folder.run(&run.id), planned).unwrap_or_default();
            curves.insert(run.id.clone(), (run.epochs, record.best_so_far(planned)));
        }
    }
    let result = |known: &Suggestion| {
        let runs = of_trial
            .get(known.trial.as_str())
            .map_or(&[][..], Vec::as_slice);
        let curve = |run: &&RunEntry| {
            curves
                .get(&run.id)
                .map_or(&[][..], |(_, curve)| curve.as_slice())
        };
        let is_final = |run: &&RunEntry| run.state == State::Completed;
        let all: Vec<_> = runs.iter().map(|run| (curve(run), is_final(run))).collect();
        mean_curve(&all, sign)
    };
    search.suggestions.iter().map(result).collect()
}

/// The mean of curves, as far as all of them go; those that are final keep their last value.
fn mean_curve(curves: &[(&[f64], bool)], sign: f64) -> TrialResult {
    let is_final = !curves.is_empty() && curves.iter().all(|(_, is_final)| *is_final);
    let ends = curves.iter().map(|(curve, _)| curve.len());
    let open = curves.iter().filter(|(_, is_final)| !is_final);
    let end = open.map(|(curve, _)| curve.len()).min();
    let end = end.or(ends.max()).unwrap_or(0);
    let at = |epoch: usize| {
        let values = curves
            .iter()
            .map(|(curve, _)| curve.get(epoch).or(curve.last()));
        let sum: f64 = values.map(|value| value.copied().unwrap_or(f64::NAN)).sum();
        sign * sum / curves.len() as f64
    };
    TrialResult {
        values: (0..end).map(at).collect(),
        is_final,
    }
}

/// Which limit of the search is reached, in words.
fn spent(plan: &SearchPlan, index: &Index) -> Option<String> {
    if let Some(most) = plan.budget.epochs {
        let epochs: usize = index.runs.iter().map(|run| run.epochs).sum();
        if epochs >= most {
            return Some(format!(
                "the budget of {most} epochs is spent ({epochs} trained)"
            ));
        }
    }
    let most = plan.budget.time?;
    let secs: f64 = index.runs.iter().map(|run| run.wall_secs).sum();
    (secs >= most.as_secs_f64()).then(|| format!("the budget of {} is spent", show_duration(most)))
}

/// The mean of a trial's runs; none if not all of them have a value.
fn mean(plan: &Plan, index: &Index, trial: &str) -> Option<f64> {
    let runs: Vec<&RunEntry> = index.runs.iter().filter(|run| run.trial == trial).collect();
    let name = plan.objective.name();
    let value = |run: &&RunEntry| match run.state {
        State::Completed => run.metrics.get(&name).copied(),
        _ => None,
    };
    let values: Option<Vec<f64>> = runs.iter().map(value).collect();
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// What comes next.
fn in_words(plan: &Plan, all: &[Suggestion], index: &Index) -> String {
    let num_known = plan
        .search
        .as_ref()
        .map_or(0, |search| search.suggestions.len());
    let most = plan.search.as_ref().and_then(|search| search.num_trials);
    let of = most.map_or(String::new(), |most| format!(" of {most}"));
    let known = plan.search.iter().flat_map(|search| &search.suggestions);
    let means = known.filter_map(|known| mean(plan, index, &known.trial));
    let is_better = |mean, best| plan.objective.is_better(mean, best);
    let best = means.reduce(|best, mean| if is_better(mean, best) { mean } else { best });
    let best = best.map_or(String::new(), |best| {
        format!("; best {} so far: {best:.4}", plan.objective.name())
    });
    let known = plan.search.iter().flat_map(|search| &search.suggestions);
    let num_continued = known
        .zip(all)
        .filter(|(before, now)| before.rung != now.rung);
    let new = match all.len() - num_known {
        0 => None,
        1 => Some(format!("trial {}{of}", all.len())),
        _ => Some(format!("trials {} to {}{of}", num_known + 1, all.len())),
    };
    let continued = match num_continued.count() {
        0 => None,
        num => Some(format!("{} continued", counted(num, "trial"))),
    };
    let what: Vec<String> = new.into_iter().chain(continued).collect();
    format!("search: {}{best}", what.join(", "))
}

impl Trained {
    fn is_stopped(&self) -> bool {
        self.stopped.is_some() || self.failure.is_some()
    }
}
