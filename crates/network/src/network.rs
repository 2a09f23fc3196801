//! The planned network with the loss that it is trained by.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};

use crate::batch::Batch;
use crate::finite::is_finite;
use crate::graph::Graph;
use crate::loss::item_losses;
use crate::targets::Targets;
use crate::tensor::DynTensor;
use runner_core::plan::RunPlan;
use runner_core::spec::loss::LossSpec;
use runner_core::spec::task::TaskKind;

/// A network with the loss that it is trained by.
#[derive(Module, Debug)]
pub struct Network {
    graph: Graph,
    #[module(skip)]
    task: TaskKind,
    #[module(skip)]
    loss: LossSpec,
}

impl Network {
    /// Makes the network of a plan. Weights are drawn from the device's generator, all of them now, so
    /// that they depend on nothing but its seed.
    pub fn new(plan: &RunPlan, device: &Device) -> Self {
        let network = Self::undrawn(plan, device);
        network.visit(&mut Draw);
        network
    }

    /// The same for weights that are loaded: none is drawn.
    pub fn undrawn(plan: &RunPlan, device: &Device) -> Self {
        Self {
            graph: Graph::new(&plan.network, plan.conv, device),
            task: plan.task.kind,
            loss: plan.loss.clone(),
        }
    }

    /// The layers.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The loss of each item, \[batch\], for what the last layer gave.
    pub fn losses(&self, outputs: DynTensor, targets: &Targets) -> Tensor<1> {
        item_losses(&self.loss, self.flat(outputs), targets)
    }

    /// \[batch, output shape\] to \[batch, values\], or for a class at each position to
    /// \[batch * positions, classes\].
    fn flat(&self, outputs: DynTensor) -> Tensor<2> {
        let flat = |outputs: DynTensor| {
            let dims = outputs.dims();
            let classes = dims[dims.len() - 1];
            let positions = dims[..dims.len() - 1].iter().product();
            outputs.reshape(&[positions, classes]).flatten()
        };
        match self.task {
            TaskKind::NextToken => flat(outputs),
            TaskKind::Segmentation => flat(outputs.permute(&[0, 2, 3, 1])),
            _ => outputs.flatten(),
        }
    }

    /// Where a batch gives something infinite or no number first, in words.
    pub fn first_not_finite(&self, batch: &Batch) -> Option<String> {
        if !batch.inputs.is_finite() {
            return Some("the items".into());
        }
        let mut found = None;
        self.graph.outputs(batch.inputs.clone(), |at, output| {
            if found.is_none() && !output.is_finite() {
                found = Some(format!("the output of layer `{}`", self.graph.name(at)));
            }
        });
        found.or_else(|| {
            let losses = self.output(batch.clone()).losses;
            (!is_finite(losses)).then(|| "the loss".into())
        })
    }

    /// What the last layer gives for items, as [`item_losses`] takes it.
    pub fn outputs(&self, inputs: DynTensor) -> Tensor<2> {
        self.flat(self.graph.forward(inputs))
    }

    /// What a batch gives.
    pub fn output(&self, batch: Batch) -> Output {
        let outputs = self.outputs(batch.inputs);
        Output {
            losses: item_losses(&self.loss, outputs.clone(), &batch.targets),
            outputs,
            targets: batch.targets,
        }
    }
}

/// Draws each parameter that is visited. Burn draws them when they are first used, which would be in the
/// middle of the first step, from the generator's state there; `materialize` does not draw them either.
struct Draw;

impl ModuleVisitor for Draw {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        param.val();
    }
}

/// What a network gives for a batch.
#[derive(Clone, Debug)]
pub struct Output {
    /// The loss of each item, \[batch\].
    pub losses: Tensor<1>,
    /// As [`item_losses`] takes them.
    pub outputs: Tensor<2>,
    /// What was to be given.
    pub targets: Targets,
}

impl Output {
    /// The same without a graph behind it.
    pub fn without_autodiff(self) -> Self {
        Self {
            losses: self.losses.without_autodiff(),
            outputs: self.outputs.without_autodiff(),
            targets: self.targets.without_autodiff(),
        }
    }
}
