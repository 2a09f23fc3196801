//! Pairs of nodes as items: the ends of each edge, and drawn pairs without an edge.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use sha2::{Digest, Sha256};

use super::{NodeNames, add};
use crate::data::PairsPlan;
use crate::data::order::{Purpose, stream_seed};
use crate::data::records::Records;

/// How often a pair is drawn that turns out to have an edge, before pairs are tried in order.
const TRIES: usize = 64;

/// Items that are pairs of nodes.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// The two nodes of each record: where its edge begins, and where it ends.
    pub ends: Vec<[u32; 2]>,
    /// The features of the edge of each record, \[records, width\].
    pub features: Vec<f64>,
    /// Features of an edge.
    pub width: usize,
    /// Pairs without an edge, if there are any.
    pub negatives: Option<Negatives>,
    /// The names of the nodes.
    pub names: Arc<NodeNames>,
    /// Whether the first node differs from the second one in meaning.
    pub is_directed: bool,
    /// The records of the nodes that features are computed from; none for new pairs.
    pub nodes: Option<Arc<Records>>,
}

/// The pairs without an edge.
#[derive(Clone, Debug)]
pub struct Negatives {
    /// The records that are such pairs.
    pub rows: Range<u32>,
    /// Those of the train split, which are drawn in each epoch; the others are always the same.
    pub drawn: Range<u32>,
    /// What they are drawn from in an epoch: all pairs but the edges that training knows.
    from: Unlinked,
}

/// Pairs of different nodes that have none of some edges.
#[derive(Clone, Debug)]
pub struct Unlinked {
    num_nodes: u32,
    is_directed: bool,
    /// Each with the smaller number first, unless they are directed.
    edges: Arc<BTreeSet<[u32; 2]>>,
}

/// Some pairs, as they are served.
#[derive(Clone, Debug, PartialEq)]
pub struct PairsPart {
    /// The nodes where edges begin, and those where they end.
    pub ends: [Vec<u32>; 2],
    /// The features of the edges, \[pairs, width\].
    pub features: Vec<f64>,
}

impl Unlinked {
    /// The pairs of nodes that have none of some edges.
    pub fn new(num_nodes: usize, edges: impl Iterator<Item = [u32; 2]>, is_directed: bool) -> Self {
        let edges = edges.map(|ends| canonical(ends, is_directed));
        let edges: BTreeSet<_> = edges.filter(|[from, to]| from != to).collect();
        Self {
            num_nodes: num_nodes as u32,
            is_directed,
            edges: Arc::new(edges),
        }
    }

    /// How many there are.
    pub fn num(&self) -> u64 {
        let nodes = u64::from(self.num_nodes);
        let ordered = nodes * nodes.saturating_sub(1);
        let all = if self.is_directed {
            ordered
        } else {
            ordered / 2
        };
        all.saturating_sub(self.edges.len() as u64)
    }

    fn has(&self, ends: [u32; 2]) -> bool {
        ends[0] != ends[1] && !self.edges.contains(&canonical(ends, self.is_directed))
    }

    /// One of them that is not excluded; there must be one.
    fn draw(&self, seed: u64, is_excluded: impl Fn([u32; 2]) -> bool) -> [u32; 2] {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut pair = [0; 2];
        for _ in 0..TRIES {
            pair = [0; 2].map(|_| rng.random_range(0..self.num_nodes));
            if self.has(pair) && !is_excluded(canonical(pair, self.is_directed)) {
                return pair;
            }
        }
        // Almost all pairs have an edge.
        let num = u64::from(self.num_nodes);
        let first = u64::from(pair[0]) * num + u64::from(pair[1]);
        let in_order = (1..=num * num).map(|step| (first + step) % (num * num));
        let mut in_order = in_order.map(|at| [(at / num) as u32, (at % num) as u32]);
        let found = in_order
            .find(|pair| self.has(*pair) && !is_excluded(canonical(*pair, self.is_directed)));
        found.unwrap_or(pair)
    }

    /// Some of them, each once.
    pub fn drawn(&self, num: usize, seed: u64) -> Vec<[u32; 2]> {
        let mut seen = BTreeSet::new();
        (0..num as u64)
            .map(|at| {
                let seed = stream_seed(seed, Purpose::Negatives, at);
                let pair = self.draw(seed, |pair| seen.contains(&pair));
                seen.insert(canonical(pair, self.is_directed));
                pair
            })
            .collect()
    }
}

impl Negatives {
    /// Some records, of which those of the train split are drawn from pairs without any of its edges.
    pub fn new(rows: Range<u32>, drawn: Range<u32>, from: Unlinked) -> Self {
        Self { rows, drawn, from }
    }
}

impl Pairs {
    /// Their numbers.
    pub fn plan(&self) -> PairsPlan {
        let negatives = self.negatives.as_ref();
        let num_negatives = negatives.map_or(0, |negatives| negatives.rows.len());
        PairsPlan {
            num_edges: self.ends.len() - num_negatives,
            num_negatives,
        }
    }

    /// The two nodes of a record; with a seed, those that it has in an epoch of training.
    fn of(&self, row: u32, seed: Option<u64>) -> [u32; 2] {
        if let (Some(seed), Some(negatives)) = (seed, &self.negatives)
            && negatives.drawn.contains(&row)
        {
            let seed = stream_seed(seed, Purpose::Negatives, u64::from(row));
            return negatives.from.draw(seed, |_| false);
        }
        self.ends[row as usize]
    }

    /// Some records; with a seed, as they are in an epoch of training.
    pub fn part(&self, rows: &[u32], seed: Option<u64>) -> PairsPart {
        let ends: Vec<[u32; 2]> = rows.iter().map(|row| self.of(*row, seed)).collect();
        let of_row = |row: &u32| {
            let first = *row as usize * self.width;
            &self.features[first..first + self.width]
        };
        PairsPart {
            ends: [0, 1].map(|end| ends.iter().map(|ends| ends[end]).collect()),
            features: rows.iter().flat_map(of_row).copied().collect(),
        }
    }

    /// Adds the nodes of some records to a sum.
    pub fn digest(&self, rows: &[u32], sum: &mut Sha256) {
        let ends = rows.iter().flat_map(|row| self.ends[*row as usize]);
        ends.for_each(|node| sum.update(node.to_le_bytes()));
        let features = self.part(rows, None).features;
        features.iter().for_each(|number| add(*number, sum));
    }

    /// The two nodes of a record, by their names.
    pub fn show(&self, names: &[String], row: usize) -> String {
        let [from, to] = self.ends[row].map(|node| names[node as usize].as_str());
        let edge = if self.is_directed { "->" } else { "-" };
        format!("{from} {edge} {to}")
    }
}

/// An edge in the form in which both directions are equal, unless they differ.
pub fn canonical([from, to]: [u32; 2], is_directed: bool) -> [u32; 2] {
    if is_directed {
        [from, to]
    } else {
        [from.min(to), from.max(to)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of 5 nodes.
    fn unlinked(is_directed: bool) -> Unlinked {
        Unlinked::new(5, (0..4).map(|at| [at, at + 1]), is_directed)
    }

    #[test]
    fn pairs_without_an_edge_are_drawn_once_each() {
        for (is_directed, num) in [(false, 6), (true, 16)] {
            let unlinked = unlinked(is_directed);
            assert_eq!(unlinked.num(), num);
            let drawn = unlinked.drawn(num as usize, 3);
            let pairs = drawn.iter().map(|pair| canonical(*pair, is_directed));
            let pairs: BTreeSet<_> = pairs.collect();
            assert_eq!(pairs.len(), num as usize);
            assert!(drawn.iter().all(|pair| unlinked.has(*pair)), "{drawn:?}");
            assert_eq!(unlinked.drawn(3, 3), drawn[..3]);
            assert_ne!(unlinked.drawn(3, 4), drawn[..3]);
        }
    }

    #[test]
    fn pairs_of_training_are_drawn_in_each_epoch() {
        let pairs = Pairs {
            ends: vec![[0, 1], [1, 2], [0, 2], [0, 3]],
            features: Vec::new(),
            width: 0,
            negatives: Some(Negatives::new(2..4, 2..3, unlinked(false))),
            names: Arc::new(NodeNames::new(None, 5, |_| None).unwrap()),
            is_directed: false,
            nodes: None,
        };
        let served = |seed| pairs.part(&[0, 2, 3], seed).ends;
        assert_eq!(served(None), [vec![0, 0, 0], vec![1, 2, 3]]);
        let mut drawn = BTreeSet::new();
        for seed in 0..40 {
            let [from, to] = served(Some(seed));
            assert_eq!(([from[0], from[2]], [to[0], to[2]]), ([0, 0], [1, 3]));
            assert!(from[1] != to[1] && from[1].abs_diff(to[1]) > 1);
            drawn.insert(canonical([from[1], to[1]], false));
            assert_eq!(served(Some(seed)), [from, to]);
        }
        assert_eq!(drawn.len(), 6);
        let plan = pairs.plan();
        assert_eq!((plan.num_edges, plan.num_negatives), (2, 2));
    }
}
