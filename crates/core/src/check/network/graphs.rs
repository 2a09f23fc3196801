//! Layers over the nodes of a graph.

use super::cost;
use super::shape::{Mismatch, wrong};
use super::{Input, Layer, Network};
use crate::data::GraphPlan;
use crate::spec::model::layer::LayerKind;
use crate::spec::model::message::Message;

/// Values that a layer of messages keeps for each node, its share of the edges included.
pub fn kept_per_node(
    message: &Message,
    graph: Option<GraphPlan>,
    inputs: &[Input],
) -> Result<u64, Mismatch> {
    let Some(graph) = graph else {
        return wrong(
            "type",
            "passes messages along edges, but the items are not the nodes of a graph",
            "name the file of edges in `[data.graph]`, or use a layer without messages, such as `linear`",
        );
    };
    let width = inputs[0].shape.dims[0];
    let [node, edge, _] = cost::of_messages(message, width);
    Ok(node.saturating_add(of_node(edge, graph)))
}

/// A node's share of values that each edge has.
fn of_node(per_edge: u64, graph: GraphPlan) -> u64 {
    let edges = per_edge.saturating_mul(graph.num_edges as u64);
    edges.div_ceil(graph.num_nodes.max(1) as u64)
}

impl Network {
    /// The share of a node of the messages that a layer holds while it adds them.
    pub(super) fn messages_per_item(&self, layer: &Layer) -> u64 {
        let (LayerKind::Message(message), Some(graph)) = (&layer.kind, self.graph) else {
            return 0;
        };
        let width = layer.inputs[0].shape.dims[0];
        let [_, _, edge] = cost::of_messages(message, width);
        of_node(edge, graph)
    }

    /// How many items a forward pass computes for a batch of a size: of a graph, all nodes.
    pub fn num_computed(&self, batch_size: u64) -> u64 {
        self.graph
            .map_or(batch_size, |graph| graph.num_nodes as u64)
    }
}
