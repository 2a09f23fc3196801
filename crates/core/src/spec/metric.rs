//! The metrics by name, each with its direction and its tasks; the objective.

use serde::{Deserialize, Serialize};

use super::document::Value;
use super::kind::{Kind, Scalar};
use super::losses::TermName;
use super::own::{MetricName, OwnMetric, Part};
use super::remedy;
use super::section::{Choice, Section, by_name, choices};
use super::task::TaskKind;
use crate::diagnostic::Reason;

choices! {
    /// A number that is measured over a whole split.
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(try_from = "String", into = "String")]
    pub enum Metric {
        Accuracy "accuracy" "Fraction of items, positions or pixels whose class is correct.",
        TopKAccuracy "top_k_accuracy" "Fraction of items whose class is among the `top_k` highest outputs.",
        Precision "precision" "Fraction of the predictions of a class that are correct; 0 for a class that is never predicted.",
        Recall "recall" "Fraction of the items of a class that are predicted as it.",
        FBeta "f_beta" "Harmonic mean of precision and recall, with recall weighted `beta` times.",
        Specificity "specificity" "Fraction of the items that are not of a class and are not predicted as it.",
        Jaccard "jaccard" "Intersection over union of the items of a class and those predicted as it.",
        BalancedAccuracy "balanced_accuracy" "Mean recall of the classes that occur.",
        Mcc "mcc" "Matthews correlation coefficient: 1 is perfect, 0 is no better than chance.",
        CohenKappa "cohen_kappa" "Cohen's kappa: agreement of predictions and classes beyond chance.",
        LogLoss "log_loss" "Mean negative log-likelihood of the classes, without weights and smoothing; of labels, their mean.",
        Brier "brier" "Brier score: mean squared error of the probabilities; summed over more than two classes, and averaged over labels.",
        CalibrationError "calibration_error" "Expected calibration error: mean difference of confidence and accuracy in 15 intervals of the highest probability.",
        Auroc "auroc" "Area under the receiver operating characteristic curve: each class against the rest, averaged over classes. Valid and test only.",
        AucPr "auc_pr" "Average precision: each class against the rest, averaged over classes. Valid and test only.",
        HammingScore "hamming_score" "Fraction of labels that are correct.",
        SubsetAccuracy "subset_accuracy" "Fraction of items with all labels correct.",
        Perplexity "perplexity" "Exponential of the mean negative log-likelihood of the predicted positions.",
        Dice "dice" "Dice coefficient of predicted and true pixels, averaged over the classes, including background.",
        MeanIou "mean_iou" "Intersection over union of predicted and true pixels, averaged over the classes, including background.",
        R2 "r2" "Coefficient of determination, averaged over the targets: 1 is perfect, 0 is no better than predicting their mean.",
        Mae "mae" "Mean absolute error.",
        Mape "mape" "Mean absolute percentage error, as a fraction, in the units of the target.",
        Mse "mse" "Mean squared error.",
        Rmse "rmse" "Root mean squared error.",
        TargetMae "target_mae" "Mean absolute error, in the units of the target.",
        TargetRmse "target_rmse" "Root mean squared error, in the units of the target.",
        Psnr "psnr" "Peak signal-to-noise ratio in decibels, averaged over the images: relative to 255 for bytes, to 1 for numbers from 0 to 1, and otherwise to the range of the data.",
        Ssim "ssim" "Structural similarity in windows of 11x11, averaged over the images, for the same range as `psnr`.",
        SlicedWasserstein "sliced_wasserstein" "Distance of as many generated items as there are in the split from those of the split: the mean over 128 fixed directions of the Wasserstein distance along each (Rabin et al., 2012); 0 for equal distributions. Valid and test only.",
        Loss "loss" "Mean loss over the items; always measured.",
        + Own(MetricName) "A metric of the program."
    }
}

impl Metric {
    /// The metrics of this program: those that are built in, and its own.
    pub fn all() -> Vec<(Self, &'static str, &'static str)> {
        let own = OwnMetric::installed().iter();
        let own = own.map(|own| {
            (
                Self::Own(MetricName::of(own)),
                own.entry.name,
                own.entry.doc,
            )
        });
        Self::ALL.iter().copied().chain(own).collect()
    }

    /// Whether it can leave out positions of series.
    pub fn leaves_out_positions(self) -> bool {
        matches!(self, Self::Loss | Self::Mae | Self::Mse | Self::TargetMae)
    }

    /// The metric of this program that has a name.
    pub fn named(name: &str) -> Option<Self> {
        let own = || OwnMetric::named(name).map(|own| Self::Own(MetricName::of(own)));
        by_name(name).or_else(own)
    }

    /// The names of the metrics of this program that support a task.
    pub fn names_for(task: TaskKind) -> impl Iterator<Item = &'static str> {
        let fitting = Self::all().into_iter();
        let fitting = fitting.filter(move |(metric, ..)| metric.tasks().contains(&task));
        fitting.map(|(_, name, _)| name)
    }

    /// As plans and records have it: a metric of a program with its direction.
    fn recorded(self) -> String {
        match self {
            Metric::Own(own) => own.recorded(),
            built_in => built_in.name().to_owned(),
        }
    }

    /// Reads what [`Self::recorded`] wrote.
    fn from_record(text: &str) -> Option<Self> {
        by_name(text).or_else(|| MetricName::from_record(text).map(Self::Own))
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        if let Metric::Own(own) = self {
            return own.higher_is_better();
        }
        !matches!(
            self,
            Metric::Loss
                | Metric::Perplexity
                | Metric::LogLoss
                | Metric::Brier
                | Metric::CalibrationError
                | Metric::Mape
                | Metric::Mae
                | Metric::Mse
                | Metric::Rmse
                | Metric::TargetMae
                | Metric::TargetRmse
                | Metric::SlicedWasserstein
        )
    }

    /// Its range.
    pub fn bounds(self) -> (f64, f64) {
        match self {
            Metric::Accuracy
            | Metric::TopKAccuracy
            | Metric::Precision
            | Metric::Recall
            | Metric::FBeta
            | Metric::Auroc
            | Metric::AucPr
            | Metric::HammingScore
            | Metric::SubsetAccuracy
            | Metric::Specificity
            | Metric::Jaccard
            | Metric::BalancedAccuracy
            | Metric::CalibrationError
            | Metric::Dice
            | Metric::MeanIou => (0.0, 1.0),
            Metric::Brier => (0.0, 2.0),
            Metric::Mae
            | Metric::Mse
            | Metric::Rmse
            | Metric::TargetMae
            | Metric::TargetRmse
            | Metric::Mape
            | Metric::SlicedWasserstein
            | Metric::LogLoss => (0.0, f64::INFINITY),
            Metric::Perplexity => (1.0, f64::INFINITY),
            Metric::R2 => (f64::NEG_INFINITY, 1.0),
            Metric::Ssim | Metric::Mcc | Metric::CohenKappa => (-1.0, 1.0),
            // A density can be negative.
            Metric::Loss | Metric::Psnr | Metric::Own(_) => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    /// The tasks that it supports.
    pub fn tasks(self) -> &'static [TaskKind] {
        use TaskKind::*;
        match self {
            Metric::Own(own) => own.installed().map_or(&[], |own| own.tasks),
            Metric::Accuracy => &[Classification, NextToken, MaskedToken, Segmentation],
            Metric::TopKAccuracy => &[Classification],
            Metric::Precision
            | Metric::Recall
            | Metric::FBeta
            | Metric::Specificity
            | Metric::Jaccard
            | Metric::LogLoss
            | Metric::Brier
            | Metric::Auroc
            | Metric::AucPr => &[Classification, MultiLabel],
            Metric::BalancedAccuracy
            | Metric::Mcc
            | Metric::CohenKappa
            | Metric::CalibrationError => &[Classification],
            Metric::HammingScore | Metric::SubsetAccuracy => &[MultiLabel],
            Metric::Perplexity => &[NextToken, MaskedToken],
            Metric::Dice | Metric::MeanIou => &[Segmentation],
            Metric::R2 | Metric::Rmse | Metric::TargetMae | Metric::TargetRmse | Metric::Mape => {
                &[Regression]
            }
            Metric::Mae | Metric::Mse => &[Regression, Autoencoding],
            Metric::Psnr | Metric::Ssim => &[Autoencoding],
            Metric::SlicedWasserstein => &[Generation],
            Metric::Loss => &[
                Classification,
                MultiLabel,
                Regression,
                NextToken,
                MaskedToken,
                Autoencoding,
                Segmentation,
                Generation,
            ],
        }
    }

    /// Whether `average` and `zero_division` apply to it.
    pub fn is_averaged(self) -> bool {
        matches!(
            self,
            Metric::Precision
                | Metric::Recall
                | Metric::FBeta
                | Metric::Specificity
                | Metric::Jaccard
        )
    }

    /// Whether it is about probabilities, which only some losses give.
    pub fn needs_probabilities(self) -> bool {
        matches!(
            self,
            Metric::LogLoss | Metric::Brier | Metric::CalibrationError
        )
    }

    /// Whether it needs all outputs of a split at once, which are not kept for the train split.
    pub fn needs_scores(self) -> bool {
        matches!(
            self,
            Metric::Auroc | Metric::AucPr | Metric::SlicedWasserstein
        )
    }
}

choices! {
    /// The splits that epochs can be compared on. `test` is not one of them.
    pub enum ObjectiveSplit {
        Valid "valid" "The valid split.",
        ValidEma "valid_ema" "The valid split, with the averaged weights of `[train.ema]`.",
        ValidSwa "valid_swa" "The valid split, with the averaged weights of `strategy.type = \"swa\"`.",
        Train "train" "The train split.",
    }
}

/// A metric of a split, such as `valid/accuracy`, with the metric's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Objective {
    /// The split.
    pub split: ObjectiveSplit,
    /// The term of `[[losses]]` that it is about, if it is about one.
    pub term: Option<TermName>,
    /// The metric.
    pub metric: Metric,
}

impl Objective {
    /// The metric on the valid split.
    pub fn valid(metric: Metric) -> Self {
        Self {
            split: ObjectiveSplit::Valid,
            term: None,
            metric,
        }
    }

    /// Parses `split/metric` or `split/term/metric`, with a metric of this program; the error contains a remedy.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        Self::with_metric(text, Metric::named)
    }

    fn with_metric(text: &str, metric_of: fn(&str) -> Option<Metric>) -> Result<Self, Reason> {
        let (split, name) = text.split_once('/').unwrap_or(("", text));
        let known = by_name::<ObjectiveSplit>(split);
        let (term, metric) = match name.rsplit_once('/') {
            None => (None, metric_of(name)),
            Some((term, metric)) => {
                let term = TermName::new(term);
                (term, term.and_then(|_| metric_of(metric)))
            }
        };
        match (known, metric) {
            (Some(split), Some(metric)) => Ok(Self {
                split,
                term,
                metric,
            }),
            (None, Some(_)) if split == "test" => Err(Reason(format!(
                "the test split is only for the final evaluation; select on another split, such as `valid/{name}`"
            ))),
            (None, Some(_)) if split.is_empty() => Err(Reason(format!("use `valid/{name}`"))),
            _ => Err(Reason(remedy::for_objective(text).unwrap_or_else(|| {
                let names = Metric::all().into_iter().map(|(_, name, _)| name);
                let names: Vec<_> = names.collect();
                format!("the metrics are `{}`", names.join("`, `"))
            }))),
        }
    }

    /// As written: `valid/accuracy`.
    pub fn name(self) -> String {
        self.with_name(self.metric.name())
    }

    fn with_name(self, metric: &str) -> String {
        let split = self.split.name();
        match self.term {
            None => format!("{split}/{metric}"),
            Some(term) => format!("{split}/{}/{metric}", term.as_str()),
        }
    }

    /// The name of the averaged weights that it is measured with, if it is.
    pub fn average(self) -> Option<&'static str> {
        match self.split {
            ObjectiveSplit::ValidEma => Some("ema"),
            ObjectiveSplit::ValidSwa => Some("swa"),
            ObjectiveSplit::Valid | ObjectiveSplit::Train => None,
        }
    }

    /// Whether it is measured on the train split.
    pub fn is_of_train(self) -> bool {
        self.split == ObjectiveSplit::Train
    }

    /// Whether `a` is better than `b`; `nan` is never better.
    pub fn is_better(self, a: f64, b: f64) -> bool {
        let better = if self.metric.higher_is_better() {
            a > b
        } else {
            a < b
        };
        better || (b.is_nan() && !a.is_nan())
    }

    /// Whether each value, one per epoch, is better than the best one before it by more than `min_delta`. `nan` is
    /// never an improvement.
    pub fn improvements(
        self,
        min_delta: f64,
        values: impl Iterator<Item = f64>,
    ) -> impl Iterator<Item = bool> {
        let delta = if self.is_better(1.0, 0.0) {
            min_delta
        } else {
            -min_delta
        };
        let mut best = f64::NAN;
        values.map(move |value| {
            let is_improvement = self.is_better(value, best + delta);
            if is_improvement {
                best = value;
            }
            is_improvement
        })
    }

    /// The `metric` that a rule watches for improvements.
    pub(super) fn watched(s: &mut Section<'_>) -> Option<Self> {
        let doc = "The metric to watch; the objective when not set.";
        s.field("metric", Kind::Objective, doc).optional()
    }
}

/// The `min_delta` of a rule that watches a metric.
pub(super) fn min_delta(s: &mut Section<'_>) -> f64 {
    let doc = "Minimum improvement over the best value so far.";
    s.field("min_delta", Kind::non_negative(), doc).or(0.0)
}

impl TryFrom<String> for Objective {
    type Error = Reason;

    fn try_from(text: String) -> Result<Self, Reason> {
        Self::with_metric(&text, Metric::from_record)
            .map_err(|help| Reason(format!("`{text}` is not a metric of a split: {help}")))
    }
}

impl From<Objective> for String {
    fn from(objective: Objective) -> Self {
        objective.with_name(&objective.metric.recorded())
    }
}

impl TryFrom<String> for Metric {
    type Error = Reason;

    fn try_from(text: String) -> Result<Self, Reason> {
        Self::from_record(&text).ok_or_else(|| Reason(format!("`{text}` is not a metric")))
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> Self {
        metric.recorded()
    }
}

impl Scalar for Objective {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Str(text) => Self::parse(text).unwrap_or_else(|_| Self::stand_in()),
            _ => Self::stand_in(),
        }
    }
    fn to_json(&self) -> serde_json::Value {
        self.name().into()
    }
    fn stand_in() -> Self {
        Self::valid(Metric::Loss)
    }
}

/// Whether a metric of a split, such as `valid/loss`, is its loss.
pub fn is_loss(metric: &str) -> bool {
    metric.rsplit('/').next() == Some("loss")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions_are_those_of_the_metric() {
        let better = |text: &str, a, b| Objective::parse(text).unwrap().is_better(a, b);
        assert!(better("valid/accuracy", 0.9, 0.8));
        assert!(better("train/perplexity", 1.0, 2.0));
        assert!(better("valid_ema/rmse", 1.0, f64::NAN));
        assert!(!better("valid/loss", f64::NAN, 1.0));
        assert!(Objective::parse("test/loss").is_err());
    }

    #[test]
    fn records_say_the_direction_of_metrics_of_a_program() {
        for (text, higher) in [("valid/profit:max", true), ("valid/age/cost:min", false)] {
            let objective = Objective::try_from(text.to_owned()).unwrap();
            assert_eq!(objective.metric.higher_is_better(), higher);
            assert_eq!(objective.name(), text.split(':').next().unwrap());
            assert_eq!(String::from(objective), text);
            assert!(Objective::parse(text).is_err());
        }
        for wrong in ["valid/profit", "valid/profit:up", "valid/Profit:max"] {
            assert!(Objective::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn metrics_of_terms_have_their_name() {
        for name in ["valid/loss", "valid/age.1/mae", "train/main/loss"] {
            assert_eq!(Objective::parse(name).unwrap().name(), name);
        }
        assert!(Objective::parse("valid/age/1/mae").is_err());
        assert!(Objective::parse("valid//mae").is_err());
    }
}
