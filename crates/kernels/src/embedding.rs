//! Lookup of table rows, and the sum of gradients by row.

use rayon::prelude::*;

use super::concat::copied_rows;

/// Numbers per task, about.
const PIECE: usize = 1 << 14;

/// The rows of `table`, of `width` numbers each, in the order of `rows`.
///
/// # Panics
/// If the table has no such row.
pub fn gather(table: &[f32], width: usize, rows: &[usize]) -> Vec<f32> {
    copied_rows(rows.len(), width, |at| &table[rows[at] * width..][..width])
}

/// The sum of the gradients for each of `num` rows, where `rows` were looked up, in their order.
///
/// # Panics
/// If the number of gradients does not match, or a row is not in the table.
pub fn scatter(gradient: &[f32], width: usize, rows: &[usize], num: usize) -> Vec<f32> {
    assert_eq!(gradient.len(), rows.len() * width);
    assert!(rows.iter().all(|row| *row < num));
    let mut sums = vec![0.0; num * width];
    // Each task handles some rows of the table, and scans all gradients for them.
    let of_task = (PIECE / width.max(1)).max(1).max(num.div_ceil(8));
    let tasks = sums.par_chunks_mut((of_task * width).max(1)).enumerate();
    tasks.for_each(|(task, sums)| {
        let first = task * of_task;
        for (row, gradient) in rows.iter().zip(gradient.chunks_exact(width)) {
            let Some(at) = row.checked_sub(first).filter(|at| *at < of_task) else {
                continue;
            };
            let sums = &mut sums[at * width..][..width];
            sums.iter_mut()
                .zip(gradient)
                .for_each(|(sum, gradient)| *sum += gradient);
        }
    });
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::numbers;

    #[test]
    fn rows_are_gathered_and_their_gradients_added_up() {
        for (num, width, len) in [(1, 1, 0), (3, 2, 7), (5000, 7, 3000), (40, 1000, 90)] {
            let table = numbers(num * width, 1);
            let rows: Vec<usize> = (0..len).map(|at| (at * at + 3 * at) % num).collect();
            let found = gather(&table, width, &rows);
            let gradient = numbers(len * width, 2);
            let sums = scatter(&gradient, width, &rows, num);
            let mut plain = vec![0.0f32; num * width];
            for (at, row) in rows.iter().enumerate() {
                assert_eq!(found[at * width..][..width], table[row * width..][..width]);
                for column in 0..width {
                    plain[row * width + column] += gradient[at * width + column];
                }
            }
            assert_eq!(sums, plain);
        }
    }
}
