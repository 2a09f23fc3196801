//! Layers of a network as they are found in a graph, with their weights.

use std::collections::{BTreeMap, BTreeSet};

use runner_core::check::network::{Network, Shape, append};
use runner_core::diagnostic::Span;
use runner_core::spec::document::Table;
use runner_core::spec::model::expand::MAX_LAYERS;
use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::model::layer_spec::{LayerSpec, Place, Source};

use super::refused::{Read, Refused};
use super::text;
use crate::tensors::{NamedTensor, TensorError, Tensors};

/// The tensors of a layer by PyTorch's paths inside it, with shapes and values.
pub type Weights = BTreeMap<&'static str, (Vec<usize>, Vec<f32>)>;

/// Layers with weights; unused ones are removed at the end.
pub struct Builder {
    specs: Vec<LayerSpec>,
    network: Network,
    weights: BTreeMap<usize, Weights>,
}

/// The layers that a graph became.
pub struct Built {
    /// One per line, in the syntax of an experiment file.
    pub lines: Vec<String>,
    /// The same, laid out.
    pub network: Network,
    /// Their weights.
    pub tensors: Tensors,
}

impl Builder {
    /// No layers over items.
    pub fn new(items: Shape) -> Self {
        Self {
            specs: Vec::new(),
            network: Network {
                num_parameters: 0,
                activations_per_item: 0,
                multiply_adds_per_item: 0,
                items,
                parts: Vec::new(),
                graph: None,
                layers: Vec::new(),
            },
            weights: BTreeMap::new(),
        }
    }

    /// The shape of an item of a source's output.
    pub fn dims(&self, source: Source) -> &[usize] {
        match source {
            Source::Items | Source::Part(_) => &self.network.items.dims,
            Source::Layer(at) => &self.network.layers[at].shape,
        }
    }

    /// Whether the output of a source is tokens.
    pub fn is_tokens(&self, source: Source) -> bool {
        source == Source::Items && self.network.items.vocabulary.is_some()
    }

    /// The layer of a source with its inputs.
    pub fn layer(&self, source: Source) -> Option<(&LayerKind, &[Source])> {
        match source {
            Source::Items | Source::Part(_) => None,
            Source::Layer(at) => Some((&self.specs[at].kind, &self.specs[at].inputs)),
        }
    }

    /// The requested name for the layer of a source.
    pub fn name(&self, source: Source) -> &str {
        match source {
            Source::Items | Source::Part(_) => "input",
            Source::Layer(at) => &self.specs[at].name,
        }
    }

    /// The weights of the layer of a source.
    pub fn weights(&self, source: Source) -> Option<&Weights> {
        match source {
            Source::Items | Source::Part(_) => None,
            Source::Layer(at) => self.weights.get(&at),
        }
    }

    /// The same, mutable, with the layer's settings. The shape of its output must not change.
    pub fn change(&mut self, source: Source, change: impl FnOnce(&mut LayerKind, &mut Weights)) {
        if let Source::Layer(at) = source {
            change(
                &mut self.specs[at].kind,
                self.weights.entry(at).or_default(),
            );
            self.network.layers[at].kind = self.specs[at].kind.clone();
        }
    }

    /// Adds a layer; its name is made unique at the end. The error says why it cannot be added.
    pub fn add(&mut self, name: &str, kind: LayerKind, inputs: &[Source]) -> Read<Source> {
        // Most layers that nothing needs in the end are parts of patterns, of which a few become one layer.
        if self.specs.len() >= 4 * MAX_LAYERS {
            return Err(too_many());
        }
        let spec = LayerSpec {
            weights: None,
            name: name.to_owned(),
            kind,
            inputs: inputs.to_vec(),
            masks: Vec::new(),
            freeze: false,
            table: Table::default(),
            place: Place {
                span: Span::default(),
                uses: Vec::new(),
                preset: None,
            },
        };
        append(&mut self.network, &spec, &[]).map_err(|refused| refused.message.clone())?;
        self.specs.push(spec);
        Ok(Source::Layer(self.specs.len() - 1))
    }

    /// Adds a layer named after its type, unless one of the last layers computes the same.
    pub fn plain(&mut self, kind: LayerKind, inputs: &[Source]) -> Read<Source> {
        const RECENT: usize = 16;
        let is_drawn = matches!(kind, LayerKind::Dropout { .. });
        let mut recent = (0..self.specs.len()).rev().take(RECENT);
        let same = recent.find(|at| {
            let spec = &self.specs[*at];
            spec.kind == kind && spec.inputs == inputs && !self.weights.contains_key(at)
        });
        if let Some(at) = same.filter(|_| !is_drawn) {
            return Ok(Source::Layer(at));
        }
        self.add(&kind.type_name(), kind, inputs)
    }

    /// Adds a tensor to the layer of a source.
    pub fn give(
        &mut self,
        source: Source,
        path: &'static str,
        shape: Vec<usize>,
        values: Vec<f32>,
    ) {
        if let Source::Layer(at) = source {
            let weights = self.weights.entry(at).or_default();
            weights.insert(path, (shape, values));
        }
    }

    /// The network that ends with a source.
    pub fn finish(mut self, output: Source) -> Read<Built> {
        let output = match output {
            Source::Items | Source::Part(_) => self.plain(LayerKind::Identity, &[output])?,
            layer => layer,
        };
        let needed = self.needed(output);
        if needed.len() > MAX_LAYERS {
            return Err(too_many());
        }
        let new: BTreeMap<usize, usize> = needed.iter().copied().zip(0..).collect();
        let names = self.names(&needed);
        let mut network = Network {
            layers: Vec::new(),
            num_parameters: 0,
            activations_per_item: 0,
            multiply_adds_per_item: 0,
            items: self.network.items.clone(),
            parts: Vec::new(),
            graph: None,
        };
        let (mut lines, mut tensors) = (Vec::new(), Tensors::new());
        let is_named = self.is_named(&needed);
        for (place, at) in needed.iter().enumerate() {
            let mut spec = self.specs[*at].clone();
            spec.name.clone_from(&names[place]);
            for input in &mut spec.inputs {
                if let Source::Layer(from) = input {
                    *from = new[from];
                }
            }
            append(&mut network, &spec, &[]).map_err(|refused| refused.message.clone())?;
            lines.push(line(&spec, place, &names, is_named[place]));
            for (path, (shape, values)) in self.weights.remove(at).unwrap_or_default() {
                let name = format!("{}.{path}", spec.name);
                if values.iter().any(|value| !value.is_finite()) {
                    return Err(format!("its `{name}` has values that are infinite or NaN").into());
                }
                let tensor = NamedTensor::from_f32s(name, shape, &values);
                tensors
                    .push(tensor)
                    .map_err(|e: TensorError| e.to_string())?;
            }
        }
        Ok(Built {
            lines,
            network,
            tensors,
        })
    }

    /// The layers that an output needs, in order.
    fn needed(&self, output: Source) -> Vec<usize> {
        let mut needed = BTreeSet::new();
        let mut queue = vec![output];
        while let Some(source) = queue.pop() {
            if let Source::Layer(at) = source
                && needed.insert(at)
            {
                queue.extend(&self.specs[at].inputs);
            }
        }
        needed.into_iter().collect()
    }

    /// Whether each layer needs its name in the file: for its weights, or because a later layer refers to it.
    fn is_named(&self, needed: &[usize]) -> Vec<bool> {
        let mut is_named: Vec<bool> = needed
            .iter()
            .map(|at| self.weights.contains_key(at))
            .collect();
        for (place, at) in needed.iter().enumerate() {
            let inputs = &self.specs[*at].inputs;
            let previous = place
                .checked_sub(1)
                .map(|before| Source::Layer(needed[before]));
            if inputs.len() == 1 && (Some(inputs[0]) == previous || inputs[0] == Source::Items) {
                continue;
            }
            for input in inputs {
                if let Source::Layer(from) = input
                    && let Ok(from) = needed.binary_search(from)
                {
                    is_named[from] = true;
                }
            }
        }
        is_named
    }

    /// Unique names, none of them reserved.
    fn names(&self, needed: &[usize]) -> Vec<String> {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let names = needed.iter().map(|at| {
            let allowed = |c: char| {
                if c.is_ascii_alphanumeric() || "_-.".contains(c) {
                    c
                } else {
                    '_'
                }
            };
            let name: String = self.specs[*at].name.chars().map(allowed).collect();
            let name = name.trim_matches(|c| c == '.' || c == '_');
            let is_reserved = name.is_empty() || ["input", "previous"].contains(&name);
            let name = if is_reserved {
                format!("layer_{name}")
            } else {
                name.to_owned()
            };
            let mut unique = name.clone();
            let mut number = 1;
            while !taken.insert(unique.clone()) {
                number += 1;
                unique = format!("{name}_{number}");
            }
            unique
        });
        names.collect()
    }
}

/// A layer in the list of an experiment file.
fn line(spec: &LayerSpec, place: usize, names: &[String], is_named: bool) -> String {
    let is_plain = match spec.inputs.as_slice() {
        [Source::Items] => place == 0,
        [Source::Layer(from)] => from + 1 == place,
        _ => false,
    };
    let name = if is_named {
        format!(", name = {:?}", spec.name)
    } else {
        String::new()
    };
    let inputs = spec.inputs.iter().map(|input| match input {
        Source::Items | Source::Part(_) => "\"input\"".to_owned(),
        Source::Layer(from) => format!("{:?}", names[*from]),
    });
    let inputs = if is_plain {
        String::new()
    } else {
        format!(", inputs = [{}]", inputs.collect::<Vec<_>>().join(", "))
    };
    let keys = text::keys(&spec.kind);
    let (kind, rest) = keys
        .split_once(", ")
        .map_or((keys.as_str(), ""), |(a, b)| (a, b));
    let rest = if rest.is_empty() {
        String::new()
    } else {
        format!(", {rest}")
    };
    format!("{{ {kind}{name}{rest}{inputs} }}")
}

/// An experiment file with more layers would be refused.
fn too_many() -> Refused {
    format!("with it, the network has more than {MAX_LAYERS} layers").into()
}
