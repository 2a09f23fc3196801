//! Layers over the nodes of a graph.

use super::cost;
use super::shape::{Mismatch, wrong};
use super::{Input, Layer, Network};
use crate::data::GraphPlan;
use crate::diagnostic::counted;
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
    let (needed, given) = (message.edge_dim(), graph.edge_features);
    if needed > 0 && needed != given {
        return wrong(
            "edge_dim",
            format!("uses {} of each edge, but edges have {given}", counted(needed, "number")),
            match given {
                0 => "name the columns of edges with their features in `data.graph.features`, or remove `edge_dim`".to_owned(),
                _ => format!("set `edge_dim = {given}`"),
            },
        );
    }
    let width = inputs[0].shape.dims[0];
    let [node, edge, _] = cost::of_messages(message, width);
    Ok(node.saturating_add(of_node(edge, graph)))
}

/// Multiply-adds of a node's share of the edges.
pub fn edges_per_node(message: &Message, graph: Option<GraphPlan>, inputs: &[Input]) -> u64 {
    let width = inputs[0].shape.dims[0];
    graph.map_or(0, |graph| of_node(cost::per_edge(message, width), graph))
}

/// Whether the output of each layer is one of whole graphs, and not of their nodes.
fn are_pooled(network: &Network) -> Vec<bool> {
    let mut pooled: Vec<bool> = Vec::with_capacity(network.layers.len());
    for layer in &network.layers {
        let of_input = |input: &Input| input.layer.is_some_and(|at| pooled[at]);
        let is_pooled = layer.inputs.iter().any(of_input);
        pooled.push(is_pooled || matches!(layer.kind, LayerKind::GraphPool { .. }));
    }
    pooled
}

/// Refuses layers that mix nodes with graphs, and pooling where there is nothing to pool.
pub fn check(kind: &LayerKind, network: &Network, inputs: &[Input]) -> Result<(), Mismatch> {
    let num_graphs = network.graph.and_then(|graph| graph.num_graphs);
    let is_pool = matches!(kind, LayerKind::GraphPool { .. });
    if num_graphs.is_none() {
        return if is_pool {
            wrong(
                "type",
                "pools the nodes of each graph, but the items are not graphs",
                "name the column of each node's graph in `data.graph.of`, or remove the layer",
            )
        } else {
            Ok(())
        };
    }
    let pooled = are_pooled(network);
    let of_input = |input: &Input| input.layer.is_some_and(|at| pooled[at]);
    let num_pooled = inputs.iter().filter(|input| of_input(input)).count();
    if num_pooled > 0 && (is_pool || matches!(kind, LayerKind::Message(_))) {
        return wrong(
            "type",
            "needs nodes, but its input has one row for each graph",
            if is_pool {
                "remove it: the nodes are already pooled"
            } else {
                "move it before `graph_pool`"
            },
        );
    }
    if num_pooled > 0 && num_pooled < inputs.len() {
        return wrong(
            "inputs",
            "combines values of nodes with values of whole graphs",
            "pool the nodes first, with `graph_pool`",
        );
    }
    Ok(())
}

/// Refuses networks over graphs whose output is one of nodes; `layers` are those whose outputs are used.
pub fn outputs_are_of_graphs(
    network: &Network,
    mut layers: impl Iterator<Item = usize>,
) -> Result<(), (usize, Mismatch)> {
    if network.graph.and_then(|graph| graph.num_graphs).is_none() {
        return Ok(());
    }
    let pooled = are_pooled(network);
    match layers.find(|at| !pooled[*at]) {
        None => Ok(()),
        Some(at) => Err((
            at,
            Mismatch {
                key: "type",
                message: "outputs values of nodes, but the items are graphs".into(),
                help:
                    "put `{ type = \"graph_pool\" }` before it, which takes the mean of the nodes"
                        .into(),
            },
        )),
    }
}

/// Refuses networks with another number of layers of messages one after another than neighbors are drawn for; the
/// error has the layer that it is about.
pub fn rounds_fit(network: &Network) -> Result<(), (usize, Mismatch)> {
    let Some(drawn) = network.graph.and_then(|graph| graph.drawn) else {
        return Ok(());
    };
    let rounds = rounds(network);
    let most = rounds.iter().copied().max().unwrap_or(0);
    if most == drawn.num_rounds {
        return Ok(());
    }
    let at = if most < drawn.num_rounds {
        rounds.iter().rposition(|round| *round == most)
    } else {
        rounds
            .iter()
            .position(|round| *round == drawn.num_rounds + 1)
    };
    let given = counted(drawn.num_rounds, "number");
    Err((
        at.unwrap_or(0),
        Mismatch {
            key: "type",
            message: match most.min(drawn.num_rounds + 1) {
                0 => format!(
                    "depends on no layer of messages, but `data.graph.neighbors` has {given}"
                ),
                num => format!(
                    "depends on {} of messages one after another, but `data.graph.neighbors` has {given}",
                    counted(num, "layer"),
                ),
            },
            help: match most {
                0 => "remove `neighbors`, or add a layer such as `sage`".into(),
                _ => format!(
                    "give `data.graph.neighbors` {}, the first for the nodes of the batch",
                    counted(most, "number")
                ),
            },
        },
    ))
}

/// How many layers of messages one after another each layer ends.
fn rounds(network: &Network) -> Vec<usize> {
    let mut rounds: Vec<usize> = Vec::with_capacity(network.layers.len());
    for layer in &network.layers {
        let inputs = layer.inputs.iter().filter_map(|input| input.layer);
        let before = inputs.map(|at| rounds[at]).max().unwrap_or(0);
        rounds.push(before + usize::from(matches!(layer.kind, LayerKind::Message(_))));
    }
    rounds
}

/// A node's share of values that each edge has.
fn of_node(per_edge: u64, graph: GraphPlan) -> u64 {
    if graph.drawn.is_some() {
        // There are at most as many edges as nodes are counted.
        return per_edge;
    }
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

    /// The same over all edges, if some of them are drawn in training.
    pub fn over_all_edges(&self) -> Option<Self> {
        let graph = self.graph.filter(|graph| graph.drawn.is_some())?;
        let graph = Some(GraphPlan {
            drawn: None,
            ..graph
        });
        Some(Self {
            graph,
            ..self.clone()
        })
    }

    /// How many layers of messages one after another there are.
    pub fn num_rounds(&self) -> usize {
        rounds(self).into_iter().max().unwrap_or(0)
    }

    /// How many items, or nodes of a graph, a step of training computes for a batch of a size.
    pub fn num_computed(&self, batch_size: u64) -> u64 {
        let graph = self.graph.as_ref();
        graph.map_or(batch_size, |graph| graph.nodes_in(batch_size))
    }
}
