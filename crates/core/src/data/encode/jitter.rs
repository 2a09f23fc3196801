//! Random changes of colors, as torchvision's `ColorJitter`: brightness, contrast, saturation and hue, in random order.
//!
//! Pixels are numbers from 0 to 1; an image is \[channels, height, width\].

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::data::generate::{below, uniform};
use crate::data::order::{Purpose, stream_seed};
use crate::spec::data::AugmentSpec;

/// The share of each channel in the brightness of a pixel.
const GRAY: [f32; 3] = [0.2989, 0.587, 0.114];

/// A change of colors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Multiplied by a factor.
    Brightness(f32),
    /// Away from the mean gray by a factor.
    Contrast(f32),
    /// Away from the gray of each pixel by a factor.
    Saturation(f32),
    /// By a part of the circle of colors.
    Hue(f32),
}

/// The changes of an item whose augmentation has this seed, in order.
pub fn draw(spec: &AugmentSpec, seed: u64) -> Vec<Change> {
    let mut rng = ChaCha8Rng::seed_from_u64(stream_seed(seed, Purpose::Augment, 1));
    let mut factor = |size: f64| {
        let low = (1.0 - size).max(0.0);
        (low + (1.0 + size - low) * uniform(&mut rng)) as f32
    };
    let brightness = Change::Brightness(factor(spec.brightness));
    let contrast = Change::Contrast(factor(spec.contrast));
    let saturation = Change::Saturation(factor(spec.saturation));
    let hue = Change::Hue((spec.hue * (2.0 * uniform(&mut rng) - 1.0)) as f32);
    let mut changes = vec![
        (spec.brightness, brightness),
        (spec.contrast, contrast),
        (spec.saturation, saturation),
        (spec.hue, hue),
    ];
    for last in (1..changes.len()).rev() {
        changes.swap(last, below(&mut rng, last + 1));
    }
    changes.retain(|(size, _)| *size > 0.0);
    changes.into_iter().map(|(_, change)| change).collect()
}

impl Change {
    /// Applies it to an image with planes of `len` pixels. Images of one channel have no saturation and no hue.
    pub fn apply(self, picture: &mut [f32], len: usize) {
        let has_colors = picture.len() == 3 * len;
        match self {
            Self::Brightness(factor) => {
                picture
                    .iter_mut()
                    .for_each(|value| *value = clamped(*value * factor));
            }
            Self::Contrast(factor) => {
                let sum: f64 = if has_colors {
                    (0..len).map(|at| f64::from(gray(picture, len, at))).sum()
                } else {
                    picture.iter().map(|value| f64::from(*value)).sum()
                };
                let num = if has_colors { len } else { picture.len() };
                let mean = (sum / num as f64) as f32;
                for value in picture {
                    *value = clamped(factor * *value + (1.0 - factor) * mean);
                }
            }
            Self::Saturation(factor) if has_colors => {
                for at in 0..len {
                    let gray = gray(picture, len, at);
                    for channel in 0..3 {
                        let value = &mut picture[channel * len + at];
                        *value = clamped(factor * *value + (1.0 - factor) * gray);
                    }
                }
            }
            Self::Hue(by) if has_colors => {
                for at in 0..len {
                    let pixel = [0, 1, 2].map(|channel| picture[channel * len + at]);
                    let [hue, saturation, value] = to_hsv(pixel);
                    let turned = (hue + by).rem_euclid(1.0);
                    let changed = to_rgb([turned, saturation, value]);
                    for (channel, value) in changed.into_iter().enumerate() {
                        picture[channel * len + at] = value;
                    }
                }
            }
            Self::Saturation(_) | Self::Hue(_) => {}
        }
    }
}

fn clamped(value: f32) -> f32 {
    value.clamp(0.0, 1.0)
}

fn gray(picture: &[f32], len: usize, at: usize) -> f32 {
    GRAY[0] * picture[at] + GRAY[1] * picture[len + at] + GRAY[2] * picture[2 * len + at]
}

fn to_hsv([red, green, blue]: [f32; 3]) -> [f32; 3] {
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    let range = most - least;
    if range == 0.0 {
        return [0.0, 0.0, most];
    }
    let [r, g, b] = [red, green, blue].map(|value| (most - value) / range);
    let sixths = if most == red {
        b - g
    } else if most == green {
        2.0 + r - b
    } else {
        4.0 + g - r
    };
    [(sixths / 6.0 + 1.0) % 1.0, range / most, most]
}

fn to_rgb([hue, saturation, value]: [f32; 3]) -> [f32; 3] {
    let sixths = hue * 6.0;
    let whole = sixths.floor();
    let part = sixths - whole;
    let p = clamped(value * (1.0 - saturation));
    let q = clamped(value * (1.0 - saturation * part));
    let t = clamped(value * (1.0 - saturation * (1.0 - part)));
    match whole as i32 % 6 {
        0 => [value, t, p],
        1 => [q, value, p],
        2 => [p, value, t],
        3 => [p, q, value],
        4 => [t, p, value],
        _ => [value, p, q],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value as Json;

    /// As recorded by `tests/golden/augment.py`.
    #[test]
    fn colors_are_those_of_torchvision() {
        let golden = include_str!("../../../../../tests/golden/augment.json");
        let golden: Json = serde_json::from_str(golden).unwrap();
        let cases = golden["colors"].as_array().unwrap();
        assert!(cases.len() > 20);
        for case in cases {
            let numbers =
                |key: &str| -> Vec<f32> { serde_json::from_value(case[key].clone()).unwrap() };
            let (mut image, wanted) = (numbers("image"), numbers("changed"));
            let factor = case["factor"].as_f64().unwrap() as f32;
            let change = match case["change"].as_str().unwrap() {
                "brightness" => Change::Brightness(factor),
                "contrast" => Change::Contrast(factor),
                "saturation" => Change::Saturation(factor),
                _ => Change::Hue(factor),
            };
            change.apply(&mut image, case["len"].as_u64().unwrap() as usize);
            let errors = image.iter().zip(&wanted).map(|(a, b)| (a - b).abs());
            let largest = errors.fold(0.0, f32::max);
            assert!(largest < 3e-6, "{change:?}: {largest}");
        }
    }

    #[test]
    fn changes_are_within_their_ranges_and_in_any_order() {
        let spec = AugmentSpec {
            brightness: 0.4,
            contrast: 1.5,
            saturation: 0.2,
            hue: 0.1,
            ..AugmentSpec::default()
        };
        let mut firsts = [0; 4];
        for seed in 0..400 {
            let changes = draw(&spec, seed);
            assert_eq!(changes.len(), 4);
            for (at, change) in changes.into_iter().enumerate() {
                let (kind, is_within) = match change {
                    Change::Brightness(by) => (0, (0.6..=1.4).contains(&by)),
                    Change::Contrast(by) => (1, (0.0..=2.5).contains(&by)),
                    Change::Saturation(by) => (2, (0.8..=1.2).contains(&by)),
                    Change::Hue(by) => (3, (-0.1..=0.1).contains(&by)),
                };
                assert!(is_within, "{change:?}");
                firsts[kind] += usize::from(at == 0);
            }
        }
        assert!(
            firsts.iter().all(|num| (70..130).contains(num)),
            "{firsts:?}"
        );
        assert!(draw(&AugmentSpec::default(), 1).is_empty());
    }
}
