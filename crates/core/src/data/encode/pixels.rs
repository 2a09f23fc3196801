//! Scaled values of images as pixels.

use super::{Groups, InputEncoder};

/// What brings the values that a network is given back to pixels from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Pixels {
    /// A factor, and what is added then, for each group of values.
    each: Vec<(f32, f32)>,
    groups: Groups,
    /// What a pixel of 0 is in the data, in its range.
    low: f32,
}

impl Default for Pixels {
    fn default() -> Self {
        Self {
            each: vec![(1.0, 0.0)],
            groups: Groups::each(1),
            low: 0.0,
        }
    }
}

impl Pixels {
    /// The factor and what is added then, if they are those of all values.
    pub fn of_all(&self) -> Option<(f32, f32)> {
        match self.each[..] {
            [one] => Some(one),
            _ => None,
        }
    }

    /// What is added to pixels for the numbers of the data in units of its range: similarities of images depend on where
    /// 0 is.
    pub fn low(&self) -> f32 {
        self.low
    }

    /// The factor of a value of an item, and what is added then.
    pub fn of(&self, at: usize) -> (f32, f32) {
        self.each[self.groups.place(at)]
    }

    /// The factor of each value of an item, and what is added then.
    pub fn of_each(&self, num_values: usize) -> (Vec<f32>, Vec<f32>) {
        let each = |at: usize| self.each[self.groups.place(at)];
        (0..num_values).map(each).unzip()
    }
}

impl InputEncoder {
    /// What brings scaled values back to pixels: bytes from 0 to 255, and other numbers as they are, or where the data
    /// goes beyond 0 to 1, by its range.
    pub fn pixels(&self) -> Pixels {
        let InputEncoder::Array {
            shape,
            scaling,
            axis,
            unit,
            range,
            ..
        } = self
        else {
            return Pixels::default();
        };
        let [low, high] = range.unwrap_or([0.0, 1.0]);
        let size = (high - low) as f32;
        let pixel = |(shift, factor): (f32, f32)| {
            (unit / factor / size, (shift * unit - low as f32) / size)
        };
        let each = scaling.iter();
        Pixels {
            each: each
                .map(|one| pixel((one.shift as f32, one.factor as f32)))
                .collect(),
            groups: Groups::of_scalings(scaling.len(), shape, *axis),
            low: low as f32 / size,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::data::encode::{InputEncoder, Scaling};

    fn images(scaling: Vec<Scaling>, unit: f32, range: Option<[f64; 2]>) -> InputEncoder {
        InputEncoder::Array {
            column: 0,
            shape: vec![2, 1, 3],
            axis: (scaling.len() > 1).then_some(0),
            scaling,
            unit,
            range,
            normalize: false,
        }
    }

    #[test]
    fn similarities_keep_where_zero_is() {
        let scaling = |shift, factor| Scaling { shift, factor };
        let range = Some([-100.0, 300.0]);
        let pixels = images(vec![scaling(100.0, 0.1)], 1.0, range).pixels();
        let (factor, added) = pixels.of(0);
        // 140 is scaled to 4; the range of the data is 400.
        assert!((4.0 * factor + added + pixels.low() - 140.0 / 400.0).abs() < 1e-6);
        assert_eq!(
            images(vec![scaling(51.0, 0.1)], 1.0 / 255.0, None)
                .pixels()
                .low(),
            0.0
        );
    }

    #[test]
    fn scaled_values_become_pixels_again() {
        let scaling = |shift, factor| Scaling { shift, factor };
        let cases = [
            (
                images(vec![scaling(51.0, 0.1)], 1.0 / 255.0, None),
                [51.0 / 255.0; 6],
            ),
            (images(vec![scaling(0.5, 4.0)], 1.0, None), [0.5; 6]),
            (
                images(vec![scaling(100.0, 0.1)], 1.0, Some([-100.0, 300.0])),
                [0.5; 6],
            ),
            (
                images(vec![scaling(0.25, 2.0), scaling(0.75, 3.0)], 1.0, None),
                [0.25, 0.25, 0.25, 0.75, 0.75, 0.75],
            ),
        ];
        for (encoder, wanted) in cases {
            let (factors, added) = encoder.pixels().of_each(6);
            for (at, wanted) in wanted.into_iter().enumerate() {
                // A scaled value of 0 is the shift.
                assert!((added[at] - wanted as f32).abs() < 1e-6, "{encoder:?}");
                assert!(factors[at] > 0.0);
            }
        }
    }
}
