//! Sums in an order that depends only on sizes, regardless of vector width and number of threads.

#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::vectors::vectorized;

/// The number of interleaved partial sums.
const LANES: usize = 32;

/// The sum of numbers.
#[inline(always)]
pub fn sum(values: &[f32]) -> f32 {
    sum_from(values, 0.0)
}

/// The sum of differences from a number.
#[inline(always)]
pub fn sum_from(values: &[f32], center: f32) -> f32 {
    // Loops over arrays, which the compiler vectorizes, unlike loops that index slices.
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0f32; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] += chunk[lane] - center;
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        *lane += value - center;
    }
    halved(lanes)
}

/// The sum of products.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    dot_from(a, b, 0.0)
}

/// The sum of products with differences from a number.
#[inline(always)]
pub fn dot_from(a: &[f32], b: &[f32], center: f32) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [0.0f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            lanes[lane] += a[lane] * (b[lane] - center);
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane += a * (b - center);
    }
    halved(lanes)
}

/// The sum of squared differences from a number.
#[inline(always)]
pub fn squares_from(values: &[f32], center: f32) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0f32; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            let from = chunk[lane] - center;
            lanes[lane] += from * from;
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        let from = value - center;
        *lane += from * from;
    }
    halved(lanes)
}

/// The sum of lanes, of halves and halves of halves.
#[inline(always)]
fn halved(mut lanes: [f32; LANES]) -> f32 {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// The largest number; NaN if there is any, -infinity if there are none.
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
    // A number that is not at most `a` is larger or NaN; if `a` is NaN it is kept, since comparisons with it are false.
    let is_kept = (b <= a) | a.is_nan();
    if is_kept { a } else { b }
}

/// Rows per task.
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
    /// Adds rows to sums of the same length.
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

/// The sums along the middle axis of \[outer, len, inner\]: \[outer, inner\].
///
/// # Panics
/// If there are not as many numbers.
pub fn axis_sums(values: &[f32], [outer, len, inner]: [usize; 3]) -> Vec<f32> {
    assert_eq!(values.len(), outer * len * inner);
    let mut sums = vec![0.0; outer * inner];
    if values.is_empty() {
        return sums;
    }
    // Rows of one number each are added up in lanes, others number by number.
    if inner == 1 {
        let at_a_time = (ROWS * 64 / len).max(1);
        let tasks = sums
            .par_chunks_mut(at_a_time)
            .zip(values.par_chunks(at_a_time * len));
        tasks.for_each(|(sums, rows)| row_sums(rows, sums));
    } else {
        let tasks = sums
            .par_chunks_mut(inner)
            .zip(values.par_chunks(len * inner));
        tasks.for_each(|(sums, rows)| add_rows(rows, sums));
    }
    sums
}

vectorized! {
    /// The sum of each row of as many as there are sums.
    fn row_sums = row_sums_now(rows: &[f32], sums: &mut [f32]);
}

#[inline(always)]
fn row_sums_now(rows: &[f32], sums: &mut [f32]) {
    let len = rows.len() / sums.len();
    for (row, to) in rows.chunks_exact(len).zip(sums) {
        *to = sum(row);
    }
}
