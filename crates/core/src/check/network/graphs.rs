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
    edge_features_fit(message.edge_dim(), graph)?;
    let width = inputs[0].shape.dims[0];
    let [node, edge, _] = cost::of_messages(message, width);
    Ok(node.saturating_add(of_node(edge, graph)))
}

/// Multiply-adds of a node's share of the edges.
pub fn edges_per_node(message: &Message, graph: Option<GraphPlan>, inputs: &[Input]) -> u64 {
    let width = inputs[0].shape.dims[0];
    graph.map_or(0, |graph| of_node(cost::per_edge(message, width), graph))
}

/// What the items of a network over a graph are, if they are not its nodes.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Graph,
    /// An edge, or two nodes without one.
    Pair,
}

impl Unit {
    fn of(graph: Option<GraphPlan>) -> Option<Self> {
        let graph = graph?;
        let pair = graph.pairs.map(|_| Self::Pair);
        pair.or(graph.num_graphs.map(|_| Self::Graph))
    }

    fn show(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Pair => "pair of nodes",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Graph => "graphs",
            Self::Pair => "pairs of nodes",
        }
    }

    /// The type of layer that makes one row of the nodes of each.
    fn layer(self) -> &'static str {
        match self {
            Self::Graph => "graph_pool",
            Self::Pair => "edge_ends",
        }
    }
}

/// The items that a layer makes rows of.
fn made_by(kind: &LayerKind) -> Option<Unit> {
    match kind {
        LayerKind::GraphPool { .. } => Some(Unit::Graph),
        LayerKind::EdgeEnds { .. } => Some(Unit::Pair),
        _ => None,
    }
}

/// Whether the output of each layer is one of the items, and not of nodes.
fn are_of_items(network: &Network) -> Vec<bool> {
    let mut all: Vec<bool> = Vec::with_capacity(network.layers.len());
    for layer in &network.layers {
        let of_input = |input: &Input| input.layer.is_some_and(|at| all[at]);
        let is_of_items = layer.inputs.iter().any(of_input);
        all.push(is_of_items || made_by(&layer.kind).is_some());
    }
    all
}

/// Refuses layers that mix nodes with items, and those that make rows of other items.
pub fn check(kind: &LayerKind, network: &Network, inputs: &[Input]) -> Result<(), Mismatch> {
    let unit = Unit::of(network.graph);
    let made = made_by(kind);
    if made.is_some() && made != unit {
        return refuse_other_unit(made, unit, network.graph.is_some());
    }
    let (Some(unit), Some(graph)) = (unit, network.graph) else {
        return Ok(());
    };
    if let LayerKind::EdgeEnds { edge_dim, .. } = kind {
        if *edge_dim > 0 && graph.pairs.is_some_and(|pairs| pairs.num_negatives > 0) {
            return wrong(
                "edge_dim",
                "uses features of edges, but some pairs of nodes have no edge",
                "remove `edge_dim`",
            );
        }
        edge_features_fit(*edge_dim, graph)?;
    }
    let of_items = are_of_items(network);
    let of_input = |input: &Input| input.layer.is_some_and(|at| of_items[at]);
    let num = inputs.iter().filter(|input| of_input(input)).count();
    if num > 0 && (made.is_some() || matches!(kind, LayerKind::Message(_))) {
        return wrong(
            "type",
            format!(
                "needs nodes, but its input has one row for each {}",
                unit.show()
            ),
            match made {
                Some(Unit::Graph) => "remove it: the nodes are already pooled".to_owned(),
                Some(Unit::Pair) => "remove it: the nodes are already combined".to_owned(),
                None => format!("move it before `{}`", unit.layer()),
            },
        );
    }
    if num > 0 && num < inputs.len() {
        return wrong(
            "inputs",
            match unit {
                Unit::Graph => "combines values of nodes with values of whole graphs",
                Unit::Pair => "combines values of nodes with values of pairs",
            },
            match unit {
                Unit::Graph => "pool the nodes first, with `graph_pool`",
                Unit::Pair => "combine the nodes of each pair first, with `edge_ends`",
            },
        );
    }
    Ok(())
}

/// Refuses a layer that makes rows of what items are not.
fn refuse_other_unit(
    made: Option<Unit>,
    unit: Option<Unit>,
    has_graph: bool,
) -> Result<(), Mismatch> {
    if made == Some(Unit::Pair) {
        return wrong(
            "type",
            "combines the two nodes of each edge, but the items are not edges",
            match unit {
                Some(_) => "use `graph_pool`, which makes one row of the nodes of each graph",
                None if has_graph => {
                    "set `items = \"edges\"` or `\"links\"` in `[data.graph]`, or remove the layer"
                }
                None => "name the files of a graph in `[data.graph]`, or remove the layer",
            },
        );
    }
    wrong(
        "type",
        "pools the nodes of each graph, but the items are not graphs",
        match unit {
            Some(_) => "use `edge_ends`, which makes one row of the two nodes of each pair",
            None => "name the column of each node's graph in `data.graph.of`, or remove the layer",
        },
    )
}

/// Refuses another number of features of edges than there are.
fn edge_features_fit(needed: usize, graph: GraphPlan) -> Result<(), Mismatch> {
    let given = graph.edge_features;
    if needed == 0 || needed == given {
        return Ok(());
    }
    wrong(
        "edge_dim",
        format!("uses {} of each edge, but edges have {given}", counted(needed, "number")),
        match given {
            0 => "name the columns of edges with their features in `data.graph.features`, or remove `edge_dim`".to_owned(),
            _ => format!("set `edge_dim = {given}`"),
        },
    )
}

/// Refuses networks over graphs or pairs whose output is one of nodes; `layers` are those whose outputs are used.
pub fn outputs_are_of_items(
    network: &Network,
    mut layers: impl Iterator<Item = usize>,
) -> Result<(), (usize, Mismatch)> {
    let Some(unit) = Unit::of(network.graph) else {
        return Ok(());
    };
    let of_items = are_of_items(network);
    match layers.find(|at| !of_items[*at]) {
        None => Ok(()),
        Some(at) => Err((
            at,
            Mismatch {
                key: "type",
                message: format!("outputs values of nodes, but the items are {}", unit.plural()),
                help: match unit {
                    Unit::Graph => {
                        "put `{ type = \"graph_pool\" }` before it, which takes the mean of the nodes"
                    }
                    Unit::Pair => {
                        "put `{ type = \"edge_ends\" }` before it, which multiplies the two nodes of each pair"
                    }
                }
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
