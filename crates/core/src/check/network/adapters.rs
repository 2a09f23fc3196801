//! Adapters in a planned network: which matrices have one, and what is frozen beside them.

use serde::{Deserialize, Serialize};

use super::{Layer, Network, cost};
use crate::check::matches;
use crate::spec::adapters::{AdapterSpec, Base};

/// Two trained matrices whose product is added to a frozen one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adapter {
    /// The path of the frozen matrix inside its layer.
    pub path: String,
    /// Its inputs.
    pub inputs: usize,
    /// Its outputs.
    pub outputs: usize,
    /// The outputs of the first matrix and inputs of the second.
    pub rank: usize,
    /// The factor of their product.
    pub scale: f64,
    /// The probability with which inputs of the first matrix are dropped in training.
    pub dropout: f64,
}

impl Adapter {
    /// The paths of both matrices inside the layer, with their numbers of elements.
    fn parameters(&self) -> [(String, u64); 2] {
        let count = |size: usize| (size as u64).saturating_mul(self.rank as u64);
        [
            (format!("{}.lora.a", self.path), count(self.inputs)),
            (format!("{}.lora.b", self.path), count(self.outputs)),
        ]
    }
}

impl Network {
    /// Whether weights are adapted; everything else is frozen then, with few exceptions.
    pub fn has_adapters(&self) -> bool {
        self.layers.iter().any(|layer| !layer.adapters.is_empty())
    }

    /// The same with adapters. Patterns that match nothing, or what cannot be adapted, are refused elsewhere.
    pub fn adapted(mut self, specs: &[AdapterSpec]) -> Self {
        if specs.is_empty() {
            return self;
        }
        let base = specs.iter().find_map(|spec| spec.base).unwrap_or_default();
        for layer in &mut self.layers {
            let path_of = |path: &str| format!("{}.{path}", layer.name);
            let adapters = layer.matrices().into_iter().filter_map(|(path, sizes)| {
                let user_path = path_of(&path);
                let mut specs = specs.iter();
                let spec = specs.find(|spec| matches(&spec.parameters, &user_path))?;
                let [inputs, outputs] = sizes;
                Some(Adapter {
                    path,
                    inputs,
                    outputs,
                    rank: spec.rank,
                    scale: spec.scale(),
                    dropout: spec.dropout,
                })
            });
            let adapters = adapters.collect();
            let frozen = layer.base_parameters().into_iter().map(|(path, _)| path);
            let frozen = frozen.filter(|path| {
                let path = path_of(path);
                !specs.iter().any(|spec| matches(&spec.train, &path))
            });
            layer.frozen = frozen.collect();
            layer.adapters = adapters;
            layer.base = base;
            let [parameters, products] = layer.counts_of_adapters();
            layer.num_parameters = layer.num_parameters.saturating_add(parameters);
            layer.multiply_adds_per_item = layer.multiply_adds_per_item.saturating_add(products);
        }
        self.counted()
    }

    /// The bytes that matrices held in fewer bits save, and those of the largest one as it is multiplied.
    pub fn held_bytes(&self, float: u64) -> [u64; 2] {
        let held = self.layers.iter().flat_map(|layer| {
            let held = layer.held().into_iter();
            held.map(|(_, sizes)| [Base::Full, layer.base].map(|base| base.num_bytes(sizes, float)))
        });
        held.fold([0; 2], |[saved, largest], [full, few]: [u64; 2]| {
            let saved = saved.saturating_add(full.saturating_sub(few));
            [saved, largest.max(full)]
        })
    }

    /// The same when its adapters are added to its weights.
    pub fn merged(mut self) -> Self {
        for layer in &mut self.layers {
            let [parameters, products] = layer.counts_of_adapters();
            layer.num_parameters = layer.num_parameters.saturating_sub(parameters);
            layer.multiply_adds_per_item = layer.multiply_adds_per_item.saturating_sub(products);
            layer.adapters.clear();
            layer.frozen.clear();
            layer.base = Base::Full;
        }
        self.counted()
    }

    /// The same with the sums over its layers.
    fn counted(mut self) -> Self {
        let layers = self.layers.iter();
        let sum = |of: fn(&Layer) -> u64| layers.clone().map(of).fold(0, u64::saturating_add);
        self.num_parameters = sum(|layer| layer.num_parameters);
        self.multiply_adds_per_item = sum(|layer| layer.multiply_adds_per_item);
        self
    }
}

impl Layer {
    /// Paths of its own matrices that can be adapted, with their inputs and outputs.
    pub fn matrices(&self) -> Vec<(String, [usize; 2])> {
        let mut all = cost::matrices(&self.kind, self.values(), &self.shape);
        all.retain(|(path, _)| self.owns(path));
        all
    }

    /// Those of its matrices that are held in fewer bits, by path.
    pub fn held(&self) -> Vec<(String, [usize; 2])> {
        if self.base.is_full() {
            return Vec::new();
        }
        let mut all = self.matrices();
        all.retain(|(path, _)| self.frozen.contains(path));
        all
    }

    /// Whether one of its parameters, by its path in the network, is frozen whatever the groups of the optimizer say.
    pub fn freezes(&self, path: &str) -> bool {
        let inner = path.strip_prefix(self.name.as_str());
        let inner = inner.and_then(|path| path.strip_prefix('.'));
        self.freeze || inner.is_some_and(|inner| self.frozen.iter().any(|path| path == inner))
    }

    /// The matrices of an adapter come after the one that they are added to.
    pub(super) fn with_adapters(&self, base: Vec<(String, u64)>) -> Vec<(String, u64)> {
        if self.adapters.is_empty() {
            return base;
        }
        let mut all = Vec::with_capacity(base.len() + 2 * self.adapters.len());
        for parameter in base {
            let mut adapters = self.adapters.iter();
            let adapter = adapters.find(|adapter| adapter.path == parameter.0);
            all.push(parameter);
            all.extend(adapter.into_iter().flat_map(Adapter::parameters));
        }
        all
    }

    /// The parameters of its adapters, and their multiply-adds for one item.
    fn counts_of_adapters(&self) -> [u64; 2] {
        let adapters = self.adapters.iter().flat_map(Adapter::parameters);
        let num = adapters.fold(0, |sum: u64, (_, count)| sum.saturating_add(count));
        // A layer without adapters may have no input.
        let positions = if num == 0 { 0 } else { self.positions() };
        [num, num.saturating_mul(positions)]
    }

    /// Values of one item that adapters keep for the backward pass: the inputs of the second matrix and, with dropout,
    /// those of the first with the mask.
    pub(super) fn kept_by_adapters(&self) -> u64 {
        let positions = self.positions();
        let kept = self.adapters.iter().map(|adapter| {
            let dropped = 2 * adapter.inputs * (adapter.dropout > 0.0) as usize;
            positions.saturating_mul((adapter.rank + dropped) as u64)
        });
        kept.fold(0, u64::saturating_add)
    }

    /// The vectors in one item of its input.
    fn positions(&self) -> u64 {
        let dims = &self.inputs[0].shape.dims;
        let sizes = dims[..dims.len().saturating_sub(1)].iter();
        sizes.fold(1, |product, size| product.saturating_mul(*size as u64))
    }
}
