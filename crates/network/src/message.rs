//! Layers that pass messages along the edges of a graph: gathered by the node they come from, and added up at the node
//! they go to, in the order of the edges.

mod layers;

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};

use crate::lora;
pub use layers::{EdgeConv, Gat, Gcn, Gin, Sage};
use runner_core::data::{Edges, NodeGraph, PairsPart};
use runner_core::spec::model::message::{EdgeEnds, GraphPooling};

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
        let column = |all: Vec<f64>| {
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
            others: (edges.others).map(|others| [others.weights, others.scales].map(column)),
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
