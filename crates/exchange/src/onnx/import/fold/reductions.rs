//! Constants that are summed up.

use super::super::attributes::{axes, flag, int, operator};
use super::super::constant::{Budget, Constant, broadcast};
use crate::onnx::import::refused::Read;
use crate::onnx::messages::NodeProto;

/// Whether an operator reduces axes of constants.
pub fn is_reduction(op: &str) -> bool {
    matches!(
        op,
        "ReduceSum"
            | "ReduceMean"
            | "ReduceMax"
            | "ReduceMin"
            | "ReduceProd"
            | "ReduceL1"
            | "ReduceL2"
            | "ReduceSumSquare"
    )
}

/// Axes of a constant reduced to one number each; all of them without a list.
pub fn reduced(node: &NodeProto, value: &Constant, list: Option<Vec<i64>>) -> Read<Constant> {
    let rank = value.shape.len();
    let list = list.filter(|list| !list.is_empty());
    if list.is_none() && flag(node, "noop_with_empty_axes") {
        return Ok(value.clone());
    }
    let gone = match list {
        Some(list) => axes(&list, rank)?,
        None => (0..rank).collect(),
    };
    let kept: Vec<usize> = (0..rank).filter(|at| !gone.contains(at)).collect();
    let num: usize = gone.iter().map(|at| value.shape[*at]).product();
    if num == 0 {
        return Err("it reduces an axis without values".into());
    }
    let keeps = int(node, "keepdims").unwrap_or(1) != 0;
    let size = |at: &usize| {
        if gone.contains(at) {
            1
        } else {
            value.shape[*at]
        }
    };
    let shape: Vec<usize> = if keeps {
        (0..rank).map(|at| size(&at)).collect()
    } else {
        kept.iter().map(size).collect()
    };
    let rows = value.permuted(&[kept, gone.clone()].concat());
    let op = operator(node);
    let is_whole = ["ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"].contains(&op);
    if value.is_integer() && is_whole {
        let of = |row: &[i64]| match op {
            "ReduceSum" => row
                .iter()
                .try_fold(0_i64, |sum, value| sum.checked_add(*value)),
            "ReduceProd" => row
                .iter()
                .try_fold(1_i64, |all, value| all.checked_mul(*value)),
            "ReduceMax" => row.iter().copied().max(),
            _ => row.iter().copied().min(),
        };
        let all: Option<Vec<i64>> = rows.integers().chunks(num).map(of).collect();
        let all = all.ok_or("its numbers are too large")?;
        return Ok(Constant::integers_of(shape, all));
    }
    let of = |row: &[f32]| match op {
        "ReduceSum" => row.iter().sum(),
        "ReduceProd" => row.iter().product(),
        "ReduceMean" => row.iter().sum::<f32>() / num as f32,
        "ReduceL1" => row.iter().map(|value| value.abs()).sum(),
        "ReduceSumSquare" => row.iter().map(|value| value * value).sum(),
        "ReduceL2" => row.iter().map(|value| value * value).sum::<f32>().sqrt(),
        "ReduceMax" => row.iter().copied().fold(f32::NEG_INFINITY, f32::max),
        _ => row.iter().copied().fold(f32::INFINITY, f32::min),
    };
    Ok(Constant::floats_of(
        shape,
        rows.floats().chunks(num).map(of).collect(),
    ))
}

/// The matrix products of two constants.
pub fn product(a: &Constant, b: &Constant, budget: &mut Budget) -> Read<Constant> {
    /// Products of large constants are for layers.
    const MOST: usize = 1 << 30;
    let (Some([rows, depth]), Some([same, columns])) =
        (a.shape.last_chunk::<2>(), b.shape.last_chunk::<2>())
    else {
        return Err("its inputs are not matrices".into());
    };
    let outer = broadcast(&a.shape[..a.shape.len() - 2], &b.shape[..b.shape.len() - 2])?;
    let shape = [&outer[..], &[*rows, *columns]].concat();
    let num = budget.take(&shape)?;
    if depth != same || num.checked_mul(*depth).is_none_or(|num| num > MOST) {
        return Err(format!(
            "it multiplies constants of shapes {:?} and {:?}",
            a.shape, b.shape
        )
        .into());
    }
    let a = a.expanded(&[&outer[..], &[*rows, *depth]].concat(), budget)?;
    let b = b.expanded(&[&outer[..], &[*depth, *columns]].concat(), budget)?;
    let (a, b) = (a.floats(), b.floats());
    let value = |at: usize| {
        let (row, column) = (at / columns, at % columns);
        let matrix = row / rows * depth * columns;
        let terms = (0..*depth).map(|k| a[row * depth + k] * b[matrix + k * columns + column]);
        terms.sum()
    };
    Ok(Constant::floats_of(shape, (0..num).map(value).collect()))
}
