//! The planned network with its loss.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};

use crate::batch::Batch;
use crate::finite::is_finite;
use crate::graph::Graph;
use crate::loss::item_losses;
use crate::targets::Targets;
use crate::tensor::DynTensor;
use runner_core::data::order::{Purpose, stream_seed};
use runner_core::plan::RunPlan;
use runner_core::spec::backend::{Arithmetic, Kernels};
use runner_core::spec::loss::LossSpec;
use runner_core::spec::task::TaskKind;

/// A network with its loss.
#[derive(Module, Debug)]
pub struct Network {
    graph: Graph,
    #[module(skip)]
    task: TaskKind,
    #[module(skip)]
    loss: LossSpec,
    #[module(skip)]
    computed: (Kernels, Arithmetic),
}

impl Network {
    /// Creates the network of a plan. All weights are sampled now from the device's generator, so that they depend only
    /// on its seed.
    pub fn new(plan: &RunPlan, device: &Device) -> Self {
        let network = Self::undrawn(plan, device);
        network.visit(&mut Draw);
        network
    }

    /// The same with weights that depend only on the seed of the plan.
    pub fn drawn(plan: &RunPlan, device: &Device) -> Self {
        device.seed(stream_seed(plan.seed, Purpose::Init, 0));
        Self::new(plan, device)
    }

    /// The same for weights that will be loaded: none is sampled.
    pub fn undrawn(plan: &RunPlan, device: &Device) -> Self {
        Self {
            graph: Graph::new(&plan.network, (plan.kernels, plan.arithmetic), device),
            task: plan.task.kind,
            loss: plan.loss.clone(),
            computed: (plan.kernels, plan.arithmetic),
        }
    }

    /// The layers.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The loss of each item, \[batch\], for the output of the last layer.
    pub fn losses(&self, outputs: DynTensor, targets: &Targets) -> Tensor<1> {
        item_losses(&self.loss, self.computed, self.flat(outputs), targets)
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

    /// A description of where a batch first results in infinity or NaN.
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

    /// The output of the last layer in the form that [`item_losses`] expects.
    pub fn outputs(&self, inputs: DynTensor) -> Tensor<2> {
        self.flat(self.graph.forward(inputs))
    }

    /// The outputs for a batch.
    pub fn output(&self, batch: Batch) -> Output {
        let outputs = self.outputs(batch.inputs);
        Output {
            losses: item_losses(&self.loss, self.computed, outputs.clone(), &batch.targets),
            outputs,
            targets: batch.targets,
        }
    }
}

/// Samples each visited parameter. Burn samples them on first use, which would be in the middle of the first step, from
/// the generator's state at that point; `materialize` does not sample them either.
struct Draw;

impl ModuleVisitor for Draw {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        param.val();
    }
}

/// The outputs of a network for a batch.
#[derive(Clone, Debug)]
pub struct Output {
    /// The loss of each item, \[batch\].
    pub losses: Tensor<1>,
    /// In the form that [`item_losses`] takes.
    pub outputs: Tensor<2>,
    /// The targets.
    pub targets: Targets,
}

impl Output {
    /// The same, detached from the graph.
    pub fn without_autodiff(self) -> Self {
        Self {
            losses: self.losses.without_autodiff(),
            outputs: self.outputs.without_autodiff(),
            targets: self.targets.without_autodiff(),
        }
    }
}
