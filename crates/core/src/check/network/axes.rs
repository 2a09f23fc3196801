//! Shapes after layers that only rearrange axes. Axes in a file do not count the batch, and may be negative to count
//! from the end.

use super::shape::{Dims, Mismatch, wrong};

/// The shape with some axes merged.
pub fn flattened(start_axis: i64, end_axis: i64, input: &[usize]) -> Result<Dims, Mismatch> {
    let start = resolve(start_axis, input.len(), "start_axis")?;
    let end = resolve(end_axis, input.len(), "end_axis")?;
    if start > end {
        return wrong(
            "start_axis",
            format!("starts at axis {start} and ends at axis {end}"),
            "set a `start_axis` that is not after `end_axis`",
        );
    }
    let merged = input[start..=end].iter().product();
    Ok([&input[..start], &[merged], &input[end + 1..]].concat())
}

/// The shape without an axis of size 1.
pub fn squeezed(axis: i64, input: &[usize]) -> Result<Dims, Mismatch> {
    let at = resolve(axis, input.len(), "axis")?;
    if input[at] != 1 {
        let ones: Vec<_> = (0..input.len())
            .filter(|at| input[*at] == 1)
            .map(|at| at.to_string())
            .collect();
        return wrong(
            "axis",
            format!("removes axis {at}, which has {} values", input[at]),
            if ones.is_empty() {
                "no axis has size 1: remove the layer, or use `flatten` or `mean`".to_owned()
            } else {
                format!("the axes of size 1 are {}", ones.join(", "))
            },
        );
    }
    Ok(without(input, at))
}

/// The shape with a range of an axis.
pub fn sliced(axis: i64, start: i64, end: Option<i64>, input: &[usize]) -> Result<Dims, Mismatch> {
    let at = resolve(axis, input.len(), "axis")?;
    let (first, past) = range(start, end, input[at]);
    if first >= past || past > input[at] as i64 || first < 0 {
        return wrong(
            "start",
            format!("selects {first} to {past} of an axis of size {}", input[at]),
            format!("use a range within 0 to {}", input[at]),
        );
    }
    let mut shape = input.to_vec();
    shape[at] = (past - first) as usize;
    Ok(shape)
}

/// The shape with a new axis of size 1.
pub fn unsqueezed(axis: i64, input: &[usize]) -> Result<Dims, Mismatch> {
    let at = resolve(axis, input.len() + 1, "axis")?;
    let mut shape = input.to_vec();
    shape.insert(at, 1);
    Ok(shape)
}

/// The shape without an axis; an item keeps at least one.
pub fn reduced(axis: i64, input: &[usize]) -> Result<Dims, Mismatch> {
    let at = resolve(axis, input.len(), "axis")?;
    Ok(match without(input, at) {
        single if single.is_empty() => vec![1],
        shape => shape,
    })
}

/// The shape with another last size.
pub fn with_last(input: &[usize], size: usize) -> Dims {
    let mut shape = input.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = size;
    }
    shape
}

/// The shape without an axis.
pub fn without(input: &[usize], at: usize) -> Dims {
    [&input[..at], &input[at + 1..]].concat()
}

/// An axis, counted from the front.
pub fn resolve(axis: i64, rank: usize, key: &'static str) -> Result<usize, Mismatch> {
    let at = if axis < 0 { axis + rank as i64 } else { axis };
    match usize::try_from(at).ok().filter(|at| *at < rank) {
        Some(at) => Ok(at),
        None => wrong(
            key,
            format!("uses the axis {axis}, but the input has {rank}"),
            format!(
                "use an axis from 0 to {}, or from -{rank} to -1; the batch axis is not counted",
                rank.max(1) - 1
            ),
        ),
    }
}

/// The position of an axis counted from the front, for axes that the planner has accepted.
pub fn axis_of(axis: i64, rank: usize) -> usize {
    resolve(axis, rank, "axis").unwrap_or_default()
}

/// The first index of a slice and one past its last.
pub fn range(start: i64, end: Option<i64>, size: usize) -> (i64, i64) {
    let from_front = |at: i64| if at < 0 { at + size as i64 } else { at };
    (from_front(start), end.map_or(size as i64, from_front))
}

/// The same values in a different shape.
pub fn reshaped(shape: &[i64], input: &[usize]) -> Result<Dims, Mismatch> {
    let total: usize = input.iter().product();
    let open = shape.iter().filter(|size| **size < 0).count();
    if open > 1 {
        return wrong(
            "shape",
            "contains -1 more than once",
            "leave at most one size open",
        );
    }
    if shape.contains(&0) {
        return wrong("shape", "contains a size of 0", "use sizes of at least 1");
    }
    let known: usize = shape
        .iter()
        .filter(|size| **size > 0)
        .map(|size| *size as usize)
        .fold(1, usize::saturating_mul);
    let fits = if open == 1 {
        total.is_multiple_of(known)
    } else {
        total == known
    };
    if !fits {
        return wrong(
            "shape",
            format!("cannot reshape {input:?} to {shape:?}: {known} values do not make {total}"),
            "use sizes with the same product; one of them may be -1",
        );
    }
    let size = |size: &i64| {
        if *size < 0 {
            total / known
        } else {
            *size as usize
        }
    };
    Ok(shape.iter().map(size).collect())
}

/// Axes in a different order.
pub fn permuted(axes: &[i64], input: &[usize]) -> Result<Dims, Mismatch> {
    let mut seen = vec![false; input.len()];
    let mut shape = Vec::new();
    for axis in axes {
        let at = resolve(*axis, input.len(), "axes")?;
        seen[at] = true;
        shape.push(input[at]);
    }
    if shape.len() == input.len() && seen.iter().all(|seen| *seen) {
        Ok(shape)
    } else {
        wrong(
            "axes",
            format!(
                "must list each of the {} axes once, found {axes:?}",
                input.len()
            ),
            format!(
                "for example: `axes = {:?}`",
                (0..input.len()).rev().collect::<Vec<_>>()
            ),
        )
    }
}
