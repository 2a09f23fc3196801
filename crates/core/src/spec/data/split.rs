//! `[data.split]`: which items are held out.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::spec::document::Value;
use crate::spec::kind::{Kind, Scalar};
use crate::spec::section::{Section, choices};

/// Which items are held out for validation and test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitSpec {
    /// Fraction of the items for validation.
    pub valid: f64,
    /// Fraction of the items for the test; 0 for none.
    pub test: f64,
    /// Whether every split keeps the class proportions.
    pub stratified: bool,
    /// Seed of the split; independent of the seeds of runs, so that all runs have the same split.
    pub seed: u64,
    /// Whether each run splits the data by its own seed instead. In a plan, `seed` is then that of the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_run: bool,
    /// The order in which the last items are held out.
    #[serde(default, skip_serializing_if = "SplitOrder::is_random")]
    pub order: SplitOrder,
    /// The column that orders the items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_by: Option<String>,
    /// The column whose equal values stay in one split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_by: Option<String>,
    /// The number of folds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folds: Option<usize>,
    /// The fold that is the valid split.
    #[serde(default, skip_serializing_if = "is_first")]
    pub fold: usize,
}

choices! {
    /// How held-out items are chosen.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SplitOrder {
        #[default]
        Random "random" "At random.",
        Time "time" "The last items: train, then valid, then test, in the order of `order_by` or of the files; groups are ordered by their last item.",
    }
}

impl SplitOrder {
    fn is_random(&self) -> bool {
        *self == SplitOrder::Random
    }
}

fn is_first(fold: &usize) -> bool {
    *fold == 0
}

impl Default for SplitSpec {
    fn default() -> Self {
        Self {
            valid: 0.2,
            test: 0.0,
            stratified: true,
            seed: 0,
            by_run: false,
            order: SplitOrder::Random,
            order_by: None,
            group_by: None,
            folds: None,
            fold: 0,
        }
    }
}

/// The seed of the split.
enum SplitSeed {
    /// A seed that all runs share.
    Shared(u64),
    /// The seed of each run.
    Run,
}

impl Scalar for SplitSeed {
    fn from_value(value: &Value) -> Self {
        match value {
            Value::Int(seed) => Self::Shared(*seed as u64),
            _ => Self::Run,
        }
    }

    fn to_json(&self) -> Json {
        match self {
            Self::Shared(seed) => json!(seed),
            Self::Run => json!("run"),
        }
    }

    fn stand_in() -> Self {
        Self::Shared(0)
    }
}

impl SplitSpec {
    /// The split of a run.
    pub fn of_run(&self, seed: u64) -> Self {
        Self {
            seed: if self.by_run { seed } else { self.seed },
            ..self.clone()
        }
    }

    /// As text, for reports.
    pub fn show(&self) -> String {
        let mut words = match (&self.group_by, self.order, &self.order_by) {
            (Some(column), SplitOrder::Random, _) => {
                format!("split by `{column}` with seed {}", self.seed)
            }
            (Some(column), SplitOrder::Time, Some(order)) => {
                format!("split by `{column}`, in the order of `{order}`")
            }
            (Some(column), SplitOrder::Time, None) => format!("split by `{column}` in their order"),
            (None, SplitOrder::Time, Some(column)) => format!("split in the order of `{column}`"),
            (None, SplitOrder::Time, None) => "split in their order".to_owned(),
            (None, SplitOrder::Random, _) if self.stratified => {
                format!("split with seed {}, stratified", self.seed)
            }
            (None, SplitOrder::Random, _) => format!("split with seed {}", self.seed),
        };
        if let Some(folds) = self.folds {
            words.push_str(&format!(", fold {} of {folds}", self.fold + 1));
        }
        words
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let mut split = Self {
            valid: s
                .field(
                    "valid",
                    Kind::Float {
                        min: 0.0,
                        open_min: true,
                        max: 1.0,
                        open_max: true,
                    },
                    "Fraction held out for validation.",
                )
                .or(0.2),
            test: s
                .field(
                    "test",
                    Kind::fraction(),
                    "Fraction held out for the test, evaluated once at the end; 0 for none.",
                )
                .or(0.0),
            stratified: s
                .field(
                    "stratified",
                    Kind::Bool,
                    "Whether every split keeps the class proportions.",
                )
                .or(true),
            seed: 0,
            by_run: false,
            order: s.choice("order", "How held-out items, or groups of `group_by`, are chosen; \"time\" when `order_by` is set.", SplitOrder::Random),
            order_by: s
                .field(
                    "order_by",
                    Kind::Text,
                    "The column that orders the items: numbers, or dates such as 2024-01-31; it is not a feature.",
                )
                .optional(),
            group_by: s
                .field(
                    "group_by",
                    Kind::Text,
                    "The column whose equal values stay in one split, such as a patient; it is not a feature.",
                )
                .optional(),
            folds: s
                .field(
                    "folds",
                    Kind::Int(2, 1000),
                    "Number of folds, each of which is the valid split once: for cross-validation, make `fold` an axis.",
                )
                .optional(),
            fold: s
                .field("fold", Kind::Int(0, 999), "The fold that is the valid split, from 0.")
                .or(0),
        };
        let by_run = vec![(
            "run",
            "The seed of the run, so that each seed has a separate split: repeated hold-out.",
        )];
        let seed = s
            .field(
                "seed",
                Kind::Either(Box::new(Kind::OneOf(by_run)), Box::new(Kind::at_least(0))),
                "Seed of the split, which all runs of the experiment share; or \"run\".",
            )
            .or(SplitSeed::Shared(0));
        match seed {
            SplitSeed::Shared(seed) => split.seed = seed,
            SplitSeed::Run => split.by_run = true,
        }
        // With `order = "random"`, groups are chosen at random, and windows within them are in order.
        match split.order_by {
            Some(_) if !s.is_written("order") => Self {
                order: SplitOrder::Time,
                ..split
            },
            _ => split,
        }
    }
}
