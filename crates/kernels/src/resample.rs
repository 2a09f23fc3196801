//! Planes of channels resampled to another size, separably: each value is a weighted sum of rows and of columns.

#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::scratch::{Shared, written};
use super::vectors::vectorized;

/// How values between positions are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The position at the start of the part of the input that an output stands for, or before it.
    Nearest,
    /// Both positions around the place, by their distance.
    Linear,
    /// Four positions around the place (Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981), with a
    /// parameter of -0.75.
    Cubic,
}

/// A change of size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resample {
    /// Channels of all items.
    pub planes: usize,
    /// Height and width of the input.
    pub input: [usize; 2],
    /// Height and width of the output.
    pub output: [usize; 2],
    /// How values between positions are found; one that is outside is the nearest inside.
    pub method: Method,
    /// Whether the first and last positions of both sizes are at the same places, instead of their borders. `Nearest`
    /// is the same with and without.
    pub aligns_corners: bool,
}

impl Resample {
    /// The output \[planes, height, width\].
    ///
    /// # Panics
    /// If a size is 0, or `x` does not have the numbers of the input.
    pub fn forward(&self, x: &[f32]) -> Vec<f32> {
        let [rows, columns] = [0, 1].map(|axis| self.terms(axis));
        self.sums(&rows, &columns, x)
    }

    /// The gradient of the input.
    ///
    /// # Panics
    /// If a size is 0, or `gradient` does not have the numbers of the output.
    pub fn backward(&self, gradient: &[f32]) -> Vec<f32> {
        let [rows, columns] = [0, 1].map(|axis| self.terms(axis).turned(self.input[axis]));
        self.sums(&rows, &columns, gradient)
    }

    fn sums(&self, rows: &Terms, columns: &Terms, x: &[f32]) -> Vec<f32> {
        let (area, area_in) = (rows.num() * columns.num(), rows.seen * columns.seen);
        assert!(area > 0 && area_in > 0 && x.len() == self.planes * area_in);
        let write = |to: Shared| {
            let planes = x.par_chunks_exact(area_in).enumerate().with_min_len(4);
            let line = || vec![0.0; columns.seen];
            planes.for_each_init(line, |line, (at, x)| {
                // SAFETY: only this task writes this plane.
                let to = unsafe { to.filled(at * area, area, 0.0) };
                sum_terms(rows, columns, x, line, to);
            });
        };
        // SAFETY: the tasks cover all planes.
        unsafe { written(self.planes * area, write) }
    }

    /// The positions of the input that each position of the output is a sum of, along an axis.
    fn terms(&self, axis: usize) -> Terms {
        let (input, output) = (self.input[axis], self.output[axis]);
        assert!(input > 0 && output > 0);
        let ratio = if self.aligns_corners {
            (input - 1) as f64 / (output - 1).max(1) as f64
        } else {
            input as f64 / output as f64
        };
        let place = |at: usize| {
            if self.aligns_corners {
                at as f64 * ratio
            } else {
                (at as f64 + 0.5) * ratio - 0.5
            }
        };
        let last = input - 1;
        let mut terms = Terms::new(input);
        for at in 0..output {
            match self.method {
                Method::Nearest => {
                    let seen = (at as f64 * (input as f64 / output as f64)).floor() as usize;
                    terms.add(seen.min(last), 1.0);
                }
                Method::Linear => {
                    let place = place(at).max(0.0);
                    let before = (place.floor() as usize).min(last);
                    let share = (place - before as f64) as f32;
                    terms.add(before, 1.0 - share);
                    terms.add((before + 1).min(last), share);
                }
                Method::Cubic => {
                    let place = place(at);
                    let before = place.floor();
                    for step in [-1.0, 0.0, 1.0, 2.0] {
                        let seen = (before + step).clamp(0.0, last as f64) as usize;
                        terms.add(seen, cubic(place - before - step) as f32);
                    }
                }
            }
            terms.end();
        }
        terms
    }
}

/// The weight of a position at a distance.
fn cubic(distance: f64) -> f64 {
    const A: f64 = -0.75;
    let distance = distance.abs();
    if distance < 1.0 {
        ((A + 2.0) * distance - (A + 3.0)) * distance * distance + 1.0
    } else if distance < 2.0 {
        ((A * distance - 5.0 * A) * distance + 8.0 * A) * distance - 4.0 * A
    } else {
        0.0
    }
}

/// Sums along an axis.
struct Terms {
    /// Where the terms of each sum begin, and where the last ones end.
    starts: Vec<usize>,
    /// The position and weight of each term.
    all: Vec<(u32, f32)>,
    /// Positions of what is summed.
    seen: usize,
}

impl Terms {
    fn new(seen: usize) -> Self {
        Self {
            starts: vec![0],
            all: Vec::new(),
            seen,
        }
    }

    fn add(&mut self, position: usize, weight: f32) {
        self.all.push((position as u32, weight));
    }

    /// Ends the terms of a sum.
    fn end(&mut self) {
        self.starts.push(self.all.len());
    }

    fn num(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline(always)]
    fn of(&self, sum: usize) -> &[(u32, f32)] {
        &self.all[self.starts[sum]..self.starts[sum + 1]]
    }

    /// For each of the `num` positions that are summed, the sums that it is a term of.
    fn turned(&self, num: usize) -> Self {
        let mut of_position = vec![Vec::new(); num];
        for sum in 0..self.num() {
            for (position, weight) in self.of(sum) {
                of_position[*position as usize].push((sum, *weight));
            }
        }
        let mut turned = Self::new(self.num());
        for terms in of_position {
            terms
                .iter()
                .for_each(|(sum, weight)| turned.add(*sum, *weight));
            turned.end();
        }
        turned
    }
}

vectorized! {
    /// `to` is all 0; `line` has room for a row of `x`.
    fn sum_terms = sum_terms_now(rows: &Terms, columns: &Terms, x: &[f32], line: &mut [f32], to: &mut [f32]);
}

#[inline(always)]
fn sum_terms_now(rows: &Terms, columns: &Terms, x: &[f32], line: &mut [f32], to: &mut [f32]) {
    let width = line.len();
    for (row, to) in to.chunks_exact_mut(columns.num()).enumerate() {
        let [(first, weight), rest @ ..] = rows.of(row) else {
            continue;
        };
        for (sum, x) in line.iter_mut().zip(&x[*first as usize * width..]) {
            *sum = weight * x;
        }
        for (position, weight) in rest {
            for (sum, x) in line.iter_mut().zip(&x[*position as usize * width..]) {
                *sum += weight * x;
            }
        }
        for (column, to) in to.iter_mut().enumerate() {
            let [(first, weight), rest @ ..] = columns.of(column) else {
                continue;
            };
            let mut sum = weight * line[*first as usize];
            for (position, weight) in rest {
                sum += weight * line[*position as usize];
            }
            *to = sum;
        }
    }
}
