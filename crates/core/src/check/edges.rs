//! What the edges of a graph have besides their ends.

use super::Point;
use crate::diagnostic::Diagnostic;
use crate::spec::model::layer::LayerKind;
use crate::spec::model::message::Message;

/// Features and weights of edges have an effect only in layers that use them.
pub fn values_of_edges_are_used(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let graph = data.files()?.graph.as_ref()?;
    let layers = point.network?.layers.iter();
    let messages: Vec<&Message> = layers
        .filter_map(|layer| match &layer.kind {
            LayerKind::Message(message) => Some(message),
            _ => None,
        })
        .collect();
    let warn = |key: &str, reason: &str, help: String| {
        let message = format!("`{key}` has no effect: {reason}");
        let warning = Diagnostic::warning("no-effect", message);
        Some(warning.at(point.span(key)).help(help))
    };
    let width = data.input.graph.map_or(0, |graph| graph.edge_features);
    if width > 0 && messages.iter().all(|message| message.edge_dim() == 0) {
        return warn(
            "data.graph.features",
            "no layer has an `edge_dim`",
            format!(
                "set `edge_dim = {width}` in `gat`, `gin` or `edge_conv` layers, or remove `features`"
            ),
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
