//! The attributes of nodes.

use super::refused::Read;
use crate::onnx::messages::{AttributeProto, NodeProto};

fn find<'a>(node: &'a NodeProto, name: &str) -> Option<&'a AttributeProto> {
    let mut all = node.attribute.iter();
    all.find(|attribute| attribute.name.as_deref() == Some(name))
}

/// The operator of a node.
pub fn operator(node: &NodeProto) -> &str {
    node.op_type.as_deref().unwrap_or_default()
}

/// An attribute of integers.
pub fn ints(node: &NodeProto, name: &str) -> Option<Vec<i64>> {
    Some(find(node, name)?.ints.clone())
}

/// An attribute of one integer.
pub fn int(node: &NodeProto, name: &str) -> Option<i64> {
    find(node, name)?.i
}

/// Whether an attribute is set and not 0.
pub fn flag(node: &NodeProto, name: &str) -> bool {
    int(node, name).unwrap_or(0) != 0
}

/// An attribute of one number, by its decimal digits.
pub fn float(node: &NodeProto, name: &str, usual: f64) -> f64 {
    find(node, name)
        .and_then(|attribute| attribute.f)
        .map_or(usual, digits)
}

/// A 64-bit float with the same shortest digits: 0.1 and not 0.10000000149011612.
pub fn digits(value: f32) -> f64 {
    value.to_string().parse().unwrap_or(f64::from(value))
}

/// A small constant such as an epsilon, which exporters round in different ways.
pub fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// An attribute of text.
pub fn text(node: &NodeProto, name: &str) -> Option<String> {
    let bytes = find(node, name)?.s.as_deref()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// An axis that may count from the end.
pub fn axis(axis: i64, rank: usize) -> Read<usize> {
    let at = if axis < 0 {
        axis.saturating_add(rank as i64)
    } else {
        axis
    };
    let at = usize::try_from(at).ok().filter(|at| *at < rank);
    at.ok_or_else(|| format!("it has no axis {axis}: its input has {rank}").into())
}

/// Axes in rising order, each once.
pub fn axes(list: &[i64], rank: usize) -> Read<Vec<usize>> {
    let mut axes: Vec<usize> = list
        .iter()
        .map(|at| axis(*at, rank))
        .collect::<Result<_, _>>()?;
    axes.sort_unstable();
    axes.dedup();
    Ok(axes)
}

/// Sizes of an attribute, one for each dimension; 1 without it.
pub fn sizes(node: &NodeProto, name: &str, dims: usize) -> Read<Vec<usize>> {
    const MOST: i64 = 1 << 24;
    let Some(list) = ints(node, name) else {
        return Ok(vec![1; dims]);
    };
    let sizes = list.iter().map(|size| {
        let is_size = (1..=MOST).contains(size);
        usize::try_from(*size).ok().filter(|_| is_size)
    });
    let sizes = sizes
        .collect::<Option<Vec<_>>>()
        .filter(|sizes| sizes.len() == dims);
    sizes.ok_or_else(|| {
        format!("its `{name}` does not have one size for each of {dims} dimensions").into()
    })
}

/// The module of a node with weights: the name of the weights without its last part, or the name of the node without
/// the operator.
pub fn module_name(node: &NodeProto, weight: usize) -> Option<String> {
    let weight = node
        .input
        .get(weight)
        .map(String::as_str)
        .unwrap_or_default();
    if let Some((module, _)) = weight.rsplit_once('.')
        && !module.contains(':')
        && !module.is_empty()
    {
        return Some(module.to_owned());
    }
    // PyTorch names nodes by modules, each part with those before it: `/encoder/encoder.0/Conv`.
    let path = node.name.as_deref().unwrap_or_default();
    let (modules, _) = path.strip_prefix('/')?.rsplit_once('/')?;
    let mut name = String::new();
    for part in modules.split('/') {
        let last = name.rsplit('.').next().unwrap_or_default().to_owned();
        if part.starts_with(&format!("{last}.")) && !last.is_empty() {
            name.truncate(name.len() - last.len());
        } else if !name.is_empty() {
            name.push('.');
        }
        name.push_str(part);
    }
    Some(name)
}
