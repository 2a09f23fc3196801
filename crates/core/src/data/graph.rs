//! Graphs whose nodes are records: which edges pass messages, and the features of all nodes.
//!
//! Edges are sorted by the node that receives and then by the one that sends, so that sums over them have one order.

mod around;
mod members;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::encode::InputEncoder;
use super::incoming::kind_of;
use super::read::{self, Watch};
use super::records::{ColumnKind, Records, Writer};
use super::{DataError, DrawnPlan, GraphPlan, Trust, cache, hex};
use crate::diagnostic::nearest;
use crate::spec::data::{DataKind, FilesSpec, GraphSpec, Missing};
use crate::spec::section::Choice;
pub use members::Members;

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
    pub weights: Vec<f32>,
    /// For each node, the weight of the edge to itself; 0 if it has none.
    pub loops: Vec<f32>,
    /// Features of an edge.
    pub width: usize,
    /// The features of all edges, \[edges, width\].
    pub features: Vec<f32>,
    /// Those of the edge from each node to itself, \[nodes, width\]; 0 if it has none.
    pub loop_features: Vec<f32>,
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
    pub features: Vec<f32>,
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
    pub weight: f32,
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
    fn features_of(&self, edge: usize) -> &[f32] {
        &self.features[edge * self.width..(edge + 1) * self.width]
    }

    /// Those of the edge from a node to itself.
    fn loop_features_of(&self, node: usize) -> &[f32] {
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
        (features, width): (&[f32], usize),
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
        let mut loops = vec![0.0; num_nodes];
        let mut loop_features = vec![0.0; num_nodes * width];
        for (to, _, at) in all.iter().filter(|(to, from, _)| to == from) {
            let node = *to as usize;
            loops[node] = edges[*at].weight;
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
        }
    }

    /// sha256 of the edges and their weights.
    pub fn digest(&self) -> String {
        let mut sum = Sha256::new();
        sum.update((self.num_nodes as u64).to_le_bytes());
        for (source, target) in self.sources.iter().zip(&self.targets) {
            sum.update(source.to_le_bytes());
            sum.update(target.to_le_bytes());
        }
        let numbers = self.weights.iter().chain(&self.loops);
        for number in numbers.chain(&self.features).chain(&self.loop_features) {
            sum.update(number.to_le_bytes());
        }
        hex(&sum.finalize())
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

/// The graph of files that have edges.
pub(super) fn of_files(
    files: &FilesSpec,
    records: &Records,
    (input, features): (&InputEncoder, &[usize]),
    members: Option<Members>,
    cache: &Path,
    watch: Watch<'_>,
) -> Result<Option<Arc<NodeGraph>>, DataError> {
    let Some(graph) = &files.graph else {
        return Ok(None);
    };
    if let Some(skipped) = records.header.skipped.first() {
        let message = format!("a node was skipped: {}", skipped.show());
        return Err(DataError::new(message)
            .key("data.on_bad_item")
            .note("edges may name it, and without `id` all later nodes would have other numbers")
            .help("repair the file, or remove the node and its edges"));
    }
    refuse_gaps(files, records, features)?;
    let names = |id: &str| {
        let column = records.column(id).unwrap_or_default();
        move |row| name_of(records, row, column)
    };
    let nodes = Nodes::new(graph, records.len(), names)?;
    let keyed = |error: DataError| error.or_key("data.graph.edges");
    let (of_edges, rows) = edge_files(files, graph)
        .and_then(|of_edges| {
            let rows = cached(&of_edges, cache, watch)?;
            Ok((of_edges, rows))
        })
        .map_err(keyed)?;
    let edges = edges_of(&of_edges.path, &rows, graph, &nodes).map_err(keyed)?;
    if let Some(members) = &members {
        members.refuse_edges_between(graph, &edges)?;
        if !graph.neighbors.is_empty() {
            let message = "`neighbors` draws the neighbors of nodes, but the items are graphs, whose nodes are all computed";
            return Err(DataError::new(message)
                .key("data.graph.neighbors")
                .help("remove `neighbors`; a smaller `batch_size` takes less memory"));
        }
    }
    NodeGraph::new(edges, records, input, members, graph.neighbors.clone()).map(Some)
}

/// Graphs of new data: `group` and `name` tell the graph and the name of each record.
pub(super) fn of_new_data(
    (files, edges): (&FilesSpec, &Path),
    records: &Records,
    input: &InputEncoder,
    targets: &[usize],
    group: impl Fn(usize) -> Option<String>,
    name: impl Fn(usize) -> Option<String>,
) -> Result<Arc<NodeGraph>, DataError> {
    let graph = files.graph.clone().unwrap_or_default();
    let graph = GraphSpec {
        edges: vec![edges.display().to_string()],
        ..graph
    };
    let members = Members::new(
        graph.of.as_deref().unwrap_or_default(),
        group,
        records,
        targets,
    )?;
    let nodes = Nodes::new(&graph, records.len(), |_| name)?;
    let of_edges = edge_files(files, &graph)?;
    let mut writer = Writer::in_memory();
    read::read(&of_edges, &mut writer, &|_, _| {})?;
    let edges = edges_of(&of_edges.path, &writer.into_records(), &graph, &nodes)?;
    members.refuse_edges_between(&graph, &edges)?;
    NodeGraph::new(edges, records, input, Some(members), Vec::new())
}

/// Refuses nodes without a feature that is not filled in: an item that is dropped remains a neighbor.
fn refuse_gaps(files: &FilesSpec, records: &Records, features: &[usize]) -> Result<(), DataError> {
    for at in features {
        let name = &records.columns()[*at].name;
        let is_dropped = files.roles.missing_of(name) == Missing::Drop;
        let mut rows = 0..records.len();
        if is_dropped && let Some(row) = rows.find(|row| records.lacks(*row, *at)) {
            let message = format!(
                "the node in row {} has no `{name}`, which its neighbors need",
                row + 1
            );
            return Err(DataError::new(message).key("data.missing").help(format!(
                "add `[[data.columns]]` with `name = \"{name}\"` and `missing = \"mean\"`; \"drop\" only works for targets"
            )));
        }
    }
    Ok(())
}

/// The numbers of nodes by their names.
struct Nodes<'a> {
    /// None if rows are numbered.
    names: Option<(&'a str, BTreeMap<String, u32>)>,
    num: usize,
}

impl<'a> Nodes<'a> {
    /// `names` gives the names in a column.
    fn new<N: Fn(usize) -> Option<String>>(
        graph: &'a GraphSpec,
        num: usize,
        names: impl FnOnce(&str) -> N,
    ) -> Result<Self, DataError> {
        let Some(id) = &graph.id else {
            return Ok(Self { names: None, num });
        };
        let given = names(id);
        let mut names = BTreeMap::new();
        for row in 0..num {
            let Some(name) = given(row) else {
                let message = format!("the node in row {} has no name in `{id}`", row + 1);
                return Err(DataError::new(message)
                    .key("data.graph.id")
                    .help("give every node a name, or remove `id` to number the rows from 0"));
            };
            if let Some(first) = names.insert(name.clone(), row as u32) {
                let message = format!(
                    "two nodes have the name `{name}` in `{id}`: those in row {} and row {}",
                    first + 1,
                    row + 1
                );
                return Err(DataError::new(message)
                    .key("data.graph.id")
                    .help("give each node a name of its own"));
            }
        }
        Ok(Self {
            names: Some((id, names)),
            num,
        })
    }

    /// The number of a node, or why there is none.
    fn find(&self, name: &str) -> Result<u32, DataError> {
        match &self.names {
            Some((id, names)) => names.get(name).copied().ok_or_else(|| {
                let error = DataError::new(format!("`{name}` is no node: no row has it in `{id}`"));
                match nearest(name, names.keys().map(String::as_str)) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None => error.help("add the node, or remove the edge"),
                }
            }),
            None => {
                let found = name.parse().ok().filter(|at| (*at as usize) < self.num);
                found.ok_or_else(|| {
                    let last = self.num.saturating_sub(1);
                    DataError::new(format!("`{name}` is no node: they have the numbers 0 to {last}"))
                        .help("nodes are numbered from 0 by their rows; if they have names, set `id` to the column of the names")
                })
            }
        }
    }
}

/// A value as the name of a node: whole numbers without decimals.
fn name_of(records: &Records, row: usize, column: usize) -> Option<String> {
    match &records.columns()[column].kind {
        ColumnKind::Text => records.text(row, column).map(str::to_owned),
        ColumnKind::Categories { names } => {
            let code = records.category(row, column)?;
            names.get(code).cloned()
        }
        _ => {
            let value = records.number(row, column, 0);
            value.is_finite().then(|| value.to_string())
        }
    }
}

/// How the files of edges are read.
fn edge_files(files: &FilesSpec, graph: &GraphSpec) -> Result<FilesSpec, DataError> {
    let first = graph.edges.first().map(Path::new).unwrap_or(Path::new(""));
    let kind = kind_of(first).unwrap_or(files.kind());
    if !matches!(
        kind,
        DataKind::Csv
            | DataKind::JsonLines
            | DataKind::Parquet
            | DataKind::Npz
            | DataKind::Safetensors
    ) {
        let message = format!("edges cannot be read from files of type `{}`", kind.name());
        return Err(DataError::new(message).help("use csv, jsonl, parquet, npz or safetensors"));
    }
    let mut of_edges = FilesSpec::usual(kind, String::new());
    of_edges.path = graph.edges.clone();
    if kind == files.kind() {
        of_edges.format = files.format.clone();
    }
    Ok(of_edges)
}

/// The records of edges, from the cache if they are in it.
fn cached(files: &FilesSpec, cache: &Path, watch: Watch<'_>) -> Result<Records, DataError> {
    // Errors name keys of the nodes' files.
    let plain = |mut error: DataError| {
        error.key.clear();
        error
    };
    let digest = cache::digest(files, cache, Trust::Stamps).map_err(plain)?;
    cache::open(files, &digest, cache, Trust::Stamps, watch).map_err(plain)
}

/// The edges of records.
fn edges_of(
    paths: &[String],
    records: &Records,
    graph: &GraphSpec,
    nodes: &Nodes<'_>,
) -> Result<Edges, DataError> {
    let column = |name: &str, key: &str| {
        let names: Vec<&str> = records.columns().iter().map(|c| c.name.as_str()).collect();
        let Some(at) = records.column(name) else {
            let message = format!("the edges have no column `{name}`");
            let error = DataError::new(message)
                .key(format!("data.graph.{key}"))
                .note(format!("their columns are {}", names.join(", ")));
            return Err(match nearest(name, names.iter().copied()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help(format!("set `{key}` to one of them")),
            });
        };
        if records.columns()[at].len() != 1 {
            let message = format!("the column `{name}` of edges has several values in each row");
            return Err(DataError::new(message)
                .key(format!("data.graph.{key}"))
                .help("use a column with one value for each edge"));
        }
        Ok(at)
    };
    let (from, to) = (column(&graph.from, "from")?, column(&graph.to, "to")?);
    let weight = graph.weight.as_ref();
    let weight = weight.map(|name| column(name, "weight")).transpose()?;
    let place = |row: usize| {
        let file = records.file_of(row).max(1) - 1;
        let start = records.header.files.get(file).copied().unwrap_or(0);
        let name = paths.get(file).map(Path::new).and_then(Path::file_name);
        let name = name.unwrap_or_default().to_string_lossy().into_owned();
        format!("edge {} of `{name}`", row - start + 1)
    };
    let columns = feature_columns(records, graph)?;
    let width = columns.iter().map(|at| records.columns()[*at].len()).sum();
    let mut features = Vec::with_capacity(records.len() * width);
    let mut edges = Vec::with_capacity(records.len());
    for row in 0..records.len() {
        let end = |column: usize| {
            let found = match name_of(records, row, column) {
                Some(name) => nodes.find(&name),
                None => {
                    let name = &records.columns()[column].name;
                    let error = DataError::new(format!("`{name}` is missing"));
                    Err(error.help("name both ends of each edge"))
                }
            };
            found.map_err(|mut error| {
                error.message = format!("{}: {}", place(row), error.message);
                error
            })
        };
        let weight = weight.map_or(1.0, |column| records.number(row, column, 0) as f32);
        if !(weight.is_finite() && weight >= 0.0) {
            let message = format!("{}: its weight is not a number of at least 0", place(row));
            return Err(DataError::new(message)
                .key("data.graph.weight")
                .help("repair the weight, or remove the edge"));
        }
        for column in &columns {
            let first = features.len();
            records.numbers(row, *column, |number| features.push(number as f32));
            if features[first..].iter().any(|number| !number.is_finite()) {
                let name = &records.columns()[*column].name;
                let message = format!("{}: `{name}` is missing or not finite", place(row));
                return Err(DataError::new(message)
                    .key("data.graph.features")
                    .help("repair the value, or remove the edge"));
            }
        }
        let (from, to) = (end(from)?, end(to)?);
        edges.push(Edge { from, to, weight });
    }
    let given = (features.as_slice(), width);
    Edges::new(nodes.num, &edges, given, graph.directed).map_err(|[first, next]| {
        let is_weight = edges[first].weight != edges[next].weight;
        let (what, key) = if is_weight {
            ("another weight", "weight")
        } else {
            ("other features", "features")
        };
        let message = format!(
            "{} is the same as {}, with {what}",
            place(next),
            place(first)
        );
        let error = DataError::new(message).key(format!("data.graph.{key}"));
        if graph.directed {
            error.help("give each edge once")
        } else {
            error.help("give each edge once, or set `directed = true` if the directions differ")
        }
    })
}

/// The columns of the features of edges.
fn feature_columns(records: &Records, graph: &GraphSpec) -> Result<Vec<usize>, DataError> {
    let names: Vec<&str> = records.columns().iter().map(|c| c.name.as_str()).collect();
    let find = |name: &String| {
        let error = |message: String| DataError::new(message).key("data.graph.features");
        let Some(at) = records.column(name) else {
            let wrong = error(format!("the edges have no column `{name}`"));
            let wrong = wrong.note(format!("their columns are {}", names.join(", ")));
            return Err(match nearest(name, names.iter().copied()) {
                Some(near) => wrong.help(format!("did you mean `{near}`?")),
                None => wrong.help("name columns of the file of edges"),
            });
        };
        match records.columns()[at].kind {
            ColumnKind::Text | ColumnKind::Categories { .. } => {
                let wrong = error(format!("the column `{name}` of edges has texts"));
                Err(wrong.help("use columns of numbers: for categories, one of 0 and 1 for each"))
            }
            _ => Ok(at),
        }
    };
    graph.features.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: u32, to: u32, weight: f32) -> Edge {
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
        assert_eq!(both.loops, [0.0, 3.0, 0.0, 0.0]);
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
            |numbers: &[f32]| Edges::new(2, &given, (numbers, 1), false).map(|of| of.features);
        assert_eq!(features(&[3.0, 3.0]), Ok(vec![3.0, 3.0]));
        assert_eq!(features(&[3.0, 4.0]), Err([0, 1]));
        let given = [edge(0, 1, 1.0), edge(1, 0, 2.0)];
        assert!(Edges::new(2, &given, (&[], 0), true).is_ok());
        assert_eq!(Edges::new(2, &given, (&[], 0), false), Err([0, 1]));
    }
}
