//! What the edges of a graph have besides their ends.

use super::Point;
use crate::diagnostic::Diagnostic;
use crate::spec::data::GraphItems;
use crate::spec::model::layer::LayerKind;
use crate::spec::model::message::{EdgeEnds, Message};

/// Features and weights of edges have an effect only in layers that use them.
pub fn values_of_edges_are_used(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let graph = data.files()?.graph.as_ref()?;
    let kinds = point.network?.layers.iter().map(|layer| &layer.kind);
    let messages = kinds.clone().filter_map(|kind| match kind {
        LayerKind::Message(message) => Some(message),
        _ => None,
    });
    let messages: Vec<&Message> = messages.collect();
    let warn = |key: &str, reason: &str, help: String| {
        let message = format!("`{key}` has no effect: {reason}");
        let warning = Diagnostic::warning("no-effect", message);
        Some(warning.at(point.span(key)).help(help))
    };
    let of_graph = data.input.graph;
    let width = of_graph.map_or(0, |graph| graph.edge_features);
    let mut dims = kinds.map(|kind| match kind {
        LayerKind::Message(message) => message.edge_dim(),
        LayerKind::EdgeEnds { edge_dim, .. } => *edge_dim,
        _ => 0,
    });
    if width > 0 && dims.all(|dim| dim == 0) {
        let layers = match graph.items {
            GraphItems::Edges => "`gat`, `gin`, `edge_conv` or `edge_ends`",
            GraphItems::Nodes | GraphItems::Links => "`gat`, `gin` or `edge_conv`",
        };
        return warn(
            "data.graph.features",
            "no layer has an `edge_dim`",
            format!("set `edge_dim = {width}` in {layers} layers, or remove `features`"),
        );
    }
    let is_gcn = |message: &&Message| matches!(message, Message::Gcn { .. });
    if graph.weight.is_some() && !messages.iter().any(is_gcn) {
        return warn(
            "data.graph.weight",
            "only `gcn` layers use the weights of edges",
            "use `gcn` layers, or remove `weight`".into(),
        );
    }
    None
}

/// Without directions, the order of the two nodes of an edge is that of the file.
pub fn order_of_ends_matters(point: &Point<'_>) -> Option<Diagnostic> {
    let graph = point.data?.files()?.graph.as_ref()?;
    let is_ordered = |kind: &LayerKind| {
        let LayerKind::EdgeEnds { operation, .. } = kind else {
            return false;
        };
        *operation == EdgeEnds::Concat
    };
    let mut layers = point.spec.model.layers.iter();
    let layer = layers.find(|layer| !graph.directed && is_ordered(&layer.kind))?;
    let message = format!(
        "the output of `{}` depends on which node of an edge comes first in the file, but edges have no direction",
        layer.name
    );
    let warning = layer.point(Diagnostic::warning("contradiction", message), "operation");
    Some(warning.help(
        "use `operation = \"product\"`, \"sum\" or \"difference\", or set `directed = true` in `[data.graph]` if the first node differs from the second",
    ))
}
