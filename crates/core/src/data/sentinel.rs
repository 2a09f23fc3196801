//! Numbers that probably mean missing, such as -999: found at the ends of a column's values.

use serde::{Deserialize, Serialize};

/// Values that are kept at each end.
const KEPT: usize = 4;
/// Distinct values that are tracked.
const TOLD_APART: usize = 24;
/// With this many distinct other values, a column contains measurements.
const MANY: usize = 20;
/// With fewer, only the surest are found: they show too little of what is far away from them.
const SEVERAL: usize = 5;

/// The smallest and largest distinct values of a column, with their counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ends {
    /// The smallest, ascending.
    least: Vec<(f64, u64)>,
    /// The largest, descending.
    largest: Vec<(f64, u64)>,
    /// Some distinct values, up to the tracked number.
    some: Vec<f64>,
    num: u64,
}

/// A number that probably means missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sentinel {
    /// The number.
    pub value: f64,
    /// Its count.
    pub times: u64,
    /// The range of the other values.
    pub rest: [f64; 2],
}

impl Ends {
    /// Takes a value into account.
    pub fn see(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.num += 1;
        if self.some.len() < TOLD_APART && !self.some.contains(&value) {
            self.some.push(value);
        }
        insert(&mut self.least, value, |a, b| a < b);
        insert(&mut self.largest, value, |a, b| a > b);
    }

    /// The numbers at the ends that mean missing, the surest first.
    pub fn sentinels(&self) -> Vec<Sentinel> {
        let (mut least, mut largest) = (self.least.as_slice(), self.largest.as_slice());
        let mut found: Vec<Sentinel> = Vec::new();
        // After one is removed, another may be at the end.
        loop {
            let others = self.some.len().saturating_sub(1 + found.len());
            let (Some(low), Some(high)) = (least.first(), largest.first()) else {
                return found;
            };
            if others == 0 || least.len() < 2 || largest.len() < 2 {
                return found;
            }
            let below = self.sentinel(*low, [least[1].0, high.0], others);
            let above = self.sentinel(*high, [largest[1].0, low.0], others);
            if let Some(sentinel) = below {
                found.push(sentinel);
                least = &least[1..];
            } else if let Some(sentinel) = above {
                found.push(sentinel);
                largest = &largest[1..];
            } else {
                return found;
            }
        }
    }

    /// Whether the value at an end means missing, judged by the other values: the nearest of them, and the other end.
    fn sentinel(
        &self,
        (value, times): (f64, u64),
        [nearest, other_end]: [f64; 2],
        others: usize,
    ) -> Option<Sentinel> {
        let range = (other_end - nearest).abs();
        let gap = (value - nearest).abs();
        let is_far = gap >= range && gap > 0.0;
        let is_only_negative = value < 0.0 && nearest >= 0.0;
        let rest = [nearest.min(other_end), nearest.max(other_end)];
        // A column in which half of all items are missing is possible.
        let is_often = times >= 2;
        let is_apart = gap >= 100.0 * range.max(nearest.abs()).max(1.0);
        let is_it = match nines(value) {
            // Next to flags and short scales.
            num if others < SEVERAL => {
                num.is_some_and(|num| num >= 3) && is_often && (is_only_negative || is_apart)
            }
            // -99.9 and 9999: common fill values.
            Some(num) if num >= 3 => {
                is_far && (is_often || num >= 4) || is_only_negative && is_often
            }
            Some(_) => {
                is_far && is_often && times >= 3 || is_only_negative && is_often && others >= MANY
            }
            None if value == -1.0 => is_far && is_only_negative && times >= 3,
            None if is_limit(value) => is_far && is_often,
            // A single negative number that occurs repeatedly among non-negative amounts.
            None => {
                is_only_negative
                    && times >= 3
                    && others >= MANY
                    && value.fract() == 0.0
                    && value <= -9.0
            }
        };
        is_it.then_some(Sentinel { value, times, rest })
    }
}

/// Inserts a value into a short sorted list, or counts it.
fn insert(kept: &mut Vec<(f64, u64)>, value: f64, is_before: impl Fn(f64, f64) -> bool) {
    if kept.len() == KEPT && is_before(kept[KEPT - 1].0, value) {
        return;
    }
    match kept.iter().position(|(other, _)| !is_before(*other, value)) {
        Some(at) if kept[at].0 == value => kept[at].1 += 1,
        Some(at) => {
            kept.insert(at, (value, 1));
            kept.truncate(KEPT);
        }
        None if kept.len() < KEPT => kept.push((value, 1)),
        None => {}
    }
}

/// The number of digits of a number that consists only of nines, such as -999 or 99.9; `None` for others.
fn nines(value: f64) -> Option<usize> {
    let text = value.abs().to_string();
    // 32-bit floats have digits that nobody wrote.
    let text = if text.len() > 8 {
        (value as f32).abs().to_string()
    } else {
        text
    };
    let digits = || text.bytes().filter(|byte| *byte != b'.');
    let num = digits().count();
    (num >= 2 && digits().all(|byte| byte == b'9')).then_some(num)
}

/// The limits of integer types.
fn is_limit(value: f64) -> bool {
    let limits = [
        f64::from(i16::MIN),
        f64::from(i16::MAX),
        f64::from(i32::MIN),
        f64::from(i32::MAX),
        65_535.0,
        4_294_967_295.0,
    ];
    limits.contains(&value) || value.abs() >= 1e20
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: impl IntoIterator<Item = f64>) -> Vec<(f64, u64)> {
        let mut ends = Ends::default();
        values.into_iter().for_each(|value| ends.see(value));
        let found = ends.sentinels();
        found.iter().map(|s| (s.value, s.times)).collect()
    }

    /// Numbers from one to another, followed by some more.
    fn with(from: i32, to: i32, more: &[f64]) -> Vec<f64> {
        let mut values: Vec<f64> = (from..=to).map(f64::from).collect();
        values.extend(more);
        values
    }

    #[test]
    fn what_people_fill_in_is_told() {
        assert_eq!(found(with(0, 50, &[-999.0; 4])), [(-999.0, 4)]);
        assert_eq!(found(with(-20, 40, &[-9999.0])), [(-9999.0, 1)]);
        assert_eq!(found(with(-20, 40, &[-99.9, -99.9])), [(-99.9, 2)]);
        assert_eq!(found(with(0, 50, &[9999.0; 2])), [(9999.0, 2)]);
        assert_eq!(
            found(with(0, 50, &[-999.0, -999.0, -9999.0, -9999.0])),
            [(-9999.0, 2), (-999.0, 2)]
        );
        assert_eq!(found(with(50, 80, &[-1.0; 3])), [(-1.0, 3)]);
        assert_eq!(found(with(0, 30, &[99.0; 3])), [(99.0, 3)]);
        // As in UCI's Air Quality.
        assert_eq!(found(with(0, 2000, &[-200.0; 90])), [(-200.0, 90)]);
        assert_eq!(found(with(0, 900_000, &[-999.0; 3])), [(-999.0, 3)]);
        assert_eq!(found(with(0, 30, &[-32768.0; 2])), [(-32768.0, 2)]);
        let single = f64::from(-999.9_f32);
        assert_eq!(found(with(0, 30, &[single; 2])), [(single, 2)]);
        assert_eq!(found(with(0, 1, &[-999.0; 18])), [(-999.0, 18)]);
        assert_eq!(found(with(1, 3, &[9999.0; 2])), [(9999.0, 2)]);
    }

    #[test]
    fn what_is_a_value_is_not() {
        let none: [(f64, u64); 0] = [];
        for values in [
            with(0, 100, &[]),
            with(0, 98, &[99.0, 99.0, 99.0]),
            with(900, 1200, &[999.0; 4]),
            with(-1000, 1000, &[-999.0; 4]),
            with(0, 800, &[-1.0; 50]),
            with(-1, 1, &[-1.0; 30]),
            vec![1.0, -1.0, 1.0, -1.0],
            vec![0.0, 99.0, 0.0, 99.0, 99.0],
            vec![1999.0, 999.0, 1999.0, 999.0],
            with(-5, 40, &[-200.0; 3]),
            with(0, 50, &[-999.5; 1]),
            with(0, 50, &[1e6; 3]),
            with(24, 122, &[0.0; 30]),
            vec![7.0; 40],
            Vec::new(),
            // One item far out is an outlier.
            with(0, 50, &[-999.0]),
        ] {
            assert_eq!(found(values.clone()), none, "{values:?}");
        }
    }

    #[test]
    fn the_order_does_not_matter() {
        let mut values = with(0, 50, &[-999.0; 4]);
        let forward = found(values.clone());
        values.reverse();
        assert_eq!(found(values), forward);
    }
}
