//! The moment at which items are served, and what of a graph is served then.

use std::sync::Arc;

use super::Values;
use crate::data::encode::augment::augment_seed;
use crate::data::order::{Purpose, stream_seed};
use crate::data::{NodeGraph, Pairs, PairsPart};
use crate::spec::train::Sampler;

/// The moment at which items are served: augmentation is a function of it and of the item.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The seed of the run.
    pub seed: u64,
    /// The epoch, from 1.
    pub epoch: u64,
    /// If items may occur several times in the epoch: the position of the first one in its order. Each occurrence is
    /// then augmented separately.
    pub position: Option<u64>,
}

impl Moment {
    /// The moment of an epoch, from 1.
    pub fn new(sampler: Sampler, seed: u64, epoch: u64) -> Self {
        Self {
            seed,
            epoch,
            position: (!sampler.is_random()).then_some(0),
        }
    }

    /// The same for items from a position in the order of the epoch on.
    pub fn from(self, position: usize) -> Self {
        Self {
            position: self.position.map(|_| position as u64),
            ..self
        }
    }

    /// The seed of the neighbors that are drawn.
    fn neighbors_seed(self) -> u64 {
        stream_seed(self.seed, Purpose::Neighbors, self.epoch)
    }

    /// The seed of the pairs without an edge.
    fn negatives_seed(self) -> u64 {
        stream_seed(self.seed, Purpose::Negatives, self.epoch)
    }

    /// The seed of the augmentation of a record, which is served as the item with this number.
    pub(super) fn augment_seed(self, record: u32, number: usize) -> u64 {
        let seed = augment_seed(self.seed, self.epoch, u64::from(record));
        match self.position {
            None => seed,
            Some(first) => stream_seed(seed, Purpose::Sampler, first + number as u64),
        }
    }
}

/// Some nodes, pairs of nodes, or graphs, with as much of the graph as they need.
pub(super) fn of_graph(
    graph: &Arc<NodeGraph>,
    pairs: Option<&Pairs>,
    rows: Vec<u32>,
    moment: Option<Moment>,
) -> Values {
    // The nodes of a batch, and the part of the graph that they are computed from.
    let part = |rows: Vec<u32>| match moment {
        _ if graph.neighbors.is_empty() => (graph.clone(), rows),
        Some(moment) => {
            let (part, rows) = graph.drawn(&rows, moment.neighbors_seed());
            (Arc::new(part), rows)
        }
        None => {
            let (part, rows) = graph.around(&rows);
            (Arc::new(part), rows)
        }
    };
    if let Some(pairs) = pairs {
        let served = pairs.part(&rows, moment.map(Moment::negatives_seed));
        let num = served.ends[0].len();
        let (graph, mut from) = part(served.ends.concat());
        let to = from.split_off(num);
        let part = PairsPart {
            ends: [from, to],
            ..served
        };
        Values::Pairs { graph, part }
    } else if graph.members.is_some() {
        let (graph, of) = graph.union(&rows);
        let graph = Box::new(graph);
        Values::Graphs { graph, of }
    } else {
        let (graph, rows) = part(rows);
        Values::Nodes { graph, rows }
    }
}
