//! The experiment as written: the document with its places, and the types of its tables.
//!
//! Each table is one type with one `decode` function, which declares its keys, their ranges, defaults and meanings.
//! Nothing here looks at more than one table at a time: that is `check`.

pub mod adapters;
pub mod adjustment;
pub mod adversarial;
pub mod backend;
pub mod comparable;
pub mod constraint;
pub mod data;
pub mod distill;
pub mod distribution;
pub mod document;
pub mod expression;
mod extends;
pub mod failure;
mod functions;
pub mod generate;
mod hints;
pub mod hub;
pub mod hybrid;
pub mod init;
pub mod kind;
pub mod launch;
pub mod limits;
pub mod loss;
pub mod losses;
pub mod memory;
pub mod method;
pub mod metric;
pub mod model;
pub mod notify;
pub mod optimizer;
pub mod own;
pub mod plain_file;
pub mod portable;
pub mod predictions;
pub mod reference;
mod relaxed;
pub mod remedy;
pub mod render;
pub mod scheduler;
pub mod schema;
pub mod search;
pub mod section;
pub mod strategy;
pub mod sweep;
mod syntax;
pub mod task;
mod template;
pub mod topics;
pub mod traded;
pub mod train;
pub mod verdict;

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;
pub use crate::diagnostic::{is_odd, printable, printable_in_color, printable_lines};
use adapters::AdapterSpec;
use backend::BackendSpec;
use data::DataSpec;
use document::{Table, Value};
use failure::OnFailure;
pub use hints::{TypeKeys, key_paths, keys_of_types, nearest_path};
use init::InitSpec;
use kind::Kind;
use launch::LaunchSpec;
use limits::LimitsSpec;
use loss::LossSpec;
use losses::TermTable;
use memory::MemorySpec;
use metric::Objective;
use model::{ModelSpec, NetworkInputs};
use notify::NotifySpec;
use optimizer::OptimizerSpec;
use predictions::PredictionsSpec;
use scheduler::SchedulerSpec;
use search::SearchSpec;
use section::{Findings, KeyDoc, Section, Shape};
use strategy::StrategySpec;
use sweep::SweepSpec;
use task::TaskTable;
use train::TrainSpec;
use verdict::VerdictSpec;

/// The whole experiment file.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentSpec {
    /// `[experiment]`
    pub experiment: ExperimentTable,
    /// `[data]`
    pub data: DataSpec,
    /// `[model]`
    pub model: ModelSpec,
    /// `[init]`; if not set, weights are random.
    pub init: Option<InitSpec>,
    /// `[[adapters]]`
    pub adapters: Vec<AdapterSpec>,
    /// `[task]`
    pub task: TaskTable,
    /// `[loss]`; the default of the task if not set.
    pub loss: Option<LossSpec>,
    /// `[[losses]]`
    pub losses: Vec<TermTable>,
    /// `[optimizer]`
    pub optimizer: OptimizerSpec,
    /// `[scheduler]`
    pub scheduler: SchedulerSpec,
    /// `[train]`
    pub train: TrainSpec,
    /// `[checkpoint]`
    pub checkpoint: CheckpointSpec,
    /// `[predictions]`; none are written when not set.
    pub predictions: Option<PredictionsSpec>,
    /// `[objective]`
    pub objective: ObjectiveSpec,
    /// `[verdict]`
    pub verdict: VerdictSpec,
    /// `[backend]`
    pub backend: BackendSpec,
    /// `[strategy]`
    pub strategy: StrategySpec,
    /// `[memory]`
    pub memory: MemorySpec,
    /// `[limits]`
    pub limits: LimitsSpec,
    /// `[on_failure]`
    pub on_failure: OnFailure,
    /// `[launch]`
    pub launch: LaunchSpec,
    /// `[[notify]]`
    pub notify: Vec<NotifySpec>,
}

/// For settings that plans leave out.
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// The `[experiment]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentTable {
    /// The name of the folder under `results/`; the file name if not set.
    pub name: Option<String>,
    /// The question of the experiment.
    pub question: Option<String>,
    /// Each trial runs once per seed.
    pub seeds: Vec<u64>,
}

/// The `[checkpoint]` table. The best epoch by the objective is kept in addition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointSpec {
    /// Epochs between two checkpoints.
    pub every_epochs: usize,
    /// Optimizer updates between checkpoints, if they are also saved within epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_steps: Option<usize>,
    /// How many of the newest are kept.
    pub keep_last: usize,
    /// How many of the best epochs keep a checkpoint.
    pub keep_best: usize,
}

/// The `[objective]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveSpec {
    /// The metric and split that rank trials; the default of the task if not set.
    pub metric: Option<Objective>,
    /// The baseline trial of reports; the highest ranked one if not set.
    pub baseline: Option<String>,
}

impl ExperimentSpec {
    /// Whether it names outputs of layers.
    pub fn has_outputs(&self) -> bool {
        self.task.output.is_some() || !self.losses.is_empty()
    }

    /// Decodes the root table. An invalid or missing value is reported in `findings` and replaced by a placeholder, so
    /// that all errors are found at once.
    pub fn decode(root: &Table, findings: &mut Findings) -> Self {
        section::read(root, findings, decode)
    }
}

impl SweepSpec {
    /// Decodes only the `[sweep]` and `[search]` tables of the root table.
    pub fn read(root: &Table, findings: &mut Findings) -> Self {
        let entries = SWEEP_TABLES.iter().filter_map(|key| root.get(key));
        let entries = entries.cloned().collect();
        section::read(&Table { entries }, findings, sweep)
    }
}

fn sweep(s: &mut Section<'_>) -> SweepSpec {
    let mut sweep = s.table("sweep", "The parameters to vary.", false, SweepSpec::decode);
    let doc = "Trials that are suggested one after the other, over the axes of `[sweep.random]`.";
    sweep.search = s.optional_table("search", doc, SearchSpec::decode);
    if let Some((_, findings)) = s.reading() {
        match &sweep.search {
            Some(search) => search.check(&sweep, findings),
            None => sweep.refuse_no_trials(findings),
        }
    }
    sweep
}

/// The tables that describe all trials, and that none has.
pub const SWEEP_TABLES: [&str; 2] = ["sweep", "search"];

/// All keys of the experiment file, for the schema and for messages.
pub fn describe() -> &'static [KeyDoc] {
    static KEYS: OnceLock<Vec<KeyDoc>> = OnceLock::new();
    KEYS.get_or_init(|| section::describe(decode))
}

fn decode(s: &mut Section<'_>) -> ExperimentSpec {
    // `SweepSpec::read` decodes them separately, since a trial has none.
    sweep(s);
    read_layers(s);
    let mut spec = decode_tables(s);
    spec.data.add_targets(&spec.losses);
    let added = spec.losses.iter().map(|table| &table.loss);
    let mut losses = spec.loss.iter().chain(added);
    spec.data.counts_classes = losses.any(|loss| loss.function.is_balanced());
    spec
}

fn decode_tables(s: &mut Section<'_>) -> ExperimentSpec {
    let experiment = s.table(
        "experiment",
        "The question, and the seeds that answer it.",
        false,
        |s| ExperimentTable {
            name: s
                .field(
                    "name",
                    Kind::Slug,
                    "The name of the folder under `results/`; the file name when not set.",
                )
                .optional(),
            question: s
                .field(
                    "question",
                    Kind::Text,
                    "The question that the experiment answers.",
                )
                .optional(),
            seeds: s
                .field(
                    "seeds",
                    Kind::List {
                        item: Box::new(Kind::at_least(0)),
                        min_items: 1,
                        unique: true,
                    },
                    "Each trial runs once per seed.",
                )
                .or(vec![1]),
        },
    );
    let data = s.table("data", "The data to train on.", true, DataSpec::decode);
    let is_conditional = s.written_in("strategy", "conditional") == Some(&Value::Bool(true));
    let inputs = NetworkInputs::of(&data, is_conditional);
    let model = s.table("model", "The network.", true, |s| {
        ModelSpec::decode(s, inputs.clone())
    });
    ExperimentSpec {
        experiment,
        data,
        model,
        init: s.optional_table(
            "init",
            "Initial weights from a file instead of random ones.",
            InitSpec::decode,
        ),
        adapters: s.tables(
            "adapters",
            "Small trained matrices beside frozen weights, for fine-tuning.",
            false,
            AdapterSpec::decode,
        ),
        task: s.table("task", "The prediction target and the metrics.", false, TaskTable::decode),
        loss: s.optional_table("loss", "The loss to minimize; the usual loss of the task when not set.", LossSpec::decode),
        losses: s.tables("losses", "Losses that are added to `[loss]`, each times its `weight`.", false, TermTable::decode),
        optimizer: s.table("optimizer", "The optimizer.", true, OptimizerSpec::decode),
        scheduler: s.table("scheduler", "The learning rate over time.", false, SchedulerSpec::decode),
        train: s.table("train", "Epochs and batches.", true, TrainSpec::decode),
        strategy: s.table("strategy", "What happens to the weights besides the optimizer's updates.", false, StrategySpec::decode),
        checkpoint: s.table("checkpoint", "When checkpoints are saved and how many are kept.", false, |s| CheckpointSpec {
            every_epochs: s
                .field("every_epochs", Kind::at_least(1), "Epochs between checkpoints; a new best epoch is always saved.")
                .or(1),
            every_steps: s
                .field(
                    "every_steps",
                    Kind::at_least(1),
                    "Optimizer updates between checkpoints within an epoch, in addition to the one at its end, so that a killed run loses little of a long epoch.",
                )
                .optional(),
            keep_last: s
                .field("keep_last", Kind::at_least(1), "How many of the newest checkpoints are kept, in addition to the best.")
                .or(1),
            keep_best: s
                .field("keep_best", Kind::at_least(1), "Number of the best epochs by the objective whose checkpoints are kept.")
                .or(1),
        }),
        predictions: s.optional_table(
            "predictions",
            "Predictions for the run's own data, written when its training ends.",
            PredictionsSpec::decode,
        ),
        objective: s.table("objective", "The criterion that ranks trials.", false, |s| ObjectiveSpec {
            metric: s
                .field(
                    "metric",
                    Kind::Objective,
                    "The metric and split that rank epochs and trials: by default `valid/accuracy` for classification and `valid/loss` for all other tasks.",
                )
                .optional(),
            baseline: s
                .field(
                    "baseline",
                    Kind::Text,
                    "The name of the trial that reports compare the others with; the highest ranked one when not set.",
                )
                .optional(),
        }),
        verdict: s.table("verdict", "Which differences matter, and the expected noise.", false, VerdictSpec::decode),
        backend: s.table("backend", "The device and precision of the runs.", false, BackendSpec::decode),
        memory: s.table(
            "memory",
            "Memory limits, and remedies for a run that does not fit.",
            false,
            MemorySpec::decode,
        ),
        limits: s.table("limits", "Time limits of a run and of the experiment.", false, LimitsSpec::decode),
        on_failure: s.table(
            "on_failure",
            "How each class of failure is handled: retry, or give up.",
            false,
            failure::decode,
        ),
        launch: s.table("launch", "Where runs are trained: on this machine, or as jobs of a cluster.", false, LaunchSpec::decode),
        notify: s.tables("notify", "Programs and webhooks that are told of the end of the training, and of runs that fail.", false, NotifySpec::decode),
    }
}

/// Keys that are handled before there is a tree to decode: `extends` and `[values]`.
fn read_layers(s: &mut Section<'_>) {
    let paths = Kind::Either(Box::new(Kind::Path), Box::new(Kind::list(Kind::Path, 0)));
    s.raw(
        "extends",
        "Files that this one extends, relative to it; later files override earlier ones.",
        Shape::Scalar(paths),
    );
    let values = s.raw(
        "values",
        "Named values, for `${values.name}` in other tables; they may be axes.",
        Shape::Free,
    );
    if let Some(entry) = values
        && !matches!(entry.node.value, Value::Table(_))
        && let Some((_, findings)) = s.reading()
    {
        let found = entry.node.value.kind();
        let message = format!("`values` must be a table, found {found}");
        let help = "add `[values]` on a separate line, with its keys below";
        let wrong = Diagnostic::error("wrong-type", message).at(entry.node.span);
        findings.diagnostics.push(wrong.help(help));
    }
}
