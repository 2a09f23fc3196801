//! From a document to runs: the sweep is expanded, defaults are filled in, and everything is named and checked.
//!
//! Knows no device, clock or disk. The caller passes a function that inspects the data. Only the configuration of a
//! `model.type = "hub"` is read by `spec`, since it is a part of what is written.

mod agree;
mod best;
pub mod budget;
mod calibration;
pub mod card_sheet;
mod command;
pub mod constant;
mod constraints;
mod folds;
mod held_out;
mod identity;
pub mod init;
pub mod inventory;
mod kept;
mod name;
mod pieces;
mod place;
mod read;
mod relief;
mod room;
mod run;
mod schedule;
pub mod sweep;
pub mod teacher;
mod trial;

pub use crate::check::forecast::Forecast;
pub use crate::check::trial::Locate;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::spec::ExperimentSpec;
use crate::spec::document::{Document, Table};
use crate::spec::reference::{References, unused_values};
use agree::{
    further_objectives, known_baseline, not_ranked, one_fold, one_limit, one_name, one_objective,
    one_quantity, one_table, prior_of_objective, room_for_seeds, unused_gpus,
};
pub use best::Ties;
pub use calibration::{Basis, Calibration, Expected, Probe};
pub use command::quoted;
pub use folds::{FOLD, without_part};
pub use held_out::HeldOut;
use init::FindWeights;
use inventory::Inventory;
pub use name::default_name;
pub use pieces::PieceSizes;
pub use read::{account, put_together, specs, trials};
use read::{read, read_as_written};
pub use relief::Relief;
pub use room::Room;
pub use run::{ConfirmPlan, FORMAT, ForkPlan, OLDEST_FORMAT, OtherWork, Plan, RunPlan, SearchPlan};
pub use sweep::search::{Search, TrialResult};
use sweep::{Expansion, Point};
use trial::Planner;

/// Lists the devices of this machine; called once, and only if a file needs more than the host's processor.
pub type Devices<'a> = &'a dyn Fn() -> Inventory;

/// Plans a document. Errors are returned all at once, with the warnings; a plan comes with warnings only.
/// `default_name` names the experiment if the file does not; `weights` looks at the files of `[init]`.
pub fn plan(
    document: &Document,
    default_name: &str,
    locate: Locate<'_>,
    weights: FindWeights<'_>,
    devices: Devices<'_>,
) -> Result<(Plan, Diagnostics), Diagnostics> {
    Planning::new(default_name, locate, weights, devices).plan(document)
}

/// Plans a document, and then the same one with more suggestions of its search, of which only new trials are checked:
/// otherwise, the rounds of a search would cost more, the more trials it has.
pub struct Planning<'a> {
    default_name: &'a str,
    planner: Planner<'a>,
    /// The trials of the plan before, each with whether it has the seeds that confirm trials.
    known: BTreeMap<String, bool>,
}

impl<'a> Planning<'a> {
    /// Nothing is planned yet. The arguments are those of [`plan()`].
    pub fn new(
        default_name: &'a str,
        locate: Locate<'a>,
        weights: FindWeights<'a>,
        devices: Devices<'a>,
    ) -> Self {
        Self {
            default_name,
            planner: Planner::new(locate, weights, devices),
            known: BTreeMap::new(),
        }
    }

    /// Plans a document, like [`plan()`].
    pub fn plan(&mut self, document: &Document) -> Result<(Plan, Diagnostics), Diagnostics> {
        self.known.clear();
        self.plan_further(document, Vec::new())
    }

    /// Plans a document that differs from the one before by further suggestions, given the runs planned for that one,
    /// which are kept. The warnings are those of new trials.
    pub fn plan_further(
        &mut self,
        document: &Document,
        runs: Vec<RunPlan>,
    ) -> Result<(Plan, Diagnostics), Diagnostics> {
        let known = KnownRuns::of(std::mem::take(&mut self.known), runs);
        let (plan, diagnostics) = plan_by(document, self.default_name, &mut self.planner, known)?;
        if let Some(search) = &plan.search {
            let confirmed = search.confirmed();
            let known = search.suggestions.iter().map(|known| &known.trial);
            self.known = known
                .map(|trial| (trial.clone(), confirmed.contains_key(&**trial)))
                .collect();
        }
        Ok((plan, diagnostics))
    }
}

/// Runs that were planned before.
struct KnownRuns {
    /// By trial, with whether it has the seeds that confirm trials.
    by_trial: BTreeMap<String, (bool, Vec<RunPlan>)>,
}

impl KnownRuns {
    fn of(trials: BTreeMap<String, bool>, runs: Vec<RunPlan>) -> Self {
        let mut by_trial: BTreeMap<String, (bool, Vec<RunPlan>)> = trials
            .into_iter()
            .map(|(trial, is_confirmed)| (trial, (is_confirmed, Vec::new())))
            .collect();
        for run in runs {
            if let Some((_, runs)) = by_trial.get_mut(&run.trial) {
                runs.push(run);
            }
        }
        Self { by_trial }
    }

    /// Those of a trial, unless it has other seeds now.
    fn of_trial(&mut self, trial: &str, is_confirmed: bool) -> Option<Vec<RunPlan>> {
        let (was_confirmed, runs) = self.by_trial.remove(trial)?;
        (was_confirmed == is_confirmed && !runs.is_empty()).then_some(runs)
    }
}

fn plan_by(
    document: &Document,
    default_name: &str,
    planner: &mut Planner<'_>,
    mut known: KnownRuns,
) -> Result<(Plan, Diagnostics), Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let references = References::new(document);
    let (root, written, mut findings) = read_as_written(document, &references);
    let expansion = sweep::expand(document, written.experiment.seeds.len(), &mut diagnostics);
    let Some(expansion) = expansion else {
        // Trials of an invalid sweep would only repeat what is wrong with the file itself.
        let wrong = diagnostics.0.into_iter();
        wrong.for_each(|d| findings.diagnostics.push(d));
        planner.check_trial(&root, written, default_name, &mut findings);
        return Err(findings.diagnostics);
    };
    let mut runs = Vec::new();
    let limit = written.limits.experiment;
    let (num_trials, mut num_refused) = (expansion.points.len(), 0);
    let search = search_plan(document, &expansion, &written);
    let confirm = search.as_ref().and_then(|search| search.confirm.as_ref());
    let confirmed = search.as_ref().map(SearchPlan::confirmed);
    let confirmed = confirmed.unwrap_or_default();
    for point in &expansion.points {
        let is_confirmed = confirmed.contains_key(point.id.as_str());
        if let Some(planned) = known.of_trial(&point.id, is_confirmed) {
            runs.extend(planned);
            continue;
        }
        let (root, mut spec, mut findings) = read(&references, expansion.tree(point), &[]);
        if is_confirmed {
            let others = confirm.iter().flat_map(|confirm| &confirm.seeds);
            spec.experiment.seeds.extend(others);
        }
        let trial = planner.check_trial(&root, spec, default_name, &mut findings);
        let is_refused = findings.diagnostics.has_errors();
        num_refused += is_refused as usize;
        for diagnostic in findings.diagnostics.0 {
            if let Some(diagnostic) = in_trial(diagnostic, &expansion, point, &diagnostics) {
                diagnostics.push(diagnostic);
            }
        }
        if is_refused && diagnostics.num(Severity::Error) >= MAX_REFUSALS {
            let last = diagnostics.0.last_mut();
            let note = "there may be more errors: later trials were not checked";
            last.into_iter().for_each(|d| d.notes.push(note.into()));
            break;
        }
        if let Some(trial) = trial {
            if let Err(diagnostic) = one_limit(limit, &trial.spec, &point.id, &root)
                .and_then(|()| {
                    let both = (&written.verdict, &trial.spec.verdict);
                    one_table("verdict", both, &point.id, &root)
                })
                .and_then(|()| {
                    let both = (&written.launch, &trial.spec.launch);
                    one_table("launch", both, &point.id, &root)
                })
                .and_then(|()| {
                    let both = (&written.notify, &trial.spec.notify);
                    one_table("notify", both, &point.id, &root)
                })
            {
                return Err(Diagnostics(vec![*diagnostic]));
            }
            let values = resolved(expansion.values(point), &root);
            let first = runs.len();
            trial.add_runs(default_name, point.id.clone(), values, &mut runs);
            let (earlier, own) = runs.split_at_mut(first);
            expansion
                .copy(&point.id, earlier, own)
                .map_err(|diagnostic| Diagnostics(vec![*diagnostic]))?;
        }
    }
    if document.suggestions.is_none() && !diagnostics.has_errors() {
        check_later_points(
            document,
            &references,
            default_name,
            planner,
            &mut diagnostics,
        );
    }
    if diagnostics.has_errors() {
        if num_refused == num_trials {
            // What is wrong in every trial is wrong with the file.
            for diagnostic in &mut diagnostics.0 {
                diagnostic.notes.retain(|note| !note.starts_with(IN_TRIAL));
            }
        }
        return Err(diagnostics);
    }
    let objective = one_objective(&runs, &document.root)
        .map_err(|diagnostic| Diagnostics(vec![*diagnostic]))?;
    prior_of_objective(document, &objective)
        .map_err(|diagnostic| Diagnostics(vec![*diagnostic]))?;
    one_quantity(document, objective, &expansion, &runs)
        .map_err(|diagnostic| Diagnostics(vec![*diagnostic]))?;
    let mut refused = further_objectives(document, objective, &runs);
    refused.extend(constraints::constraints(document, objective, &runs));
    if !refused.is_empty() {
        return Err(Diagnostics(refused));
    }
    let name = written.experiment.name;
    let experiment = name.unwrap_or_else(|| default_name.to_owned());
    one_name(&experiment, &runs, &document.root)
        .map_err(|diagnostic| Diagnostics(vec![*diagnostic]))?;
    let warning = room_for_seeds(
        &written.verdict,
        written.experiment.seeds.len(),
        &document.root,
    )
    .map_err(|diagnostic| Diagnostics(vec![*diagnostic]))?;
    // Seeds of the command line may be those of a later look.
    let is_later = |set: &String| set.starts_with("experiment.seeds");
    let warning = warning.filter(|_| !document.overrides.iter().any(is_later));
    let gpus = unused_gpus(&written.launch, &runs, &document.root);
    let not_ranked = not_ranked(document, objective, &expansion, &runs);
    let one_fold = one_fold(document, &expansion, &runs);
    let warnings = warning.into_iter().chain(gpus).chain(not_ranked);
    for warning in warnings.chain(one_fold) {
        diagnostics.push(warning);
    }
    for warning in unused_values(document, expansion.placed_keys()) {
        diagnostics.push(warning);
    }
    let baseline = written.objective.baseline;
    if let Some(baseline) = &baseline {
        known_baseline(baseline, &runs, &document.root)
            .map_err(|diagnostic| Diagnostics(vec![*diagnostic]))?;
    }
    let plan = Plan {
        format: FORMAT,
        experiment,
        question: written.experiment.question.unwrap_or_default(),
        source: document.sources.0[0].name.clone(),
        overrides: document.overrides.clone(),
        objective,
        baseline,
        verdict: written.verdict,
        time_limit_secs: limit.map(|limit| limit.as_secs_f64()),
        notices: {
            let line = |span| document.sources.line(span);
            let mut notices = planner.notices();
            notices.extend(expansion.notices(&line));
            notices
        },
        axes: expansion.keys(),
        depending: expansion.depending(),
        search,
        launch: written.launch,
        notify: written.notify,
        runs,
    };
    Ok((plan, diagnostics))
}

/// Checks points that a search may suggest later, so that those that cannot be trained are refused before the first
/// epoch as far as possible.
fn check_later_points(
    document: &Document,
    references: &References<'_>,
    default_name: &str,
    planner: &mut Planner<'_>,
    diagnostics: &mut Diagnostics,
) {
    let Some(suggestions) = Search::of(document).and_then(|search| search.samples(NUM_CHECKED))
    else {
        return;
    };
    let mut later = document.clone();
    later.suggestions = Some(suggestions);
    let Some(expansion) = sweep::expand(&later, 1, &mut Diagnostics::default()) else {
        return;
    };
    for point in &expansion.points {
        let (root, spec, mut findings) = read(references, expansion.tree(point), &[]);
        planner.check_trial(&root, spec, default_name, &mut findings);
        let found = findings.diagnostics.0.into_iter();
        for diagnostic in found.filter(|found| found.severity == Severity::Error) {
            if let Some(diagnostic) = in_trial(diagnostic, &expansion, point, diagnostics) {
                let help =
                    "exclude such points with `exclude` in `[sweep]`, or search smaller ranges";
                diagnostics.push(diagnostic.help(help));
            }
        }
    }
}

/// The number of points of a search that are checked in addition to those of its first round.
const NUM_CHECKED: usize = 64;

fn search_plan(
    document: &Document,
    expansion: &Expansion,
    written: &ExperimentSpec,
) -> Option<SearchPlan> {
    let search = Search::of(document)?;
    let confirm = search.spec.confirm.map(|confirm| ConfirmPlan {
        trials: confirm.trials,
        seeds: confirm.other_seeds(&written.experiment.seeds),
    });
    Some(SearchPlan {
        method: search.spec.method,
        num_trials: search.spec.num_trials,
        budget: search.spec.budget,
        prune: search.spec.prune.clone(),
        confirm,
        objectives: search.objectives().collect(),
        constraints: search.constraints().cloned().collect(),
        digest: search.digest(),
        prior: document.prior.clone().unwrap_or_default(),
        suggestions: expansion.suggestions.clone(),
    })
}

/// The values of axes as resolved, rather than as references.
fn resolved(mut values: Map<String, Json>, root: &Table) -> Map<String, Json> {
    for (key, value) in &mut values {
        if let Some(entry) = root.at(key) {
            *value = entry.node.value.to_json();
        }
    }
    values
}

/// What is wrong with a trial, with the trial's name; none if a sampled value repeats an earlier error.
fn in_trial(
    diagnostic: Diagnostic,
    expansion: &Expansion,
    point: &Point,
    earlier: &Diagnostics,
) -> Option<Diagnostic> {
    if expansion.is_plain() {
        return Some(diagnostic);
    }
    let drawn = diagnostic
        .span
        .and_then(|span| expansion.drawn_at(point, span));
    let in_trial = format!("{IN_TRIAL} `{}`", point.id);
    let Some(drawn) = drawn else {
        let remedy = match (diagnostic.code, diagnostic.span) {
            ("unknown-key", Some(span)) => expansion.remedy_at(span),
            _ => None,
        };
        let diagnostic = match remedy {
            Some(remedy) => Diagnostic {
                helps: vec![remedy],
                ..diagnostic
            },
            None => diagnostic,
        };
        return Some(diagnostic.note(in_trial));
    };
    let known = |d: &Diagnostic| d.span == diagnostic.span && d.code == diagnostic.code;
    if earlier.0.iter().any(known) {
        None
    } else {
        let mut diagnostic = diagnostic.note(drawn).note(in_trial);
        // What to write instead of a value is no remedy for a distribution.
        if ["wrong-type", "out-of-range"].contains(&diagnostic.code) {
            diagnostic.helps = vec![if diagnostic.message.contains("must be an integer") {
                "sample integers, with `type = \"integer\"`".to_owned()
            } else {
                "change the distribution, so that all of its values are allowed".to_owned()
            }];
        }
        Some(diagnostic)
    }
}

/// Nobody reads more errors than this, and a sweep could have very many.
const MAX_REFUSALS: usize = 100;

/// The start of the note that names a trial.
const IN_TRIAL: &str = "first found in trial";
