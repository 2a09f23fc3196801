//! Values of whole numbers: layers compute with floats, which neither round nor wrap around as these do.

use std::collections::BTreeMap;

use crate::onnx::import::attributes::{int, operator};
use crate::onnx::import::fold::type_like;
use crate::onnx::import::reader::Reader;
use crate::onnx::import::refused::Read;
use crate::onnx::messages::{GraphProto, NodeProto, type_proto};

/// Whether ONNX's code of a type is one of whole numbers.
fn is_integer(kind: i32) -> bool {
    matches!(kind, 2..=7 | 12 | 13)
}

/// The inputs of a graph that are of integers, with their types.
pub fn integer_inputs(graph: &GraphProto) -> BTreeMap<String, i32> {
    let typed = graph.input.iter().filter_map(|input| {
        let kind = match input.r#type.as_ref()?.value.as_ref()? {
            type_proto::Value::TensorType(tensor) => tensor.elem_type?,
            _ => return None,
        };
        Some((input.name.clone()?, kind))
    });
    typed.filter(|(_, kind)| is_integer(*kind)).collect()
}

impl Reader<'_> {
    /// The type of a node's output, if it is one of integers; refuses nodes that round or wrap around.
    pub(super) fn integers_of(&self, node: &NodeProto) -> Read<Option<i32>> {
        let op = operator(node);
        // Further inputs of others are shapes, indices or lengths.
        let names = match op {
            "Where" => node.input.get(1..),
            "Add" | "Sub" | "Mul" | "Div" | "Max" | "Min" | "Concat" => Some(&node.input[..]),
            _ => node.input.get(..1),
        };
        let mut names = names.unwrap_or_default().iter();
        let Some(kind) = names.find_map(|name| self.integers.get(name)).copied() else {
            return Ok(None);
        };
        let to = self.cast_type(node).unwrap_or(i64::from(kind));
        let is_short = matches!(kind, 2..=5);
        let is_power = || {
            self.constant(node, 1)
                .is_some_and(|power| power.is_integer())
        };
        match op {
            "Pow" if is_power() => Ok(Some(kind)),
            "Div" | "Pow" | "ReduceMean" => Err(
                "it rounds whole numbers, which layers do not: cast its inputs to floats".into(),
            ),
            "Add" | "Sub" | "Mul" | "ReduceSum" if is_short => Err(
                "its whole numbers of few bits wrap around, which those of layers do not: cast its inputs to floats".into(),
            ),
            _ => Ok(i32::try_from(to).ok().filter(|to| is_integer(*to))),
        }
    }

    /// The type that a node casts to, by ONNX's code.
    pub(super) fn cast_type(&self, node: &NodeProto) -> Option<i64> {
        match operator(node) {
            "Cast" => Some(int(node, "to").unwrap_or(1)),
            "CastLike" => Some(self.constant(node, 1).map_or(1, |like| type_like(&like))),
            _ => None,
        }
    }

    /// Notes the type of a node's outputs.
    pub(super) fn are_integers(&mut self, node: &NodeProto, kind: i32) {
        let outputs = node.output.iter().cloned();
        self.integers.extend(outputs.map(|name| (name, kind)));
    }
}
