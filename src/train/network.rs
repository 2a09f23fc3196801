//! The planned network with the loss that it is trained by, as Burn's learner wants it.

use burn::module::Module;
use burn::nn::loss::{CrossEntropyLoss, CrossEntropyLossConfig};
use burn::tensor::ExecutionError;
use burn::tensor::{Device, Int, Tensor};
use burn::train::metric::{AccuracyInput, Adaptor, LossInput};
use burn::train::{ClassificationOutput, InferenceStep, ItemLazy, TrainOutput, TrainStep};

use super::graph::Graph;
use super::loader::Batch;
use super::tensor::DynTensor;
use crate::plan::RunPlan;
use crate::spec::optimizer::LossSpec;

/// A network with the loss that it is trained by.
#[derive(Module, Debug)]
pub struct Network {
    graph: Graph,
    cross_entropy: CrossEntropyLoss,
    #[module(skip)]
    loss: LossSpec,
}

impl Network {
    /// Makes the network of a plan. Weights are drawn from the device's generator, all of them now, so
    /// that they depend on nothing but its seed.
    pub fn new(plan: &RunPlan, device: &Device) -> Self {
        let network = Self {
            graph: Graph::new(&plan.network, device),
            cross_entropy: CrossEntropyLossConfig::new().init(device),
            loss: plan.loss,
        };
        network.materialize()
    }

    /// \[batch, item shape\] to \[batch, outputs\].
    pub fn forward(&self, inputs: DynTensor) -> Tensor<2> {
        self.graph.forward(inputs).flatten()
    }

    /// Outputs of a batch, with the mean loss as a tensor of one value.
    fn step_forward(&self, batch: Batch) -> (Tensor<1>, Tensor<2>, Tensor<1, Int>) {
        let outputs = self.forward(batch.inputs);
        let targets = batch.targets;
        let loss = match self.loss {
            LossSpec::CrossEntropy => self.cross_entropy.forward(outputs.clone(), targets.clone()),
            LossSpec::Mse => {
                let [_, num_outputs] = outputs.dims();
                let wanted = targets.clone().one_hot(num_outputs).float();
                (outputs.clone() - wanted).powi_scalar(2).mean()
            }
        };
        (loss, outputs, targets)
    }
}

/// What metrics read: the outputs of one step or of several, since handing over many small ones costs
/// more than computing them.
pub struct Outputs(Vec<ClassificationOutput>);

impl Outputs {
    /// The loss is repeated for each item, since Burn's loss metric weighs by length: so every item
    /// weighs the same, also in a smaller last batch.
    fn new(loss: Tensor<1>, outputs: Tensor<2>, targets: Tensor<1, Int>) -> Self {
        let [batch_size] = targets.dims();
        Self(vec![ClassificationOutput::new(
            loss.expand([batch_size]),
            outputs,
            targets,
        )])
    }

    /// Adds the outputs of later steps.
    pub fn append(&mut self, mut later: Self) {
        self.0.append(&mut later.0);
    }

    fn cat<const D: usize, K: burn::tensor::kind::Basic>(
        &self,
        part: fn(&ClassificationOutput) -> Tensor<D, K>,
    ) -> Tensor<D, K> {
        match self.0.as_slice() {
            [single] => part(single),
            several => Tensor::cat(several.iter().map(part).collect(), 0),
        }
    }
}

impl ItemLazy for Outputs {
    fn sync(self) -> Result<Self, ExecutionError> {
        let synced = self.0.into_iter().map(ItemLazy::sync);
        synced.collect::<Result<_, _>>().map(Self)
    }
}

impl Adaptor<LossInput> for Outputs {
    fn adapt(&self) -> LossInput {
        LossInput::new(self.cat(|output| output.loss.clone()))
    }
}

impl Adaptor<AccuracyInput> for Outputs {
    fn adapt(&self) -> AccuracyInput {
        AccuracyInput::new(
            self.cat(|output| output.output.clone()),
            self.cat(|output| output.targets.clone()),
        )
    }
}

impl TrainStep for Network {
    type Input = Batch;
    type Output = Outputs;

    fn step(&self, batch: Batch) -> TrainOutput<Outputs> {
        let (loss, outputs, targets) = self.step_forward(batch);
        let gradients = loss.backward();
        // Taken off the graph here: dropping the graph on the metric thread is slower.
        let outputs = Outputs::new(
            loss.without_autodiff(),
            outputs.without_autodiff(),
            targets.without_autodiff(),
        );
        TrainOutput::new(self, gradients, outputs)
    }
}

impl InferenceStep for Network {
    type Input = Batch;
    type Output = Outputs;

    fn step(&self, batch: Batch) -> Outputs {
        let (loss, outputs, targets) = self.step_forward(batch);
        Outputs::new(loss, outputs, targets)
    }
}
