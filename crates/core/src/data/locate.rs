//! From what a file asks for to data that is here.

use std::path::PathBuf;

use super::encode::scale_axis;
use super::read::Watch;
use super::{
    ClassCount, DataError, DataPlan, Dataset, InputPlan, Noticed, Split, TargetPlan, Trust, cache,
    content, embedded, generate, load, mnist, own, read, split,
};
use crate::diagnostic::{Reason, counted};
use crate::disk;
use crate::spec::data::{
    DataSource, DataSpec, Fallback, FilesSpec, ImageSize, MnistPart, Scale, SplitSpec,
};

/// The folders to search for data.
#[derive(Clone, Debug)]
pub struct Folders {
    /// The folder that relative paths of the experiment file start from: its own.
    pub base: PathBuf,
    /// The download folder.
    pub cache: PathBuf,
}

/// Receives the progress of a download: file, bytes so far, total bytes if the server sent them.
pub type DownloadProgress<'a> = &'a mut dyn FnMut(&str, u64, Option<u64>);

/// The folder of decoded data inside of a cache folder.
pub const DECODED: &str = "data";

/// A located data set with notices for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// What a run trains on.
    pub plan: DataPlan,
    /// A fallback or an assumption, as text.
    pub notice: Option<String>,
}

/// Finds the data set of a spec and its digest. With `download`, missing MNIST files are downloaded; without it, a file
/// that could be downloaded is assumed to have its published content.
pub fn locate(
    spec: &DataSpec,
    folders: &Folders,
    download: Option<DownloadProgress<'_>>,
    watch: Watch<'_>,
) -> Result<Located, DataError> {
    let plain = |plan: DataPlan| {
        let plan = with_classes(plan, spec)?;
        Ok(Located { plan, notice: None })
    };
    match &spec.source {
        DataSource::Files(files) => files_plan(files, spec, folders, watch),
        DataSource::Iris => plain(classes_plan(
            (Dataset::Iris, content::of_iris()?),
            (vec![4], 3),
            (embedded::NUM_IRIS, 0),
            &spec.split,
            spec,
        )?),
        DataSource::KarateClub => {
            let (items, edges) = embedded::karate_club();
            let mut plan = classes_plan(
                (Dataset::KarateClub, content::of_karate_club()),
                (items.input.shape.clone(), 2),
                (items.len(), 0),
                &spec.split,
                spec,
            )?;
            plan.input.graph = Some(edges.plan());
            plain(plan)
        }
        DataSource::Generated(generated) => {
            let (input, target) = generate::plans(generated);
            let dataset = Dataset::Synthetic(generated.clone());
            let digest = content::of_generated(generated);
            let sizes = (generated.num_items, 0);
            let plan = plan((dataset, digest), input, target, sizes, &spec.split, spec)?;
            Ok(Located {
                plan: with_classes(plan, spec)?,
                notice: Some(format!(
                    "`{}` is synthetic: generated, not collected",
                    generated.name()
                )),
            })
        }
        DataSource::Own(source) => {
            let source = source.clone();
            // Other commands start in other folders.
            let folder = folders.base.join(".");
            let folder = disk::canonicalize(&folder).unwrap_or(folder);
            let (items, test) = own::items(&source, &folder)?;
            let content = (
                Dataset::Own { source, folder },
                content::of_both(&items, test.as_ref()),
            );
            let sizes = (items.len(), test.map_or(0, |test| test.len()));
            plain(plan(
                content,
                items.input,
                items.target,
                sizes,
                &spec.split,
                spec,
            )?)
        }
        DataSource::Digits { image_size } => {
            plain(digits_plan(*image_size, None, &spec.split, spec)?)
        }
        DataSource::Mnist {
            root,
            part,
            download: may_download,
            fallback,
        } => {
            let root = root.as_ref().map(|root| folders.base.join(root));
            let cache = folders.cache.join("mnist");
            let wanted = Mnist {
                spec,
                part: *part,
                may_download: *may_download,
                fallback: *fallback,
                places: mnist::Places { root, cache },
                known_cache: folders.cache.join(DECODED),
            };
            wanted.locate(download)
        }
    }
}

/// The same with the classes of its train split, if a loss needs them. For data that does not come from the user's files.
fn with_classes(mut plan: DataPlan, spec: &DataSpec) -> Result<DataPlan, DataError> {
    // Splits that leave nothing are refused by rules.
    if spec.counts_classes && plan.num_train > 0 {
        let splits = load::splits(&plan, Trust::Stamps, &|_, _| ())?;
        plan.noticed.train_classes = ClassCount::of(&splits.train);
    }
    Ok(plan)
}

/// The embedded digits; `stands_in_for` is the data set that they replace.
fn digits_plan(
    image_size: ImageSize,
    stands_in_for: Option<&str>,
    split: &SplitSpec,
    spec: &DataSpec,
) -> Result<DataPlan, DataError> {
    let side = if image_size == ImageSize::Eight {
        8
    } else {
        28
    };
    let dataset = Dataset::Digits { image_size };
    let mut plan = classes_plan(
        (dataset, content::of_digits(image_size)?),
        (vec![1, side, side], 10),
        (embedded::NUM_DIGITS, 0),
        split,
        spec,
    )?;
    plan.stands_in_for = stands_in_for.map(str::to_owned);
    Ok(plan)
}

/// MNIST as a file asks for it.
struct Mnist<'a> {
    spec: &'a DataSpec,
    part: MnistPart,
    may_download: bool,
    fallback: Fallback,
    places: mnist::Places,
    /// The folder of decoded data, and of digests that are already known.
    known_cache: PathBuf,
}

impl Mnist<'_> {
    fn locate(&self, download: Option<DownloadProgress<'_>>) -> Result<Located, DataError> {
        let missing = match self.places.find(self.part)? {
            Some(found) => return self.found(found),
            None => self.places.missing(self.part),
        };
        let may_try = self.may_download && download.is_some();
        let failure = match download {
            Some(progress) if self.may_download => {
                match self.places.download(self.part, progress) {
                    Ok(found) => return self.found(found),
                    Err(reason) => Some(reason),
                }
            }
            _ => None,
        };
        if self.fallback == Fallback::Digits {
            return self.digits(failure.as_ref());
        }
        if self.may_download && !may_try {
            let folder = self.places.cache.clone();
            let sizes = mnist::published_sizes(self.part);
            return Ok(Located {
                notice: Some(format!(
                    "the MNIST files are missing; `runner run` will download them to {}",
                    folder.display()
                )),
                plan: self.plan(folder, mnist::published_digest(self.part), sizes)?,
            });
        }
        Err(match failure {
            Some(reason) => missing.note(reason),
            None => missing,
        })
    }

    fn found(&self, found: mnist::Found) -> Result<Located, DataError> {
        let digest = mnist::digest(&found.folder, self.part, &self.known_cache, Trust::Stamps)?;
        let sizes = (found.num_items, found.num_test);
        let plan = self.plan(found.folder, digest, sizes)?;
        Ok(Located {
            plan: with_classes(plan, self.spec)?,
            notice: None,
        })
    }

    fn plan(
        &self,
        folder: PathBuf,
        digest: String,
        sizes: (usize, usize),
    ) -> Result<DataPlan, DataError> {
        let part = self.part;
        let cache = self.known_cache.clone();
        let dataset = Dataset::Mnist {
            folder,
            part,
            cache,
        };
        classes_plan(
            (dataset, digest),
            (mnist::SHAPE.to_vec(), mnist::NUM_CLASSES),
            sizes,
            &self.spec.split,
            self.spec,
        )
    }

    /// The embedded digits in its place; `failure` is that of the download.
    fn digits(&self, failure: Option<&Reason>) -> Result<Located, DataError> {
        let split = &self.spec.split;
        // If the official test part is requested, the digits hold out the same fraction: 10 of 70.
        let test = match self.part {
            MnistPart::All => 1.0 / 7.0,
            _ => split.test,
        };
        let split = SplitSpec {
            test,
            ..split.clone()
        };
        let why = match (failure, self.may_download) {
            (Some(reason), _) => format!("its files are missing and {reason}"),
            (None, true) => {
                "its files are missing; `runner run` first tries to download them".into()
            }
            (None, false) => "its files are missing".into(),
        };
        let plan = digits_plan(ImageSize::TwentyEight, Some("mnist"), &split, self.spec)?;
        Ok(Located {
            plan: with_classes(plan, self.spec)?,
            notice: Some(format!(
                "`digits` (1,797 UCI digits at 28x28) replaces `mnist`: {why}"
            )),
        })
    }
}

/// Reads files, or opens their cached records.
fn files_plan(
    files: &FilesSpec,
    spec: &DataSpec,
    folders: &Folders,
    watch: Watch<'_>,
) -> Result<Located, DataError> {
    let files = cache::resolve(files, &folders.base)?;
    let (files, layout) = read::images::settle(files)?;
    let cache = folders.cache.join(DECODED);
    cache::refuse_twice(&files, &cache)?;
    let digest = cache::digest(&files, &cache, Trust::Stamps)?;
    let reading = load::Reading {
        split: &spec.split,
        scale: spec.scale,
        scale_axis: spec.scale_axis,
        augment: spec.augment.as_ref(),
        label_noise: spec.label_noise,
        measure: false,
    };
    let splits = reading.files(&files, &digest, &cache, watch)?;
    let encoder = &splits.train.set().encoder;
    let input = splits.train.set().input_plan();
    let skipped = splits.train.set().records.header.skipped.len();
    let notice = (skipped > 0).then(|| {
        let are = if skipped == 1 { "was" } else { "were" };
        let num = counted(skipped, "item");
        format!("{num} could not be decoded and {are} skipped; `runner data` lists them")
    });
    let notice = match (layout, notice) {
        (Some(layout), Some(notice)) => Some(format!("{layout}; {notice}")),
        (layout, notice) => layout.or(notice),
    };
    let plan = DataPlan {
        noticed: Noticed::of(&files, &splits, spec),
        target: encoder.target.plan(&input),
        more_targets: encoder.more_plans(&input),
        input,
        stands_in_for: None,
        scale: spec.scale,
        scale_axis: encoder.input.scale_axis(),
        augment: spec.augment.clone(),
        label_noise: spec.label_noise,
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

/// Items of one shape, each of one class.
fn classes_plan(
    content: (Dataset, String),
    (shape, num_classes): (Vec<usize>, usize),
    sizes: (usize, usize),
    split: &SplitSpec,
    spec: &DataSpec,
) -> Result<DataPlan, DataError> {
    let input = InputPlan::single(shape, None);
    let target = TargetPlan::Class { num_classes };
    plan(content, input, target, sizes, split, spec)
}

fn plan(
    (dataset, digest): (Dataset, String),
    input: InputPlan,
    target: TargetPlan,
    (num_items, num_official_test): (usize, usize),
    split: &SplitSpec,
    spec: &DataSpec,
) -> Result<DataPlan, DataError> {
    let sizes = split::Sizes::new(num_items, split);
    let (scale, scale_axis) = match input.vocabulary {
        Some(_) => (Scale::None, None),
        None => {
            let is_bytes = !matches!(dataset, Dataset::Synthetic(_) | Dataset::Own { .. });
            let axis = scale_axis(spec.scale_axis, spec.scale, &input.shape, is_bytes)?;
            (spec.scale, axis)
        }
    };
    Ok(DataPlan {
        noticed: Noticed {
            padding: match &dataset {
                Dataset::Synthetic(generated) => {
                    let token = generate::padding(generated);
                    token.map(Some).into_iter().collect()
                }
                _ => Vec::new(),
            },
            ..Noticed::default()
        },
        dataset,
        digest,
        stands_in_for: None,
        scale,
        scale_axis,
        augment: spec.augment.clone(),
        label_noise: spec.label_noise,
        // Only items with a class can be stratified.
        split: SplitSpec {
            stratified: split.stratified && matches!(target, TargetPlan::Class { .. }),
            ..split.clone()
        },
        input,
        target,
        more_targets: Vec::new(),
        num_train: sizes.train,
        num_valid: sizes.valid,
        num_test: sizes.test + num_official_test,
    })
}
