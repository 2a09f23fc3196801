//! `[predictions]`: predictions for the run's own data, which are written when its training ends.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::section::{Choice, Section, by_name, choices};

/// The `[predictions]` table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictionsSpec {
    /// The splits whose items are predicted; none if the table is not set.
    pub splits: Vec<PredictedSplit>,
    /// The format of their files.
    #[serde(default)]
    pub format: PredictionsFormat,
}

choices! {
    /// A split that can be predicted.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum PredictedSplit {
        Train "train" "The train split, in its own order and without augmentation.",
        Valid "valid" "The valid split.",
        Test "test" "The test split.",
    }
}

choices! {
    /// The format of predictions.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum PredictionsFormat {
        #[default]
        Csv "csv" "A row for each item.",
        Jsonl "jsonl" "A JSON object for each item.",
        Npy "npy" "One NumPy array: probabilities, numbers, masks or tokens.",
        Parquet "parquet" "An Apache Parquet table; needs the feature `parquet`.",
    }
}

impl PredictionsSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let splits = Kind::List {
            item: Box::new(Kind::of_choice::<PredictedSplit>()),
            min_items: 1,
            unique: true,
        };
        let names: Vec<String> = s
            .field(
                "splits",
                splits,
                "The splits whose predictions are written to `predictions/` in the folder of a run when its training ends.",
            )
            .required();
        Self {
            splits: names.iter().filter_map(|name| by_name(name)).collect(),
            format: s.choice(
                "format",
                "The format of their files.",
                PredictionsFormat::Csv,
            ),
        }
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.splits.is_empty()
    }

    /// The name of a split's file.
    pub fn file_name(&self, split: PredictedSplit) -> String {
        format!("{}.{}", split.name(), self.format.name())
    }
}
