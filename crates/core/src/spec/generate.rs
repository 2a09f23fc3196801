//! Generated data sets: keys and ranges. Their content is in `data/generate`.

use serde::{Deserialize, Serialize};

use super::data::DataKind;
use super::kind::Kind;
use super::section::{Choice, Section, choices};

/// A generated data set, equal on every machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    /// Number of items.
    pub num_items: usize,
    /// Seed of the generator; independent of the seeds of runs and of the split.
    pub seed: u64,
    /// The generator.
    #[serde(flatten)]
    pub generator: Generator,
}

/// The generators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "generator", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each key is documented below")]
pub enum Generator {
    /// Normally distributed clusters, one per class.
    Blobs {
        num_classes: usize,
        num_features: usize,
        noise: f64,
    },
    /// Two interleaving half circles.
    TwoMoons { noise: f64 },
    /// Arms of a spiral, one per class.
    Spirals { num_classes: usize, noise: f64 },
    /// Smooth functions of the features with noise, and some outliers.
    Regression {
        num_features: usize,
        num_targets: usize,
        noise: f64,
        outliers: f64,
        #[serde(rename = "asked")]
        target: RegressionTarget,
    },
    /// Windows of waves: the class is the shape of the wave, or the target is the next value.
    SineWindows {
        length: usize,
        noise: f64,
        #[serde(rename = "asked")]
        target: WindowTarget,
    },
    /// Random tokens, a separator, and the same tokens again.
    CopySequence { length: usize, vocabulary: usize },
    /// Brackets of several kinds: balanced, or nearly.
    Brackets { length: usize, kinds: usize },
    /// Disks, squares and crosses in noisy images.
    Shapes {
        size: usize,
        noise: f64,
        #[serde(rename = "asked")]
        target: ShapeTarget,
    },
}

choices! {
    /// The targets of a regression.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RegressionTarget {
        Values "values" "Normally distributed around 0.",
        Counts "counts" "Non-negative integers.",
    }
}

choices! {
    /// The target of a window.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum WindowTarget {
        Class "class" "The shape of the wave: sine, square, triangle or sawtooth.",
        Next "next" "The value after the window.",
    }
}

choices! {
    /// The target of an image of shapes.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ShapeTarget {
        Class "class" "The one shape in the image.",
        Labels "labels" "Whether each shape is present.",
        Mask "mask" "The shape at each pixel, or background.",
    }
}

impl Generated {
    /// The `type` of data in the file.
    pub fn name(&self) -> &'static str {
        let kind = match self.generator {
            Generator::Blobs { .. } => DataKind::Blobs,
            Generator::TwoMoons { .. } => DataKind::TwoMoons,
            Generator::Spirals { .. } => DataKind::Spirals,
            Generator::Regression { .. } => DataKind::Regression,
            Generator::SineWindows { .. } => DataKind::SineWindows,
            Generator::CopySequence { .. } => DataKind::CopySequence,
            Generator::Brackets { .. } => DataKind::Brackets,
            Generator::Shapes { .. } => DataKind::Shapes,
        };
        kind.name()
    }

    pub(super) fn decode(s: &mut Section<'_>, kind: DataKind) -> Self {
        let noise = |s: &mut Section<'_>, default| {
            let doc = "Standard deviation of the noise.";
            s.field("noise", Kind::between(0.0, 100.0), doc).or(default)
        };
        let size = |s: &mut Section<'_>, key, min, max, doc, default: usize| -> usize {
            s.field(key, Kind::Int(min, max), doc).or(default)
        };
        let generator = match kind {
            DataKind::Blobs => Generator::Blobs {
                num_classes: size(s, "num_classes", 2, 1000, "Classes.", 3),
                num_features: size(s, "num_features", 1, 4096, "Features.", 2),
                noise: noise(s, 1.0),
            },
            DataKind::TwoMoons => Generator::TwoMoons {
                noise: noise(s, 0.1),
            },
            DataKind::Spirals => Generator::Spirals {
                num_classes: size(s, "num_classes", 2, 10, "Arms.", 3),
                noise: noise(s, 0.05),
            },
            DataKind::Regression => Generator::Regression {
                num_features: size(s, "num_features", 1, 4096, "Features.", 8),
                num_targets: size(s, "num_targets", 1, 1024, "Targets.", 1),
                noise: noise(s, 0.1),
                outliers: s
                    .field(
                        "outliers",
                        Kind::fraction(),
                        "Fraction of targets that are outliers.",
                    )
                    .or(0.0),
                target: s.choice(
                    "target",
                    "The type of the targets.",
                    RegressionTarget::Values,
                ),
            },
            DataKind::SineWindows => Generator::SineWindows {
                length: size(s, "length", 4, 65_536, "Values per window.", 32),
                noise: noise(s, 0.1),
                target: s.choice(
                    "target",
                    "What to predict from a window.",
                    WindowTarget::Class,
                ),
            },
            DataKind::CopySequence => Generator::CopySequence {
                length: size(s, "length", 1, 4096, "Tokens to copy.", 8),
                vocabulary: size(
                    s,
                    "vocabulary",
                    3,
                    65_536,
                    "Vocabulary size, including the separator.",
                    10,
                ),
            },
            DataKind::Brackets => Generator::Brackets {
                length: size(
                    s,
                    "length",
                    4,
                    4096,
                    "Tokens per sequence; shorter ones are padded.",
                    16,
                ),
                kinds: size(s, "kinds", 2, 8, "Number of bracket types.", 2),
            },
            DataKind::Shapes => Generator::Shapes {
                size: size(s, "size", 8, 512, "Side length of the images.", 16),
                noise: noise(s, 0.2),
                target: s.choice(
                    "target",
                    "What to predict from an image.",
                    ShapeTarget::Class,
                ),
            },
            _ => unreachable!("files and embedded data sets have their own decoders"),
        };
        Self {
            num_items: size(
                s,
                "num_items",
                10,
                10_000_000,
                "Number of items to generate.",
                1000,
            ),
            seed: s
                .field(
                    "seed",
                    Kind::at_least(0),
                    "Seed of the generator, shared by all runs of the experiment.",
                )
                .or(0),
            generator,
        }
    }
}
