//! Graphs from files: a table of nodes, and the edges between them.

use std::path::Path;
use std::sync::Arc;

use super::names::name_of;
use super::{Edge, Edges, Members, NodeGraph, NodeNames};
use crate::data::encode::InputEncoder;
use crate::data::exact::refuse_rounded;
use crate::data::incoming::kind_of;
use crate::data::read::{self, Watch};
use crate::data::records::{ColumnKind, Records, Writer};
use crate::data::{DataError, Trust, cache};
use crate::diagnostic::nearest;
use crate::spec::data::{
    ColumnSpec, ColumnType, DataKind, FilesSpec, GraphSpec, Missing, RolesSpec,
};
use crate::spec::section::Choice;

/// The graph of files that have edges.
pub(in crate::data) fn of_files(
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
    refuse_skipped(records)?;
    refuse_gaps(files, records, features)?;
    let names = NodeNames::of_records(graph, records)?;
    let edges = EdgeRecords::open(files, graph, cache, watch)?;
    let edges = edges.given(graph, &names)?.edges(graph, |_| true)?;
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
pub(in crate::data) fn of_new_data(
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
    let names = NodeNames::new(graph.id.as_deref(), records.len(), name)?;
    let of_edges = edge_files(files, &graph)?;
    let mut writer = Writer::in_memory();
    read::read(&of_edges, &mut writer, &|_, _| {})?;
    let edges = EdgeRecords {
        files: of_edges,
        records: writer.into_records(),
    };
    let edges = edges.given(&graph, &names);
    let edges = edges.and_then(|edges| edges.edges(&graph, |_| true));
    let edges = edges.map_err(|mut error| {
        // New data has no keys.
        error.key.clear();
        error
    })?;
    members.refuse_edges_between(&graph, &edges)?;
    NodeGraph::new(edges, records, input, Some(members), Vec::new())
}

/// Refuses nodes that were skipped.
pub(in crate::data) fn refuse_skipped(records: &Records) -> Result<(), DataError> {
    if let Some(skipped) = records.header.skipped.first() {
        let message = format!("a node was skipped: {}", skipped.show());
        return Err(DataError::new(message)
            .key("data.on_bad_item")
            .note("edges may name it, and without `id` all later nodes would have other numbers")
            .help("repair the file, or remove the node and its edges"));
    }
    Ok(())
}

/// Refuses nodes without a feature that is not filled in: an item that is dropped remains a neighbor.
pub(in crate::data) fn refuse_gaps(
    files: &FilesSpec,
    records: &Records,
    features: &[usize],
) -> Result<(), DataError> {
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
    if !graph.items.are_nodes() {
        of_edges.roles = RolesSpec {
            features: None,
            inputs: Vec::new(),
            ignore: Vec::new(),
            window: None,
            has_other_table: true,
            ..files.roles.clone()
        };
    }
    // The same text in both files is the same node.
    let id = graph.id.as_ref();
    let is_text = |column: &&ColumnSpec| {
        Some(&column.name) == id && column.kind == Some(ColumnType::Category)
    };
    if let Some(column) = files.roles.columns.iter().find(is_text) {
        let columns = &mut of_edges.roles.columns;
        for end in [&graph.from, &graph.to] {
            if columns.iter().all(|other| other.name != *end) {
                columns.push(ColumnSpec {
                    name: end.clone(),
                    ..column.clone()
                });
            }
        }
    }
    Ok(of_edges)
}

/// The records of edges.
pub(in crate::data) struct EdgeRecords {
    /// How they were read.
    pub files: FilesSpec,
    /// One for each edge.
    pub records: Records,
}

/// Edges as they were given, in the order of their records.
pub(in crate::data) struct Given<'a> {
    of: &'a EdgeRecords,
    num_nodes: usize,
    /// The edges.
    pub edges: Vec<Edge>,
    /// Their features, \[edges, width\].
    pub features: Vec<f64>,
    /// Features of an edge.
    pub width: usize,
}

impl EdgeRecords {
    /// The edges of files, from the cache if they are in it.
    pub fn open(
        files: &FilesSpec,
        graph: &GraphSpec,
        cache: &Path,
        watch: Watch<'_>,
    ) -> Result<Self, DataError> {
        // Errors name keys of the nodes' files.
        let keyed = |mut error: DataError| {
            error.key.clear();
            error.or_key("data.graph.edges")
        };
        let files = edge_files(files, graph).map_err(keyed)?;
        let digest = cache::digest(&files, cache, Trust::Stamps).map_err(keyed)?;
        let records = cache::open(&files, &digest, cache, Trust::Stamps, watch).map_err(keyed)?;
        Ok(Self { files, records })
    }

    /// The column with a name that a key of `[data.graph]` has.
    pub fn column(&self, name: &str, key: &str) -> Result<usize, DataError> {
        let columns = self.records.columns();
        let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
        let Some(at) = self.records.column(name) else {
            let message = format!("the edges have no column `{name}`");
            let error = DataError::new(message)
                .key(format!("data.graph.{key}"))
                .note(format!("their columns are {}", names.join(", ")));
            return Err(match nearest(name, names.iter().copied()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.help(format!("set `{key}` to one of them")),
            });
        };
        if columns[at].len() != 1 {
            let message = format!("the column `{name}` of edges has several values in each row");
            return Err(DataError::new(message)
                .key(format!("data.graph.{key}"))
                .help("use a column with one value for each edge"));
        }
        Ok(at)
    }

    /// The place of an edge, for messages.
    pub fn place(&self, row: usize) -> String {
        let file = self.records.file_of(row).max(1) - 1;
        let name = self.files.path.get(file).map(Path::new);
        let name = name.and_then(Path::file_name).unwrap_or_default();
        format!(
            "edge {} of `{}`",
            self.records.number_in_file(row) + 1,
            name.to_string_lossy()
        )
    }

    /// The edges between nodes.
    pub fn given(&self, graph: &GraphSpec, nodes: &NodeNames) -> Result<Given<'_>, DataError> {
        let records = &self.records;
        let (from, to) = (
            self.column(&graph.from, "from")?,
            self.column(&graph.to, "to")?,
        );
        if let Some(id) = &graph.id {
            for end in [from, to] {
                refuse_rounded(records, end, "data.graph.edges", id)?;
            }
        }
        let weight = graph.weight.as_ref();
        let weight = weight.map(|name| self.column(name, "weight")).transpose()?;
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
                    error.message = format!("{}: {}", self.place(row), error.message);
                    error.or_key("data.graph.edges")
                })
            };
            let weight = weight.map_or(1.0, |column| records.number(row, column, 0));
            if !(is_finite(weight) && weight >= 0.0) {
                let place = self.place(row);
                let message = format!("{place}: its weight is not a number of at least 0");
                return Err(DataError::new(message)
                    .key("data.graph.weight")
                    .help("repair the weight, or remove the edge"));
            }
            for column in &columns {
                let first = features.len();
                records.numbers(row, *column, |number| features.push(number));
                if !features[first..].iter().all(|number| is_finite(*number)) {
                    let (name, place) = (&records.columns()[*column].name, self.place(row));
                    let message = format!("{place}: `{name}` is missing or not finite");
                    return Err(DataError::new(message)
                        .key("data.graph.features")
                        .help("repair the value, or remove the edge"));
                }
            }
            let (from, to) = (end(from)?, end(to)?);
            edges.push(Edge { from, to, weight });
        }
        Ok(Given {
            of: self,
            num_nodes: nodes.len(),
            edges,
            features,
            width,
        })
    }
}

impl Given<'_> {
    /// Those of some records, along which messages pass.
    pub fn edges(
        &self,
        graph: &GraphSpec,
        is_in: impl Fn(usize) -> bool,
    ) -> Result<Edges, DataError> {
        let rows: Vec<usize> = (0..self.edges.len()).filter(|row| is_in(*row)).collect();
        let edges: Vec<Edge> = rows.iter().map(|row| self.edges[*row]).collect();
        let of_row = |row: &usize| &self.features[row * self.width..(row + 1) * self.width];
        let features: Vec<f64> = rows.iter().flat_map(of_row).copied().collect();
        let given = (features.as_slice(), self.width);
        let edges = Edges::new(self.num_nodes, &edges, given, graph.directed);
        edges.map_err(|[first, next]| {
            let [first, next] = [rows[first], rows[next]];
            let is_weight = self.edges[first].weight != self.edges[next].weight;
            let (what, key) = if is_weight {
                ("another weight", "weight")
            } else {
                ("other features", "features")
            };
            self.differ([first, next], what, graph)
                .key(format!("data.graph.{key}"))
        })
    }

    /// The same edge twice, with different values.
    pub fn differ(&self, [first, next]: [usize; 2], what: &str, graph: &GraphSpec) -> DataError {
        let [first, next] = [self.of.place(first), self.of.place(next)];
        let error = DataError::new(format!("{next} is the same as {first}, with {what}"));
        if graph.directed {
            error.help("give each edge once")
        } else {
            error.help("give each edge once, or set `directed = true` if the directions differ")
        }
    }
}

/// Whether a number is finite for all networks, of which most compute in 32 bits.
fn is_finite(number: f64) -> bool {
    (number as f32).is_finite()
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
