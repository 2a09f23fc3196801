//! What a run trains on: resolved, so that loading it needs no decision.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::noticed::Noticed;
use crate::spec::data::{AugmentSpec, FilesSpec, ImageSize, MnistPart, Scale, SplitSpec};
use crate::spec::generate::Generated;
use crate::spec::section::Choice;

/// What a run trains on: resolved, so that loading it needs no decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataPlan {
    /// The data set.
    #[serde(flatten)]
    pub dataset: Dataset,
    /// sha256 of what it holds: of files and how they are read, of what MNIST's files unpack to, of what is inside the
    /// binary, or of the first items of a generator. Empty in plans of earlier versions, which have it for files alone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// What was asked for, when `dataset` stands in for it.
    pub stands_in_for: Option<String>,
    /// How numbers are scaled, where a column does not say.
    pub scale: Scale,
    /// How pictures of the train split are changed.
    pub augment: Option<AugmentSpec>,
    /// What an item is.
    pub input: InputPlan,
    /// What the network is to give for it.
    pub target: TargetPlan,
    /// How the items are split.
    pub split: SplitSpec,
    /// Items of the train split.
    pub num_train: usize,
    /// Items of the valid split.
    pub num_valid: usize,
    /// Items of the test split; 0 when there is none.
    pub num_test: usize,
    /// What was found besides, for rules and messages alone.
    #[serde(skip)]
    pub noticed: Noticed,
}

impl DataPlan {
    /// Bytes of the items that a run holds in memory; those of files are mapped and can be dropped.
    pub fn held_bytes(&self) -> u64 {
        let size = match self.dataset {
            Dataset::Mnist { .. } | Dataset::Digits { .. } | Dataset::Iris => 1,
            Dataset::Synthetic(_) => 4,
            Dataset::Files { .. } => 0,
        };
        let num = (self.num_train + self.num_valid + self.num_test) as u64;
        let item = self.input.shape.iter().product::<usize>() as u64;
        num.saturating_mul(item).saturating_mul(size)
    }

    /// The data set with its split, for reports.
    pub fn in_words(&self) -> String {
        let test = match self.num_test {
            0 => String::new(),
            num => format!(", {num} test"),
        };
        let stands_in = match &self.stands_in_for {
            Some(asked) => format!(" (stands in for `{asked}`)"),
            None => String::new(),
        };
        format!(
            "`{}`{stands_in}: {} train, {} valid{test} items of shape {:?}, {}, {}{}",
            self.dataset.name(),
            self.num_train,
            self.num_valid,
            self.input.shape,
            self.target.show(),
            self.split.show(),
            match self.scale {
                Scale::None => "",
                Scale::Standardize => ", standardized",
                Scale::MinMax => ", scaled from 0 to 1",
                Scale::Normalize => ", scaled to length 1",
            }
        )
    }
}

/// What an item is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputPlan {
    /// Its shape.
    pub shape: Vec<usize>,
    /// For tokens, the number that all of them are below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
}

/// What the network is to give for an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TargetPlan {
    /// Nothing: items are their own targets.
    None,
    /// A class.
    Class {
        /// Number of classes.
        num_classes: usize,
    },
    /// A class for each position: tokens or pixels.
    Classes {
        /// The positions.
        shape: Vec<usize>,
        /// Number of classes.
        num_classes: usize,
    },
    /// Any of several labels.
    Labels {
        /// Number of labels.
        num_labels: usize,
    },
    /// Numbers.
    Values {
        /// Their shape.
        shape: Vec<usize>,
    },
}

impl TargetPlan {
    /// Numbers of one target.
    pub fn size(&self) -> usize {
        match self {
            TargetPlan::None => 0,
            TargetPlan::Class { .. } => 1,
            TargetPlan::Classes { shape, .. } | TargetPlan::Values { shape } => {
                shape.iter().product()
            }
            TargetPlan::Labels { num_labels } => *num_labels,
        }
    }

    /// In words, for reports.
    pub fn show(&self) -> String {
        match self {
            TargetPlan::None => "no targets".to_owned(),
            TargetPlan::Class { num_classes } => format!("{num_classes} classes"),
            TargetPlan::Classes { shape, num_classes } => {
                format!("{num_classes} classes for each of {shape:?} positions")
            }
            TargetPlan::Labels { num_labels } => format!("{num_labels} labels"),
            TargetPlan::Values { shape } => format!("targets of shape {shape:?}"),
        }
    }
}

/// A data set that is here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Dataset {
    /// The MNIST files of a folder.
    Mnist {
        /// The folder.
        folder: PathBuf,
        /// Which published part.
        part: MnistPart,
    },
    /// The digits inside the binary.
    Digits {
        /// The size they are served at.
        image_size: ImageSize,
    },
    /// The iris flowers inside the binary.
    Iris,
    /// Made up.
    Synthetic(Generated),
    /// Files of the user.
    Files {
        /// Where they are and how they are read.
        files: Box<FilesSpec>,
        /// The folder of decoded files.
        cache: PathBuf,
    },
}

impl Dataset {
    /// The name in the experiment file.
    pub fn name(&self) -> &'static str {
        match self {
            Dataset::Mnist { .. } => "mnist",
            Dataset::Digits { .. } => "digits",
            Dataset::Iris => "iris",
            Dataset::Synthetic(generated) => generated.name(),
            Dataset::Files { files, .. } => files.kind().name(),
        }
    }
}
