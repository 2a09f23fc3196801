//! Mixup (Zhang et al., 2018) and cutmix (Yun et al., 2019): items of a batch mixed with the item before them, as
//! torchvision does: the first one with the last.
//!
//! What is drawn for a batch is a function of the seed, the epoch and the number of the batch, whatever pieces it is
//! computed in.

use std::ops::Range;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::data::encode::Number;
use crate::data::generate::{below, turn, uniform};
use crate::data::order::{Purpose, stream_seed};
use crate::spec::data::AugmentSpec;

/// How the items of a batch are mixed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// The share of an item itself; the rest is that of the other one.
    pub kept: f64,
    /// The rectangle that is replaced: top, left, bottom and right; the last two are exclusive. Without one, all pixels
    /// are mixed.
    pub cut: Option<[usize; 4]>,
}

impl Mix {
    /// How a batch of images is mixed, if it is.
    pub fn draw(
        spec: &AugmentSpec,
        (seed, epoch): (u64, u64),
        batch: usize,
        size: [usize; 2],
    ) -> Option<Self> {
        let epoch = stream_seed(seed, Purpose::Mix, epoch);
        let mut rng = ChaCha8Rng::seed_from_u64(stream_seed(epoch, Purpose::Mix, batch as u64));
        let chosen = uniform(&mut rng);
        // As a function of the size, so that one method does not affect the other.
        let center = size.map(|side| below(&mut rng, side));
        let (mixup, cutmix) = (spec.mixup.as_ref(), spec.cutmix.as_ref());
        let first = mixup.map_or(0.0, |mixup| mixup.probability);
        let both = first + cutmix.map_or(0.0, |cutmix| cutmix.probability);
        match (mixup, cutmix) {
            (Some(mixup), _) if chosen < first => Some(Self {
                kept: beta(mixup.alpha, &mut rng),
                cut: None,
            }),
            (_, Some(cutmix)) if chosen < both => {
                let kept = beta(cutmix.alpha, &mut rng);
                Some(Self::cut(kept, center, size))
            }
            _ => None,
        }
    }

    /// A rectangle around a center that would replace all but a share of the image if it were inside: what is outside
    /// counts as kept.
    pub fn cut(kept: f64, center: [usize; 2], size: [usize; 2]) -> Self {
        let half = 0.5 * (1.0 - kept).sqrt();
        let ranges = [0, 1].map(|axis| {
            let half = (half * size[axis] as f64) as usize;
            let end = (center[axis] + half).min(size[axis]);
            center[axis].saturating_sub(half)..end
        });
        let [rows, columns] = &ranges;
        let area = (rows.len() * columns.len()) as f64;
        Self {
            kept: 1.0 - area / (size[0] * size[1]) as f64,
            cut: Some([rows.start, columns.start, rows.end, columns.end]),
        }
    }

    /// Mixes an image of a shape, \[channels, height, width\], with another one.
    pub fn apply<N: Number>(&self, picture: &mut [N], other: &[N], shape: &[usize]) {
        let Some([top, left, bottom, right]) = self.cut else {
            let (kept, rest) = (N::of(self.kept), N::of(1.0 - self.kept));
            for (value, other) in picture.iter_mut().zip(other) {
                *value = *other * rest + *value * kept;
            }
            return;
        };
        let &[_, height, width] = shape else {
            return;
        };
        let planes = picture.chunks_exact_mut(height * width);
        for (plane, other) in planes.zip(other.chunks_exact(height * width)) {
            for row in top..bottom {
                let columns = row * width + left..row * width + right;
                plane[columns.clone()].copy_from_slice(&other[columns]);
            }
        }
    }
}

/// The position that the item at a position of an epoch is mixed with: the one before it in its batch.
pub fn partner(position: usize, batch_size: usize, num_items: usize) -> usize {
    let batch = batch_of(position, batch_size, num_items);
    if position == batch.start {
        batch.end - 1
    } else {
        position - 1
    }
}

fn batch_of(position: usize, batch_size: usize, num_items: usize) -> Range<usize> {
    let start = position / batch_size * batch_size;
    start..(start + batch_size).min(num_items)
}

/// A number from the symmetric beta distribution: from two gamma distributions, whose logarithms do not underflow.
fn beta(alpha: f64, rng: &mut ChaCha8Rng) -> f64 {
    let [a, b] = [(); 2].map(|()| log_gamma_variate(alpha, rng));
    1.0 / (1.0 + libm::exp(b - a))
}

/// The logarithm of a number from a gamma distribution (Marsaglia and Tsang, 2000).
fn log_gamma_variate(shape: f64, rng: &mut ChaCha8Rng) -> f64 {
    // A shape below 1 follows from the next one.
    let d = shape + 1.0 - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    let log_uniform = |rng: &mut ChaCha8Rng| libm::log(1.0 - uniform(rng));
    loop {
        let x = (-2.0 * log_uniform(rng)).sqrt() * turn(uniform(rng)).1;
        let root = 1.0 + c * x;
        let u = log_uniform(rng);
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        let log_v = libm::log(v);
        if u < 0.5 * x * x + d - d * v + d * log_v {
            return libm::log(d) + log_v + log_uniform(rng) / shape;
        }
    }
}

#[cfg(test)]
mod tests;
