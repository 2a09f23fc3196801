//! Dropout (Srivastava et al., 2014). What is dropped is a function of a seed and of the position, so that it needs no
//! memory between the passes, and does not depend on threads.

#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::scratch::{PIECE, changed_copy};
use super::vectors::vectorized;

/// Numbers that are dropped, while the others are scaled up. The gradient is what the function makes of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    keys: [u32; 2],
    /// Of the 2 to the 32 values that a position may have, those below are dropped.
    threshold: u32,
    scale: f32,
}

impl Dropout {
    /// Drops each number with a probability, which is below 1.
    ///
    /// # Examples
    ///
    /// ```
    /// use runner_kernels::dropout::Dropout;
    ///
    /// let y = Dropout::new(7, 0.5).forward(&[1.0; 8]);
    /// assert!(y.iter().all(|y| [0.0, 2.0].contains(y)));
    /// ```
    pub fn new(seed: u64, probability: f64) -> Self {
        let keys = [seed as u32, (seed >> 32) as u32];
        Self {
            keys,
            threshold: (probability * 4_294_967_296.0) as u32,
            scale: (1.0 / (1.0 - probability)) as f32,
        }
    }

    /// Applies it in place. Infinite numbers that are dropped become NaN, which stays.
    pub fn apply(self, values: &mut [f32]) {
        let pieces = values.par_chunks_mut(PIECE).enumerate();
        pieces.for_each(|(at, piece)| drop_some(self.at(at), piece));
    }

    /// Applies it to a copy.
    pub fn forward(self, x: &[f32]) -> Vec<f32> {
        changed_copy(x, |at, piece| drop_some(self.at(at), piece))
    }

    /// That of a piece, whose positions begin at 0.
    fn at(self, piece: usize) -> Self {
        let piece = piece as u64;
        let [first, second] = self.keys;
        // Both halves of the number, so that no two pieces of a tensor have the same keys.
        let first = mixed(first ^ mixed(piece as u32));
        let second = mixed(second.wrapping_add(first) ^ (piece >> 32) as u32);
        Self {
            keys: [first, second],
            ..self
        }
    }
}

/// Maps a number to another that has nothing in common with it; one to one (Wellons, Prospecting for Hash Functions,
/// 2018).
#[inline(always)]
fn mixed(x: u32) -> u32 {
    let x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    let x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

vectorized! {
    fn drop_some = drop_now(dropout: Dropout, values: &mut [f32]);
}

#[inline(always)]
fn drop_now(dropout: Dropout, values: &mut [f32]) {
    let Dropout {
        keys,
        threshold,
        scale,
    } = dropout;
    for (at, value) in values.iter_mut().enumerate() {
        let drawn = mixed(mixed(at as u32 ^ keys[0]).wrapping_add(keys[1]));
        *value *= if drawn < threshold { 0.0 } else { scale };
    }
}
