//! `[data.augment]`: changes of pictures in training, drawn anew for each item of each epoch.

use serde::{Deserialize, Serialize};

use crate::spec::kind::Kind;
use crate::spec::section::Section;

/// How pictures of the train split are changed. All draws are functions of (seed, epoch, item).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AugmentSpec {
    /// Pixels of padding around the picture, out of which one of its size is cropped.
    pub crop: usize,
    /// The probability that left and right are exchanged.
    pub flip: f64,
    /// The probability that top and bottom are exchanged.
    pub flip_vertical: f64,
    /// The most that the picture is shifted by, as a fraction of its sides.
    pub shift: f64,
    /// The most that it is turned by, in degrees.
    pub rotate: f64,
    /// The probability that a rectangle is erased.
    pub erase: f64,
}

impl AugmentSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let mut number = |key, max, doc| s.field(key, Kind::between(0.0, max), doc).or(0.0);
        Self {
            flip: number("flip", 1.0, "Probability that left and right are exchanged."),
            flip_vertical: number("flip_vertical", 1.0, "Probability that top and bottom are exchanged."),
            shift: number("shift", 0.5, "The most that the picture is shifted by, as a fraction of its sides; what comes in is 0."),
            rotate: number("rotate", 180.0, "The most that it is turned by either way, in degrees; what comes in is 0."),
            erase: number("erase", 1.0, "Probability that a rectangle of 2 % to 20 % of the picture is set to 0."),
            crop: s
                .field("crop", Kind::Int(0, 1 << 12), "Pixels of padding on each side, out of which a picture of the same size is cropped at random.")
                .or(0),
        }
    }
}
