//! Constants that are put together of the places of others.

use super::super::attributes::{axis, flag, int, text};
use super::super::constant::{Budget, Constant, Values, strides, walk};
use crate::onnx::import::refused::{Read, Refused};
use crate::onnx::messages::NodeProto;

/// The first place of each index of several axes in a constant, with the number of values behind it.
fn starts(shape: &[usize], indices: &Constant) -> Read<(Vec<usize>, usize)> {
    let depth = indices.shape.last().copied().unwrap_or(0);
    if depth == 0 || depth > shape.len() {
        return Err(format!("its indices have {depth} numbers for {} axes", shape.len()).into());
    }
    let by = strides(shape);
    let all = indices.integers();
    let start = |index: &[i64]| {
        index.iter().enumerate().try_fold(0, |sum, (at, place)| {
            Ok::<_, Refused>(sum + axis(*place, shape[at])? * by[at])
        })
    };
    let starts = all.chunks(depth).map(start).collect::<Result<_, _>>()?;
    Ok((starts, shape[depth..].iter().product()))
}

/// `GatherND` without axes of a batch.
pub fn gathered(value: &Constant, indices: &Constant, budget: &mut Budget) -> Read<Constant> {
    let (starts, num) = starts(&value.shape, indices)?;
    let (depth, outer) = indices
        .shape
        .split_last()
        .ok_or("its indices are no list")?;
    let shape = [outer, &value.shape[*depth..]].concat();
    budget.take(&shape)?;
    let places: Vec<usize> = starts.iter().flat_map(|at| *at..at + num).collect();
    Ok(value.at(shape, &places))
}

/// `GatherElements`: for each place of the indices, the one that they name along an axis.
pub fn picked(node: &NodeProto, value: &Constant, indices: &Constant) -> Read<Constant> {
    let rank = value.shape.len();
    let at = axis(int(node, "axis").unwrap_or(0), rank)?;
    let mut sizes = indices.shape.iter().zip(&value.shape).enumerate();
    if indices.shape.len() != rank || !sizes.all(|(axis, (own, size))| axis == at || own <= size) {
        return Err("its indices do not fit its input".into());
    }
    let mut by = strides(&value.shape);
    let step = std::mem::take(&mut by[at]);
    let places = walk(&indices.shape, &by, 0).into_iter();
    let pick = |(place, index): (usize, &i64)| Ok(place + axis(*index, value.shape[at])? * step);
    let all = indices.integers();
    let places = places.zip(all.iter()).map(pick);
    let places: Vec<usize> = places.collect::<Read<_>>()?;
    Ok(value.at(indices.shape.clone(), &places))
}

/// `ScatterND`: a copy with other values at some places.
pub fn scattered(
    node: &NodeProto,
    value: &Constant,
    indices: &Constant,
    updates: &Constant,
    budget: &mut Budget,
) -> Read<Constant> {
    if let Some(reduction) = text(node, "reduction").filter(|it| it != "none") {
        return Err(format!("its reduction is `{reduction}`").into());
    }
    let (starts, num) = starts(&value.shape, indices)?;
    if starts.len().checked_mul(num) != Some(updates.len()) {
        return Err("its updates do not fit its indices".into());
    }
    let shape = value.shape.clone();
    budget.take(&shape)?;
    macro_rules! replaced {
        ($get:ident) => {{
            let (mut all, new) = (value.$get().to_vec(), updates.$get());
            for (at, start) in starts.iter().enumerate() {
                all[*start..start + num].copy_from_slice(&new[at * num..(at + 1) * num]);
            }
            all
        }};
    }
    Ok(if value.is_integer() {
        Constant::integers_of(shape, replaced!(integers))
    } else {
        Constant::floats_of(shape, replaced!(floats))
    })
}

/// The parts of a constant that a split gives.
pub fn split(node: &NodeProto, value: &Constant, sizes: Option<&[i64]>) -> Read<Vec<Constant>> {
    let at = axis(int(node, "axis").unwrap_or(0), value.shape.len())?;
    let (size, num) = (value.shape[at], node.output.len().max(1));
    let even = vec![size.div_ceil(num) as i64; num];
    let mut start = 0;
    let part = |asked: &i64| {
        let asked = usize::try_from(*asked).map_err(|_| "it has a negative size")?;
        let places: Vec<usize> = (start..start + asked.min(size - start)).collect();
        start += places.len();
        Ok(value.selected(at, &places))
    };
    sizes.unwrap_or(&even).iter().take(num).map(part).collect()
}

/// `CumSum` along an axis.
pub fn sums(node: &NodeProto, value: &Constant, along: &Constant) -> Read<Constant> {
    if flag(node, "exclusive") || flag(node, "reverse") {
        return Err("it sums up in another order".into());
    }
    let along = along.integers().first().copied().unwrap_or(0);
    let at = axis(along, value.shape.len())?;
    let inner: usize = value.shape[at + 1..].iter().product();
    let row = inner * value.shape[at];
    let is_later = |place: usize| place % row.max(1) >= inner;
    Ok(match &value.values {
        Values::Integers(all) => {
            let mut all = all.to_vec();
            for place in (0..all.len()).filter(|place| is_later(*place)) {
                all[place] = all[place].wrapping_add(all[place - inner]);
            }
            Constant::integers_of(value.shape.clone(), all)
        }
        Values::Floats(all) => {
            let mut all = all.to_vec();
            for place in (0..all.len()).filter(|place| is_later(*place)) {
                all[place] += all[place - inner];
            }
            Constant::floats_of(value.shape.clone(), all)
        }
    })
}
