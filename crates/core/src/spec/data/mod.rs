//! `[data]`: the items to train on and how they are split.

mod augment;
mod columns;
mod dates;
mod files;
mod graph;
mod inputs;
mod rows;
mod split;
mod tokens;
mod values;

pub use augment::{AugmentSpec, MixSpec, ResizedCropSpec};
pub use columns::{
    ColumnSpec, ColumnType, Encode, ImageSpec, Missing, MoreTarget, RolesSpec, Scale, ScaleAxis,
    TargetTransform, WindowSpec,
};
pub use dates::{DateFormat, date_of, days_of};
pub use files::{Channels, FilesSpec, Format, OnBadItem, Targets};
pub use graph::{GraphItems, GraphSpec};
pub use inputs::{InputEncode, InputSpec};
pub use rows::RowsSpec;
pub use split::{SplitOrder, SplitSpec};
pub use tokens::{DocumentPositions, TokenizerKind, TokensSpec};
pub use values::ValuesSpec;

use serde::{Deserialize, Serialize};

use super::generate::Generated;
use super::kind::Kind;
use super::losses::TermTable;
use super::own::{AnyData, Used};
use super::section::{Choice, Section, choices};

/// The `[data]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSpec {
    /// The source of the items.
    pub source: DataSource,
    /// How numbers are scaled.
    pub scale: Scale,
    /// Which values of an array are scaled together.
    pub scale_axis: ScaleAxis,
    /// Augmentation of the images of the train split.
    pub augment: Option<AugmentSpec>,
    /// How items are split.
    pub split: SplitSpec,
    /// The fraction of the labels of the train split that are changed.
    pub label_noise: f64,
    /// Whether a loss needs to know how often each class occurs.
    pub counts_classes: bool,
}

/// The sources of items.
#[derive(Clone, Debug, PartialEq)]
pub enum DataSource {
    /// The MNIST files.
    Mnist {
        /// The folder to search first.
        root: Option<String>,
        /// Which of the two published parts to use.
        part: MnistPart,
        /// Whether a missing file may be downloaded.
        download: bool,
        /// What to train on if the files are not available.
        fallback: Fallback,
    },
    /// The embedded UCI handwritten digits.
    Digits {
        /// The size of the images.
        image_size: ImageSize,
    },
    /// The embedded iris flowers.
    Iris,
    /// The embedded karate club, a graph.
    KarateClub,
    /// Generated.
    Generated(Generated),
    /// The user's files.
    Files(Box<FilesSpec>),
    /// A data source of the program's own.
    Own(Used),
}

impl DataSpec {
    /// Adds the columns that `[[losses]]` names as targets, if items have columns with names. Windows that have no target
    /// end with their last row.
    pub(super) fn add_targets(&mut self, losses: &[TermTable]) {
        let DataSource::Files(files) = &mut self.source else {
            return;
        };
        if !files.format.has_columns() {
            return;
        }
        let roles = &mut files.roles;
        for (table, term) in losses.iter().enumerate() {
            let Some(columns) = term.columns() else {
                continue;
            };
            let is_known = |more: &MoreTarget| more.columns == columns;
            if !roles.more_targets.iter().any(is_known) {
                let columns = columns.to_vec();
                roles.more_targets.push(MoreTarget { columns, table });
            }
        }
        let has_targets = roles.targets().next().is_some();
        if let Some(window) = roles.window.as_mut().filter(|_| !has_targets) {
            window.horizon = 0;
        }
    }
}

choices! {
    /// The `type` of `[data]`.
    pub enum DataKind {
        Mnist "mnist" "Handwritten digits, 28x28, 10 classes: the four IDX files, gzipped or not.",
        Digits "digits" "UCI handwritten digits, 1,797 images of 8x8, 10 classes, embedded in the binary.",
        Iris "iris" "Iris flowers, 150 rows of 4 measurements, 3 classes, embedded in the binary.",
        KarateClub "karate_club" "Zachary's karate club, a graph of 34 members and 78 friendships; the 2 classes are the clubs after it split, and the features say which member a node is. Embedded in the binary.",
        Csv "csv" "Delimiter-separated values, plain or gzipped.",
        JsonLines "json_lines" "One JSON object per line, plain or gzipped.",
        Parquet "parquet" "Apache Parquet; needs the feature `parquet`.",
        Npy "npy" "NumPy arrays: one file of inputs and one of targets.",
        Npz "npz" "Named NumPy arrays in one file.",
        Safetensors "safetensors" "Named tensors in one file.",
        Idx "idx" "Byte arrays in the MNIST format, plain or gzipped.",
        ImageFolder "image_folder" "Images (png, jpeg), in one folder per class, or with masks.",
        Text "text" "Plain text, for next-token prediction.",
        Blobs "blobs" "Generated: normally distributed clusters, one per class.",
        TwoMoons "two_moons" "Generated: two interleaving half circles.",
        Spirals "spirals" "Generated: arms of a spiral, one per class.",
        Regression "regression" "Generated: smooth functions of the features with noise and some outliers.",
        SineWindows "sine_windows" "Generated: windows of waves; the target is the shape of the wave or its next value.",
        CopySequence "copy_sequence" "Generated: random tokens, a separator, and the same tokens again, for next-token prediction.",
        Brackets "brackets" "Generated: sequences of brackets, balanced or not.",
        Shapes "shapes" "Generated: disks, squares and crosses in noisy images; the target is a class, labels or a mask.",
    }
}

choices! {
    /// The published parts of MNIST.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum MnistPart {
        All "all" "Train and valid come from the 60,000 images; test is the 10,000.",
        Train "train" "Only the 60,000 images, split by the fractions.",
        Test "test" "Only the 10,000 images, split by the fractions.",
    }
}

choices! {
    /// What replaces MNIST if its files are not available.
    pub enum Fallback {
        None "none" "Refuse the experiment.",
        Digits "digits" "Train on the UCI digits at 28x28, and report it everywhere.",
    }
}

/// The sizes of the digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageSize {
    /// As published.
    #[serde(rename = "8x8")]
    Eight,
    /// Interpolated bilinearly to the size of MNIST.
    #[serde(rename = "28x28")]
    TwentyEight,
}

impl Choice for ImageSize {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (ImageSize::Eight, "8x8", "As published."),
        (
            ImageSize::TwentyEight,
            "28x28",
            "Interpolated bilinearly to the size of MNIST.",
        ),
    ];
}

impl DataSpec {
    /// The names of the network's inputs, if they have names.
    pub fn input_names(&self) -> Vec<String> {
        match &self.source {
            DataSource::Files(files) => {
                let inputs = files.roles.inputs.iter();
                inputs.map(|input| input.name.clone()).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let built_in = |s: &mut Section<'_>, kind: DataKind| {
            match kind {
            DataKind::Mnist => DataSource::Mnist {
                root: s
                    .field("root", Kind::Path, "Folder of the IDX files, relative to this file; the cache folder is searched next.")
                    .optional(),
                part: s.choice("part", "Which published part to use.", MnistPart::All),
                download: s
                    .field("download", Kind::Bool, "Whether files that are in neither folder may be downloaded.")
                    .or(true),
                fallback: s.choice("fallback", "What to train on when the files are not available.", Fallback::None),
            },
            DataKind::Digits => DataSource::Digits {
                image_size: s.choice("image_size", "The size of the images.", ImageSize::Eight),
            },
            DataKind::Iris => DataSource::Iris,
            DataKind::KarateClub => DataSource::KarateClub,
            kind if kind.is_files() => DataSource::Files(Box::new(FilesSpec::decode(s, kind))),
            generated => DataSource::Generated(Generated::decode(s, generated)),
        }
        };
        let source = s.variant("The source of the items.", None, |s, kind| match kind {
            AnyData::BuiltIn(kind) => built_in(s, kind),
            AnyData::Own(part) => DataSource::Own(Used::decode(s, part)),
        });
        let scale = s.choice(
            "scale",
            "How numbers are scaled in columns that do not set it themselves.",
            Scale::Standardize,
        );
        Self {
            source,
            scale,
            scale_axis: ScaleAxis::decode(s),
            augment: s.optional_table(
                "augment",
                "Random changes to the images of the train split, sampled separately for each item and epoch.",
                AugmentSpec::decode,
            ),
            split: s.table(
                "split",
                "Which items are held out.",
                false,
                SplitSpec::decode,
            ),
            label_noise: s
                .field(
                    "label_noise",
                    Kind::Float {
                        min: 0.0,
                        open_min: false,
                        max: 1.0,
                        open_max: true,
                    },
                    "Fraction of the items of the train split whose class is replaced by another one, each equally likely, to measure what wrong labels do. They are drawn by `data.split.seed`.",
                )
                .or(0.0),
            counts_classes: false,
        }
    }
}

impl DataKind {
    /// Whether its items come from the user's files.
    pub fn is_files(self) -> bool {
        matches!(
            self,
            DataKind::Csv
                | DataKind::JsonLines
                | DataKind::Parquet
                | DataKind::Npy
                | DataKind::Npz
                | DataKind::Safetensors
                | DataKind::Idx
                | DataKind::ImageFolder
                | DataKind::Text
        )
    }
}
