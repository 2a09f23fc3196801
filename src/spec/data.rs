//! `[data]`: which items are trained on and how they are split.

use serde::{Deserialize, Serialize};

use super::generate::Generated;
use super::kind::Kind;
use super::section::{Choice, Section, choices};

/// The `[data]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSpec {
    /// Where the items come from.
    pub source: DataSource,
    /// Whether values are brought to mean 0 and deviation 1 over the train split.
    pub standardize: bool,
    /// How they are split.
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
}

choices! {
    /// The `type` of `[data]`.
    pub(super) enum DataKind {
        Mnist "mnist" "Handwritten digits, 28x28, 10 classes: the four IDX files, gzipped or not.",
        Digits "digits" "UCI handwritten digits, 1,797 images of 8x8, 10 classes, inside the binary.",
        Iris "iris" "Iris flowers, 150 rows of 4 measurements, 3 classes, inside the binary.",
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

/// `[data.split]`: the fractions held out of the training items.
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
            generated => DataSource::Generated(Generated::decode(s, generated)),
        });
        let standardize = s
            .field(
                "standardize",
                Kind::Bool,
                "Whether values are brought to mean 0 and deviation 1 over the train split: images as a whole, columns each by itself.",
            )
            .or(true);
        let split = s.table(
            "split",
            "The fractions held out of the training items.",
            false,
            |s| SplitSpec {
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
                seed: s
                    .field(
                        "seed",
                        Kind::at_least(0),
                        "Seed of the split; all runs of the experiment share it.",
                    )
                    .or(0),
            },
        );
        Self {
            source,
            standardize,
            split,
        }
    }
}
