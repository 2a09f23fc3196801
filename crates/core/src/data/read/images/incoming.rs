//! New images, with the size and the channels that a run was trained on.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::folder::{self, Item, Label};
use super::{CHUNK_BYTES, CHUNK_ITEMS, Decoder, masks_are_binary, place};
use crate::data::DataError;
use crate::data::encode::TargetEncoder;
use crate::data::incoming::{Id, Incoming, Origin, Raw, Take};
use crate::data::known::name_in;
use crate::data::read::walk;
use crate::data::records::{Column, ColumnKind, Skipped, Writer};
use crate::diagnostic::Reason;
use crate::disk;
use crate::spec::data::{Channels, FilesSpec, Format, Targets};

/// Reads a file, or all files of a folder in the order of their names.
pub(in crate::data) fn read(incoming: &Incoming<'_>, take: Take<'_>) -> Result<(), DataError> {
    let transforms = incoming.transforms;
    let Some((at, &[channels, height, width])) = transforms
        .array()
        .and_then(|(at, column)| Some((at, <&[usize; 3]>::try_from(&column.shape[..]).ok()?)))
    else {
        return Err(DataError::new("the run was not trained on images"));
    };
    let mut columns = transforms.columns.clone();
    if incoming.unit().is_some() || columns[at].kind != ColumnKind::Bytes {
        columns[at].kind = ColumnKind::Numbers;
    }
    let size = incoming.trained_on().and_then(|files| match &files.format {
        Format::ImageFolder { size, .. } => *size,
        _ => files.roles.image_of(&columns[at].name).map(|of| of.size),
    });
    let Found { items, left_out } = items(incoming)?;
    let expected = [height, width];
    let reading = Reading {
        incoming,
        at,
        expected,
        decoder: Decoder {
            channels: if channels == 1 {
                Channels::Gray
            } else {
                Channels::Rgb
            },
            size,
            is_binary: matches!(
                &transforms.target,
                TargetEncoder::Classes { num_classes: 2, .. }
            ) && masks_are_binary(items.iter()),
        },
        columns,
    };
    let num = (CHUNK_BYTES / (8 * channels * height * width).max(1)).clamp(1, CHUNK_ITEMS);
    let mut left_out = Some(left_out);
    for items in items.chunks(num) {
        take(Raw {
            left_out: left_out.take().unwrap_or_default(),
            ..reading.raw(items)
        })?;
    }
    Ok(())
}

/// The images of a folder, and those in formats that are not read.
#[derive(Default)]
struct Found {
    items: Vec<Item>,
    left_out: Vec<Skipped>,
}

impl Found {
    /// Adds a file if it is an image.
    fn add(&mut self, path: PathBuf, label: Label) {
        if folder::is_picture(&path) {
            self.items.push(Item { path, label });
        } else if let Some(format) = folder::other_format(&path) {
            self.left_out.push(Skipped {
                place: place(&path),
                reason: format!(
                    "is a .{format} file; images are read from .png, .jpg and .jpeg files"
                ),
            });
        }
    }
}

struct Reading<'a> {
    incoming: &'a Incoming<'a>,
    /// The column of the images.
    at: usize,
    expected: [usize; 2],
    decoder: Decoder,
    columns: Vec<Column>,
}

impl Reading<'_> {
    fn raw(&self, items: &[Item]) -> Raw {
        let decoded: Vec<Result<Vec<u8>, Reason>> =
            items.par_iter().map(|item| self.record(item)).collect();
        let mut writer = Writer::of_new_data();
        writer.begin(self.columns.clone());
        let (mut origins, mut bad) = (Vec::new(), Vec::new());
        for (item, decoded) in items.iter().zip(decoded) {
            match decoded {
                Ok(record) => {
                    // Writing to memory cannot fail.
                    let _ = writer.push(&record);
                    let path = self.incoming.path;
                    let folder = if disk::is_dir(path) {
                        path
                    } else {
                        path.parent().unwrap_or(Path::new(""))
                    };
                    origins.push(Origin {
                        id: Id::File(name_in(folder, &item.path)),
                        line: 0,
                        kept: Vec::new(),
                        group: None,
                        node: None,
                    });
                }
                Err(Reason(reason)) => {
                    let place = place(&item.path);
                    bad.push((origins.len(), Skipped { place, reason }));
                }
            }
        }
        Raw {
            records: writer.into_records(),
            origins,
            bad,
            left_out: Vec::new(),
            place: |shown, origin| match &origin.id {
                Id::File(name) => format!("`{name}` of `{shown}`"),
                Id::Row(_) => format!("`{shown}`"),
            },
        }
    }

    /// The record of an image. Its mask is zero if none is read.
    fn record(&self, item: &Item) -> Result<Vec<u8>, Reason> {
        let decoded = self.decoder.decode(item)?;
        if decoded.size != self.expected {
            let ([height, width], [of_height, of_width]) = (decoded.size, self.expected);
            return Err(Reason(format!(
                "has {height} x {width} pixels (height x width), but the network takes {of_height} x {of_width}"
            )));
        }
        let num_pixels = self.columns[self.at].len();
        let (pixels, target) = decoded.record.split_at(num_pixels);
        let mut record = Vec::new();
        for (at, column) in self.columns.iter().enumerate() {
            let len = column.len() * column.kind.size();
            if at == self.at {
                self.write_pixels(pixels, &mut record);
            } else if target.len() == len {
                record.extend(target);
            } else {
                record.resize(record.len() + len, 0);
            }
        }
        Ok(record)
    }

    fn write_pixels(&self, pixels: &[u8], record: &mut Vec<u8>) {
        if self.columns[self.at].kind == ColumnKind::Bytes {
            record.extend(pixels);
            return;
        }
        // White is 1 in units of the data.
        let unit = self.incoming.unit().unwrap_or(1.0);
        for pixel in pixels {
            let value = f64::from(*pixel) / 255.0 / unit;
            record.extend((value as f32).to_le_bytes());
        }
    }
}

/// The images with their classes, if these are read.
fn items(incoming: &Incoming<'_>) -> Result<Found, DataError> {
    let path = incoming.path;
    if disk::is_file(path) {
        if incoming.has_targets {
            return Err(DataError::new(format!(
                "`{}` is a single image without a class",
                path.display()
            ))
            .help("use a folder that contains a folder of images for each class"));
        }
        return Ok(Found {
            items: vec![Item {
                path: path.to_owned(),
                label: Label::Class(0),
            }],
            ..Found::default()
        });
    }
    if incoming.has_targets {
        return labelled(incoming);
    }
    let (mut found, mut num_files) = (Found::default(), 0);
    walk::walk(path, &[], &mut |path| {
        num_files += 1;
        found.add(path, Label::Class(0));
    })?;
    if found.items.is_empty() {
        let error = DataError::new(format!(
            "`{}` contains no images (.png, .jpg, .jpeg)",
            path.display()
        ));
        let error = match num_files {
            0 => error,
            num => error.note(format!(
                "it contains {} of other types",
                crate::diagnostic::counted(num, "file")
            )),
        };
        return Err(error.help("use an image or a folder of images"));
    }
    Ok(found)
}

/// Images in folders of their classes, or with masks.
fn labelled(incoming: &Incoming<'_>) -> Result<Found, DataError> {
    let transforms = incoming.transforms;
    let path = incoming.path.display().to_string();
    let mut files = FilesSpec::usual(crate::spec::data::DataKind::ImageFolder, path);
    let masks = Targets {
        path: incoming
            .targets
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
        ..Targets::default()
    };
    match &transforms.target {
        TargetEncoder::Classes { .. } if masks.path.is_empty() => {
            return Err(DataError::new("the folder of masks is unknown")
                .help("pass the folder of masks with `--targets FOLDER`"));
        }
        TargetEncoder::Classes { .. } => {
            let listed = folder::list(&files, &masks)?;
            let others = (!listed.other_formats.is_empty()).then(|| Skipped {
                place: place(incoming.path),
                reason: format!(
                    "has images in formats that are not read: {}",
                    folder::show_formats(&listed.other_formats)
                ),
            });
            return Ok(Found {
                left_out: others.into_iter().collect(),
                items: listed
                    .parts
                    .into_iter()
                    .flat_map(|(_, items)| items)
                    .collect(),
            });
        }
        TargetEncoder::None => {
            let mut found = Found::default();
            walk::walk(incoming.path, &[], &mut |path| {
                found.add(path, Label::Class(0));
            })?;
            return Ok(found);
        }
        _ => {}
    }
    let names = transforms.names().target_names();
    let mut found = Found::default();
    for entry in walk::entries(incoming.path)? {
        if !entry.is_folder {
            continue;
        }
        let Some(class) = names.iter().position(|name| *name == entry.name) else {
            return Err(DataError::new(format!(
                "`{}` is not the folder of a class that the run was trained on",
                entry.path.display()
            ))
            .note(format!(
                "the classes are {}",
                names
                    .iter()
                    .take(10)
                    .map(|name| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(", ")
            ))
            .help("rename the folder, or move it elsewhere"));
        };
        walk::walk(&entry.path, &[], &mut |path| {
            found.add(path, Label::Class(class as i32));
        })?;
    }
    files.path.clear();
    if found.items.is_empty() {
        return Err(DataError::new(format!(
            "`{}` contains no folders with images for the classes",
            incoming.path.display()
        ))
        .help("use a folder that contains a folder of images for each class"));
    }
    Ok(found)
}
