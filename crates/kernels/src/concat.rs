//! Concatenation along an axis, and splitting.

use rayon::prelude::*;

use super::scratch::{Shared, written};

/// Numbers per task.
const PIECE: usize = 1 << 14;
/// So many numbers are one task: to copy them takes no longer than to wake another thread.
const ALONE: usize = 1 << 16;

/// Rows per task, about the same number in all.
fn rows_of_task(rows: usize, width: usize) -> usize {
    let numbers = rows * width;
    let tasks = if numbers <= ALONE {
        1
    } else {
        numbers.div_ceil(PIECE)
    };
    rows.div_ceil(tasks).max(1)
}

/// Concatenates the rows of several parts: row i consists of row i of each part. Each part is given with the length of
/// its rows.
///
/// # Panics
/// If the parts have different numbers of rows.
///
/// ```
/// # use runner_kernels::concat::join;
/// assert_eq!(join(&[(&[1.0, 2.0], 1), (&[3.0, 4.0, 5.0, 6.0], 2)], 2), [1.0, 3.0, 4.0, 2.0, 5.0, 6.0]);
/// ```
pub fn join(parts: &[(&[f32], usize)], rows: usize) -> Vec<f32> {
    let width: usize = parts.iter().map(|(_, width)| width).sum();
    assert!(
        parts
            .iter()
            .all(|(values, width)| values.len() == rows * width)
    );
    let at_a_time = rows_of_task(rows, width);
    let write = |to: Shared| {
        (0..rows.div_ceil(at_a_time))
            .into_par_iter()
            .for_each(|task| {
                for row in task * at_a_time..rows.min((task + 1) * at_a_time) {
                    let mut place = row * width;
                    for (values, width) in parts {
                        // SAFETY: only this task writes this row.
                        unsafe { to.write(place, &values[row * width..][..*width]) };
                        place += width;
                    }
                }
            });
    };
    // SAFETY: the tasks cover all rows.
    unsafe { written(rows * width, write) }
}

/// The numbers from `first` on, `width` of each row of `whole`.
///
/// # Panics
/// If rows are shorter.
pub fn part(values: &[f32], whole: usize, first: usize, width: usize) -> Vec<f32> {
    assert!(first + width <= whole);
    let rows = values.len().checked_div(whole).unwrap_or(0);
    copied_rows(rows, width, |row| &values[row * whole + first..][..width])
}

/// `rows` rows of `width` numbers each, one after the other.
///
/// # Panics
/// If a row has another width.
pub(super) fn copied_rows<'a>(
    rows: usize,
    width: usize,
    row: impl Fn(usize) -> &'a [f32] + Sync,
) -> Vec<f32> {
    let at_a_time = rows_of_task(rows, width);
    let write = |to: Shared| {
        (0..rows.div_ceil(at_a_time))
            .into_par_iter()
            .for_each(|task| {
                for at in task * at_a_time..rows.min((task + 1) * at_a_time) {
                    let row = row(at);
                    assert_eq!(row.len(), width);
                    // SAFETY: only this task writes this row.
                    unsafe { to.write(at * width, row) };
                }
            });
    };
    // SAFETY: the tasks cover all rows, each of which has its width.
    unsafe { written(rows * width, write) }
}

#[cfg(test)]
mod tests {
    use super::{join, part};
    use crate::tests::numbers;

    #[test]
    fn parts_come_back_from_what_they_are_joined_to() {
        for (rows, widths) in [
            (1, [3, 1]),
            (5, [7, 300]),
            (2, [20_000, 9]),
            (0, [1, 2]),
            (4, [0, 2]),
        ] {
            let [a, b] = widths.map(|width| numbers(rows * width, width as u64));
            let joined = join(&[(&a, widths[0]), (&b, widths[1])], rows);
            let whole = widths[0] + widths[1];
            assert!(part(&joined, whole, 0, widths[0]) == a);
            assert!(part(&joined, whole, widths[0], widths[1]) == b);
        }
    }
}
