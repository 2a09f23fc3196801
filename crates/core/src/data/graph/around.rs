//! The nodes that a batch is computed from: all that its messages come from, or some of them that are drawn
//! (Hamilton, Ying and Leskovec, 2017).

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand::seq::index;

use super::{Edges, NodeGraph, Others};
use crate::data::order::{Purpose, stream_seed};

impl NodeGraph {
    /// A part of the graph for the nodes of a batch, and their positions in it: of the edges that end at each of them, at
    /// most as many as `neighbors` has for the first round; of those that end at their neighbors, as many as for the
    /// second; and so on. Which ones is a function of the seed and the node.
    pub fn drawn(&self, rows: &[u32], seed: u64) -> (Self, Vec<u32>) {
        self.part(rows, |node, round, edges| {
            let ending = self.edges.ending_at(node);
            let (all, most) = (ending.len(), self.neighbors[round]);
            if all <= most {
                edges.extend(ending);
                return;
            }
            let seed = stream_seed(seed, Purpose::Neighbors, u64::from(node));
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let drawn = index::sample(&mut rng, all, most);
            edges.extend(drawn.into_iter().map(|at| ending.start + at));
        })
    }

    /// The part of the graph from which the outputs of the nodes of a batch are those of the whole graph, and their
    /// positions in it.
    pub fn around(&self, rows: &[u32]) -> (Self, Vec<u32>) {
        self.part(rows, |node, _, edges| {
            edges.extend(self.edges.ending_at(node));
        })
    }

    /// The nodes that are reached from those of a batch in as many rounds as there are `neighbors`, and the positions of the
    /// batch in them. `draw` adds edges that end at a node, in a round.
    fn part(
        &self,
        rows: &[u32],
        mut draw: impl FnMut(u32, usize, &mut Vec<usize>),
    ) -> (Self, Vec<u32>) {
        let sorted = |mut nodes: Vec<u32>| {
            nodes.sort_unstable();
            nodes.dedup();
            nodes
        };
        let mut nodes = sorted(rows.to_vec());
        let mut newest = nodes.clone();
        let mut chosen = Vec::new();
        for round in 0..self.neighbors.len() {
            let first = chosen.len();
            for node in &newest {
                draw(*node, round, &mut chosen);
            }
            let sources = chosen[first..].iter();
            let sources = sorted(sources.map(|at| self.edges.sources[*at] as u32).collect());
            let is_new = |node: &u32| nodes.binary_search(node).is_err();
            newest = sources.into_iter().filter(is_new).collect();
            nodes = sorted([nodes, newest.clone()].concat());
        }
        // In the order of the whole graph, so that sums have the same one.
        chosen.sort_unstable();
        let position = |node: u32| {
            let found = nodes.binary_search(&node);
            found.expect("a part has the nodes of its batch and the ends of its edges")
        };
        let place = |node: i32| position(node as u32) as i32;
        let (sources, targets) = (&self.edges.sources, &self.edges.targets);
        let edges = Edges {
            num_nodes: nodes.len(),
            sources: chosen.iter().map(|at| place(sources[*at])).collect(),
            targets: chosen.iter().map(|at| place(targets[*at])).collect(),
            weights: chosen.iter().map(|at| self.edges.weights[*at]).collect(),
            loops: nodes
                .iter()
                .map(|node| self.edges.loops[*node as usize])
                .collect(),
            width: self.edges.width,
            features: (chosen.iter())
                .flat_map(|at| self.edges.features_of(*at))
                .copied()
                .collect(),
            loop_features: (nodes.iter())
                .flat_map(|node| self.edges.loop_features_of(*node as usize))
                .copied()
                .collect(),
            others: Some(self.others(&nodes, &chosen)),
        };
        let features = |node: &u32| {
            let first = *node as usize * self.width;
            &self.features[first..first + self.width]
        };
        let part = Self {
            edges,
            features: nodes.iter().flat_map(features).copied().collect(),
            width: self.width,
            members: None,
            neighbors: Vec::new(),
        };
        let positions = rows.iter().map(|row| position(*row) as u32).collect();
        (part, positions)
    }

    /// What the edges tell that are not among the chosen ones, of some nodes.
    fn others(&self, nodes: &[u32], chosen: &[usize]) -> Others {
        let mut others = Others {
            weights: Vec::with_capacity(nodes.len()),
            scales: Vec::with_capacity(nodes.len()),
        };
        for node in nodes {
            let ending = self.edges.ending_at(*node);
            let here = |end: usize| chosen.partition_point(|edge| *edge < end);
            let num_here = here(ending.end) - here(ending.start);
            others.scales.push(match num_here {
                0 => 1.0,
                num => ending.len() as f64 / num as f64,
            });
            let weights = self.edges.weights[ending].iter();
            others.weights.push(weights.sum());
        }
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::graph::Edge;

    /// A ring of nodes that each get messages from the 6 before them, with weights, and an edge of node 0 to itself.
    fn ring(neighbors: &[usize]) -> NodeGraph {
        let edge = |from: u32, to: u32| Edge {
            from,
            to,
            weight: f64::from(1 + from % 3),
        };
        let mut edges: Vec<Edge> = (0..40)
            .flat_map(|to| (1..=6).map(move |back| edge((to + 40 - back) % 40, to)))
            .collect();
        edges.push(edge(0, 0));
        NodeGraph {
            edges: Edges::new(40, &edges, (&[], 0), true).unwrap(),
            features: (0..80).map(f64::from).collect(),
            width: 2,
            members: None,
            neighbors: neighbors.to_vec(),
        }
    }

    /// The node that each position of a part stands for, by its features.
    fn nodes(part: &NodeGraph) -> Vec<usize> {
        part.features
            .chunks(2)
            .map(|of| of[0] as usize / 2)
            .collect()
    }

    #[test]
    fn some_edges_of_each_node_are_drawn() {
        let graph = ring(&[3, 2]);
        let rows = [20, 0, 20];
        let (part, positions) = graph.drawn(&rows, 1);
        let nodes = nodes(&part);
        let found: Vec<_> = positions
            .iter()
            .map(|at| nodes[*at as usize] as u32)
            .collect();
        assert_eq!(found, rows);
        let edges = &part.edges;
        let ends = edges.targets.iter().map(|at| nodes[*at as usize]);
        let ends: Vec<_> = ends.collect();
        let ending = |node| ends.iter().filter(|end| **end == node).count();
        assert_eq!((ending(0), ending(20)), (3, 3));
        let mut of_neighbors = nodes.iter().filter(|node| ![0, 20].contains(*node));
        assert!(of_neighbors.clone().any(|node| ending(*node) == 2));
        assert!(of_neighbors.all(|node| [0, 2].contains(&ending(*node))));
        assert!(nodes.len() <= 2 * (1 + 3 + 6) && edges.sources.len() <= 2 * (3 + 6));
        // They are edges of the graph, with their weights, in its order.
        let mut before = 0;
        for (at, source) in edges.sources.iter().enumerate() {
            let (from, to) = (nodes[*source as usize], ends[at]);
            let ending = graph.edges.ending_at(to as u32);
            let place = ending
                .clone()
                .find(|at| graph.edges.sources[*at] as usize == from);
            let place = place.expect("an edge of the graph");
            assert!(at == 0 || place > before);
            before = place;
            assert_eq!(edges.weights[at], graph.edges.weights[place]);
        }
        assert_eq!(
            edges.loops[nodes.iter().position(|node| *node == 0).unwrap()],
            Some(1.0)
        );
    }

    #[test]
    fn what_is_drawn_depends_on_the_seed_and_not_on_the_batch() {
        let graph = ring(&[3]);
        let of = |part: &NodeGraph, node: usize| {
            let nodes = nodes(part);
            let ends = part.edges.targets.iter().zip(&part.edges.sources);
            let ending = ends.filter(|(target, _)| nodes[**target as usize] == node);
            ending
                .map(|(_, source)| nodes[*source as usize])
                .collect::<Vec<_>>()
        };
        let alone = graph.drawn(&[7], 1).0;
        let together = graph.drawn(&[3, 30, 7], 1).0;
        assert_eq!(of(&alone, 7), of(&together, 7));
        let drawn: std::collections::BTreeSet<_> = (1..30)
            .map(|seed| of(&graph.drawn(&[7], seed).0, 7))
            .collect();
        assert!(drawn.len() > 10, "{drawn:?}");
    }

    #[test]
    fn other_edges_are_known_by_their_weights_and_number() {
        let graph = ring(&[6, 2]);
        let drawn = graph.drawn(&[20], 1).0;
        let others = drawn.edges.others.as_ref().unwrap();
        for (at, node) in nodes(&drawn).into_iter().enumerate() {
            let weights = &graph.edges.weights[graph.edges.ending_at(node as u32)];
            let sum: f64 = weights.iter().sum();
            assert_eq!(others.weights[at], sum);
            // All edges of the batch, 2 of 6 of its neighbors, and none of the outermost.
            let expected = if (14..20).contains(&node) { 3.0 } else { 1.0 };
            assert_eq!(others.scales[at], expected);
        }
    }

    #[test]
    fn all_edges_are_taken_where_there_are_not_more() {
        let graph = ring(&[6, 6]);
        let drawn = graph.drawn(&[20], 1);
        assert_eq!(nodes(&drawn.0), (8..=20).collect::<Vec<_>>());
        assert_eq!(drawn, graph.around(&[20]));
    }
}
