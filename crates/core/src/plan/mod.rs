//! From a document to runs: the sweep expanded, defaults filled in, everything named and checked.
//!
//! Knows no device, clock or disk. Data is looked at through a function that the caller passes.

mod best;
pub mod budget;
mod calibration;
mod command;
mod held_out;
mod identity;
pub mod inventory;
mod kept;
mod pieces;
mod place;
pub mod reference;
mod relief;
mod room;
mod schedule;
pub mod sweep;

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::check;
use crate::check::forecast::Demand;
pub use crate::check::forecast::Forecast;
use crate::check::network::{Network, Shape, lay_out};
use crate::check::task::Goal;
use crate::data::{DataError, DataPlan, Located};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, counted, nearest};
use crate::spec::backend::{ConvKernels, DeviceName, Precision};
use crate::spec::data::DataSpec;
use crate::spec::document::{Document, Table};
use crate::spec::failure::OnFailure;
use crate::spec::kind::show_duration;
use crate::spec::loss::LossSpec;
use crate::spec::metric::Objective;
use crate::spec::model::layer_spec::LayerSpec;
use crate::spec::optimizer::OptimizerSpec;
use crate::spec::portable::is_reserved;
use crate::spec::reference::{References, drop_unused_values, unused_values};
use crate::spec::scheduler::SchedulerSpec;
use crate::spec::section::Findings;
use crate::spec::sweep::SweepSpec;
use crate::spec::task::TaskSpec;
use crate::spec::train::TrainSpec;
use crate::spec::{CheckpointSpec, ExperimentSpec};
pub use best::Ties;
pub use calibration::{Basis, Calibration, Expected, Probe};
pub use command::quoted;
pub use held_out::HeldOut;
use inventory::Inventory;
pub use pieces::PieceSizes;
use place::{Machine, Place};
pub use relief::Relief;
pub use room::Room;
use sweep::{Account, Expansion, Point};

/// The version of `plan.json` and `run.toml`. Since 3, the files of a run are sealed and its events are chained.
pub const FORMAT: u32 = 3;

/// The oldest version that is still read. Runs of it are shown in reports, and are other work when they are planned again.
pub const OLDEST_FORMAT: u32 = 2;

/// What an experiment comes down to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of this format.
    pub format: u32,
    /// The folder's name under `results/`.
    pub experiment: String,
    /// What the experiment is to answer; empty when it does not say.
    pub question: String,
    /// The file, as the user named it.
    pub source: String,
    /// The edits of `--set`, in order.
    pub overrides: Vec<String>,
    /// The metric that trials are ranked by.
    pub objective: Objective,
    /// The trial that others are compared with, if the file names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The seconds after which the experiment stops, if there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_secs: Option<f64>,
    /// What the user must be told about the data.
    pub notices: Vec<String>,
    /// The varied keys, in file order.
    pub axes: Vec<String>,
    /// Trials in file order, the seeds of a trial side by side.
    pub runs: Vec<RunPlan>,
}

/// One training, with nothing left to decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The version of this format.
    pub format: u32,
    /// The experiment's name.
    pub experiment: String,
    /// The run's name and folder: the trial's with the seed.
    pub id: String,
    /// The trial's name.
    pub trial: String,
    /// Decides the first weights, the order of items and every other random draw.
    pub seed: u64,
    /// Hash of everything that can change the numbers.
    pub fingerprint: String,
    /// The metric that epochs are compared by.
    pub objective: Objective,
    /// Where it is computed.
    pub device: DeviceName,
    /// In what precision.
    pub precision: Precision,
    /// Which kernels convolutions are computed by.
    #[serde(default, skip_serializing_if = "ConvKernels::is_auto")]
    pub conv: ConvKernels,
    /// The most bytes that it may hold, if there is a limit: its process on the host, else the device's pool.
    pub memory_limit_bytes: Option<u64>,
    /// Bytes of the device that stay free for others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_reserve_bytes: u64,
    /// What is done about it when it does not fit.
    #[serde(default, skip_serializing_if = "Relief::is_empty")]
    pub on_exceed: Relief,
    /// The seconds that it may take, if there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_secs: Option<f64>,
    /// Why it is not started on this machine, if it is not: its device is not there, or does not compute in its
    /// precision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// Optimizer updates in an epoch.
    pub steps_per_epoch: usize,
    /// The values of the varied keys.
    pub axes: Map<String, Json>,
    /// What it will hold at its peak, as counted before anything was measured.
    #[serde(default)]
    pub forecast: Forecast,
    /// How long is trained.
    pub train: TrainSpec,
    /// When checkpoints are written and kept.
    pub checkpoint: CheckpointSpec,
    /// What is done when it fails.
    #[serde(default, skip_serializing_if = "OnFailure::is_empty")]
    pub on_failure: OnFailure,
    /// What is trained on.
    pub data: DataPlan,
    /// What is learned, and what is measured.
    pub task: TaskSpec,
    /// What is minimized.
    pub loss: LossSpec,
    /// How it is minimized.
    pub optimizer: OptimizerSpec,
    /// The learning rate over the steps.
    pub scheduler: SchedulerSpec,
    /// The network laid out.
    pub network: Network,
}

impl RunPlan {
    /// Optimizer updates of the whole training.
    pub fn num_steps(&self) -> usize {
        self.steps_per_epoch * self.train.epochs
    }

    /// The same run in another precision and with so many items computed at a time, with the forecast of that.
    /// A step stays in as many pieces as it is in.
    pub fn in_batches(&self, items: usize, precision: Precision) -> Self {
        let train = &self.train;
        let pieces = train.batch_size.div_ceil(train.micro_batch_size);
        let mut run = self.clone();
        run.precision = precision;
        run.train.micro_batch_size = items;
        run.train.batch_size = items * pieces;
        run.steps_per_epoch = run.data.num_train.div_ceil(run.train.batch_size);
        run.with_forecast()
    }

    /// The same with the forecast of what it says now.
    pub fn with_forecast(mut self) -> Self {
        self.forecast = Forecast::of(&self.demand());
        self.forecast.kept = self.kept_on_device().values().sum();
        self
    }

    /// What decides how much memory it takes.
    pub fn demand(&self) -> Demand<'_> {
        Demand {
            device: self.device,
            precision: self.precision,
            conv: self.conv,
            network: &self.network,
            optimizer: &self.optimizer,
            train: &self.train,
            data: &self.data,
        }
    }

    /// The metric that early stopping watches, if there is early stopping.
    pub fn watched(&self) -> Option<Objective> {
        let spec = self.train.early_stopping.as_ref()?;
        Some(spec.metric.unwrap_or(self.objective))
    }

    /// Whether a checkpoint of `step` updates, written for a plan of this fingerprint and so many epochs, is one
    /// of this plan too: when the plans differ in nothing but their length, and the learning rates do
    /// not see it. The error is a phrase.
    pub fn goes_on_from(
        &self,
        fingerprint: &str,
        epochs: usize,
        step: usize,
    ) -> Result<(), String> {
        let mut shorter = self.clone();
        shorter.train.epochs = epochs;
        let shorter = shorter.with_fingerprint();
        if shorter.fingerprint != fingerprint {
            return Err("more than its number of epochs is other".into());
        }
        let other = |at: &usize| self.learning_rate(*at) != shorter.learning_rate(*at);
        match (0..step).find(other) {
            None => Ok(()),
            Some(at) => Err(format!(
                "the schedule depends on the number of epochs: the learning rate of step {} was {:.4e}, is {:.4e}",
                at + 1,
                shorter.learning_rate(at),
                self.learning_rate(at)
            )),
        }
    }
}

fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

/// Finds the data of a spec, as [`crate::data::locate`] does.
pub type Locate<'a> = &'a mut dyn FnMut(&DataSpec) -> Result<Located, DataError>;

/// Asks for the devices of this machine; done once, and only when a file asks for more than the host's processor.
pub type Devices<'a> = &'a dyn Fn() -> Inventory;

/// Plans a document. Refusals are returned all at once, with the warnings; a plan comes with warnings
/// alone. `default_name` names the experiment when the file does not.
pub fn plan(
    document: &Document,
    default_name: &str,
    locate: Locate<'_>,
    devices: Devices<'_>,
) -> Result<(Plan, Diagnostics), Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let references = References::new(document);
    let (root, written, mut findings) = read_as_written(document, &references);
    let expansion = sweep::expand(document, written.experiment.seeds.len(), &mut diagnostics);
    let Some(expansion) = expansion else {
        // Trials of a wrong sweep would only repeat what is wrong with the file itself.
        let wrong = diagnostics.0.into_iter();
        wrong.for_each(|d| findings.diagnostics.push(d));
        let mut planner = Planner::new(locate, devices);
        planner.check_trial(&root, written, &mut findings);
        return Err(findings.diagnostics);
    };
    let mut planner = Planner::new(locate, devices);
    let mut runs = Vec::new();
    let limit = written.limits.experiment;
    let (num_trials, mut num_refused) = (expansion.points.len(), 0);
    for point in &expansion.points {
        let (root, spec, mut findings) = read(&references, expansion.tree(point), &[]);
        let trial = planner.check_trial(&root, spec, &mut findings);
        let is_refused = findings.diagnostics.has_errors();
        num_refused += is_refused as usize;
        for diagnostic in findings.diagnostics.0 {
            if let Some(diagnostic) = in_trial(diagnostic, &expansion, point, &diagnostics) {
                diagnostics.push(diagnostic);
            }
        }
        if is_refused && diagnostics.num(Severity::Error) >= MAX_REFUSALS {
            let last = diagnostics.0.last_mut();
            let note = "there may be more: trials after this one were not looked at";
            last.into_iter().for_each(|d| d.notes.push(note.into()));
            break;
        }
        if let Some(trial) = trial {
            if let Err(diagnostic) = one_limit(limit, &trial.spec, &point.id, &root) {
                return Err(Diagnostics(vec![*diagnostic]));
            }
            let mut values = expansion.values(point);
            for (key, value) in &mut values {
                // What a reference came to, not the reference.
                if let Some(entry) = root.at(key) {
                    *value = entry.node.value.to_json();
                }
            }
            trial.add_runs(default_name, point.id.clone(), values, &mut runs);
        }
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
    let experiment = written
        .experiment
        .name
        .unwrap_or_else(|| default_name.to_owned());
    if let Some(run) = runs.iter().find(|run| run.experiment != experiment) {
        let message = format!(
            "`experiment.name` is `{}` in trial `{}`, and one name holds for all trials",
            run.experiment, run.trial
        );
        let place = document.root.at("experiment.name");
        let mut diagnostic = Diagnostic::error("sweep", message)
            .help("refer to no key that an axis sets; trials are named by their values anyway");
        diagnostic.span = place.map(|entry| entry.node.span);
        return Err(Diagnostics(vec![diagnostic]));
    }
    if is_reserved(&experiment) {
        return Err(Diagnostics(vec![reserved_name(
            &experiment,
            &document.root,
        )]));
    }
    for warning in unused_values(document) {
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
        time_limit_secs: limit.map(|limit| limit.as_secs_f64()),
        notices: {
            let line = |span| document.sources.line(span);
            let mut notices = planner.notices();
            notices.extend(expansion.notices(&line));
            notices
        },
        axes: expansion.keys(),
        runs,
    };
    Ok((plan, diagnostics))
}

/// Refuses a name that cannot be a folder on every system that results are copied to.
fn reserved_name(name: &str, root: &Table) -> Diagnostic {
    let why = if name.ends_with('.') {
        "Windows drops a dot at the end"
    } else {
        "Windows takes it for a device"
    };
    let message = format!("`experiment.name` is `{name}`, which is not a folder on every system");
    let mut diagnostic = Diagnostic::error("out-of-range", message)
        .note(format!("it names a folder of results, and {why}"))
        .help(format!(
            "choose another name, such as `{}_1`",
            name.trim_end_matches('.')
        ));
    diagnostic.span = root.at("experiment.name").map(|entry| entry.node.span);
    diagnostic
}

/// What is wrong with a trial, with the trial's name; none when a drawn value is wrong as an earlier one
/// was.
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
        Some(diagnostic.note(drawn).note(in_trial))
    }
}

/// Nobody reads more refusals than this, and a sweep could have very many.
const MAX_REFUSALS: usize = 100;

/// How the note begins that names a trial.
const IN_TRIAL: &str = "first found in trial";

/// Trials with different tasks have different usual objectives, and could not be ranked.
fn one_objective(runs: &[RunPlan], root: &Table) -> Result<Objective, Box<Diagnostic>> {
    let first = runs[0].objective;
    let Some(other) = runs.iter().find(|run| run.objective != first) else {
        return Ok(first);
    };
    let message = format!(
        "trials cannot be ranked: run `{}` has the objective `{}`, and run `{}` has `{}`",
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

/// The baseline is one of the trials.
fn known_baseline(name: &str, runs: &[RunPlan], root: &Table) -> Result<(), Box<Diagnostic>> {
    if runs.iter().any(|run| run.trial == name) {
        return Ok(());
    }
    let trials = || runs.iter().map(|run| run.trial.as_str());
    let help = match nearest(name, trials()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let example = trials().next().unwrap_or_default();
            format!(
                "trials are named by the values of the axes, such as `{example}`; `runner plan` shows all runs"
            )
        }
    };
    let message = format!("there is no trial `{name}` to compare the others with");
    let mut diagnostic = Diagnostic::error("sweep", message).help(help);
    diagnostic.span = root.span_at("objective.baseline");
    Err(Box::new(diagnostic))
}

/// The experiment's time limit is that of the file, not of a trial.
fn one_limit(
    written: Option<Duration>,
    spec: &ExperimentSpec,
    trial: &str,
    root: &Table,
) -> Result<(), Box<Diagnostic>> {
    let limit = spec.limits.experiment;
    if limit == written {
        return Ok(());
    }
    let shown = limit.map_or("not written".into(), show_duration);
    let message = format!(
        "`limits.experiment` is {shown} in trial `{trial}`, and one limit holds for all trials"
    );
    let mut diagnostic = Diagnostic::error("sweep", message)
        .help("write it in `[limits]` as it is, and set no key that it refers to; `limits.run` may differ between trials");
    diagnostic.span = root.span_at("limits.experiment");
    Err(Box::new(diagnostic))
}

/// The spec of every trial with the trial's id, or what is wrong with the document's model or sweep.
/// Rules and shapes are not looked at.
pub fn specs(document: &Document) -> Result<Vec<(String, ExperimentSpec)>, Diagnostics> {
    let references = References::new(document);
    let mut specs = Vec::new();
    for (id, root) in trials(document)? {
        let (_, spec, findings) = read(&references, root, &[]);
        if findings.is_poisoned("model") {
            return Err(findings.diagnostics);
        }
        specs.push((id, spec));
    }
    Ok(specs)
}

/// The tree of every trial with the trial's id, references still in it, or what is wrong with the sweep.
pub fn trials(document: &Document) -> Result<Vec<(String, Table)>, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let expansion = sweep::expand(document, 1, &mut diagnostics).ok_or(diagnostics)?;
    let trials = expansion.points.iter();
    Ok(trials
        .map(|point| (point.id.clone(), expansion.tree(point)))
        .collect())
}

/// A document, or one of its trials, put together for [`crate::spec::render`]: with the keys that the
/// sweep sets. References to those are left open where the tree is that of no trial. With a `folder`,
/// paths that are relative to the file are put below it.
pub fn put_together(
    document: &Document,
    trial: Option<&str>,
    folder: Option<&Path>,
) -> Result<(Table, Vec<String>), Diagnostics> {
    let references = References::new(document);
    let axes = SweepSpec::read(&document.root, &mut Findings::default()).keys();
    let mut resolved = match trial {
        None => references.resolve_as_text(document.root.clone(), &axes),
        Some(wanted) => {
            let trials = trials(document)?;
            let ids = || trials.iter().map(|(id, _)| id.as_str());
            let Some((_, root)) = trials.iter().find(|(id, _)| id == wanted) else {
                let message = format!("there is no trial `{wanted}`");
                let diagnostic = Diagnostic::error("usage", message);
                let diagnostic = match nearest(wanted, ids()) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => {
                        let first = ids().next().unwrap_or_default().to_owned();
                        diagnostic.help(format!(
                            "trials are named like `{first}`; `runner plan` shows the runs, named by trial and seed"
                        ))
                    }
                };
                return Err(Diagnostics(vec![diagnostic]));
            };
            let mut root = root.clone();
            root.entries.retain(|entry| entry.key != "sweep");
            references.resolve_as_text(root, &[])
        }
    };
    if !resolved.diagnostics.is_empty() {
        return Err(Diagnostics(resolved.diagnostics));
    }
    drop_unused_values(&mut resolved.root);
    if let Some(folder) = folder {
        references.move_to(&mut resolved.root, folder);
    }
    Ok((resolved.root, axes))
}

/// Decodes the tree of a trial with its references resolved.
fn read(
    references: &References<'_>,
    root: Table,
    open: &[String],
) -> (Table, ExperimentSpec, Findings) {
    let mut resolved = references.resolve(root, open);
    let mut findings = resolved.findings();
    let spec = ExperimentSpec::decode(&resolved.root, &mut findings);
    resolved.report(&mut findings);
    (resolved.root, spec, findings)
}

/// Decodes the document itself, in which references to keys that axes set are left open.
fn read_as_written(
    document: &Document,
    references: &References<'_>,
) -> (Table, ExperimentSpec, Findings) {
    let sweep = SweepSpec::read(&document.root, &mut Findings::default());
    read(references, document.root.clone(), &sweep.keys())
}

/// What became of the points of a document's sweep; none when the sweep is wrong.
pub fn account(document: &Document) -> Option<Account> {
    let written = ExperimentSpec::decode(&document.root, &mut Findings::default());
    let num_seeds = written.experiment.seeds.len();
    let mut unused = Diagnostics::default();
    let expansion = sweep::expand(document, num_seeds, &mut unused)?;
    Some(expansion.account)
}

/// Checks trials one after the other and remembers what they share.
struct Planner<'a> {
    locate: Locate<'a>,
    located: Vec<(DataSpec, Result<Located, DataError>)>,
    machine: Machine<'a>,
    /// What was said about batches that would not fit.
    lowered: Vec<String>,
    /// The last network, since neighbours mostly have the same.
    last: Option<(Blueprint, Rc<LaidOut>)>,
}

/// What a network is laid out from.
#[derive(PartialEq)]
struct Blueprint {
    layers: Vec<LayerSpec>,
    items: Shape,
    output: Vec<usize>,
}

/// A network with the text of its work.
struct LaidOut {
    network: Network,
    work: String,
}

/// A trial that nothing is wrong with.
struct Trial {
    spec: ExperimentSpec,
    data: DataPlan,
    goal: Goal,
    laid_out: Rc<LaidOut>,
    place: Place,
}

impl<'a> Planner<'a> {
    fn new(locate: Locate<'a>, devices: Devices<'a>) -> Self {
        Self {
            locate,
            located: Vec::new(),
            machine: Machine::new(devices),
            lowered: Vec::new(),
            last: None,
        }
    }

    fn lay_out(&mut self, blueprint: Blueprint) -> Result<Rc<LaidOut>, Box<Diagnostic>> {
        if let Some((last, laid_out)) = &self.last
            && *last == blueprint
        {
            return Ok(laid_out.clone());
        }
        let Blueprint {
            layers,
            items,
            output,
        } = &blueprint;
        let network = lay_out(layers, items, output)?;
        let work = network.work().to_string();
        let laid_out = Rc::new(LaidOut { network, work });
        self.last = Some((blueprint, laid_out.clone()));
        Ok(laid_out)
    }

    fn notices(&self) -> Vec<String> {
        let located = self
            .located
            .iter()
            .filter_map(|(_, result)| result.as_ref().ok());
        let mut notices: Vec<String> = Vec::new();
        for notice in located.filter_map(|located| located.notice.clone()) {
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
        notices.extend(self.machine.notice());
        notices.extend(self.lowered.iter().cloned());
        notices
    }

    fn data_of(&mut self, spec: &DataSpec) -> Result<DataPlan, DataError> {
        if !self.located.iter().any(|(known, _)| known == spec) {
            let result = (self.locate)(spec);
            self.located.push((spec.clone(), result));
        }
        let found = self.located.iter().find(|(known, _)| known == spec);
        found
            .expect("it was just put there")
            .1
            .clone()
            .map(|located| located.plan)
    }

    fn check_trial(
        &mut self,
        root: &Table,
        spec: ExperimentSpec,
        findings: &mut Findings,
    ) -> Option<Trial> {
        let data = if findings.is_poisoned("data") {
            None
        } else {
            match self.data_of(&spec.data) {
                Ok(data) => Some(data),
                Err(error) => {
                    let usual = match root.at("data.path") {
                        Some(_) => "data.path",
                        None => "data.type",
                    };
                    let key = if error.key.is_empty() {
                        usual
                    } else {
                        &error.key
                    };
                    let at = check::span(root, key);
                    findings.diagnostics.push(error.to_diagnostic().at(at));
                    None
                }
            }
        };
        let spec = match &data {
            Some(data) => self.with_batch_that_fits(spec, root, data, findings),
            None => spec,
        };
        let point = |data, network| check::Point {
            root,
            spec: &spec,
            data,
            network,
        };
        let mut goal = None;
        let goes_in = ["task", "loss", "objective", "train.early_stopping"];
        if let Some(data) = &data
            && !goes_in.iter().any(|path| findings.is_poisoned(path))
        {
            match check::task::goal(&point(None, None), data) {
                Ok(found) => goal = Some(found),
                Err(wrong) => wrong.into_iter().for_each(|d| findings.diagnostics.push(d)),
            }
        }
        let mut laid_out = None;
        if let (Some(data), Some(goal), false) = (&data, &goal, findings.is_poisoned("model")) {
            let blueprint = Blueprint {
                layers: spec.model.layers.clone(),
                items: Shape {
                    dims: data.input.shape.clone(),
                    vocabulary: data.input.vocabulary,
                },
                output: goal.output_shape.clone(),
            };
            match self.lay_out(blueprint) {
                Ok(found) => laid_out = Some(found),
                Err(diagnostic) => findings.diagnostics.push(*diagnostic),
            }
        }
        let network = laid_out.as_deref().map(|laid_out| &laid_out.network);
        check::check(&point(data.as_ref(), network), findings);
        let place = if findings.is_poisoned("backend") {
            Place::default()
        } else {
            self.machine.place(&point(None, None), findings)
        };
        if findings.diagnostics.has_errors() {
            return None;
        }
        Some(Trial {
            spec,
            data: data?,
            goal: goal?,
            laid_out: laid_out?,
            place,
        })
    }

    /// The default batch size, where the file says nothing else, is lowered to the train split where it is smaller:
    /// what the file does not say is no mistake in it.
    fn with_batch_that_fits(
        &mut self,
        mut spec: ExperimentSpec,
        root: &Table,
        data: &DataPlan,
        findings: &Findings,
    ) -> ExperimentSpec {
        let train = &mut spec.train;
        let (default, fits) = (train.batch_size, data.num_train);
        let is_set =
            root.at("train.batch_size").is_some() || findings.is_poisoned("train.batch_size");
        if is_set || default <= fits || fits == 0 {
            return spec;
        }
        train.batch_size = fits;
        if root.at("train.micro_batch_size").is_none() {
            train.micro_batch_size = fits;
        }
        let notice = format!(
            "`train.batch_size` is lowered from its default {default} to {fits}: the train split of `{}` has {}",
            data.dataset.name(),
            counted(fits, "item")
        );
        if !self.lowered.contains(&notice) {
            self.lowered.push(notice);
        }
        spec
    }
}

impl Trial {
    fn add_runs(
        self,
        default_name: &str,
        id: String,
        axes: Map<String, Json>,
        runs: &mut Vec<RunPlan>,
    ) {
        let spec = self.spec;
        let name = spec
            .experiment
            .name
            .unwrap_or_else(|| default_name.to_owned());
        for seed in &spec.experiment.seeds {
            let mut run = RunPlan {
                format: FORMAT,
                experiment: name.clone(),
                id: format!("{id}-s{seed}"),
                trial: id.clone(),
                seed: *seed,
                fingerprint: String::new(),
                objective: self.goal.objective,
                device: self.place.device,
                skip: self.place.skip.clone(),
                precision: spec.backend.precision,
                conv: spec.backend.conv,
                memory_limit_bytes: spec.memory.limit.map(|limit| limit.0),
                memory_reserve_bytes: spec.memory.reserve.0,
                on_exceed: self.place.on_exceed.clone(),
                time_limit_secs: spec.limits.run.map(|limit| limit.as_secs_f64()),
                steps_per_epoch: self.data.num_train.div_ceil(spec.train.batch_size),
                axes: axes.clone(),
                forecast: Forecast::default(),
                train: spec.train.clone(),
                checkpoint: spec.checkpoint.clone(),
                on_failure: spec.on_failure.clone(),
                data: self.data.clone(),
                task: self.goal.task.clone(),
                loss: self.goal.loss.clone(),
                optimizer: spec.optimizer.clone(),
                scheduler: spec.scheduler.clone(),
                network: self.laid_out.network.clone(),
            };
            run.fingerprint = run.compute_fingerprint(&self.laid_out.work);
            runs.push(run.with_forecast());
        }
    }
}
