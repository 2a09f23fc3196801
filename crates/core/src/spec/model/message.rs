//! Layers that pass messages along the edges of a graph.

use serde::{Deserialize, Serialize};

use super::decode::{bias, size};
use crate::spec::kind::Kind;
use crate::spec::section::{Section, choices};

choices! {
    /// How the nodes of a graph become one row.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GraphPooling {
        Mean "mean" "The mean of the nodes.",
        Sum "sum" "The sum of the nodes.",
        Max "max" "The maximum of the nodes, for each feature.",
        Attention "attention" "The mean of the nodes, weighted by the softmax of a learned score of each.",
    }
}

choices! {
    /// How the two nodes of an edge become one row.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum EdgeEnds {
        Product "product" "The product of both nodes, for each feature.",
        Sum "sum" "The sum of both nodes.",
        Difference "difference" "The absolute difference of both nodes, for each feature.",
        Concat "concat" "The node where the edge begins, then the one where it ends.",
        Dot "dot" "One number: the dot product of both nodes.",
    }
}

impl EdgeEnds {
    /// Features of an edge whose nodes have some.
    pub fn width(self, of_node: usize) -> usize {
        match self {
            Self::Product | Self::Sum | Self::Difference => of_node,
            Self::Concat => 2 * of_node,
            Self::Dot => 1,
        }
    }
}

choices! {
    /// How the messages to a node become one.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Aggregation {
        Max "max" "The maximum of the messages, for each feature.",
        Mean "mean" "The mean of the messages.",
        Sum "sum" "The sum of the messages.",
    }
}

/// A layer that passes messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "layer", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each key is documented below")]
pub enum Message {
    /// Weighted sums, normalized by the degrees of both ends (Kipf and Welling, 2017).
    Gcn {
        out_features: usize,
        bias: bool,
        self_loops: bool,
        normalize: bool,
    },
    /// Means, and the node itself (Hamilton et al., 2017).
    Sage { out_features: usize, bias: bool },
    /// Attention to neighbors (Velickovic et al., 2018).
    Gat {
        out_features: usize,
        num_heads: usize,
        concat: bool,
        negative_slope: f64,
        dropout: f64,
        self_loops: bool,
        bias: bool,
        #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
        edge_dim: usize,
    },
    /// Sums, and then two linear layers (Xu et al., 2019).
    Gin {
        out_features: usize,
        hidden_features: usize,
        epsilon: f64,
        learn_epsilon: bool,
        #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
        edge_dim: usize,
    },
    /// Two linear layers of a node and of its difference to each neighbor (Wang et al., 2019).
    EdgeConv {
        out_features: usize,
        hidden_features: usize,
        aggregation: Aggregation,
        #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
        edge_dim: usize,
    },
}

impl Message {
    /// The features that it gives each node.
    pub fn width(&self) -> usize {
        match self {
            Message::Gcn { out_features, .. }
            | Message::Sage { out_features, .. }
            | Message::EdgeConv { out_features, .. }
            | Message::Gin { out_features, .. } => *out_features,
            Message::Gat {
                out_features,
                num_heads,
                concat,
                ..
            } => out_features * if *concat { *num_heads } else { 1 },
        }
    }

    pub(super) fn gcn(s: &mut Section<'_>) -> Self {
        Message::Gcn {
            out_features: out_features(s),
            bias: bias(s),
            self_loops: self_loops(s),
            normalize: {
                let doc = "Whether each message is divided by the square roots of the sums of weights at both ends.";
                s.field("normalize", Kind::Bool, doc).or(true)
            },
        }
    }

    pub(super) fn sage(s: &mut Section<'_>) -> Self {
        Message::Sage {
            out_features: out_features(s),
            bias: bias(s),
        }
    }

    pub(super) fn gat(s: &mut Section<'_>) -> Self {
        Message::Gat {
            out_features: {
                let doc = "Output features of each head.";
                size(s, "out_features", doc)
            },
            num_heads: {
                let doc = "Attention heads, each with weights of its own.";
                s.field("num_heads", Kind::Int(1, 1 << 12), doc).or(1)
            },
            concat: {
                let doc = "Whether the outputs of the heads are concatenated; otherwise their mean is taken.";
                s.field("concat", Kind::Bool, doc).or(true)
            },
            negative_slope: {
                let doc = "The slope below zero of the `leaky_relu` of the attention.";
                s.field("negative_slope", Kind::between(0.0, 1.0), doc)
                    .or(0.2)
            },
            dropout: {
                let doc = "Probability that the weight of a neighbor is zeroed in training.";
                s.field("dropout", Kind::fraction(), doc).or(0.0)
            },
            self_loops: self_loops(s),
            bias: bias(s),
            edge_dim: edge_dim(s),
        }
    }

    pub(super) fn gin(s: &mut Section<'_>) -> Self {
        let out_features = out_features(s);
        Message::Gin {
            out_features,
            hidden_features: hidden_features(s, out_features),
            epsilon: {
                let doc = "The node itself counts 1 plus this.";
                s.field("epsilon", Kind::between(-100.0, 100.0), doc)
                    .or(0.0)
            },
            learn_epsilon: {
                let doc = "Whether `epsilon` is learned.";
                s.field("learn_epsilon", Kind::Bool, doc).or(false)
            },
            edge_dim: edge_dim(s),
        }
    }

    pub(super) fn edge_conv(s: &mut Section<'_>) -> Self {
        let out_features = out_features(s);
        Message::EdgeConv {
            out_features,
            hidden_features: hidden_features(s, out_features),
            aggregation: s.choice(
                "aggregation",
                "How the messages to a node become one; a node without any gets 0.",
                Aggregation::Max,
            ),
            edge_dim: edge_dim(s),
        }
    }

    /// The numbers of each edge that it uses.
    pub fn edge_dim(&self) -> usize {
        match self {
            Message::Gcn { .. } | Message::Sage { .. } => 0,
            Message::Gat { edge_dim, .. }
            | Message::Gin { edge_dim, .. }
            | Message::EdgeConv { edge_dim, .. } => *edge_dim,
        }
    }
}

fn edge_dim(s: &mut Section<'_>) -> usize {
    let doc = "Numbers of each edge that messages use: as many as `data.graph.features` gives; none when not set.";
    s.field("edge_dim", Kind::Int(1, super::decode::MAX_SIZE), doc)
        .or(0)
}

fn hidden_features(s: &mut Section<'_>, out_features: usize) -> usize {
    let doc = "Features between the two linear layers, where a `relu` is; as many as `out_features` when not set.";
    s.field(
        "hidden_features",
        Kind::Int(1, super::decode::MAX_SIZE),
        doc,
    )
    .or(out_features)
}

fn out_features(s: &mut Section<'_>) -> usize {
    size(s, "out_features", "Output features of each node.")
}

fn self_loops(s: &mut Section<'_>) -> bool {
    let doc = "Whether each node also receives its own message.";
    s.field("self_loops", Kind::Bool, doc).or(true)
}
