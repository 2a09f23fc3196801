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
    /// The layer whose output is that of the network; the last one if not set.
    pub output: Option<String>,
    /// In addition to the loss.
    pub metrics: Option<Vec<Metric>>,
    /// Settings of the metrics.
    pub settings: MetricSettings,
    /// The name of the class or label for `average = "binary"`.
    pub positive_class: Option<String>,
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
    /// For metrics of each class.
    pub average: Average,
    /// The class or label for [`Average::Binary`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<usize>,
    /// For metrics of each class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_division: Option<ZeroDivision>,
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
        MaskedToken "masked_token" "The hidden tokens of a text, of which `data.tokens.masked` is the fraction.",
        Autoencoding "autoencoding" "Reconstructs the item itself; the labels of the data are not used.",
        Segmentation "segmentation" "One class per pixel.",
        Generation "generation" "Generates items like those of the data from noise, with `strategy.type = \"adversarial\"`; the labels of the data are not used.",
    }
}

choices! {
    /// How metrics are averaged over classes.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Average {
        Macro "macro" "The mean over the classes that occur in the data or in the predictions.",
        Micro "micro" "All decisions pooled.",
        Weighted "weighted" "The mean over the classes, weighted by how often each occurs.",
        Binary "binary" "Only the class `positive_class`; of two classes, the second one if it is not set.",
    }
}

choices! {
    /// What a ratio of 0 to 0 is.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ZeroDivision {
        Zero "zero" "0; labels that neither occur nor are predicted count as 0 too.",
        One "one" "1; labels that neither occur nor are predicted count as 1 too.",
        Skip "skip" "Left out of the mean; 0 if nothing is left.",
    }
}

impl TaskKind {
    /// Whether each item, position or pixel has one class.
    pub fn is_of_classes(self) -> bool {
        matches!(
            self,
            TaskKind::Classification
                | TaskKind::NextToken
                | TaskKind::MaskedToken
                | TaskKind::Segmentation
        )
    }

    /// Whether outputs can be probabilities: of classes or of labels.
    pub fn has_probabilities(self) -> bool {
        self.is_of_classes() || self == TaskKind::MultiLabel
    }

    /// Whether the classes are the tokens of a vocabulary.
    pub fn is_of_tokens(self) -> bool {
        matches!(self, TaskKind::NextToken | TaskKind::MaskedToken)
    }

    /// Whether the target of an item is the item itself.
    pub fn is_of_items(self) -> bool {
        matches!(self, TaskKind::Autoencoding | TaskKind::Generation)
    }

    /// The default metrics.
    pub fn default_metrics(self) -> &'static [Metric] {
        match self {
            TaskKind::Classification => &[Metric::Accuracy],
            TaskKind::MultiLabel => &[Metric::HammingScore, Metric::SubsetAccuracy],
            TaskKind::Regression => &[Metric::R2, Metric::Mae, Metric::Rmse],
            TaskKind::NextToken | TaskKind::MaskedToken => &[Metric::Accuracy, Metric::Perplexity],
            TaskKind::Autoencoding => &[Metric::Mae, Metric::Mse],
            TaskKind::Segmentation => &[Metric::Accuracy, Metric::MeanIou],
            TaskKind::Generation => &[Metric::SlicedWasserstein],
        }
    }

    /// The default objective on the valid split.
    pub fn default_objective(self, metrics: &[Metric]) -> Metric {
        match self {
            TaskKind::Classification if metrics.contains(&Metric::Accuracy) => Metric::Accuracy,
            // The losses of two networks that work against each other say nothing about progress.
            TaskKind::Generation => Metric::SlicedWasserstein,
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
        let output = s
            .field(
                "output",
                Kind::Text,
                "The layer whose output is that of the network; the last layer when not set.",
            )
            .optional();
        let doc = "Metrics over the whole of each split, in addition to the loss; the usual ones of the task when not set.";
        let metrics = metrics(s, doc);
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
                "For `precision`, `recall`, `specificity`, `f_beta` and `jaccard`: how the classes are averaged. \"weighted\" and \"binary\" also apply to `auroc` and `auc_pr`.",
                Average::Macro,
            ),
            positive: None,
            zero_division: s
                .field::<String>(
                    "zero_division",
                    Kind::of_choice::<ZeroDivision>(),
                    "For the metrics of `average`: what 0 of 0 is, as in scikit-learn. When not set, 0, and classes that neither occur nor are predicted are left out of the mean.",
                )
                .optional()
                .and_then(|name| by_name(&name)),
        };
        let positive_class = s
            .field(
                "positive_class",
                Kind::Text,
                "The class or label for `average = \"binary\"`.",
            )
            .optional();
        Self {
            kind: kind.and_then(|name| by_name(&name)),
            output,
            metrics,
            settings,
            positive_class,
        }
    }
}

/// The key `metrics`: different metrics, or none.
pub(super) fn metrics(s: &mut Section<'_>, doc: &'static str) -> Option<Vec<Metric>> {
    let kind = Kind::List {
        item: Box::new(Kind::of_names(Metric::all())),
        min_items: 0,
        unique: true,
    };
    let names: Option<Vec<String>> = s.field("metrics", kind, doc).optional();
    names.map(|names| {
        names
            .iter()
            .filter_map(|name| Metric::named(name))
            .collect()
    })
}
