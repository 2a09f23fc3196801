//! Gradient checkpointing by blocks: of most segments of a forward pass, only outputs that later segments use are kept,
//! and the backward pass computes them again, from the last to the first.
//!
//! A segment gets its inputs as leaves. The gradients of its outputs come from later segments, so its backward pass
//! begins at the sum of the products of both. It is computed by a copy of the layers, whose running statistics are those
//! before the first pass, and with the random numbers of the first pass.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Gradients, Tensor};

use crate::draws::Draw;
use crate::graph::Graph;
use crate::graph::steps::{Outputs, Pass};
use crate::network::Network;
use crate::tensor::DynTensor;
use runner_core::check::network::segments::Segments;
use runner_core::data::order::{Purpose, stream_seed};
use runner_core::plan::RunPlan;
use runner_core::spec::train::Recomputed;

/// How a training recomputes blocks.
#[derive(Debug)]
pub struct Blocks {
    segments: Segments,
    /// Of the run.
    seed: u64,
    drawn: Mutex<Drawn>,
}

/// What was drawn in a step so far.
#[derive(Debug, Default)]
struct Drawn {
    step: usize,
    numbers: Vec<Draw>,
}

impl Blocks {
    /// Those of a plan, if it recomputes blocks.
    pub fn of(plan: &RunPlan, network: &Network) -> Option<Self> {
        let is_on = plan.train.gradient_checkpointing == Recomputed::Blocks;
        is_on.then(|| {
            let segments = plan.network.segments_with(&network.layers_of_losses());
            Self::new(segments, plan.seed)
        })
    }

    fn new(segments: Segments, seed: u64) -> Self {
        Self {
            segments,
            seed,
            drawn: Mutex::default(),
        }
    }

    /// The generator of the device is back at the start of the step.
    pub fn draw_again(&self) {
        *self.drawn() = Drawn::default();
    }

    fn drawn(&self) -> std::sync::MutexGuard<'_, Drawn> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// For a forward and a backward pass of a piece of a step. The device was seeded for the step.
    pub fn tape<'a>(&'a self, network: &'a Network, step: usize) -> Tape<'a> {
        Tape::new(self, network.graph(), step)
    }
}

/// What a forward pass keeps for its backward pass.
pub struct Tape<'a> {
    blocks: &'a Blocks,
    graph: &'a Graph,
    /// The same with states of its own.
    again: Graph,
    step: usize,
    items: Option<DynTensor>,
    /// Outputs that cross cuts.
    kept: Outputs,
    /// The same as leaves, for the last segment and the losses.
    leaves: Outputs,
    /// Random numbers of this step before each segment.
    before: Vec<usize>,
}

impl fmt::Debug for Tape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape")
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

impl<'a> Tape<'a> {
    fn new(blocks: &'a Blocks, graph: &'a Graph, step: usize) -> Self {
        let mut drawn = blocks.drawn();
        if drawn.step != step {
            *drawn = Drawn {
                step,
                ..Drawn::default()
            };
        }
        drop(drawn);
        Self {
            blocks,
            graph,
            again: graph.valid().train(),
            step,
            items: None,
            kept: Outputs::new(),
            leaves: Outputs::new(),
            before: Vec::new(),
        }
    }

    /// The output of the last layer, and those of some layers.
    pub fn forward(&mut self, items: DynTensor, layers: &[usize]) -> (DynTensor, Vec<DynTensor>) {
        let segments = &self.blocks.segments;
        let last = segments.ranges.len() - 1;
        let mut outputs = Outputs::new();
        for segment in 0..=last {
            let is_last = segment == last;
            if is_last {
                let leaves = self.kept.iter().map(|(at, output)| (*at, output.as_leaf()));
                self.leaves = leaves.collect();
            }
            let pass = Pass {
                segments,
                segment,
                items: &items,
                given: if is_last { &self.leaves } else { &self.kept },
                is_tracked: is_last,
            };
            let (found, numbers) = self.graph.segment(pass);
            let mut drawn = self.blocks.drawn();
            self.before.push(drawn.numbers.len());
            drawn.numbers.extend(numbers);
            drop(drawn);
            if is_last {
                outputs = found;
            } else {
                self.kept.extend(found);
            }
        }
        self.items = Some(items);
        let of = |step: usize| match outputs.get(&step).or_else(|| self.leaves.get(&step)) {
            Some(output) => DynTensor::clone(output),
            None => unreachable!("outputs for losses cross cuts"),
        };
        let others = layers.iter().map(|layer| of(segments.ends[*layer]));
        (of(segments.steps.len() - 1), others.collect())
    }

    /// The gradients of the weights, from those of what was made of the outputs.
    pub fn backward(self, gradients: Gradients) -> GradientsParams {
        let Self {
            blocks,
            graph,
            again,
            items,
            mut kept,
            leaves,
            before,
            step,
        } = self;
        let segments = &blocks.segments;
        let mut of_outputs = Outputs::new();
        add(&mut of_outputs, &leaves, &gradients);
        drop(leaves);
        let mut sum = GradientsParams::from_grads(gradients, graph);
        let items = items.expect("there was a forward pass");
        let device = items.device();
        let trained = |segment: &usize| graph.is_trained(segments, *segment);
        let first = (0..before.len()).find(trained).unwrap_or(before.len());
        let mut segments_again = (first..before.len() - 1).rev().peekable();
        let is_again = segments_again.peek().is_some();
        for segment in segments_again {
            let range = segments.ranges[segment].clone();
            // They are computed again.
            kept.retain(|at, _| !range.contains(at));
            let seeds = of_outputs.split_off(&range.start);
            blocks.draw_up_to(&device, step, Some(before[segment]));
            let leaves = kept.iter().map(|(at, output)| (*at, output.as_leaf()));
            let leaves: Outputs = leaves.collect();
            let (outputs, _) = again.segment(Pass {
                segments,
                segment,
                items: &items,
                given: &leaves,
                is_tracked: true,
            });
            let weighted = seeds.iter();
            let weighted = weighted.filter_map(|(at, by)| outputs.get(at)?.weighted(by));
            let Some(root) = weighted.reduce(Tensor::add) else {
                continue;
            };
            drop((outputs, seeds));
            let gradients = root.backward();
            add(&mut of_outputs, &leaves, &gradients);
            let found = GradientsParams::from_grads(gradients, &again);
            sum = summed(&again, sum, found);
        }
        if is_again {
            blocks.draw_up_to(&device, step, None);
        }
        sum
    }
}

impl Blocks {
    /// Draws the first of the random numbers of a step, or all so far.
    fn draw_up_to(&self, device: &Device, step: usize, num: Option<usize>) {
        let drawn = self.drawn();
        if drawn.numbers.is_empty() {
            return;
        }
        let num = num.unwrap_or(drawn.numbers.len());
        device.seed(stream_seed(self.seed, Purpose::Step, step as u64));
        drawn.numbers[..num]
            .iter()
            .for_each(|draw| draw.again(device));
    }
}

/// Adds the gradients of leaves.
fn add(to: &mut Outputs, leaves: &Outputs, gradients: &Gradients) {
    for (at, leaf) in leaves {
        let Some(gradient) = leaf.gradient(gradients) else {
            continue;
        };
        // In the order of Burn's sums.
        let sum = match to.remove(at) {
            Some(later) => gradient.plus(later),
            None => gradient,
        };
        to.insert(*at, sum);
    }
}

/// The sums of gradients of weights of two segments, of which the second is the earlier one.
fn summed(graph: &Graph, later: GradientsParams, earlier: GradientsParams) -> GradientsParams {
    struct Sum(GradientsParams, GradientsParams);
    impl ModuleVisitor for Sum {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let Some(found) = self.1.remove::<D>(param.id) else {
                return;
            };
            let sum = match self.0.remove::<D>(param.id) {
                Some(later) => found.add(later),
                None => found,
            };
            self.0.register(param.id, sum);
        }
    }
    let mut sum = Sum(later, earlier);
    graph.visit(&mut sum);
    sum.0
}

#[cfg(all(test, feature = "flex"))]
mod tests;
