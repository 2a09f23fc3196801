//! `[data.augment]`: random changes to images in training, sampled separately for each item and epoch.

use serde::{Deserialize, Serialize};

use crate::spec::kind::Kind;
use crate::spec::section::Section;

/// Augmentation of the images of the train split. All random numbers are functions of (seed, epoch, item).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AugmentSpec {
    /// Pixels of padding around the image before a random crop of the original size.
    pub crop: usize,
    /// The probability of a horizontal flip.
    pub flip: f64,
    /// The probability of a vertical flip.
    pub flip_vertical: f64,
    /// The maximum shift, as a fraction of the sides.
    pub shift: f64,
    /// The maximum rotation, in degrees.
    pub rotate: f64,
    /// The probability that a rectangle is erased.
    pub erase: f64,
}

impl AugmentSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let mut number = |key, max, doc| s.field(key, Kind::between(0.0, max), doc).or(0.0);
        Self {
            flip: number("flip", 1.0, "Probability of a horizontal flip."),
            flip_vertical: number("flip_vertical", 1.0, "Probability of a vertical flip."),
            shift: number("shift", 0.5, "Maximum shift, as a fraction of the sides; uncovered pixels become 0."),
            rotate: number("rotate", 180.0, "Maximum rotation in either direction, in degrees; uncovered pixels become 0."),
            erase: number("erase", 1.0, "Probability that a rectangle of 2 % to 20 % of the image is set to 0."),
            crop: s
                .field("crop", Kind::Int(0, 1 << 12), "Pixels of padding on each side, before an image of the original size is cropped at random.")
                .or(0),
        }
    }
}
