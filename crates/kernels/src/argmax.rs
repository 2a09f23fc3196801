//! The position of the largest number of each row.

use rayon::prelude::*;

use super::softmax::rows_at_once;
use super::vectors::vectorized;

/// Numbers that are compared at a time.
const LANES: usize = 16;

/// The position of the largest number of each row of `columns` numbers: the first of equal ones. NaN is never the
/// largest.
///
/// ```
/// use runner_kernels::argmax::argmax;
///
/// assert_eq!(argmax(&[1.0, 3.0, 3.0, 0.0, -1.0, f32::NAN], 3), [1, 0]);
/// ```
///
/// # Panics
/// If `columns` is 0.
pub fn argmax(values: &[f32], columns: usize) -> Vec<u32> {
    let mut places = vec![0; values.len() / columns];
    let rows = rows_at_once(columns);
    let pieces = values.par_chunks(rows * columns);
    let pieces = pieces.zip(places.par_chunks_mut(rows));
    pieces.for_each(|(values, places)| of_rows(values, columns, places));
    places
}

vectorized! {
    fn of_rows = of_rows_now(values: &[f32], columns: usize, places: &mut [u32]);
}

#[inline(always)]
fn of_rows_now(values: &[f32], columns: usize, places: &mut [u32]) {
    for (row, place) in values.chunks_exact(columns).zip(places) {
        *place = of_row(row);
    }
}

#[inline(always)]
fn of_row(values: &[f32]) -> u32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut best = [f32::NEG_INFINITY; LANES];
    let mut at = [0u32; LANES];
    for (number, chunk) in chunks.iter().enumerate() {
        for lane in 0..LANES {
            let is_larger = chunk[lane] > best[lane];
            best[lane] = if is_larger { chunk[lane] } else { best[lane] };
            at[lane] = if is_larger { number as u32 } else { at[lane] };
        }
    }
    let mut largest = (f32::NEG_INFINITY, 0);
    for lane in 0..LANES {
        let place = at[lane] * LANES as u32 + lane as u32;
        let is_earlier = best[lane] == largest.0 && place < largest.1;
        if best[lane] > largest.0 || is_earlier {
            largest = (best[lane], place);
        }
    }
    let first = (chunks.len() * LANES) as u32;
    for (place, value) in (first..).zip(rest) {
        if *value > largest.0 {
            largest = (*value, place);
        }
    }
    largest.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::numbers;

    fn plain(row: &[f32]) -> u32 {
        let mut largest = 0;
        for (at, value) in row.iter().enumerate() {
            if *value > row[largest] || (row[largest].is_nan() && !value.is_nan()) {
                largest = at;
            }
        }
        if row[largest].is_nan() {
            0
        } else {
            largest as u32
        }
    }

    #[test]
    fn the_first_of_the_largest_is_found_wherever_it_is() {
        for columns in [1, 2, 10, 15, 16, 17, 31, 32, 33, 100, 20_000] {
            for rows in [0, 1, 3, 40, 3000 / columns + 1] {
                // Few different numbers, so that many are equal.
                let some = numbers(rows * columns, 1).into_iter();
                let some: Vec<f32> = some.map(|number| (number * 3.0).round()).collect();
                for (every, value) in [
                    (usize::MAX, 0.0),
                    (3, f32::NAN),
                    (2, f32::NEG_INFINITY),
                    (1, f32::NAN),
                    (1, f32::NEG_INFINITY),
                    (7, f32::INFINITY),
                ] {
                    let mut values = some.clone();
                    values
                        .iter_mut()
                        .step_by(every)
                        .for_each(|number| *number = value);
                    let expected: Vec<u32> = values.chunks(columns).map(plain).collect();
                    assert_eq!(
                        argmax(&values, columns),
                        expected,
                        "{rows} {columns} {every} {value}"
                    );
                }
            }
        }
    }
}
