//! Layers that arrange, join and reduce axes.

use super::super::Attribute;
use super::Scope;
use crate::torch::axes::with_batch;
use runner_core::check::network::axes::{axis_of, range};
use runner_core::spec::model::layer::{LayerKind, PadMode, Pairwise, Reduction};

/// The first half of the last axis.
pub fn first_half(scope: &mut Scope<'_>, x: &str) -> String {
    let width = scope.layer.shape.last().copied().unwrap_or(1) as i64;
    scope.graph.slice(x, -1, 0, width)
}

/// The output of such a layer. Axes of a plan do not count the batch, which is axis 0 here.
pub fn output(scope: &mut Scope<'_>, inputs: &[String]) -> String {
    let x = inputs[0].as_str();
    let layer = scope.layer;
    let dims = scope.dims().to_vec();
    let rank = dims.len();
    let axis = |axis: i64| 1 + axis_of(axis, rank) as i64;
    let graph = &mut *scope.graph;
    let mut fold = |operator: &str| {
        let mut all = inputs.iter();
        let first = all.next().cloned().unwrap_or_default();
        all.fold(first, |sum, next| graph.node(operator, &[&sum, next], &[]))
    };
    match &layer.kind {
        LayerKind::Permute { axes } => {
            let axes = axes.iter().map(|at| axis(*at));
            let order: Vec<i64> = [0].into_iter().chain(axes).collect();
            graph.transpose(x, &order)
        }
        LayerKind::Slice {
            axis: at,
            start,
            end,
        } => {
            let (first, past) = range(*start, *end, dims[axis_of(*at, rank)]);
            graph.slice(x, axis(*at), first, past)
        }
        LayerKind::Reduce {
            operation,
            axis: at,
        } => {
            let operator = match operation {
                Reduction::Mean => "ReduceMean",
                Reduction::Max => "ReduceMax",
                Reduction::Sum | Reduction::Last => "ReduceSum",
            };
            let axes = graph.integers(&[axis(*at)]);
            // An item with a single axis keeps it.
            let keeps = i64::from(layer.shape.len() == rank);
            graph.node(operator, &[x, &axes], &[Attribute::Int("keepdims", keeps)])
        }
        LayerKind::PixelShuffle { factor } => {
            let mode = [
                Attribute::Int("blocksize", *factor as i64),
                Attribute::Text("mode", "CRD"),
            ];
            graph.node("DepthToSpace", &[x], &mode)
        }
        LayerKind::PixelUnshuffle { factor } => {
            // ONNX's operator orders the channels differently.
            let (rows, columns) = (dims[1] / factor, dims[2] / factor);
            let cut = graph.reshape(x, &[dims[0], rows, *factor, columns, *factor]);
            let moved = graph.transpose(&cut, &[0, 1, 3, 5, 2, 4]);
            graph.reshape(&moved, &layer.shape)
        }
        LayerKind::Add => fold("Add"),
        LayerKind::Multiply => fold("Mul"),
        LayerKind::Pairwise { operation } => fold(match operation {
            Pairwise::Subtract => "Sub",
            Pairwise::Divide => "Div",
            Pairwise::Maximum => "Max",
            Pairwise::Minimum => "Min",
        }),
        LayerKind::Matmul => fold("MatMul"),
        LayerKind::Einsum { equation } => {
            let all: Vec<&str> = inputs.iter().map(String::as_str).collect();
            let equation = with_batch(equation);
            graph.node("Einsum", &all, &[Attribute::Text("equation", &equation)])
        }
        LayerKind::Cumsum { axis: at } => {
            let axis = graph.integer(axis(*at));
            graph.node("CumSum", &[x, &axis], &[])
        }
        LayerKind::Pad {
            padding,
            mode,
            value,
        } => {
            let none = vec![0; 1 + rank - padding.len()];
            let side = |at: usize| padding.iter().map(move |pair| pair[at] as i64);
            let before = none.iter().copied().chain(side(0));
            let pads: Vec<i64> = before.chain(none.iter().copied()).chain(side(1)).collect();
            let (pads, value) = (graph.integers(&pads), graph.number(*value));
            let mode = match mode {
                PadMode::Constant => "constant",
                PadMode::Reflect => "reflect",
                PadMode::Replicate => "edge",
            };
            graph.node("Pad", &[x, &pads, &value], &[Attribute::Text("mode", mode)])
        }
        LayerKind::Concat { axis: at } => {
            let all: Vec<&str> = inputs.iter().map(String::as_str).collect();
            graph.node("Concat", &all, &[Attribute::Int("axis", axis(*at))])
        }
        // All others only reshape.
        _ => graph.reshape(x, &layer.shape),
    }
}
