//! New graphs: a table of nodes and a file of edges, read at once, since the nodes of a graph can be anywhere in it.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::pieces::Pieces;
use super::{Incoming, Origin, Piece, Raw, Take, source};
use crate::data::graph::NodeNames;
use crate::data::records::{Column, ColumnKind, Records, Skipped, Writer};
use crate::data::serve::{Set, Split};
use crate::data::{DataError, NodeGraph, Pairs, Trust, graph, load};
use crate::spec::data::{DataKind, GraphItems, GraphSpec};

impl Incoming<'_> {
    /// The file of edges, if the items are graphs. Nodes of one graph cannot be predicted without their neighbors.
    pub(super) fn edges_of_graphs(&self) -> Result<Option<&Path>, DataError> {
        let Some(graph) = self.plan.input.graph else {
            return match self.edges {
                None => Ok(None),
                Some(_) => Err(DataError::new(
                    "edges were given, but the items of this run are not graphs",
                )
                .help("remove `--edges`")),
            };
        };
        if graph.pairs.is_some() {
            return match self.edges {
                None => Ok(None),
                Some(_) => Err(DataError::new(
                    "edges were given, but the items of this run are pairs of the nodes that it was trained with",
                )
                .help("remove `--edges`: `--data` is a file with both nodes of each pair")),
            };
        }
        if graph.num_graphs.is_none() {
            return Err(DataError::new(
                "the items of this run are the nodes of a graph, and new ones have no edges here",
            )
            .help("predict the nodes of a split instead: `--split test` of `runner predict` and `runner evaluate`"));
        }
        match self.edges {
            Some(edges) => Ok(Some(edges)),
            None => Err(DataError::new(
                "the items of this run are graphs, and new ones need edges between their nodes",
            )
            .help("pass the file of edges to `runner predict` or `runner evaluate`: `--edges edges.csv`")),
        }
    }

    /// Whether items can be read from rows alone, as far as the run tells. The nodes of pairs are read now.
    ///
    /// # Errors
    ///
    /// If they need edges that are not there, or the nodes that the run was trained with cannot be read.
    pub fn check(&self) -> Result<(), DataError> {
        Known::of(self)?;
        self.edges_of_graphs().map(|_| ())
    }

    /// The columns of a row, as far as the network uses them. Those with the names of both nodes come first.
    pub fn columns(&self) -> Vec<Column> {
        let named = self.ends().into_iter().flatten().map(|name| {
            let kind = if self.are_numbered() {
                ColumnKind::Whole
            } else {
                ColumnKind::Text
            };
            Column::scalar(name, kind)
        });
        let inputs = if self.are_pairs() {
            self.edge_features()
        } else {
            self.transforms.inputs()
        };
        let inputs = inputs.into_iter();
        let all = self.all_columns();
        let inputs = inputs.filter_map(|at| all.get(at).cloned());
        let mut columns: Vec<Column> = Vec::new();
        for column in named.chain(inputs) {
            if columns.iter().all(|known| known.name != column.name) {
                columns.push(column);
            }
        }
        columns
    }

    /// Whether the names of nodes were numbers in training.
    fn are_numbered(&self) -> bool {
        let id = self.graph().and_then(|graph| graph.id.as_ref());
        id.is_none_or(|id| has_numbers(self, id))
    }

    /// Whether items are pairs of the run's nodes, which new data only names.
    pub(in crate::data) fn are_pairs(&self) -> bool {
        self.plan
            .input
            .graph
            .is_some_and(|graph| graph.pairs.is_some())
    }

    /// The columns of both nodes, if items are pairs of them.
    pub(in crate::data) fn ends(&self) -> Option<[&String; 2]> {
        let graph = self.graph().filter(|_| self.are_pairs())?;
        Some([&graph.from, &graph.to])
    }

    /// The columns of the features of edges, if the items are edges.
    pub(super) fn edge_features(&self) -> Vec<usize> {
        let graph = self
            .graph()
            .filter(|graph| graph.items == GraphItems::Edges);
        let names = graph.into_iter().flat_map(|graph| &graph.features);
        // Columns of edges come before those of nodes.
        let all = &self.transforms.columns;
        let columns = names.map(|name| all.iter().position(|of| of.name == *name));
        columns.collect::<Option<_>>().unwrap_or_default()
    }

    /// How the edges of the run were read.
    pub(in crate::data) fn graph(&self) -> Option<&GraphSpec> {
        self.trained_on().and_then(|files| files.graph.as_ref())
    }
}

/// The nodes of a run, once they were read.
#[derive(Debug, Default)]
pub struct KnownNodes(OnceLock<Arc<Known>>);

/// The nodes of a run, of which new data has pairs.
#[derive(Debug)]
pub(super) struct Known {
    graph: Arc<NodeGraph>,
    names: Arc<NodeNames>,
    is_directed: bool,
    /// Whether names were numbers in training.
    has_numbers: bool,
    /// The columns of the features of edges.
    features: Vec<usize>,
}

impl Known {
    /// The nodes of the run, if items are pairs of them; its data is read again, unless it was before.
    pub(super) fn of(incoming: &Incoming<'_>) -> Result<Option<Arc<Self>>, DataError> {
        if let Some(known) = incoming.nodes.and_then(|nodes| nodes.0.get()) {
            return Ok(Some(known.clone()));
        }
        let known = Self::read(incoming)?.map(Arc::new);
        if let (Some(nodes), Some(known)) = (incoming.nodes, &known) {
            // Another thread may have read the same.
            let _ = nodes.0.set(known.clone());
        }
        Ok(known)
    }

    fn read(incoming: &Incoming<'_>) -> Result<Option<Self>, DataError> {
        if !incoming.are_pairs() {
            return Ok(None);
        }
        let splits = load::splits(incoming.plan, Trust::Stamps, &|_, _| ()).map_err(|error| {
            error.note("pairs of nodes are predicted from the nodes and edges that the run was trained with")
        })?;
        let set = splits.train.set();
        let (Some(graph), Some(pairs)) = (&set.graph, &set.pairs) else {
            return Ok(None);
        };
        Ok(Some(Self {
            graph: graph.clone(),
            names: pairs.names.clone(),
            is_directed: pairs.is_directed,
            has_numbers: incoming.are_numbered(),
            features: incoming.edge_features(),
        }))
    }

    /// Refuses files that are no tables.
    pub(super) fn refuse_arrays(kind: DataKind) -> Result<(), DataError> {
        if is_table(kind) {
            return Ok(());
        }
        Err(DataError::new("pairs of nodes are read from a table").help(
            "use a `.csv`, `.jsonl` or `.parquet` file with both nodes of a pair in each row",
        ))
    }

    /// The two nodes of a row, or why it has none.
    pub(super) fn ends(&self, origin: &Origin) -> Result<[u32; 2], String> {
        let find = |name: &Option<String>| {
            let name = given(name).ok_or("a node is missing")?;
            let found = self.names.find(&whole(name, self.has_numbers));
            found.map_err(|error| match error.helps.first() {
                Some(help) if help.starts_with("did you mean") => {
                    format!("{}: {help}", error.message)
                }
                _ => error.message.to_string(),
            })
        };
        Ok([find(&origin.group)?, find(&origin.node)?])
    }

    /// The pairs of some records.
    pub(super) fn pairs(&self, records: &Records, ends: Vec<[u32; 2]>) -> (Arc<NodeGraph>, Pairs) {
        let columns = records.columns();
        let mut features = Vec::new();
        for row in 0..records.len() {
            for at in &self.features {
                records.numbers(row, *at, |number| features.push(number));
            }
        }
        let pairs = Pairs {
            ends,
            features,
            width: self.features.iter().map(|at| columns[*at].len()).sum(),
            negatives: None,
            names: self.names.clone(),
            is_directed: self.is_directed,
            nodes: None,
        };
        (self.graph.clone(), pairs)
    }
}

impl Pieces<'_> {
    /// All graphs, with the edges of a file.
    pub(super) fn graphs(
        &self,
        read: &dyn Fn(Take<'_>) -> Result<(), DataError>,
        edges: &Path,
    ) -> Result<Piece, DataError> {
        let incoming = self.incoming;
        let kind = source::kind(incoming)?;
        let Some(files) = incoming.trained_on().filter(|_| is_table(kind)) else {
            return Err(
                DataError::new("the nodes of new graphs are read from a table")
                    .help("use a `.csv`, `.jsonl` or `.parquet` file with a row for each node"),
            );
        };
        let mut writer = Writer::of_new_data();
        let mut origins: Vec<Origin> = Vec::new();
        read(&mut |raw: Raw| {
            self.refuse_bad_nodes(&raw)?;
            if origins.is_empty() {
                writer.begin(raw.records.columns().to_vec());
            }
            // Writing to memory cannot fail.
            let _ = writer.push(raw.records.record(0..raw.records.len()));
            origins.extend(raw.origins);
            Ok(())
        })?;
        if origins.is_empty() {
            return Err(self.nothing_left());
        }
        let records = writer.into_records();
        let targets = if incoming.has_targets {
            incoming.transforms.targets()
        } else {
            Vec::new()
        };
        let id = files.graph.as_ref().and_then(|graph| graph.id.as_ref());
        let numeric = id.is_some_and(|id| has_numbers(incoming, id));
        let graph = graph::of_new_data(
            (files, edges),
            &records,
            &self.encoder.input,
            &targets,
            |row| given(&origins[row].group),
            |row| given(&origins[row].node).map(|name| whole(name, numeric)),
        )?;
        let firsts = graph.members.as_ref().map(graph::Members::firsts);
        let firsts = firsts.unwrap_or_default();
        let of_first = |row: &u32| &origins[*row as usize];
        let ids = firsts.iter().map(|row| of_first(row).id.clone().show());
        let kept = firsts.iter().map(|row| of_first(row).kept.clone());
        let (ids, kept) = (ids.collect(), kept.collect());
        let set = Arc::new(Set {
            records,
            encoder: self.encoder.clone(),
            graph: Some(graph),
            pairs: None,
        });
        Ok(Piece {
            split: Split::of_rows(set, firsts),
            ids,
            kept,
            skipped: Vec::new(),
        })
    }

    /// Without one of its nodes, a graph would be another.
    fn refuse_bad_nodes(&self, raw: &Raw) -> Result<(), DataError> {
        let shown = self.incoming.name();
        let mut rows = raw.origins.iter().enumerate();
        let wrong = rows.find_map(|(row, origin)| {
            Some(Skipped {
                place: (raw.place)(&shown, origin),
                reason: self.wrong(&raw.records, row)?,
            })
        });
        let undecoded = raw.bad.first().map(|(_, wrong)| wrong);
        match undecoded.or(wrong.as_ref()) {
            None => Ok(()),
            Some(wrong) => Err(DataError::new(wrong.show())
                .note("nodes are never skipped: without one of them, a graph is another graph")
                .help("correct it, or remove its graph")),
        }
    }
}

/// Whether the names of nodes were numbers in training.
fn has_numbers(incoming: &Incoming<'_>, id: &str) -> bool {
    // Columns of nodes come after those of edges.
    let mut columns = incoming.transforms.columns.iter().rev();
    columns
        .find(|column| column.name == id)
        .is_some_and(|column| {
            !matches!(
                column.kind,
                ColumnKind::Text | ColumnKind::Categories { .. }
            )
        })
}

fn is_table(kind: DataKind) -> bool {
    matches!(
        kind,
        DataKind::Csv | DataKind::JsonLines | DataKind::Parquet
    )
}

fn given(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.is_empty())
}

/// A name as in files of edges: whole numbers have no decimals.
fn whole(name: String, is_number: bool) -> String {
    match name.trim().parse::<f64>() {
        Ok(number) if is_number && number.is_finite() => number.to_string(),
        _ => name,
    }
}
