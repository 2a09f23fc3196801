//! Folders of images, with classes or masks.
//!
//! `folder` knows names but no pixels; `decode` and `png` know the bytes of one file but no names.

pub(in crate::data) mod decode;
mod folder;
pub mod incoming;
pub mod layout;
mod png;

use std::collections::BTreeSet;
use std::path::Path;

use rayon::prelude::*;

use self::decode::Picture;
use self::folder::{Item, Label};
use super::{Watch, parts, unwritable};
use crate::data::DataError;
use crate::data::known::name_in;
use crate::data::records::{Column, ColumnKind, Part, Skipped, Writer};
use crate::diagnostic::{Reason, counted};
use crate::spec::data::{Channels, FilesSpec, Format, OnBadItem};

/// Bytes of records that are decoded before they are written.
const CHUNK_BYTES: usize = 32 << 20;
/// Maximum number of images that are decoded before they are written.
const CHUNK_ITEMS: usize = 1024;
/// Undecodable images that are listed.
const NAMED: usize = 5;

/// Reads the folders into the writer: columns `image` \[channels, height, width\] of bytes, and `class`, or
/// `mask` \[height, width\] of classes.
///
/// The value of a mask's pixel is its class, and 255 means ignored, which becomes -1. But if all masks contain only 0
/// and 255, these are the classes 0 and 1.
pub fn read(files: &FilesSpec, writer: &mut Writer, watch: Watch<'_>) -> Result<(), DataError> {
    let Format::ImageFolder {
        masks,
        size,
        channels,
    } = &files.format
    else {
        return Err(DataError::new("these files are not folders of images"));
    };
    if let Some([height, width]) = size
        && height.saturating_mul(*width) > decode::MAX_PIXELS
    {
        let message = format!("`size` is {height} x {width} pixels; the limit is 64 million");
        return Err(DataError::new(message).help("set a smaller `size` under `[data]`"));
    }
    let listing = folder::list(files, masks)?;
    writer.note_oddities(listing.oddity().into_iter().collect());
    let total = listing.parts.iter().map(|(_, items)| items.len() as u64);
    let total = total.sum();
    watch(0, total);
    let items = || listing.parts.iter().flat_map(|(_, items)| items);
    let decoder = Decoder {
        channels: *channels,
        size: *size,
        is_binary: listing.classes.is_none() && masks_are_binary(items()),
    };
    let mut reading = Reading {
        files,
        classes: listing.classes.as_deref(),
        decoder,
        first: None,
        bad: Vec::new(),
        num_bad: 0,
        done: 0,
        total,
    };
    for (part, items) in &listing.parts {
        writer.part(*part);
        reading
            .part(*part, items, writer, watch)
            .map_err(|error| error.or_key(part.key()))?;
    }
    if files.on_bad_item == OnBadItem::Refuse && reading.num_bad > 0 {
        return Err(reading.refusal());
    }
    if reading.first.is_some() {
        return Ok(());
    }
    let message = format!("none of the {total} images could be decoded");
    let mut error = DataError::new(message);
    error
        .notes
        .extend(reading.bad.into_iter().next().map(|(_, words)| words));
    Err(error.help("check that `path` is the folder of the images"))
}

/// Resolved files with the folders of splits listed, if their folder contains such, and a notice about it.
pub fn settle(mut files: FilesSpec) -> Result<(FilesSpec, Option<String>), DataError> {
    let Format::ImageFolder { masks, .. } = &files.format else {
        return Ok((files, None));
    };
    for (folder, masks) in files.path.iter().zip(&masks.path) {
        layout::refuse_splits_of_masks(Path::new(folder), Path::new(masks))?;
    }
    if !masks.path.is_empty() {
        return Ok((files, None));
    }
    let is_alone =
        files.path.len() == 1 && files.valid_path.is_empty() && files.test_path.is_empty();
    let mut notes = Vec::new();
    let mut splits = None;
    for (part, folder) in
        parts(&files).flat_map(|(part, paths)| paths.iter().map(move |p| (part, p)))
    {
        match layout::of(Path::new(folder)).map_err(|error| error.or_key(part.key()))? {
            layout::Found::Classes(note) => notes.extend(note),
            layout::Found::Splits(found) if is_alone => splits = Some(found),
            layout::Found::Splits(found) => {
                let error = DataError::new(format!(
                    "`{folder}` contains the folders of several splits, but `data` sets splits too"
                ));
                return Err(error.key(part.key()).help(format!(
                    "use the folder of one split, such as `{}`",
                    found.train.display()
                )));
            }
        }
    }
    if let Some(found) = splits {
        let name = |path: &Path| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        let mut named = vec![format!("`{}` is the train split", name(&found.train))];
        for (path, split, key) in [
            (&found.valid, "valid", &mut files.valid_path),
            (&found.test, "test", &mut files.test_path),
        ] {
            if let Some(path) = path {
                named.push(format!("`{}` the {split} split", name(path)));
                key.push(path.display().to_string());
            }
        }
        notes.push(format!(
            "`{}` is already split, and this is kept: {}",
            files.path[0],
            named.join(", ")
        ));
        files.path = vec![found.train.display().to_string()];
    }
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    Ok((files, note))
}

/// The name of each image within its folder, in the order of the records, without skipped ones.
pub fn names(files: &FilesSpec, skipped: &[Skipped]) -> Result<Vec<String>, DataError> {
    let Format::ImageFolder { masks, .. } = &files.format else {
        return Ok(Vec::new());
    };
    let skipped: BTreeSet<&str> = skipped.iter().map(|item| item.place.as_str()).collect();
    let folders: Vec<&Path> = parts(files)
        .flat_map(|(_, folders)| folders)
        .map(Path::new)
        .collect();
    let listed = folder::list(files, masks)?.parts.into_iter();
    let kept = listed
        .flat_map(|(_, items)| items)
        .filter(|item| !skipped.contains(place(&item.path).as_str()));
    let name = |item: Item| {
        let around = folders.iter().find(|folder| item.path.starts_with(folder));
        name_in(around.copied().unwrap_or(Path::new("")), &item.path)
    };
    Ok(kept.map(name).collect())
}

/// The name of an image in messages.
fn place(path: &Path) -> String {
    format!("`{}`", path.display())
}

/// Whether masks contain only 0 and 255; undecodable ones are refused later, with their images.
fn masks_are_binary<'a>(items: impl Iterator<Item = &'a Item>) -> bool {
    let paths = |item: &'a Item| match &item.label {
        Label::Mask(Some(path)) => Some(path.as_path()),
        _ => None,
    };
    let mut paths = items.filter_map(paths);
    loop {
        // The first few masks usually decide it.
        let chunk: Vec<&Path> = paths.by_ref().take(64).collect();
        let is_binary = |path: &&Path| match decode::mask(path) {
            Ok(mask) => mask.pixels.iter().all(|value| matches!(value, 0 | 255)),
            Err(_) => true,
        };
        if chunk.is_empty() {
            return true;
        }
        if !chunk.par_iter().all(is_binary) {
            return false;
        }
    }
}

/// How a file becomes a record.
struct Decoder {
    channels: Channels,
    size: Option<[usize; 2]>,
    is_binary: bool,
}

/// A record, and the size of the picture in it.
struct Decoded {
    size: [usize; 2],
    record: Vec<u8>,
}

impl Decoder {
    /// The record of an item, or what is wrong with it.
    fn decode(&self, item: &Item) -> Result<Decoded, Reason> {
        let picture = decode::picture(&item.path, self.channels)?;
        let mask = match &item.label {
            Label::Class(_) => None,
            Label::Mask(None) => return Err("has no mask of the same name".into()),
            Label::Mask(Some(path)) => Some(self.mask(path, &picture)?),
        };
        let (picture, mask) = match self.size {
            Some(size) => (
                picture.resized(size, self.channels),
                mask.map(|mask| mask.picked(size)),
            ),
            None => (picture, mask),
        };
        let mut record = picture.pixels;
        match (&item.label, mask) {
            (Label::Class(class), _) => record.extend(class.to_le_bytes()),
            (_, Some(mask)) => {
                let classes = mask.pixels.iter().map(|value| self.class_of(*value));
                record.extend(classes.flat_map(i32::to_le_bytes));
            }
            (_, None) => {}
        }
        Ok(Decoded {
            size: picture.size,
            record,
        })
    }

    fn mask(&self, path: &Path, picture: &Picture) -> Result<Picture, Reason> {
        let in_mask = |reason: Reason| Reason(format!("its mask `{}` {reason}", path.display()));
        let mask = decode::mask(path).map_err(in_mask)?;
        if mask.size != picture.size {
            let ([height, width], [of_height, of_width]) = (mask.size, picture.size);
            return Err(in_mask(Reason(format!(
                "has {height} x {width} pixels, but the image has {of_height} x {of_width}"
            ))));
        }
        Ok(mask)
    }

    fn class_of(&self, value: u8) -> i32 {
        match (self.is_binary, value) {
            (true, _) => i32::from(value != 0),
            (false, 255) => -1,
            (false, _) => i32::from(value),
        }
    }
}

/// The state of reading.
struct Reading<'a> {
    files: &'a FilesSpec,
    classes: Option<&'a [String]>,
    decoder: Decoder,
    /// The common size of the images, with the one that determined it.
    first: Option<([usize; 2], &'a Path)>,
    /// What is wrong with the first undecodable images, and which part they belong to.
    bad: Vec<(Part, String)>,
    num_bad: usize,
    done: u64,
    total: u64,
}

impl<'a> Reading<'a> {
    fn part(
        &mut self,
        part: Part,
        items: &'a [Item],
        writer: &mut Writer,
        watch: Watch<'_>,
    ) -> Result<(), DataError> {
        let mut rest = items;
        while !rest.is_empty() {
            // The first image separately, since it determines the size of the others.
            let num = match self.first {
                Some(([height, width], _)) => CHUNK_BYTES / (4 * height * width),
                None => 1,
            };
            let (chunk, later) = rest.split_at(num.clamp(1, CHUNK_ITEMS).min(rest.len()));
            let expected = self.first.map(|(size, _)| size);
            let decode = |item| {
                let mut decoded = self.decoder.decode(item)?;
                // It will be refused, and until then a chunk of such images may not fit into memory.
                if expected.is_some_and(|size| size != decoded.size) {
                    decoded.record = Vec::new();
                }
                Ok(decoded)
            };
            let decoded: Vec<Result<Decoded, Reason>> = chunk.par_iter().map(decode).collect();
            for (item, decoded) in chunk.iter().zip(decoded) {
                match decoded {
                    Ok(decoded) => self.push(item, &decoded, writer)?,
                    Err(Reason(reason)) => {
                        let place = place(&item.path);
                        let bad = Skipped { place, reason };
                        self.num_bad += 1;
                        if self.bad.len() < NAMED {
                            self.bad.push((part, bad.show()));
                        }
                        // Otherwise all of them are refused together, at the end.
                        if self.files.on_bad_item == OnBadItem::Skip {
                            writer.skip(bad);
                        }
                    }
                }
            }
            rest = later;
            self.done += chunk.len() as u64;
            watch(self.done, self.total);
        }
        Ok(())
    }

    /// All undecodable images, listing the first of them.
    fn refusal(self) -> DataError {
        let mut bad = self.bad.into_iter();
        let (part, first) = bad.next().unwrap_or((Part::Train, String::new()));
        let them = if self.num_bad == 1 { "it" } else { "them" };
        let error = match self.num_bad {
            1 => DataError::new(first),
            num => {
                let message = format!(
                    "{num} of {} cannot be decoded",
                    counted(self.total as usize, "image")
                );
                let error = DataError::new(message).note(first);
                let error = bad.fold(error, |error, (_, words)| error.note(words));
                match num.saturating_sub(NAMED) {
                    0 => error,
                    more => error.note(format!("and {more} more")),
                }
            }
        };
        error
            .key(part.key())
            .help(format!("fix or remove {them}, or set `on_bad_item = \"skip\"` under `[data]` to skip such items"))
    }

    fn push(
        &mut self,
        item: &'a Item,
        decoded: &Decoded,
        writer: &mut Writer,
    ) -> Result<(), DataError> {
        let (size, first) = *self.first.get_or_insert_with(|| {
            writer.begin(self.decoder.columns(decoded.size, self.classes));
            (decoded.size, &item.path)
        });
        if decoded.size != size {
            let [height, width] = decoded.size;
            let [first_height, first_width] = size;
            return Err(DataError::new(format!(
                "`{}` has {height} x {width} pixels (height x width), but `{}` has {first_height} x {first_width}",
                item.path.display(),
                first.display()
            ))
            .help(format!(
                "set `size = [{first_height}, {first_width}]` under `[data]` to resize all images to one size"
            )));
        }
        writer.push(&decoded.record).map_err(|e| unwritable(&e))
    }
}

impl Decoder {
    fn columns(&self, [height, width]: [usize; 2], classes: Option<&[String]>) -> Vec<Column> {
        let image = Column {
            name: "image".into(),
            kind: ColumnKind::Bytes,
            shape: vec![decode::num_channels(self.channels), height, width],
        };
        let target = match classes {
            Some(names) => {
                let names = names.to_vec();
                Column::scalar("class", ColumnKind::Categories { names })
            }
            None => Column {
                name: "mask".into(),
                kind: ColumnKind::Whole,
                shape: vec![height, width],
            },
        };
        vec![image, target]
    }
}

#[cfg(test)]
mod tests;
