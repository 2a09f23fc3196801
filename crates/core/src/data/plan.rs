//! The data of a run: resolved, so that loading it needs no decision.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::noticed::Noticed;
use crate::diagnostic::counted;
use crate::spec::data::{
    AugmentSpec, FilesSpec, ImageSize, MnistPart, MoreTarget, Scale, SplitSpec, TargetTransform,
};
use crate::spec::generate::Generated;
use crate::spec::own::Used;
use crate::spec::section::Choice;

/// The data of a run: resolved, so that loading it needs no decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataPlan {
    /// The data set.
    #[serde(flatten)]
    pub dataset: Dataset,
    /// sha256 of its content: of files and how they are read, of the decompressed MNIST files, of embedded data, or of
    /// the first items of a generator. Empty in plans of earlier versions, which contain it only for files.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The requested data set, if `dataset` replaces it.
    pub stands_in_for: Option<String>,
    /// How numbers are scaled in columns that do not set it.
    pub scale: Scale,
    /// The axis of arrays whose positions are scaled separately, if any is: of several named arrays that of the first
    /// that has one, and each has the usual one of its shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_axis: Option<usize>,
    /// Augmentation of the images of the train split.
    pub augment: Option<AugmentSpec>,
    /// The fraction of the labels of the train split that are changed.
    #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
    pub label_noise: f64,
    /// The kind of an item.
    pub input: InputPlan,
    /// The kind of the targets.
    pub target: TargetPlan,
    /// The kinds of the targets of `[[losses]]` that are other columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_targets: Vec<TargetPlan>,
    /// How the items are split.
    pub split: SplitSpec,
    /// Items of the train split.
    pub num_train: usize,
    /// Items of the valid split.
    pub num_valid: usize,
    /// Items of the test split; 0 if there is none.
    pub num_test: usize,
    /// Further findings, only for rules and messages.
    #[serde(skip)]
    pub noticed: Noticed,
}

impl DataPlan {
    /// How the user's files are read, if the data is in files.
    pub fn files(&self) -> Option<&FilesSpec> {
        match &self.dataset {
            Dataset::Files { files, .. } => Some(files),
            _ => None,
        }
    }

    /// The target columns of `[[losses]]`, in the order of `more_targets`.
    pub fn more_columns(&self) -> &[MoreTarget] {
        match &self.dataset {
            Dataset::Files { files, .. } => &files.roles.more_targets,
            _ => &[],
        }
    }

    /// How numeric targets are transformed before they are scaled.
    pub fn target_transform(&self) -> TargetTransform {
        let files = self.files();
        files.map_or(TargetTransform::None, |files| files.roles.target_transform)
    }

    /// How numeric targets are scaled.
    pub fn target_scale(&self) -> Scale {
        let files = self.files();
        files.map_or(Scale::None, |files| files.roles.target_scale)
    }

    /// The column of the weights of items.
    pub fn weight(&self) -> Option<&String> {
        match &self.dataset {
            Dataset::Files { files, .. } => files.roles.weight.as_ref(),
            _ => None,
        }
    }

    /// The fraction of the tokens of each item that are hidden, if they are to be predicted.
    pub fn masked(&self) -> Option<f64> {
        match &self.dataset {
            Dataset::Files { files, .. } => files.tokens.masked,
            _ => None,
        }
    }

    /// Whether the items of the train split differ in each epoch.
    pub fn differs_by_epoch(&self) -> bool {
        let draws = self.input.graph.is_some_and(|graph| {
            let negatives = graph.pairs.map_or(0, |pairs| pairs.num_negatives);
            graph.drawn.is_some() || negatives > 0
        });
        self.augment.is_some() || self.masked().is_some() || draws
    }

    /// Bytes of the items that a run holds in memory; those of files are mapped and can be dropped.
    pub fn held_bytes(&self) -> u64 {
        let size = match self.dataset {
            Dataset::Mnist { .. } | Dataset::Digits { .. } | Dataset::Iris => 1,
            Dataset::KarateClub => 4,
            Dataset::Synthetic(_) | Dataset::Own { .. } => 4,
            Dataset::Files { .. } => 0,
        };
        let num = (self.num_train + self.num_valid + self.num_test) as u64;
        let item = self.input.shape.iter().product::<usize>() as u64;
        let graph = self.input.graph_bytes(8).unwrap_or(0);
        num.saturating_mul(item)
            .saturating_mul(size)
            .saturating_add(graph)
    }

    /// The data set with its split, for reports.
    pub fn in_words(&self) -> String {
        let test = match self.num_test {
            0 => String::new(),
            num => format!(", {num} test"),
        };
        let stands_in = match &self.stands_in_for {
            Some(asked) => format!(" (replaces `{asked}`)"),
            None => String::new(),
        };
        format!(
            "`{}`{stands_in}: {} train, {} valid{test} items of {}, {}, {}{}{}{}{}{}",
            self.dataset.name(),
            self.num_train,
            self.num_valid,
            self.input.show_shape(),
            self.target.show(),
            self.split.show(),
            match self.scale {
                // Tokens are not scaled.
                _ if self.input.vocabulary.is_some() => "",
                Scale::None => "",
                Scale::Standardize => ", standardized",
                Scale::MinMax => ", scaled from 0 to 1",
                Scale::Normalize => ", scaled to unit length",
            },
            match self.files() {
                Some(files) if files.tokens.document_mask => ", documents kept apart",
                _ => "",
            },
            match (self.label_noise, self.masked()) {
                (_, Some(share)) => format!(", {} % of the tokens hidden", 100.0 * share),
                (0.0, _) => String::new(),
                (noise, _) => format!(", {} % of the labels of train changed", 100.0 * noise),
            },
            match self.weight() {
                Some(column) => format!(", weighted by `{column}`"),
                None => String::new(),
            },
            match self.target_transform() {
                TargetTransform::None => String::new(),
                transform => format!(", targets transformed by `{}`", transform.name()),
            }
        )
    }
}

/// An item has at most this many dimensions: Burn's tensors have five, and the first one is the batch.
pub const MAX_DIMS: usize = 4;

/// The kind of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputPlan {
    /// Its shape.
    pub shape: Vec<usize>,
    /// For tokens, the size of the vocabulary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// The named inputs of which an item consists, one after the other; empty if it is a single one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<InputPart>,
    /// The graph whose nodes the items are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphPlan>,
}

/// The size of a graph whose nodes are items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphPlan {
    /// Nodes, also those in no split.
    pub num_nodes: usize,
    /// Edges along which messages pass: an undirected edge counts twice, and one from a node to itself does not count.
    pub num_edges: usize,
    /// Graphs, if they are the items instead of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_graphs: Option<usize>,
    /// Nodes of the largest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_graph: Option<usize>,
    /// How many neighbors a batch of training has, if they are drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn: Option<DrawnPlan>,
    /// Features of an edge.
    #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
    pub edge_features: usize,
    /// The pairs of nodes, if they are the items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs: Option<PairsPlan>,
}

/// Pairs of nodes that are items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairsPlan {
    /// How many have an edge.
    pub num_edges: usize,
    /// How many have none: those of the train split are drawn in each epoch.
    #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
    pub num_negatives: usize,
}

/// The neighbors that are drawn for the nodes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnPlan {
    /// How many layers of messages one after another they are for.
    pub num_rounds: usize,
    /// Nodes that one item needs at most, itself included.
    pub most_nodes: usize,
}

impl DrawnPlan {
    /// For the numbers of `data.graph.neighbors`.
    pub fn new(neighbors: &[usize]) -> Option<Self> {
        // 1 + a + a b + a b c
        let inner = |most: usize, num: &usize| most.saturating_mul(*num).saturating_add(1);
        (!neighbors.is_empty()).then(|| Self {
            num_rounds: neighbors.len(),
            most_nodes: neighbors.iter().rev().fold(1, inner),
        })
    }

    /// The same for items that are pairs of nodes.
    pub fn of_pairs(self) -> Self {
        Self {
            most_nodes: self.most_nodes.saturating_mul(2),
            ..self
        }
    }
}

impl GraphPlan {
    /// Nodes that a batch of so many items of training computes: all nodes of one graph; of many graphs at most as many
    /// as if each were the largest. If neighbors are drawn, there are at most as many edges, which is why the number of
    /// nodes alone is no bound.
    pub fn nodes_in(&self, batch: u64) -> u64 {
        if let Some(drawn) = self.drawn {
            let all = self.num_nodes.max(self.num_edges) as u64;
            return batch.saturating_mul(drawn.most_nodes as u64).min(all);
        }
        let largest = self.largest_graph.map(|nodes| nodes as u64);
        let all = self.num_nodes as u64;
        if self.pairs.is_some() {
            // Some layers have a row for each pair.
            return all.max(batch);
        }
        largest.map_or(all, |nodes| nodes.saturating_mul(batch).min(all))
    }
}

/// A named input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InputPart {
    /// Its name in the layers' `inputs`.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// For indices, such as tokens, the size of the vocabulary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
}

impl InputPart {
    /// How many values it has.
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }
}

impl InputPlan {
    /// A single input: numbers, or tokens of a vocabulary.
    pub fn single(shape: Vec<usize>, vocabulary: Option<usize>) -> Self {
        Self {
            shape,
            vocabulary,
            parts: Vec::new(),
            graph: None,
        }
    }

    /// Several named inputs: an item is a row of all their values.
    pub fn of_parts(parts: Vec<InputPart>) -> Self {
        Self {
            shape: vec![parts.iter().map(InputPart::size).sum()],
            vocabulary: None,
            parts,
            graph: None,
        }
    }

    /// Bytes of the graph with the features of all nodes, if items are nodes, with numbers of `float` bytes.
    pub fn graph_bytes(&self, float: u64) -> Option<u64> {
        let graph = self.graph?;
        let (nodes, edges) = (graph.num_nodes as u64, graph.num_edges as u64);
        Some(self.part_bytes(nodes, edges, float))
    }

    /// Bytes of some nodes and edges of a graph.
    fn part_bytes(&self, nodes: u64, edges: u64, float: u64) -> u64 {
        let width = self.shape.iter().product::<usize>() as u64 + 1;
        let features = nodes.saturating_mul(width).saturating_mul(float);
        features.saturating_add(edges.saturating_mul(8 + float))
    }

    /// The share of a batch of so many items.
    pub fn graph_bytes_in(&self, batch: u64, float: u64) -> Option<u64> {
        let (graph, all) = (self.graph?, self.graph_bytes(float)?);
        let nodes = graph.nodes_in(batch);
        if graph.drawn.is_some() {
            // An edge for each node.
            return Some(self.part_bytes(nodes, nodes, float));
        }
        let share = all.saturating_mul(nodes);
        Some(share.div_ceil(graph.num_nodes.max(1) as u64))
    }

    /// Whether there are only indices.
    pub fn is_all_indices(&self) -> bool {
        match self.parts.as_slice() {
            [] => self.vocabulary.is_some(),
            parts => parts.iter().all(|part| part.vocabulary.is_some()),
        }
    }

    /// The shape, or that of each named input, as text.
    pub fn show_shape(&self) -> String {
        let parts = self.parts.iter();
        let parts = parts.map(|part| format!("`{}` {:?}", part.name, part.shape));
        match self.parts.len() {
            0 => match self.graph {
                None => format!("shape {:?}", self.shape),
                Some(GraphPlan {
                    num_graphs: Some(num),
                    num_nodes,
                    num_edges,
                    ..
                }) => format!(
                    "{} (nodes of shape {:?}; {} and {} in all)",
                    counted(num, "graph"),
                    self.shape,
                    counted(num_nodes, "node"),
                    counted(num_edges, "edge")
                ),
                Some(GraphPlan {
                    pairs: Some(pairs),
                    num_nodes,
                    ..
                }) => {
                    let edges = counted(pairs.num_edges, "edge");
                    let edges = match pairs.num_negatives {
                        0 => edges,
                        num => format!("{edges} and {} without one", counted(num, "pair")),
                    };
                    let nodes = counted(num_nodes, "node");
                    format!("{edges} ({nodes} of shape {:?})", self.shape)
                }
                Some(graph) => format!(
                    "shape {:?} ({} with {}{})",
                    self.shape,
                    counted(graph.num_nodes, "node"),
                    counted(graph.num_edges, "edge"),
                    match graph.drawn {
                        Some(_) => ", of which each batch of training draws some",
                        None => "",
                    }
                ),
            },
            _ => parts.collect::<Vec<_>>().join(", "),
        }
    }

    /// The same with the sizes of vocabularies.
    pub fn show(&self) -> String {
        let tokens = |vocabulary: Option<usize>, what| match vocabulary {
            Some(num) => format!(" of {num} {what}"),
            None => String::new(),
        };
        let parts = self.parts.iter().map(|part| {
            let of = tokens(part.vocabulary, "indices");
            format!("`{}` {:?}{of}", part.name, part.shape)
        });
        match self.parts.len() {
            0 => format!(
                "shape {:?}{}",
                self.shape,
                tokens(self.vocabulary, "tokens")
            ),
            _ => parts.collect::<Vec<_>>().join(", "),
        }
    }
}

/// The kind of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TargetPlan {
    /// None: items are their own targets.
    None,
    /// A class.
    Class {
        /// Number of classes.
        num_classes: usize,
    },
    /// A class for each position: tokens or pixels.
    Classes {
        /// The positions.
        shape: Vec<usize>,
        /// Number of classes.
        num_classes: usize,
    },
    /// Several labels.
    Labels {
        /// Number of labels.
        num_labels: usize,
    },
    /// Numbers.
    Values {
        /// Their shape.
        shape: Vec<usize>,
    },
}

impl TargetPlan {
    /// Numbers of one target.
    pub fn size(&self) -> usize {
        match self {
            TargetPlan::None => 0,
            TargetPlan::Class { .. } => 1,
            TargetPlan::Classes { shape, .. } | TargetPlan::Values { shape } => {
                shape.iter().product()
            }
            TargetPlan::Labels { num_labels } => *num_labels,
        }
    }

    /// The shape of a target as numbers that a network can take, with a channel for each class; `None` if there is no
    /// target.
    pub fn as_condition(&self) -> Option<Vec<usize>> {
        Some(match self {
            TargetPlan::None => return None,
            TargetPlan::Class { num_classes } => vec![*num_classes],
            TargetPlan::Classes { shape, num_classes } => [&[*num_classes], &shape[..]].concat(),
            TargetPlan::Labels { num_labels } => vec![*num_labels],
            TargetPlan::Values { shape } => shape.clone(),
        })
    }

    /// As text, for reports.
    pub fn show(&self) -> String {
        match self {
            TargetPlan::None => "no targets".to_owned(),
            TargetPlan::Class { num_classes } => format!("{num_classes} classes"),
            TargetPlan::Classes { shape, num_classes } => {
                format!("{num_classes} classes for each of {shape:?} positions")
            }
            TargetPlan::Labels { num_labels } => counted(*num_labels, "label"),
            TargetPlan::Values { shape } => format!("targets of shape {shape:?}"),
        }
    }
}

/// A data set that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Dataset {
    /// The MNIST files of a folder.
    Mnist {
        /// The folder.
        folder: PathBuf,
        /// Which published part.
        part: MnistPart,
        /// The folder of decoded data; empty in plans of earlier versions, which decode the files each time.
        #[serde(default)]
        cache: PathBuf,
    },
    /// The embedded digits.
    Digits {
        /// The size of the images.
        image_size: ImageSize,
    },
    /// The embedded iris flowers.
    Iris,
    /// The embedded karate club.
    KarateClub,
    /// Generated.
    Synthetic(Generated),
    /// The user's files.
    Files {
        /// Where they are and how they are read.
        files: Box<FilesSpec>,
        /// The cache folder of decoded files.
        cache: PathBuf,
    },
    /// A data source of the program's own.
    Own {
        /// The source.
        #[serde(flatten)]
        source: Used,
        /// The folder that paths in its settings start from.
        folder: PathBuf,
    },
}

impl Dataset {
    /// The name in the experiment file.
    pub fn name(&self) -> &str {
        match self {
            Dataset::Mnist { .. } => "mnist",
            Dataset::Digits { .. } => "digits",
            Dataset::Iris => "iris",
            Dataset::KarateClub => "karate_club",
            Dataset::Synthetic(generated) => generated.name(),
            Dataset::Files { files, .. } => files.kind().name(),
            Dataset::Own { source, .. } => &source.part,
        }
    }
}
