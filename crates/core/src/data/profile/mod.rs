//! The content of a data set, in numbers: shown by `runner data`, and used by `runner init` to decide.
//!
//! Columns are measured in chunks of records that the cores share. The chunks do not depend on the number of threads
//! and are summed in order, so that the numbers are equal on every machine.

mod of;
mod text;

pub use of::pictures;
pub(crate) use text::short;

use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;
use serde::Serialize;

use super::records::{Column, ColumnKind, Records, Skipped};

/// A data set for display.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// Description and origin, one line each.
    pub source: Vec<String>,
    /// Its columns.
    pub columns: Vec<ColumnProfile>,
    /// Its splits.
    pub splits: Vec<SplitProfile>,
    /// Skipped items.
    pub skipped: Vec<Skipped>,
    /// A few items as text.
    pub items: Vec<String>,
}

/// A column in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ColumnProfile {
    /// Its name, kind and shape.
    pub column: Column,
    /// Its role, if known.
    pub role: Option<Role>,
    /// Items with a missing value.
    pub missing: u64,
    /// A summary of its values.
    pub values: ValueProfile,
    /// Oddities, one phrase each.
    pub notes: Vec<String>,
}

/// The role of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// An input.
    Feature,
    /// A target.
    Target,
    /// The weight.
    Weight,
    /// The sort key.
    OrderBy,
    /// The group.
    GroupBy,
    /// Unused.
    Unused,
}

/// A summary of a column's values.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueProfile {
    /// There are none.
    Nothing,
    /// Numbers.
    Numbers(NumberProfile),
    /// Categories that occur with their counts, the most frequent first; equally frequent ones in list order.
    Categories(Vec<(String, u64)>),
    /// Texts.
    Texts {
        /// Present texts.
        num: u64,
        /// Characters of the shortest.
        shortest: u64,
        /// Characters of the longest.
        longest: u64,
        /// Characters of all.
        total: u64,
    },
}

/// Numbers in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NumberProfile {
    /// Finite numbers, over all items.
    pub num: u64,
    /// The least of them.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// Whether all are integers.
    pub is_whole: bool,
    /// Whether each is one more than the previous one, as for row numbers.
    pub is_counting: bool,
    /// The numbers with their counts in ascending order, if a column of scalars has at most [`MAX_DIFFERENT`] distinct
    /// ones.
    pub different: Option<Vec<(f64, u64)>>,
}

/// A split in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SplitProfile {
    /// `train`, `valid` or `test`.
    pub name: String,
    /// Its items.
    pub num_items: usize,
    /// Items of each class, in the classes' order; empty where there are none.
    pub classes: Vec<(String, usize)>,
    /// The digest of its items.
    pub digest: String,
}

/// The maximum number of distinct numbers that are counted individually.
pub const MAX_DIFFERENT: usize = 64;
/// Bytes of records in a chunk.
const CHUNK: usize = 1 << 20;

impl ColumnProfile {
    /// Measures every column over all items.
    pub fn all(records: &Records) -> Vec<Self> {
        let per_chunk = (CHUNK / records.record_size().max(1)).max(1);
        let num_chunks = records.len().div_ceil(per_chunk);
        let chunks = (0..num_chunks).into_par_iter().map(|chunk| {
            let items = chunk * per_chunk..((chunk + 1) * per_chunk).min(records.len());
            let measure = |at| Sums::of(records, at, items.clone());
            (0..records.columns().len())
                .map(measure)
                .collect::<Vec<_>>()
        });
        let chunks: Vec<Vec<Sums>> = chunks.collect();
        let mut all: Vec<Sums> = records.columns().iter().map(|_| Sums::default()).collect();
        for chunk in chunks {
            for (sums, more) in all.iter_mut().zip(chunk) {
                sums.merge(more);
            }
        }
        let columns = records.columns().iter().zip(all);
        columns.map(|(column, sums)| sums.finish(column)).collect()
    }
}

/// The sums of chunks.
#[derive(Debug, Default)]
struct Sums {
    missing: u64,
    infinite: u64,
    num: u64,
    min: f64,
    max: f64,
    mean: f64,
    /// The sum of squared distances from the mean.
    squares: f64,
    has_fraction: bool,
    ends: Option<(f64, f64)>,
    breaks: bool,
    /// By the bits of numbers, or by the codes of categories.
    counts: BTreeMap<u64, u64>,
    too_many: bool,
    lengths: Option<(u64, u64)>,
    total_length: u64,
}

impl Sums {
    fn of(records: &Records, at: usize, items: Range<usize>) -> Self {
        let mut sums = Self::default();
        match records.columns()[at].kind {
            ColumnKind::Text => {
                items.for_each(|item| sums.see_text(records.text(item, at)));
            }
            ColumnKind::Categories { .. } => items.for_each(|item| {
                match records.category(item, at) {
                    Some(code) => *sums.counts.entry(code as u64).or_insert(0) += 1,
                    None => sums.missing += 1,
                };
            }),
            _ => sums.see_numbers(records, at, items),
        }
        sums
    }

    fn see_text(&mut self, text: Option<&str>) {
        let Some(text) = text else {
            self.missing += 1;
            return;
        };
        let len = text.chars().count() as u64;
        let (shortest, longest) = self.lengths.unwrap_or((len, len));
        self.lengths = Some((shortest.min(len), longest.max(len)));
        self.num += 1;
        self.total_length += len;
    }

    fn see_numbers(&mut self, records: &Records, at: usize, items: Range<usize>) {
        let is_single = records.columns()[at].shape.is_empty();
        // Sums of distances from a number near the mean keep their precision.
        let mut near = None;
        let (mut sum, mut squares) = (0.0, 0.0);
        (self.min, self.max) = (f64::INFINITY, f64::NEG_INFINITY);
        for item in items {
            let mut lacks_one = false;
            records.numbers(item, at, |value| {
                if value.is_nan() {
                    lacks_one = true;
                    return;
                }
                if value.is_infinite() {
                    self.infinite += 1;
                    return;
                }
                let distance = value - *near.get_or_insert(value);
                self.num += 1;
                sum += distance;
                squares += distance * distance;
                self.min = self.min.min(value);
                self.max = self.max.max(value);
                self.has_fraction |= value.fract() != 0.0;
                if is_single {
                    self.see_single(value);
                }
            });
            self.missing += u64::from(lacks_one);
        }
        if self.num > 0 {
            let num = self.num as f64;
            self.mean = near.unwrap_or(0.0) + sum / num;
            self.squares = (squares - sum * sum / num).max(0.0);
        }
    }

    fn see_single(&mut self, value: f64) {
        let (first, last) = self.ends.unwrap_or((value, value - 1.0));
        self.breaks |= value != last + 1.0;
        self.ends = Some((first, value));
        if !self.too_many {
            // One zero, not two.
            *self.counts.entry((value + 0.0).to_bits()).or_insert(0) += 1;
            self.forget_many();
        }
    }

    fn forget_many(&mut self) {
        if self.counts.len() > MAX_DIFFERENT {
            self.too_many = true;
            self.counts.clear();
        }
    }

    /// Adds a following chunk.
    fn merge(&mut self, more: Self) {
        self.missing += more.missing;
        self.infinite += more.infinite;
        self.has_fraction |= more.has_fraction;
        self.total_length += more.total_length;
        self.lengths = match (self.lengths, more.lengths) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (some, None) | (None, some) => some,
        };
        self.breaks |= more.breaks;
        self.ends = match (self.ends, more.ends) {
            (Some((first, last)), Some((next, end))) => {
                self.breaks |= next != last + 1.0;
                Some((first, end))
            }
            (some, None) | (None, some) => some,
        };
        if more.num > 0 {
            let (one, two) = (self.num as f64, more.num as f64);
            let distance = more.mean - self.mean;
            match self.num {
                0 => (self.min, self.max) = (more.min, more.max),
                _ => {
                    (self.min, self.max) = (self.min.min(more.min), self.max.max(more.max));
                }
            }
            self.mean += distance * two / (one + two);
            self.squares += more.squares + distance * distance * one * two / (one + two);
            self.num += more.num;
        }
        for (key, num) in more.counts {
            *self.counts.entry(key).or_insert(0) += num;
        }
        self.too_many |= more.too_many;
    }

    fn finish(mut self, column: &Column) -> ColumnProfile {
        let mut notes = Vec::new();
        if self.infinite > 0 {
            notes.push(format!("{} infinite", self.infinite));
        }
        let values = match &column.kind {
            ColumnKind::Categories { names } => {
                let name = |code: u64| names.get(code as usize).cloned().unwrap_or_default();
                let mut counts: Vec<_> = self
                    .counts
                    .into_iter()
                    .map(|(code, num)| (name(code), num))
                    .collect();
                counts.sort_by_key(|(_, num)| std::cmp::Reverse(*num));
                if counts.is_empty() {
                    ValueProfile::Nothing
                } else {
                    ValueProfile::Categories(counts)
                }
            }
            ColumnKind::Text => match self.lengths {
                None => ValueProfile::Nothing,
                Some((shortest, longest)) => ValueProfile::Texts {
                    num: self.num,
                    shortest,
                    longest,
                    total: self.total_length,
                },
            },
            _ if self.num == 0 => ValueProfile::Nothing,
            _ => {
                self.forget_many();
                let counts = self.counts.into_iter();
                let mut different: Vec<_> = counts
                    .map(|(bits, num)| (f64::from_bits(bits), num))
                    .collect();
                different.sort_by(|a, b| a.0.total_cmp(&b.0));
                let is_single = column.shape.is_empty();
                ValueProfile::Numbers(NumberProfile {
                    num: self.num,
                    min: self.min,
                    max: self.max,
                    mean: self.mean,
                    deviation: (self.squares / self.num as f64).sqrt(),
                    is_whole: !self.has_fraction,
                    is_counting: is_single && self.num > 2 && !self.breaks && self.missing == 0,
                    different: (is_single && !self.too_many).then_some(different),
                })
            }
        };
        match &values {
            ValueProfile::Nothing => notes.push("no values".into()),
            ValueProfile::Numbers(numbers) if numbers.is_counting => {
                notes.push("increases by 1 from row to row".into());
            }
            ValueProfile::Numbers(numbers) if numbers.num > 1 && numbers.min == numbers.max => {
                notes.push("constant".into());
            }
            ValueProfile::Categories(counts) if counts.len() == 1 => {
                notes.push("constant".into());
            }
            _ => {}
        }
        ColumnProfile {
            column: column.clone(),
            role: None,
            missing: self.missing,
            values,
            notes,
        }
    }
}

#[cfg(test)]
mod tests;
