//! The layers of a plan as one module: each uses outputs of earlier ones.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::nn::Linear;
use burn::tensor::Device;

use crate::dlinoss;
use crate::documents;
use crate::initial::{drawn_portably, redraw};
use crate::layer::Layer;
use crate::parametrization::{attached, computed, started};
use crate::tensor::DynTensor;
use runner_core::check::network::pair::Alone;
use runner_core::check::network::{Layer as LayerPlan, Network as NetworkPlan};
use runner_core::spec::backend::{Arithmetic, Kernels};
use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::model::layer_spec::Weights;

/// A graph of layers in an order in which they can be computed.
#[derive(Module, Debug)]
pub struct Graph {
    layers: Vec<Layer>,
    #[module(skip)]
    plan: NetworkPlan,
    /// The last layer that uses each layer's output, after which the output is dropped.
    #[module(skip)]
    last_uses: Vec<usize>,
    /// For each norm, the activation that its kernel may apply as well.
    #[module(skip)]
    activations: Vec<Option<Activation>>,
}

/// The activation of each norm of a plan that a kernel can compute with it.
fn activations(plan: &NetworkPlan) -> Vec<Option<Activation>> {
    let each = plan.layers.iter().enumerate();
    let each = each.map(|(at, layer)| {
        let activation = plan.activation_of_norm(at).cloned();
        activation.filter(|_| layer.kernels.is_fast())
    });
    each.collect()
}

impl Graph {
    /// The graph of a plan, computed by some kernels with an arithmetic, with uninitialized weights.
    pub fn new(
        plan: &NetworkPlan,
        (kernels, arithmetic): (Kernels, Arithmetic),
        device: &Device,
    ) -> Self {
        let mut plan = plan.clone();
        plan.layers.iter_mut().for_each(|layer| {
            (layer.kernels, layer.arithmetic) = (kernels, arithmetic);
        });
        let layers = plan.layers.iter().map(|layer| {
            let module = Layer::new(layer, device);
            let module = if arithmetic.is_portable() {
                drawn_portably(module, &layer.kind)
            } else {
                module
            };
            let module = match layer.kind.initializer() {
                Some(initializer) if layer.weights.is_none() => {
                    redraw(module, initializer, layer.kind.groups(), arithmetic)
                }
                _ => module,
            };
            let mut module = attached(module, layer);
            // What an adapter is saved with has no statistics: they stay those of the base.
            if let Layer::BatchNorm(norm) = &mut module
                && plan.has_adapters()
            {
                norm.training = norm.training.clone().with_value(false);
            }
            if layer.freeze {
                module.no_grad()
            } else {
                module
            }
        });
        Self {
            layers: layers.collect(),
            last_uses: plan.last_uses(),
            activations: activations(&plan),
            plan,
        }
    }

    /// The same with initial values of what the weights of some layers are computed from, which follow from those that
    /// were drawn or loaded.
    pub fn started(mut self, seed: u64, some: impl Fn(&LayerPlan) -> bool) -> Self {
        let layers = self.layers.into_iter().zip(&self.plan.layers).enumerate();
        let layers = layers.map(|(at, (layer, plan))| match &plan.kind {
            _ if !some(plan) => layer,
            LayerKind::Dlinoss(oscillators) => dlinoss::started(layer, oscillators),
            _ => started(layer, plan, seed, at),
        });
        self.layers = layers.collect();
        self
    }

    /// The layers with their plans, in order. Those with the weights of others have none here.
    pub fn layers(&self) -> impl Iterator<Item = (&Layer, &LayerPlan)> {
        self.layers.iter().zip(&self.plan.layers)
    }

    /// A layer as it is computed: with the weights of another, if it uses those.
    pub fn layer(&self, at: usize) -> Cow<'_, Layer> {
        match self.plan.layers[at].weights {
            None if self.plan.layers[at].kind.parametrization().is_none() => {
                Cow::Borrowed(&self.layers[at])
            }
            None => match computed(&self.layers[at]) {
                Some(layer) => Cow::Owned(layer),
                None => Cow::Borrowed(&self.layers[at]),
            },
            Some(Weights::Shared(owner)) => self.layer(owner),
            Some(Weights::Tied(owner)) => {
                let matrix = match &self.layers[owner] {
                    Layer::Linear(linear) => &linear.weight,
                    Layer::Embedding(embedding) => &embedding.weight,
                    other => unreachable!("{other:?} has no matrix"),
                };
                let Layer::Tied(tied) = &self.layers[at] else {
                    unreachable!("a tied layer was planned");
                };
                Cow::Owned(Layer::Linear(Linear {
                    // Its gradient goes to the other layer's parameter.
                    weight: Param::initialized(matrix.id, matrix.val().transpose()),
                    bias: tied.bias.clone(),
                }))
            }
        }
    }

    /// The name of a layer.
    pub fn name(&self, at: usize) -> &str {
        &self.plan.layers[at].name
    }

    /// \[batch, item shape\], or each named input of the plan, to \[batch, output shape\].
    pub fn forward(&self, items: DynTensor) -> DynTensor {
        self.with_outputs_of(items, std::iter::empty()).0
    }

    /// The same with the outputs of other layers.
    pub fn with_outputs_of(
        &self,
        items: DynTensor,
        layers: impl Iterator<Item = usize> + Clone,
    ) -> (DynTensor, Vec<DynTensor>) {
        let mut seen: BTreeMap<usize, DynTensor> = BTreeMap::new();
        let nodes = items.clone();
        let is_seen = |at| layers.clone().any(|layer| layer == at);
        let mut compute = self.joined(0..self.layers.len(), is_seen);
        let output = self.outputs_by(items, |at, layer, plan, inputs| {
            let output = compute(at, layer, plan, inputs);
            if is_seen(at) {
                seen.insert(at, of_items(&nodes, output.clone()));
            }
            output
        });
        drop(compute);
        (output, layers.map(|layer| seen[&layer].clone()).collect())
    }

    /// The same; `see` receives every layer's index and output.
    pub fn outputs(&self, items: DynTensor, mut see: impl FnMut(usize, &DynTensor)) -> DynTensor {
        self.outputs_by(items, |at, layer, plan, inputs| {
            let output = layer.forward(plan, inputs);
            see(at, &output);
            output
        })
    }

    /// The same with each layer's output computed by `compute` from its index, the layer, its plan and its inputs.
    pub fn outputs_by(
        &self,
        items: DynTensor,
        compute: impl FnMut(usize, &Layer, &LayerPlan, Vec<DynTensor>) -> DynTensor,
    ) -> DynTensor {
        let part = |part| items.part(part);
        self.range_by(0..self.layers.len(), &items, part, compute)
    }

    /// The output of some layers in a row, whose inputs from other layers are all `given`; so is the output of a noise
    /// layer. `condition` is the named input, if there is one.
    pub fn part(
        &self,
        layers: Range<usize>,
        given: DynTensor,
        condition: Option<&DynTensor>,
    ) -> DynTensor {
        let compute = self.joined(layers.clone(), |_| false);
        self.part_by(layers, given, condition, compute)
    }

    /// The same; `see` receives the index and the output of every layer but noise.
    pub fn part_outputs(
        &self,
        layers: Range<usize>,
        given: DynTensor,
        condition: Option<&DynTensor>,
        mut see: impl FnMut(usize, &DynTensor),
    ) -> DynTensor {
        self.part_by(layers, given, condition, |at, layer, plan, inputs| {
            let output = layer.forward(plan, inputs);
            see(at, &output);
            output
        })
    }

    fn part_by(
        &self,
        layers: Range<usize>,
        given: DynTensor,
        condition: Option<&DynTensor>,
        mut compute: impl FnMut(usize, &Layer, &LayerPlan, Vec<DynTensor>) -> DynTensor,
    ) -> DynTensor {
        let noise = given.clone();
        let outside = |part: Option<usize>| match (part, condition) {
            (Some(_), Some(condition)) => condition.clone(),
            _ => given.clone(),
        };
        self.range_by(
            layers,
            &given,
            outside,
            |at, layer, plan, inputs| match plan.kind {
                LayerKind::Noise { .. } => noise.clone(),
                _ => compute(at, layer, plan, inputs),
            },
        )
    }

    /// A part as a graph of its own, with the same weights.
    pub fn alone(&self, part: Alone) -> Self {
        let Alone { network, places } = part;
        Self {
            layers: places.iter().map(|at| self.layers[*at].clone()).collect(),
            last_uses: network.last_uses(),
            activations: activations(&network),
            plan: network,
        }
    }

    /// The parameters and states of some layers in a row are visited.
    pub fn visit_part(&self, layers: Range<usize>, visitor: &mut impl ModuleVisitor) {
        self.layers[layers]
            .iter()
            .for_each(|layer| layer.visit(visitor));
    }

    /// The same with the parameters of some layers in a row mapped.
    pub fn map_part(mut self, layers: Range<usize>, mapper: &mut impl ModuleMapper) -> Self {
        let all = self.layers.into_iter().enumerate();
        let all = all.map(|(at, layer)| {
            if layers.contains(&at) {
                layer.map(mapper)
            } else {
                layer
            }
        });
        self.layers = all.collect();
        self
    }

    /// The output of some layers in a row for `items`; `outside` are their inputs that no layer among them has, by the
    /// number of a named input.
    fn range_by(
        &self,
        layers: Range<usize>,
        items: &DynTensor,
        outside: impl Fn(Option<usize>) -> DynTensor,
        mut compute: impl FnMut(usize, &Layer, &LayerPlan, Vec<DynTensor>) -> DynTensor,
    ) -> DynTensor {
        let mut outputs: Vec<Option<DynTensor>> = vec![None; layers.end];
        let mut all = self.plan.layers.iter();
        let documents = all.find_map(|layer| layer.documents);
        let documents = documents.map(|documents| documents::numbers(items, documents));
        for at in layers.clone() {
            let plan = &self.plan.layers[at];
            let mut inputs = Vec::with_capacity(plan.inputs.len());
            for (number, input) in plan.inputs.iter().enumerate() {
                let Some(from) = input.layer.filter(|from| layers.contains(from)) else {
                    inputs.push(outside(input.part));
                    continue;
                };
                // A layer may use the same output twice.
                let again = plan.inputs[number + 1..]
                    .iter()
                    .any(|later| later.layer == Some(from));
                let output = if self.last_uses[from] == at && !again {
                    outputs[from].take()
                } else {
                    outputs[from].clone()
                };
                inputs.push(output.expect("a layer uses outputs of earlier ones"));
            }
            if matches!(
                plan.kind,
                LayerKind::Message(_) | LayerKind::GraphPool { .. } | LayerKind::EdgeEnds { .. }
            ) {
                // Its edges.
                inputs.push(items.clone());
            }
            if plan.documents.is_some() {
                inputs.extend(documents.clone());
            }
            outputs[at] = Some(compute(at, &self.layer(at), plan, inputs));
        }
        let output = outputs.pop().flatten();
        output.map_or_else(|| items.clone(), |output| of_items(items, output))
    }
}

/// The rows of a layer's output that belong to the items: if they are nodes of a graph, those of the batch.
fn of_items(items: &DynTensor, output: DynTensor) -> DynTensor {
    match items {
        DynTensor::Nodes(nodes) if nodes.graphs.is_none() && nodes.pairs.is_none() => {
            output.select(nodes.places.clone())
        }
        _ => output,
    }
}

mod joined;
pub(crate) mod steps;

#[cfg(all(test, feature = "flex"))]
mod sharing;

#[cfg(all(test, feature = "flex"))]
mod tests {
    use std::collections::BTreeSet;

    use burn::tensor::{Tensor, TensorData};

    use super::*;
    use crate::leaves;
    use crate::message::Nodes;
    use crate::testing::generator;
    use runner_core::check::network::examples::{Example, examples, graph_examples};
    use runner_core::data::graph::Edge;
    use runner_core::data::{Edges, NodeGraph, PairsPart};
    use runner_core::spec::model::layer::LayerType;
    use runner_core::spec::section::Choice;

    /// Two graphs of 2 nodes and of 1, of 5 numbers.
    fn graphs(device: &Device) -> DynTensor {
        let graph = NodeGraph {
            edges: Edges::new(3, &[], (&[], 0), false).unwrap(),
            features: (0..15).map(|at| (f64::from(at) * 0.7).sin()).collect(),
            width: 5,
            members: None,
            neighbors: Vec::new(),
        };
        let nodes = Nodes::of_graphs(graph, vec![0, 0, 1], 2, device);
        DynTensor::Nodes(Box::new(nodes))
    }

    /// Two nodes of 5 numbers with an edge.
    fn nodes(device: &Device) -> DynTensor {
        DynTensor::Nodes(Box::new(Nodes::new(graph(), &[0, 1], device)))
    }

    /// The two directions of that edge.
    fn pairs(device: &Device) -> DynTensor {
        let part = PairsPart {
            ends: [vec![0, 1], vec![1, 0]],
            features: vec![0.5, -1.5, 0.5, -1.5],
        };
        DynTensor::Nodes(Box::new(Nodes::of_pairs(graph(), part, device)))
    }

    fn graph() -> NodeGraph {
        let edge = Edge {
            from: 0,
            to: 1,
            weight: 2.0,
        };
        NodeGraph {
            edges: Edges::new(2, &[edge], (&[0.5, -1.5], 2), false).unwrap(),
            features: (0..10).map(|at| (f64::from(at) * 0.7).sin()).collect(),
            width: 5,
            members: None,
            neighbors: Vec::new(),
        }
    }

    /// Every kind of layer gives the planned shape, has the planned parameters, and passes gradients.
    #[test]
    fn plans_are_what_burn_does() {
        let _generator = generator();
        let device = Device::flex().autodiff();
        let mut covered = BTreeSet::new();
        for Example {
            layers,
            network: plan,
        } in examples().into_iter().chain(graph_examples())
        {
            let graph = Graph::new(&plan, Default::default(), &device);
            let dims = &plan.items.dims;
            let items = match plan.items.vocabulary {
                Some(_) => DynTensor::Tokens(Tensor::from_data(
                    TensorData::new((0..12i64).map(|at| at % 7).collect(), [2, 6]),
                    &device,
                )),
                None if plan.graph.is_some_and(|graph| graph.num_graphs.is_some()) => {
                    graphs(&device)
                }
                None if plan.graph.is_some_and(|graph| graph.pairs.is_some()) => pairs(&device),
                None if plan.graph.is_some() => nodes(&device),
                None => {
                    let num = 2 * dims.iter().product::<usize>();
                    let values = (0..num).map(|at| (at as f32 * 0.7).sin()).collect();
                    DynTensor::from_values(values, &[&[2], dims.as_slice()].concat(), &device)
                }
            };
            let output = graph.outputs(items, |at, output| {
                let planned = [&[2], plan.layers[at].shape.as_slice()].concat();
                assert_eq!(output.dims(), planned, "{layers}");
            });
            // Path below the layer's index, and how many numbers.
            let mut counts = BTreeMap::new();
            leaves::each(&graph, |leaf| {
                if leaf.is_trained {
                    let count = leaf.dims.iter().product::<usize>();
                    counts.insert(leaf.path.to_owned(), count as u64);
                }
            });
            // Constants are weights that are not trained.
            let constants = plan.layers.iter().filter(|layer| layer.kind.is_constant());
            let frozen: Vec<_> = constants
                .map(|layer| format!("{}.value", layer.name))
                .collect();
            let constants = plan.layers.iter().filter(|layer| layer.kind.is_constant());
            let num_frozen: u64 = constants.map(|layer| layer.num_parameters).sum();
            let num_found = counts.values().sum::<u64>() + num_frozen;
            assert_eq!(num_found, plan.num_parameters, "{layers}: {counts:?}");
            let mut planned: BTreeSet<_> = plan.parameter_paths().into_iter().collect();
            planned.retain(|path| !frozen.contains(path));
            let shown = counts.keys().map(|path| plan.user_path(path).unwrap());
            assert_eq!(shown.collect::<BTreeSet<_>>(), planned, "{layers}");
            if !counts.is_empty() {
                let gradients = output.flatten().sum().backward();
                let gradients = burn::optim::GradientsParams::from_grads(gradients, &graph);
                assert_eq!(gradients.len(), counts.len(), "{layers}");
            }
            let types = layers.split("type = '").skip(1);
            covered.extend(types.filter_map(|text| Some(text.split_once('\'')?.0.to_owned())));
        }
        let missing: Vec<_> = LayerType::ALL
            .iter()
            .filter(|(_, name, _)| !covered.contains(*name))
            .collect();
        assert!(missing.is_empty(), "no case for {missing:?}");
    }
}
