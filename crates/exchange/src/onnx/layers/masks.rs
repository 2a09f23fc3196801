//! Masks of positions, and how layers leave padding out.

use super::super::{Attribute, Graph};
use super::Scope;
use runner_core::check::network::axes::axis_of;
use runner_core::spec::model::layer::Reduction;

const FLOAT: Attribute<'static> = Attribute::Int("to", 1);
const INT32: Attribute<'static> = Attribute::Int("to", 6);
const INT64: Attribute<'static> = Attribute::Int("to", 7);

/// The mask of items.
pub fn padding(scope: &mut Scope<'_>, padding: Option<f64>, x: &str) -> String {
    let (rank, is_tokens) = (
        scope.dims().len(),
        scope.layer.inputs[0].shape.vocabulary.is_some(),
    );
    let graph = &mut *scope.graph;
    let padding = match (is_tokens, padding) {
        (true, Some(token)) => graph.integer(token as i64),
        // No token is padding.
        (true, None) => graph.integer(-1),
        (false, number) => graph.number(number.unwrap_or(0.0)),
    };
    let same = graph.node("Equal", &[x, &padding], &[]);
    let differs = graph.node("Not", &[&same], &[]);
    let mut mask = graph.node("Cast", &[&differs], &[FLOAT]);
    if is_tokens {
        return mask;
    }
    if rank > 1 {
        let axes = graph.integers(&[2]);
        mask = graph.node(
            "ReduceMax",
            &[&mask, &axes],
            &[Attribute::Int("keepdims", 0)],
        );
    }
    let axis = graph.integer(1);
    let following = graph.node("CumSum", &[&mask, &axis], &[Attribute::Int("reverse", 1)]);
    let zero = graph.number(0.0);
    let is_real = graph.node("Greater", &[&following, &zero], &[]);
    graph.node("Cast", &[&is_real], &[FLOAT])
}

/// The softmax of \[items, .., queries, keys\] along the keys, with zeros for those of padding.
pub fn shares(graph: &mut Graph, scores: &str, mask: Option<&str>, keys: usize) -> String {
    let along = [Attribute::Int("axis", -1)];
    let Some(mask) = mask else {
        return graph.node("Softmax", &[scores], &along);
    };
    let mask = graph.reshape(mask, &[1, 1, keys]);
    let zero = graph.number(0.0);
    let hidden = graph.node("Equal", &[&mask, &zero], &[]);
    let least = graph.number(-1e30);
    let scores = graph.node("Where", &[&hidden, &least, scores], &[]);
    let shares = graph.node("Softmax", &[&scores], &along);
    graph.node("Where", &[&hidden, &zero, &shares], &[])
}

/// A reduction along an axis, over the positions of a mask.
pub fn reduced(
    scope: &mut Scope<'_>,
    operation: Reduction,
    axis: i64,
    x: &str,
    mask: Option<&str>,
) -> String {
    let (dims, shape) = (scope.dims().to_vec(), scope.layer.shape.clone());
    let at = axis_of(axis, dims.len());
    let length = dims[at];
    let graph = &mut *scope.graph;
    let axes = graph.integers(&[1 + at as i64]);
    let Some(mask) = mask else {
        // The last position.
        let [first, past] = [length - 1, length].map(|at| graph.integers(&[at as i64]));
        let last = graph.node("Slice", &[x, &first, &past, &axes], &[]);
        return graph.reshape(&last, &shape);
    };
    let mut along = vec![1; dims.len()];
    along[at] = length;
    let (zero, one) = (graph.number(0.0), graph.number(1.0));
    let keeps = [Attribute::Int("keepdims", 1)];
    let mask = graph.reshape(mask, &along);
    let num = graph.node("ReduceSum", &[&mask, &axes], &keeps);
    let padding = graph.node("Equal", &[&mask, &zero], &[]);
    let result = match operation {
        Reduction::Max => {
            let least = graph.number(f64::NEG_INFINITY);
            let x = graph.node("Where", &[&padding, &least, x], &[]);
            let most = graph.node("ReduceMax", &[&x, &axes], &keeps);
            let is_empty = graph.node("Equal", &[&num, &zero], &[]);
            graph.node("Where", &[&is_empty, &zero, &most], &[])
        }
        Reduction::Sum | Reduction::Mean => {
            let x = graph.node("Where", &[&padding, &zero, x], &[]);
            let sum = graph.node("ReduceSum", &[&x, &axes], &keeps);
            if operation == Reduction::Sum {
                sum
            } else {
                let num = graph.node("Max", &[&num, &one], &[]);
                graph.node("Div", &[&sum, &num], &[])
            }
        }
        Reduction::Last => {
            // The number of real positions from each one on.
            let axis = graph.integer(1 + at as i64);
            let left = graph.node("CumSum", &[&mask, &axis], &[Attribute::Int("reverse", 1)]);
            let left = graph.node("Mul", &[&left, &mask], &[]);
            let is_last = graph.node("Equal", &[&left, &one], &[]);
            let x = graph.node("Where", &[&is_last, x, &zero], &[]);
            graph.node("ReduceSum", &[&x, &axes], &keeps)
        }
    };
    graph.reshape(&result, &shape)
}

/// The real positions of sequences before those of padding, as recurrent operators expect them.
pub struct Gathered {
    /// Where each position goes, \[items, length, 1\].
    places: String,
    /// \[items, length, 1\].
    mask: String,
    /// Real positions of each item, at least 1, \[items\].
    pub lengths: String,
    /// Whether an item has real positions, as numbers \[items, 1\].
    pub is_any: String,
}

impl Gathered {
    /// For a mask \[items, length\].
    pub fn new(graph: &mut Graph, mask: &str, length: usize) -> Self {
        let (axis, one, zero) = (graph.integer(1), graph.number(1.0), graph.number(0.0));
        let axes = graph.integers(&[1]);
        let padding = graph.node("Sub", &[&one, mask], &[]);
        let before = graph.node("CumSum", &[mask, &axis], &[]);
        let behind = graph.node("CumSum", &[&padding, &axis], &[]);
        let num = graph.node(
            "ReduceSum",
            &[mask, &axes],
            &[Attribute::Int("keepdims", 1)],
        );
        let behind = graph.node("Add", &[&behind, &num], &[]);
        let is_padding = graph.node("Equal", &[mask, &zero], &[]);
        let places = graph.node("Where", &[&is_padding, &behind, &before], &[]);
        let places = graph.node("Sub", &[&places, &one], &[]);
        let places = graph.reshape(&places, &[length, 1]);
        let is_any = graph.node("Min", &[&num, &one], &[]);
        let lengths = graph.node("Max", &[&num, &one], &[]);
        let lengths = graph.node("Squeeze", &[&lengths, &axes], &[]);
        Self {
            places: graph.node("Cast", &[&places], &[INT64]),
            mask: graph.reshape(mask, &[length, 1]),
            lengths: graph.node("Cast", &[&lengths], &[INT32]),
            is_any,
        }
    }

    fn places_of(&self, graph: &mut Graph, x: &str) -> String {
        let shape = graph.node("Shape", &[x], &[]);
        graph.node("Expand", &[&self.places, &shape], &[])
    }

    /// \[items, length, features\] with the real positions first.
    pub fn first(&self, graph: &mut Graph, x: &str) -> String {
        let places = self.places_of(graph, x);
        let axis = [Attribute::Int("axis", 1)];
        graph.node("ScatterElements", &[x, &places, x], &axis)
    }

    /// The reverse, with zeros for padding.
    pub fn back(&self, graph: &mut Graph, x: &str) -> String {
        let places = self.places_of(graph, x);
        let x = graph.node(
            "GatherElements",
            &[x, &places],
            &[Attribute::Int("axis", 1)],
        );
        graph.node("Mul", &[&x, &self.mask], &[])
    }
}
