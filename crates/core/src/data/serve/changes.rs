//! Items as training sees them: augmented, with other colors, and mixed with others of their batch.

use std::ops::Range;

use super::{Mixed, Moment, Served, Split};
use crate::data::TargetValues;
use crate::data::encode::augment::augment;
use crate::data::encode::mix::{Mix, partner};
use crate::data::encode::resized::Part;
use crate::data::encode::{InputEncoder, Number, TargetEncoder, jitter};
use crate::spec::data::AugmentSpec;

impl Split {
    /// The items at some positions of the order of an epoch, augmented, and mixed with others of their batch. What a
    /// position holds is a function of the order and the moment, whatever pieces the batch is served in.
    pub fn serve_epoch(
        &self,
        order: &[u32],
        positions: Range<usize>,
        batch_size: usize,
        moment: Moment,
    ) -> Served {
        if self.is_wide {
            self.epoch_of::<f64>(order, positions, batch_size, moment)
        } else {
            self.epoch_of::<f32>(order, positions, batch_size, moment)
        }
    }

    fn epoch_of<N: Number>(
        &self,
        order: &[u32],
        positions: Range<usize>,
        batch_size: usize,
        moment: Moment,
    ) -> Served {
        let places = &order[positions.clone()];
        let mut served = self.serve_as::<N>(places, Some(moment.from(positions.start)));
        let mixing = self.augment.as_ref().filter(|augment| augment.mixes());
        let (Some(spec), InputEncoder::Array { shape, .. }) = (mixing, &self.set.encoder.input)
        else {
            return served;
        };
        let (&[channels, height, width], Some(numbers), TargetValues::Classes(classes)) = (
            &shape[..],
            N::of_values(&mut served.values),
            &mut served.targets,
        ) else {
            return served;
        };
        let image = channels * height * width;
        let mut mixed = Mixed {
            classes: classes.clone(),
            shares: vec![0.0; classes.len()],
        };
        // From the last one on: each is mixed with the one before it, which must not be mixed yet.
        let mut drawn: Option<(usize, Option<Mix>)> = None;
        for number in (0..places.len()).rev() {
            let position = positions.start + number;
            let batch = position / batch_size;
            if drawn.is_none_or(|(of, _)| of != batch) {
                let seeds = (moment.seed, moment.epoch);
                drawn = Some((batch, Mix::draw(spec, seeds, batch, [height, width])));
            }
            let Some((_, Some(mix))) = drawn else {
                continue;
            };
            let at = partner(position, batch_size, order.len());
            let (before, rest) = numbers.split_at_mut(number * image);
            let picture = &mut rest[..image];
            let other = if number > 0 && at + 1 == position {
                mix.apply(picture, &before[(number - 1) * image..], shape);
                classes[number - 1]
            } else {
                let mut other = self.serve_as::<N>(&order[at..=at], Some(moment.from(at)));
                let (Some(values), TargetValues::Classes(other)) =
                    (N::of_values(&mut other.values), &other.targets)
                else {
                    continue;
                };
                mix.apply(picture, values, shape);
                other[0]
            };
            (mixed.classes[number], mixed.shares[number]) = (other, 1.0 - mix.kept);
            if mix.kept < 0.5 {
                std::mem::swap(&mut classes[number], &mut mixed.classes[number]);
                mixed.shares[number] = mix.kept;
            }
        }
        served.mixed = Some(mixed);
        served
    }

    /// Augments the image, and its mask, at the end of the buffers.
    pub(super) fn change<N: Number>(
        &self,
        spec: &AugmentSpec,
        seed: u64,
        numbers: &mut [N],
        classes: &mut [i32],
    ) {
        let input = &self.set.encoder.input;
        let (InputEncoder::Array { shape, .. }, Some(scaling)) = (input, input.array_scaling())
        else {
            return;
        };
        let [channels, height, width] = shape[..] else {
            return;
        };
        let size = channels * height * width;
        let from = numbers.len() - size;
        let mut mask = match &self.set.encoder.target {
            TargetEncoder::Classes { shape, .. } if shape[..] == [height, width] => {
                let from = classes.len() - height * width;
                Some(&mut classes[from..])
            }
            _ => None,
        };
        let picture = &mut numbers[from..];
        if spec.changes_colors() {
            N::in_singles(picture, |picture| {
                self.change_colors(spec, seed, picture, height * width);
            });
        }
        if let Some(spec) = &spec.resized_crop {
            let part = Part::draw(spec, seed, [height, width]);
            part.apply(picture, [height, width]);
            if let Some(mask) = &mut mask {
                part.apply_mask(mask, [height, width]);
            }
        }
        let black = |channel: usize| scaling.at(channel * height * width).apply(0.0);
        let black: Vec<N> = (0..channels).map(black).collect();
        augment(spec, seed, picture, [channels, height, width], &black, mask);
    }

    /// Changes the colors of a scaled image, whose planes have `len` pixels, in 32 bits.
    fn change_colors(&self, spec: &AugmentSpec, seed: u64, picture: &mut [f32], len: usize) {
        let pixels = self.set.encoder.input.pixels();
        // Values that are equal in all items are scaled by 0, and stay what they are.
        for (at, value) in picture.iter_mut().enumerate() {
            let (factor, added) = pixels.of(at);
            *value = if factor.is_finite() {
                *value * factor + added
            } else {
                added
            };
        }
        for change in jitter::draw(spec, seed) {
            change.apply(picture, len);
        }
        for (at, value) in picture.iter_mut().enumerate() {
            let (factor, added) = pixels.of(at);
            *value = if factor.is_finite() {
                (*value - added) / factor
            } else {
                0.0
            };
        }
    }
}
