//! `[data.split]`: which items are held out.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::spec::document::Value;
use crate::spec::kind::{Kind, Scalar};
use crate::spec::section::{Section, choices};

/// Which items are held out of the training items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SplitSpec {
    /// Fraction of the items for validation.
    pub valid: f64,
    /// Fraction of the items for the test; 0 for none.
    pub test: f64,
    /// Whether every class keeps its share in every split.
    pub stratified: bool,
    /// Seed of the split; apart from the seeds of runs, so that all runs see the same split.
    pub seed: u64,
    /// Whether each run has the split of its own seed instead. In a plan, `seed` is that of the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_run: bool,
    /// Which items come last and are held out.
    #[serde(default, skip_serializing_if = "SplitOrder::is_random")]
    pub order: SplitOrder,
    /// The column that items are ordered by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_by: Option<String>,
    /// The column whose values are kept together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_by: Option<String>,
    /// Parts of which each is the valid split once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folds: Option<usize>,
    /// The part that is the valid split now.
    #[serde(default, skip_serializing_if = "is_first")]
    pub fold: usize,
}

choices! {
    /// Which items are held out.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SplitOrder {
        #[default]
        Random "random" "Drawn at random.",
        Time "time" "The last ones: test behind valid behind train, by `order_by` or as they stand in the files; of groups those whose last item comes last.",
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

/// What the split is drawn with.
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

    /// In words, for reports.
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
                    "Whether every class keeps its share in every split.",
                )
                .or(true),
            seed: 0,
            by_run: false,
            order: s.choice("order", "Which items, or groups of `group_by`, are held out; \"time\" where `order_by` is written.", SplitOrder::Random),
            order_by: s
                .field(
                    "order_by",
                    Kind::Text,
                    "The column that items are ordered by: numbers, or dates such as 2024-01-31; it is no feature.",
                )
                .optional(),
            group_by: s
                .field(
                    "group_by",
                    Kind::Text,
                    "The column whose values are kept together in one split, such as a patient; it is no feature.",
                )
                .optional(),
            folds: s
                .field(
                    "folds",
                    Kind::Int(2, 1000),
                    "Parts of which each is the valid split once: with `fold` as an axis, cross-validation.",
                )
                .optional(),
            fold: s
                .field("fold", Kind::Int(0, 999), "The part that is the valid split, from 0.")
                .or(0),
        };
        let by_run = vec![(
            "run",
            "The seed of the run, so that each seed has a split of its own: repeated hold-out.",
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
        // With `order = "random"`, groups are drawn, and windows within them are in order.
        match split.order_by {
            Some(_) if !s.is_written("order") => Self {
                order: SplitOrder::Time,
                ..split
            },
            _ => split,
        }
    }
}
