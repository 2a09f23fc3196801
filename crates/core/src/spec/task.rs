//! `[task]`: the prediction task and its metrics.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::metric::Metric;
use super::section::{Section, by_name, choices};

/// The `[task]` table as written; the rest is inferred from the data.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskTable {
    /// `type`
    pub kind: Option<TaskKind>,
    /// In addition to the loss.
    pub metrics: Option<Vec<Metric>>,
    /// Settings of the metrics.
    pub settings: MetricSettings,
}

/// A task, fully resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// The task.
    #[serde(rename = "type")]
    pub kind: TaskKind,
    /// The metrics in addition to the loss.
    pub metrics: Vec<Metric>,
    /// Settings of the metrics.
    #[serde(flatten)]
    pub settings: MetricSettings,
}

/// The settings of those metrics that have some.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSettings {
    /// For `top_k_accuracy`.
    pub top_k: usize,
    /// For `f_beta`.
    pub beta: f64,
    /// For `precision`, `recall` and `f_beta`.
    pub average: Average,
}

choices! {
    /// The tasks.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TaskKind {
        Classification "classification" "One class per item: a row, an image or a sequence.",
        MultiLabel "multi_label" "Whether each of several labels applies to the item.",
        Regression "regression" "One or more numbers per item.",
        NextToken "next_token" "The next token at each position of a sequence.",
        Autoencoding "autoencoding" "Reconstructs the item itself; the labels of the data are not used.",
        Segmentation "segmentation" "One class per pixel.",
    }
}

choices! {
    /// How metrics are averaged over classes.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Average {
        Macro "macro" "The mean over the classes that occur in the data or in the predictions.",
        Micro "micro" "All decisions pooled.",
    }
}

impl TaskKind {
    /// The default metrics.
    pub fn default_metrics(self) -> &'static [Metric] {
        match self {
            TaskKind::Classification => &[Metric::Accuracy],
            TaskKind::MultiLabel => &[Metric::HammingScore, Metric::SubsetAccuracy],
            TaskKind::Regression => &[Metric::R2, Metric::Mae, Metric::Rmse],
            TaskKind::NextToken => &[Metric::Accuracy, Metric::Perplexity],
            TaskKind::Autoencoding => &[Metric::Mae, Metric::Mse],
            TaskKind::Segmentation => &[Metric::Accuracy, Metric::MeanIou],
        }
    }
}

impl TaskKind {
    /// The default objective on the valid split.
    pub fn default_objective(self, metrics: &[Metric]) -> Metric {
        match self {
            TaskKind::Classification if metrics.contains(&Metric::Accuracy) => Metric::Accuracy,
            _ => Metric::Loss,
        }
    }
}

impl TaskTable {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let kind = s
            .field::<String>(
                "type",
                Kind::of_choice::<TaskKind>(),
                "The prediction task; when not set, inferred from the labels of the data.",
            )
            .optional();
        let metrics = s
            .field::<Vec<String>>(
                "metrics",
                Kind::List {
                    item: Box::new(Kind::of_choice::<Metric>()),
                    min_items: 0,
                    unique: true,
                },
                "Metrics over the whole of each split, in addition to the loss; the usual ones of the task when not set.",
            )
            .optional();
        let settings = MetricSettings {
            top_k: s
                .field(
                    "top_k",
                    Kind::Int(1, 1_000_000),
                    "For `top_k_accuracy`: how many of the highest outputs may contain the class.",
                )
                .or(3),
            beta: s
                .field(
                    "beta",
                    Kind::between(0.01, 100.0),
                    "For `f_beta`: weight of recall relative to precision.",
                )
                .or(1.0),
            average: s.choice(
                "average",
                "For `precision`, `recall` and `f_beta`: how the classes are averaged.",
                Average::Macro,
            ),
        };
        Self {
            kind: kind.and_then(|name| by_name(&name)),
            metrics: metrics.map(|names| names.iter().filter_map(|name| by_name(name)).collect()),
            settings,
        }
    }
}
