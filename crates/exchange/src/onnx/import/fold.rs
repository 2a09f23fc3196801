//! Constant folding: the outputs of nodes whose inputs are constants.

mod numbers;
pub mod places;
mod reductions;

use std::path::Path;
use std::rc::Rc;

use half::{bf16, f16};

use super::attributes::{axes, axis, flag, float, int, ints, operator};
use super::constant::{Budget, Constant, Values, broadcast};
use super::refused::{Read, Refused};
use super::tensor;

use crate::onnx::messages::NodeProto;
use numbers::{binary, clipped, is_binary, unary};
use reductions::{is_reduction, product, reduced};

/// The output of a node with constant inputs; `None` if the operator is not supported here.
pub fn folded(
    node: &NodeProto,
    inputs: &[Option<&Constant>],
    folder: Option<&Path>,
    budget: &mut Budget,
) -> Option<Read<Constant>> {
    let op = operator(node);
    if op == "Constant" {
        return Some(literal(node, folder));
    }
    let first = inputs.first().copied().flatten()?;
    let at = |at: usize| {
        let found = inputs.get(at).copied().flatten();
        found.ok_or_else(|| Refused::from("it is missing an input"))
    };
    let list = |name: &str, place: usize| {
        ints(node, name).or_else(|| Some(at(place).ok()?.integers().to_vec()))
    };
    let shape = &first.shape;
    // These allocate as much as their input has, again for each node. The others count what they allocate.
    let copied = match op {
        "Cast" | "CastLike" | "Transpose" | "Slice" | "Trilu" | "CumSum" | "Clip" => Some(shape),
        "GatherElements" => at(1).ok().map(|indices| &indices.shape),
        _ if is_reduction(op) || inputs.len() == 1 && !is_view(op) => Some(shape),
        _ => None,
    };
    if let Some(Err(much)) = copied.map(|shape| budget.take(shape)) {
        return Some(Err(much));
    }
    Some(match op {
        "Identity" | "Dropout" => Ok(first.clone()),
        "Cast" => Ok(cast(first, int(node, "to").unwrap_or(1))),
        "CastLike" => at(1).map(|like| cast(first, type_like(like))),
        "Shape" => Ok(shape_of(node, shape)),
        "Size" => Ok(Constant::integers_of(Vec::new(), vec![first.len() as i64])),
        "ConstantOfShape" => filled(node, first, folder, budget),
        "Reshape" => at(1).and_then(|to| {
            let keeps = !flag(node, "allowzero");
            first.reshaped(reshape(shape, &to.integers(), keeps)?)
        }),
        "Flatten" => flattened(node, shape).and_then(|shape| first.reshaped(shape)),
        "Unsqueeze" => list("axes", 1)
            .ok_or_else(|| Refused::from("it is missing its axes"))
            .and_then(|axes| first.reshaped(unsqueezed(shape, &axes)?)),
        "Squeeze" => squeezed(shape, list("axes", 1)).and_then(|shape| first.reshaped(shape)),
        "Transpose" => order(node, shape.len()).map(|order| first.permuted(&order)),
        "Concat" => concat(node, inputs, budget),
        "Gather" => at(1).and_then(|places| gather(node, first, places, budget)),
        "Slice" => slice(node, inputs),
        "Expand" => at(1).and_then(|to| first.expanded(&sizes(&to.integers())?, budget)),
        "Tile" => at(1).and_then(|times| tiled(first, &times.integers(), budget)),
        "Range" => range(inputs, budget),
        "Where" => at(1).and_then(|a| choose(first, a, at(2)?, budget)),
        "Trilu" => Ok(triangle(node, first, inputs.get(1).copied().flatten())),
        "GatherND" if int(node, "batch_dims").unwrap_or(0) == 0 => {
            at(1).and_then(|indices| places::gathered(first, indices, budget))
        }
        "GatherElements" => at(1).and_then(|indices| places::picked(node, first, indices)),
        "ScatterND" => {
            at(1).and_then(|indices| places::scattered(node, first, indices, at(2)?, budget))
        }
        "CumSum" => at(1).and_then(|along| places::sums(node, first, along)),
        "MatMul" => at(1).and_then(|other| product(first, other, budget)),
        "Gemm" => at(1).and_then(|other| {
            affine(
                node,
                [first, other],
                inputs.get(2).copied().flatten(),
                budget,
            )
        }),
        "Clip" => Ok(clipped(node, inputs, first)),
        "Max" | "Min" | "Sum" | "Mean" => of_many(node, op, inputs, budget),
        _ if is_reduction(op) => reduced(node, first, list("axes", 1)),
        _ if inputs.len() == 1 => return unary(op, first),
        _ if is_binary(op) => at(1).and_then(|other| binary(node, op, first, other, budget)),
        _ => return None,
    })
}

/// An operator of any number of constants.
fn of_many(
    node: &NodeProto,
    op: &str,
    inputs: &[Option<&Constant>],
    budget: &mut Budget,
) -> Read<Constant> {
    let all: Option<Vec<&Constant>> = inputs.iter().copied().collect();
    let all = all.ok_or("it is missing an input")?;
    let step = if matches!(op, "Max" | "Min") {
        op
    } else {
        "Add"
    };
    let (first, rest) = all.split_first().ok_or("it is missing an input")?;
    budget.take(&first.shape)?;
    let mut found = Constant::clone(first);
    for other in rest {
        found = binary(node, step, &found, other, budget)?;
    }
    if op == "Mean" {
        let num = Constant::floats_of(Vec::new(), vec![all.len() as f32]);
        found = binary(node, "Div", &found, &num, budget)?;
    }
    Ok(found)
}

/// `alpha a b + beta c`, with matrices that may be transposed.
fn affine(
    node: &NodeProto,
    [a, b]: [&Constant; 2],
    c: Option<&Constant>,
    budget: &mut Budget,
) -> Read<Constant> {
    let mut matrix = |name: &str, of: &Constant| {
        if of.shape.len() != 2 {
            return Err(Refused::from("its inputs are not matrices"));
        }
        budget.take(&of.shape)?;
        let order = if flag(node, name) { [1, 0] } else { [0, 1] };
        Ok(of.permuted(&order))
    };
    let (a, b) = (matrix("transA", a)?, matrix("transB", b)?);
    let times = |name: &str, of: &Constant, budget: &mut Budget| {
        let factor = Constant::floats_of(Vec::new(), vec![float(node, name, 1.0) as f32]);
        binary(node, "Mul", of, &factor, budget)
    };
    let sum = times("alpha", &product(&a, &b, budget)?, budget)?;
    match c {
        None => Ok(sum),
        Some(c) => {
            let c = times("beta", c, budget)?;
            binary(node, "Add", &sum, &c, budget)
        }
    }
}

/// Whether an operator keeps the values of its only input, or computes only sizes.
fn is_view(op: &str) -> bool {
    matches!(
        op,
        "Identity"
            | "Dropout"
            | "Shape"
            | "Size"
            | "ConstantOfShape"
            | "Flatten"
            | "Squeeze"
            | "Unsqueeze"
    )
}

/// The code of the type that a constant has here.
pub fn type_like(like: &Constant) -> i64 {
    if like.is_integer() { 7 } else { 1 }
}

fn literal(node: &NodeProto, folder: Option<&Path>) -> Read<Constant> {
    for attribute in &node.attribute {
        let scalar = Vec::new();
        match attribute.name.as_deref() {
            Some("value") => {
                let value = attribute.t.as_ref().ok_or("it has no value")?;
                return tensor::constant(value, folder);
            }
            Some("value_ints") => return Ok(Constant::row(attribute.ints.clone())),
            Some("value_int") => {
                return Ok(Constant::integers_of(
                    scalar,
                    vec![attribute.i.unwrap_or(0)],
                ));
            }
            Some("value_float") => {
                return Ok(Constant::floats_of(
                    scalar,
                    vec![attribute.f.unwrap_or(0.0)],
                ));
            }
            Some("value_floats") => {
                let values = attribute.floats.clone();
                return Ok(Constant::floats_of(vec![values.len()], values));
            }
            _ => {}
        }
    }
    Err("its value is of a type that is not supported".into())
}

/// Floats and integers, by the codes of ONNX's types. Integers that a type does not have wrap around.
pub fn cast(constant: &Constant, to: i64) -> Constant {
    let shape = constant.shape.clone();
    let floats = |of: fn(f32) -> f32| {
        Values::Floats(Rc::new(
            constant.floats().iter().map(|value| of(*value)).collect(),
        ))
    };
    let integers = |of: fn(i64) -> i64| {
        Values::Integers(Rc::new(
            constant.integers().iter().map(|value| of(*value)).collect(),
        ))
    };
    let values = match to {
        1 | 11 => Values::Floats(constant.floats()),
        10 => floats(|value| f16::from_f32(value).to_f32()),
        16 => floats(|value| bf16::from_f32(value).to_f32()),
        2 => integers(|value| i64::from(value as u8)),
        3 => integers(|value| i64::from(value as i8)),
        4 => integers(|value| i64::from(value as u16)),
        5 => integers(|value| i64::from(value as i16)),
        6 => integers(|value| i64::from(value as i32)),
        12 => integers(|value| i64::from(value as u32)),
        9 => {
            let is_true = constant
                .floats()
                .iter()
                .map(|value| i64::from(*value != 0.0))
                .collect();
            return Constant::integers_of(shape, is_true);
        }
        _ => Values::Integers(constant.integers()),
    };
    Constant { shape, values }
}

/// The sizes of a value as a list, or some of them.
pub fn shape_of(node: &NodeProto, shape: &[usize]) -> Constant {
    let rank = shape.len() as i64;
    let place =
        |at: i64| (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank) as usize;
    let start = place(int(node, "start").unwrap_or(0));
    let end = place(int(node, "end").unwrap_or(rank)).max(start);
    Constant::row(shape[start..end].iter().map(|size| *size as i64).collect())
}

fn sizes(list: &[i64]) -> Read<Vec<usize>> {
    let sizes = list.iter().map(|size| usize::try_from(*size).ok());
    sizes
        .collect::<Option<_>>()
        .ok_or_else(|| format!("its sizes {list:?} are negative").into())
}

fn filled(
    node: &NodeProto,
    shape: &Constant,
    folder: Option<&Path>,
    budget: &mut Budget,
) -> Read<Constant> {
    let shape = sizes(&shape.integers())?;
    let num = budget.take(&shape)?;
    let value = node
        .attribute
        .iter()
        .find_map(|attribute| attribute.t.as_ref());
    let value = value
        .map(|value| tensor::constant(value, folder))
        .transpose()?;
    Ok(match value.map(|value| value.values) {
        Some(Values::Integers(values)) => {
            Constant::integers_of(shape, vec![values.first().copied().unwrap_or(0); num])
        }
        Some(Values::Floats(values)) => {
            Constant::floats_of(shape, vec![values.first().copied().unwrap_or(0.0); num])
        }
        None => Constant::floats_of(shape, vec![0.0; num]),
    })
}

/// The sizes requested by a reshape; 0 keeps a size if `keeps`.
pub fn reshape(old: &[usize], asked: &[i64], keeps: bool) -> Read<Vec<usize>> {
    let wrong = || format!("it cannot reshape {old:?} to {asked:?}");
    let mut shape = Vec::with_capacity(asked.len());
    let mut open = None;
    for (at, size) in asked.iter().enumerate() {
        shape.push(match size {
            0 if keeps => *old.get(at).ok_or_else(wrong)?,
            -1 if open.is_none() => {
                open = Some(at);
                1
            }
            size => usize::try_from(*size).map_err(|_| wrong())?,
        });
    }
    let product = |shape: &[usize]| {
        shape
            .iter()
            .try_fold(1_usize, |n, size| n.checked_mul(*size))
    };
    let num = product(old);
    if let Some(at) = open {
        let known = product(&shape).ok_or_else(wrong)?;
        shape[at] = num
            .and_then(|num| num.checked_div(known))
            .ok_or_else(wrong)?;
    }
    if product(&shape) == num {
        Ok(shape)
    } else {
        Err(wrong().into())
    }
}

/// The two sizes after a flatten.
pub fn flattened(node: &NodeProto, shape: &[usize]) -> Read<Vec<usize>> {
    let rank = shape.len() as i64;
    let at = int(node, "axis").unwrap_or(1);
    let at = if at < 0 { at.saturating_add(rank) } else { at };
    let at = usize::try_from(at).ok().filter(|at| *at <= shape.len());
    let (before, after) = shape.split_at(at.ok_or("it has no such axis")?);
    Ok(vec![before.iter().product(), after.iter().product()])
}

fn unsqueezed(shape: &[usize], list: &[i64]) -> Read<Vec<usize>> {
    let rank = shape.len() + list.len();
    let new = axes(list, rank)?;
    let mut old = shape.iter();
    let size = |at: usize| {
        if new.contains(&at) {
            Some(1)
        } else {
            old.next().copied()
        }
    };
    let sizes: Option<Vec<usize>> = (0..rank).map(size).collect();
    sizes.ok_or_else(|| "it lists an axis twice".into())
}

fn squeezed(shape: &[usize], list: Option<Vec<i64>>) -> Read<Vec<usize>> {
    let gone = match list {
        Some(list) => axes(&list, shape.len())?,
        None => (0..shape.len()).filter(|at| shape[*at] == 1).collect(),
    };
    let kept = shape
        .iter()
        .enumerate()
        .filter(|(at, _)| !gone.contains(at));
    Ok(kept.map(|(_, size)| *size).collect())
}

/// The order of axes requested by a transpose.
pub fn order(node: &NodeProto, rank: usize) -> Read<Vec<usize>> {
    let Some(list) = ints(node, "perm") else {
        return Ok((0..rank).rev().collect());
    };
    let order: Vec<usize> = list
        .iter()
        .map(|at| axis(*at, rank))
        .collect::<Result<_, _>>()?;
    let is_whole = order.len() == rank && (0..rank).all(|at| order.contains(&at));
    if is_whole {
        Ok(order)
    } else {
        Err("its order does not list each axis once".into())
    }
}

fn concat(node: &NodeProto, inputs: &[Option<&Constant>], budget: &mut Budget) -> Read<Constant> {
    let parts: Option<Vec<&Constant>> = inputs.iter().copied().collect();
    let parts = parts.ok_or("it is missing an input")?;
    let rank = parts[0].shape.len();
    let at = axis(int(node, "axis").unwrap_or(0), rank)?;
    let fits = |part: &&Constant| {
        let mut sizes = part.shape.iter().zip(&parts[0].shape).enumerate();
        part.shape.len() == rank && sizes.all(|(axis, (a, b))| axis == at || a == b)
    };
    if !parts.iter().all(fits) {
        return Err("its inputs are incompatible".into());
    }
    let mut shape = parts[0].shape.clone();
    shape[at] = parts.iter().map(|part| part.shape[at]).sum();
    budget.take(&shape)?;
    let outer: usize = shape[..at].iter().product();
    let row = |part: &Constant| part.shape[at..].iter().product::<usize>();
    macro_rules! joined {
        ($get:ident) => {{
            let parts: Vec<_> = parts.iter().map(|part| (part.$get(), row(part))).collect();
            let mut all = Vec::new();
            for at in 0..outer {
                for (values, row) in &parts {
                    all.extend_from_slice(&values[at * row..(at + 1) * row]);
                }
            }
            all
        }};
    }
    Ok(if parts.iter().all(|part| part.is_integer()) {
        Constant::integers_of(shape, joined!(integers))
    } else {
        Constant::floats_of(shape, joined!(floats))
    })
}

fn gather(
    node: &NodeProto,
    table: &Constant,
    places: &Constant,
    budget: &mut Budget,
) -> Read<Constant> {
    let at = axis(int(node, "axis").unwrap_or(0), table.shape.len())?;
    let rows = places.integers();
    let rows = rows.iter().map(|place| axis(*place, table.shape[at]));
    let rows: Vec<usize> = rows.collect::<Result<_, _>>()?;
    let shape = [&table.shape[..at], &places.shape, &table.shape[at + 1..]].concat();
    budget.take(&shape)?;
    table.selected(at, &rows).reshaped(shape)
}

/// The number of steps in a distance, including a last partial one.
fn windows(distance: i64, step: i64) -> i64 {
    let rest = i64::from(distance % step != 0);
    if distance > 0 {
        distance / step + rest
    } else {
        0
    }
}

/// The ranges of a slice: axis, start, length and step.
pub fn ranges(
    node: &NodeProto,
    list: impl Fn(&str, usize) -> Option<Vec<i64>>,
    shape: &[usize],
) -> Read<Vec<(usize, usize, usize, i64)>> {
    let (Some(starts), Some(ends)) = (list("starts", 1), list("ends", 2)) else {
        return Err("its range is computed from the inputs of the graph".into());
    };
    let all = list("axes", 3).unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = list("steps", 4).unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), all.len(), steps.len()] != [starts.len(); 3] {
        return Err(format!("`{}` has ranges of different lengths", operator(node)).into());
    }
    let mut found = Vec::new();
    for at in 0..starts.len() {
        let axis = axis(all[at], shape.len())?;
        let (size, step) = (shape[axis] as i64, steps[at]);
        let place = |at: i64, low: i64, high: i64| {
            (if at < 0 { at.saturating_add(size) } else { at }).clamp(low, high)
        };
        let num = match step {
            0 => return Err("its step is 0".into()),
            step if step > 0 => {
                windows(place(ends[at], 0, size) - place(starts[at], 0, size), step)
            }
            step => windows(
                place(starts[at], -1, size - 1) - place(ends[at], -1, size - 1),
                step.saturating_neg(),
            ),
        };
        let first = if step > 0 {
            place(starts[at], 0, size)
        } else {
            place(starts[at], 0, size - 1)
        };
        found.push((axis, first.max(0) as usize, num as usize, step));
    }
    Ok(found)
}

fn slice(node: &NodeProto, inputs: &[Option<&Constant>]) -> Read<Constant> {
    let mut value = inputs[0].cloned().ok_or("it is missing an input")?;
    let list = |name: &str, at: usize| {
        let input = || Some(inputs.get(at).copied().flatten()?.integers().to_vec());
        ints(node, name).or_else(input)
    };
    for (axis, first, num, step) in ranges(node, list, &value.shape)? {
        let places = (0..num as i64).map(|at| (first as i64 + at * step) as usize);
        let places: Vec<usize> = places.collect();
        if places.iter().any(|place| *place >= value.shape[axis]) {
            return Err("its range is outside its input".into());
        }
        value = value.selected(axis, &places);
    }
    Ok(value)
}

fn tiled(value: &Constant, times: &[i64], budget: &mut Budget) -> Read<Constant> {
    let times = sizes(times)?;
    if times.len() != value.shape.len() {
        return Err("it does not have a number of repeats for each axis".into());
    }
    let sizes = value
        .shape
        .iter()
        .zip(&times)
        .map(|(a, b)| a.checked_mul(*b));
    let shape: Option<Vec<usize>> = sizes.collect();
    let shape = shape.ok_or("it has too many repeats")?;
    if budget.take(&shape)? == 0 {
        return Ok(value.at(shape, &[]));
    }
    let mut value = value.clone();
    for (axis, times) in times.iter().enumerate() {
        let size = value.shape[axis];
        let places: Vec<usize> = (0..size * times).map(|at| at % size).collect();
        value = value.selected(axis, &places);
    }
    Ok(value)
}

fn range(inputs: &[Option<&Constant>], budget: &mut Budget) -> Read<Constant> {
    let at = |at: usize| inputs.get(at).copied().flatten().and_then(Constant::single);
    let (Some(start), Some(limit), Some(step)) = (at(0), at(1), at(2)) else {
        return Err("it has no limit".into());
    };
    let num = ((limit - start) / step).ceil();
    if !num.is_finite() {
        return Err("its step is 0".into());
    }
    let num = budget.take(&[num.max(0.0) as usize])?;
    if inputs[0].is_some_and(Constant::is_integer) {
        return Ok(Constant::row(
            (0..num as i64)
                .map(|at| start as i64 + at * step as i64)
                .collect(),
        ));
    }
    Ok(Constant::floats_of(
        vec![num],
        (0..num).map(|at| start + at as f32 * step).collect(),
    ))
}

fn choose(condition: &Constant, a: &Constant, b: &Constant, budget: &mut Budget) -> Read<Constant> {
    let shape = broadcast(&condition.shape, &broadcast(&a.shape, &b.shape)?)?;
    let is_integer = a.is_integer() && b.is_integer();
    let condition = condition.expanded(&shape, budget)?.integers();
    let (a, b) = (a.expanded(&shape, budget)?, b.expanded(&shape, budget)?);
    macro_rules! chosen {
        ($get:ident) => {{
            let (a, b) = (a.$get(), b.$get());
            let pick = |(at, is_true): (usize, &i64)| if *is_true != 0 { a[at] } else { b[at] };
            condition.iter().enumerate().map(pick).collect()
        }};
    }
    Ok(if is_integer {
        Constant::integers_of(shape, chosen!(integers))
    } else {
        Constant::floats_of(shape, chosen!(floats))
    })
}

/// The upper or lower triangle of matrices, with zeros elsewhere.
pub fn triangle(node: &NodeProto, value: &Constant, diagonal: Option<&Constant>) -> Constant {
    let shape = value.shape.clone();
    let Some([rows, columns]) = shape.last_chunk::<2>().copied() else {
        return value.clone();
    };
    let shift = diagonal.and_then(Constant::single).unwrap_or(0.0) as i64;
    let is_upper = int(node, "upper").unwrap_or(1) != 0;
    let is_kept = |at: usize| {
        let distance = (at % columns) as i64 - (at / columns % rows) as i64;
        if is_upper {
            distance >= shift
        } else {
            distance <= shift
        }
    };
    match &value.values {
        Values::Floats(values) => {
            let kept = values.iter().enumerate();
            let kept = kept.map(|(at, value)| if is_kept(at) { *value } else { 0.0 });
            Constant::floats_of(shape, kept.collect())
        }
        Values::Integers(values) => {
            let kept = values.iter().enumerate();
            Constant::integers_of(
                shape,
                kept.map(|(at, v)| if is_kept(at) { *v } else { 0 })
                    .collect(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of functions keeps the result of each.
    #[test]
    fn every_copy_of_a_constant_counts() {
        let of = |op: &str| NodeProto {
            op_type: Some(op.into()),
            ..NodeProto::default()
        };
        let value = Constant::floats_of(vec![2, 4], vec![0.5; 8]);
        for op in ["Exp", "Cast", "Transpose", "Trilu", "Clip", "ReduceSum"] {
            let mut budget = Budget::exactly(20);
            let mut once = || folded(&of(op), &[Some(&value)], None, &mut budget).unwrap();
            assert!(once().is_ok() && once().is_ok(), "{op}");
            let much = once().unwrap_err().to_string();
            assert!(much.contains("may take 80 B"), "{op}: {much}");
        }
        let mut budget = Budget::exactly(0);
        for op in ["Identity", "Flatten", "Squeeze", "Shape"] {
            let kept = folded(&of(op), &[Some(&value)], None, &mut budget).unwrap();
            assert!(kept.is_ok(), "{op}");
        }
    }
}
