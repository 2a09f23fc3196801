//! The experiment as written: the document with its places, and the types of its tables.
//!
//! Each table is one type with one `decode` function, which states its keys, their ranges, defaults
//! and meanings. Nothing here looks at more than one table at a time: that is `check`.

pub mod adjustment;
pub mod backend;
pub mod data;
pub mod distribution;
pub mod document;
pub mod expression;
mod extends;
pub mod failure;
mod functions;
pub mod generate;
mod hints;
pub mod kind;
pub mod limits;
pub mod loss;
pub mod memory;
pub mod method;
pub mod metric;
pub mod model;
pub mod optimizer;
pub mod plain_file;
pub mod portable;
pub mod reference;
mod relaxed;
pub mod remedy;
pub mod render;
pub mod scheduler;
pub mod schema;
pub mod section;
pub mod sweep;
pub mod task;
mod template;
pub mod topics;
pub mod train;
pub mod verdict;

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;
pub use crate::diagnostic::{is_odd, printable, printable_in_color, printable_lines};
use backend::BackendSpec;
use data::DataSpec;
use document::{Table, Value};
use failure::OnFailure;
pub use hints::{TypeKeys, key_paths, keys_of_types, nearest_path};
use kind::Kind;
use limits::LimitsSpec;
use loss::LossSpec;
use memory::MemorySpec;
use metric::Objective;
use model::ModelSpec;
use optimizer::OptimizerSpec;
use scheduler::SchedulerSpec;
use section::{Findings, KeyDoc, Section, Shape};
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
    /// `[task]`
    pub task: TaskTable,
    /// `[loss]`; the task's usual one when not written.
    pub loss: Option<LossSpec>,
    /// `[optimizer]`
    pub optimizer: OptimizerSpec,
    /// `[scheduler]`
    pub scheduler: SchedulerSpec,
    /// `[train]`
    pub train: TrainSpec,
    /// `[checkpoint]`
    pub checkpoint: CheckpointSpec,
    /// `[objective]`
    pub objective: ObjectiveSpec,
    /// `[verdict]`
    pub verdict: VerdictSpec,
    /// `[backend]`
    pub backend: BackendSpec,
    /// `[memory]`
    pub memory: MemorySpec,
    /// `[limits]`
    pub limits: LimitsSpec,
    /// `[on_failure]`
    pub on_failure: OnFailure,
}

/// The `[experiment]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentTable {
    /// The folder's name under `results/`; the file's name when not written.
    pub name: Option<String>,
    /// What the experiment is to answer.
    pub question: Option<String>,
    /// One run of each trial for each seed.
    pub seeds: Vec<u64>,
}

/// The `[checkpoint]` table. The best epoch by the objective is kept besides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointSpec {
    /// Epochs between two checkpoints.
    pub every_epochs: usize,
    /// Optimizer updates between two checkpoints, if they are to be written within epochs too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_steps: Option<usize>,
    /// How many of the newest are kept.
    pub keep_last: usize,
    /// How many of the best epochs' are kept.
    pub keep_best: usize,
}

/// The `[objective]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveSpec {
    /// The metric and split that trials are ranked by; the task's usual one when not written.
    pub metric: Option<Objective>,
    /// The trial that the others are compared with in reports; the highest ranked one when not written.
    pub baseline: Option<String>,
}

impl ExperimentSpec {
    /// Decodes the root table. A value that is wrong or missing is reported in `findings` and replaced
    /// by a stand-in, so that everything wrong is found at once.
    pub fn decode(root: &Table, findings: &mut Findings) -> Self {
        section::read(root, findings, decode)
    }
}

impl SweepSpec {
    /// Decodes the `[sweep]` table of the root table alone.
    pub fn read(root: &Table, findings: &mut Findings) -> Self {
        let entries = root.get("sweep").cloned().into_iter().collect();
        section::read(&Table { entries }, findings, sweep)
    }
}

fn sweep(s: &mut Section<'_>) -> SweepSpec {
    s.table("sweep", "Which keys are varied.", false, SweepSpec::decode)
}

/// All keys of the experiment file, for the schema and for messages.
pub fn describe() -> &'static [KeyDoc] {
    static KEYS: OnceLock<Vec<KeyDoc>> = OnceLock::new();
    KEYS.get_or_init(|| section::describe(decode))
}

fn decode(s: &mut Section<'_>) -> ExperimentSpec {
    // `SweepSpec::read` gives it by itself, since a trial has none.
    sweep(s);
    read_layers(s);
    ExperimentSpec {
        experiment: s.table("experiment", "What is asked, and with how many seeds.", false, |s| ExperimentTable {
            name: s
                .field("name", Kind::Slug, "The folder's name under `results/`; the file's name when not written.")
                .optional(),
            question: s.field("question", Kind::Text, "What the experiment is to answer.").optional(),
            seeds: s
                .field(
                    "seeds",
                    Kind::List {
                        item: Box::new(Kind::at_least(0)),
                        min_items: 1,
                        unique: true,
                    },
                    "One run of each trial for each seed.",
                )
                .or(vec![1]),
        }),
        data: s.table("data", "Which items are trained on.", true, DataSpec::decode),
        model: s.table("model", "The network.", true, ModelSpec::decode),
        task: s.table("task", "What is to be learned, and what is measured.", false, TaskTable::decode),
        loss: s.optional_table("loss", "What is minimized; the task's usual loss when not written.", LossSpec::decode),
        optimizer: s.table("optimizer", "How it is minimized.", true, OptimizerSpec::decode),
        scheduler: s.table("scheduler", "The learning rate over the steps.", false, SchedulerSpec::decode),
        train: s.table("train", "How long is trained, and in what batches.", true, TrainSpec::decode),
        checkpoint: s.table("checkpoint", "When checkpoints are written and kept.", false, |s| CheckpointSpec {
            every_epochs: s
                .field("every_epochs", Kind::at_least(1), "Epochs between two checkpoints; a new best epoch is saved besides.")
                .or(1),
            every_steps: s
                .field(
                    "every_steps",
                    Kind::at_least(1),
                    "Optimizer updates between two checkpoints within epochs, besides one at the end of each, so that a kill in a long epoch loses little.",
                )
                .optional(),
            keep_last: s
                .field("keep_last", Kind::at_least(1), "How many of the newest are kept, besides the best.")
                .or(1),
            keep_best: s
                .field("keep_best", Kind::at_least(1), "How many of the best epochs' are kept, by the objective.")
                .or(1),
        }),
        objective: s.table("objective", "What trials are ranked by.", false, |s| ObjectiveSpec {
            metric: s
                .field(
                    "metric",
                    Kind::Objective,
                    "The metric and split that epochs and trials are ranked by: `valid/accuracy` for classes, `valid/loss` for all other tasks when not written.",
                )
                .optional(),
            baseline: s
                .field(
                    "baseline",
                    Kind::Text,
                    "The trial that reports compare the others with, by its name; the highest ranked one when not written.",
                )
                .optional(),
        }),
        verdict: s.table("verdict", "Which differences matter, and what noise is expected.", false, VerdictSpec::decode),
        backend: s.table("backend", "Where runs are computed.", false, BackendSpec::decode),
        memory: s.table(
            "memory",
            "What a run may hold, and what is done about one that does not fit.",
            false,
            MemorySpec::decode,
        ),
        limits: s.table("limits", "How long a run and the experiment may take.", false, LimitsSpec::decode),
        on_failure: s.table(
            "on_failure",
            "What is done about a run that failed, for each class of failure: it is tried again, or given up.",
            false,
            failure::decode,
        ),
    }
}

/// Keys that were dealt with before there was a tree to decode: `extends` and `[values]`.
fn read_layers(s: &mut Section<'_>) {
    let paths = Kind::Either(Box::new(Kind::Path), Box::new(Kind::list(Kind::Path, 0)));
    s.raw(
        "extends",
        "Files that this one is a layer over, relative to it; later ones win over earlier ones.",
        Shape::Scalar(paths),
    );
    let values = s.raw(
        "values",
        "Values under names of your own, for `${values.name}` in other tables; may be axes.",
        Shape::Free,
    );
    if let Some(entry) = values
        && !matches!(entry.node.value, Value::Table(_))
        && let Some((_, findings)) = s.reading()
    {
        let found = entry.node.value.kind();
        let message = format!("`values` must be a table, found {found}");
        let help = "write `[values]` on a line of its own, and its keys below";
        let wrong = Diagnostic::error("wrong-type", message).at(entry.node.span);
        findings.diagnostics.push(wrong.help(help));
    }
}
