//! Data sets as host memory: where the files are, what they hold, how they are split.
//!
//! Knows bytes, labels and splits, and nothing of tensors or runs. [`locate`] looks only as far as
//! planning needs; [`load`] reads and checks everything.

pub mod cache;
mod content;
pub mod embedded;
pub mod encode;
pub mod generate;
pub mod idx;
mod item;
mod known;
mod load;
mod missing;
pub mod mnist;
mod noticed;
pub mod oddity;
pub mod order;
pub mod origin;
pub mod profile;
pub mod read;
pub mod records;
pub mod sentinel;
mod series;
pub mod serve;
pub mod sheet;
pub mod split;
mod sums;
pub mod suspects;
pub mod time;
pub mod uses;

pub use crate::hash::{hex, sha256_hex, sha256_of};
pub use item::{Pictures, Places};
pub use known::Trust;
pub use load::{Loaded, load, load_by};
pub use noticed::{ClassCounts, Noticed};
pub use serve::{Moment, Served, Split, Values};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, counted};
use crate::spec::data::{
    AugmentSpec, DataSource, DataSpec, Fallback, FilesSpec, ImageSize, MnistPart, Scale, SplitSpec,
};
use crate::spec::generate::Generated;
use crate::spec::section::Choice;
use read::Watch;
use records::{Column, ColumnKind, Part, Records, Writer};

/// A data set that cannot be used, in words for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct DataError {
    /// What is wrong.
    pub message: String,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// What to do about it.
    pub helps: Vec<String>,
    /// The key of the experiment file that it comes from, `data.type` when empty.
    pub key: String,
}

impl DataError {
    /// An error with nothing but a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            notes: Vec::new(),
            helps: Vec::new(),
            key: String::new(),
        }
    }

    /// Says which key of the experiment file it comes from.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }

    /// Says which key it comes from, unless that is known already.
    pub fn or_key(self, key: &str) -> Self {
        if self.key.is_empty() {
            self.key(key)
        } else {
            self
        }
    }

    /// Adds what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.helps.push(help.into());
        self
    }

    /// Adds what another error says, so that both are known at once.
    pub fn and(mut self, other: Self) -> Self {
        self.notes.push(format!("besides, {}", other.message));
        self.notes.extend(other.notes);
        self.helps.extend(other.helps);
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

    /// The items as records of a column `input` and a column `target`, with those of a test part behind.
    fn into_records(self, test: Option<Items>) -> Records {
        let (input, target) = (
            match &self.inputs {
                Inputs::Bytes { .. } => ColumnKind::Bytes,
                Inputs::Floats(_) => ColumnKind::Numbers,
                Inputs::Tokens(_) => ColumnKind::Whole,
            },
            match &self.targets {
                TargetValues::Classes(_) => ColumnKind::Whole,
                TargetValues::Floats(_) => ColumnKind::Numbers,
            },
        );
        let (size, target_size) = (self.item_size(), self.target.size());
        let mut writer = Writer::in_memory();
        writer.begin(vec![
            Column {
                name: "input".into(),
                kind: input,
                shape: self.input.shape.clone(),
            },
            Column {
                name: "target".into(),
                kind: target,
                shape: vec![target_size],
            },
        ]);
        let parts = [(Part::Train, Some(&self)), (Part::Test, test.as_ref())];
        let mut record = Vec::new();
        for (part, items) in parts {
            let Some(items) = items else { continue };
            writer.part(part);
            for at in 0..items.len() {
                record.clear();
                let range = at * size..(at + 1) * size;
                match &items.inputs {
                    Inputs::Bytes { bytes, .. } => record.extend(&bytes[range]),
                    Inputs::Floats(all) => all[range]
                        .iter()
                        .for_each(|value| record.extend(value.to_le_bytes())),
                    Inputs::Tokens(all) => all[range]
                        .iter()
                        .for_each(|value| record.extend(value.to_le_bytes())),
                }
                let range = at * target_size..(at + 1) * target_size;
                match &items.targets {
                    TargetValues::Classes(all) => all[range]
                        .iter()
                        .for_each(|value| record.extend(value.to_le_bytes())),
                    TargetValues::Floats(all) => all[range]
                        .iter()
                        .for_each(|value| record.extend(value.to_le_bytes())),
                }
                // Memory takes all that it is given.
                let _ = writer.push(&record);
            }
        }
        writer.into_records()
    }
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

/// Finds the data set of a spec and what it holds by its digest. With `download`, missing MNIST files are
/// fetched; without it, a file that could be fetched is taken to hold what it is published to hold.
pub fn locate(
    spec: &DataSpec,
    folders: &Folders,
    download: Option<DownloadProgress<'_>>,
    watch: Watch<'_>,
) -> Result<Located, DataError> {
    let split = &spec.split;
    let plan = |(dataset, digest), shape, num_classes, num, num_test, split: &SplitSpec| {
        let input = InputPlan {
            shape,
            vocabulary: None,
        };
        let target = TargetPlan::Class { num_classes };
        plan(
            (dataset, digest),
            input,
            target,
            (num, num_test),
            split,
            spec,
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
            (dataset, content::of_digits(image_size)?),
            vec![1, side, side],
            10,
            embedded::NUM_DIGITS,
            0,
            &split,
        );
        plan.stands_in_for = stands_in_for.map(str::to_owned);
        Ok::<_, DataError>(plan)
    };
    let plain = |plan: DataPlan| Ok(Located { plan, notice: None });
    match &spec.source {
        DataSource::Files(files) => files_plan(files, spec, folders, watch),
        DataSource::Iris => plain(plan(
            (Dataset::Iris, content::of_iris()?),
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
                    (dataset, content::of_generated(generated)),
                    input,
                    target,
                    sizes,
                    split,
                    spec,
                ),
                notice: Some(format!(
                    "`{}` is synthetic: generated, not collected",
                    generated.name()
                )),
            })
        }
        DataSource::Digits { image_size } => plain(digits(*image_size, None, split.clone())?),
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
            let mnist_plan = |folder: PathBuf, digest: String, num: usize, num_test: usize| {
                let dataset = Dataset::Mnist {
                    folder,
                    part: *part,
                };
                let shape = vec![1, 28, 28];
                plan((dataset, digest), shape, 10, num, num_test, split)
            };
            let known_cache = folders.cache.join("data");
            let located = |found: mnist::Found| {
                let digest = mnist::digest(&found.folder, *part, &known_cache, Trust::Stamps)?;
                let (num, num_test) = (found.num_items, found.num_test);
                plain(mnist_plan(found.folder, digest, num, num_test))
            };
            let missing = match places.find(*part)? {
                Some(found) => return located(found),
                None => places.missing(*part),
            };
            let may_try = *may_download && download.is_some();
            let failure = match download {
                Some(progress) if *may_download => match places.download(*part, progress) {
                    Ok(found) => return located(found),
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
                    plan: digits(ImageSize::TwentyEight, Some("mnist"), split)?,
                    notice: Some(format!(
                        "`digits` (1,797 UCI digits at 28x28) stands in for `mnist`: {why}"
                    )),
                });
            }
            if *may_download && !may_try {
                let (num, num_test) = mnist::published_sizes(*part);
                return Ok(Located {
                    plan: mnist_plan(
                        places.cache.clone(),
                        mnist::published_digest(*part),
                        num,
                        num_test,
                    ),
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

/// Reads files, or opens what was read of them before.
fn files_plan(
    files: &FilesSpec,
    spec: &DataSpec,
    folders: &Folders,
    watch: Watch<'_>,
) -> Result<Located, DataError> {
    let files = cache::resolve(files, &folders.base)?;
    let (files, layout) = read::images::settle(files)?;
    let cache = folders.cache.join("data");
    cache::refuse_twice(&files, &cache)?;
    let digest = cache::digest(&files, &cache, Trust::Stamps)?;
    let reading = load::Reading {
        split: &spec.split,
        scale: spec.scale,
        augment: spec.augment.as_ref(),
        measure: false,
    };
    let splits = reading.files(&files, &digest, &cache, watch)?;
    let encoder = &splits.train.set().encoder;
    let input = encoder.input.plan();
    let skipped = splits.train.set().records.header.skipped.len();
    let notice = (skipped > 0).then(|| {
        let are = if skipped == 1 { "was" } else { "were" };
        let num = counted(skipped, "item");
        format!("{num} could not be decoded and {are} left out; `runner data` lists them")
    });
    let notice = match (layout, notice) {
        (Some(layout), Some(notice)) => Some(format!("{layout}; {notice}")),
        (layout, notice) => layout.or(notice),
    };
    let plan = DataPlan {
        noticed: Noticed::of(&files, &splits),
        target: encoder.target.plan(&input),
        input,
        stands_in_for: None,
        scale: spec.scale,
        augment: spec.augment.clone(),
        split: SplitSpec {
            stratified: spec.split.stratified && encoder.target.is_class(),
            ..spec.split.clone()
        },
        num_train: splits.train.num_items(),
        num_valid: splits.valid.num_items(),
        num_test: splits.test.as_ref().map_or(0, Split::num_items),
        dataset: Dataset::Files {
            files: Box::new(files),
            cache,
        },
        digest,
    };
    Ok(Located { plan, notice })
}

fn plan(
    (dataset, digest): (Dataset, String),
    input: InputPlan,
    target: TargetPlan,
    (num_items, num_official_test): (usize, usize),
    split: &SplitSpec,
    spec: &DataSpec,
) -> DataPlan {
    let sizes = split::Sizes::new(num_items, split);
    DataPlan {
        noticed: Noticed::default(),
        dataset,
        digest,
        stands_in_for: None,
        scale: match input.vocabulary {
            Some(_) => Scale::None,
            None => spec.scale,
        },
        augment: spec.augment.clone(),
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
