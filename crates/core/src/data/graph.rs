//! Graphs whose nodes are records: which edges pass messages, and the features of all nodes.
//!
//! Edges are sorted by the node that receives and then by the one that sends, so that sums over them have one order.

mod around;
mod files;
mod members;
mod names;
mod pairs;

use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::encode::InputEncoder;
use super::records::Records;
use super::{DataError, DrawnPlan, GraphPlan, hex};
pub(super) use files::{EdgeRecords, Given, of_files, of_new_data, refuse_gaps, refuse_skipped};
pub use members::Members;
pub use names::NodeNames;
use names::name_of;
pub use pairs::{Negatives, Pairs, PairsPart, Unlinked, canonical};

/// The edges along which messages pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Edges {
    /// Number of nodes.
    pub num_nodes: usize,
    /// The node that each edge begins at; edges from a node to itself are in `loops`.
    pub sources: Vec<i32>,
    /// The node that each edge ends at, ascending.
    pub targets: Vec<i32>,
    /// The weight of each edge.
    pub weights: Vec<f64>,
    /// For each node, the weight of the edge to itself, if it has one.
    pub loops: Vec<Option<f64>>,
    /// Features of an edge.
    pub width: usize,
    /// The features of all edges, \[edges, width\].
    pub features: Vec<f64>,
    /// Those of the edge from each node to itself, \[nodes, width\]; 0 if it has none.
    pub loop_features: Vec<f64>,
    /// What is known of other edges that end at these nodes, if this is a part of a graph.
    pub others: Option<Others>,
}

/// For each node of a part of a graph, what the edges outside of it tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Others {
    /// The weights of all edges that end at it, added up.
    pub weights: Vec<f64>,
    /// How many edges end at it for each one in the part; 1 if the part has all, or none.
    pub scales: Vec<f64>,
}

/// A graph on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeGraph {
    /// Its edges.
    pub edges: Edges,
    /// The encoded features of all nodes, \[nodes, width\].
    pub features: Vec<f64>,
    /// Features of a node.
    pub width: usize,
    /// The graphs, if they are items.
    pub members: Option<Members>,
    /// How many edges of each node are drawn in training, for each round of messages; all if empty.
    pub neighbors: Vec<usize>,
}

/// An edge as it was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// The node it begins at.
    pub from: u32,
    /// The node it ends at.
    pub to: u32,
    /// Its weight.
    pub weight: f64,
}

impl Edges {
    /// Without nodes.
    fn none() -> Self {
        Self {
            num_nodes: 0,
            sources: Vec::new(),
            targets: Vec::new(),
            weights: Vec::new(),
            loops: Vec::new(),
            width: 0,
            features: Vec::new(),
            loop_features: Vec::new(),
            others: None,
        }
    }

    /// The features of an edge.
    fn features_of(&self, edge: usize) -> &[f64] {
        &self.features[edge * self.width..(edge + 1) * self.width]
    }

    /// Those of the edge from a node to itself.
    fn loop_features_of(&self, node: usize) -> &[f64] {
        &self.loop_features[node * self.width..(node + 1) * self.width]
    }

    /// The edges that end at a node.
    fn ending_at(&self, node: u32) -> Range<usize> {
        let begin = |node: u32| self.targets.partition_point(|target| *target < node as i32);
        begin(node)..begin(node + 1)
    }

    /// Given edges in their order, with `width` features each; those that are not directed pass messages both ways. An
    /// edge that is given again with the same weight and features counts once.
    ///
    /// # Errors
    /// The positions of an edge and of the same one before it, with another weight or other features.
    pub fn new(
        num_nodes: usize,
        edges: &[Edge],
        (features, width): (&[f64], usize),
        directed: bool,
    ) -> Result<Self, [usize; 2]> {
        let of = |at: usize| &features[at * width..(at + 1) * width];
        let mut all = Vec::with_capacity(edges.len() * (2 - usize::from(directed)));
        for (at, edge) in edges.iter().enumerate() {
            all.push((edge.to, edge.from, at));
            if !directed && edge.to != edge.from {
                all.push((edge.from, edge.to, at));
            }
        }
        all.sort_unstable();
        for pair in all.windows(2) {
            let [(to, from, first), (next_to, next_from, next)] = [pair[0], pair[1]];
            let is_again = (to, from) == (next_to, next_from);
            let differs = edges[first].weight != edges[next].weight || of(first) != of(next);
            if is_again && differs {
                return Err([first, next]);
            }
        }
        all.dedup_by_key(|(to, from, _)| (*to, *from));
        let mut loops = vec![None; num_nodes];
        let mut loop_features = vec![0.0; num_nodes * width];
        for (to, _, at) in all.iter().filter(|(to, from, _)| to == from) {
            let node = *to as usize;
            loops[node] = Some(edges[*at].weight);
            loop_features[node * width..(node + 1) * width].copy_from_slice(of(*at));
        }
        all.retain(|(to, from, _)| to != from);
        Ok(Self {
            num_nodes,
            sources: all.iter().map(|(_, from, _)| *from as i32).collect(),
            targets: all.iter().map(|(to, _, _)| *to as i32).collect(),
            weights: all.iter().map(|(_, _, at)| edges[*at].weight).collect(),
            loops,
            width,
            features: all.iter().flat_map(|(_, _, at)| of(*at)).copied().collect(),
            loop_features,
            others: None,
        })
    }

    /// Its size.
    pub fn plan(&self) -> GraphPlan {
        GraphPlan {
            num_nodes: self.num_nodes,
            num_edges: self.sources.len(),
            num_graphs: None,
            largest_graph: None,
            drawn: None,
            edge_features: self.width,
            pairs: None,
        }
    }

    /// sha256 of the edges, their weights and their features.
    pub fn digest(&self) -> String {
        let mut sum = Sha256::new();
        sum.update((self.num_nodes as u64).to_le_bytes());
        for (source, target) in self.sources.iter().zip(&self.targets) {
            sum.update(source.to_le_bytes());
            sum.update(target.to_le_bytes());
        }
        // -0 is an edge of weight 0, and 0 none.
        let of_loop = |weight: &Option<f64>| match weight {
            Some(0.0) => -0.0,
            weight => weight.unwrap_or(0.0),
        };
        let weights = self.weights.iter().copied();
        let features = self.features.iter().chain(&self.loop_features);
        let numbers = weights.chain(self.loops.iter().map(of_loop));
        for number in numbers.chain(features.copied()) {
            add(number, &mut sum);
        }
        hex(&sum.finalize())
    }
}

/// Adds a number to a sum: as one of 32 bits if these hold it.
fn add(number: f64, sum: &mut Sha256) {
    let single = number as f32;
    if f64::from(single) == number {
        sum.update(single.to_le_bytes());
    } else {
        sum.update(number.to_le_bytes());
    }
}

impl NodeGraph {
    /// The size of the graph, or of all graphs.
    pub fn plan(&self) -> GraphPlan {
        GraphPlan {
            num_graphs: self.members.as_ref().map(Members::num),
            largest_graph: self.members.as_ref().map(Members::largest),
            drawn: DrawnPlan::new(&self.neighbors),
            ..self.edges.plan()
        }
    }

    /// The graph of records, each a node.
    pub fn new(
        edges: Edges,
        records: &Records,
        input: &InputEncoder,
        members: Option<Members>,
        neighbors: Vec<usize>,
    ) -> Result<Arc<Self>, DataError> {
        let plan = input.plan();
        if plan.vocabulary.is_some() || !plan.parts.is_empty() || plan.shape.len() != 1 {
            let message = format!(
                "the nodes of a graph need a list of numbers each, but the features have {}",
                plan.show()
            );
            return Err(DataError::new(message)
                .key("data.graph")
                .help("list columns of numbers or categories in `features`, without `inputs` and `window`"));
        }
        let width = plan.shape[0];
        let mut features = Vec::with_capacity(records.len() * width);
        for row in 0..records.len() {
            input.numbers(records, row, &mut features);
        }
        Ok(Arc::new(Self {
            edges,
            features,
            width,
            members,
            neighbors,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: u32, to: u32, weight: f64) -> Edge {
        Edge { from, to, weight }
    }

    #[test]
    fn edges_are_sorted_and_counted_once() {
        let given = [
            edge(2, 0, 1.0),
            edge(0, 1, 2.0),
            edge(1, 0, 2.0),
            edge(1, 1, 3.0),
        ];
        let both = Edges::new(4, &given, (&[], 0), false).unwrap();
        assert_eq!(both.targets, [0, 0, 1, 2]);
        assert_eq!(both.sources, [1, 2, 0, 0]);
        assert_eq!(both.weights, [2.0, 1.0, 2.0, 1.0]);
        assert_eq!(both.loops, [None, Some(3.0), None, None]);
        let one_way = Edges::new(4, &given, (&[], 0), true).unwrap();
        assert_eq!(one_way.targets, [0, 0, 1]);
        assert_eq!(one_way.sources, [1, 2, 0]);
        let mut reversed = given;
        reversed.reverse();
        assert_eq!(Edges::new(4, &reversed, (&[], 0), false), Ok(both));
    }

    #[test]
    fn an_edge_has_one_weight() {
        let given = [edge(0, 1, 1.0), edge(1, 0, 1.0)];
        let features =
            |numbers: &[f64]| Edges::new(2, &given, (numbers, 1), false).map(|of| of.features);
        assert_eq!(features(&[3.0, 3.0]), Ok(vec![3.0, 3.0]));
        assert_eq!(features(&[3.0, 4.0]), Err([0, 1]));
        let given = [edge(0, 1, 1.0), edge(1, 0, 2.0)];
        assert!(Edges::new(2, &given, (&[], 0), true).is_ok());
        assert_eq!(Edges::new(2, &given, (&[], 0), false), Err([0, 1]));
    }
}
