//! The two networks of an adversarial training, as parts of one list of layers.

use std::ops::Range;

use super::{Layer, Network, Part, Shape, Weights};
use crate::spec::adversarial::{AdversarialSpec, CONDITION};
use crate::spec::model::layer::LayerKind;

/// The layers of a generator and of a discriminator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Those that make an item from noise.
    pub generator: Range<usize>,
    /// Those that score an item.
    pub discriminator: Range<usize>,
    /// How many numbers an item is made from.
    pub noise: usize,
    /// The shape of what an item is generated for, which both networks take.
    pub condition: Option<Vec<usize>>,
}

/// The layer or block of a name among the names of layers, if its layers follow one another.
pub fn named<'a>(names: impl Iterator<Item = &'a str>, name: &str) -> Option<Range<usize>> {
    let is_inside = |layer: &str| {
        let inside = layer.strip_prefix(name);
        inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let inside: Vec<usize> = names
        .enumerate()
        .filter(|(_, layer)| is_inside(layer))
        .map(|(at, _)| at)
        .collect();
    let range = *inside.first()?..inside.last()? + 1;
    (range.len() == inside.len()).then_some(range)
}

/// A network that is a part of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Alone {
    /// The network.
    pub network: Network,
    /// The index in the other network of each of its layers.
    pub places: Vec<usize>,
}

impl Network {
    /// The generator of a pair as a network whose items are the numbers that it makes an item from; in a conditional
    /// pair, its named inputs are `noise` and `condition`.
    pub fn generator(&self, pair: &Pair) -> Alone {
        let is_noise = |at: &usize| matches!(self.layers[*at].kind, LayerKind::Noise { .. });
        let places: Vec<usize> = pair.generator.clone().filter(|at| !is_noise(at)).collect();
        let place = |at: usize| places.binary_search(&at).ok();
        let layers: Vec<Layer> = places
            .iter()
            .map(|at| {
                let mut layer = self.layers[*at].clone();
                for input in &mut layer.inputs {
                    input.layer = input.layer.and_then(place);
                    input.part = match (input.layer, input.part) {
                        (Some(_), _) => None,
                        (None, Some(_)) => Some(1),
                        (None, None) => pair.condition.is_some().then_some(0),
                    };
                }
                // Weights are shared within the generator alone.
                layer.weights = layer.weights.map(|weights| match weights {
                    Weights::Shared(owner) => Weights::Shared(place(owner).unwrap_or(owner)),
                    Weights::Tied(owner) => Weights::Tied(place(owner).unwrap_or(owner)),
                });
                layer
            })
            .collect();
        let sum = |of: fn(&Layer) -> u64| layers.iter().map(of).sum();
        let part = |name: &str, dims: &[usize]| Part {
            name: name.into(),
            shape: Shape::numbers(dims),
        };
        let (parts, condition) = match &pair.condition {
            Some(condition) => {
                let parts = vec![part("noise", &[pair.noise]), part(CONDITION, condition)];
                (parts, condition.as_slice())
            }
            None => (Vec::new(), &[0][..]),
        };
        let network = Self {
            num_parameters: sum(|layer| layer.num_parameters),
            activations_per_item: sum(|layer| layer.activations_per_item),
            multiply_adds_per_item: sum(|layer| layer.multiply_adds_per_item),
            items: Shape::numbers(&[pair.noise + condition.iter().product::<usize>()]),
            parts,
            graph: None,
            layers,
        };
        Alone { network, places }
    }

    /// The parts that a strategy names, which were checked when the network was planned.
    pub fn pair(&self, spec: &AdversarialSpec) -> Option<Pair> {
        let part = |name: &str| {
            let names = self.layers.iter().map(|layer| layer.name.as_str());
            named(names, name)
        };
        let noise = self.layers.iter().find_map(|layer| match layer.kind {
            LayerKind::Noise { size } => Some(size),
            _ => None,
        });
        Some(Pair {
            generator: part(&spec.generator)?,
            discriminator: part(&spec.discriminator)?,
            noise: noise?,
            condition: {
                let condition = self.parts.first().filter(|_| spec.conditional);
                condition.map(|part| part.shape.dims.clone())
            },
        })
    }
}
