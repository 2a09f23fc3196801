//! The embedded data sets. `embedded/README.md` lists their sources and licenses.

use std::io::Read;

use super::graph::Edge;
use super::plan::{InputPlan, TargetPlan};
use super::{DataError, Edges, Inputs, Items, TargetValues};
use crate::spec::data::ImageSize;

static IRIS: &[u8] = include_bytes!("embedded/iris.bin");
static DIGITS: &[u8] = include_bytes!("embedded/digits.bin.gz");

/// Rows of `iris`.
pub const NUM_IRIS: usize = 150;
/// Images of `digits`.
pub const NUM_DIGITS: usize = 1797;

/// Members of the karate club.
pub const NUM_KARATE_CLUB: usize = 34;

/// The friends of each member of the karate club with a higher number, counted from 0.
const FRIENDS: [&[u32]; 33] = [
    &[1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31],
    &[2, 3, 7, 13, 17, 19, 21, 30],
    &[3, 7, 8, 9, 13, 27, 28, 32],
    &[7, 12, 13],
    &[6, 10],
    &[6, 10, 16],
    &[16],
    &[],
    &[30, 32, 33],
    &[33],
    &[],
    &[],
    &[],
    &[33],
    &[32, 33],
    &[32, 33],
    &[],
    &[],
    &[32, 33],
    &[33],
    &[32, 33],
    &[],
    &[32, 33],
    &[25, 27, 29, 32, 33],
    &[25, 27, 31],
    &[31],
    &[29, 33],
    &[33],
    &[31, 33],
    &[32, 33],
    &[32, 33],
    &[32, 33],
    &[33],
];

/// The members who stayed with the instructor; the others joined the officers' club.
const INSTRUCTORS: [u32; 17] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21];

/// sha256 of the unpacked rows.
pub const IRIS_SHA256: &str = "c422544ce98e916f6b0fa262c8fd870d0f40e973d98e0e4999c7e50fc3084311";
/// sha256 of the unpacked rows.
pub const DIGITS_SHA256: &str = "68aea062d35a127749050fa0e52dca09d6569ac08092c925610e0954e172dde2";

/// The iris flowers: items of shape \[4\], in centimetres.
pub fn iris() -> Result<Items, DataError> {
    verify("iris", IRIS, IRIS_SHA256)?;
    let (bytes, labels) = split_rows(IRIS, 5);
    Ok(Items::of_bytes(vec![4], bytes, 0.1, &labels, 3))
}

/// The handwritten digits: items of shape \[1, side, side\], scaled to 0..1.
pub fn digits(size: ImageSize) -> Result<Items, DataError> {
    let mut rows = Vec::with_capacity(NUM_DIGITS * 65);
    flate2::read::GzDecoder::new(DIGITS)
        .read_to_end(&mut rows)
        .map_err(|e| DataError::new(format!("the embedded digits cannot be unpacked: {e}")))?;
    verify("digits", &rows, DIGITS_SHA256)?;
    let (bytes, labels) = split_rows(&rows, 65);
    // 240 = 16 gray levels x 15, so that interpolated values keep a resolution of one part in 240.
    let side = match size {
        ImageSize::Eight => 8,
        ImageSize::TwentyEight => 28,
    };
    let bytes = bytes
        .chunks_exact(64)
        .flat_map(|image| resize(image, side))
        .collect();
    let shape = vec![1, side, side];
    Ok(Items::of_bytes(shape, bytes, 1.0 / 240.0, &labels, 10))
}

/// Zachary's karate club: the features of a member are 1 at its own number and 0 elsewhere.
pub fn karate_club() -> (Items, Edges) {
    let num = NUM_KARATE_CLUB;
    let features = (0..num * num).map(|at| f32::from(u8::from(at / num == at % num)));
    let classes = (0..num as u32).map(|at| i32::from(!INSTRUCTORS.contains(&at)));
    let friends = (0u32..).zip(FRIENDS).flat_map(|(from, friends)| {
        let edge = move |to: &u32| Edge {
            from,
            to: *to,
            weight: 1.0,
        };
        friends.iter().map(edge)
    });
    let items = Items {
        input: InputPlan::single(vec![num], None),
        inputs: Inputs::Floats(features.collect()),
        target: TargetPlan::Class { num_classes: 2 },
        targets: TargetValues::Classes(classes.collect()),
    };
    let edges = Edges::new(num, &friends.collect::<Vec<_>>(), (&[], 0), false);
    (
        items,
        edges.unwrap_or_else(|_| unreachable!("all have weight 1")),
    )
}

fn verify(name: &str, bytes: &[u8], expected: &str) -> Result<(), DataError> {
    if super::sha256_hex(bytes) == expected {
        Ok(())
    } else {
        Err(
            DataError::new(format!("the embedded data set `{name}` is damaged"))
                .help("rebuild or reinstall runner"),
        )
    }
}

fn split_rows(rows: &[u8], width: usize) -> (Vec<u8>, Vec<u8>) {
    let rows = rows.chunks_exact(width);
    let labels = rows.clone().map(|row| row[width - 1]).collect();
    let bytes = rows
        .flat_map(|row| row[..width - 1].iter().copied())
        .collect();
    (bytes, labels)
}

/// Resizes an 8x8 image of values 0..16 to `side` x `side` of values 0..240 by bilinear interpolation with aligned
/// pixel centers.
fn resize(image: &[u8], side: usize) -> Vec<u8> {
    let position = |at: usize| {
        let at = ((at as f32 + 0.5) * 8.0 / side as f32 - 0.5).clamp(0.0, 7.0);
        let low = (at as usize).min(6);
        (low, at - low as f32)
    };
    let pixel = |row: usize, column: usize| f32::from(image[row * 8 + column]) * 15.0;
    let mut resized = Vec::with_capacity(side * side);
    for row in 0..side {
        let (y, dy) = position(row);
        for column in 0..side {
            let (x, dx) = position(column);
            let upper = pixel(y, x) * (1.0 - dx) + pixel(y, x + 1) * dx;
            let lower = pixel(y + 1, x) * (1.0 - dx) + pixel(y + 1, x + 1) * dx;
            resized.push((upper * (1.0 - dy) + lower * dy).round() as u8);
        }
    }
    resized
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Inputs, TargetValues};

    /// The bytes and classes of all items.
    fn parts(items: Items) -> (Vec<u8>, Vec<i32>) {
        match (items.inputs, items.targets) {
            (Inputs::Bytes { bytes, .. }, TargetValues::Classes(classes)) => (bytes, classes),
            _ => panic!("bytes with a class each"),
        }
    }

    /// Rows of scikit-learn's `iris.csv`, in tenths.
    #[test]
    fn iris_rows_are_the_published_ones() {
        let (bytes, labels) = parts(iris().unwrap());
        let row = |at: usize| (&bytes[at * 4..at * 4 + 4], labels[at]);
        assert_eq!(labels.len(), NUM_IRIS);
        assert_eq!(row(0), (&[51, 35, 14, 2][..], 0));
        assert_eq!(row(50), (&[70, 32, 47, 14][..], 1));
        assert_eq!(row(149), (&[59, 30, 51, 18][..], 2));
    }

    /// Rows of scikit-learn's `digits.csv.gz`.
    #[test]
    fn digits_rows_are_the_published_ones() {
        let (bytes, labels) = parts(digits(ImageSize::Eight).unwrap());
        let row = |at: usize| -> Vec<u8> {
            bytes[at * 64..at * 64 + 64]
                .iter()
                .map(|v| v / 15)
                .collect()
        };
        assert_eq!(labels.len(), NUM_DIGITS);
        assert_eq!(
            &row(0)[..16],
            [0, 0, 5, 13, 9, 1, 0, 0, 0, 0, 13, 15, 10, 15, 5, 0]
        );
        assert_eq!(labels[0], 0);
        assert_eq!(
            &row(1796)[..16],
            [0, 0, 10, 14, 8, 1, 0, 0, 0, 2, 16, 14, 6, 1, 0, 0]
        );
        assert_eq!(labels[1796], 8);
    }

    /// Sizes as published; the instructor is member 0, the officer member 33.
    #[test]
    fn the_karate_club_is_the_published_one() {
        let (items, edges) = karate_club();
        let degree = |of| edges.targets.iter().filter(|at| **at == of).count();
        assert_eq!((items.len(), edges.sources.len()), (34, 2 * 78));
        assert_eq!((degree(0), degree(33), degree(11)), (16, 17, 1));
        let TargetValues::Classes(classes) = items.targets else {
            panic!("each has a class");
        };
        assert_eq!((classes[0], classes[33]), (0, 1));
        assert_eq!(classes.iter().sum::<i32>(), 17);
    }

    #[test]
    fn resizing_keeps_corners_and_range() {
        let items = digits(ImageSize::TwentyEight).unwrap();
        assert_eq!(items.input.shape, [1, 28, 28]);
        let (bytes, _) = parts(items);
        let (small, _) = parts(digits(ImageSize::Eight).unwrap());
        assert_eq!(bytes[0], small[0]);
        assert!(bytes.iter().all(|v| *v <= 240));
    }
}
