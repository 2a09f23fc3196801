//! A forward pass step by step, for gradient checkpointing by blocks.

use std::borrow::Cow;
use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::Tensor;

use super::Graph;
use crate::documents;
use crate::draws::{self, Draw};
use crate::layer::Layer;
use crate::tensor::DynTensor;
use runner_core::check::network::segments::Segments;

/// Outputs of steps.
pub type Outputs = BTreeMap<usize, DynTensor>;

/// The steps of a segment: what they get, and whether for a backward pass.
#[derive(Clone, Copy, Debug)]
pub struct Pass<'a> {
    /// The steps of the whole pass.
    pub segments: &'a Segments,
    /// The number of the segment.
    pub segment: usize,
    /// The items.
    pub items: &'a DynTensor,
    /// Outputs of the segments before.
    pub given: &'a Outputs,
    /// Whether there is a backward pass. If not, nothing is kept for one, but random numbers are drawn and statistics
    /// updated as for one.
    pub is_tracked: bool,
}

impl Graph {
    /// The outputs of the steps of a segment that are used after it, the last one among them, and the random numbers
    /// that were drawn for them.
    pub(crate) fn segment(&self, pass: Pass<'_>) -> (Outputs, Vec<Draw>) {
        let Pass {
            segments,
            segment,
            items,
            given,
            is_tracked,
        } = pass;
        let range = segments.ranges[segment].clone();
        let (mut outputs, mut drawn) = (Outputs::new(), Vec::new());
        for at in range.clone() {
            let step = segments.steps[at];
            let plan = &self.plan.layers[step.layer];
            let of = |from: usize| match outputs.get(&from).or_else(|| given.get(&from)) {
                Some(output) => DynTensor::clone(output),
                None => unreachable!("a step uses outputs of earlier ones"),
            };
            let each = plan.inputs.iter().enumerate();
            let each = each.map(|(number, input)| match input.layer {
                _ if number == 0 && !step.is_first() => of(at - 1),
                Some(from) => of(segments.ends[from]),
                None => items.part(input.part),
            });
            let mut inputs: Vec<DynTensor> = each.collect();
            if let Some(documents) = plan.documents {
                inputs.push(documents::numbers(items, documents));
            }
            // Outputs without a later use are not kept any longer.
            outputs.retain(|from, _| segments.uses[*from].iter().any(|user| *user > at));
            let layer = self.layer(step.layer);
            let layer = if is_tracked {
                layer
            } else {
                Cow::Owned(untracked(layer.into_owned()))
            };
            let dims: Vec<_> = inputs.iter().map(DynTensor::dims).collect();
            let output = layer.forward_part(plan, step.part, inputs);
            draws::of(plan, &dims, &output, &mut drawn);
            outputs.insert(at, output);
        }
        (outputs, drawn)
    }

    /// Whether some steps have weights that are trained.
    pub(crate) fn is_trained(&self, segments: &Segments, segment: usize) -> bool {
        let steps = &segments.steps[segments.ranges[segment].clone()];
        steps.iter().any(|step| {
            let owner = self.plan.layers[step.layer].weights;
            let owner = owner.map_or(step.layer, |weights| weights.owner());
            let layers = [step.layer, owner];
            layers.iter().any(|at| has_trained(&self.layers[*at]))
        })
    }
}

fn has_trained(layer: &Layer) -> bool {
    struct Any(bool);
    impl burn::module::ModuleVisitor for Any {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0 |= param.is_require_grad();
        }
    }
    let mut any = Any(false);
    layer.visit(&mut any);
    any.0
}

/// A layer whose outputs have no way back to its weights. It still trains: it draws random numbers, and updates its
/// statistics.
fn untracked(layer: Layer) -> Layer {
    struct Untrack;
    impl ModuleMapper for Untrack {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let (id, tensor, mapper) = param.consume();
            let tensor = tensor.detach().set_require_grad(false);
            Param::from_mapped_value(id, tensor, mapper)
        }
    }
    layer.map(&mut Untrack)
}
