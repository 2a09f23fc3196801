//! The sources of a data set: every file with its sum, and a plan that finds the same files elsewhere.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::read::{self, Watch};
use super::{DataError, DataPlan, Dataset, cache, known, mnist};
use crate::spec::data::Format;

/// A file or folder that a plan names.
#[derive(Clone, Debug, PartialEq)]
pub struct Root {
    /// The key of the experiment file that lists it: `path`, `valid_path`, `target_path` …, or `folder` for the MNIST
    /// files.
    pub key: &'static str,
    /// Its position in that key's list, from 1.
    pub number: usize,
    /// Where it is.
    pub path: PathBuf,
    /// Whether it stands for the files in it.
    pub is_folder: bool,
    /// Its files in order, once measured.
    pub files: Vec<FileSum>,
}

/// A file as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct FileSum {
    /// Its name in the root's folder, with `/` on every system; its own name if the root is a file.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// sha256 of its content.
    pub sha256: String,
}

impl DataPlan {
    /// The files and folders of the data, not inspected; empty if it is embedded or generated.
    pub fn roots(&self) -> Vec<Root> {
        let root = |key, number, path: &str, is_folder| Root {
            key,
            number,
            path: path.into(),
            is_folder,
            files: Vec::new(),
        };
        match &self.dataset {
            Dataset::Mnist { folder, .. } => {
                vec![root("folder", 1, &folder.to_string_lossy(), true)]
            }
            Dataset::Files { files, .. } => {
                let is_folder = matches!(files.format, Format::ImageFolder { .. });
                let (mut roots, mut num_images) = (Vec::new(), 0);
                for (key, paths) in cache::lists(&mut files.clone()) {
                    let is_of_images = key == cache::IMAGES;
                    let numbered = paths
                        .iter()
                        .zip(1 + if is_of_images { num_images } else { 0 }..);
                    let is_folder = is_folder || is_of_images;
                    roots.extend(numbered.map(|(path, at)| root(key, at, path, is_folder)));
                    num_images += usize::from(is_of_images);
                }
                roots
            }
            Dataset::Digits { .. }
            | Dataset::Iris
            | Dataset::KarateClub
            | Dataset::Synthetic(_)
            | Dataset::Own { .. } => Vec::new(),
        }
    }

    /// sha256 of the content of the files and of how they are read, if there are files and the plan contains it.
    pub fn content_digest(&self) -> Option<&str> {
        let is_of_files = matches!(self.dataset, Dataset::Files { .. } | Dataset::Mnist { .. });
        Some(self.digest.as_str()).filter(|digest| is_of_files && !digest.is_empty())
    }

    /// The same data elsewhere: `place` gives the new location of a root by key and number, if it has one. Decoded
    /// files are kept in `cache`.
    pub fn relocated(
        mut self,
        place: &dyn Fn(&str, usize) -> Option<PathBuf>,
        cache: &Path,
    ) -> Self {
        match &mut self.dataset {
            Dataset::Mnist {
                folder,
                part: _,
                cache: kept,
            } => {
                if let Some(new) = place("folder", 1) {
                    *folder = new;
                }
                *kept = cache.to_owned();
            }
            Dataset::Files {
                files, cache: kept, ..
            } => {
                let mut num_images = 0;
                for (key, paths) in cache::lists(files) {
                    let is_of_images = key == cache::IMAGES;
                    let first = 1 + if is_of_images { num_images } else { 0 };
                    num_images += usize::from(is_of_images);
                    for (path, number) in paths.iter_mut().zip(first..) {
                        if let Some(new) = place(key, number) {
                            *path = new.to_string_lossy().into_owned();
                        }
                    }
                }
                *kept = cache.to_owned();
            }
            Dataset::Digits { .. }
            | Dataset::Iris
            | Dataset::KarateClub
            | Dataset::Synthetic(_)
            | Dataset::Own { .. } => {}
        }
        self
    }
}

/// The roots of a plan with all of their files, each read completely.
pub fn measure(plan: &DataPlan, watch: Watch<'_>) -> Result<Vec<Root>, DataError> {
    let mut roots = plan.roots();
    let mut listed = Vec::new();
    for root in &roots {
        listed.push(match &plan.dataset {
            Dataset::Mnist { folder, part, .. } => mnist::files_in(folder, *part)?,
            _ if root.is_folder => read::files_of(&root.path)?,
            _ => vec![root.path.clone()],
        });
    }
    let total = listed.iter().map(Vec::len).sum::<usize>() as u64;
    let mut done = 0;
    for (root, paths) in roots.iter_mut().zip(&listed) {
        for path in paths {
            let (bytes, sha256) = cache::file_sum(path)?;
            let folder = if root.is_folder {
                root.path.as_path()
            } else {
                path.parent().unwrap_or(Path::new(""))
            };
            let name = known::name_in(folder, path);
            root.files.push(FileSum {
                name,
                bytes,
                sha256,
            });
            done += 1;
            watch(done, total);
        }
    }
    Ok(roots)
}

/// Whether measured roots match the plan; `None` if the plan does not say.
pub fn is_as_planned(plan: &DataPlan, roots: &[Root]) -> Result<Option<bool>, DataError> {
    let files = match &plan.dataset {
        Dataset::Files { files, .. } => files,
        Dataset::Mnist { folder, part, .. } if !plan.digest.is_empty() => {
            return Ok(Some(mnist::load(folder, *part)?.digest == plan.digest));
        }
        _ => return Ok(None),
    };
    let [now, former] = cache::digests_by(files, &mut |path| {
        let files = roots.iter().find(|root| root.path == path);
        let files = files.into_iter().flat_map(|root| {
            root.files.iter().flat_map(|file| {
                let name = root.is_folder.then(|| file.name.clone());
                name.into_iter().chain([file.sha256.clone()])
            })
        });
        Ok(files.collect())
    })?;
    Ok(Some([now, former].contains(&plan.digest)))
}

/// A folder of the data that is also reached by a link inside another of its folders, with that link: after copying,
/// the two would no longer be one folder. Roots have been measured.
pub fn linked_root(roots: &[Root]) -> Option<(PathBuf, &Root)> {
    let folders = || roots.iter().filter(|root| root.is_folder);
    for root in folders() {
        let files = root.files.iter().map(|file| root.path.join(&file.name));
        let parents: BTreeSet<PathBuf> = files
            .filter_map(|file| Some(file.parent()?.to_owned()))
            .collect();
        for parent in parents {
            let Ok(real) = parent.canonicalize() else {
                continue;
            };
            let is_behind = |other: &&Root| {
                other.path != root.path
                    && real.starts_with(&other.path)
                    && !parent.starts_with(&other.path)
            };
            if let Some(other) = folders().find(is_behind) {
                return Some((parent, other));
            }
        }
    }
    None
}
