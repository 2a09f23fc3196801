//! Data sets as host memory: where the files are, what they hold, how they are split.
//!
//! Knows bytes, labels and splits, and nothing of tensors or runs. [`locate`] looks only as far as
//! planning needs; [`load`] reads and checks everything.

pub mod embedded;
pub mod encode;
pub mod generate;
pub mod idx;
mod load;
pub mod mnist;
pub mod order;
pub mod profile;
pub mod read;
pub mod records;
pub mod split;

pub use load::{Loaded, Split, Values, load};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::diagnostic::Diagnostic;
use crate::spec::data::{DataSource, DataSpec, Fallback, ImageSize, MnistPart, SplitSpec};
use crate::spec::generate::Generated;

/// A data set that cannot be used, in words for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct DataError {
    /// What is wrong.
    pub message: String,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// What to do about it.
    pub helps: Vec<String>,
}

impl DataError {
    /// An error with nothing but a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            notes: Vec::new(),
            helps: Vec::new(),
        }
    }

    /// Adds what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.helps.push(help.into());
        self
    }

    /// Adds a fact that explains it.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The error as a diagnostic without a place.
    pub fn to_diagnostic(&self) -> Diagnostic {
        Diagnostic {
            notes: self.notes.clone(),
            helps: self.helps.clone(),
            ..Diagnostic::error("data", self.message.clone())
        }
    }
}

impl std::fmt::Display for DataError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        let mut more = self.notes.iter().chain(&self.helps);
        more.try_for_each(|line| write!(f, "; {line}"))
    }
}

/// Items of one shape with a target each, in contiguous memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Items {
    /// What an item is.
    pub input: InputPlan,
    /// All items in order.
    pub inputs: Inputs,
    /// What a target is.
    pub target: TargetPlan,
    /// All targets in order.
    pub targets: TargetValues,
}

/// The values of items in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Inputs {
    /// Bytes, to be multiplied by a scale.
    Bytes {
        /// The bytes.
        bytes: Vec<u8>,
        /// What a byte is multiplied by.
        scale: f32,
    },
    /// Numbers.
    Floats(Vec<f32>),
    /// Tokens.
    Tokens(Vec<i32>),
}

/// The targets of items in order.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetValues {
    /// Classes, of items or of their positions; -1 for a position that does not count.
    Classes(Vec<i32>),
    /// Numbers, or labels that are 0 or 1.
    Floats(Vec<f32>),
}

impl Items {
    /// Items of bytes with a class each.
    pub fn of_bytes(
        shape: Vec<usize>,
        bytes: Vec<u8>,
        scale: f32,
        labels: &[u8],
        num_classes: usize,
    ) -> Self {
        Self {
            input: InputPlan {
                shape,
                vocabulary: None,
            },
            inputs: Inputs::Bytes { bytes, scale },
            target: TargetPlan::Class { num_classes },
            targets: TargetValues::Classes(labels.iter().map(|label| i32::from(*label)).collect()),
        }
    }

    /// Values of one item.
    pub fn item_size(&self) -> usize {
        self.input.shape.iter().product()
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        let num = match &self.inputs {
            Inputs::Bytes { bytes, .. } => bytes.len(),
            Inputs::Floats(values) => values.len(),
            Inputs::Tokens(tokens) => tokens.len(),
        };
        num / self.item_size()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl TargetPlan {
    /// Numbers of one target.
    pub fn size(&self) -> usize {
        match self {
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
            TargetPlan::Class { num_classes } => format!("{num_classes} classes"),
            TargetPlan::Classes { shape, num_classes } => {
                format!("{num_classes} classes for each of {shape:?} positions")
            }
            TargetPlan::Labels { num_labels } => format!("{num_labels} labels"),
            TargetPlan::Values { shape } => format!("targets of shape {shape:?}"),
        }
    }
}

/// What a run trains on: resolved, so that loading it needs no decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataPlan {
    /// The data set.
    #[serde(flatten)]
    pub dataset: Dataset,
    /// What was asked for, when `dataset` stands in for it.
    pub stands_in_for: Option<String>,
    /// Whether values are brought to mean 0 and deviation 1 over the train split.
    pub standardize: bool,
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
}

impl Dataset {
    /// The name in the experiment file.
    pub fn name(&self) -> &'static str {
        match self {
            Dataset::Mnist { .. } => "mnist",
            Dataset::Digits { .. } => "digits",
            Dataset::Iris => "iris",
            Dataset::Synthetic(generated) => generated.name(),
        }
    }
}

/// The folders that data is looked for in.
#[derive(Clone, Debug)]
pub struct Folders {
    /// What relative paths of the experiment file start from: its own folder.
    pub base: PathBuf,
    /// Where downloads go.
    pub cache: PathBuf,
}

/// Told of a download's progress: file, bytes so far, bytes in all if the server said so.
pub type DownloadProgress<'a> = &'a mut dyn FnMut(&str, u64, Option<u64>);

/// A located data set with what the user must be told about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// What a run trains on.
    pub plan: DataPlan,
    /// A fallback or an assumption, in words.
    pub notice: Option<String>,
}

/// Finds the data set of a spec, reading no more than headers. With `download`, missing MNIST files are
/// fetched; without it, a file that could be fetched is taken to hold what it is published to hold.
pub fn locate(
    spec: &DataSpec,
    folders: &Folders,
    download: Option<DownloadProgress<'_>>,
) -> Result<Located, DataError> {
    let split = &spec.split;
    let plan = |dataset, shape, num_classes, num, num_test, split: &SplitSpec| {
        let input = InputPlan {
            shape,
            vocabulary: None,
        };
        let target = TargetPlan::Class { num_classes };
        plan(
            dataset,
            input,
            target,
            (num, num_test),
            split,
            (spec.scale == crate::spec::data::Scale::Standardize),
        )
    };
    let digits = |image_size: ImageSize, stands_in_for: Option<&str>, split: SplitSpec| {
        let side = if image_size == ImageSize::Eight {
            8
        } else {
            28
        };
        let dataset = Dataset::Digits { image_size };
        let mut plan = plan(
            dataset,
            vec![1, side, side],
            10,
            embedded::NUM_DIGITS,
            0,
            &split,
        );
        plan.stands_in_for = stands_in_for.map(str::to_owned);
        plan
    };
    let plain = |plan: DataPlan| Ok(Located { plan, notice: None });
    match &spec.source {
        DataSource::Files(_) => Err(DataError::new("files are not read yet")),
        DataSource::Iris => plain(plan(
            Dataset::Iris,
            vec![4],
            3,
            embedded::NUM_IRIS,
            0,
            split,
        )),
        DataSource::Generated(generated) => {
            let (input, target) = generate::plans(generated);
            let dataset = Dataset::Synthetic(generated.clone());
            let sizes = (generated.num_items, 0);
            Ok(Located {
                plan: self::plan(
                    dataset,
                    input,
                    target,
                    sizes,
                    split,
                    (spec.scale == crate::spec::data::Scale::Standardize),
                ),
                notice: Some(format!(
                    "`{}` is synthetic: generated, not collected",
                    generated.name()
                )),
            })
        }
        DataSource::Digits { image_size } => plain(digits(*image_size, None, split.clone())),
        DataSource::Mnist {
            root,
            part,
            download: may_download,
            fallback,
        } => {
            let root = root.as_ref().map(|root| folders.base.join(root));
            let places = mnist::Places {
                root,
                cache: folders.cache.join("mnist"),
            };
            let mnist_plan = |folder: PathBuf, num: usize, num_test: usize| {
                let dataset = Dataset::Mnist {
                    folder,
                    part: *part,
                };
                plan(dataset, vec![1, 28, 28], 10, num, num_test, split)
            };
            let missing = match places.find(*part)? {
                Some(found) => {
                    return plain(mnist_plan(found.folder, found.num_items, found.num_test));
                }
                None => places.missing(*part),
            };
            let may_try = *may_download && download.is_some();
            let failure = match download {
                Some(progress) if *may_download => match places.download(*part, progress) {
                    Ok(found) => {
                        return plain(mnist_plan(found.folder, found.num_items, found.num_test));
                    }
                    Err(reason) => Some(reason),
                },
                _ => None,
            };
            if *fallback == Fallback::Digits {
                // With the official test part asked for, the digits hold out the same share: 10 of 70.
                let test = match part {
                    MnistPart::All => 1.0 / 7.0,
                    _ => split.test,
                };
                let split = SplitSpec {
                    test,
                    ..split.clone()
                };
                let why = match (&failure, may_download) {
                    (Some(reason), _) => format!("its files are missing and {reason}"),
                    (None, true) => {
                        "its files are missing; `runner run` first tries to download them".into()
                    }
                    (None, false) => "its files are missing".into(),
                };
                return Ok(Located {
                    plan: digits(ImageSize::TwentyEight, Some("mnist"), split),
                    notice: Some(format!(
                        "`digits` (1,797 UCI digits at 28x28) stands in for `mnist`: {why}"
                    )),
                });
            }
            if *may_download && !may_try {
                let (num, num_test) = mnist::published_sizes(*part);
                return Ok(Located {
                    plan: mnist_plan(places.cache.clone(), num, num_test),
                    notice: Some(format!(
                        "the MNIST files are missing; `runner run` will download them to {}",
                        places.cache.display()
                    )),
                });
            }
            Err(match failure {
                Some(reason) => missing.note(reason),
                None => missing,
            })
        }
    }
}

fn plan(
    dataset: Dataset,
    input: InputPlan,
    target: TargetPlan,
    (num_items, num_official_test): (usize, usize),
    split: &SplitSpec,
    standardize: bool,
) -> DataPlan {
    let sizes = split::Sizes::new(num_items, split);
    DataPlan {
        dataset,
        stands_in_for: None,
        standardize: standardize && input.vocabulary.is_none(),
        // Only items with a class can keep its share.
        split: SplitSpec {
            stratified: split.stratified && matches!(target, TargetPlan::Class { .. }),
            ..split.clone()
        },
        input,
        target,
        num_train: sizes.train,
        num_valid: sizes.valid,
        num_test: sizes.test + num_official_test,
    }
}

/// Lowercase hexadecimal digits of bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The sha256 sum of bytes in hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
