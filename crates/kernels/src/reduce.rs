//! Sums in an order that depends on sizes alone, whatever the vectors' width and the number of threads.

#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::vectors::vectorized;

/// Sums that are kept beside each other, of every so-many-th number each.
const LANES: usize = 32;

/// The sum of numbers.
#[inline(always)]
pub fn sum(values: &[f32]) -> f32 {
    folded(values.len(), |at| values[at])
}

/// The sum of products.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let b = &b[..a.len()];
    folded(a.len(), |at| a[at] * b[at])
}

/// The sum of squares of what numbers differ from one.
#[inline(always)]
pub fn squares_from(values: &[f32], center: f32) -> f32 {
    folded(values.len(), |at| {
        let from = values[at] - center;
        from * from
    })
}

/// The sum of `len` terms.
#[inline(always)]
fn folded(len: usize, term: impl Fn(usize) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let whole = len / LANES * LANES;
    let mut first = 0;
    while first < whole {
        for lane in 0..LANES {
            lanes[lane] += term(first + lane);
        }
        first += LANES;
    }
    for lane in 0..len - whole {
        lanes[lane] += term(whole + lane);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// The largest number; NaN where there is one, -infinity of none.
#[inline(always)]
pub fn largest(values: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let mut chunks = values.chunks_exact(LANES);
    for chunk in &mut chunks {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], chunk[lane]);
        }
    }
    for (lane, value) in chunks.remainder().iter().enumerate() {
        lanes[lane] = larger(lanes[lane], *value);
    }
    lanes.into_iter().fold(f32::NEG_INFINITY, larger)
}

#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    // What is not at most `a` is larger, or NaN; an `a` of NaN stays, since no comparison holds then.
    let is_kept = (b <= a) | a.is_nan();
    if is_kept { a } else { b }
}

/// Rows that a task adds up.
const ROWS: usize = 256;

/// The sum of each column of rows of `columns` numbers.
pub fn column_sums(values: &[f32], columns: usize) -> Vec<f32> {
    if columns == 0 {
        return Vec::new();
    }
    let parts = values.par_chunks(ROWS * columns).map(|rows| {
        let mut sums = vec![0.0; columns];
        add_rows(rows, &mut sums);
        sums
    });
    let parts: Vec<_> = parts.collect();
    let mut sums = vec![0.0; columns];
    for part in parts {
        add_rows(&part, &mut sums);
    }
    sums
}

vectorized! {
    /// Adds rows to sums of as many numbers as each.
    pub fn add_rows = add_rows_now(rows: &[f32], sums: &mut [f32]);
}

#[inline(always)]
fn add_rows_now(rows: &[f32], sums: &mut [f32]) {
    for row in rows.chunks_exact(sums.len()) {
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += value;
        }
    }
}
