//! Folders of images: classes by folder name, shapes by the headers of some files.

use std::path::{Path, PathBuf};

use image::{ImageDecoder, ImageReader};

use super::look::{name_of, relative};
use super::{Found, Line};
use crate::data::DataError;
use crate::data::profile::{ColumnProfile, ValueProfile};
use crate::data::read::images::layout;
use crate::data::read::unreadable;
use crate::data::records::{Column, ColumnKind};
use crate::disk;
use crate::spec::data::DataKind;

/// Images whose headers are read.
const LOOKED_AT: usize = 256;
/// The size that images are resized to, if they differ or are large.
const SIDE: usize = 32;

/// A folder of images; `None` if there are none.
pub fn look(path: &Path, base: &Path) -> Result<Option<Found>, DataError> {
    let mut keys = Vec::new();
    let (mut folder, masks) = with_masks(path);
    if masks.is_none()
        && !sorted(&folder)?.iter().all(|path| disk::is_file(path))
        && let layout::Found::Splits(found) = layout::of(&folder)?
    {
        keys.extend(split_keys(&found, base)?);
        folder = found.train;
    }
    let mut pictures = Vec::new();
    let (mut classes, mut without) = (Vec::new(), Vec::new());
    match &masks {
        Some(masks) => {
            collect(&folder, &mut pictures)?;
            let written = relative(masks, base)?;
            let meaning =
                "the masks, with the names of their images: the value of a pixel is its class";
            keys.push(Line::text("target_path", &written, meaning));
        }
        None => {
            for inside in sorted(&folder)?
                .into_iter()
                .filter(|path| disk::is_dir(path))
            {
                let before = pictures.len();
                collect(&inside, &mut pictures)?;
                let num = (pictures.len() - before) as u64;
                match num {
                    0 => without.push(name_of(&inside)),
                    _ => classes.push((name_of(&inside), num)),
                }
            }
        }
    }
    if pictures.is_empty() {
        return Ok(None);
    }
    if masks.is_none() {
        check_classes(&folder, &classes, &without)?;
    }
    let shape = shape(&pictures, &mut keys);
    let column = |name: &str, kind, shape, values| ColumnProfile {
        column: Column {
            name: name.into(),
            kind,
            shape,
        },
        role: None,
        missing: 0,
        values,
        notes: Vec::new(),
    };
    let target = match masks {
        Some(_) => {
            let shape = shape[1..].to_vec();
            column("mask", ColumnKind::Bytes, shape, ValueProfile::Nothing)
        }
        None => {
            let names = classes.iter().map(|(name, _)| name.clone()).collect();
            let kind = ColumnKind::Categories { names };
            column("class", kind, Vec::new(), ValueProfile::Categories(classes))
        }
    };
    let image = column("image", ColumnKind::Bytes, shape, ValueProfile::Nothing);
    Ok(Some(Found {
        kind: DataKind::ImageFolder,
        path: relative(&folder, base)?,
        keys,
        said: Vec::new(),
        warnings: Vec::new(),
        num_items: pictures.len(),
        columns: vec![image, target],
    }))
}

/// The folder of the images, and that of their masks if a folder beside it or in it is named like one.
fn with_masks(path: &Path) -> (PathBuf, Option<PathBuf>) {
    let pairs = [("images", "masks"), ("image", "mask"), ("imgs", "masks")];
    let mut folder = path.to_owned();
    let mut masks = None;
    for (images, of) in pairs {
        let beside = path.with_file_name(of);
        if disk::is_dir(&path.join(images)) && disk::is_dir(&path.join(of)) {
            (folder, masks) = (path.join(images), Some(path.join(of)));
        } else if name_of(path) == images && disk::is_dir(&beside) {
            masks = Some(beside);
        }
    }
    (folder, masks)
}

/// The keys of the folders of held-out images.
fn split_keys(found: &layout::Layout, base: &Path) -> Result<Vec<Line>, DataError> {
    let mut keys = Vec::new();
    for (key, path, meaning) in [
        (
            "valid_path",
            &found.valid,
            "for comparing settings, as published",
        ),
        ("test_path", &found.test, "for the final evaluation only"),
    ] {
        if let Some(path) = path {
            keys.push(Line::text(key, &relative(path, base)?, meaning));
        }
    }
    Ok(keys)
}

/// Refuses folders of classes of which one has no images, or of which there is only one.
fn check_classes(
    folder: &Path,
    classes: &[(String, u64)],
    without: &[String],
) -> Result<(), DataError> {
    if let (Some(name), Some((class, _))) = (without.first(), classes.first()) {
        let message = format!(
            "`{}` is not a folder of images: its folder `{class}` contains images, but `{name}` does not",
            folder.display()
        );
        return Err(DataError::new(message)
            .note("a folder of images contains one folder per class, or the folders `images` and `masks`")
            .help("use the folder that contains the class folders, or a data file"));
    }
    if let [(only, num)] = classes {
        let message = format!(
            "`{}` contains images in only one folder, `{only}` with {num}: a single class leaves nothing to learn",
            folder.display()
        );
        return Err(DataError::new(message)
            .note("a folder of images contains one folder per class, or the folders `images` and `masks`")
            .help("use the folder that contains the class folders"));
    }
    Ok(())
}

/// The entries of a folder except hidden ones.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let entries = disk::read_dir(folder).map_err(|e| unreadable(folder, &e))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| !name_of(path).starts_with('.'));
    paths.sort();
    Ok(paths)
}

/// The images in a folder and its subfolders. Links are not followed, since they may form cycles.
fn collect(folder: &Path, pictures: &mut Vec<PathBuf>) -> Result<(), DataError> {
    for path in sorted(folder)? {
        if disk::is_dir(&path) {
            if !path.is_symlink() {
                collect(&path, pictures)?;
            }
            continue;
        }
        let extension = path.extension().map(|e| e.to_string_lossy().to_lowercase());
        if matches!(extension.as_deref(), Some("png" | "jpg" | "jpeg")) {
            pictures.push(path);
        }
    }
    Ok(())
}

/// The shape of the images, and the keys that it needs. An unreadable image is skipped here: the reader will report it.
fn shape(pictures: &[PathBuf], keys: &mut Vec<Line>) -> Vec<usize> {
    let step = pictures.len().div_ceil(LOOKED_AT);
    let heads = pictures.iter().step_by(step).filter_map(|path| {
        let reader = ImageReader::open(path).ok()?.with_guessed_format().ok()?;
        let decoder = reader.into_decoder().ok()?;
        Some((decoder.dimensions(), decoder.color_type().has_color()))
    });
    let heads: Vec<_> = heads.collect();
    let has_color = heads.is_empty() || heads.iter().any(|(_, has_color)| *has_color);
    let mut sizes: Vec<_> = heads.iter().map(|(size, _)| *size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let channels = if has_color {
        3
    } else {
        let meaning = "the images are grayscale";
        keys.push(Line::text("channels", "gray", meaning));
        1
    };
    let side = |side: u32| side as usize;
    let meaning = match sizes[..] {
        [(width, height)] if width.max(height) as usize <= 2 * SIDE => {
            return vec![channels, side(height), side(width)];
        }
        [(width, height)] => format!(
            "height and width that images of {height}x{width} are resized to, for a quick first run"
        ),
        _ => "height and width that all images are resized to, since their sizes differ".to_owned(),
    };
    keys.push(Line::new("size", format!("[{SIDE}, {SIDE}]"), meaning));
    vec![channels, SIDE, SIDE]
}
