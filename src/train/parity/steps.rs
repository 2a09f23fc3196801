//! The trainings of a run in lockstep.

use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::module::Module;
use burn::tensor::{Device, TensorData};

use super::host::{self, HostTargets};
use super::itself::{Answers, Given, answers, compared, largest};
use super::lane::{HostBatch, Lane, Manner, Seen, with_weights};
use super::{Pair, Say};
use crate::train::initial_network;
use crate::train::loader::{Cursor, Loader};
use runner_core::data;
use runner_core::event::Outcome;
use runner_core::parity::{Compared, Error, Of, Said, Step};
use runner_core::plan::RunPlan;
use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::LayerKind;
use runner_network::network::Network;
use runner_network::own::is_random;
use runner_network::tensor::DynTensor;

/// The name of the loss among the layers.
const LOSS: &str = "loss";

/// The plan without random operations in a step, which differ between devices, and in whole batches; with a description
/// of the changes.
pub fn determinate(mut plan: RunPlan) -> (RunPlan, Vec<String>) {
    let mut quiet = Vec::new();
    for layer in &mut plan.network.layers {
        let before = layer.kind.clone();
        draw_nothing(&mut layer.kind, &layer.shape);
        if layer.kind != before {
            quiet.push(format!("`{}`", layer.name));
        }
    }
    let mut notes = if quiet.is_empty() {
        Vec::new()
    } else {
        vec![format!(
            "disabled: {}, since devices generate different random numbers",
            quiet.join(", ")
        )]
    };
    if plan.train.micro_batch_size < plan.train.batch_size {
        plan.train.micro_batch_size = plan.train.batch_size;
        notes.push("`train.micro_batch_size` is ignored: each batch is computed whole".into());
    }
    (plan, notes)
}

/// The same kind of layer without randomness: no dropout or noise, and the mean slope.
pub(super) fn draw_nothing(kind: &mut LayerKind, shape: &[usize]) {
    match kind {
        LayerKind::Dropout { probability }
        | LayerKind::ChannelDropout { probability }
        | LayerKind::StochasticDepth { probability } => *probability = 0.0,
        LayerKind::GaussianNoise { std } => *std = 0.0,
        // The means, as outside of training.
        LayerKind::GaussianSample => {
            *kind = LayerKind::Slice {
                axis: -1,
                start: 0,
                end: shape.last().map(|width| *width as i64),
            }
        }
        LayerKind::MultiHeadAttention { dropout, .. } => *dropout = 0.0,
        LayerKind::GroupedAttention(attention) => attention.dropout = 0.0,
        LayerKind::TransformerEncoder(stack) | LayerKind::TransformerDecoder(stack) => {
            stack.dropout = 0.0;
        }
        LayerKind::Activation(Activation::Rrelu { lower, upper }) => {
            let slope = (*lower + *upper) / 2.0;
            (*lower, *upper) = (slope, slope);
        }
        _ => {}
    }
}

/// Trains a run on both devices for a number of steps and reports the result of each. The plan comes from
/// [`determinate`].
pub fn train_in_lock_step(plan: &RunPlan, pair: &Pair, num_steps: usize, say: Say<'_>) {
    let failed = |reason: String| Said::Failed { reason };
    let Some([reference, device]) = pair.open(say) else {
        return;
    };
    let plan = &RunPlan {
        device: pair.reference,
        ..plan.clone()
    };
    let autodiff = reference.clone().autodiff();
    let mut layers = plan.network.layers.iter();
    if let Some(layer) = layers.find(|layer| is_random(layer, &autodiff)) {
        let reason = format!(
            "the layer `{}` of this program's type `{}` draws random numbers in training, and devices generate different ones: set its keys so that it draws none",
            layer.name,
            layer.kind.type_name()
        );
        return say(Said::Refused { reason });
    }
    let loaded = match data::load(&plan.data, &|_, _| {}) {
        Ok(loaded) => loaded,
        Err(error) => return say(failed(error.to_string())),
    };
    let weights = match initial_network(plan, None, &reference) {
        Ok(network) => network.into_record(),
        Err(Outcome::Failed { message, .. }) => return say(failed(message)),
        Err(other) => return say(failed(format!("{other:?}"))),
    };
    let lane = |device: &Device, manner| Lane::new(plan, device, &weights, manner);
    let mut lanes = Lanes {
        plan,
        pair,
        reference: lane(&reference, Manner::Plain),
        device: lane(&device, pair.manner()),
        noises: pair.noises().map(|noise| lane(&reference, noise)).collect(),
    };
    let cursor = Arc::new(Cursor::default());
    let loader = Loader::in_order("train", Arc::new(loaded.train), plan, &reference);
    let loader = loader.shuffled(plan.seed, cursor.clone());
    for epoch in 0..num_steps.div_ceil(plan.steps_per_epoch) {
        cursor.set(epoch + 1, 0);
        let first = epoch * plan.steps_per_epoch + 1;
        for (step, batch) in (first..=num_steps).zip(loader.iter()) {
            let what = format!("step {step}");
            say(Said::Began { number: step, what });
            match batch {
                Ok(batch) => {
                    let batch = HostBatch {
                        inputs: batch
                            .inputs
                            .into_parts()
                            .into_iter()
                            .map(host::get)
                            .collect(),
                        are_named: !plan.network.parts.is_empty(),
                        targets: HostTargets::get(batch.targets),
                        more_targets: {
                            let more = batch.more_targets.into_iter();
                            more.map(HostTargets::get).collect()
                        },
                        mixed: batch.mixed.map(|mixed| {
                            (HostTargets::get(mixed.targets), mixed.shares.into_data())
                        }),
                        weights: batch.weights.map(burn::tensor::Tensor::into_data),
                    };
                    say(Said::Stepped(lanes.step(step, &batch)));
                }
                Err(error) => return say(failed(error.to_string())),
            }
        }
    }
}

/// All trainings of a comparison.
struct Lanes<'a> {
    plan: &'a RunPlan,
    pair: &'a Pair,
    reference: Lane,
    device: Lane,
    noises: Vec<Lane>,
}

impl Lanes<'_> {
    /// Performs a step in all of them.
    fn step(&mut self, step: usize, batch: &HostBatch) -> Step {
        let right = self.reference.compute(step, batch);
        let other = self.device.compute(step, batch);
        let noises: Vec<Seen> = self
            .noises
            .iter_mut()
            .map(|n| n.compute(step, batch))
            .collect();
        let by_itself = self.layers_by_themselves(step, batch, &right);
        let mut all = self.in_training(&right, &other, &noises);
        self.reference.update();
        self.device.update();
        self.noises.iter_mut().for_each(Lane::update);
        all.extend(self.weights(&right));
        all.extend(by_itself);
        Step {
            step,
            reference_loss: right.loss,
            loss: other.loss,
            compared: all,
        }
    }

    /// The results of training, in the order of computation.
    fn in_training(&self, right: &Seen, other: &Seen, noises: &[Seen]) -> Vec<Compared> {
        let mut all = Vec::new();
        let layers = &self.plan.network.layers;
        for at in 0..layers.len() {
            let noises = noises.iter().map(|noise| &noise.outputs[at]);
            let tensor = (&right.outputs[at], &other.outputs[at]);
            all.push(self.tensor(Some(at), Of::Output, None, tensor, noises));
        }
        let loss = |seen: &Seen| TensorData::new(vec![seen.loss], [1]);
        let noisy: Vec<TensorData> = noises.iter().map(loss).collect();
        let tensor = (&loss(right), &loss(other));
        all.push(self.tensor(None, Of::Output, None, tensor, noisy.iter()));
        for at in (0..layers.len()).rev() {
            if let (Some(a), Some(b)) = (&right.output_gradients[at], &other.output_gradients[at]) {
                let noises = noises
                    .iter()
                    .filter_map(|n| n.output_gradients[at].as_ref());
                all.push(self.tensor(Some(at), Of::OutputGradient, None, (a, b), noises));
            }
            for (number, (path, gradient)) in right.parameter_gradients.iter().enumerate() {
                if let (layer, part) = place(path)
                    && layer == at
                {
                    // All trainings have the same parameters in the same order.
                    let of = |seen: &'_ Seen| seen.parameter_gradients[number].1.clone();
                    let noisy: Vec<TensorData> = noises.iter().map(of).collect();
                    let tensor = (gradient, &of(other));
                    let part = Some(part.to_owned());
                    let of = Of::ParameterGradient;
                    all.push(self.tensor(Some(at), of, part, tensor, noisy.iter()));
                }
            }
        }
        all
    }

    /// The parameters after the update.
    fn weights(&self, right: &Seen) -> Vec<Compared> {
        let paths = right.parameter_gradients.iter();
        let paths: Vec<String> = paths.map(|(path, _)| path.clone()).collect();
        let of = |lane: &Lane| host::weights(&lane.network, &paths);
        let (right, other) = (of(&self.reference), of(&self.device));
        let noises: Vec<_> = self.noises.iter().map(of).collect();
        let each = right.iter().zip(&other).enumerate();
        let each = each.map(|(number, ((path, a), (_, b)))| {
            let (layer, part) = place(path);
            let noises = noises.iter().map(|noise| &noise[number].1);
            let part = Some(part.to_owned());
            self.tensor(Some(layer), Of::Weights, part, (a, b), noises)
        });
        each.collect()
    }

    /// A tensor of a layer, or of the loss, compared with the reference's.
    fn tensor<'t>(
        &self,
        layer: Option<usize>,
        of: Of,
        part: Option<String>,
        (right, other): (&TensorData, &TensorData),
        noises: impl Iterator<Item = &'t TensorData>,
    ) -> Compared {
        let error = |data: &TensorData| -> Error { host::error(right, data, self.pair.precision) };
        let (layer, kind) = match layer {
            Some(at) => {
                let layer = &self.plan.network.layers[at];
                (layer.name.clone(), layer.kind.type_name())
            }
            None => (LOSS.to_owned(), LOSS.to_owned()),
        };
        Compared {
            layer,
            kind,
            of,
            part,
            by_itself: false,
            error: error(other),
            floor: largest(noises.map(|noise| error(noise).ulps)),
        }
    }

    /// Each layer and the loss with the reference's inputs in this step.
    fn layers_by_themselves(
        &mut self,
        step: usize,
        batch: &HostBatch,
        right: &Seen,
    ) -> Vec<Compared> {
        let Lanes {
            plan,
            pair,
            reference,
            device,
            noises,
        } = self;
        let weights = reference.network.clone().into_record();
        let on = |device: &Device| with_weights(plan, device, &weights);
        let bench = on(&device.device);
        // The same vectors for each answer.
        let iterates = plan.network.iterates();
        let mut all = Vec::new();
        let layers = reference.network.graph().layers();
        for (at, (_, layer_plan)) in layers.enumerate() {
            let Some(gradient) = &right.output_gradients[at] else {
                continue;
            };
            let inputs = layer_plan.inputs.iter().map(|input| match input.layer {
                Some(from) => right.outputs[from].clone(),
                None => batch.inputs[input.part.unwrap_or(0)].clone(),
            });
            let given = Given {
                inputs: inputs.collect(),
                gradient: gradient.clone(),
            };
            // A tied layer's matrix is computed from a parameter, for one backward pass.
            let on_reference = |manner: &mut Manner| {
                let copy = iterates.then(|| on(&reference.device));
                let network = copy.as_ref().unwrap_or(&reference.network);
                let layer = network.graph().layer(at);
                answers(&layer, layer_plan, &given, &reference.device, manner, step)
            };
            let right = on_reference(&mut Manner::Plain);
            let noisy = noises
                .iter_mut()
                .map(|noise| on_reference(&mut noise.manner));
            let noisy: Vec<Answers> = noisy.collect();
            let manner = &mut device.manner;
            let copy = iterates.then(|| on(&device.device));
            let on_device = copy.as_ref().unwrap_or(&bench).graph().layer(at);
            let other = answers(&on_device, layer_plan, &given, &device.device, manner, step);
            let kind = layer_plan.kind.type_name();
            let name = &layer_plan.name;
            all.extend(compared(
                name,
                &kind,
                &right,
                &other,
                &noisy,
                pair.precision,
            ));
        }
        if let Some(output) = right.outputs.last() {
            let loss = |network: &Network, device: &Device, manner: &mut Manner| {
                loss_by_itself(network, output, &batch.targets, device, manner)
            };
            let right = loss(&reference.network, &reference.device, &mut Manner::Plain);
            let noisy = noises.iter_mut();
            let noisy: Vec<Answers> = noisy
                .map(|noise| loss(&reference.network, &reference.device, &mut noise.manner))
                .collect();
            let other = loss(&bench, &device.device, &mut Manner::Plain);
            all.extend(compared(LOSS, LOSS, &right, &other, &noisy, pair.precision));
        }
        all
    }
}

/// The loss of each item for the output of the last layer, and the gradient of their mean.
fn loss_by_itself(
    network: &Network,
    output: &TensorData,
    targets: &HostTargets,
    device: &Device,
    manner: &mut Manner,
) -> Answers {
    let order = manner.order(output.shape()[0]);
    let input = host::tracked(DynTensor::from_data(order.apply(output), device));
    let given = match manner {
        Manner::Noisy(noise) => noise.change(input.clone()),
        _ => input.clone(),
    };
    let losses = network.losses(given, &targets.put(&order, device));
    let gradients = losses.clone().mean().backward();
    let mut answers = vec![(Of::Output, None, order.undo(losses.into_data()))];
    if let Some(gradient) = host::gradient(&input, &gradients) {
        let part = Some("1".to_owned());
        answers.push((Of::InputGradient, part, order.undo(gradient)));
    }
    answers
}

/// The layer and the path in it of a parameter, from Burn's path `graph.layers.<index>.<variant>.<path>`.
fn place(path: &str) -> (usize, &str) {
    let mut parts = path.splitn(5, '.').skip(2);
    let layer = parts.next().and_then(|index| index.parse().ok());
    (layer.unwrap_or_default(), parts.nth(1).unwrap_or(path))
}
