//! The trials of earlier results that a search learns from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::unreadable;
use runner_core::diagnostic::{Diagnostic, Diagnostics};
use runner_core::plan::Search;
use runner_core::record::{ExperimentFolder, Index, RunEntry, State};
use runner_core::spec::document::Document;
use runner_core::spec::search::Prior;
use runner_core::spec::sweep::Text;

/// Reads the results that `search.warm_start` names, relative to the folder of the experiment file. `None` if there are
/// none to be read.
pub(super) fn read(
    folder: Option<&Path>,
    document: &Document,
) -> Result<Option<Vec<Prior>>, Diagnostics> {
    let Some(search) = Search::of(document) else {
        return Ok(None);
    };
    if search.spec.warm_start.is_empty() {
        return Ok(None);
    }
    let folder = folder.unwrap_or(Path::new(""));
    let mut prior = Vec::new();
    let mut wrong = Diagnostics::default();
    let mut read: Vec<(PathBuf, &Text)> = Vec::new();
    for from in &search.spec.warm_start {
        let place = folder.join(&from.source);
        let place = place.canonicalize().unwrap_or(place);
        if let Some((_, first)) = read.iter().find(|(known, _)| *known == place) {
            let message = format!("`{}` is the same folder as `{}`", from.source, first.source);
            let twice = Diagnostic::error("repeated-value", message).at(from.span);
            let twice = twice.related(first.span, "its trials are read here");
            wrong.push(twice.help("remove one of them"));
            continue;
        }
        read.push((place, from));
        match of_folder(&search, from, folder) {
            Ok(trials) => prior.extend(trials),
            Err(diagnostic) => wrong.push(diagnostic.at(from.span)),
        }
    }
    if wrong.has_errors() {
        Err(wrong)
    } else {
        Ok(Some(prior))
    }
}

/// The completed and the failed trials of a folder, which must be in the space of the search.
fn of_folder(
    search: &Search<'_>,
    from: &Text,
    folder: &Path,
) -> Result<Vec<Prior>, Box<Diagnostic>> {
    let name = &from.source;
    let refused = |message: String, help: &str| {
        Box::new(Diagnostic::error("results", message).help(help.to_owned()))
    };
    if name.contains("${") {
        let help = "write the folder itself, such as `results/digits`, relative to this file";
        return Err(refused(
            "references are not replaced in `search.warm_start`".into(),
            help,
        ));
    }
    let index = Index::read(&ExperimentFolder(folder.join(name)))
        .map_err(|error| Box::new(unreadable(&error)))?;
    let index = index.ok_or_else(|| {
        let help = "name a folder that `runner run` has written, such as `results/digits`, relative to this file";
        refused(format!("`{name}` contains no results of an experiment"), help)
    })?;
    if let Some(run) = index.runs.iter().find(|run| run.state.is_unreadable()) {
        let message = format!("run `{}` of `{name}` cannot be read", run.id);
        let help = "`runner run` of its file trains it again; or remove the folder from `search.warm_start`";
        return Err(refused(message, help));
    }
    let mut trials: Vec<Vec<&RunEntry>> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let searched = index.runs.iter();
    for run in searched.filter(|run| !index.plan.confirms(run.seed)) {
        let at = *places.entry(&run.trial).or_insert(trials.len());
        trials.resize(trials.len().max(at + 1), Vec::new());
        trials[at].push(run);
    }
    let objective = index.plan.objective.name();
    let is_higher_better = index.plan.objective.is_better(1.0, 0.0);
    let mut prior = Vec::new();
    for runs in trials {
        if let Some(why) = search.differs(&runs[0].axes) {
            let message = format!("`{name}` is not of this search's axes: {why}");
            let wrong = Diagnostic::error("contradiction", message);
            let wrong = wrong.note(format!("found in trial `{}`", runs[0].trial));
            let help =
                "learn from results over the same axes and values, or change `[sweep.random.axes]`";
            return Err(Box::new(wrong.help(help)));
        }
        let others = RunEntry::costs_reached(search.objectives(), &runs);
        if let Some(value) = result(&runs, &objective) {
            prior.push(Prior {
                from: name.clone(),
                objective: objective.clone(),
                values: runs[0].axes.clone(),
                value: value
                    .filter(|_| others.is_some())
                    .map(|mean| if is_higher_better { -mean } else { mean }),
                others: others.unwrap_or_default(),
                violations: RunEntry::violations(search.constraints(), &runs),
            });
        }
    }
    if prior.iter().all(|prior| prior.value.is_none()) {
        let help = "complete its runs with `runner run`, or remove it from `search.warm_start`";
        return Err(refused(format!("`{name}` has no completed trial"), help));
    }
    Ok(prior)
}

/// The mean of a trial, or that it failed; none if it has not ended.
fn result(runs: &[&RunEntry], objective: &str) -> Option<Option<f64>> {
    if runs.iter().any(|run| run.state == State::Failed) {
        return Some(None);
    }
    if !runs.iter().all(|run| run.state == State::Completed) {
        return None;
    }
    let values = runs.iter().map(|run| run.metrics.get(objective).copied());
    let values: Option<Vec<f64>> = values.collect();
    let mean = values.map(|values| values.iter().sum::<f64>() / values.len() as f64);
    Some(mean.filter(|mean| mean.is_finite()))
}
