//! What must be the same for all trials of an experiment, or hold for all of them.

use std::slice;
use std::time::Duration;

use super::RunPlan;
use super::folds::{FOLD, without_part};
use super::sweep::Expansion;
use super::sweep::search::Search;
use crate::check::measured::{Unmeasured, unmeasured};
use crate::diagnostic::{Diagnostic, Span, counted, nearest};
use crate::show::show_duration;
use crate::spec::ExperimentSpec;
use crate::spec::comparable::is_measured_differently;
use crate::spec::document::{Document, Table, is_inside};
use crate::spec::launch::LaunchSpec;
use crate::spec::metric::Objective;
use crate::spec::portable::is_reserved;
use crate::spec::section::Choice;
use crate::spec::strategy::StrategySpec;
use crate::spec::traded::Traded;
use crate::spec::verdict::VerdictSpec;

/// Refuses a name that differs between trials, or that is taken.
pub(super) fn one_name(
    experiment: &str,
    runs: &[RunPlan],
    root: &Table,
) -> Result<(), Box<Diagnostic>> {
    if let Some(run) = runs.iter().find(|run| run.experiment != experiment) {
        let message = format!(
            "`experiment.name` is `{}` in trial `{}`, but must be the same for all trials",
            run.experiment, run.trial
        );
        let place = root.at("experiment.name");
        let mut diagnostic = Diagnostic::error("sweep", message).help(
            "do not refer to a key that an axis sets; trials are named after their values anyway",
        );
        diagnostic.span = place.map(|entry| entry.node.span);
        return Err(Box::new(diagnostic));
    }
    if is_reserved(experiment) {
        return Err(Box::new(reserved_name(experiment, root)));
    }
    Ok(())
}

/// Refuses a name that is not a valid folder name on every system that results may be copied to.
fn reserved_name(name: &str, root: &Table) -> Diagnostic {
    let why = if name.ends_with('.') {
        "Windows removes a trailing dot"
    } else {
        "Windows reserves it for a device"
    };
    let message =
        format!("`experiment.name` is `{name}`, which is not a valid folder name on every system");
    let mut diagnostic = Diagnostic::error("out-of-range", message)
        .note(format!("it names a results folder, but {why}"))
        .help(format!(
            "choose another name, such as `{}_1`",
            name.trim_end_matches('.')
        ));
    diagnostic.span = root.at("experiment.name").map(|entry| entry.node.span);
    diagnostic
}

/// Trials with different tasks have different default objectives, and cannot be ranked.
pub(super) fn one_objective(runs: &[RunPlan], root: &Table) -> Result<Objective, Box<Diagnostic>> {
    let first = runs[0].objective;
    let Some(other) = runs.iter().find(|run| run.objective != first) else {
        return Ok(first);
    };
    let message = format!(
        "trials cannot be ranked: run `{}` has the objective `{}`, but run `{}` has `{}`",
        runs[0].id,
        first.name(),
        other.id,
        other.objective.name()
    );
    let mut diagnostic = Diagnostic::error("task", message)
        .help("add `[objective]` with a `metric` that all trials have, such as \"valid/loss\"");
    diagnostic.span = root.get("sweep").map(|entry| entry.key_span);
    Err(Box::new(diagnostic))
}

/// A search must not vary what its objective measures: it would choose the unit, the function or the items with the best
/// values.
pub(super) fn one_quantity(
    document: &Document,
    objective: Objective,
    expansion: &Expansion,
    runs: &[RunPlan],
) -> Result<(), Box<Diagnostic>> {
    let Some(search) = Search::of(document) else {
        return Ok(());
    };
    let name = objective.name();
    let axes = expansion.varied();
    let further = search.spec.objectives.iter();
    let further = further.map(|(traded, _)| traded.name());
    let further: Vec<String> = further.collect();
    let other = std::iter::once(&name)
        .chain(&further)
        .find_map(|metric| Some((changing(&axes, metric, runs)?, metric)));
    let is_split = |key: &&String| ITEMS.contains(&key.as_str()) || is_inside(key, "data.split");
    let (key, message, help) = if let Some((key, metric)) = other {
        (
            key,
            format!(
                "`{metric}` is another quantity for each value of `{key}`, so trials of a search cannot be compared by it"
            ),
            match unchanging(&axes, runs) {
                _ if *metric != name => {
                    format!("remove the axis, or take `{metric}` out of `search.objectives`")
                }
                Some(other) => format!("remove the axis, or set `objective.metric = \"{other}\"`"),
                None => "remove the axis".into(),
            },
        )
    } else if let Some(key) = axes.iter().find(is_split) {
        (
            key,
            format!(
                "`{key}` changes the items that `{name}` is measured on: a search would choose those that are easiest"
            ),
            "remove the axis, or use `[sweep]`".into(),
        )
    } else {
        return Ok(());
    };
    let mut diagnostic = Diagnostic::error("contradiction", message).help(help);
    diagnostic.span = expansion.span_of(key);
    Err(Box::new(diagnostic))
}

/// The first axis for each value of which a metric is another quantity.
fn changing<'a>(axes: &'a [String], metric: &str, runs: &[RunPlan]) -> Option<&'a String> {
    let task = runs.first().map(|run| run.task.kind.name());
    let mut axes = axes.iter();
    axes.find(|key| is_measured_differently(metric, slice::from_ref(*key), task))
}

/// A metric of the runs that no axis changes.
fn unchanging(axes: &[String], runs: &[RunPlan]) -> Option<String> {
    let metrics = &runs.first()?.task.metrics;
    let mut names = metrics
        .iter()
        .map(|metric| format!("valid/{}", metric.name()));
    names.find(|name| changing(axes, name, runs).is_none())
}

/// Warns that the report of a sweep will not rank its trials, since an axis changes what the objective measures.
pub(super) fn not_ranked(
    document: &Document,
    objective: Objective,
    expansion: &Expansion,
    runs: &[RunPlan],
) -> Option<Diagnostic> {
    if Search::of(document).is_some() {
        return None;
    }
    let name = objective.name();
    let axes = expansion.varied();
    let key = changing(&axes, &name, runs)?;
    let message = format!(
        "the report will not rank the trials, since `{name}` is another quantity for each value of `{key}`"
    );
    let mut warning = Diagnostic::warning("sweep", message);
    if let Some(other) = unchanging(&axes, runs) {
        warning = warning.help(format!(
            "to rank them, set `objective.metric = \"{other}\"`"
        ));
    }
    warning.span = expansion.span_of(key);
    Some(warning)
}

/// Warns that a file with folds trains on one of them alone, which it does not say.
pub(super) fn one_fold(
    document: &Document,
    expansion: &Expansion,
    runs: &[RunPlan],
) -> Option<Diagnostic> {
    // A search may not choose its fold.
    if Search::of(document).is_some() {
        return None;
    }
    let folds = runs.first()?.data.split.folds?;
    let axes = expansion.varied();
    let is_set = axes.iter().any(|key| is_inside(FOLD, key) || key == FOLD)
        || document.root.at(FOLD).is_some();
    if is_set {
        return None;
    }
    let all = match folds {
        ..=10 => (0..folds)
            .map(|fold| fold.to_string())
            .collect::<Vec<_>>()
            .join(", "),
        _ => format!("0, 1, ..., {}", folds - 1),
    };
    let message =
        format!("only the first of {folds} folds is held out: this is no cross-validation");
    let help = format!(
        "for a cross-validation, add the axis `data.split.fold = [{all}]` to `[sweep.grid]`; if one fold is meant, add `fold = 0` to `[data.split]`"
    );
    let mut warning = Diagnostic::warning("sweep", message).help(help);
    warning.span = document.root.span_at("data.split.folds");
    Some(warning)
}

/// Keys that change which items are held out, in addition to those of the split.
const ITEMS: [&str; 8] = [
    "data",
    "data.type",
    "data.split",
    "data.path",
    "data.valid_path",
    "data.test_path",
    "data.root",
    "data.part",
];

/// The baseline is one of the trials.
pub(super) fn known_baseline(
    name: &str,
    runs: &[RunPlan],
    root: &Table,
) -> Result<(), Box<Diagnostic>> {
    if runs.iter().any(|run| run.trial == name) {
        return Ok(());
    }
    // As reports name the trials of a cross-validation.
    let whole = runs.iter().filter_map(|run| {
        let fold = run.axes.get(FOLD)?.as_u64()?;
        Some(without_part(&run.trial, fold))
    });
    let whole: Vec<String> = whole.collect();
    if whole.iter().any(|trial| trial == name) {
        return Ok(());
    }
    let parts = runs.iter().map(|run| run.trial.as_str());
    let trials = || whole.iter().map(String::as_str).chain(parts.clone());
    let help = match nearest(name, trials()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let example = trials().next().unwrap_or_default();
            format!(
                "trials are named after the values of the axes, such as `{example}`; `runner plan` shows all runs"
            )
        }
    };
    let message = format!("the baseline trial `{name}` does not exist");
    let mut diagnostic = Diagnostic::error("sweep", message).help(help);
    diagnostic.span = root.span_at("objective.baseline");
    Err(Box::new(diagnostic))
}

/// The experiment's time limit belongs to the file, not to a trial.
pub(super) fn one_limit(
    written: Option<Duration>,
    spec: &ExperimentSpec,
    trial: &str,
    root: &Table,
) -> Result<(), Box<Diagnostic>> {
    let limit = spec.limits.experiment;
    if limit == written {
        return Ok(());
    }
    let shown = limit.map_or("not set".into(), show_duration);
    let message = format!(
        "`limits.experiment` is {shown} in trial `{trial}`, but must be the same for all trials"
    );
    let mut diagnostic = Diagnostic::error("sweep", message)
        .help("set a plain value in `[limits]`, and no axis over a key that it refers to; `limits.run` may differ between trials");
    diagnostic.span = root.span_at("limits.experiment");
    Err(Box::new(diagnostic))
}

/// A table that belongs to the experiment, not to a trial.
pub(super) fn one_table<T: PartialEq>(
    name: &'static str,
    (written, found): (&T, &T),
    trial: &str,
    root: &Table,
) -> Result<(), Box<Diagnostic>> {
    if found == written {
        return Ok(());
    }
    let message =
        format!("`[{name}]` differs in trial `{trial}`, but must be the same for all trials");
    let mut diagnostic = Diagnostic::error("sweep", message).help(format!(
        "set plain values in `[{name}]`, and no axis over a key that it refers to"
    ));
    diagnostic.span = root.span_at(name);
    Err(Box::new(diagnostic))
}

/// Seeds are added between looks, up to a number above that of the file. A warning if there are not enough of them for
/// each look to have more than the one before.
pub(super) fn room_for_seeds(
    verdict: &VerdictSpec,
    num_seeds: usize,
    root: &Table,
) -> Result<Option<Diagnostic>, Box<Diagnostic>> {
    let Some(most) = verdict.max_seeds else {
        return Ok(None);
    };
    let mut diagnostic = if verdict.looks.is_none() {
        Diagnostic::error(
            "contradiction",
            "`verdict.max_seeds` needs `verdict.looks`: verdicts are looked at each time that seeds are added",
        )
        .help("add `looks = 5` to `[verdict]`: each look has an equal part of the probability of a wrong claim")
    } else if most < num_seeds {
        let message =
            format!("`verdict.max_seeds` is {most}, but `experiment.seeds` has {num_seeds}");
        Diagnostic::error("contradiction", message)
            .help(format!("set `verdict.max_seeds` to more than {num_seeds}"))
    } else {
        let mut warning = too_many_looks(verdict.looks.unwrap_or(1), num_seeds, most);
        if let Some(warning) = &mut warning {
            warning.span = root.span_at("verdict.max_seeds");
        }
        return Ok(warning);
    };
    diagnostic.span = root.span_at("verdict.max_seeds");
    Err(Box::new(diagnostic))
}

/// Looks without seeds of their own use up their part of the level.
fn too_many_looks(looks: usize, num_seeds: usize, most: usize) -> Option<Diagnostic> {
    let possible = most - num_seeds + 1;
    if possible >= looks {
        return None;
    }
    let message = format!(
        "`verdict.looks` plans {looks} looks, and from {} to {most} there can be {possible}",
        counted(num_seeds, "seed")
    );
    let enough = num_seeds + looks - 1;
    let fewer = match possible {
        1 => String::new(),
        _ => format!(", or `verdict.looks` to {possible}"),
    };
    let warning = Diagnostic::warning("verdict", message)
        .note("each look has an equal part of the probability of a wrong claim, also one that is not made")
        .help(format!("set `verdict.max_seeds` to at least {enough}{fewer}"));
    Some(warning)
}

/// Whether earlier results that a search learns from have its objective.
pub(super) fn prior_of_objective(
    document: &Document,
    objective: &Objective,
) -> Result<(), Box<Diagnostic>> {
    let name = objective.name();
    let mut prior = document.prior.iter().flatten();
    let Some(other) = prior.find(|prior| prior.objective != name) else {
        return Ok(());
    };
    let message = format!(
        "the objective of `{}` is {}, and that of this search is {name}",
        other.from, other.objective
    );
    let mut diagnostic = Diagnostic::error("contradiction", message);
    diagnostic.span = document.root.span_at("search.warm_start");
    Err(Box::new(diagnostic.help(format!(
        "set `objective.metric = \"{}\"`, or remove the folder from `search.warm_start`",
        other.objective
    ))))
}

/// Refuses further objectives of a search that are its objective, that a trial does not measure, or that cannot be
/// compared between trials.
pub(super) fn further_objectives(
    document: &Document,
    objective: Objective,
    runs: &[RunPlan],
) -> Vec<Diagnostic> {
    let search = Search::of(document);
    let wanted = search.iter().flat_map(|search| &search.spec.objectives);
    let refusal = |(traded, span): &(Traded, Span)| {
        let Traded::Metric(metric) = traded else {
            return None;
        };
        let name = metric.name();
        let refuse = |message: String, help: String| {
            let wrong = Diagnostic::error("contradiction", message).at(*span);
            Some(wrong.help(help))
        };
        if *metric == objective {
            return refuse(
                format!("`{name}` is the objective already"),
                "`objectives` lists what it is traded off against, such as `parameters`".into(),
            );
        }
        let (message, help) = not_measured_by_all("search.objectives", *metric, runs)?;
        refuse(message, help)
    };
    wanted.filter_map(refusal).collect()
}

/// Warns of GPUs that jobs request or runs should share, and that no run uses.
pub(super) fn unused_gpus(
    launch: &LaunchSpec,
    runs: &[RunPlan],
    root: &Table,
) -> Option<Diagnostic> {
    let num = launch.gpus()?;
    let first = runs.first()?.device;
    let is_unused = |run: &RunPlan| {
        if launch.is_local() {
            run.device.visibility().is_none()
        } else {
            run.device.backend.is_host()
        }
    };
    if !runs.iter().all(is_unused) {
        return None;
    }
    let message = if launch.is_local() {
        format!("all runs train on `{first}`, for which `gpus` has no effect")
    } else {
        let gpus = counted(num, "GPU");
        format!("jobs request {gpus}, and all runs train on `{first}`, which uses none")
    };
    let mut warning = Diagnostic::warning("launch", message);
    warning.span = root.span_at("launch.gpus");
    Some(if launch.is_local() {
        warning.help("set `backend.device = \"cuda\"` or `\"rocm\"`, whose runs can use any GPU, or remove `gpus`")
    } else {
        warning
            .note("without `backend.device`, the device is that of the machine that submits")
            .help("set `backend.device` to the device of the cluster's machines, such as \"cuda\", or remove `gpus`")
    })
}

/// Why a metric in the list at `key` cannot compare all trials of a search, with a remedy: some do not measure it, or
/// measure another function.
pub(super) fn not_measured_by_all(
    key: &str,
    metric: Objective,
    runs: &[RunPlan],
) -> Option<(String, String)> {
    let name = metric.name();
    let has_average = |run: &RunPlan| match metric.average() {
        None => true,
        Some("ema") => run.train.ema.is_some(),
        Some(_) => matches!(run.strategy, StrategySpec::Swa { .. }),
    };
    if !runs.iter().all(has_average) {
        return Some((
            format!("not every trial measures `{name}`, which is of averaged weights"),
            format!("use `valid/{}`", metric.metric.name()),
        ));
    }
    let unmeasured = |run: &RunPlan| unmeasured(metric, &run.task, &run.losses);
    if let Some(Unmeasured { why, help }) = runs.iter().find_map(unmeasured) {
        return Some((format!("`{key}` has `{name}`{why}"), help));
    }
    let functions = runs.iter().map(|run| &run.loss);
    let is_one = functions
        .clone()
        .all(|loss| Some(loss) == functions.clone().next());
    (Traded::Metric(metric).is_loss() && !is_one).then(|| {
        (
            format!("trials minimize different losses, so their `{name}` cannot be compared"),
            "use another metric".into(),
        )
    })
}
