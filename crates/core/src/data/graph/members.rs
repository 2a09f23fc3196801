//! Many graphs in one table: which nodes each consists of, and some of them as one graph.

use std::collections::BTreeMap;

use super::{Edges, NodeGraph, name_of};
use crate::data::DataError;
use crate::data::exact::refuse_rounded;
use crate::data::records::Records;
use crate::spec::data::{FilesSpec, GraphSpec};

/// The nodes of each of many graphs.
#[derive(Clone, Debug, PartialEq)]
pub struct Members {
    /// The nodes of each graph, ascending. A graph is known by its first.
    nodes: BTreeMap<u32, Vec<u32>>,
}

impl Members {
    /// The graphs of records, if the files name the column that tells them apart.
    pub(in crate::data) fn of_files(
        files: &FilesSpec,
        records: &Records,
        targets: &[usize],
        weight: Option<usize>,
    ) -> Result<Option<Self>, DataError> {
        let of = files.graph.as_ref().and_then(|graph| graph.of.as_ref());
        let Some((of, column)) = of.and_then(|of| Some((of, records.column(of)?))) else {
            return Ok(None);
        };
        if targets.is_empty() {
            let message = "the items are graphs, which need a target: they cannot be their own";
            return Err(DataError::new(message)
                .key("data.graph.of")
                .help("set `target` to a column with the same value for all nodes of a graph, or remove `of`"));
        }
        refuse_rounded(records, column, "data.graph.of", of)?;
        let names = |row| name_of(records, row, column);
        let same: Vec<usize> = targets.iter().copied().chain(weight).collect();
        Self::new(of, names, records, &same).map(Some)
    }

    /// From the name of each record's graph in the column `of`.
    pub(in crate::data) fn new(
        of: &str,
        names: impl Fn(usize) -> Option<String>,
        records: &Records,
        targets: &[usize],
    ) -> Result<Self, DataError> {
        let mut firsts: BTreeMap<String, u32> = BTreeMap::new();
        let mut nodes: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for row in 0..records.len() {
            let Some(name) = names(row) else {
                let message = format!(
                    "the node in row {} is in no graph: `{of}` is missing",
                    row + 1
                );
                return Err(DataError::new(message)
                    .key("data.graph.of")
                    .help("name the graph of every node"));
            };
            let first = *firsts.entry(name.clone()).or_insert(row as u32);
            let rows = [first as usize, row];
            refuse_two_targets(&name, rows, records, targets)?;
            refuse_two_parts(&name, rows, records)?;
            nodes.entry(first).or_default().push(row as u32);
        }
        Ok(Self { nodes })
    }

    /// Number of graphs.
    pub fn num(&self) -> usize {
        self.nodes.len()
    }

    /// Nodes of the largest graph.
    pub fn largest(&self) -> usize {
        self.nodes.values().map(Vec::len).max().unwrap_or(0)
    }

    /// The first node of each graph, ascending.
    pub fn firsts(&self) -> Vec<u32> {
        self.nodes.keys().copied().collect()
    }

    /// Whether a row is the first node of a graph.
    pub fn is_first(&self, row: u32) -> bool {
        self.nodes.contains_key(&row)
    }

    /// The nodes of graphs, which are known by their first nodes.
    pub fn nodes_of(&self, firsts: &[u32]) -> Vec<u32> {
        let all = firsts.iter().filter_map(|first| self.nodes.get(first));
        all.flatten().copied().collect()
    }

    pub(in crate::data) fn refuse_edges_between(
        &self,
        graph: &GraphSpec,
        edges: &Edges,
    ) -> Result<(), DataError> {
        let mut of = vec![0; edges.num_nodes];
        for (first, nodes) in &self.nodes {
            nodes.iter().for_each(|node| of[*node as usize] = *first);
        }
        let mut ends = edges.sources.iter().zip(&edges.targets);
        let Some((from, to)) = ends.find(|(a, b)| of[**a as usize] != of[**b as usize]) else {
            return Ok(());
        };
        let message = format!(
            "an edge joins the nodes in rows {} and {}, which are in different graphs of `{}`",
            from.min(to) + 1,
            from.max(to) + 1,
            graph.of.as_deref().unwrap_or_default()
        );
        Err(DataError::new(message)
            .key("data.graph.edges")
            .help("remove the edge, or put both nodes into one graph"))
    }
}

/// All nodes of a graph have its target.
fn refuse_two_targets(
    graph: &str,
    [first, row]: [usize; 2],
    records: &Records,
    targets: &[usize],
) -> Result<(), DataError> {
    let mut targets = targets.iter();
    let differs = |at: &&usize| records.bytes(row, **at) != records.bytes(first, **at);
    let Some(at) = targets.find(differs) else {
        return Ok(());
    };
    let message = format!(
        "the nodes of graph `{graph}` in rows {} and {} have different values of `{}`",
        first + 1,
        row + 1,
        records.columns()[*at].name,
    );
    Err(DataError::new(message)
        .key("data.graph.of")
        .help("give all nodes of a graph the same; to predict a target of each node, remove `of`"))
}

/// A graph is in one split.
fn refuse_two_parts(
    graph: &str,
    [first, row]: [usize; 2],
    records: &Records,
) -> Result<(), DataError> {
    let [train, valid, _] = records.header.parts;
    let part = |row: usize| usize::from(row >= train) + usize::from(row >= train + valid);
    if part(first) == part(row) {
        return Ok(());
    }
    let keys = ["path", "valid_path", "test_path"];
    let message = format!(
        "`{}` and `{}` both have nodes of graph `{graph}`",
        keys[part(first)],
        keys[part(row)]
    );
    Err(DataError::new(message)
        .key("data.graph.of")
        .note("a graph is an item of one split")
        .help("give every graph a name of its own in all files"))
}

impl NodeGraph {
    /// Some graphs as one without edges between them, and the position of each node's graph among them.
    pub fn union(&self, firsts: &[u32]) -> (Self, Vec<i32>) {
        let Edges {
            sources,
            weights,
            loops,
            ..
        } = &self.edges;
        let mut edges = Edges {
            width: self.edges.width,
            ..Edges::none()
        };
        let mut features = Vec::new();
        let mut of = Vec::new();
        for (graph, first) in firsts.iter().enumerate() {
            let members = self.members.as_ref();
            let nodes = members.and_then(|members| members.nodes.get(first));
            let nodes = nodes.map_or(&[][..], Vec::as_slice);
            let before = edges.num_nodes as i32;
            for (at, node) in nodes.iter().enumerate() {
                let row = *node as usize;
                features.extend(&self.features[row * self.width..(row + 1) * self.width]);
                edges.loops.push(loops[row]);
                (edges.loop_features).extend(self.edges.loop_features_of(row));
                of.push(graph as i32);
                for edge in self.edges.ending_at(*node) {
                    let source = nodes.binary_search(&(sources[edge] as u32));
                    let source = source.expect("edges join nodes of one graph");
                    edges.sources.push(before + source as i32);
                    edges.targets.push(before + at as i32);
                    edges.weights.push(weights[edge]);
                    edges.features.extend(self.edges.features_of(edge));
                }
            }
            edges.num_nodes += nodes.len();
        }
        let union = Self {
            edges,
            features,
            width: self.width,
            members: None,
            neighbors: Vec::new(),
        };
        (union, of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::graph::Edge;

    #[test]
    fn unions_contain_whole_graphs() {
        let edge = |from, to, weight| Edge { from, to, weight };
        // Two paths whose nodes alternate: 0 - 2 - 4 and 1 - 3.
        let given = [edge(0, 2, 1.0), edge(2, 4, 2.0), edge(1, 3, 3.0)];
        let nodes = [(0, vec![0, 2, 4]), (1, vec![1, 3])];
        let graphs = NodeGraph {
            edges: Edges::new(5, &given, (&[7.0, 8.0, 9.0], 1), true).unwrap(),
            features: (0..5).map(f64::from).collect(),
            width: 1,
            members: Some(Members {
                nodes: nodes.into_iter().collect(),
            }),
            neighbors: Vec::new(),
        };
        let (union, of) = graphs.union(&[1, 0, 1]);
        assert_eq!(of, [0, 0, 1, 1, 1, 2, 2]);
        assert_eq!(union.features, [1.0, 3.0, 0.0, 2.0, 4.0, 1.0, 3.0]);
        assert_eq!(union.edges.sources, [0, 2, 3, 5]);
        assert_eq!(union.edges.targets, [1, 3, 4, 6]);
        assert_eq!(union.edges.weights, [3.0, 1.0, 2.0, 3.0]);
        assert_eq!(union.edges.features, [9.0, 7.0, 8.0, 9.0]);
        assert_eq!(union.edges.loop_features, [0.0; 7]);
        let plan = graphs.plan();
        assert_eq!((plan.num_graphs, plan.largest_graph), (Some(2), Some(3)));
    }
}
