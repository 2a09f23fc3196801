//! The two networks of an adversarial training, as parts of one list of layers.

use std::ops::Range;

use super::Network;
use crate::spec::adversarial::AdversarialSpec;
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

impl Network {
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
        })
    }
}
