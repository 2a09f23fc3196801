//! New graphs: a table of nodes and a file of edges, read at once, since the nodes of a graph can be anywhere in it.

use std::path::Path;
use std::sync::Arc;

use super::{Incoming, Origin, Piece, Pieces, Raw, Take, source};
use crate::data::records::{ColumnKind, Skipped, Writer};
use crate::data::serve::{Set, Split};
use crate::data::{DataError, graph};
use crate::spec::data::{DataKind, FilesSpec, GraphSpec};

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

    /// Whether items can be read, as far as the run tells.
    ///
    /// # Errors
    ///
    /// If they need edges that are not there.
    pub fn check(&self) -> Result<(), DataError> {
        self.edges_of_graphs().map(|_| ())
    }

    /// How the edges of the run were read.
    pub(in crate::data) fn graph(&self) -> Option<&GraphSpec> {
        self.trained_on().and_then(|files| files.graph.as_ref())
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
        let numeric = self.has_numeric_names(files);
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

    /// Whether the names of nodes were numbers in training.
    fn has_numeric_names(&self, files: &FilesSpec) -> bool {
        let id = files.graph.as_ref().and_then(|graph| graph.id.as_ref());
        let mut columns = self.incoming.transforms.columns.iter();
        let column = columns.find(|column| Some(&column.name) == id);
        column.is_some_and(|column| {
            !matches!(
                column.kind,
                ColumnKind::Text | ColumnKind::Categories { .. }
            )
        })
    }
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
