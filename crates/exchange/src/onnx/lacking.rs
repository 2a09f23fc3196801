//! Items that lack a value which the run needs, in graphs with transforms.

use super::messages::tensor_proto::DataType;
use super::transforms::cast;
use super::{Attribute, Graph};

/// Where items lack values that they need, \[batch, 1\] for each column. An operator cannot refuse them, as the run does:
/// their outputs become NaN instead.
#[derive(Default)]
pub(super) struct Lacking(Vec<String>);

impl Lacking {
    /// Adds where values of a column are missing, with that many axes after the batch.
    pub(super) fn add(&mut self, graph: &mut Graph, is_missing: &str, dims: &[usize]) {
        if dims == [1] {
            self.0.push(is_missing.to_owned());
            return;
        }
        let axes: Vec<i64> = (1..=dims.len() as i64).collect();
        let axes = graph.integers(&axes);
        let numbers = cast(graph, is_missing, DataType::Float);
        let largest = graph.node("ReduceMax", &[&numbers, &axes], &[]);
        let largest = graph.reshape(&largest, &[1]);
        let half = graph.number(0.5);
        self.0.push(graph.node("Greater", &[&largest, &half], &[]));
    }

    /// The same for texts of a column.
    pub(super) fn add_texts(&mut self, graph: &mut Graph, name: &str, missing: &[&str]) {
        if missing.is_empty() {
            return;
        }
        let settings = [
            Attribute::Texts("keys_strings", missing.to_vec()),
            Attribute::Ints("values_int64s", vec![1; missing.len()]),
            Attribute::Int("default_int64", 0),
        ];
        let number = graph.node("LabelEncoder", &[name], &settings);
        self.0.push(cast(graph, &number, DataType::Bool));
    }

    /// Where an item lacks any of them.
    pub(super) fn joined(self, graph: &mut Graph) -> Option<String> {
        let mut all = self.0.into_iter();
        let first = all.next()?;
        Some(all.fold(first, |one, other| graph.node("Or", &[&one, &other], &[])))
    }
}

/// Outputs of items that lack a value become `nothing`; `dims` are those of an item's output.
pub(super) fn unless_lacking(
    graph: &mut Graph,
    lacking: Option<&str>,
    value: &str,
    nothing: &str,
    dims: &[usize],
) -> String {
    let Some(lacking) = lacking else {
        return value.to_owned();
    };
    let lacking = match dims {
        [_] => lacking.to_owned(),
        _ => graph.reshape(lacking, &vec![1; dims.len()]),
    };
    graph.node("Where", &[&lacking, nothing, value], &[])
}
