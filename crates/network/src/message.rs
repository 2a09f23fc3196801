//! Layers that pass messages along the edges of a graph: gathered by the node they come from, and added up at the node
//! they go to, in the order of the edges.

use burn::module::{Module, Param};
use burn::nn::{Dropout, DropoutConfig, Initializer, Linear, LinearConfig};
use burn::tensor::activation::{leaky_relu, relu};
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};

use crate::layer::Layer;
use crate::lora;
use runner_core::data::{Edges, NodeGraph, PairsPart};
use runner_core::spec::model::message::{Aggregation, EdgeEnds, GraphPooling, Message};

/// Edges on a device.
#[derive(Clone, Debug)]
pub struct Links {
    num_nodes: usize,
    sources: Tensor<1, Int>,
    targets: Tensor<1, Int>,
    /// \[edges, 1\]
    weights: Tensor<2>,
    /// The weights of the edges from each node to itself, \[nodes, 1\].
    loops: Tensor<2>,
    /// The features of edges, \[edges, width\], and of those from each node to itself, \[nodes, width\], if they have any.
    features: Option<[Tensor<2>; 2]>,
    /// Of a part of a graph, the weights of all edges that end at each node, and how many there are for each one that is
    /// here, \[nodes, 1\] each.
    others: Option<[Tensor<2>; 2]>,
}

/// Items that are nodes of a graph, or whole graphs.
#[derive(Clone, Debug)]
pub struct Nodes {
    /// The features of all nodes, \[nodes, width\].
    pub features: Tensor<2>,
    /// The edges.
    pub links: Links,
    /// The nodes that are items of the batch.
    pub places: Tensor<1, Int>,
    /// The graphs, if they are the items.
    pub graphs: Option<Graphs>,
    /// The pairs of nodes, if they are the items.
    pub pairs: Option<Pairs>,
}

/// The pairs of nodes of a batch.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// The nodes at both ends of each.
    ends: [Tensor<1, Int>; 2],
    /// The features of the edge of each, \[pairs, width\], if it has any.
    features: Option<Tensor<2>>,
}

/// The graphs of a batch.
#[derive(Clone, Debug)]
pub struct Graphs {
    num: usize,
    /// The graph of each node.
    of: Tensor<1, Int>,
    /// The nodes of each graph, \[graphs, 1\].
    sizes: Tensor<2>,
}

impl Links {
    fn new(edges: Edges, device: &Device) -> Self {
        let indices = |all: Vec<i32>| {
            let num = all.len();
            Tensor::from_data(TensorData::new(all, [num]), device)
        };
        let column = |all: Vec<f32>| {
            let num = all.len();
            Tensor::from_data(TensorData::new(all, [num, 1]), device)
        };
        Self {
            num_nodes: edges.num_nodes,
            sources: indices(edges.sources),
            targets: indices(edges.targets),
            weights: column(edges.weights),
            loops: column(edges.loops),
            features: (edges.width > 0).then(|| {
                [edges.features, edges.loop_features].map(|all| {
                    let num = all.len() / edges.width;
                    Tensor::from_data(TensorData::new(all, [num, edges.width]), device)
                })
            }),
            others: edges.others.map(|others| {
                [others.weights, others.scales].map(|all| {
                    let num = all.len();
                    Tensor::from_data(TensorData::new(all, [num, 1]), device)
                })
            }),
        }
    }

    /// The features of edges, and of those from nodes to themselves.
    fn edge_features(&self) -> [Tensor<2>; 2] {
        let features = self.features.clone();
        features.unwrap_or_else(|| unreachable!("features of edges were planned"))
    }

    /// The values of the nodes that edges begin at.
    fn sent(&self, nodes: Tensor<2>) -> Tensor<2> {
        nodes.select(0, self.sources.clone())
    }

    /// The sums over the edges that end at each node.
    fn received(&self, messages: Tensor<2>) -> Tensor<2> {
        let shape = [self.num_nodes, messages.dims()[1]];
        let options = (&messages.device(), messages.dtype());
        let zeros = Tensor::zeros(shape, options);
        zeros.select_assign(0, self.targets.clone(), messages, IndexingUpdateOp::Add)
    }

    /// The same, or what is expected of it, over all edges of the graph of which this is a part: without bias, those that
    /// are here stand for the others.
    fn summed(&self, messages: Tensor<2>) -> Tensor<2> {
        let sums = self.received(messages);
        match &self.others {
            Some([_, scales]) => sums * scales.clone(),
            None => sums,
        }
    }

    /// The weights of all edges that end at each node.
    fn degrees(&self) -> Tensor<2> {
        match &self.others {
            Some([weights, _]) => weights.clone(),
            None => self.received(self.weights.clone()),
        }
    }

    /// 1 for each node with an edge to itself, \[nodes, 1\].
    fn has_loop(&self) -> Tensor<2> {
        self.loops.clone().greater_elem(0.0).float()
    }

    /// The same on the device without autodiff.
    fn without_autodiff(self) -> Self {
        Self {
            num_nodes: self.num_nodes,
            sources: self.sources.without_autodiff(),
            targets: self.targets.without_autodiff(),
            weights: self.weights.without_autodiff(),
            loops: self.loops.without_autodiff(),
            features: (self.features).map(|features| features.map(Tensor::without_autodiff)),
            others: self
                .others
                .map(|others| others.map(Tensor::without_autodiff)),
        }
    }
}

impl Nodes {
    /// Some nodes of a graph.
    pub fn new(graph: NodeGraph, rows: &[u32], device: &Device) -> Self {
        let shape = [graph.edges.num_nodes, graph.width];
        let rows: Vec<i32> = rows.iter().map(|row| *row as i32).collect();
        let num = rows.len();
        Self {
            features: Tensor::from_data(TensorData::new(graph.features, shape), device),
            links: Links::new(graph.edges, device),
            places: Tensor::from_data(TensorData::new(rows, [num]), device),
            graphs: None,
            pairs: None,
        }
    }

    /// Pairs of nodes of a graph.
    pub fn of_pairs(graph: NodeGraph, part: PairsPart, device: &Device) -> Self {
        let num = part.ends[0].len();
        let width = part.features.len() / num.max(1);
        let ends = part.ends.map(|nodes| {
            let nodes: Vec<i32> = nodes.into_iter().map(|node| node as i32).collect();
            Tensor::from_data(TensorData::new(nodes, [num]), device)
        });
        let features = TensorData::new(part.features, [num, width]);
        Self {
            pairs: Some(Pairs {
                ends,
                features: (width > 0).then(|| Tensor::from_data(features, device)),
            }),
            ..Self::new(graph, &[], device)
        }
    }

    /// Graphs without edges between them; `of` is the position of each node's graph.
    pub fn of_graphs(graph: NodeGraph, of: Vec<i32>, num: usize, device: &Device) -> Self {
        let mut sizes = vec![0.0_f32; num];
        of.iter().for_each(|at| sizes[*at as usize] += 1.0);
        let sizes = TensorData::new(sizes, [num, 1]);
        let num_nodes = of.len();
        let of = TensorData::new(of, [num_nodes]);
        Self {
            graphs: Some(Graphs {
                num,
                of: Tensor::from_data(of, device),
                sizes: Tensor::from_data(sizes, device),
            }),
            ..Self::new(graph, &[], device)
        }
    }

    /// Number of items, and features of a node.
    pub fn dims(&self) -> [usize; 2] {
        let num = match (&self.graphs, &self.pairs) {
            (Some(graphs), _) => graphs.num,
            (_, Some(pairs)) => pairs.ends[0].dims()[0],
            (None, None) => self.places.dims()[0],
        };
        [num, self.features.dims()[1]]
    }

    /// The items at some positions of the batch.
    pub fn select(self, places: Tensor<1, Int>) -> Self {
        if let Some(Pairs { ends, features }) = self.pairs {
            return Self {
                pairs: Some(Pairs {
                    ends: ends.map(|nodes| nodes.select(0, places.clone())),
                    features: features.map(|features| features.select(0, places)),
                }),
                ..self
            };
        }
        Self {
            places: match self.graphs {
                None => self.places.select(0, places),
                Some(_) => panic!("graphs are put together on the host"),
            },
            ..self
        }
    }

    /// The features of the items.
    pub fn items(self) -> Tensor<2> {
        self.features.select(0, self.places)
    }

    /// The same on the device without autodiff.
    pub fn without_autodiff(self) -> Self {
        Self {
            features: self.features.without_autodiff(),
            links: self.links.without_autodiff(),
            places: self.places.without_autodiff(),
            graphs: self.graphs.map(|graphs| Graphs {
                of: graphs.of.without_autodiff(),
                sizes: graphs.sizes.without_autodiff(),
                ..graphs
            }),
            pairs: self.pairs.map(|pairs| Pairs {
                ends: pairs.ends.map(Tensor::without_autodiff),
                features: pairs.features.map(Tensor::without_autodiff),
            }),
        }
    }
}

impl Pairs {
    /// One row for each pair, from the values of all nodes.
    pub fn combined(&self, by: EdgeEnds, has_features: bool, nodes: Tensor<2>) -> Tensor<2> {
        let ends = self.ends.clone();
        let [from, to] = ends.map(|ends| nodes.clone().select(0, ends));
        let row = match by {
            EdgeEnds::Product => from * to,
            EdgeEnds::Sum => from + to,
            EdgeEnds::Difference => (from - to).abs(),
            EdgeEnds::Concat => Tensor::cat(vec![from, to], 1),
            EdgeEnds::Dot => (from * to).sum_dim(1),
        };
        match &self.features {
            Some(features) if has_features => Tensor::cat(vec![row, features.clone()], 1),
            _ => row,
        }
    }
}

/// The learned score of nodes by which they are pooled.
#[derive(Module, Debug)]
pub struct Gate {
    gate: Linear,
}

impl Gate {
    /// For nodes of some features, with uninitialized weights.
    pub fn new(width: usize, device: &Device) -> Self {
        Self {
            gate: LinearConfig::new(width, 1).init(device),
        }
    }
}

impl Graphs {
    fn sums(&self, nodes: Tensor<2>) -> Tensor<2> {
        let options = (&nodes.device(), nodes.dtype());
        let zeros = Tensor::zeros([self.num, nodes.dims()[1]], options);
        let of = self.of.clone();
        let of = if nodes.is_autodiff() {
            of
        } else {
            of.without_autodiff()
        };
        zeros.select_assign(0, of, nodes, IndexingUpdateOp::Add)
    }

    /// The largest number of each graph, for each of its nodes; it has no gradient.
    fn largest(&self, nodes: &Tensor<2>) -> Tensor<2> {
        let values = nodes.clone().without_autodiff();
        let of = self.of.clone().without_autodiff();
        let options = (&values.device(), values.dtype());
        let least = Tensor::full([self.num, values.dims()[1]], f32::MIN, options);
        let most = least.select_assign(0, of.clone(), values, IndexingUpdateOp::Max);
        most.select(0, of)
    }

    /// One row for each graph.
    pub fn pooled(&self, by: GraphPooling, gate: Option<&Gate>, x: Tensor<2>) -> Tensor<2> {
        match (by, gate) {
            (GraphPooling::Sum, _) => self.sums(x),
            (GraphPooling::Mean, _) => self.sums(x) / self.sizes.clone(),
            (GraphPooling::Max, _) => {
                // Equal nodes share the gradient.
                let most = self.largest(&x);
                let is_most = x.clone().without_autodiff().equal(most).float();
                let num = self.sums(is_most.clone());
                self.sums(x * is_most) / num
            }
            (GraphPooling::Attention, Some(gate)) => {
                let scores = lora::forward(&gate.gate, x.clone());
                let weights = (scores.clone() - self.largest(&scores)).exp();
                let sums = self.sums(weights.clone()) + 1e-16;
                let weights = weights / sums.select(0, self.of.clone());
                self.sums(x * weights)
            }
            (GraphPooling::Attention, None) => unreachable!("a gate was planned"),
        }
    }
}

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
            own = own.clone() + own.equal_elem(0.0).float();
        }
        let mut weights = links.weights.clone();
        if normalize {
            let degrees = links.degrees() + own.clone();
            let is_alone = degrees.clone().equal_elem(0.0);
            let factors = degrees.sqrt().recip().mask_fill(is_alone, 0.0);
            let ends = factors.clone().select(0, links.targets.clone());
            weights = links.sent(factors.clone()) * weights * ends;
            own = factors.clone() * own * factors;
        }
        let sums = links.summed(links.sent(x.clone()) * weights);
        with_bias(sums + x * own, self.bias.as_ref())
    }
}

impl Sage {
    fn forward(&self, x: Tensor<2>, links: &Links) -> Tensor<2> {
        let is_own = links.has_loop();
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
        let at_targets = |nodes: Tensor<2>| nodes.select(0, links.targets.clone());
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
        let of_nodes = leaky_relu(of_nodes, negative_slope);
        // The weight of a node itself.
        let is_own = if self_loops {
            links.loops.ones_like()
        } else {
            links.has_loop()
        };
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
        let sums = links.received(of_edges.clone()) + of_nodes.clone() + 1e-16;
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
        let neighbors = links.summed(sent) + own * links.has_loop();
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
        let ends = x.clone().select(0, links.targets.clone());
        let of_edges = message(ends.clone(), links.sent(x.clone()) - ends, edges);
        // The edges of nodes to themselves are not among the others.
        let is_own = links.has_loop();
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
