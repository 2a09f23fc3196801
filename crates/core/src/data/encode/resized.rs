//! Random parts of images, resized to the size of the image, as torchvision's `RandomResizedCrop`.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::data::encode::Number;
use crate::data::generate::uniform;
use crate::data::order::{Purpose, stream_seed};
use crate::spec::data::ResizedCropSpec;

/// Boxes that are drawn until one fits into the image.
const ATTEMPTS: usize = 10;

/// A part of an image, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Its first row and column.
    pub start: [usize; 2],
    /// Its height and width.
    pub size: [usize; 2],
}

impl Part {
    /// That of an item whose augmentation has this seed.
    pub fn draw(spec: &ResizedCropSpec, seed: u64, size: [usize; 2]) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(stream_seed(seed, Purpose::Augment, 2));
        let mut draw = || uniform(&mut rng);
        let area = (size[0] * size[1]) as f64;
        let [least, most] = spec.ratio.map(libm::log);
        for _ in 0..ATTEMPTS {
            let area = area * (spec.scale[0] + (spec.scale[1] - spec.scale[0]) * draw());
            let ratio = libm::exp(least + (most - least) * draw());
            let sides = [area / ratio, area * ratio].map(|side| side.sqrt().round_ties_even());
            let place = [draw(), draw()];
            let sides = sides.map(|side| side as usize);
            if (0..2).all(|axis| (1..=size[axis]).contains(&sides[axis])) {
                let start = [0, 1].map(|axis| {
                    let room = size[axis] - sides[axis] + 1;
                    ((place[axis] * room as f64) as usize).min(room - 1)
                });
                return Self { start, size: sides };
            }
        }
        Self::central(spec.ratio, size)
    }

    /// The largest one in the middle of an image whose ratio of width to height is allowed.
    pub fn central(ratio: [f64; 2], [height, width]: [usize; 2]) -> Self {
        let found = width as f64 / height as f64;
        let rounded = |side: f64, most: usize| (side.round_ties_even() as usize).clamp(1, most);
        let size = if found < ratio[0] {
            [rounded(width as f64 / ratio[0], height), width]
        } else if found > ratio[1] {
            [height, rounded(height as f64 * ratio[1], width)]
        } else {
            [height, width]
        };
        let start = [(height - size[0]) / 2, (width - size[1]) / 2];
        Self { start, size }
    }

    /// Resizes this part of an image, \[channels, height, width\], to the whole: each pixel from its four neighbors in
    /// the part, weighted by distance.
    pub fn apply<N: Number>(self, picture: &mut [N], [height, width]: [usize; 2]) {
        if self.size == [height, width] {
            return;
        }
        let rows = self.sources(0, height);
        let columns = self.sources(1, width);
        let mut part = vec![N::default(); self.size[0] * self.size[1]];
        for plane in picture.chunks_exact_mut(height * width) {
            self.copy(plane, width, &mut part);
            for (row, (above, below, down)) in rows.iter().enumerate() {
                let [above, below] = [above, below].map(|row| &part[row * self.size[1]..]);
                for (column, (left, right, across)) in columns.iter().enumerate() {
                    let upper = above[*left] + (above[*right] - above[*left]) * *across;
                    let lower = below[*left] + (below[*right] - below[*left]) * *across;
                    plane[row * width + column] = upper + (lower - upper) * *down;
                }
            }
        }
    }

    /// The same for a mask: each pixel from the nearest one, as torchvision's `NEAREST`.
    pub fn apply_mask(self, mask: &mut [i32], [height, width]: [usize; 2]) {
        let mut part = vec![0; self.size[0] * self.size[1]];
        self.copy(mask, width, &mut part);
        for row in 0..height {
            let from = row * self.size[0] / height * self.size[1];
            for column in 0..width {
                mask[row * width + column] = part[from + column * self.size[1] / width];
            }
        }
    }

    fn copy<T: Copy>(self, plane: &[T], width: usize, part: &mut [T]) {
        let rows = plane.chunks_exact(width).skip(self.start[0]);
        for (row, copied) in rows.zip(part.chunks_exact_mut(self.size[1])) {
            copied.copy_from_slice(&row[self.start[1]..][..self.size[1]]);
        }
    }

    /// For each of `num` positions along an axis, the two positions in the part around its center, and how far it is
    /// from the first to the second.
    fn sources<N: Number>(self, axis: usize, num: usize) -> Vec<(usize, usize, N)> {
        let last = self.size[axis] - 1;
        let each = (0..num).map(|at| {
            let center = (at as f64 + 0.5) * self.size[axis] as f64 / num as f64 - 0.5;
            let center = center.clamp(0.0, last as f64);
            let first = center as usize;
            (first, (first + 1).min(last), N::of(center - first as f64))
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value as Json;

    fn numbers<T: serde::de::DeserializeOwned>(json: &Json) -> T {
        serde_json::from_value(json.clone()).unwrap()
    }

    /// As recorded by `tests/golden/augment.py`.
    #[test]
    fn resized_parts_are_those_of_torchvision() {
        let golden = include_str!("../../../../../tests/golden/augment.json");
        let golden: Json = serde_json::from_str(golden).unwrap();
        let cases = golden["parts"].as_array().unwrap();
        assert!(cases.len() > 10);
        for case in cases {
            let [start, size]: [[usize; 2]; 2] = [numbers(&case["start"]), numbers(&case["size"])];
            let part = Part { start, size };
            let whole: [usize; 2] = numbers(&case["whole"]);
            let mut image: Vec<f32> = numbers(&case["image"]);
            part.apply(&mut image, whole);
            let wanted: Vec<f32> = numbers(&case["resized"]);
            let errors = image.iter().zip(&wanted).map(|(a, b)| (a - b).abs());
            assert!(errors.fold(0.0, f32::max) < 1e-6, "{part:?} of {whole:?}");
            let mut mask: Vec<i32> = numbers(&case["mask"]);
            part.apply_mask(&mut mask, whole);
            assert_eq!(mask, numbers::<Vec<i32>>(&case["resized_mask"]), "{part:?}");
        }
        for case in golden["central"].as_array().unwrap() {
            let part = Part {
                start: numbers(&case["start"]),
                size: numbers(&case["size"]),
            };
            let found = Part::central(numbers(&case["ratio"]), numbers(&case["whole"]));
            assert_eq!(found, part, "{case}");
        }
    }

    #[test]
    fn parts_have_the_areas_and_ratios_of_the_file() {
        let spec = ResizedCropSpec {
            scale: [0.25, 0.5],
            ratio: [0.5, 2.0],
        };
        let size = [400, 500];
        let (mut areas, mut num_tall) = (Vec::new(), 0);
        for seed in 0..1000 {
            let part = Part::draw(&spec, seed, size);
            let [height, width] = part.size;
            assert!((0..2).all(|axis| part.start[axis] + part.size[axis] <= size[axis]));
            areas.push((height * width) as f64 / 200_000.0);
            let ratio = width as f64 / height as f64;
            assert!((0.49..=2.03).contains(&ratio), "{part:?}");
            num_tall += usize::from(ratio < 1.0);
        }
        assert!(areas.iter().all(|area| (0.248..=0.502).contains(area)));
        let mean = areas.iter().sum::<f64>() / 1000.0;
        assert!((mean - 0.375).abs() < 0.01, "{mean}");
        // As often tall as wide.
        assert!((450..550).contains(&num_tall), "{num_tall}");
        assert_eq!(Part::draw(&spec, 7, size), Part::draw(&spec, 7, size));
    }

    #[test]
    fn the_whole_image_stays_as_it_is() {
        let spec = ResizedCropSpec {
            scale: [1.0, 1.0],
            ratio: [1.0, 1.0],
        };
        let mut image = [0.1, 0.2, 0.3, 0.4];
        Part::draw(&spec, 3, [2, 2]).apply(&mut image, [2, 2]);
        assert_eq!(image, [0.1, 0.2, 0.3, 0.4]);
    }
}
