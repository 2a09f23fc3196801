//! Changes of pictures in training.
//!
//! A change is drawn once and applied to the picture and its mask, as one map from where a pixel comes
//! out to where it comes from: so a pixel that is moved out by one change and in by the next is not lost.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::data::generate::{below, turn, uniform};
use crate::data::order::{Purpose, stream_seed};
use crate::spec::data::AugmentSpec;

/// The class of a pixel that comes in from outside: it does not count.
const NO_CLASS: i32 = -1;
/// Of the whole picture, the least and the most that is erased.
const ERASED: (f64, f64) = (0.02, 0.2);

/// The seed of an item's changes in an epoch.
pub fn augment_seed(seed: u64, epoch: u64, item: u64) -> u64 {
    let epoch = stream_seed(seed, Purpose::Augment, epoch);
    stream_seed(epoch, Purpose::Augment, item)
}

/// Changes one picture of shape \[channels, height, width\] in place, and its mask of shape \[height, width\] in
/// the same way. All draws come from `seed`; `fill` is the value of what comes in from outside, a black
/// pixel after scaling.
///
/// The picture is exchanged left to right and top to bottom, turned about its centre, moved by whole pixels,
/// and last a rectangle of it is erased, of the mask not.
///
/// # Panics
/// When the picture or the mask is not of the shape.
pub fn augment(
    spec: &AugmentSpec,
    seed: u64,
    picture: &mut [f32],
    shape: [usize; 3],
    fill: f32,
    mask: Option<&mut [i32]>,
) {
    let [_, height, width] = shape;
    let len = height * width;
    assert_eq!(picture.len(), shape.iter().product::<usize>());
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
        for plane in picture.chunks_exact_mut(len) {
            change.apply(plane, size, fill);
        }
        if let Some(mask) = mask {
            change.apply(mask, size, NO_CLASS);
        }
    }
    if let Some([top, left, bottom, right]) = change.erased {
        for row in picture
            .chunks_exact_mut(len)
            .flat_map(|plane| plane[top * width..bottom * width].chunks_exact_mut(width))
        {
            row[left..right].fill(fill);
        }
    }
}

/// What is done to one item.
#[derive(Debug, PartialEq)]
struct Change {
    flip: bool,
    flip_vertical: bool,
    /// Sine and cosine of the angle.
    turn: Option<(f64, f64)>,
    /// Rows that it is moved down by, columns to the right.
    moved: [isize; 2],
    /// Top, left, bottom and right, the last two outside.
    erased: Option<[usize; 4]>,
}

impl Change {
    /// Always draws the same number of times, so that one setting does not change what another does.
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

/// Moves values towards the end, or towards the start, and fills what is left.
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

/// A rectangle of the share of the picture that was drawn, from twice as high as wide to twice as wide as high
/// in a square one.
fn rectangle(size: [usize; 2], share: f64, ratio: f64, place: [f64; 2]) -> [usize; 4] {
    let share = ERASED.0 + (ERASED.1 - ERASED.0) * share;
    // As fractions of the sides: at most 0.9, since a share is at most a fifth.
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

/// Where the pixels of a turned picture come from, in numbers of 32 bits behind the point: whole numbers
/// add up alike on every machine.
struct Turned {
    /// The row and the column that the first pixel comes from.
    start: [i64; 2],
    /// What they grow by to the next column.
    across: [i64; 2],
    /// What they grow by to the next row.
    down: [i64; 2],
}

const POINT: u32 = 32;

impl Turned {
    fn new(change: &Change, (sine, cosine): (f64, f64), [height, width]: [usize; 2]) -> Self {
        let centre = [height, width].map(|side| (side as f64 - 1.0) / 2.0);
        let [moved_down, moved_right] = change.moved.map(|by| by as f64);
        // The first pixel from the centre, before it was moved, turned back.
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

    /// Calls `see` with each pixel's number and where it comes from.
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

/// Each pixel from the four that it falls between, by their nearness; those outside are `fill`.
fn rotate(turned: &Turned, picture: &mut [f32], [height, width]: [usize; 2], fill: f32) {
    // A frame of one pixel before and two behind: what comes from farther away comes from the frame.
    let framed = [height, width].map(|side| side + 3);
    let mut from = vec![fill; framed[0] * framed[1]];
    let ends = [height, width].map(|side| (side as i64) << POINT);
    for plane in picture.chunks_exact_mut(height * width) {
        let rows = from.chunks_exact_mut(framed[1]).skip(1);
        for (row, inner) in plane.chunks_exact(width).zip(rows) {
            inner[1..=width].copy_from_slice(row);
        }
        turned.each([height, width], |at, place| {
            let [row, column] = [0, 1].map(|axis| place[axis].clamp(-1 << POINT, ends[axis]));
            let corner =
                ((row >> POINT) + 1) as usize * framed[1] + ((column >> POINT) + 1) as usize;
            // 24 bits fit into a number of 32 bits as they are.
            let behind = |place: i64| (place as u32 >> 8) as f32 / (1u32 << 24) as f32;
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
