//! Which images there are, with their classes or masks, by names only.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::data::DataError;
use crate::data::oddity::Oddity;
use crate::data::read::{self, parts};
use crate::data::records::Part;
use crate::diagnostic::counted;
use crate::disk;
use crate::spec::data::{FilesSpec, Targets};

/// A picture.
#[derive(Debug)]
pub struct Item {
    /// Its file.
    pub path: PathBuf,
    /// Its content.
    pub label: Label,
}

/// The content of an image.
#[derive(Debug)]
pub enum Label {
    /// The index of its folder's name in [`Listing::classes`].
    Class(i32),
    /// The file of its mask, if there is one.
    Mask(Option<PathBuf>),
}

/// All images in order.
#[derive(Debug)]
pub struct Listing {
    /// The images of each part.
    pub parts: Vec<(Part, Vec<Item>)>,
    /// The names of the classes; `None` if images have masks.
    pub classes: Option<Vec<String>>,
    /// How many images there are in formats that are not read, by extension.
    pub other_formats: BTreeMap<String, usize>,
}

impl Listing {
    /// What is left out.
    pub fn oddity(&self) -> Option<Oddity> {
        let num: usize = self.other_formats.values().sum();
        (num > 0).then(|| {
            let images = counted(num, "image");
            let formats = show_formats(&self.other_formats);
            let message = format!("{images} in other formats are left out ({formats})");
            Oddity::new(Vec::new(), message)
                .note("images are read from .png, .jpg and .jpeg files")
                .help("convert them, such as to .png, or move them elsewhere if they are not items")
        })
    }
}

/// Formats with their number of images.
pub(super) fn show_formats(formats: &BTreeMap<String, usize>) -> String {
    let each = formats.iter().map(|(name, num)| format!("{num} .{name}"));
    each.collect::<Vec<_>>().join(", ")
}

/// Lists the images: folders in the given order, their content by name.
pub fn list(files: &FilesSpec, masks: &Targets) -> Result<Listing, DataError> {
    let mut paths = [&masks.path, &masks.valid_path, &masks.test_path].into_iter();
    if paths.all(|paths| paths.is_empty()) {
        with_classes(files)
    } else {
        with_masks(files, masks)
    }
}

fn with_classes(files: &FilesSpec) -> Result<Listing, DataError> {
    let mut classes: Vec<String> = Vec::new();
    let mut listed = Vec::new();
    let mut other_formats = BTreeMap::new();
    for (part, folders) in parts(files) {
        let mut found: Vec<(String, Walked)> = Vec::new();
        for folder in folders {
            let of_key = |error: DataError| error.or_key(part.key());
            for (name, path) in class_folders(Path::new(folder)).map_err(of_key)? {
                found.push((name, walk(&path, &[]).map_err(of_key)?));
            }
        }
        if part == Part::Train {
            let names: BTreeSet<&String> = found.iter().map(|(name, _)| name).collect();
            for name in &names {
                let mut of_name = found.iter().filter(|(other, _)| other == *name);
                if let Some((_, walked)) = of_name.clone().next()
                    && of_name.all(|(_, walked)| walked.pictures.is_empty())
                {
                    let error = no_picture(walked).note("each folder is a class");
                    return Err(if walked.other_formats.is_empty() {
                        error.help("move the folder elsewhere if it is not a class")
                    } else {
                        error
                    });
                }
            }
            classes = names.into_iter().cloned().collect();
            if let [only] = classes.as_slice() {
                return Err(DataError::new(format!(
                    "there is only one class: `{only}` is the only folder in {}",
                    show(folders)
                ))
                .help("`path` must be the folder that contains the class folders; for masks, set `target_path`"));
            }
        }
        let mut items = Vec::new();
        for (name, walked) in &found {
            walked.add_formats(&mut other_formats);
            let Ok(class) = classes.binary_search(name) else {
                return Err(DataError::new(format!(
                    "`{}` is a class that is not in `path`",
                    walked.folder.display()
                ))
                .key(part.key())
                .note(format!("the classes of `path` are {}", some_of(&classes)))
                .help("rename the folder to one of these, or add such images to `path`"));
            };
            items.extend(walked.pictures.iter().map(|path| Item {
                path: path.clone(),
                label: Label::Class(class as i32),
            }));
        }
        if let (true, Some((_, walked))) = (items.is_empty(), found.first()) {
            return Err(no_picture(walked).key(part.key()));
        }
        listed.push((part, items));
    }
    Ok(Listing {
        parts: listed,
        classes: Some(classes),
        other_formats,
    })
}

/// The folders in a folder by name; an image next to them has no class.
fn class_folders(folder: &Path) -> Result<Vec<(String, PathBuf)>, DataError> {
    let mut classes = Vec::new();
    for Entry { path, name, kind } in entries(folder)? {
        match kind {
            EntryKind::Picture => {
                return Err(DataError::new(format!(
                    "`{}` has no class: it is next to the class folders, not in one",
                    path.display()
                ))
                .help(format!("`{}` must contain one folder of images per class; if the images have masks, set `target_path`", folder.display())));
            }
            EntryKind::Folder => classes.push((name, path)),
            EntryKind::Other => {}
        }
    }
    if classes.is_empty() {
        Err(DataError::new(format!(
            "`{}` contains no folders; it must contain one folder of images per class",
            folder.display()
        ))
        .help("for images with masks, set `target_path`"))
    } else {
        Ok(classes)
    }
}

fn with_masks(files: &FilesSpec, masks: &Targets) -> Result<Listing, DataError> {
    let mut listed = Vec::new();
    let mut other_formats = BTreeMap::new();
    for (part, key, target_key, folders, masks) in [
        (Part::Train, "path", "target_path", &files.path, &masks.path),
        (
            Part::Valid,
            "valid_path",
            "valid_target_path",
            &files.valid_path,
            &masks.valid_path,
        ),
        (
            Part::Test,
            "test_path",
            "test_target_path",
            &files.test_path,
            &masks.test_path,
        ),
    ] {
        if folders.len() != masks.len() {
            let numbers = (
                folders_in_words(folders.len()),
                folders_in_words(masks.len()),
            );
            return Err(DataError::new(format!(
                "`{key}` lists {}, but `{target_key}` lists {}",
                numbers.0, numbers.1
            ))
            .help(format!(
                "list one folder of masks in `{target_key}` for each folder of images, in the same order"
            )));
        }
        if folders.is_empty() {
            continue;
        }
        let mask_folders: Vec<&Path> = masks.iter().map(Path::new).collect();
        let mut items = Vec::new();
        for (folder, masks) in folders.iter().map(Path::new).zip(&mask_folders) {
            // Masks may be in a folder among the images, and are not images themselves.
            let walked = walk(folder, &mask_folders).map_err(|error| error.or_key(part.key()))?;
            if walked.pictures.is_empty() {
                return Err(no_picture(&walked).key(part.key()));
            }
            walked.add_formats(&mut other_formats);
            let of_masks = |error: DataError| error.or_key(part.target_key());
            let masks = walk(masks, &[])
                .and_then(|walked| by_name(&walked))
                .map_err(of_masks)?;
            items.extend(walked.pictures.into_iter().map(|path| {
                let mask = masks.get(&within(folder, &path)).cloned();
                let label = Label::Mask(mask);
                Item { path, label }
            }));
        }
        listed.push((part, items));
    }
    Ok(Listing {
        parts: listed,
        classes: None,
        other_formats,
    })
}

/// Masks by their names in the folder, without extensions.
fn by_name(walked: &Walked) -> Result<BTreeMap<PathBuf, PathBuf>, DataError> {
    if walked.pictures.is_empty() {
        return Err(no_picture(walked).note("it must contain the masks"));
    }
    let mut masks = BTreeMap::new();
    for path in &walked.pictures {
        let name = within(&walked.folder, path);
        if let Some(other) = masks.insert(name, path.clone()) {
            return Err(DataError::new(format!(
                "`{}` and `{}` are masks of the same image",
                other.display(),
                path.display()
            ))
            .help("move one of them elsewhere"));
        }
    }
    Ok(masks)
}

/// A path relative to a folder, without extension.
fn within(folder: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(folder).unwrap_or(path).with_extension("")
}

/// The images anywhere in a folder.
#[derive(Debug)]
struct Walked {
    folder: PathBuf,
    pictures: Vec<PathBuf>,
    /// Files that are not images by name.
    num_others: usize,
    /// Those of them that are images in a format that is not read, by extension.
    other_formats: BTreeMap<String, usize>,
}

impl Walked {
    fn add_formats(&self, to: &mut BTreeMap<String, usize>) {
        for (format, num) in &self.other_formats {
            *to.entry(format.clone()).or_default() += num;
        }
    }
}

fn walk(folder: &Path, without: &[&Path]) -> Result<Walked, DataError> {
    let mut walked = Walked {
        folder: folder.to_owned(),
        pictures: Vec::new(),
        num_others: 0,
        other_formats: BTreeMap::new(),
    };
    read::walk::walk(folder, without, &mut |path| {
        if is_picture(&path) {
            walked.pictures.push(path);
        } else {
            walked.num_others += 1;
            if let Some(format) = other_format(&path) {
                *walked.other_formats.entry(format).or_default() += 1;
            }
        }
    })?;
    Ok(walked)
}

/// An entry of a folder.
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) kind: EntryKind,
}

/// Its kind.
pub(super) enum EntryKind {
    Folder,
    Picture,
    Other,
}

/// The entries of a folder by name, except hidden ones.
pub(super) fn entries(folder: &Path) -> Result<Vec<Entry>, DataError> {
    if disk::is_file(folder) {
        return Err(
            DataError::new(format!("`{}` is a file, not a folder", folder.display()))
                .help("use the folder that contains the images"),
        );
    }
    let of_kind = |entry: read::walk::Entry| {
        let read::walk::Entry {
            path,
            name,
            is_folder,
        } = entry;
        let kind = match is_folder {
            true => EntryKind::Folder,
            false if is_picture(&path) => EntryKind::Picture,
            false => EntryKind::Other,
        };
        Entry { path, name, kind }
    };
    let entries = read::walk::entries(folder)?.into_iter();
    Ok(entries.map(of_kind).collect())
}

pub(super) fn is_picture(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let mut known = ["png", "jpg", "jpeg"].into_iter();
    known.any(|name| extension.eq_ignore_ascii_case(name))
}

/// The extension of an image in a format that is not read.
pub(super) fn other_format(path: &Path) -> Option<String> {
    const OTHERS: [&str; 12] = [
        "avif", "bmp", "dcm", "gif", "heic", "heif", "jp2", "jxl", "tga", "tif", "tiff", "webp",
    ];
    let extension = path.extension().and_then(OsStr::to_str)?;
    let extension = extension.to_ascii_lowercase();
    OTHERS.contains(&extension.as_str()).then_some(extension)
}

fn no_picture(walked: &Walked) -> DataError {
    let message = format!(
        "`{}` contains no images (.png, .jpg, .jpeg)",
        walked.folder.display()
    );
    let error = DataError::new(message);
    if !walked.other_formats.is_empty() {
        let formats = show_formats(&walked.other_formats);
        return error
            .note(format!("it contains images in other formats ({formats})"))
            .help("convert them, such as to .png");
    }
    match walked.num_others {
        0 => error,
        1 => error.note("it contains a file with another extension"),
        num => error.note(format!("it contains {num} files with other extensions")),
    }
}

fn folders_in_words(num: usize) -> String {
    match num {
        0 => "none".into(),
        1 => "one folder".into(),
        num => format!("{num} folders"),
    }
}

fn show(folders: &[String]) -> String {
    let quoted: Vec<String> = folders.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// The first names of a list that may be long.
fn some_of(names: &[String]) -> String {
    let more = names.len().saturating_sub(10);
    let shown = show(&names[..names.len() - more]);
    match more {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
