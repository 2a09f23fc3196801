//! The attributes of nodes.

use super::refused::Read;
use crate::onnx::messages::attribute_proto::AttributeType;
use crate::onnx::messages::{AttributeProto, NodeProto};

/// The attributes of all operators that are read, by type. Those of the same name have the same type, except `value`.
const TYPES: [(AttributeType, &[&str]); 7] = [
    (
        AttributeType::Int,
        &[
            "align_corners",
            "allowzero",
            "antialias",
            "axis",
            "batch_dims",
            "blocksize",
            "ceil_mode",
            "count_include_pad",
            "end",
            "exclude_outside",
            "exclusive",
            "fmod",
            "group",
            "hidden_size",
            "input_forget",
            "is_causal",
            "is_test",
            "keepdims",
            "kv_num_heads",
            "layout",
            "linear_before_reset",
            "noop_with_empty_axes",
            "num_groups",
            "num_outputs",
            "offset_group",
            "p",
            "q_num_heads",
            "reverse",
            "size",
            "start",
            "to",
            "training_mode",
            "transA",
            "transB",
            "upper",
            "value_int",
        ],
    ),
    (
        AttributeType::Float,
        &[
            "alpha",
            "beta",
            "bias",
            "clip",
            "cubic_coeff_a",
            "epsilon",
            "gamma",
            "lambd",
            "max",
            "min",
            "momentum",
            "ratio",
            "scale",
            "softcap",
            "value_float",
        ],
    ),
    (
        AttributeType::String,
        &[
            "approximate",
            "auto_pad",
            "coordinate_transformation_mode",
            "direction",
            "equation",
            "keep_aspect_ratio_policy",
            "mode",
            "nearest_mode",
            "padding_mode",
            "reduction",
        ],
    ),
    (AttributeType::Tensor, &["value"]),
    (
        AttributeType::Ints,
        &[
            "axes",
            "dilations",
            "ends",
            "kernel_shape",
            "output_padding",
            "output_shape",
            "pads",
            "paddings",
            "perm",
            "shape",
            "split",
            "starts",
            "steps",
            "strides",
            "value_ints",
        ],
    ),
    (
        AttributeType::Floats,
        &[
            "activation_alpha",
            "activation_beta",
            "scales",
            "value_floats",
        ],
    ),
    (AttributeType::Strings, &["activations"]),
];

/// The type of an attribute, if it is read.
fn wanted(operator: &str, name: &str) -> Option<AttributeType> {
    // The number that old versions of `Pad` pad with.
    if (operator, name) == ("Pad", "value") {
        return Some(AttributeType::Float);
    }
    let mut all = TYPES.iter();
    all.find_map(|(kind, names)| names.contains(&name).then_some(*kind))
}

/// The type of the value that an attribute has, whatever it declares.
fn found(attribute: &AttributeProto) -> Option<AttributeType> {
    let fields = [
        (attribute.i.is_some(), AttributeType::Int),
        (attribute.f.is_some(), AttributeType::Float),
        (attribute.s.is_some(), AttributeType::String),
        (attribute.t.is_some(), AttributeType::Tensor),
        (attribute.g.is_some(), AttributeType::Graph),
        (!attribute.ints.is_empty(), AttributeType::Ints),
        (!attribute.floats.is_empty(), AttributeType::Floats),
        (!attribute.strings.is_empty(), AttributeType::Strings),
        (!attribute.tensors.is_empty(), AttributeType::Tensors),
    ];
    let mut fields = fields.into_iter();
    fields.find_map(|(is_set, kind)| is_set.then_some(kind))
}

/// Refuses attributes of a type that their operator does not have: they would be read as if they were not set.
pub fn check(node: &NodeProto) -> Read {
    for attribute in &node.attribute {
        let name = attribute.name.as_deref().unwrap_or_default();
        let Some(wanted) = wanted(operator(node), name) else {
            continue;
        };
        let declared = AttributeType::try_from(attribute.r#type.unwrap_or(0)).ok();
        let declared = declared.filter(|kind| *kind != AttributeType::Undefined);
        let mut both = [declared, found(attribute)].into_iter().flatten();
        if let Some(other) = both.find(|kind| *kind != wanted) {
            return Err(format!(
                "its attribute `{name}` must be of the type {}, found {}",
                wanted.as_str_name(),
                other.as_str_name()
            )
            .into());
        }
    }
    Ok(())
}

/// Whether a node contains graphs: branches, or the body of a loop.
pub fn has_graphs(node: &NodeProto) -> bool {
    let mut all = node.attribute.iter();
    all.any(|attribute| attribute.g.is_some() || !attribute.graphs.is_empty())
}

/// A node in messages.
pub fn described(node: &NodeProto) -> String {
    let mut outputs = node.output.iter().filter(|name| !name.is_empty());
    let output = outputs.next().map(String::as_str).unwrap_or_default();
    let name = node.name.as_deref().filter(|name| !name.is_empty());
    format!("`{}` (node `{}`)", operator(node), name.unwrap_or(output))
}

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
    // Some writers leave out zeros.
    Some(find(node, name)?.i.unwrap_or(0))
}

/// Whether an attribute is set and not 0.
pub fn flag(node: &NodeProto, name: &str) -> bool {
    int(node, name).unwrap_or(0) != 0
}

/// An attribute of one number, by its decimal digits.
pub fn float(node: &NodeProto, name: &str, usual: f64) -> f64 {
    find(node, name).map_or(usual, |attribute| digits(attribute.f.unwrap_or(0.0)))
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

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .flat_map(|path| {
                if path.is_dir() {
                    sources(&path)
                } else {
                    vec![path]
                }
            })
            .collect()
    }

    /// An attribute that is missing in the table is read without a check of its type.
    #[test]
    fn every_attribute_that_is_read_has_a_type() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/onnx/import");
        let read = regex::Regex::new(
            r#"\b(int|ints|flag|float|text|sizes|axis|list)\(\s*node,\s*"([a-zA-Z_]+)""#,
        )
        .unwrap();
        let mut num = 0;
        for path in sources(&folder) {
            let text = runner_core::spec::plain_file::read(&path, 1 << 20)
                .unwrap()
                .unwrap();
            let text = String::from_utf8(text).unwrap();
            for found in read.captures_iter(&text) {
                let (function, name) = (&found[1], &found[2]);
                let kind = match function {
                    "int" | "flag" | "axis" => AttributeType::Int,
                    "float" => AttributeType::Float,
                    "text" => AttributeType::String,
                    _ => AttributeType::Ints,
                };
                let operator = if name == "value" { "Pad" } else { "" };
                assert_eq!(
                    wanted(operator, name),
                    Some(kind),
                    "{name} in {}",
                    path.display()
                );
                num += 1;
            }
        }
        assert!(num > 30, "{num}");
    }
}
