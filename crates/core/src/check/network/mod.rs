//! The planned network of a trial: every layer with its input and output shapes.
//!
//! Nothing here needs a device. The tests of `train` check the numbers against Burn.

pub mod adapters;
mod attention;
pub mod axes;
mod cost;
mod documents;
pub mod einsum;
pub mod examples;
mod graphs;
pub mod heads;
mod joins;
pub mod kernels;
pub mod masks;
mod memory;
pub mod pair;
pub mod portable;
mod samples;
pub mod segments;
mod shape;
mod share;
pub mod windows;

use serde::{Deserialize, Serialize};

use crate::data::{GraphPlan, InputPlan};
use crate::diagnostic::Diagnostic;
use crate::spec::adapters::Base;
use crate::spec::backend::{Arithmetic, Kernels};
use crate::spec::model::layer::LayerKind;
use crate::spec::model::layer_spec::{LayerSpec, MaskKey, Source, Weights};
use crate::spec::model::parametrization::Parametrization;
use adapters::Adapter;
pub use documents::{Documents, mixes_documents};
use heads::Head;
use shape::Mismatch;

/// A network whose shapes are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Numbers that training changes, or could change if they were not frozen.
    pub num_parameters: u64,
    /// Values that one item's forward pass keeps for the backward pass.
    pub activations_per_item: u64,
    /// Multiply-adds of one item's forward pass in matrix products and convolutions.
    pub multiply_adds_per_item: u64,
    /// The input of the first layer; of several named inputs a row of all their values.
    pub items: Shape,
    /// The named inputs; empty if there is a single one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The graph whose nodes the items are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphPlan>,
    /// The layers; each uses outputs of earlier ones, and the last one computes the network's output.
    pub layers: Vec<Layer>,
}

/// A layer with its shapes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// Its name, unique in the network.
    pub name: String,
    /// Its function.
    pub kind: LayerKind,
    /// Where its inputs come from, and then its masks.
    pub inputs: Vec<Input>,
    /// The keys of its masks: the last inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masks: Vec<MaskKey>,
    /// The documents in an item, if it treats each on its own: they are its last input, after the masks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents: Option<Documents>,
    /// Shape of its output for one item.
    pub shape: Vec<usize>,
    /// Whether its weights are frozen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub freeze: bool,
    /// The layer whose weights it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
    /// What is added to its matrices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adapters: Vec<Adapter>,
    /// Paths inside it of the parameters that are frozen because the network has adapters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frozen: Vec<String>,
    /// How its frozen matrices are held.
    #[serde(default, skip_serializing_if = "Base::is_full")]
    pub base: Base,
    /// Number of its own weights.
    pub num_parameters: u64,
    /// Values that one item's forward pass keeps.
    pub activations_per_item: u64,
    /// Multiply-adds for one item.
    pub multiply_adds_per_item: u64,
    /// Which kernels compute it: not a part of the network, but of how it is built.
    #[serde(skip)]
    pub kernels: Kernels,
    /// How it rounds: as above.
    #[serde(skip)]
    pub arithmetic: Arithmetic,
}

/// An input of a layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// The index of the source layer; none for the items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<usize>,
    /// The index of the named input, if the items consist of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
    /// Its shape.
    #[serde(flatten)]
    pub shape: Shape,
}

/// A named input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Its shape.
    #[serde(flatten)]
    pub shape: Shape,
}

/// The inputs of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Items {
    /// The shape of one item.
    pub shape: Shape,
    /// The named inputs of which it consists; empty if it is a single one.
    pub parts: Vec<Part>,
    /// The graph whose nodes the items are.
    pub graph: Option<GraphPlan>,
}

impl Items {
    /// A single input.
    pub fn single(shape: Shape) -> Self {
        Self {
            shape,
            parts: Vec::new(),
            graph: None,
        }
    }

    /// The items of some data, with the token that each of its inputs is padded with, and the documents in them.
    pub fn of(input: &InputPlan, padding: &[Option<u32>], documents: Option<Documents>) -> Self {
        let shape = |dims: &[usize], vocabulary, at: usize| Shape {
            dims: dims.to_vec(),
            vocabulary,
            padding: padding.get(at).copied().flatten(),
            documents,
        };
        let parts = input.parts.iter().enumerate().map(|(at, part)| Part {
            name: part.name.clone(),
            shape: shape(&part.shape, part.vocabulary, at),
        });
        Self {
            shape: shape(&input.shape, input.vocabulary, 0),
            parts: parts.collect(),
            graph: input.graph,
        }
    }
}

/// The shape of one item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Sizes, without the batch.
    pub dims: Vec<usize>,
    /// For tokens, the size of the vocabulary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// The token that items are padded with, if it is known: only for planning, since the layers that need it have it.
    #[serde(skip)]
    pub padding: Option<u32>,
    /// The documents in an item, if they are kept apart: as above.
    #[serde(skip)]
    pub documents: Option<Documents>,
}

impl Shape {
    /// A shape of numbers.
    pub fn numbers(dims: &[usize]) -> Self {
        Self {
            dims: dims.to_vec(),
            vocabulary: None,
            padding: None,
            documents: None,
        }
    }

    /// As messages write it.
    pub fn show(&self) -> String {
        match self.vocabulary {
            None => format!("{:?}", self.dims),
            Some(vocabulary) => format!("{:?} tokens of {vocabulary}", self.dims),
        }
    }
}

impl Network {
    /// The functions of the layers, without names and counts: equal for networks that train alike.
    pub fn work(&self) -> serde_json::Value {
        let layers = self.layers.iter().map(|layer| {
            let source = |input: &Input| match input.part {
                Some(part) => serde_json::json!({ "part": part }),
                None => serde_json::json!(input.layer),
            };
            let inputs: Vec<_> = layer.inputs.iter().map(source).collect();
            let own = serde_json::json!([layer.kind, inputs, layer.shape, layer.freeze]);
            let own = match layer.masks.as_slice() {
                [] => own,
                masks => serde_json::json!([own, masks]),
            };
            let own = match layer.documents {
                Some(documents) => serde_json::json!({ "base": own, "documents": documents }),
                None => own,
            };
            let own = match layer.weights {
                Some(weights) => serde_json::json!([own, weights]),
                None => own,
            };
            if layer.adapters.is_empty() && layer.frozen.is_empty() {
                return own;
            }
            let mut own = serde_json::json!({ "base": own, "adapters": layer.adapters, "frozen": layer.frozen });
            if !layer.base.is_full() {
                own["held"] = serde_json::json!(layer.base);
            }
            own
        });
        let layers = layers.collect::<Vec<_>>();
        if self.parts.is_empty() {
            return serde_json::json!([self.items, layers]);
        }
        let parts: Vec<&Shape> = self.parts.iter().map(|part| &part.shape).collect();
        serde_json::json!([self.items, layers, parts])
    }

    /// The shape of the items, or of each named input, as messages write it.
    pub fn show_items(&self) -> String {
        let parts = self.parts.iter();
        let parts = parts.map(|part| format!("{} {}", part.name, part.shape.show()));
        let mut kinds = self.layers.iter().map(|layer| &layer.kind);
        match self.parts.len() {
            0 => self.items.show(),
            // The condition of a pair, which no item consists of.
            1 if kinds.any(|kind| matches!(kind, LayerKind::Noise { .. })) => {
                let parts: Vec<_> = parts.collect();
                format!("{}, {}", self.items.show(), parts[0])
            }
            _ => parts.collect::<Vec<_>>().join(", "),
        }
    }

    /// The index of the layer of a name.
    pub fn layer(&self, name: &str) -> Option<usize> {
        self.layers.iter().position(|layer| layer.name == name)
    }

    /// The name of what an input is taken from.
    pub fn source_name(&self, input: &Input) -> &str {
        match (input.layer, input.part) {
            (Some(from), _) => &self.layers[from].name,
            (None, Some(part)) => &self.parts[part].name,
            (None, None) => "input",
        }
    }

    /// A description of the first layer that differs in `now`.
    pub fn change(&self, now: &Self) -> Option<String> {
        let work = |network: &Self, at: usize| {
            let layer = network.layers.get(at)?;
            let (kind, inputs) = (layer.kind.clone(), layer.inputs.clone());
            let masks = layer.masks.clone();
            let masks = (masks, layer.documents);
            let fixed = (
                layer.freeze,
                layer.frozen.clone(),
                layer.adapters.clone(),
                layer.base,
            );
            Some((kind, inputs, masks, fixed, layer.weights))
        };
        let num = self.layers.len().max(now.layers.len());
        let at = (0..num).find(|at| work(self, *at) != work(now, *at))?;
        let (before, after) = (self.layers.get(at), now.layers.get(at));
        let word = |layer: Option<&Layer>| match layer {
            Some(layer) => format!("{} {:?}", layer.kind.type_name(), layer.shape),
            None => "nothing".into(),
        };
        let name = &after.or(before)?.name;
        Some(format!(
            "`model`: layer `{name}` was {}, is {}",
            word(before),
            word(after)
        ))
    }

    /// The paths of all parameters, as patterns match them: the layer's name and Burn's path inside.
    pub fn parameter_paths(&self) -> Vec<String> {
        self.named_parameters().map(|(_, path, _)| path).collect()
    }

    /// Each parameter with its layer, its path and its number of elements.
    pub fn named_parameters(&self) -> impl Iterator<Item = (&Layer, String, u64)> {
        self.layers.iter().flat_map(|layer| {
            let named = layer.parameters().into_iter();
            named.map(move |(path, count)| (layer, format!("{}.{path}", layer.name), count))
        })
    }

    /// Whether a forward pass on a device with autodiff changes a layer: the vectors of power iteration.
    pub fn iterates(&self) -> bool {
        let mut kinds = self.layers.iter().map(|layer| layer.kind.parametrization());
        kinds.any(|kind| kind == Parametrization::SpectralNorm)
    }

    /// The path of a parameter as users know it, for Burn's path `<layer's index>.<its module>.<rest>` in the list of
    /// layers.
    pub fn user_path(&self, path: &str) -> Option<String> {
        let (layer, inner) = self.located(path)?;
        Some(format!("{}.{inner}", layer.name))
    }

    /// The layer of a parameter and its path inside, for Burn's path `layers.<index>.<its module>.<rest>`.
    pub fn located(&self, path: &str) -> Option<(&Layer, String)> {
        let mut parts = path.splitn(4, '.').skip(1);
        let layer = self.layers.get(parts.next()?.parse::<usize>().ok()?)?;
        Some((layer, parts.nth(1)?.to_owned()))
    }

    /// Why this program cannot compute a layer of an own type, if there is one that it does not have as planned.
    pub fn unusable_part(&self) -> Option<String> {
        self.layers.iter().find_map(|layer| match &layer.kind {
            LayerKind::Own(own) => own.unusable(&shape::dims(&layer.inputs), &layer.shape),
            _ => None,
        })
    }

    /// For each layer, the index of the last layer that uses its output.
    pub fn last_uses(&self) -> Vec<usize> {
        let mut last = vec![0; self.layers.len()];
        for (at, layer) in self.layers.iter().enumerate() {
            for from in layer.inputs.iter().filter_map(|input| input.layer) {
                last[from] = at;
            }
        }
        last
    }
}

impl Layer {
    /// Its inputs without masks.
    pub fn values(&self) -> &[Input] {
        &self.inputs[..self.inputs.len() - self.masks.len()]
    }

    /// Features of the keys and the values that an attention attends to.
    pub fn attended_widths(&self) -> [usize; 2] {
        cost::attended_widths(self.values())
    }

    /// The position among its inputs of the mask of a key, if it has one.
    pub fn mask(&self, key: MaskKey) -> Option<usize> {
        let at = self.masks.iter().position(|mask| *mask == key)?;
        Some(self.values().len() + at)
    }

    /// Paths of its own parameters inside the layer, with the number of elements of each.
    fn parameters(&self) -> Vec<(String, u64)> {
        self.with_adapters(self.base_parameters())
    }

    /// The same without adapters.
    pub fn base_parameters(&self) -> Vec<(String, u64)> {
        let mut all = cost::parameters(&self.kind, self.values(), &self.shape);
        all.retain(|(path, _)| self.owns(path));
        all
    }

    /// Whether a weight at a path inside the layer is its own.
    pub fn owns(&self, path: &str) -> bool {
        match self.weights {
            None => true,
            Some(Weights::Shared(_)) => false,
            Some(Weights::Tied(_)) => path != "weight",
        }
    }
}

/// Plans the layers for items of a shape; `output` is the shape that the task needs from the last one, and `heads` are
/// other outputs that are used. The error points at the layer that does not fit.
pub fn lay_out(
    layers: &[LayerSpec],
    items: &Items,
    output: &[usize],
    heads: &[Head],
) -> Result<Network, Box<Diagnostic>> {
    let wanted = heads::wanted(layers, output, heads)?;
    let mut network = empty(items, layers.len());
    for (spec, wanted) in layers.iter().zip(wanted) {
        append(&mut network, spec, wanted)?;
    }
    heads::fit(&network, layers, output, heads)?;
    let last = network.layers.len().checked_sub(1);
    let used = heads.iter().map(|head| head.layer).chain(last);
    let fits = graphs::outputs_are_of_items(&network, used);
    fits.and_then(|()| graphs::rounds_fit(&network))
        .map_err(|(at, mismatch)| {
            let inputs = &network.layers[at].inputs;
            refusal(&network, &layers[at], inputs, mismatch)
        })?;
    Ok(network)
}

fn empty(items: &Items, num_layers: usize) -> Network {
    Network {
        num_parameters: 0,
        activations_per_item: 0,
        multiply_adds_per_item: 0,
        items: items.shape.clone(),
        parts: items.parts.clone(),
        graph: items.graph,
        layers: Vec::with_capacity(num_layers),
    }
}

/// The same for layers that need not match the task.
pub fn infer(
    layers: &[LayerSpec],
    items: &Items,
    output: &[usize],
) -> Result<Network, Box<Diagnostic>> {
    let mut network = empty(items, layers.len());
    for spec in layers {
        append(&mut network, spec, output)?;
    }
    let parts = network.parts.iter_mut().map(|part| &mut part.shape);
    for shape in parts.chain([&mut network.items]) {
        (shape.padding, shape.documents) = (None, None);
    }
    Ok(network)
}

/// Adds a layer to a network whose layers it may use; `output` is the shape that the task needs.
pub fn append(
    network: &mut Network,
    spec: &LayerSpec,
    output: &[usize],
) -> Result<(), Box<Diagnostic>> {
    let inputs: Vec<Input> = spec
        .inputs
        .iter()
        .map(|source| match source {
            Source::Items => Input {
                layer: None,
                part: None,
                shape: network.items.clone(),
            },
            Source::Part(at) => Input {
                layer: None,
                part: Some(*at),
                shape: network.parts[*at].shape.clone(),
            },
            Source::Layer(at) => Input {
                layer: Some(*at),
                part: None,
                shape: Shape::numbers(&network.layers[*at].shape),
            },
        })
        .collect();
    let refused = |mismatch| refusal(network, spec, &inputs, mismatch);
    let values = &inputs[..spec.values().len()];
    let tied = share::tied_outputs(network, spec, values).map_err(refused)?;
    let wanted = tied.as_ref().map_or(output, |tied| tied.as_slice());
    let shape = shape::output(spec, values, wanted).map_err(refused)?;
    masks::check(network, spec, &inputs).map_err(refused)?;
    let mut kind = spec.kind.resolved(&shape);
    masks::resolve(&mut kind, spec, values).map_err(refused)?;
    let mut activations = cost::activations(&kind, values, &shape);
    let mut multiply_adds = cost::multiply_adds(&kind, values, &shape);
    graphs::check(&kind, network, values).map_err(refused)?;
    if let LayerKind::Message(message) = &kind {
        let kept = graphs::kept_per_node(message, network.graph, values);
        activations = kept.map_err(refused)?;
        let of_edges = graphs::edges_per_node(message, network.graph, values);
        multiply_adds = multiply_adds.saturating_add(of_edges);
    }
    if let LayerKind::Own(own) = &mut kind {
        let planned = own.plan(&shape::dims(values));
        let planned =
            planned.map_err(|unfit| refusal(network, spec, values, Mismatch::from(unfit)))?;
        own.parameters = planned.parameters;
        (activations, multiply_adds) = (planned.kept_values, planned.multiply_adds);
    }
    let mut layer = Layer {
        name: spec.name.clone(),
        kind,
        masks: spec.masks.clone(),
        documents: None,
        freeze: spec.freeze,
        weights: spec.weights,
        adapters: Vec::new(),
        frozen: Vec::new(),
        base: Base::default(),
        num_parameters: 0,
        activations_per_item: activations,
        multiply_adds_per_item: multiply_adds,
        kernels: Kernels::default(),
        arithmetic: Arithmetic::default(),
        inputs,
        shape,
    };
    layer.documents = documents::needed(network, &layer);
    share::check(network, &mut layer)
        .map_err(|mismatch| refusal(network, spec, &layer.inputs, mismatch))?;
    let counts = layer.parameters().into_iter().map(|(_, count)| count);
    layer.num_parameters = counts.fold(0, u64::saturating_add);
    network.num_parameters = network.num_parameters.saturating_add(layer.num_parameters);
    network.activations_per_item = network
        .activations_per_item
        .saturating_add(layer.activations_per_item);
    network.multiply_adds_per_item = network
        .multiply_adds_per_item
        .saturating_add(layer.multiply_adds_per_item);
    network.layers.push(layer);
    Ok(())
}

fn refusal(
    network: &Network,
    spec: &LayerSpec,
    inputs: &[Input],
    mismatch: Mismatch,
) -> Box<Diagnostic> {
    let message = format!("`{}` {}", spec.name, mismatch.message);
    let diagnostic = spec.point(Diagnostic::error("shape", message), mismatch.key);
    let way = chain(network, inputs.first());
    Box::new(
        diagnostic
            .note(format!("its inputs: {way}"))
            .help(mismatch.help),
    )
}

/// The last few shapes on the way from the items to an input.
fn chain(network: &Network, input: Option<&Input>) -> String {
    const SHOWN: usize = 6;
    let mut steps = Vec::new();
    let mut from = input;
    while let Some(layer) = from.and_then(|input| network.layers.get(input.layer?)) {
        steps.push(format!("{} {:?}", layer.name, layer.shape));
        from = layer.inputs.first();
    }
    let part = from.and_then(|input| network.parts.get(input.part?));
    steps.push(match part {
        Some(part) => format!("{} {}", part.name, part.shape.show()),
        None => format!("items {}", network.items.show()),
    });
    if steps.len() > SHOWN {
        let hidden = steps.len() - SHOWN;
        steps.drain(SHOWN - 1..steps.len() - 1);
        steps.insert(SHOWN - 1, format!("… {hidden} more"));
    }
    steps.reverse();
    steps.join(" -> ")
}
