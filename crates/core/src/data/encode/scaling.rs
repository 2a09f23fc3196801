//! Numbers on a common scale, one by one or in groups.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Number;
use crate::data::records::{ColumnKind, Records};

/// (value - shift) * factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// The offset that is subtracted.
    pub shift: f64,
    /// The factor that is applied afterwards.
    pub factor: f64,
}

impl Scaling {
    /// Leaves values as they are.
    pub const NONE: Self = Self {
        shift: 0.0,
        factor: 1.0,
    };

    /// The scaled value.
    pub fn apply<N: Number>(&self, value: f64) -> N {
        N::of((value - self.shift) * self.factor)
    }

    /// The unscaled value; the shift if all values were scaled to one.
    pub fn undo(&self, scaled: f64) -> f64 {
        match self.factor {
            0.0 => self.shift,
            factor => scaled / factor + self.shift,
        }
    }
}

/// Which values of an item belong together: groups in turn, each of some values in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// How many groups there are.
    pub num: usize,
    /// How many values of a group follow each other.
    pub run: usize,
}

impl Groups {
    /// One of all values of items of a shape, or one for each position along an axis.
    pub fn along(shape: &[usize], axis: Option<usize>) -> Self {
        let (num, rest) = axis.map_or((1, shape), |axis| (shape[axis], &shape[axis + 1..]));
        Self {
            num,
            run: rest.iter().product::<usize>().max(1),
        }
    }

    /// One for each of some values.
    pub fn each(num: usize) -> Self {
        Self { num, run: 1 }
    }

    /// Those of as many scalings: one for all values, one for each position along `axis`, or one for each value.
    pub fn of_scalings(num: usize, shape: &[usize], axis: Option<usize>) -> Self {
        match axis {
            None if num > 1 => Self::each(num),
            _ => Self::along(shape, axis),
        }
    }

    /// The group of a value.
    pub fn place(&self, at: usize) -> usize {
        at / self.run % self.num
    }
}

/// The scaling of each value of an array.
#[derive(Clone, Copy, Debug)]
pub struct ArrayScaling<'a> {
    all: &'a [Scaling],
    groups: Groups,
}

impl<'a> ArrayScaling<'a> {
    /// Of arrays of a shape: one for all values, one for each position along `axis`, or one for each value.
    pub fn new(all: &'a [Scaling], shape: &[usize], axis: Option<usize>) -> Self {
        Self {
            all,
            groups: Groups::of_scalings(all.len(), shape, axis),
        }
    }

    /// That of a value.
    pub fn at(&self, at: usize) -> Scaling {
        self.all[self.groups.place(at)]
    }

    /// Adds the values of an item after scaling them in their precision; `values` gives those of a range.
    fn put<N: Number, I: Iterator<Item = f32>>(
        &self,
        num: usize,
        values: impl Fn(Range<usize>) -> I,
        out: &mut Vec<N>,
    ) {
        for start in (0..num).step_by(self.groups.run) {
            let Scaling { shift, factor } = self.at(start);
            let (shift, factor) = (N::of(shift), N::of(factor));
            let values = values(start..(start + self.groups.run).min(num));
            out.extend(values.map(|value| (N::from(value) - shift) * factor));
        }
    }
}

/// The shape in which the scalings of an array are broadcast over an item of a shape.
pub fn broadcast(shape: &[usize], scaling: &[Scaling], axis: Option<usize>) -> Vec<usize> {
    match (axis, scaling) {
        (Some(axis), _) => {
            let sizes = shape.iter().enumerate();
            sizes
                .map(|(at, size)| if at == axis { *size } else { 1 })
                .collect()
        }
        (None, [_]) => Vec::new(),
        (None, _) => shape.to_vec(),
    }
}

/// The scaling of a value: one for all, or one for each.
pub fn of<T: Copy>(all: &[T], at: usize) -> T {
    match all {
        [one] => *one,
        each => each[at],
    }
}

/// Adds the scaled values of an array. Most of the time of serving images is spent here.
pub(super) fn array<N: Number>(
    records: &Records,
    item: usize,
    column: usize,
    scaling: ArrayScaling<'_>,
    out: &mut Vec<N>,
) {
    let bytes = records.bytes(item, column);
    match &records.columns()[column].kind {
        ColumnKind::Bytes => {
            let values = |range: Range<usize>| bytes[range].iter().map(|byte| f32::from(*byte));
            scaling.put(bytes.len(), values, out);
        }
        ColumnKind::Numbers => {
            let values = |range: Range<usize>| {
                let values = bytes[4 * range.start..4 * range.end].chunks_exact(4);
                values.map(|b| {
                    let value = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                    // NaN is possible here only with `missing = "zero"`.
                    if value.is_nan() { 0.0 } else { value }
                })
            };
            scaling.put(bytes.len() / 4, values, out);
        }
        // 32 bits would round them before their offset is removed.
        _ => {
            let mut at = 0;
            records.numbers(item, column, |value| {
                let value = if value.is_nan() { 0.0 } else { value };
                out.push(scaling.at(at).apply(value));
                at += 1;
            });
        }
    }
}
