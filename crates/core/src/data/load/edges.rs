//! Graphs whose items are edges, or pairs of nodes with and without an edge.
//!
//! Features are columns of the table of nodes, and targets are columns of the table of edges. Of pairs, messages pass
//! along the edges of the train split, so that nothing tells of an edge that is held out.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::Splits;
use super::files::{Reading, refuse_infinite};
use super::targets::refuse_targets;
use crate::data::encode::{Encoder, TargetEncoder};
use crate::data::graph::{
    EdgeRecords, Given, Negatives, NodeNames, Unlinked, canonical, refuse_gaps, refuse_skipped,
};
use crate::data::missing::{dropped, refuse_empty_columns};
use crate::data::order::{Purpose, stream_seed};
use crate::data::read::Watch;
use crate::data::records::{Column, ColumnKind, Records, Writer};
use crate::data::series::Series;
use crate::data::serve::{Set, Split};
use crate::data::split::Assigned;
use crate::data::uses::{Table, Uses};
use crate::data::{DataError, NodeGraph, Pairs, cache};
use crate::diagnostic::counted;
use crate::spec::data::{FilesSpec, GraphItems, GraphSpec, RolesSpec, SplitSpec};

/// The name of the label of pairs.
const LINK: &str = "edge";

impl Reading<'_> {
    /// Reads, assigns and fits resolved files of nodes and edges.
    pub(super) fn edges(
        &self,
        files: &FilesSpec,
        graph: &GraphSpec,
        (cache, watch): (&Path, Watch<'_>),
    ) -> Result<Splits, DataError> {
        refuse_other_keys(files, graph)?;
        let of_nodes = without_targets(files);
        let digest = cache::digest(&of_nodes, cache, self.trust())?;
        let nodes = cache::open(&of_nodes, &digest, cache, self.trust(), watch)?;
        let edges = EdgeRecords::open(files, graph, cache, watch)?;
        let node_uses = self.uses_of_nodes(&of_nodes, &nodes, &edges.records)?;
        let table = Table::Edges {
            nodes: nodes.columns(),
        };
        let uses = Uses::of_table(&edges.files, self.split, &edges.records, table)?;
        refuse_infinite(&edges.records, &uses)?;
        let names = NodeNames::of_records(graph, &nodes)?;
        let given = edges.given(graph, &names)?;
        refuse_empty_columns(&edges.files, &edges.records, &uses)?;
        let dropped = dropped(&edges.files, &edges.records, &uses)?;
        // Refuses the same edge with another weight or other features.
        let whole = given.edges(graph, |_| true)?;
        let (left_out, num_dropped) = left_out(&given, graph, (&edges.records, &uses), &dropped)?;
        let series = Series::new(&edges.files, &edges.records, &uses)?;
        let assigned = self.assign(&edges.files, &edges.records, &uses, &series, &left_out)?;

        let ends: Vec<[u32; 2]> = given
            .edges
            .iter()
            .map(|edge| [edge.from, edge.to])
            .collect();
        let known = assigned.train.iter();
        let mut known: Vec<u32> = known.flat_map(|row| ends[*row as usize]).collect();
        known.sort_unstable();
        known.dedup();
        let input = self.fitting(&of_nodes, &nodes, &node_uses, &known, None);
        let input = input.input()?;
        let are_links = graph.items == GraphItems::Links;
        let (messages, features, width) = if are_links {
            let is_train = by_row(&assigned.train, ends.len());
            let passes = |row: usize| is_train[row] || ends[row][0] == ends[row][1];
            // Pairs without an edge have no features.
            (given.edges(graph, passes)?, Vec::new(), 0)
        } else {
            (whole, given.features, given.width)
        };
        let mut pairs = Pairs {
            ends,
            features,
            width,
            negatives: None,
            names: Arc::new(names),
            is_directed: graph.directed,
            nodes: None,
        };
        let neighbors = graph.neighbors.clone();
        let node_graph = NodeGraph::new(messages, &nodes, &input, None, neighbors)?;
        pairs.nodes = Some(Arc::new(nodes));
        if are_links {
            let assigned = self.add_negatives(graph, &mut pairs, assigned)?;
            let encoder = Encoder {
                input,
                target: TargetEncoder::Labels {
                    columns: vec![0],
                    num_labels: 1,
                },
                more_targets: Vec::new(),
            };
            let num_negatives = pairs.plan().num_negatives;
            let set = Set {
                records: labels(pairs.ends.len() - num_negatives, num_negatives),
                encoder: Arc::new(encoder),
                graph: Some(node_graph),
                pairs: Some(pairs),
            };
            return self.splits_of(set, assigned, None, num_dropped);
        }
        let fitting = self.fitting(&edges.files, &edges.records, &uses, &assigned.train, None);
        let encoder = Encoder {
            target: fitting.target(&input)?,
            more_targets: fitting.more_targets()?,
            input,
        };
        refuse_targets(&edges.files, &edges.records, &encoder, &left_out)?;
        let set = Set {
            records: edges.records,
            encoder: Arc::new(encoder),
            graph: Some(node_graph),
            pairs: Some(pairs),
        };
        self.splits_of(set, assigned, uses.weight, num_dropped)
    }

    /// The roles of the columns of nodes, of which all must be usable.
    fn uses_of_nodes(
        &self,
        files: &FilesSpec,
        nodes: &Records,
        edges: &Records,
    ) -> Result<Uses, DataError> {
        let split = SplitSpec {
            order_by: None,
            group_by: None,
            ..self.split.clone()
        };
        let table = Table::Nodes {
            edges: edges.columns(),
        };
        let uses = Uses::of_table(files, &split, nodes, table)?;
        refuse_infinite(nodes, &uses)?;
        refuse_empty_columns(files, nodes, &uses)?;
        dropped(files, nodes, &uses)?;
        refuse_skipped(nodes)?;
        refuse_gaps(files, nodes, &uses.features)?;
        Ok(uses)
    }

    fn splits_of(
        &self,
        set: Set,
        assigned: Assigned,
        weight: Option<usize>,
        num_dropped: usize,
    ) -> Result<Splits, DataError> {
        let set = Arc::new(set);
        let split = |rows: Vec<u32>| Split::of_rows(set.clone(), rows);
        let test = (!assigned.test.is_empty()).then(|| split(assigned.test));
        let parts = [assigned.train, assigned.valid].map(split);
        self.changed(parts, test, weight, num_dropped)
    }

    /// Adds pairs without an edge to each split.
    fn add_negatives(
        &self,
        graph: &GraphSpec,
        pairs: &mut Pairs,
        mut assigned: Assigned,
    ) -> Result<Assigned, DataError> {
        let for_each = graph.negatives.unwrap_or(1);
        let sizes = [&assigned.train, &assigned.valid, &assigned.test];
        let [train, valid, test] = sizes.map(|rows| rows.len() * for_each);
        let num = train + valid + test;
        let (num_nodes, num_edges) = (pairs.names.len(), pairs.ends.len());
        let ends = |rows: &[u32]| -> Vec<[u32; 2]> {
            rows.iter().map(|row| pairs.ends[*row as usize]).collect()
        };
        let unlinked =
            |ends: Vec<[u32; 2]>| Unlinked::new(num_nodes, ends.into_iter(), graph.directed);
        let all = unlinked(pairs.ends.clone());
        if all.num() < num as u64 {
            let message = format!(
                "{} {} no edge, but {num} are needed: {for_each} for each of {}",
                counted(all.num() as usize, "pair"),
                if all.num() == 1 { "has" } else { "have" },
                counted(num / for_each, "edge"),
            );
            let fewer = if for_each > 1 {
                "use fewer `negatives`, or "
            } else {
                ""
            };
            return Err(DataError::new(message)
                .key("data.graph.negatives")
                .help(format!(
                    "{fewer}predict a column of edges: `items = \"edges\"`"
                )));
        }
        let seed = stream_seed(self.split.seed, Purpose::Negatives, 0);
        let drawn = all.drawn(num, seed);
        let first = num_edges as u32;
        let end = |num: usize| first + num as u32;
        pairs.negatives = Some(Negatives::new(
            first..end(num),
            first..end(train),
            unlinked(ends(&assigned.train)),
        ));
        pairs.ends.extend(drawn);
        assigned.train.extend(first..end(train));
        assigned.valid.extend(end(train)..end(train + valid));
        assigned.test.extend(end(train + valid)..end(num));
        Ok(assigned)
    }
}

/// The files of nodes, without the keys that are about edges.
fn without_targets(files: &FilesSpec) -> FilesSpec {
    FilesSpec {
        roles: RolesSpec {
            target: Vec::new(),
            more_targets: Vec::new(),
            weight: None,
            has_other_table: true,
            ..files.roles.clone()
        },
        ..files.clone()
    }
}

/// The edges that are no items, and how many of them have no target: the others were given before or, of pairs, are from
/// a node to itself.
fn left_out(
    given: &Given<'_>,
    graph: &GraphSpec,
    (records, uses): (&Records, &Uses),
    dropped: &[bool],
) -> Result<(Vec<bool>, usize), DataError> {
    let is_dropped = |row: usize| dropped.get(row).is_some_and(|is| *is);
    let mut firsts: BTreeMap<[u32; 2], usize> = BTreeMap::new();
    let mut rows = vec![false; records.len()];
    let mut num_dropped = 0;
    let same: Vec<usize> = uses.all_targets().chain(uses.weight).collect();
    for (row, edge) in given.edges.iter().enumerate() {
        let ends = canonical([edge.from, edge.to], graph.directed);
        if graph.items == GraphItems::Links && edge.from == edge.to {
            rows[row] = true;
        } else if is_dropped(row) {
            rows[row] = true;
            num_dropped += 1;
        } else if let Some(first) = firsts.get(&ends) {
            let differs = |at: &usize| records.bytes(row, *at) != records.bytes(*first, *at);
            if same.iter().any(differs) {
                return Err(given
                    .differ([*first, row], "another target or weight", graph)
                    .key("data.graph.edges"));
            }
            rows[row] = true;
        } else {
            firsts.insert(ends, row);
        }
    }
    if firsts.is_empty() {
        let message = match num_dropped {
            0 => "no edge joins two nodes",
            _ => "no edge has a target",
        };
        return Err(DataError::new(message)
            .key("data.graph.edges")
            .help("name a file with the edges to learn from"));
    }
    Ok((rows, num_dropped))
}

/// Refuses keys that say something else about items.
fn refuse_other_keys(files: &FilesSpec, graph: &GraphSpec) -> Result<(), DataError> {
    let refuse =
        |key: &str, message: &str, help: &str| Err(DataError::new(message).key(key).help(help));
    if graph.of.is_some() {
        return refuse(
            "data.graph.of",
            "with `of`, the items are graphs, but `items` says that they are edges",
            "remove `of`: the graphs of a table can be used as one, whose parts have no edges between them",
        );
    }
    for (paths, key) in [
        (&files.valid_path, "data.valid_path"),
        (&files.test_path, "data.test_path"),
    ] {
        if !paths.is_empty() {
            return refuse(
                key,
                "a file of nodes cannot be a split, since the items are edges",
                "list all files of nodes in `path`; `[data.split]` divides the edges, by time with `order_by`",
            );
        }
    }
    let is_target_missing = files.roles.target.is_empty();
    if graph.items == GraphItems::Edges && is_target_missing {
        return refuse(
            "data.graph.items",
            "the items are edges, but there is no target",
            "set `target` under `[data]` to a column of `edges`; to predict whether there is an edge, set `items = \"links\"`",
        );
    }
    if graph.items == GraphItems::Links {
        if !is_target_missing {
            return refuse(
                "data.target",
                "the target of pairs of nodes is whether they have an edge",
                "remove `target`; to predict a column of `edges`, set `items = \"edges\"` in `[data.graph]`",
            );
        }
        if files.roles.weight.is_some() {
            return refuse(
                "data.weight",
                "pairs of nodes without an edge have no weight",
                "remove `weight`",
            );
        }
        if let Some(more) = files.roles.more_targets.first() {
            return refuse(
                &more.key(),
                "pairs of nodes without an edge have no other targets",
                "remove this loss, or set `items = \"edges\"` in `[data.graph]`",
            );
        }
    }
    Ok(())
}

/// Which of some rows are listed.
fn by_row(rows: &[u32], num: usize) -> Vec<bool> {
    let mut all = vec![false; num];
    rows.iter().for_each(|row| all[*row as usize] = true);
    all
}

/// 1 for each edge, and 0 for each pair without one.
fn labels(num_edges: usize, num_negatives: usize) -> Records {
    let mut writer = Writer::in_memory();
    writer.begin(vec![Column::scalar(LINK, ColumnKind::Whole)]);
    // Writing to memory cannot fail.
    for (label, num) in [(1_i32, num_edges), (0, num_negatives)] {
        let _ = writer.push(&label.to_le_bytes().repeat(num));
    }
    writer.into_records()
}
