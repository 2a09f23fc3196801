//! Layers that arrange, join and reduce axes.

use super::Names;
use super::call::{Call, tuple};
use runner_core::check::network::Layer;
use runner_core::check::network::axes::{axis_of, range};
use runner_core::check::network::einsum::Equation;
use runner_core::spec::model::layer::{LayerKind, Pairwise, Reduction};

/// An equation that was checked, with the axis of the batch.
pub fn with_batch(equation: &str) -> String {
    Equation::parse(equation).map_or_else(|_| equation.to_owned(), |e| e.with_batch())
}

/// The expression for such a layer. Axes of a plan do not count the batch, which is axis 0 here.
pub(super) fn expression(layer: &Layer, names: &Names<'_>) -> String {
    let x = names.input();
    let dims = &layer.inputs[0].shape.dims;
    let rank = dims.len();
    let axis = |axis: i64| 1 + axis_of(axis, rank);
    match &layer.kind {
        LayerKind::Flatten {
            start_axis,
            end_axis,
        } => match (axis(*start_axis), axis(*end_axis)) {
            (start, end) if end == rank => format!("{x}.flatten({start})"),
            (start, end) => format!("{x}.flatten({start}, {end})"),
        },
        LayerKind::Reshape { .. } => {
            let sizes: Vec<String> = layer.shape.iter().map(usize::to_string).collect();
            format!("{x}.reshape(-1, {})", sizes.join(", "))
        }
        LayerKind::Permute { axes } => {
            let axes: Vec<String> = axes.iter().map(|at| axis(*at).to_string()).collect();
            format!("{x}.permute(0, {})", axes.join(", "))
        }
        LayerKind::Unsqueeze { axis } => {
            format!("{x}.unsqueeze({})", 1 + axis_of(*axis, rank + 1))
        }
        // An item with a single axis keeps it.
        LayerKind::Squeeze { axis: at } if layer.shape.len() < rank => {
            format!("{x}.squeeze({})", axis(*at))
        }
        LayerKind::Slice {
            axis: at,
            start,
            end,
        } => {
            let (first, past) = range(*start, *end, dims[axis_of(*at, rank)]);
            let before = ":, ".repeat(axis(*at));
            format!("{x}[{before}{first}:{past}]")
        }
        LayerKind::Reduce {
            operation,
            axis: at,
        } => {
            if *operation == Reduction::Last {
                let before = ":, ".repeat(axis(*at));
                // An item with a single axis keeps it.
                let last = if layer.shape.len() == rank {
                    "-1:"
                } else {
                    "-1"
                };
                return format!("{x}[{before}{last}]");
            }
            let function = match operation {
                Reduction::Mean => "mean",
                Reduction::Max => "amax",
                Reduction::Sum | Reduction::Last => "sum",
            };
            Call::new(format!("{x}.{function}"))
                .arg(axis(*at))
                .flag("keepdim", layer.shape.len() == rank, false)
                .end()
        }
        LayerKind::PixelShuffle { factor } => format!("F.pixel_shuffle({x}, {factor})"),
        LayerKind::PixelUnshuffle { factor } => format!("F.pixel_unshuffle({x}, {factor})"),
        LayerKind::Add => names.inputs.join(" + "),
        LayerKind::Multiply => names.inputs.join(" * "),
        LayerKind::Pairwise { operation } => match operation {
            Pairwise::Subtract => names.inputs.join(" - "),
            Pairwise::Divide => names.inputs.join(" / "),
            Pairwise::Maximum => format!("torch.maximum({})", names.inputs.join(", ")),
            Pairwise::Minimum => format!("torch.minimum({})", names.inputs.join(", ")),
        },
        LayerKind::Matmul => names.inputs.join(" @ "),
        LayerKind::Einsum { equation } => {
            let equation = with_batch(equation);
            let call = Call::new("torch.einsum").arg(format!("{equation:?}"));
            names.inputs.iter().fold(call, Call::arg).end()
        }
        LayerKind::Cumsum { axis: at } => format!("{x}.cumsum({})", axis(*at)),
        LayerKind::Concat { axis: at } => {
            let all = tuple(names.inputs.iter());
            format!("torch.cat({all}, dim={})", axis(*at))
        }
        _ => x.to_owned(),
    }
}
