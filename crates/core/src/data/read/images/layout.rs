//! Folders of images that are already split: `train` and `valid`, both with a folder per class.
//!
//! The role of a folder is decided by its content, and not only by its name: `train` next to `bus` is a class.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::folder::{EntryKind, entries};
use crate::data::DataError;
use crate::data::records::Part;
use crate::disk;

/// The folders of the splits.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The train split.
    pub train: PathBuf,
    /// The valid split.
    pub valid: Option<PathBuf>,
    /// The test split.
    pub test: Option<PathBuf>,
}

/// The layout of a folder of images.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Folders of splits.
    Splits(Layout),
    /// Folders of classes; with a notice if they contain no images themselves.
    Classes(Option<String>),
}

/// A subfolder of the inspected folder.
struct Inside {
    name: String,
    path: PathBuf,
    /// Whether it directly contains images, not only in subfolders.
    has_pictures: bool,
    /// Its subfolders that contain images somewhere.
    folders: Vec<Inner>,
}

/// A folder in one of these.
#[derive(Clone, Debug)]
struct Inner {
    name: String,
    has_pictures: bool,
}

impl Inside {
    fn has_only_folders(&self) -> bool {
        !self.has_pictures && !self.folders.is_empty()
    }

    fn names(&self) -> Vec<&str> {
        self.folders
            .iter()
            .map(|inner| inner.name.as_str())
            .collect()
    }

    fn part(&self) -> Option<Part> {
        part_of(&self.name)
    }
}

/// The split that a folder is named after.
pub fn part_of(name: &str) -> Option<Part> {
    match name.to_lowercase().as_str() {
        "train" | "training" => Some(Part::Train),
        "valid" | "val" | "validation" | "dev" => Some(Part::Valid),
        "test" | "testing" => Some(Part::Test),
        _ => None,
    }
}

/// The layout of a folder of images with classes; refused if it is ambiguous.
pub fn of(folder: &Path) -> Result<Found, DataError> {
    let mut all = Vec::new();
    for entry in entries(folder)? {
        match entry.kind {
            // Refused later, with a remedy.
            EntryKind::Picture => return Ok(Found::Classes(None)),
            EntryKind::Folder => all.push(inside(entry.name, entry.path)?),
            EntryKind::Other => {}
        }
    }
    let with_pictures = |inside: &&Inside| inside.has_pictures || !inside.folders.is_empty();
    let all: Vec<&Inside> = all.iter().filter(with_pictures).collect();
    let splits: Vec<&Inside> = all
        .iter()
        .copied()
        .filter(|inside| inside.part().is_some())
        .collect();
    let has_train = splits
        .iter()
        .any(|inside| inside.part() == Some(Part::Train));
    if has_train && splits.len() > 1 {
        return split_already(folder, &all, &splits);
    }
    if let [only] = all.as_slice()
        && only.has_only_folders()
    {
        return Err(DataError::new(format!(
            "`{}` contains one folder, `{}`, which contains the folders {}",
            folder.display(),
            only.name,
            some(&only.names())
        ))
        .key("data.path")
        .help(format!(
            "use the folder directly above the classes or the splits: `{}`",
            only.path.display()
        )));
    }
    classes(folder, &all)
}

/// Folders that are not splits: classes, unless the rest shows otherwise.
fn classes(folder: &Path, all: &[&Inside]) -> Result<Found, DataError> {
    let [first, second, ..] = all else {
        return Ok(Found::Classes(None));
    };
    let have_splits = |inside: &&&Inside| {
        let parts = inside
            .folders
            .iter()
            .filter(|inner| part_of(&inner.name).is_some());
        inside.has_only_folders() && parts.count() > 1
    };
    if let Some(class) = all.iter().find(have_splits) {
        return Err(DataError::new(format!(
            "`{}` contains the folders {}: splits within a class",
            class.path.display(),
            some(&class.names())
        ))
        .key("data.path")
        .note("its images would be mixed and split again")
        .help("put the classes into the splits, as in `train/cat` and `valid/cat`"));
    }
    if !all.iter().all(|inside| inside.has_only_folders()) {
        return Ok(Found::Classes(None));
    }
    let is_same = first.names() == second.names() && first.folders.len() > 1;
    if is_same && all.iter().all(|inside| inside.names() == first.names()) {
        return Err(DataError::new(format!(
            "`{}` and `{}` contain the same folders {}, so the classes could be these or {}",
            first.path.display(),
            second.path.display(),
            some(&first.names()),
            some(&all.iter().map(|inside| inside.name.as_str()).collect::<Vec<_>>())
        ))
        .key("data.path")
        .help(format!(
            "if the inner ones are the classes, list the outer ones: `path = [\"{}\", \"{}\", …]`, or some in `valid_path`; otherwise move the images of each class into one folder",
            first.path.display(),
            second.path.display()
        )));
    }
    Ok(Found::Classes(Some(format!(
        "the images are in subfolders of the folders of `{}`: the class of an image is the outer folder, such as `{}` for `{}/{}`",
        folder.display(),
        first.name,
        first.name,
        first.folders[0].name
    ))))
}

/// Folders named like splits that are not splits, with the keys that list the intended ones.
fn refuse_splits(splits: &[&Inside], message: String) -> DataError {
    let error = DataError::new(message).key("data.path").note(
        "folders named like splits are read as splits if there are no other folders and each contains a folder of images for every class",
    );
    let named = splits.iter().filter(|inside| inside.has_only_folders());
    let mut keys: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for inside in named {
        let key = match inside.part() {
            Some(Part::Valid) => "valid_path",
            Some(Part::Test) => "test_path",
            _ => "path",
        };
        let path = format!("\"{}\"", inside.path.display());
        keys.entry(key).or_default().push(path);
    }
    let keys = keys.into_iter().map(|(key, paths)| match paths.as_slice() {
        [path] => format!("`{key} = {path}`"),
        _ => format!("`{key} = [{}]`", paths.join(", ")),
    });
    let keys: Vec<String> = keys.collect();
    match keys.len() {
            0 => error.help("put the images of each split into one folder per class; if the folders are classes, rename them"),
            _ => error.help(format!("list the ones to use: {}", keys.join(", "))),
    }
}

/// The splits, if each contains the same classes.
fn split_already(folder: &Path, all: &[&Inside], splits: &[&Inside]) -> Result<Found, DataError> {
    let names: Vec<&str> = splits.iter().map(|inside| inside.name.as_str()).collect();
    let shown = folder.display();
    let refuse = |message: String| Err(refuse_splits(splits, message));
    if let Some(without) = splits.iter().find(|inside| !inside.has_only_folders()) {
        return refuse(format!(
            "`{}` contains images without a class folder, but `{shown}` contains the folders {}",
            without.path.display(),
            some(&names)
        ));
    }
    if let Some(other) = all.iter().find(|inside| inside.part().is_none()) {
        return refuse(format!(
            "`{shown}` contains the folders of splits {}, but also `{}`",
            some(&names),
            other.name
        ));
    }
    let of = |part: Part| {
        splits
            .iter()
            .filter(move |inside| inside.part() == Some(part))
    };
    for part in [Part::Train, Part::Valid, Part::Test] {
        let same: Vec<&str> = of(part).map(|inside| inside.name.as_str()).collect();
        if same.len() > 1 {
            return refuse(format!(
                "`{shown}` contains {}, which are names of the same split",
                some(&same)
            ));
        }
    }
    let first = splits[0];
    for other in &splits[1..] {
        let lacks = |a: &Inside, b: &Inside| {
            let missing = a.names().into_iter().find(|name| !b.names().contains(name));
            missing.map(|name| (name.to_owned(), b.path.display().to_string()))
        };
        if let Some((name, lacking)) = lacks(first, other).or_else(|| lacks(other, first)) {
            return refuse(format!(
                "`{lacking}` has no class `{name}`, which other splits in `{shown}` have"
            ));
        }
    }
    let deeper = splits.iter().find_map(|inside| {
        let inner = inside.folders.iter().find(|inner| !inner.has_pictures)?;
        Some(inside.path.join(&inner.name))
    });
    if let Some(deeper) = deeper {
        return refuse(format!(
            "`{}` contains folders instead of images: `{shown}` is nested deeper than splits and classes",
            deeper.display()
        ));
    }
    let path = |part: Part| of(part).next().map(|inside| inside.path.clone());
    let train = path(Part::Train).unwrap_or_default();
    Ok(Found::Splits(Layout {
        train,
        valid: path(Part::Valid),
        test: path(Part::Test),
    }))
}

/// Refuses images with masks that are already split: they would be mixed and split again.
pub fn refuse_splits_of_masks(folder: &Path, masks: &Path) -> Result<(), DataError> {
    let mut splits = Vec::new();
    for entry in entries(folder)? {
        if matches!(entry.kind, EntryKind::Folder)
            && part_of(&entry.name).is_some()
            && disk::is_dir(&masks.join(&entry.name))
        {
            splits.push(entry.name);
        }
    }
    let train = splits
        .iter()
        .find(|name| part_of(name) == Some(Part::Train));
    let other = splits
        .iter()
        .find(|name| part_of(name) != Some(Part::Train));
    let (Some(train), Some(other)) = (train, other) else {
        return Ok(());
    };
    let key = match part_of(other) {
        Some(Part::Test) => "test",
        _ => "valid",
    };
    let at = |folder: &Path, name: &str| folder.join(name).display().to_string();
    Err(DataError::new(format!(
        "`{}` contains the folders of splits `{train}` and `{other}`, which would be mixed and split again",
        folder.display()
    ))
    .key("data.path")
    .help(format!(
        "list each: `path = \"{}\"`, `target_path = \"{}\"`, `{key}_path = \"{}\"`, `{key}_target_path = \"{}\"`",
        at(folder, train),
        at(masks, train),
        at(folder, other),
        at(masks, other)
    )))
}

fn inside(name: String, path: PathBuf) -> Result<Inside, DataError> {
    let mut found = Inside {
        name,
        path: path.clone(),
        has_pictures: false,
        folders: Vec::new(),
    };
    for entry in entries(&path)? {
        match entry.kind {
            EntryKind::Picture => found.has_pictures = true,
            EntryKind::Folder => {
                const DEEPEST: usize = 8;
                if let Some(has_pictures) = pictures_in(&entry.path, DEEPEST)? {
                    found.folders.push(Inner {
                        name: entry.name,
                        has_pictures,
                    });
                }
            }
            EntryKind::Other => {}
        }
    }
    Ok(found)
}

/// Whether a folder directly contains images; `None` if there are none below it either.
fn pictures_in(folder: &Path, deepest: usize) -> Result<Option<bool>, DataError> {
    let all = entries(folder)?;
    if all
        .iter()
        .any(|entry| matches!(entry.kind, EntryKind::Picture))
    {
        return Ok(Some(true));
    }
    for entry in all {
        let is_folder = matches!(entry.kind, EntryKind::Folder) && deepest > 0;
        if is_folder && pictures_in(&entry.path, deepest - 1)?.is_some() {
            return Ok(Some(false));
        }
    }
    Ok(None)
}

/// The first few names.
fn some(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<_> = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    match names.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
