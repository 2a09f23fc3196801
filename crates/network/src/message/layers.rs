//! The layers whose messages pass along edges.

use burn::module::{Module, Param};
use burn::nn::{Dropout, DropoutConfig, Initializer, Linear, LinearConfig};
use burn::tensor::activation::{leaky_relu, relu};
use burn::tensor::{DType, Device, IndexingUpdateOp, Tensor};

use super::{Links, taken};
use crate::layer::Layer;
use crate::lora;
use crate::masks::least_score;
use runner_core::spec::model::message::{Aggregation, Message};

/// Normalized sums.
#[derive(Module, Debug)]
pub struct Gcn {
    linear: Linear,
    bias: Option<Param<Tensor<1>>>,
}

/// Means, and the node itself.
#[derive(Module, Debug)]
pub struct Sage {
    neighbors: Linear,
    own: Linear,
}

/// Attention.
#[derive(Module, Debug)]
pub struct Gat {
    linear: Linear,
    att_src: Param<Tensor<3>>,
    att_dst: Param<Tensor<3>>,
    edges: Option<Linear>,
    att_edge: Option<Param<Tensor<3>>>,
    bias: Option<Param<Tensor<1>>>,
    dropout: Dropout,
}

/// Sums through two linear layers.
#[derive(Module, Debug)]
pub struct Gin {
    edges: Option<Linear>,
    first: Linear,
    second: Linear,
    epsilon: Option<Param<Tensor<1>>>,
}

/// Two linear layers for each edge.
#[derive(Module, Debug)]
pub struct EdgeConv {
    first: Linear,
    second: Linear,
}

/// A linear layer without bias, drawn as in the papers.
fn glorot(width: usize, outputs: usize, device: &Device) -> Linear {
    LinearConfig::new(width, outputs)
        .with_bias(false)
        .with_initializer(Initializer::XavierUniform { gain: 1.0 })
        .init(device)
}

fn zeros(size: usize, device: &Device) -> Param<Tensor<1>> {
    Initializer::Zeros.init([size], device)
}

impl Layer {
    /// A layer of messages for nodes of some features, with uninitialized weights.
    pub(crate) fn of_messages(message: &Message, width: usize, device: &Device) -> Self {
        let linear = |inputs, outputs, bias| {
            let config = LinearConfig::new(inputs, outputs).with_bias(bias);
            config.init(device)
        };
        match *message {
            Message::Gcn {
                out_features, bias, ..
            } => Layer::Gcn(Gcn {
                linear: glorot(width, out_features, device),
                bias: bias.then(|| zeros(out_features, device)),
            }),
            Message::Sage { out_features, bias } => Layer::Sage(Sage {
                neighbors: linear(width, out_features, bias),
                own: linear(width, out_features, false),
            }),
            Message::Gat {
                out_features,
                num_heads,
                dropout,
                bias,
                edge_dim,
                ..
            } => {
                // PyTorch Geometric's fans of a parameter [1, heads, features].
                let bound = (6.0 / (num_heads + out_features) as f64).sqrt();
                let initializer = Initializer::Uniform {
                    min: -bound,
                    max: bound,
                };
                let shape = [1, num_heads, out_features];
                Layer::Gat(Gat {
                    linear: glorot(width, num_heads * out_features, device),
                    att_src: initializer.init(shape, device),
                    att_dst: initializer.init(shape, device),
                    edges: (edge_dim > 0)
                        .then(|| glorot(edge_dim, num_heads * out_features, device)),
                    att_edge: (edge_dim > 0).then(|| initializer.init(shape, device)),
                    bias: bias.then(|| zeros(message.width(), device)),
                    dropout: DropoutConfig::new(dropout).init(),
                })
            }
            Message::Gin {
                out_features,
                hidden_features,
                epsilon,
                learn_epsilon,
                edge_dim,
            } => Layer::Gin(Gin {
                edges: (edge_dim > 0).then(|| linear(edge_dim, width, true)),
                first: linear(width, hidden_features, true),
                second: linear(hidden_features, out_features, true),
                epsilon: learn_epsilon.then(|| {
                    let initializer = Initializer::Constant { value: epsilon };
                    initializer.init([1], device)
                }),
            }),
            Message::EdgeConv {
                out_features,
                hidden_features,
                edge_dim,
                ..
            } => Layer::EdgeConv(EdgeConv {
                first: linear(2 * width + edge_dim, hidden_features, true),
                second: linear(hidden_features, out_features, true),
            }),
        }
    }

    /// New features of all nodes by a layer of messages.
    pub(crate) fn passed(&self, message: &Message, x: Tensor<2>, links: &Links) -> Tensor<2> {
        match (self, message) {
            (
                Layer::Gcn(gcn),
                Message::Gcn {
                    self_loops,
                    normalize,
                    ..
                },
            ) => gcn.forward(x, links, *self_loops, *normalize),
            (Layer::Sage(sage), _) => sage.forward(x, links),
            (Layer::Gat(gat), Message::Gat { .. }) => gat.forward(message, x, links),
            (Layer::Gin(gin), Message::Gin { epsilon, .. }) => gin.forward(*epsilon, x, links),
            (
                Layer::EdgeConv(conv),
                Message::EdgeConv {
                    aggregation,
                    edge_dim,
                    ..
                },
            ) => {
                let features = (*edge_dim > 0).then(|| links.edge_features());
                conv.forward(*aggregation, x, features, links)
            }
            (_, other) => unreachable!("{other:?} was planned"),
        }
    }
}

fn with_bias(x: Tensor<2>, bias: Option<&Param<Tensor<1>>>) -> Tensor<2> {
    match bias {
        Some(bias) => x + bias.val().unsqueeze::<2>(),
        None => x,
    }
}

impl Gcn {
    fn forward(&self, x: Tensor<2>, links: &Links, self_loops: bool, normalize: bool) -> Tensor<2> {
        let x = lora::forward(&self.linear, x);
        let mut own = links.loops.clone();
        if self_loops {
            // A node that has an edge to itself gets no other.
            own = own + (1.0 - links.has_loop.clone());
        }
        let mut weights = links.weights.clone();
        if normalize {
            let degrees = links.degrees() + own.clone();
            let is_alone = degrees.clone().equal_elem(0.0);
            let factors = degrees.sqrt().recip().mask_fill(is_alone, 0.0);
            let ends = taken(factors.clone(), links.targets.clone());
            weights = links.sent(factors.clone()) * weights * ends;
            own = factors.clone() * own * factors;
        }
        let sums = links.summed(links.sent(x.clone()) * weights);
        with_bias(sums + x * own, self.bias.as_ref())
    }
}

impl Sage {
    fn forward(&self, x: Tensor<2>, links: &Links) -> Tensor<2> {
        let is_own = links.has_loop.clone();
        let num = links.received(links.weights.ones_like()) + is_own.clone();
        let sums = links.received(links.sent(x.clone())) + x.clone() * is_own;
        let means = sums / num.clamp_min(1.0);
        lora::forward(&self.neighbors, means) + lora::forward(&self.own, x)
    }
}

impl Gat {
    fn forward(&self, message: &Message, x: Tensor<2>, links: &Links) -> Tensor<2> {
        let Message::Gat {
            out_features,
            num_heads,
            concat,
            negative_slope,
            self_loops,
            ..
        } = *message
        else {
            unreachable!("attention was planned");
        };
        let num_nodes = links.num_nodes;
        let x = lora::forward(&self.linear, x);
        let heads = x.clone().reshape([num_nodes, num_heads, out_features]);
        let score = |by: &Param<Tensor<3>>| -> Tensor<2> {
            (heads.clone() * by.val()).sum_dim(2).squeeze_dim(2)
        };
        let (by_source, by_target) = (score(&self.att_src), score(&self.att_dst));
        let at_targets = |nodes: Tensor<2>| taken(nodes, links.targets.clone());
        let mut of_edges = links.sent(by_source.clone()) + at_targets(by_target.clone());
        let mut of_nodes = by_source + by_target;
        if let (Some(linear), Some(by)) = (&self.edges, &self.att_edge) {
            let [edges, mut loops] = links.edge_features();
            if self_loops {
                // What nodes send themselves has the mean of what they receive.
                let num = links.received(links.weights.ones_like());
                loops = links.received(edges.clone()) / num.clamp_min(1.0);
            }
            let score = |features: Tensor<2>| -> Tensor<2> {
                let num = features.dims()[0];
                let heads = lora::forward(linear, features);
                let heads = heads.reshape([num, num_heads, out_features]);
                (heads * by.val()).sum_dim(2).squeeze_dim(2)
            };
            of_edges = of_edges + score(edges);
            of_nodes = of_nodes + score(loops);
        }
        let of_edges = leaky_relu(of_edges, negative_slope);
        let mut of_nodes = leaky_relu(of_nodes, negative_slope);
        // The weight of a node itself.
        let mut is_own = links.loops.ones_like();
        if !self_loops {
            // Nor is its score among those of which the largest is taken.
            is_own = links.has_loop.clone();
            let has_none = is_own.clone().equal_elem(0.0).expand(of_nodes.dims());
            let dtype = of_nodes.dtype();
            of_nodes = of_nodes.mask_fill(has_none, least_score(dtype));
        }
        // Any number for all edges of a node gives the same weights: the largest score, a constant for gradients, keeps
        // them in range.
        let ends = links.targets.clone().without_autodiff();
        let most = of_nodes.clone().without_autodiff().select_assign(
            0,
            ends.clone(),
            of_edges.clone().without_autodiff(),
            IndexingUpdateOp::Max,
        );
        let of_edges = (of_edges - most.clone().select(0, ends)).exp();
        let of_nodes = (of_nodes - most).exp() * is_own;
        // Nothing divided by nothing is nothing.
        let positive = if of_nodes.dtype() == DType::F16 {
            1e-7
        } else {
            1e-16
        };
        let sums = links.received(of_edges.clone()) + of_nodes.clone() + positive;
        let of_edges = self.dropout.forward(of_edges / at_targets(sums.clone()));
        let of_nodes = self.dropout.forward(of_nodes / sums);
        let num_edges = of_edges.dims()[0];
        let sent = links.sent(x).reshape([num_edges, num_heads, out_features]);
        let messages = sent * of_edges.unsqueeze_dim::<3>(2);
        let width = num_heads * out_features;
        let sums = links.received(messages.reshape([num_edges, width]));
        let own = heads * of_nodes.unsqueeze_dim::<3>(2);
        let outputs = sums + own.reshape([num_nodes, width]);
        let outputs = if concat {
            outputs
        } else {
            let outputs = outputs.reshape([num_nodes, num_heads, out_features]);
            outputs.mean_dim(1).squeeze_dim(1)
        };
        with_bias(outputs, self.bias.as_ref())
    }
}

impl Gin {
    fn forward(&self, epsilon: f64, x: Tensor<2>, links: &Links) -> Tensor<2> {
        let (sent, own) = match &self.edges {
            None => (links.sent(x.clone()), x.clone()),
            Some(linear) => {
                let [edges, loops] = links.edge_features();
                let with = |x: Tensor<2>, features| relu(x + lora::forward(linear, features));
                (with(links.sent(x.clone()), edges), with(x.clone(), loops))
            }
        };
        let neighbors = links.summed(sent) + own * links.has_loop.clone();
        let own = match &self.epsilon {
            Some(epsilon) => x * (epsilon.val() + 1.0).unsqueeze::<2>(),
            None => x * (1.0 + epsilon),
        };
        let hidden = relu(lora::forward(&self.first, neighbors + own));
        lora::forward(&self.second, hidden)
    }
}

impl EdgeConv {
    fn forward(
        &self,
        aggregation: Aggregation,
        x: Tensor<2>,
        features: Option<[Tensor<2>; 2]>,
        links: &Links,
    ) -> Tensor<2> {
        let [edges, loops] = match features {
            Some(features) => features.map(Some),
            None => [None, None],
        };
        let message = |ends: Tensor<2>, differences: Tensor<2>, features: Option<Tensor<2>>| {
            let parts = [ends, differences].into_iter().chain(features);
            let both = Tensor::cat(parts.collect(), 1);
            lora::forward(&self.second, relu(lora::forward(&self.first, both)))
        };
        let ends = taken(x.clone(), links.targets.clone());
        let of_edges = message(ends.clone(), links.sent(x.clone()) - ends, edges);
        // The edges of nodes to themselves are not among the others.
        let is_own = links.has_loop.clone();
        let of_nodes = message(x.clone(), x.zeros_like(), loops);
        let (counts, own_counts) = match aggregation {
            Aggregation::Max => Self::largest(&of_edges, &of_nodes, &is_own, links),
            Aggregation::Mean | Aggregation::Sum => (of_edges.ones_like(), is_own.clone()),
        };
        let own = of_nodes * own_counts.clone();
        if aggregation == Aggregation::Sum {
            return links.summed(of_edges) + own;
        }
        let sums = links.received(of_edges * counts.clone()) + own;
        // Equal messages share the gradient.
        let num = links.received(counts) + own_counts;
        sums / num.clamp_min(1.0)
    }

    /// 1 for each message, of an edge and of a node to itself, that is the largest of a node, as constants.
    fn largest(
        of_edges: &Tensor<2>,
        of_nodes: &Tensor<2>,
        is_own: &Tensor<2>,
        links: &Links,
    ) -> (Tensor<2>, Tensor<2>) {
        let ends = links.targets.clone().without_autodiff();
        let edges = of_edges.clone().without_autodiff();
        let nodes = of_nodes.clone().without_autodiff();
        let shape = nodes.dims();
        let has_none = is_own
            .clone()
            .without_autodiff()
            .equal_elem(0.0)
            .expand(shape);
        let least = nodes.clone().mask_fill(has_none.clone(), f32::MIN);
        let most = least.select_assign(0, ends.clone(), edges.clone(), IndexingUpdateOp::Max);
        let is_most = edges.equal(most.clone().select(0, ends)).float();
        let is_most_own = nodes.equal(most).float().mask_fill(has_none, 0.0);
        (
            of_edges.ones_like() * is_most,
            of_nodes.ones_like() * is_most_own,
        )
    }
}
