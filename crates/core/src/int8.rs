//! Matrices of 8-bit numbers, each times a scale that it shares with others of its column.
//!
//! Scales have so few digits that their products with 8-bit numbers are exact in 32 bits. So rounding what has been
//! rounded changes nothing, on any processor.

/// The most rows that share a scale, if that divides those of a matrix.
const MOST_ROWS: usize = 64;
/// The fewest rows that are worth a scale.
const FEWEST_ROWS: usize = 8;
/// The largest 8-bit number: the smallest one is its negative.
const LARGEST: f32 = 127.0;
/// The smallest scale, far from numbers with fewer digits.
const SMALLEST: f32 = 1e-30;

/// How many rows of each column share a scale in a matrix with so many rows: a divisor of their number, of at most a
/// byte. `None` if there is no useful one, and the whole matrix has one scale.
pub fn rows_of_scale(rows: usize) -> Option<usize> {
    let is_divisor = |num: &usize| rows.is_multiple_of(*num);
    let most = MOST_ROWS.min(rows);
    let mut few = (FEWEST_ROWS.min(most).max(1)..=most).rev();
    let found = few.find(is_divisor);
    found.or_else(|| (MOST_ROWS..=u8::MAX as usize).find(is_divisor))
}

/// The number of scales of a matrix.
pub fn num_scales([rows, columns]: [usize; 2]) -> usize {
    rows_of_scale(rows).map_or(1, |num| rows / num * columns)
}

/// The numbers and scales of a matrix, \[rows, columns\]; scales are \[blocks of rows, columns\].
///
/// ```
/// # use runner_core::int8::{rounded, values};
/// let (numbers, scales) = rounded(&[1.0, -0.5, 0.25, 0.125], [2, 2]);
/// assert_eq!(numbers, [127, -127, 32, 32]);
/// let values = values(&numbers, &scales, [2, 2]);
/// assert!((values[2] - 0.25).abs() < 0.003);
/// ```
pub fn rounded(values: &[f32], [rows, columns]: [usize; 2]) -> (Vec<i8>, Vec<f32>) {
    let mut numbers = Vec::with_capacity(values.len());
    let Some(tall) = rows_of_scale(rows) else {
        let largest = values
            .iter()
            .fold(0.0, |largest: f32, value| largest.max(value.abs()));
        let scale = scale(largest);
        numbers.extend(values.iter().map(|value| (value / scale).round() as i8));
        return (numbers, vec![scale]);
    };
    let mut scales = Vec::with_capacity(num_scales([rows, columns]));
    for block in values.chunks((tall * columns).max(1)) {
        let first = scales.len();
        scales.resize(first + columns, 0.0_f32);
        let of_block = &mut scales[first..];
        for row in block.chunks_exact(columns) {
            let pairs = of_block.iter_mut().zip(row);
            pairs.for_each(|(largest, value)| *largest = largest.max(value.abs()));
        }
        of_block
            .iter_mut()
            .for_each(|largest| *largest = scale(*largest));
        for row in block.chunks_exact(columns) {
            let pairs = row.iter().zip(&*of_block);
            numbers.extend(pairs.map(|(value, scale)| (value / scale).round() as i8));
        }
    }
    (numbers, scales)
}

/// The least scale of at most 16 digits with which all numbers up to one are 8-bit numbers.
fn scale(largest: f32) -> f32 {
    const DROPPED: u32 = (1 << 8) - 1;
    let least = (largest / LARGEST).max(SMALLEST);
    f32::from_bits((least.to_bits() + DROPPED) & !DROPPED)
}

/// The values of some rows of a matrix, from the row `first` on.
///
/// # Panics
/// If there are other scales than those of [`rounded`], or no such rows.
pub fn full(
    numbers: &[i8],
    scales: &[f32],
    [rows, columns]: [usize; 2],
    first: usize,
    values: &mut [f32],
) {
    assert_eq!(scales.len(), num_scales([rows, columns]), "scales");
    if columns == 0 {
        return;
    }
    let tall = rows_of_scale(rows);
    let each = numbers.chunks_exact(columns);
    for (at, (numbers, values)) in each.zip(values.chunks_exact_mut(columns)).enumerate() {
        let pairs = values.iter_mut().zip(numbers);
        match tall {
            Some(tall) => {
                let of_row = &scales[(first + at) / tall * columns..][..columns];
                let triples = pairs.zip(of_row);
                triples.for_each(|((value, number), scale)| *value = f32::from(*number) * scale);
            }
            None => pairs.for_each(|(value, number)| *value = f32::from(*number) * scales[0]),
        }
    }
}

/// The numbers and scales of a matrix in the bytes of a tensor of Burn's: all numbers, and then the scales. `None` if
/// there are other bytes than those.
fn of_bytes(bytes: &[u8], [rows, columns]: [usize; 2]) -> Option<(Vec<i8>, Vec<f32>)> {
    let num = rows.checked_mul(columns)?;
    let (numbers, scales) = bytes.split_at_checked(num)?;
    let (each, rest) = scales.as_chunks::<4>();
    if !rest.is_empty() || each.len() != num_scales([rows, columns]) {
        return None;
    }
    let numbers = numbers.iter().map(|byte| i8::from_ne_bytes([*byte]));
    let scales = each.iter().map(|bytes| f32::from_le_bytes(*bytes));
    Some((numbers.collect(), scales.collect()))
}

/// All values of a matrix in the bytes of a tensor of Burn's. `None` if there are other bytes than its numbers and scales.
pub fn values_of_bytes(bytes: &[u8], sizes: [usize; 2]) -> Option<Vec<f32>> {
    let (numbers, scales) = of_bytes(bytes, sizes)?;
    Some(values(&numbers, &scales, sizes))
}

/// All values of a matrix.
pub fn values(numbers: &[i8], scales: &[f32], sizes: [usize; 2]) -> Vec<f32> {
    let mut all = vec![0.0; numbers.len()];
    full(numbers, scales, sizes, 0, &mut all);
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scales_are_shared_by_divisors() {
        let of = [1, 4, 64, 100, 127, 128, 254, 514, 576, 784, 2048].map(rows_of_scale);
        let expected = [
            Some(1),
            Some(4),
            Some(64),
            Some(50),
            Some(127),
            Some(64),
            Some(127),
            None,
            Some(64),
            Some(56),
            Some(64),
        ];
        assert_eq!(of, expected);
    }

    proptest! {
        #[test]
        fn rounded_values_are_near_and_stay(
            (sizes, given) in (1_usize..300, 1_usize..9).prop_flat_map(|(rows, columns)| {
                let numbers = proptest::collection::vec(-1e3_f32..1e3, rows * columns);
                (Just([rows, columns]), numbers)
            }),
            factor in prop_oneof![Just(0.0_f32), Just(1e-38), Just(1e-3), Just(1.0), Just(1e30)],
        ) {
            let given: Vec<f32> = given.iter().map(|value| value * factor).collect();
            let (numbers, scales) = rounded(&given, sizes);
            prop_assert!(numbers.iter().all(|number| *number != i8::MIN));
            let found = values(&numbers, &scales, sizes);
            let largest = given.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            for (found, given) in found.iter().zip(&given) {
                let step = (largest / 127.0).max(SMALLEST) * 0.501;
                prop_assert!((found - given).abs() <= step, "{found} for {given}");
            }
            let again = rounded(&found, sizes);
            prop_assert_eq!(&again.0, &numbers);
            prop_assert_eq!(values(&again.0, &again.1, sizes), found);
        }

        #[test]
        fn rows_are_read_alone(rows in 1_usize..300, columns in 1_usize..5, at in 0_usize..300) {
            let at = at % rows;
            let given: Vec<f32> = (0..rows * columns).map(|at| (at as f32).sin()).collect();
            let (numbers, scales) = rounded(&given, [rows, columns]);
            let all = values(&numbers, &scales, [rows, columns]);
            let of_row = at * columns..(at + 1) * columns;
            let mut row = vec![f32::NAN; columns];
            full(&numbers[of_row.clone()], &scales, [rows, columns], at, &mut row);
            prop_assert_eq!(&row, &all[of_row]);
        }
    }
}
