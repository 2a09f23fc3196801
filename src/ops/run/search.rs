//! Trials that are suggested in rounds, from the results of the rounds before.
//!
//! Each round is the run of a plan in which the points so far are in the file. They are recorded in `plan.json` before
//! any of them is trained, so that a search that was stopped or killed first completes its last round, and continues
//! with what is suggested from the same results.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

mod results;

use super::prepare::Pauses;
use super::{Run, RunOutcome, Session, Trained, assume_devices, requested};
use crate::error::{Error, unreadable};
use crate::ops::experiment::{by_planning, plan_opened};
use crate::ops::{Experiment, Planned, Progress, Sink, default_name, open, prior, quiet};
use results::Results;
use runner_core::diagnostic::{Diagnostic, Diagnostics, counted};
use runner_core::plan::{Plan, Planning, RunPlan, Search, SearchPlan};
use runner_core::record::{ExperimentFolder, Index, RunEntry, State, is_damaged, leftovers};
use runner_core::show::show_duration;
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
    let mut planned = search_so_far(&options.experiment, planned, &folder)?;
    assume_devices(options, &mut planned)?;
    requested(options, &planned)?;
    let session = Session::begin(options, &planned.plan, sink)?;
    // Another command may have trained until now.
    let mut planned = search_so_far(&options.experiment, planned, &folder)?;
    assume_devices(options, &mut planned)?;
    // Known runs that are not completed come first.
    let known = requested(options, &planned)?;
    let all: Vec<&RunPlan> = planned.plan.runs.iter().collect();
    let mut trained = session.train(&planned, &all, known, sink)?;
    let takes_more = options.only.is_empty() && options.retry.is_empty();
    if takes_more {
        let download = true;
        by_planning(&options.experiment, download, &quiet, |planning| {
            rounds(&session, &mut planned, &mut trained, planning, sink)
        })?;
    }
    if takes_more && !trained.is_stopped() {
        of_other_rounds(&planned.plan, &session.folder, sink);
    }
    session.finish(trained)
}

/// Suggests and trains round after round, until nothing is left to do or the training stops.
fn rounds(
    session: &Session<'_>,
    planned: &mut Planned,
    trained: &mut Trained,
    planning: &mut Planning<'_>,
    sink: &Sink<'_>,
) -> Result<(), Error> {
    let options = session.options;
    let mut selected = trained.selected.clone();
    let mut results = None;
    // The first time, all trials are planned: what is remembered of them is not known to `planning` yet.
    let mut is_begun = false;
    while !trained.is_stopped() {
        let (plan, folder) = (&planned.plan, &session.folder);
        let results = match &mut results {
            None => results.insert(Results::of(plan, read_index(folder)?, folder)),
            Some(results) => {
                results.update(plan, folder, &trained.selected);
                results
            }
        };
        let Some(step) = next_step(planned, results, sink)? else {
            break;
        };
        let Step {
            next,
            is_last,
            said,
        } = step;
        let before = next_epochs(plan);
        planned.document.suggestions = Some(next);
        let further = if is_begun {
            let runs = std::mem::take(&mut planned.plan.runs);
            planning.plan_further(&planned.document, runs)
        } else {
            planning.plan(&planned.document)
        };
        (planned.plan, planned.warnings) = match further {
            Ok(further) => further,
            Err(diagnostics) => {
                let help = "exclude such points with `exclude` in `[sweep]`, and run the command again: the trials so far are kept";
                sink(Progress::Note(&format!(
                    "a suggested point cannot be trained: {help}"
                )));
                let sources = &planned.document.sources;
                trained.failure = Some(Error::experiment(sources, diagnostics));
                break;
            }
        };
        is_begun = true;
        assume_devices(options, planned)?;
        let now = next_epochs(&planned.plan);
        // Copies that are confirmed may need others that were confirmed before.
        let is_due = |run: &&RunPlan| {
            before.get(&run.id) != now.get(&run.id) || is_last && planned.plan.confirms(run.seed)
        };
        let new: Vec<_> = planned.plan.runs.iter().filter(is_due).collect();
        // Points that were tried before train nothing.
        if !new.is_empty() {
            sink(Progress::Step(&said));
        }
        // The others have not changed since they were inspected.
        *trained = session.train(planned, &new, new.clone(), &|progress| match progress {
            // The step above says what follows, except for what is unexpected.
            Progress::Prepared(prepared) => {
                for (id, reasons) in &prepared.replaced {
                    let reasons = reasons.join("; ");
                    sink(Progress::Note(&format!("`{id}` is rerun: {reasons}")));
                }
                for (id, reason, remedy) in &prepared.unreadable {
                    let said = format!("`{id}` is not trained: {reason}; {remedy}");
                    sink(Progress::Note(&said));
                }
            }
            progress => sink(progress),
        })?;
        selected.extend(trained.selected.iter().cloned());
        if is_last {
            break;
        }
    }
    trained.selected = selected;
    Ok(())
}

/// Tells of runs in the folder that the search did not suggest, such as those of a search that was extended while it
/// pruned, and then lost its plan.
fn of_other_rounds(plan: &Plan, folder: &ExperimentFolder, sink: &Sink<'_>) {
    let others = leftovers(plan.runs.iter().map(|run| run.id.as_str()), folder);
    if let Some(first) = others.first() {
        sink(Progress::Note(&format!(
            "{} in `{}` are not of trials of this search, such as `{first}`: they are of an earlier plan, or the search was rebuilt after it had lost its plan. They are kept, and listed in the report",
            counted(others.len(), "run"),
            folder.0.display()
        )));
    }
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
    let Some(recorded) = search_of(folder, &search.digest)? else {
        return Ok(planned);
    };
    let mut document: Document = planned.document;
    document.suggestions = Some(recorded.suggestions);
    document.prior = Some(recorded.prior);
    plan_opened(experiment, document, true, &quiet)
}

/// The document of a search with the suggestions that its folder below `results` contains; any other as it is.
pub(crate) fn document_so_far(
    experiment: &Experiment,
    mut document: Document,
    results: &Path,
) -> Result<Document, Error> {
    match recorded_for(experiment, &document, results)? {
        Some(recorded) => {
            document.suggestions = Some(recorded.suggestions);
            document.prior = Some(recorded.prior);
        }
        None => {
            let prior = prior::read(experiment.path.parent(), &document);
            document.prior = prior.map_err(|wrong| Error::experiment(&document.sources, wrong))?;
        }
    }
    Ok(document)
}

/// The plan of an experiment; of a search with the trials of earlier results that it began with, which may have changed
/// since.
pub(crate) fn plan_as_begun(
    experiment: &Experiment,
    results: &Path,
    downloads: bool,
    sink: &Sink<'_>,
) -> Result<Planned, Error> {
    let mut document = open(experiment)?;
    let recorded = recorded_for(experiment, &document, results)?;
    document.prior = recorded.map(|recorded| recorded.prior);
    plan_opened(experiment, document, downloads, sink)
}

/// The search of a document as its folder below `results` contains it.
fn recorded_for(
    experiment: &Experiment,
    document: &Document,
    results: &Path,
) -> Result<Option<SearchPlan>, Error> {
    let Some(digest) = Search::of(document).map(|search| search.digest()) else {
        return Ok(None);
    };
    let name = document.root.at("experiment.name");
    let name = match name.map(|entry| &entry.node.value) {
        Some(Value::Str(name)) => name.clone(),
        _ => default_name(&experiment.path),
    };
    search_of(&ExperimentFolder(results.join(name)), &digest)
}

/// The search that a folder contains, which must be that with this digest.
fn search_of(folder: &ExperimentFolder, digest: &str) -> Result<Option<SearchPlan>, Error> {
    let Some(recorded) = recorded(folder)? else {
        return Ok(None);
    };
    if recorded.digest != digest {
        let message = format!("`{}` contains another search", folder.0.display());
        let diagnostic = Diagnostic::error("results", message)
            .note("the axes, or `type`, `seed`, `parallel`, `objectives`, `constraints`, `prune`, `enqueue` or `warm_start` of `[search]`, have changed since, or `train.epochs` of a search that prunes")
            .help("to keep both, use another folder with `--results DIR`, or another `experiment.name`")
            .help(format!("or delete the old results: rm -r {}", folder.0.display()));
        return Err(Error::refused(diagnostic));
    }
    Ok(Some(recorded))
}

/// The search that a folder contains. A damaged plan is rebuilt: its suggestions follow from the results.
fn recorded(folder: &ExperimentFolder) -> Result<Option<SearchPlan>, Error> {
    match folder.read_plan() {
        Ok(plan) => Ok(plan.and_then(|plan| plan.search)),
        Err(error) if is_damaged(&error) => Ok(None),
        Err(error) => Err(Error::refused(unreadable(&error))),
    }
}

fn read_index(folder: &ExperimentFolder) -> Result<Index, Error> {
    let index = Index::read(folder).map_err(|error| Error::refused(unreadable(&error)))?;
    index.ok_or_else(|| {
        let message = format!("`{}` was removed during the search", folder.0.display());
        Error::failed(Diagnostic::error("results", message))
    })
}

/// What follows in a search.
struct Step {
    /// All suggestions.
    next: Vec<Suggestion>,
    /// Whether it confirms the best trials, which is the last step.
    is_last: bool,
    /// In words.
    said: String,
}

/// The next round, or the confirmation of the best trials; none at the end, of which the sink has been told.
fn next_step(planned: &Planned, results: &Results, sink: &Sink<'_>) -> Result<Option<Step>, Error> {
    let plan = &planned.plan;
    let reason = match next_round(planned, results)? {
        Next::Round(next) => {
            let said = in_words(plan, &next, results);
            let is_last = false;
            return Ok(Some(Step {
                next,
                is_last,
                said,
            }));
        }
        Next::End(reason) => reason,
    };
    sink(Progress::Step(&reason));
    let Some((next, num_new)) = confirmed(plan, results) else {
        if let Some(said) = nothing_to_confirm(plan, results) {
            sink(Progress::Note(&said));
        }
        return Ok(None);
    };
    let num_all = next.iter().filter(|known| known.is_confirmed).count();
    if let Some(said) = fewer_confirmed(plan, num_all) {
        sink(Progress::Note(&said));
    }
    let trials = counted(num_new, "trial");
    Ok(Some(Step {
        next,
        is_last: true,
        said: format!("search: confirming {trials} with other seeds"),
    }))
}

enum Next {
    /// All suggestions, with those of the next round at the end.
    Round(Vec<Suggestion>),
    /// Why there are no more.
    End(String),
}

fn next_round(planned: &Planned, results: &Results) -> Result<Next, Error> {
    let (Some(search), Some(plan)) = (Search::of(&planned.document), &planned.plan.search) else {
        return Ok(Next::End("the experiment has no search".into()));
    };
    let known = &plan.suggestions;
    let trials = counted(known.len(), "trial");
    if let Some(reason) = spent(plan, results) {
        return Ok(Next::End(format!("{reason}, after {trials}")));
    }
    let is_skipped = |run: &RunEntry| run.state == State::Skipped;
    if results.runs().next().is_some() && results.runs().all(is_skipped) {
        return Ok(Next::End(format!("all of {trials} were skipped")));
    }
    let round = search
        .round(known, &results.shown(&planned.plan))
        .map_err(|diagnostic| {
            Error::experiment(&planned.document.sources, Diagnostics(vec![*diagnostic]))
        })?;
    if round.is_empty() {
        let trials_of = known.iter().map(|known| known.trial.as_str());
        let num_points = trials_of.collect::<BTreeSet<_>>().len();
        let repeated = match known.len() - num_points {
            0 => String::new(),
            num => format!(
                ": {} that {} tried, and {num} repeated because no other was found",
                counted(num_points, "point"),
                if num_points == 1 { "was" } else { "were" },
            ),
        };
        return Ok(Next::End(format!("the search has its {trials}{repeated}")));
    }
    Ok(Next::Round(round))
}

/// The suggestions with the best trials marked to be confirmed, and how many more those are; none if there are no more.
fn confirmed(plan: &Plan, results: &Results) -> Option<(Vec<Suggestion>, usize)> {
    let search = plan.search.as_ref()?;
    let confirm = search.confirm.as_ref()?;
    let mut means: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for (at, known) in search.suggestions.iter().enumerate() {
        if let Some(mean) = results.feasible_mean(plan, &known.trial) {
            // Others with the same values share its trial.
            means.entry(&known.trial).or_insert((at, mean));
        }
    }
    let mut best: Vec<(usize, f64)> = means.into_values().collect();
    best.sort_by(|(a_at, a), (b_at, b)| {
        let order = if plan.objective.is_better(1.0, 0.0) {
            b.total_cmp(a)
        } else {
            a.total_cmp(b)
        };
        order.then(a_at.cmp(b_at))
    });
    let mut all = search.suggestions.clone();
    let mut num_new = 0;
    for (at, _) in best.iter().take(confirm.trials) {
        num_new += usize::from(!all[*at].is_confirmed);
        all[*at].is_confirmed = true;
    }
    (num_new > 0).then_some((all, num_new))
}

/// Tells that fewer trials are confirmed than `search.confirm.trials`.
fn fewer_confirmed(plan: &Plan, num: usize) -> Option<String> {
    let search = plan.search.as_ref()?;
    let wanted = search.confirm.as_ref()?.trials;
    let what = match (num, search.constraints.is_empty()) {
        (num, _) if num >= wanted => return None,
        (_, true) => "was trained completely",
        (_, false) => "was trained completely and meets the constraints",
    };
    let trials = counted(num, "trial");
    let are = if num == 1 { "is" } else { "are" };
    Some(format!(
        "{trials} of {wanted} {are} confirmed: no other {what}"
    ))
}

/// Tells that no trial can be confirmed, because none meets the constraints.
fn nothing_to_confirm(plan: &Plan, results: &Results) -> Option<String> {
    let search = plan.search.as_ref()?;
    search.confirm.as_ref()?;
    let mut known = search.suggestions.iter();
    let is_feasible = |known: &Suggestion| results.feasible_mean(plan, &known.trial).is_some();
    let none_is = !search.constraints.is_empty() && !known.any(is_feasible);
    none_is.then(|| "no trial meets `search.constraints`, so none is confirmed".into())
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

/// Which limit of the search is reached, in words.
fn spent(plan: &SearchPlan, results: &Results) -> Option<String> {
    if let Some(most) = plan.budget.epochs {
        let epochs: usize = results.runs().map(|run| run.epochs).sum();
        if epochs >= most {
            return Some(format!(
                "the budget of {most} epochs is spent ({epochs} trained)"
            ));
        }
    }
    let most = plan.budget.time?;
    let secs: f64 = results.runs().map(|run| run.wall_secs).sum();
    (secs >= most.as_secs_f64()).then(|| format!("the budget of {} is spent", show_duration(most)))
}

/// What comes next.
fn in_words(plan: &Plan, all: &[Suggestion], results: &Results) -> String {
    let num_known = plan
        .search
        .as_ref()
        .map_or(0, |search| search.suggestions.len());
    let most = plan.search.as_ref().and_then(|search| search.num_trials);
    let of = most.map_or(String::new(), |most| format!(" of {most}"));
    let known = plan.search.iter().flat_map(|search| &search.suggestions);
    let means = known.filter_map(|known| results.feasible_mean(plan, &known.trial));
    let is_better = |mean, best| plan.objective.is_better(mean, best);
    let best = means.reduce(|best, mean| if is_better(mean, best) { mean } else { best });
    let best = best.map_or(String::new(), |best| {
        format!("; best {} so far: {best:.4}", plan.objective.name())
    });
    let infeasible = match num_infeasible(plan, results) {
        0 => String::new(),
        1 => "; 1 trial does not meet the constraints".into(),
        num => format!("; {num} trials do not meet the constraints"),
    };
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
    format!("search: {}{best}{infeasible}", what.join(", "))
}

/// The trials with a value that do not meet the constraints.
fn num_infeasible(plan: &Plan, results: &Results) -> usize {
    let known = plan.search.iter().flat_map(|search| &search.suggestions);
    let trials: BTreeSet<&str> = known.map(|known| known.trial.as_str()).collect();
    let is_infeasible =
        |trial: &&&str| results.mean(plan, trial).is_some() && results.violation(plan, trial) > 0.0;
    trials.iter().filter(is_infeasible).count()
}

impl Trained {
    fn is_stopped(&self) -> bool {
        self.stopped.is_some() || self.failure.is_some()
    }
}
