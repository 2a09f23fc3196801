//! Augmentation of images in training.
//!
//! A change is sampled once and applied to the image and its mask, as one map from output to source positions: so a
//! pixel that is moved out by one change and back in by the next is not lost.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::data::encode::Number;
use crate::data::generate::{below, turn, uniform};
use crate::data::order::{Purpose, stream_seed};
use crate::spec::data::AugmentSpec;

/// The class of a pixel from outside the image: ignored.
const NO_CLASS: i32 = -1;
/// The minimum and maximum erased fraction of the image.
const ERASED: (f64, f64) = (0.02, 0.2);

/// The seed of an item's augmentation in an epoch.
pub fn augment_seed(seed: u64, epoch: u64, item: u64) -> u64 {
    let epoch = stream_seed(seed, Purpose::Augment, epoch);
    stream_seed(epoch, Purpose::Augment, item)
}

/// Augments one image of shape \[channels, height, width\] in place, and its mask of shape \[height, width\] in the
/// same way. All random numbers come from `seed`; `fill` is the value of uncovered pixels
/// of each channel, black after scaling.
///
/// The image is flipped horizontally and vertically, rotated about its center and moved by whole pixels; finally a
/// rectangle is erased from the image, but not from the mask.
///
/// # Panics
/// If the image, the mask or `fill` does not have the shape.
pub fn augment<N: Number>(
    spec: &AugmentSpec,
    seed: u64,
    picture: &mut [N],
    shape: [usize; 3],
    fill: &[N],
    mask: Option<&mut [i32]>,
) {
    let [_, height, width] = shape;
    let len = height * width;
    assert_eq!(picture.len(), shape.iter().product::<usize>());
    assert_eq!(fill.len(), shape[0]);
    assert!(mask.as_ref().is_none_or(|mask| mask.len() == len));
    if len == 0 {
        return;
    }
    let change = Change::draw(spec, seed, [height, width]);
    let size = [height, width];
    if let Some(turn) = change.turn {
        let turned = Turned::new(&change, turn, size);
        rotate(&turned, picture, size, fill);
        if let Some(mask) = mask {
            rotate_mask(&turned, mask, size);
        }
    } else {
        for (plane, fill) in picture.chunks_exact_mut(len).zip(fill) {
            change.apply(plane, size, *fill);
        }
        if let Some(mask) = mask {
            change.apply(mask, size, NO_CLASS);
        }
    }
    if let Some([top, left, bottom, right]) = change.erased {
        for (plane, fill) in picture.chunks_exact_mut(len).zip(fill) {
            for row in plane[top * width..bottom * width].chunks_exact_mut(width) {
                row[left..right].fill(*fill);
            }
        }
    }
}

/// The augmentation of one item.
#[derive(Debug, PartialEq)]
struct Change {
    flip: bool,
    flip_vertical: bool,
    /// Sine and cosine of the angle.
    turn: Option<(f64, f64)>,
    /// Rows to move down, columns to move right.
    moved: [isize; 2],
    /// Top, left, bottom and right; the last two are exclusive.
    erased: Option<[usize; 4]>,
}

impl Change {
    /// Always samples equally often, so that one setting does not affect the others.
    fn draw(spec: &AugmentSpec, seed: u64, size: [usize; 2]) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let flip = uniform(&mut rng) < spec.flip;
        let flip_vertical = uniform(&mut rng) < spec.flip_vertical;
        let angle = spec.rotate * (2.0 * uniform(&mut rng) - 1.0);
        let moved = size.map(|side| {
            let mut within = |most: usize| below(&mut rng, 2 * most + 1) as isize - most as isize;
            within(spec.crop) + within((spec.shift * side as f64).round() as usize)
        });
        let is_erased = uniform(&mut rng) < spec.erase;
        let [share, ratio, top, left] = [(); 4].map(|()| uniform(&mut rng));
        Self {
            flip,
            flip_vertical,
            turn: (angle != 0.0).then(|| turn(angle / 360.0)),
            moved,
            erased: is_erased.then(|| rectangle(size, share, ratio, [top, left])),
        }
    }

    /// Flips and moves one plane in place.
    fn apply<T: Copy>(&self, plane: &mut [T], [height, width]: [usize; 2], fill: T) {
        if self.flip {
            plane.chunks_exact_mut(width).for_each(<[T]>::reverse);
        }
        if self.flip_vertical {
            let (upper, lower) = plane.split_at_mut(height / 2 * width);
            let lower = lower.rchunks_exact_mut(width);
            for (above, below) in upper.chunks_exact_mut(width).zip(lower) {
                above.swap_with_slice(below);
            }
        }
        let [down, right] = self.moved;
        slide(plane, down * width as isize, fill);
        if right != 0 {
            plane
                .chunks_exact_mut(width)
                .for_each(|row| slide(row, right, fill));
        }
    }
}

/// Moves values towards the end, or towards the start, and fills the rest.
fn slide<T: Copy>(values: &mut [T], by: isize, fill: T) {
    let len = values.len();
    let num = by.unsigned_abs().min(len);
    match by {
        0 => {}
        1.. => {
            values.copy_within(..len - num, num);
            values[..num].fill(fill);
        }
        _ => {
            values.copy_within(num.., 0);
            values[len - num..].fill(fill);
        }
    }
}

/// A rectangle of the sampled fraction of the image, from twice as high as wide to twice as wide as high for a square
/// image.
fn rectangle(size: [usize; 2], share: f64, ratio: f64, place: [f64; 2]) -> [usize; 4] {
    let share = ERASED.0 + (ERASED.1 - ERASED.0) * share;
    // As fractions of the sides: at most 0.9, since the erased fraction is at most a fifth.
    let tall = (share * (0.5 + 1.5 * ratio)).sqrt();
    let fractions = [tall, share / tall];
    let sides = [0, 1].map(|at| {
        let side = (fractions[at] * size[at] as f64).round() as usize;
        side.clamp(1, size[at])
    });
    let start = [0, 1].map(|at| {
        let room = size[at] - sides[at] + 1;
        ((place[at] * room as f64) as usize).min(room - 1)
    });
    [start[0], start[1], start[0] + sides[0], start[1] + sides[1]]
}

/// Source positions of the pixels of a rotated image, in fixed point with 32 fractional bits: integer sums are equal on
/// every machine.
struct Turned {
    /// The source row and column of the first pixel.
    start: [i64; 2],
    /// Their increment per column.
    across: [i64; 2],
    /// Their increment per row.
    down: [i64; 2],
}

const POINT: u32 = 32;

impl Turned {
    fn new(change: &Change, (sine, cosine): (f64, f64), [height, width]: [usize; 2]) -> Self {
        let centre = [height, width].map(|side| (side as f64 - 1.0) / 2.0);
        let [moved_down, moved_right] = change.moved.map(|by| by as f64);
        // The first pixel relative to the center, before the move, rotated back.
        let (row, column) = (-centre[0] - moved_down, -centre[1] - moved_right);
        let mut from = [cosine * row - sine * column, sine * row + cosine * column];
        let mut down = [cosine, sine];
        let mut across = [-sine, cosine];
        for (axis, is_flipped) in [change.flip_vertical, change.flip].into_iter().enumerate() {
            if is_flipped {
                from[axis] = -from[axis];
                down[axis] = -down[axis];
                across[axis] = -across[axis];
            }
        }
        let fixed = |value: f64| (value * (1u64 << POINT) as f64) as i64;
        Self {
            start: [0, 1].map(|axis| fixed(from[axis] + centre[axis])),
            across: across.map(fixed),
            down: down.map(fixed),
        }
    }

    /// Calls `see` with the index and the source position of each pixel.
    fn each(&self, [height, width]: [usize; 2], mut see: impl FnMut(usize, [i64; 2])) {
        let mut first = self.start;
        for row in 0..height {
            let mut from = first;
            for column in 0..width {
                see(row * width + column, from);
                from = [from[0] + self.across[0], from[1] + self.across[1]];
            }
            first = [first[0] + self.down[0], first[1] + self.down[1]];
        }
    }
}

/// Each pixel from its four neighbors, weighted by distance; those outside are `fill`.
fn rotate<N: Number>(turned: &Turned, picture: &mut [N], [height, width]: [usize; 2], fill: &[N]) {
    // A border of one pixel before and two after: positions farther away read the border.
    let framed = [height, width].map(|side| side + 3);
    let mut from = vec![N::default(); framed[0] * framed[1]];
    let ends = [height, width].map(|side| (side as i64) << POINT);
    for (plane, fill) in picture.chunks_exact_mut(height * width).zip(fill) {
        from.fill(*fill);
        let rows = from.chunks_exact_mut(framed[1]).skip(1);
        for (row, inner) in plane.chunks_exact(width).zip(rows) {
            inner[1..=width].copy_from_slice(row);
        }
        turned.each([height, width], |at, place| {
            let [row, column] = [0, 1].map(|axis| place[axis].clamp(-1 << POINT, ends[axis]));
            let corner =
                ((row >> POINT) + 1) as usize * framed[1] + ((column >> POINT) + 1) as usize;
            // 24 bits fit a 32-bit float exactly.
            let behind = |place: i64| N::from((place as u32 >> 8) as f32 / (1u32 << 24) as f32);
            let (down, right) = (behind(row), behind(column));
            let (above, below) = (&from[corner..][..2], &from[corner + framed[1]..][..2]);
            let upper = above[0] + (above[1] - above[0]) * right;
            let lower = below[0] + (below[1] - below[0]) * right;
            plane[at] = upper + (lower - upper) * down;
        });
    }
}

/// Each pixel from the nearest one.
fn rotate_mask(turned: &Turned, mask: &mut [i32], size: [usize; 2]) {
    let [height, width] = size;
    let from = mask.to_vec();
    turned.each(size, |at, place| {
        let [row, column] = place.map(|place| (place + (1 << (POINT - 1))) >> POINT);
        let is_inside = (0..height as i64).contains(&row) && (0..width as i64).contains(&column);
        mask[at] = if is_inside {
            from[row as usize * width + column as usize]
        } else {
            NO_CLASS
        };
    });
}

#[cfg(test)]
mod tests;
