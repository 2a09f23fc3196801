//! The MNIST files: found in a folder or in the cache, downloaded if allowed, and read.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::cache::Cached;
use super::download::download;
use super::known::{Known, Trust};
use super::records::Records;
use super::{DataError, DownloadProgress, Items, idx, sha256_hex};
use crate::diagnostic::Reason;
use crate::disk;
use crate::spec::data::MnistPart;

/// One published file.
struct Published {
    name: &'static str,
    /// sha256 of the gzipped file.
    sha256: &'static str,
    /// sha256 of the decompressed file.
    content: &'static str,
}

const TRAIN_IMAGES: Published = Published {
    name: "train-images-idx3-ubyte",
    sha256: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    content: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
};
const TRAIN_LABELS: Published = Published {
    name: "train-labels-idx1-ubyte",
    sha256: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    content: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
};
const TEST_IMAGES: Published = Published {
    name: "t10k-images-idx3-ubyte",
    sha256: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    content: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
};
const TEST_LABELS: Published = Published {
    name: "t10k-labels-idx1-ubyte",
    sha256: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    content: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
};

/// Mirrors of the files, tried in order; the original server no longer serves them.
const MIRRORS: [&str; 2] = [
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
];

/// The folders that the files may be in.
#[derive(Clone, Debug)]
pub struct Places {
    /// The folder of the spec.
    pub root: Option<PathBuf>,
    /// The cache folder, where downloads go.
    pub cache: PathBuf,
}

/// Files that were found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Their folder.
    pub folder: PathBuf,
    /// Items to split.
    pub num_items: usize,
    /// Items of the official test part; 0 unless it is the test split.
    pub num_test: usize,
}

/// Items to split, and items of the official test part, as published.
pub fn published_sizes(part: MnistPart) -> (usize, usize) {
    match part {
        MnistPart::All => (60_000, 10_000),
        MnistPart::Train => (60_000, 0),
        MnistPart::Test => (10_000, 0),
    }
}

fn files(part: MnistPart) -> &'static [Published] {
    match part {
        MnistPart::All => &[TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS],
        MnistPart::Train => &[TRAIN_IMAGES, TRAIN_LABELS],
        MnistPart::Test => &[TEST_IMAGES, TEST_LABELS],
    }
}

impl Places {
    fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.root.iter().chain([&self.cache])
    }

    /// The first folder that contains all files of `part`, with the sizes from their headers.
    pub fn find(&self, part: MnistPart) -> Result<Option<Found>, DataError> {
        let complete = |folder: &&PathBuf| {
            files(part)
                .iter()
                .all(|file| idx::find(folder, file.name).is_some())
        };
        let Some(folder) = self.folders().find(complete) else {
            return Ok(None);
        };
        let images = files(part).iter().step_by(2);
        let mut nums = Vec::new();
        for file in images {
            let path = idx::find(folder, file.name).unwrap_or_default();
            nums.push(idx::read_header(&path, 3)?.sizes[0]);
        }
        // Absolute, so that a run folder does not depend on the working directory.
        let folder = disk::canonicalize(folder).unwrap_or_else(|_| folder.clone());
        Ok(Some(Found {
            folder,
            num_items: nums[0],
            num_test: nums.get(1).copied().unwrap_or(0),
        }))
    }

    /// The message for a user who does not have the files.
    pub fn missing(&self, part: MnistPart) -> DataError {
        let names: Vec<_> = files(part)
            .iter()
            .map(|f| format!("{}.gz", f.name))
            .collect();
        let folders: Vec<_> = self.folders().map(|f| f.display().to_string()).collect();
        let target = self.folders().next().unwrap_or(&self.cache).display();
        let urls: Vec<_> = names
            .iter()
            .map(|name| format!("-O {}{name}", MIRRORS[0]))
            .collect();
        DataError::new("the MNIST files are missing")
            .note(format!("searched {}", folders.join(" and in ")))
            .note(format!("needed, with or without .gz: {}", names.join(", ")))
            .help(format!(
                "download them: mkdir -p {target} && cd {target} && curl -fL {}",
                urls.join(" ")
            ))
            .help("or set `fallback = \"digits\"` under `[data]` to train on the embedded digits")
    }

    /// Downloads the files that are missing in the cache. Each is checked by its sha256 before it is renamed into
    /// place, so that a partial download is never used. The error is a phrase.
    pub fn download(
        &self,
        part: MnistPart,
        progress: DownloadProgress<'_>,
    ) -> Result<Found, Reason> {
        fs::create_dir_all(&self.cache)
            .map_err(|e| format!("the folder {} cannot be created: {e}", self.cache.display()))?;
        for file in files(part) {
            if idx::find(&self.cache, file.name).is_some() {
                continue;
            }
            let mut reasons = Vec::new();
            let fetched = MIRRORS.iter().any(|mirror| {
                let name = format!("{}.gz", file.name);
                let url = format!("{mirror}{name}");
                let result = download(&url, &self.cache.join(name), file.sha256, progress);
                result
                    .map_err(|Reason(reason)| reasons.push((host(mirror), reason)))
                    .is_ok()
            });
            if !fetched {
                return Err(Reason(format!(
                    "the download failed ({})",
                    joined(&reasons)
                )));
            }
        }
        match self.find(part) {
            Ok(Some(found)) => Ok(found),
            Ok(None) => Err("the downloaded files were not found".into()),
            Err(e) => Err(Reason(e.to_string())),
        }
    }
}

/// `a and b: reason` if the mirrors agree, otherwise all reasons in order.
fn joined(reasons: &[(&str, String)]) -> String {
    let all_same = reasons.windows(2).all(|pair| pair[0].1 == pair[1].1);
    match reasons.first() {
        Some((_, reason)) if all_same => {
            let hosts: Vec<_> = reasons.iter().map(|(host, _)| *host).collect();
            format!("{}: {reason}", hosts.join(" and "))
        }
        _ => {
            let each: Vec<_> = reasons
                .iter()
                .map(|(host, reason)| format!("{host}: {reason}"))
                .collect();
            each.join("; ")
        }
    }
}

fn host(mirror: &str) -> &str {
    mirror.split('/').nth(2).unwrap_or(mirror)
}

/// The files of `part` in a folder, gzipped or not.
pub fn files_in(folder: &Path, part: MnistPart) -> Result<Vec<PathBuf>, DataError> {
    files(part)
        .iter()
        .map(|file| path_of(folder, file))
        .collect()
}

/// The digest of the decompressed files of `part`: the same content has the same digest, gzipped or not.
pub fn digest(
    folder: &Path,
    part: MnistPart,
    cache: &Path,
    trust: Trust,
) -> Result<String, DataError> {
    let mut known = Known::read(cache, trust);
    let mut sums = Vec::new();
    for (at, path) in files_in(folder, part)?.iter().enumerate() {
        // Images and labels alternate.
        let num_dims = if at % 2 == 0 { 3 } else { 1 };
        let sum = known.sum("unpacked ", path, 0, &mut || {
            Ok(idx::read(path, num_dims)?.sha256)
        });
        sums.push(sum?);
    }
    known.write();
    Ok(digest_of(part, sums.iter().map(String::as_str)))
}

/// The digest of the published content of the files of `part`.
pub fn published_digest(part: MnistPart) -> String {
    digest_of(part, files(part).iter().map(|file| file.content))
}

fn digest_of<'a>(part: MnistPart, sums: impl Iterator<Item = &'a str>) -> String {
    let names = files(part).iter().map(|file| file.name);
    let named: Vec<_> = names.zip(sums).collect();
    sha256_hex(json!(named).to_string().as_bytes())
}

/// The files of `part` as they were read.
pub struct Loaded {
    /// The items to split.
    pub items: Items,
    /// The official test part, if it is the test split.
    pub test: Option<Items>,
    /// The digest of the content.
    pub digest: String,
}

/// The shape of an image.
pub(super) const SHAPE: [usize; 3] = [1, 28, 28];
/// The factor of a pixel.
pub(super) const UNIT: f32 = 1.0 / 255.0;
/// The digits.
pub(super) const NUM_CLASSES: usize = 10;

/// The files of `part` as records, with the digest of their content: from the cache or decoded into it, since a run on
/// few images would otherwise spend a tenth of its time on decoding them.
pub(super) fn records(
    folder: &Path,
    part: MnistPart,
    cache: &Path,
    trust: Trust,
) -> Result<(Records, String), DataError> {
    let cached = if disk::IS_MEMORY || cache.as_os_str().is_empty() {
        None
    } else {
        let digest = digest(folder, part, cache, trust)?;
        let name = format!("{}-mnist.records", &digest[..32]);
        let cached = Cached::new(cache, &name, digest.clone());
        if let Some(records) = cached.open(trust) {
            return Ok((records, digest));
        }
        Some((cached, digest))
    };
    let Loaded {
        items,
        test,
        digest,
    } = load(folder, part)?;
    // Without a folder to write to, files are decoded each time.
    if let Some((cached, _)) = cached.filter(|(_, known)| *known == digest)
        && let Ok(mut writer) = cached.writer()
        && items.write(test.as_ref(), &mut writer).is_ok()
        && let Ok(records) = cached.persist(writer)
    {
        return Ok((records, digest));
    }
    Ok((items.into_records(test.as_ref()), digest))
}

/// Reads the files of `part`.
pub fn load(folder: &Path, part: MnistPart) -> Result<Loaded, DataError> {
    let mut sums = Vec::new();
    let mut read = |images: &Published, labels: &Published| {
        let (items, of_part) = read_part(folder, images, labels)?;
        sums.extend(of_part);
        Ok::<_, DataError>(items)
    };
    let (items, test) = match part {
        MnistPart::All => (
            read(&TRAIN_IMAGES, &TRAIN_LABELS)?,
            Some(read(&TEST_IMAGES, &TEST_LABELS)?),
        ),
        MnistPart::Train => (read(&TRAIN_IMAGES, &TRAIN_LABELS)?, None),
        MnistPart::Test => (read(&TEST_IMAGES, &TEST_LABELS)?, None),
    };
    Ok(Loaded {
        items,
        test,
        digest: digest_of(part, sums.iter().map(String::as_str)),
    })
}

fn path_of(folder: &Path, file: &Published) -> Result<PathBuf, DataError> {
    idx::find(folder, file.name).ok_or_else(|| {
        let message = format!(
            "`{}` is missing, gzipped or not",
            folder.join(file.name).display()
        );
        DataError::new(message).help("run `runner run` on the experiment again to locate the data")
    })
}

/// Items with the sums of their files.
fn read_part(
    folder: &Path,
    images: &Published,
    labels: &Published,
) -> Result<(Items, [String; 2]), DataError> {
    let (images_path, labels_path) = (path_of(folder, images)?, path_of(folder, labels)?);
    let idx::Read8 {
        header,
        bytes,
        sha256: images_sum,
    } = idx::read(&images_path, 3)?;
    let idx::Read8 {
        header: label_header,
        bytes: labels,
        sha256: labels_sum,
    } = idx::read(&labels_path, 1)?;
    let num = header.sizes[0];
    if header.sizes[1..] != SHAPE[1..] {
        let message = format!(
            "`{}` contains images of {}x{}, but MNIST's are 28x28",
            images_path.display(),
            header.sizes[1],
            header.sizes[2]
        );
        return Err(DataError::new(message).help("put the original MNIST files into the folder"));
    }
    if label_header.sizes[0] != num {
        let message = format!(
            "`{}` contains {num} images, but `{}` contains {} labels",
            images_path.display(),
            labels_path.display(),
            label_header.sizes[0]
        );
        return Err(DataError::new(message).help("take both files from the same source"));
    }
    if let Some(at) = labels.iter().position(|label| *label > 9) {
        let message = format!(
            "`{}`: label {} of item {at} is out of range: the 10 classes have labels 0 to 9",
            labels_path.display(),
            labels[at]
        );
        return Err(DataError::new(message).help("put the original MNIST files into the folder"));
    }
    let items = Items::of_bytes(SHAPE.to_vec(), bytes, UNIT, &labels, NUM_CLASSES);
    Ok((items, [images_sum, labels_sum]))
}
