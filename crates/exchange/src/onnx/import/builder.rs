//! Layers of a network as they are found in a graph, with their weights.

use std::collections::{BTreeMap, BTreeSet};

use runner_core::check::network::{Network, Shape, append};
use runner_core::diagnostic::Span;
use runner_core::show::show_bytes;
use runner_core::spec::document::Table;
use runner_core::spec::model::expand::MAX_LAYERS;
use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::model::layer_spec::{LayerSpec, Place, Source};
use runner_core::spec::model::name::unfit;

use super::refused::{Read, Refused};
use super::text;
use crate::tensors::{NamedTensor, TensorError, Tensors};

/// The most bytes that a layer's output may take for one item. A small file must not be able to fill the memory, which the
/// example that is computed with the network would.
const MAX_OUTPUT: u64 = 1 << 30;
/// The same for the outputs of all layers together.
const MAX_OUTPUTS: u64 = 1 << 33;
/// The most characters of a name; those of a graph may have any number.
const MAX_NAME: usize = 200;

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

    /// Whether a layer has a source as an input.
    pub fn is_input(&self, source: Source) -> bool {
        self.specs.iter().any(|spec| spec.inputs.contains(&source))
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
        // Shapes only: nothing of this size has been computed.
        let shape = self.network.layers.last().map(|layer| &layer.shape[..]);
        if let Err(much) = fits_memory(shape.unwrap_or_default()) {
            self.network.layers.pop();
            return Err(much);
        }
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
        let is_named = self.is_named(&needed);
        let names = self.names(&needed, &is_named);
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
        let mut specs = Vec::new();
        let mut outputs = 0_u64;
        for (place, at) in needed.iter().enumerate() {
            let mut spec = self.specs[*at].clone();
            spec.name.clone_from(&names[place]);
            for input in &mut spec.inputs {
                if let Source::Layer(from) = input {
                    *from = new[from];
                }
            }
            append(&mut network, &spec, &[]).map_err(|refused| refused.message.clone())?;
            outputs = outputs.saturating_add(bytes_of(&network.layers[place].shape));
            if outputs > MAX_OUTPUTS {
                return Err(format!(
                    "the outputs of its layers take more than {} for an item, and the example of its outputs is computed in memory",
                    show_bytes(MAX_OUTPUTS)
                )
                .into());
            }
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
            specs.push(spec);
        }
        is_written(&lines, &specs, &is_named)?;
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

    /// Unique names that an experiment file may have.
    fn names(&self, needed: &[usize], is_named: &[bool]) -> Vec<String> {
        // Layers without a name in the file are numbered by type.
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        for (at, _) in needed.iter().zip(is_named).filter(|(_, is)| !**is) {
            let kind = self.specs[*at].kind.type_name();
            let number = numbers.entry(kind.clone()).or_default();
            *number += 1;
            taken.insert(format!("{kind}_{number}"));
        }
        let names = needed.iter().map(|at| {
            let allowed = |c: char| {
                if c.is_ascii_alphanumeric() || "_-.".contains(c) {
                    c
                } else {
                    '_'
                }
            };
            let name: String = self.specs[*at]
                .name
                .chars()
                .map(allowed)
                .take(MAX_NAME)
                .collect();
            let name = name.trim_matches(|c| c == '.' || c == '_');
            let name = match unfit(name) {
                None => name.to_owned(),
                Some(_) if name.is_empty() => "layer".to_owned(),
                Some(_) => format!("layer_{name}"),
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

/// Whether an experiment file with these lines has these layers: what it says is what was imported.
fn is_written(lines: &[String], specs: &[LayerSpec], is_named: &[bool]) -> Read {
    let read = text::read(lines).map_err(|wrong| {
        format!(
            "its network cannot be written as an experiment file, which would be refused: {wrong}"
        )
    })?;
    let is_same = |(at, (read, spec)): (usize, (&LayerSpec, &LayerSpec))| {
        let has_name = !is_named[at] || read.name == spec.name;
        read.kind == spec.kind && read.inputs == spec.inputs && has_name
    };
    let mut both = read.iter().zip(specs).enumerate();
    match both.find(|pair| !is_same(*pair)) {
        None if read.len() == specs.len() => Ok(()),
        Some((_, (_, spec))) => Err(format!(
            "its layer `{}` ({}) cannot be written as an experiment file",
            spec.name,
            spec.kind.type_name()
        )
        .into()),
        None => Err("its layers cannot be written as an experiment file".into()),
    }
}

/// The bytes of an item of a shape in 32-bit floats.
fn bytes_of(shape: &[usize]) -> u64 {
    let sizes = shape.iter().map(|size| *size as u64);
    sizes.fold(4, u64::saturating_mul)
}

/// Refuses an item of a shape that is too large to compute with.
pub fn fits_memory(shape: &[usize]) -> Read {
    let bytes = bytes_of(shape);
    if bytes <= MAX_OUTPUT {
        return Ok(());
    }
    Err(format!(
        "an item of shape {shape:?} takes {}, and at most {} are computed",
        show_bytes(bytes),
        show_bytes(MAX_OUTPUT)
    )
    .into())
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
