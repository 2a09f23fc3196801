//! `[data.graph]`: the edges between the rows of a table.

use serde::{Deserialize, Serialize};

use crate::spec::kind::Kind;
use crate::spec::section::{Section, choices};

choices! {
    /// What the items of a graph are.
    #[derive(Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GraphItems {
        #[default]
        Nodes "nodes" "The nodes, or the graphs if `of` names their column.",
        Edges "edges" "The edges, whose targets are columns of `edges`.",
        Links "links" "Pairs of nodes: those with an edge, and drawn ones without; the target is whether there is an edge.",
    }
}

/// The edges of a graph whose nodes are the rows of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GraphSpec {
    /// What the items are.
    #[serde(default, skip_serializing_if = "GraphItems::are_nodes")]
    pub items: GraphItems,
    /// The files of edges: resolved like the data's files.
    pub edges: Vec<String>,
    /// The column of the nodes' names; rows are numbered from 0 if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The column of the graph that each node is in; all are in one if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The column of the node at which an edge begins.
    pub from: String,
    /// The column of the node at which it ends.
    pub to: String,
    /// The column of weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// The columns of the features of edges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// Whether edges pass messages in one direction only.
    pub directed: bool,
    /// How many edges of each node are drawn in training, for each round of messages; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbors: Vec<usize>,
    /// How many pairs without an edge there are for each edge, if items are pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negatives: Option<usize>,
}

impl GraphItems {
    /// Whether they are nodes or whole graphs.
    pub fn are_nodes(&self) -> bool {
        *self == Self::Nodes
    }
}

impl GraphSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let items = s.choice(
            "items",
            "What the items are: splits divide them, and they have the targets.",
            GraphItems::Nodes,
        );
        let negatives = s
            .field("negatives", Kind::Int(1, 1000), "With `items = \"links\"`: how many pairs without an edge are drawn for each edge; 1 when not set.")
            .optional();
        let text = |s: &mut Section<'_>, key, doc, usual: &str| -> String {
            s.field(key, Kind::Text, doc).or(usual.to_owned())
        };
        Self {
            edges: s
                .field(
                    "edges",
                    Kind::one_or_many(Kind::Path),
                    "The file or files of edges, one per row or item: csv, json lines, parquet, npz or safetensors, by the ending of the name.",
                )
                .required(),
            id: s
                .field("id", Kind::Text, "The column of `path` with the name of each node, which edges use; when not set, nodes are numbered from 0 in the order of `path`.")
                .optional(),
            items,
            of: s
                .field("of", Kind::Text, "The column of `path` with the graph of each node, if there are many: items are then graphs, and all nodes of a graph have its target.")
                .optional(),
            from: text(s, "from", "The column of edges with the node at which each begins.", "source"),
            to: text(s, "to", "The column of edges with the node at which each ends, which receives its messages.", "target"),
            weight: s
                .field("weight", Kind::Text, "The column of edges with their weights, which `gcn` layers use; all are 1 when not set.")
                .optional(),
            features: s
                .field("features", Kind::one_or_many(Kind::Text), "The column or columns of edges with numbers or lists of numbers, which layers with `edge_dim` use as they are.")
                .or(Vec::new()),
            negatives: negatives.or((items == GraphItems::Links).then_some(1)),
            directed: s
                .field("directed", Kind::Bool, "Whether messages pass only from `from` to `to`; otherwise in both directions.")
                .or(false),
            neighbors: s
                .field(
                    "neighbors",
                    Kind::list(Kind::Int(1, 1 << 20), 1),
                    "How many edges that end at a node are drawn for a batch of training: first for the nodes of the batch, then for their neighbors, and so on, a number for each layer of messages one after another; all edges when not set.",
                )
                .or(Vec::new()),
        }
    }
}
