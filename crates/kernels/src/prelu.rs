//! PReLU (He et al., 2015): what is not positive times a learned slope, which may be that of its channel.

use rayon::prelude::*;

use super::reduce::{column_sums, dot, sum};
use super::scratch::{self, PIECE};
use super::vectors::vectorized;

/// The sizes of an input \[items, channels, area\]; one channel for a slope that all share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prelu {
    /// Channels, each with a slope.
    pub channels: usize,
    /// Numbers of a channel in an item.
    pub area: usize,
}

impl Prelu {
    /// Numbers that a task computes: whole items, where the slopes differ.
    fn piece(self) -> usize {
        if self.channels == 1 {
            PIECE
        } else {
            let item = (self.channels * self.area).max(1);
            item * (PIECE / item).max(1)
        }
    }

    /// Numbers of an item in a piece, and of a channel in it.
    fn item(self, piece: &[f32]) -> [usize; 2] {
        let [item, area] = match self.channels {
            1 => [piece.len(), piece.len()],
            channels => [channels * self.area, self.area],
        };
        [item.max(1), area.max(1)]
    }

    /// Multiplies values by the slope where the input is not positive: the input itself, for the output, or the gradient
    /// of the output, for that of the input.
    ///
    /// ```
    /// use runner_kernels::prelu::Prelu;
    ///
    /// let x = [-1.0, 2.0, -3.0, -4.0];
    /// let mut output = x;
    /// Prelu { channels: 2, area: 1 }.scale(&x, &[0.5, 0.25], &mut output);
    /// assert_eq!(output, [-0.5, 2.0, -1.5, -1.0]);
    /// ```
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn scale(self, x: &[f32], slopes: &[f32], values: &mut [f32]) {
        assert_eq!(x.len(), values.len());
        let piece = self.piece();
        let pieces = values.par_chunks_mut(piece).zip(x.par_chunks(piece));
        pieces.for_each(|(values, x)| scale_piece(self, x, slopes, values));
    }

    /// The gradients of the slopes.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn backward_slopes(self, x: &[f32], gradient: &[f32]) -> Vec<f32> {
        assert_eq!(x.len(), gradient.len());
        let piece = self.piece();
        let mut sums = vec![0.0; x.len().div_ceil(piece) * self.channels];
        let pieces = x.par_chunks(piece).zip(gradient.par_chunks(piece));
        let pieces = sums.par_chunks_mut(self.channels.max(1)).zip(pieces);
        pieces.for_each(|(sums, (x, gradient))| sums_of_piece(self, x, gradient, sums));
        match self.channels {
            1 => vec![sum(&sums)],
            channels => column_sums(&sums, channels),
        }
    }
}

vectorized! {
    fn scale_piece = scale_now(of: Prelu, x: &[f32], slopes: &[f32], values: &mut [f32]);
}

#[inline(always)]
fn scale_now(of: Prelu, x: &[f32], slopes: &[f32], values: &mut [f32]) {
    let [item, area] = of.item(x);
    for (x, values) in x.chunks(item).zip(values.chunks_mut(item)) {
        if area == 1 && of.channels > 1 {
            for ((x, value), slope) in x.iter().zip(values).zip(slopes) {
                *value = if *x > 0.0 { *value } else { *value * slope };
            }
            continue;
        }
        let channels = x.chunks(area).zip(values.chunks_mut(area));
        for ((x, values), slope) in channels.zip(slopes) {
            for (x, value) in x.iter().zip(values) {
                *value = if *x > 0.0 { *value } else { *value * slope };
            }
        }
    }
}

vectorized! {
    fn sums_of_piece = sums_now(of: Prelu, x: &[f32], gradient: &[f32], sums: &mut [f32]);
}

/// Adds the products of inputs that are not positive and their gradients to the sum of each channel.
#[inline(always)]
fn sums_now(of: Prelu, x: &[f32], gradient: &[f32], sums: &mut [f32]) {
    let [item, area] = of.item(x);
    for (x, gradient) in x.chunks(item).zip(gradient.chunks(item)) {
        if area == 1 && of.channels > 1 {
            for ((x, gradient), sum) in x.iter().zip(gradient).zip(&mut *sums) {
                *sum += if *x > 0.0 { 0.0 } else { x * gradient };
            }
            continue;
        }
        scratch::with(area, |below| {
            let channels = x.chunks(area).zip(gradient.chunks(area));
            for ((x, gradient), sum) in channels.zip(&mut *sums) {
                for (below, x) in below.iter_mut().zip(x) {
                    *below = if *x > 0.0 { 0.0 } else { *x };
                }
                *sum += dot(below, gradient);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::numbers;

    #[test]
    fn all_sizes_are_computed_as_by_definition() {
        let sizes = [[3, 4, 5], [3, 4, 1], [7, 1, 2000], [1, 3, 5000], [0, 2, 3]];
        for [items, channels, area] in sizes {
            let len = items * channels * area;
            let (x, gradient, slopes) = (numbers(len, 1), numbers(len, 2), numbers(channels, 3));
            let prelu = Prelu { channels, area };
            let (mut output, mut of_input) = (x.clone(), gradient.clone());
            prelu.scale(&x, &slopes, &mut output);
            prelu.scale(&x, &slopes, &mut of_input);
            let mut sums = vec![0.0; channels];
            for at in 0..len {
                let channel = at / area % channels;
                let slope = if x[at] > 0.0 { 1.0 } else { slopes[channel] };
                assert_eq!(output[at], x[at] * slope);
                assert_eq!(of_input[at], gradient[at] * slope);
                if x[at] <= 0.0 {
                    sums[channel] += f64::from(x[at]) * f64::from(gradient[at]);
                }
            }
            for (found, sum) in prelu.backward_slopes(&x, &gradient).iter().zip(&sums) {
                assert!((f64::from(*found) - sum).abs() < 1e-3, "{found} for {sum}");
            }
        }
    }
}
