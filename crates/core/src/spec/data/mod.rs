//! `[data]`: which items are trained on and how they are split.

mod augment;
mod columns;
mod dates;
mod files;
mod rows;
mod split;
mod values;

pub use augment::AugmentSpec;
pub use columns::{
    ColumnSpec, ColumnType, Encode, Missing, RolesSpec, Scale, TokenizerKind, TokensSpec,
    WindowSpec,
};
pub use dates::{DateFormat, date_of, days_of};
pub use files::{Channels, FilesSpec, Format, OnBadItem, Targets};
pub use rows::RowsSpec;
pub use split::{SplitOrder, SplitSpec};
pub use values::ValuesSpec;

use serde::{Deserialize, Serialize};

use super::generate::Generated;
use super::kind::Kind;
use super::section::{Choice, Section, choices};

/// The `[data]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSpec {
    /// Where the items come from.
    pub source: DataSource,
    /// How numbers are scaled.
    pub scale: Scale,
    /// How pictures of the train split are changed.
    pub augment: Option<AugmentSpec>,
    /// How items are split.
    pub split: SplitSpec,
}

/// Where the items come from.
#[derive(Clone, Debug, PartialEq)]
pub enum DataSource {
    /// The MNIST files.
    Mnist {
        /// The folder to look in first.
        root: Option<String>,
        /// Which of the two published parts to use.
        part: MnistPart,
        /// Whether a missing file may be downloaded.
        download: bool,
        /// What to train on when the files cannot be had.
        fallback: Fallback,
    },
    /// The UCI handwritten digits inside the binary.
    Digits {
        /// The size that the images are served at.
        image_size: ImageSize,
    },
    /// The iris flowers inside the binary.
    Iris,
    /// Made up.
    Generated(Generated),
    /// Files of the user.
    Files(Box<FilesSpec>),
}

choices! {
    /// The `type` of `[data]`.
    pub enum DataKind {
        Mnist "mnist" "Handwritten digits, 28x28, 10 classes: the four IDX files, gzipped or not.",
        Digits "digits" "UCI handwritten digits, 1,797 images of 8x8, 10 classes, inside the binary.",
        Iris "iris" "Iris flowers, 150 rows of 4 measurements, 3 classes, inside the binary.",
        Csv "csv" "Rows of values with a separator, plain or gzipped.",
        JsonLines "json_lines" "One JSON object a line, plain or gzipped.",
        Parquet "parquet" "Apache Parquet; needs the feature `parquet`.",
        Npy "npy" "NumPy arrays, a file of inputs and one of targets.",
        Npz "npz" "NumPy arrays by name in one file.",
        Safetensors "safetensors" "Tensors by name in one file.",
        Idx "idx" "Arrays of bytes in the format of MNIST, plain or gzipped.",
        ImageFolder "image_folder" "Pictures (png, jpeg), a folder for each class, or with masks.",
        Text "text" "Plain text, for next-token prediction.",
        Blobs "blobs" "Generated: normal clouds around a centre for each class.",
        TwoMoons "two_moons" "Generated: two half circles that reach into each other.",
        Spirals "spirals" "Generated: arms of a spiral, one for each class.",
        Regression "regression" "Generated: smooth functions of the features with noise, some targets far off.",
        SineWindows "sine_windows" "Generated: windows of waves; the class is the wave's form, or the target is the next value.",
        CopySequence "copy_sequence" "Generated: random tokens, a separator, and the same tokens again, for next-token prediction.",
        Brackets "brackets" "Generated: sequences of brackets, balanced or not.",
        Shapes "shapes" "Generated: disks, squares and crosses in noisy images; a class, labels, or a mask.",
    }
}

choices! {
    /// Which published part of MNIST is used.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum MnistPart {
        All "all" "train and valid out of the 60,000 images, test is the 10,000.",
        Train "train" "The 60,000 images alone, split by the fractions.",
        Test "test" "The 10,000 images alone, split by the fractions.",
    }
}

choices! {
    /// What stands in for MNIST when its files cannot be had.
    pub enum Fallback {
        None "none" "Refuse the experiment.",
        Digits "digits" "Train on the UCI digits at 28x28, and say so everywhere.",
    }
}

/// The size at which the digits are served.
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
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let source = s.variant("Where the items come from.", None, |s, kind| match kind {
            DataKind::Mnist => DataSource::Mnist {
                root: s
                    .field("root", Kind::Path, "Folder of the IDX files, relative to this file; the cache folder is looked in next.")
                    .optional(),
                part: s.choice("part", "Which published part to use.", MnistPart::All),
                download: s
                    .field("download", Kind::Bool, "Whether files that are in neither folder may be downloaded.")
                    .or(true),
                fallback: s.choice("fallback", "What to train on when the files cannot be had.", Fallback::None),
            },
            DataKind::Digits => DataSource::Digits {
                image_size: s.choice("image_size", "The size that the images are served at.", ImageSize::Eight),
            },
            DataKind::Iris => DataSource::Iris,
            kind if kind.is_files() => DataSource::Files(Box::new(FilesSpec::decode(s, kind))),
            generated => DataSource::Generated(Generated::decode(s, generated)),
        });
        let scale = s.choice(
            "scale",
            "How numbers are scaled, where a column does not say.",
            Scale::Standardize,
        );
        Self {
            source,
            scale,
            augment: s.optional_table(
                "augment",
                "How pictures of the train split are changed, anew for each item of each epoch.",
                AugmentSpec::decode,
            ),
            split: s.table(
                "split",
                "Which items are held out.",
                false,
                SplitSpec::decode,
            ),
        }
    }
}

impl DataKind {
    /// Whether its items come from files of the user.
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
