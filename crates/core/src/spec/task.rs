//! `[task]`: what is to be learned from the data, and how well it is done in numbers.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::metric::Metric;
use super::section::{Section, by_name, choices};

/// The `[task]` table as written; what is not written follows from the data.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskTable {
    /// `type`
    pub kind: Option<TaskKind>,
    /// Besides the loss.
    pub metrics: Option<Vec<Metric>>,
    /// How the metrics are computed.
    pub settings: MetricSettings,
}

/// A task with nothing left to decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskSpec {
    /// What is learned.
    #[serde(rename = "type")]
    pub kind: TaskKind,
    /// What is measured besides the loss.
    pub metrics: Vec<Metric>,
    /// How the metrics are computed.
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
    /// What is learned.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TaskKind {
        Classification "classification" "A class for each item: a row, an image, or a sequence.",
        MultiLabel "multi_label" "For each of several labels whether the item has it.",
        Regression "regression" "Numbers for each item.",
        NextToken "next_token" "The next token at each position of a sequence.",
        Autoencoding "autoencoding" "The item itself, through the network; what the data is labelled with is not used.",
        Segmentation "segmentation" "A class for each pixel.",
    }
}

choices! {
    /// How numbers of classes become one number.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Average {
        Macro "macro" "The mean over the classes that occur, in the data or in the predictions.",
        Micro "micro" "All decisions counted together.",
    }
}

impl TaskKind {
    /// What is measured when the file does not say.
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
    /// What epochs and trials are ranked by on the valid split when the file does not say.
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
                "What is learned; when it is not written, what the data is labelled for.",
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
                "What is measured over the whole of each split besides the loss; the usual ones when it is not written.",
            )
            .optional();
        let settings = MetricSettings {
            top_k: s
                .field(
                    "top_k",
                    Kind::Int(1, 1_000_000),
                    "For `top_k_accuracy`: among how many highest outputs the class must be.",
                )
                .or(3),
            beta: s
                .field(
                    "beta",
                    Kind::between(0.01, 100.0),
                    "For `f_beta`: how many times more recall weighs than precision.",
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
