//! Information about single items: their place in the files, the names of their targets, and their images.

use std::cell::OnceCell;
use std::path::Path;

use super::encode::{self, InputEncoder, TargetEncoder, Unit};
use super::picture::{Picture, data_url, png, png_of_mask};
use super::read::{images, parts};
use super::records::{Column, ColumnKind};
use super::serve::{Set, Split};
use super::{DataPlan, Dataset};
use crate::spec::data::{FilesSpec, Format};

/// The source places of the items of a split.
pub struct Places<'a> {
    plan: &'a DataPlan,
    split: &'a Split,
    /// The image name of each record, if known; listed on first use.
    pictures: OnceCell<Vec<String>>,
    /// The names of nodes, if items are pairs of them; found on first use.
    names: OnceCell<Vec<String>>,
}

impl<'a> Places<'a> {
    /// The places of a split.
    pub fn new(plan: &'a DataPlan, split: &'a Split) -> Self {
        Self {
            plan,
            split,
            pictures: OnceCell::new(),
            names: OnceCell::new(),
        }
    }

    /// As text: `cats/7.png`, `row 18 of iris.csv`, `item 17 of digits`. For a window, the row of its target. Rows are
    /// counted from 1, items from 0.
    pub fn of(&self, item: usize) -> String {
        let Some(row) = self.split.row(item) else {
            return format!("item {item}");
        };
        let Dataset::Files { files, .. } = &self.plan.dataset else {
            return format!("item {row} of {}", self.plan.dataset.name());
        };
        if let Some(pairs) = &self.split.set().pairs {
            let names = self.names.get_or_init(|| pairs.names.all());
            return pairs.show(names, row);
        }
        let found = if is_of_pictures(files) {
            self.picture(files, row)
        } else {
            self.in_file(files, row)
        };
        found.unwrap_or_else(|| format!("item {row} of the data"))
    }

    /// Folders of images are listed again, since records do not contain names.
    fn picture(&self, files: &FilesSpec, row: usize) -> Option<String> {
        let records = &self.split.set().records;
        let listed = self.pictures.get_or_init(|| {
            let names = images::names(files, &records.header.skipped);
            let names = names.unwrap_or_default();
            // Otherwise files were added or removed since they were read.
            if names.len() == records.len() {
                names
            } else {
                Vec::new()
            }
        });
        listed.get(row).cloned()
    }

    fn in_file(&self, files: &FilesSpec, row: usize) -> Option<String> {
        let records = &self.split.set().records;
        let header = &records.header;
        let paths: Vec<&String> = parts(files).flat_map(|(_, paths)| paths).collect();
        // Files without records have no place.
        if paths.len() != header.files.len() {
            return None;
        }
        let file = records.file_of(row).checked_sub(1)?;
        let name = Path::new(paths[file]).file_name()?.to_string_lossy();
        let within = records.number_in_file(row);
        let what = match files.format {
            Format::Csv { .. } | Format::JsonLines | Format::Parquet => {
                format!("row {}", within + 1)
            }
            _ => format!("item {within}"),
        };
        Some(format!("{what} of {name}"))
    }
}

fn is_of_pictures(files: &FilesSpec) -> bool {
    matches!(files.format, Format::ImageFolder { .. })
}

impl Column {
    /// The name of a class, if it has one, or its number.
    pub fn class_name(&self, class: usize) -> String {
        match &self.kind {
            ColumnKind::Categories { names } => names.get(class).cloned().unwrap_or_default(),
            _ => class.to_string(),
        }
    }
}

impl Set {
    /// The names of the parts of a target: each class, each label, each number, or each token.
    pub fn target_names(&self) -> Vec<String> {
        let columns = self.records.columns();
        let of_columns = |at: &mut dyn Iterator<Item = usize>| -> Vec<String> {
            at.flat_map(|at| columns[at].value_names()).collect()
        };
        match &self.encoder.target {
            TargetEncoder::None => Vec::new(),
            TargetEncoder::Class {
                column,
                num_classes,
            }
            | TargetEncoder::Classes {
                column,
                num_classes,
                ..
            } => (0..*num_classes)
                .map(|class| columns[*column].class_name(class))
                .collect(),
            TargetEncoder::Labels { columns, .. } => of_columns(&mut columns.iter().copied()),
            TargetEncoder::Values { columns, .. } => {
                of_columns(&mut columns.iter().map(|(column, _)| *column))
            }
            TargetEncoder::NextTokens | TargetEncoder::HiddenTokens { .. } => self.token_names(),
        }
    }

    fn token_names(&self) -> Vec<String> {
        let Some(tokenizer) = self.encoder.input.tokenizer() else {
            return Vec::new();
        };
        let name = |token: i32| match tokenizer.decode(&[token]) {
            // Padding, unknown tokens, and parts of a character.
            text if text.is_empty() || text.contains('\u{fffd}') => format!("token {token}"),
            text => text,
        };
        (0..tokenizer.vocabulary() as i32).map(name).collect()
    }

    /// What brings each number of a target to the units of the data; none if targets are not numbers.
    pub fn target_units(&self) -> Vec<Unit> {
        self.units_of(&self.encoder.target)
    }

    /// The same for the targets of `[[losses]]` that are other columns.
    pub fn more_units(&self) -> Vec<Vec<Unit>> {
        let more = self.encoder.more_targets.iter();
        more.map(|target| self.units_of(target)).collect()
    }

    fn units_of(&self, target: &TargetEncoder) -> Vec<Unit> {
        target.units(self.records.columns())
    }
}

impl TargetEncoder {
    /// What brings each number of a target to the units of the data; none if targets are not numbers.
    pub fn units(&self, all: &[Column]) -> Vec<Unit> {
        let TargetEncoder::Values {
            columns, nonlinear, ..
        } = self
        else {
            return Vec::new();
        };
        let mut nonlinear = nonlinear.iter();
        let of_column = |(column, scaling): &(usize, Vec<encode::Scaling>)| -> Vec<Unit> {
            let num = all.get(*column).map_or(1, Column::len);
            let unit = |at| Unit {
                scaling: encode::of(scaling, at),
                nonlinear: nonlinear.next().cloned(),
            };
            (0..num).map(unit).collect()
        };
        columns.iter().flat_map(of_column).collect()
    }
}

impl Column {
    /// A name for each of its values.
    fn value_names(&self) -> Vec<String> {
        match self.len() {
            1 => vec![self.name.clone()],
            num => (0..num).map(|at| format!("{}[{at}]", self.name)).collect(),
        }
    }
}

/// How the images of a data set are shown.
pub struct Pictures<'a> {
    set: &'a Set,
    column: usize,
    /// Channels (1 or 3), height and width.
    pub shape: [usize; 3],
    /// The values of black and white.
    extent: (f64, f64),
}

impl<'a> Pictures<'a> {
    /// `None` if items are not images.
    pub fn of(set: &'a Set) -> Option<Self> {
        let InputEncoder::Array { column, shape, .. } = &set.encoder.input else {
            return None;
        };
        let &[channels @ (1 | 3), height, width] = shape.as_slice() else {
            return None;
        };
        let extent = set.records.header.extents[*column];
        let is_bytes = set.records.columns()[*column].kind == ColumnKind::Bytes;
        Some(Self {
            set,
            column: *column,
            shape: [channels, height, width],
            extent: match (is_bytes, extent.min, extent.max) {
                // Embedded images may not reach 255.
                (true, _, Some(max)) => (0.0, max.max(1.0)),
                (false, Some(min), Some(max)) if max > min => (min, max),
                _ => (0.0, 1.0),
            },
        })
    }

    /// A value of the data as a shade.
    pub fn shade(&self, value: f64) -> u8 {
        let (black, white) = self.extent;
        let part = (value - black) / (white - black);
        (part * 255.0).round().clamp(0.0, 255.0) as u8
    }

    /// The image of a record as in the data, at most `side` pixels high and wide: a PNG as a `data:` URL.
    pub fn thumbnail(&self, row: usize, side: usize) -> Option<String> {
        let mut pixels = Vec::with_capacity(self.shape.iter().product());
        let see = |value| pixels.push(self.shade(value));
        self.set.records.numbers(row, self.column, see);
        self.small(&pixels, side)
    }

    /// The same for values as the network takes them or returns them, such as those of an autoencoder.
    pub fn of_encoded(&self, values: &[f32], side: usize) -> Option<String> {
        let scaling = self.set.encoder.input.array_scaling()?;
        let values = values.iter().enumerate();
        let pixels: Vec<u8> = values
            .map(|(at, value)| self.shade(scaling.at(at).undo(f64::from(*value))))
            .collect();
        self.small(&pixels, side)
    }

    /// Several images as the network returns them in one, in rows of so many: a PNG.
    pub fn sheet(&self, items: &[Vec<f32>], side: usize, num_columns: usize) -> Option<Vec<u8>> {
        let scaling = self.set.encoder.input.array_scaling()?;
        let size: usize = self.shape.iter().product();
        let mut shape = None;
        let mut tiles = Vec::with_capacity(items.len());
        for values in items.iter().filter(|values| values.len() == size) {
            let shade =
                |(at, value): (usize, &f32)| self.shade(scaling.at(at).undo(f64::from(*value)));
            let pixels: Vec<u8> = values.iter().enumerate().map(shade).collect();
            let (pixels, reduced) = reduced(&pixels, self.shape, side);
            shape = Some(reduced);
            tiles.push(pixels);
        }
        let (pixels, shape) = arranged(&tiles, shape?, num_columns);
        png(&Picture {
            caption: String::new(),
            shape,
            pixels,
            mask: None,
        })
    }

    fn small(&self, pixels: &[u8], side: usize) -> Option<String> {
        if pixels.len() != self.shape.iter().product::<usize>() {
            return None;
        }
        let (pixels, shape) = reduced(pixels, self.shape, side);
        let picture = Picture {
            caption: String::new(),
            shape,
            pixels,
            mask: None,
        };
        Some(data_url(&png(&picture)?))
    }
}

/// A class for each pixel, at most `side` pixels high and wide: a PNG as a `data:` URL. Of several pixels in the place of
/// one, that in their middle is shown, since classes have no mean.
pub fn small_mask(mask: &[i32], [height, width]: [usize; 2], side: usize) -> Option<String> {
    let longest = height.max(width);
    if longest == 0 || mask.len() != height * width {
        return None;
    }
    let to = |from: usize| (from * side.min(longest) / longest).max(1);
    let (new_height, new_width) = (to(height), to(width));
    let middle = |at: usize, new: usize, old: usize| (2 * at + 1) * old / (2 * new);
    let rows = (0..new_height).map(|y| middle(y, new_height, height) * width);
    let pixels =
        rows.flat_map(|row| (0..new_width).map(move |x| mask[row + middle(x, new_width, width)]));
    let pixels: Vec<i32> = pixels.collect();
    Some(data_url(&png_of_mask(&pixels, [new_height, new_width])?))
}

/// Images of one shape in rows, with a gray line between them.
fn arranged(
    tiles: &[Vec<u8>],
    [channels, height, width]: [usize; 3],
    num_columns: usize,
) -> (Vec<u8>, [usize; 3]) {
    const GRAY: u8 = 128;
    let columns = num_columns.min(tiles.len()).max(1);
    let rows = tiles.len().div_ceil(columns);
    let (all_height, all_width) = (rows * (height + 1) - 1, columns * (width + 1) - 1);
    let mut pixels = vec![GRAY; channels * all_height * all_width];
    for (number, tile) in tiles.iter().enumerate() {
        let (top, left) = (
            number / columns * (height + 1),
            number % columns * (width + 1),
        );
        for (line, values) in tile.chunks_exact(width.max(1)).enumerate() {
            let (channel, y) = (line / height, line % height);
            let at = (channel * all_height + top + y) * all_width + left;
            pixels[at..at + width].copy_from_slice(values);
        }
    }
    (pixels, [channels, all_height, all_width])
}

/// An image, downscaled if it is larger: each pixel is the mean of the pixels that it replaces.
fn reduced(pixels: &[u8], shape: [usize; 3], side: usize) -> (Vec<u8>, [usize; 3]) {
    let [channels, height, width] = shape;
    let longest = height.max(width);
    if longest <= side {
        return (pixels.to_vec(), shape);
    }
    let to = |from: usize| (from * side / longest).max(1);
    let (new_height, new_width) = (to(height), to(width));
    let mut smaller = Vec::with_capacity(channels * new_height * new_width);
    for channel in pixels.chunks_exact(height * width) {
        for y in 0..new_height {
            let rows = y * height / new_height..(y + 1) * height / new_height;
            for x in 0..new_width {
                let columns = x * width / new_width..(x + 1) * width / new_width;
                let num = (rows.len() * columns.len()) as u32;
                let row = |y: usize| &channel[y * width..][columns.clone()];
                let sum: u32 = rows.clone().flat_map(row).map(|p| u32::from(*p)).sum();
                smaller.push(((sum + num / 2) / num) as u8);
            }
        }
    }
    (smaller, [channels, new_height, new_width])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pictures_are_made_smaller_by_means() {
        let pixels: Vec<u8> = (0..2 * 4 * 6).collect();
        assert_eq!(reduced(&pixels, [2, 4, 6], 6), (pixels.clone(), [2, 4, 6]));
        let (smaller, shape) = reduced(&pixels, [2, 4, 6], 3);
        assert_eq!(shape, [2, 2, 3]);
        // (0 + 1 + 6 + 7) / 4 = 3.5
        assert_eq!(smaller, [4, 6, 8, 16, 18, 20, 28, 30, 32, 40, 42, 44]);
        let (line, shape) = reduced(&[10; 200], [1, 200, 1], 64);
        assert_eq!((line, shape), (vec![10; 64], [1, 64, 1]));
    }

    #[test]
    fn pictures_are_arranged_in_rows() {
        let tiles: Vec<Vec<u8>> = (0..3).map(|tile| vec![tile, 10 + tile]).collect();
        let (pixels, shape) = arranged(&tiles, [2, 1, 1], 2);
        assert_eq!(shape, [2, 3, 3]);
        let lines = [
            [0, 128, 1, 128, 128, 128, 2, 128, 128],
            [10, 128, 11, 128, 128, 128, 12, 128, 128],
        ];
        assert_eq!(pixels, lines.concat());
    }

    #[test]
    fn large_masks_are_made_smaller_by_their_middles() {
        let mask: Vec<i32> = (0..4 * 6).collect();
        let same = |pixels: &[i32], size| png_of_mask(pixels, size).map(|png| data_url(&png));
        assert_eq!(small_mask(&mask, [4, 6], 6), same(&mask, [4, 6]));
        assert_eq!(
            small_mask(&mask, [4, 6], 3),
            same(&[7, 9, 11, 19, 21, 23], [2, 3])
        );
        assert_eq!(small_mask(&mask, [4, 5], 3), None);
        assert_eq!(small_mask(&[], [0, 0], 3), None);
        assert!(small_mask(&[3; 200], [200, 1], 64).is_some());
    }
}
