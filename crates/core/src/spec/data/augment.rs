//! `[data.augment]`: random changes to images in training, sampled separately for each item and epoch.

use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;
use crate::spec::kind::Kind;
use crate::spec::section::Section;

/// Augmentation of the images of the train split. All random numbers are functions of (seed, epoch, item).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// The maximum change of the brightness.
    #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
    pub brightness: f64,
    /// The maximum change of the contrast.
    #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
    pub contrast: f64,
    /// The maximum change of the saturation.
    #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
    pub saturation: f64,
    /// The maximum change of the hue.
    #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
    pub hue: f64,
    /// Resizes a random part of the image to its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resized_crop: Option<ResizedCropSpec>,
    /// Mixes all pixels of two images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixup: Option<MixSpec>,
    /// Replaces a rectangle of an image by that of another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cutmix: Option<MixSpec>,
}

/// The part of an image that is resized to its size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResizedCropSpec {
    /// The range of its area, as a fraction of the image's.
    pub scale: [f64; 2],
    /// The range of its ratio of width to height.
    pub ratio: [f64; 2],
}

/// How the images of a batch are mixed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixSpec {
    /// Both parameters of the beta distribution of an image's share.
    pub alpha: f64,
    /// The fraction of the batches that are mixed.
    pub probability: f64,
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
            brightness: number("brightness", 10.0, "Maximum change of the brightness b: it is multiplied by a factor from max(0, 1 - b) to 1 + b. Colors are changed first, in random order, as torchvision's `ColorJitter` does."),
            contrast: number("contrast", 10.0, "The same for the contrast."),
            saturation: number("saturation", 10.0, "The same for the saturation of images with three channels."),
            hue: number("hue", 0.5, "Maximum change of the hue of images with three channels in either direction, as a fraction of the circle of colors."),
            crop: s
                .field("crop", Kind::Int(0, 1 << 12), "Pixels of padding on each side, before an image of the original size is cropped at random.")
                .or(0),
            resized_crop: s.optional_table(
                "resized_crop",
                "Resizes a random part of each image to the image's size, as torchvision's `RandomResizedCrop`.",
                ResizedCropSpec::decode,
            ),
            ..Self::default()
        }
        .with_mixing(s)
    }

    fn with_mixing(self, s: &mut Section<'_>) -> Self {
        let is_one = !(s.is_written("mixup") && s.is_written("cutmix"));
        let usual = if is_one { 1.0 } else { 0.5 };
        Self {
            mixup: s.optional_table(
                "mixup",
                "Mixes each image of a batch with another one, and their classes in the loss (Zhang et al., 2018).",
                |s| MixSpec::decode(s, 0.2, usual),
            ),
            cutmix: s.optional_table(
                "cutmix",
                "Replaces a rectangle of each image of a batch by that of another one, and mixes their classes in the loss by its area (Yun et al., 2019).",
                |s| MixSpec::decode(s, 1.0, usual),
            ),
            ..self
        }
    }

    /// Whether items are mixed with others.
    pub fn mixes(&self) -> bool {
        self.mixup.is_some() || self.cutmix.is_some()
    }

    /// The first key that is set of those that move pixels.
    pub fn moves(&self) -> Option<&'static str> {
        let set = [
            ("flip", self.flip > 0.0),
            ("flip_vertical", self.flip_vertical > 0.0),
            ("shift", self.shift > 0.0),
            ("rotate", self.rotate > 0.0),
            ("crop", self.crop > 0),
            ("resized_crop", self.resized_crop.is_some()),
        ];
        let found = set.into_iter().find(|(_, is_set)| *is_set);
        found.map(|(key, _)| key)
    }

    /// Whether colors are changed.
    pub fn changes_colors(&self) -> bool {
        let sizes = [self.brightness, self.contrast, self.saturation, self.hue];
        sizes.iter().any(|size| *size > 0.0)
    }
}

impl ResizedCropSpec {
    fn decode(s: &mut Section<'_>) -> Self {
        let mut range = |key, most, usual: [f64; 2], doc| {
            let item = Kind::Float {
                min: 0.0,
                open_min: true,
                max: most,
                open_max: false,
            };
            let item = Box::new(item);
            let found = s.field::<Vec<f64>>(key, Kind::Tuple { item, len: 2 }, doc);
            let found = <[f64; 2]>::try_from(found.or(usual.to_vec()));
            let [least, most] = found.unwrap_or(usual);
            if least > most
                && let Some(span) = s.written_at(key)
            {
                let message = format!(
                    "`{key}` is [{least:?}, {most:?}], but the first number must not be the larger one"
                );
                let help = format!("set `{key} = [{most:?}, {least:?}]`");
                let wrong = Diagnostic::error("out-of-range", message);
                s.refuse(key, wrong.at(span).help(help));
            }
            [least, most]
        };
        Self {
            scale: range(
                "scale",
                1.0,
                [0.08, 1.0],
                "Range of the area of the part, as a fraction of the image's.",
            ),
            ratio: range(
                "ratio",
                100.0,
                [3.0 / 4.0, 4.0 / 3.0],
                "Range of the part's ratio of width to height; the logarithm is uniform.",
            ),
        }
    }
}

impl MixSpec {
    fn decode(s: &mut Section<'_>, alpha: f64, probability: f64) -> Self {
        let positive = Kind::Float {
            min: 0.0,
            open_min: true,
            max: 100.0,
            open_max: false,
        };
        Self {
            alpha: s
                .field("alpha", positive, "Both parameters of the beta distribution that the share of an image is drawn from, once for each batch: 1 is the uniform distribution, less is closer to one of the two images.")
                .or(alpha),
            probability: s
                .field("probability", Kind::between(0.0, 1.0), "Fraction of the batches that are mixed in this way: 1, or 0.5 if both `mixup` and `cutmix` are set.")
                .optional()
                .unwrap_or(probability),
        }
    }
}
