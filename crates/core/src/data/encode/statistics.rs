//! Statistics of the train split: in chunks of items, on all cores, combined in item order, so that the result does not
//! depend on the number of threads.

use rayon::prelude::*;

use super::{Groups, Scaling};
use crate::spec::data::Scale;

/// Items that one thread sums up at a time.
const CHUNK: usize = 1024;

/// Statistics of one value over the items that have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Items that have it.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// The standard deviation, with all items as the population.
    pub deviation: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

#[derive(Clone, Copy)]
struct Sums {
    count: u64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

const EMPTY: Sums = Sums {
    count: 0,
    sum: 0.0,
    squares: 0.0,
    min: f64::INFINITY,
    max: f64::NEG_INFINITY,
};

impl Sums {
    #[inline]
    fn see(&mut self, value: f64, shift: f64) {
        if value.is_nan() {
            return;
        }
        let apart = value - shift;
        self.count += 1;
        self.sum += apart;
        self.squares += apart * apart;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Those of values whose differences to `shift` were added.
    fn moments(&self, shift: f64) -> Moments {
        let num = self.count.max(1) as f64;
        let apart = self.sum / num;
        Moments {
            count: self.count,
            mean: shift + apart,
            deviation: (self.squares / num - apart * apart).max(0.0).sqrt(),
            min: self.min,
            max: self.max,
        }
    }

    /// Sums stay in registers meanwhile: images have many values.
    fn add(&mut self, values: &[f64], shift: f64) {
        let mut all = *self;
        values.iter().for_each(|value| all.see(*value, shift));
        *self = all;
    }
}

/// The moments of groups of values over some rows; `read` yields the values of a row in turn, any number of times. NaN
/// means missing.
///
/// Sums are over differences to the first value (Chan, Golub and LeVeque, 1983, on shifted data), so that a deviation
/// that is small relative to the mean is not lost.
pub fn moments(
    rows: &[u32],
    groups: Groups,
    read: impl Fn(usize, &mut Vec<f64>) + Sync,
) -> Vec<Moments> {
    let mut shifts = vec![f64::NAN; groups.num];
    let mut values = Vec::new();
    for row in rows.iter().take(CHUNK) {
        if shifts.iter().all(|shift| !shift.is_nan()) {
            break;
        }
        values.clear();
        read(*row as usize, &mut values);
        for (at, value) in values.iter().enumerate() {
            let shift = &mut shifts[groups.place(at)];
            if shift.is_nan() {
                *shift = *value;
            }
        }
    }
    for shift in &mut shifts {
        if shift.is_nan() {
            *shift = 0.0;
        }
    }
    let chunks: Vec<Vec<Sums>> = rows
        .par_chunks(CHUNK)
        .map(|rows| {
            let mut sums = vec![EMPTY; groups.num];
            let mut values = Vec::new();
            for row in rows {
                values.clear();
                read(*row as usize, &mut values);
                if let ([sum], [shift]) = (&mut sums[..], &shifts[..]) {
                    sum.add(&values, *shift);
                    continue;
                }
                for values in values.chunks(groups.num * groups.run) {
                    let each = values.chunks(groups.run).zip(&mut sums).zip(&shifts);
                    each.for_each(|((values, sum), shift)| sum.add(values, *shift));
                }
            }
            sums
        })
        .collect();
    let mut total = vec![EMPTY; groups.num];
    for chunk in chunks {
        for (total, sums) in total.iter_mut().zip(chunk) {
            total.count += sums.count;
            total.sum += sums.sum;
            total.squares += sums.squares;
            total.min = total.min.min(sums.min);
            total.max = total.max.max(sums.max);
        }
    }
    let pairs = total.into_iter().zip(shifts);
    pairs.map(|(sums, shift)| sums.moments(shift)).collect()
}

/// The moments of all bytes of some rows, from how often each occurs. They are those of [`moments`] to the bit, whose
/// sums of integers are exact.
pub fn moments_of_bytes<'a>(rows: &[u32], read: impl Fn(usize) -> &'a [u8] + Sync) -> Moments {
    type Counts = [u64; 256];
    let chunks = rows.par_chunks(CHUNK).map(|rows| {
        // Equal neighbors would wait for each other's count.
        let mut counts = [[0_u64; 256]; 4];
        for row in rows {
            let (quads, rest) = read(*row as usize).as_chunks::<4>();
            for quad in quads {
                for (counts, byte) in counts.iter_mut().zip(quad) {
                    counts[*byte as usize] += 1;
                }
            }
            rest.iter().for_each(|byte| counts[0][*byte as usize] += 1);
        }
        counts
    });
    let mut counts: Counts = [0; 256];
    for part in chunks.collect::<Vec<_>>().iter().flatten() {
        let pairs = counts.iter_mut().zip(part);
        pairs.for_each(|(sum, count)| *sum += count);
    }
    let mut first = rows.iter().flat_map(|row| read(*row as usize));
    let shift = first.next().map_or(0.0, |byte| f64::from(*byte));
    let mut all = EMPTY;
    for (byte, count) in (0_u8..=255).zip(counts).filter(|(_, count)| *count > 0) {
        let value = f64::from(byte);
        let (apart, times) = (value - shift, count as f64);
        all.count += count;
        all.sum += times * apart;
        all.squares += times * (apart * apart);
        all.min = all.min.min(value);
        all.max = all.max.max(value);
    }
    all.moments(shift)
}

impl Moments {
    /// The scaling of values by their statistics; constant values are only shifted. `unit` is the factor of unscaled
    /// values.
    pub fn scaling(&self, scale: Scale, unit: f64) -> Scaling {
        let factor = |spread: f64| if spread > 0.0 { 1.0 / spread } else { 1.0 };
        match scale {
            Scale::None | Scale::Normalize => Scaling {
                shift: 0.0,
                factor: unit,
            },
            _ if self.count == 0 => Scaling::NONE,
            Scale::Standardize => Scaling {
                shift: self.mean,
                factor: factor(self.deviation),
            },
            Scale::MinMax => Scaling {
                shift: self.min,
                factor: factor(self.max - self.min),
            },
        }
    }
}

/// The median of values, ignoring NaN; the mean of the two middle ones if their number is even.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.retain(|value| !value.is_nan());
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        num if num % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// The most frequent value, the smallest of equally frequent ones; NaN is ignored.
pub fn most_common(mut values: Vec<f64>) -> Option<f64> {
    values.retain(|value| !value.is_nan());
    values.sort_by(f64::total_cmp);
    let mut best: Option<(usize, f64)> = None;
    for run in values.chunk_by(|a, b| a == b) {
        if best.is_none_or(|(num, _)| run.len() > num) {
            best = Some((run.len(), run[0]));
        }
    }
    best.map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_do_not_lose_small_deviations() {
        let rows: Vec<u32> = (0..5000).collect();
        let found = moments(&rows, Groups::each(2), |row, out| {
            out.push(1e9 + (row % 2) as f64);
            out.push(if row % 5 == 0 { f64::NAN } else { 3.0 });
        });
        assert_eq!((found[0].mean, found[0].deviation), (1e9 + 0.5, 0.5));
        assert_eq!((found[1].count, found[1].deviation), (4000, 0.0));
        assert_eq!(found[1].scaling(Scale::Standardize, 1.0).factor, 1.0);
        assert_eq!((found[0].min, found[0].max), (1e9, 1e9 + 1.0));
    }

    #[test]
    fn moments_of_bytes_are_those_of_their_values() {
        for num in [0, 1, 2, 300, 5000] {
            let bytes: Vec<u8> = (0..num * 7_u32)
                .map(|at| (at.wrapping_mul(2_654_435_761) >> 21) as u8)
                .collect();
            let row = |row: usize| &bytes[row * 7..(row + 1) * 7];
            let rows: Vec<u32> = (0..num).rev().collect();
            let all = moments(&rows, Groups::along(&[7], None), |at, out| {
                out.extend(row(at).iter().map(|byte| f64::from(*byte)));
            });
            assert_eq!(moments_of_bytes(&rows, row), all[0], "{num}");
        }
    }

    #[test]
    fn medians_and_most_common_values_leave_missing_ones_out() {
        let values = vec![3.0, f64::NAN, 1.0, 3.0, 2.0];
        assert_eq!(median(values.clone()), Some(2.5));
        assert_eq!(most_common(values), Some(3.0));
        assert_eq!(median(vec![f64::NAN]), None);
    }
}
