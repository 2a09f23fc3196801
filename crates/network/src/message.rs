//! Layers that pass messages along the edges of a graph: gathered by the node they come from, and added up at the node
//! they go to, in the order of the edges.

mod layers;

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::tensor::{DType, Device, FloatDType, IndexingUpdateOp, Int, Tensor, TensorData};

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
    /// The weights of the edges from each node to itself, \[nodes, 1\]; 0 without one.
    loops: Tensor<2>,
    /// 1 for each node with an edge to itself, \[nodes, 1\].
    has_loop: Tensor<2>,
    /// The features of edges, \[edges, width\], and of those from each node to itself, \[nodes, width\], if they have any.
    features: Option<[Tensor<2>; 2]>,
    /// Of a part of a graph, the weights of all edges that end at each node, and how many there are for each one that is
    /// here, \[nodes, 1\] each.
    others: Option<[Tensor<2>; 2]>,
}

/// Rows in a type in which many of them can be added: in 16 bits, a sum of some hundred does not grow any more.
fn wide(rows: Tensor<2>) -> Tensor<2> {
    match rows.dtype() {
        DType::F16 | DType::BF16 => rows.cast(FloatDType::F32),
        _ => rows,
    }
}

/// Rows in a type again.
fn narrow(rows: Tensor<2>, to: DType) -> Tensor<2> {
    match to {
        DType::F16 => rows.cast(FloatDType::F16),
        DType::BF16 => rows.cast(FloatDType::BF16),
        _ => rows,
    }
}

/// The sums of rows that belong to each of `num` places.
fn added(num: usize, places: Tensor<1, Int>, rows: Tensor<2>) -> Tensor<2> {
    let dtype = rows.dtype();
    let rows = wide(rows);
    let options = (&rows.device(), rows.dtype());
    let zeros = Tensor::zeros([num, rows.dims()[1]], options);
    let sums = zeros.select_assign(0, places, rows, IndexingUpdateOp::Add);
    narrow(sums, dtype)
}

/// The rows at some places; the gradient of a row is the sum of those at its places.
fn taken(rows: Tensor<2>, places: Tensor<1, Int>) -> Tensor<2> {
    let dtype = rows.dtype();
    narrow(wide(rows).select(0, places), dtype)
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
        let has_loop = edges.loops.iter().map(|weight| f64::from(weight.is_some()));
        let loops = edges.loops.iter().map(|weight| weight.unwrap_or(0.0));
        Self {
            num_nodes: edges.num_nodes,
            sources: indices(edges.sources),
            targets: indices(edges.targets),
            weights: column(edges.weights),
            has_loop: column(has_loop.collect()),
            loops: column(loops.collect()),
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
        taken(nodes, self.sources.clone())
    }

    /// The sums over the edges that end at each node.
    fn received(&self, messages: Tensor<2>) -> Tensor<2> {
        added(self.num_nodes, self.targets.clone(), messages)
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

    /// The same on the device without autodiff.
    fn without_autodiff(self) -> Self {
        Self {
            num_nodes: self.num_nodes,
            sources: self.sources.without_autodiff(),
            targets: self.targets.without_autodiff(),
            weights: self.weights.without_autodiff(),
            loops: self.loops.without_autodiff(),
            has_loop: self.has_loop.without_autodiff(),
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
        let [from, to] = ends.map(|ends| taken(nodes.clone(), ends));
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
        let of = self.of.clone();
        let of = if nodes.is_autodiff() {
            of
        } else {
            of.without_autodiff()
        };
        added(self.num, of, nodes)
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
                let weights = weights / taken(sums, self.of.clone());
                self.sums(x * weights)
            }
            (GraphPooling::Attention, None) => unreachable!("a gate was planned"),
        }
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::module::Module;

    use super::*;
    use crate::layer::Layer;
    use crate::testing::generator;
    use runner_core::data::graph::Edge;
    use runner_core::spec::model::message::Message;

    /// Nodes 0, 1 and 2 hear each the one before, node 3 itself by an edge without weight, and node 4 nobody.
    fn nodes() -> Nodes {
        let edges = [(2, 0, 2.0), (0, 1, 1.0), (1, 2, 3.0), (3, 3, 0.0)];
        let edges = edges.map(|(from, to, weight)| Edge { from, to, weight });
        let edges = Edges::new(5, &edges, (&[], 0), true).unwrap();
        let graph = NodeGraph {
            edges,
            features: vec![9e3, -3e3, 20.0, 40.0, -7e3, 5e3, 1.0, 2.0, 3.0, 4.0],
            width: 2,
            members: None,
            neighbors: Vec::new(),
        };
        Nodes::new(graph, &[0, 1, 2, 3, 4], &Device::flex())
    }

    fn rows(message: &Message, nodes: &Nodes) -> Vec<Vec<f32>> {
        let _generator = generator();
        let device = Device::flex();
        device.seed(5);
        let layer = Layer::of_messages(message, 2, &device).no_grad();
        let found = layer.passed(message, nodes.features.clone(), &nodes.links);
        let width = found.dims()[1];
        let found: Vec<f32> = found.into_data().iter::<f32>().collect();
        found.chunks(width).map(<[f32]>::to_vec).collect()
    }

    /// However large the score of a node itself is, it takes no part where it hears itself by no edge.
    #[test]
    fn attention_is_to_what_is_heard() {
        let nodes = nodes();
        let gat = |self_loops| Message::Gat {
            out_features: 2,
            num_heads: 1,
            concat: true,
            negative_slope: 0.2,
            dropout: 0.0,
            self_loops,
            bias: false,
            edge_dim: 0,
        };
        let gcn = Message::Gcn {
            out_features: 2,
            bias: false,
            self_loops: false,
            normalize: false,
        };
        // The linear layers of both are drawn alike, so that a node gets what the one before sends, without its weight.
        let [found, sent] = [&gat(false), &gcn].map(|message| rows(message, &nodes));
        for (at, weight) in [2.0, 1.0, 3.0].into_iter().enumerate() {
            for (found, sent) in found[at].iter().zip(&sent[at]) {
                let wanted = sent / weight;
                assert!(
                    (found - wanted).abs() <= 1e-5 * wanted.abs(),
                    "{found} for {wanted}"
                );
            }
        }
        assert_eq!(found[4], [0.0, 0.0]);
        let own = rows(&gat(true), &nodes);
        assert!(found[3] == own[3] && own[4].iter().all(|value| *value != 0.0));
    }

    #[test]
    fn many_rows_are_added_in_16_bits_too() {
        let device = Device::flex().autodiff();
        for (dtype, least) in [(FloatDType::BF16, 0.01), (FloatDType::F16, 0.001)] {
            let rows = Tensor::<2>::full([5000, 1], 1.5, &device).cast(dtype);
            let one = Tensor::<2>::ones([1, 1], &device)
                .cast(dtype)
                .require_grad();
            let places = Tensor::<1, Int>::zeros([5000], &device);
            let sum = added(1, places.clone(), rows.clone());
            assert_eq!(sum.dtype(), rows.dtype());
            let gradients = (taken(one.clone(), places) * rows).sum().backward();
            let gradient = one.grad(&gradients).unwrap();
            for sum in [sum.into_data(), gradient.into_data()] {
                let sum = sum.iter::<f32>().next().unwrap();
                assert!((sum / 7500.0 - 1.0).abs() < least, "{sum}");
            }
        }
    }

    /// Only `gcn` uses weights; what it adds to a node that hears itself by an edge without weight is nothing.
    #[test]
    fn edges_without_weight_are_edges() {
        let mut nodes = nodes();
        let sage = Message::Sage {
            out_features: 2,
            bias: false,
        };
        let gcn = Message::Gcn {
            out_features: 2,
            bias: false,
            self_loops: true,
            normalize: false,
        };
        let [means, sums] = [&sage, &gcn].map(|message| rows(message, &nodes));
        nodes.links.has_loop = nodes.links.has_loop.zeros_like();
        let [other_means, other_sums] = [&sage, &gcn].map(|message| rows(message, &nodes));
        assert!(means[3] != other_means[3] && sums[3] != other_sums[3]);
        for at in [0, 1, 2, 4] {
            assert!(means[at] == other_means[at] && sums[at] == other_sums[at]);
        }
    }
}
