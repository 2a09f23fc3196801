//! Small networks of each type of layer on two devices, layer by layer.

use burn::module::Module;
use burn::tensor::{Device, TensorData};

use super::host;
use super::itself::{Answers, Given, answers, compared};
use super::lane::Manner;
use super::{Pair, Say};
use crate::train::device;
use runner_core::check::network::Network as NetworkPlan;
use runner_core::check::network::examples::Example as Small;
use runner_core::data::order::{Purpose, stream_seed};
use runner_core::diagnostic::Reason;
use runner_core::parity::{Example, Outcome, Said};
use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::LayerKind;
use runner_network::graph::Graph;
use runner_network::own::is_random;
use runner_network::tensor::DynTensor;

/// Items of a batch.
const BATCH: usize = 4;

/// Compares the examples with these numbers, from 1, and returns the result of each.
pub fn try_examples(examples: &[(usize, Small)], pair: &Pair, say: Say<'_>) {
    let Some([reference, device]) = pair.open(say) else {
        return;
    };
    let drawn_on = match device::canonical(pair.reference, pair.precision) {
        Ok(canonical) => canonical.unwrap_or_else(|| reference.clone()),
        Err(Reason(reason)) => return say(Said::Refused { reason }),
    };
    let devices = [drawn_on, reference, device].map(Device::autodiff);
    for (number, small) in examples {
        let kind = small.kind();
        say(Said::Began {
            number: *number,
            what: format!("`{kind}`"),
        });
        let own = small.network.layers.last();
        let is_random = || own.is_some_and(|layer| is_random(layer, &devices[0]));
        let outcome = if draws(&small.network) || is_random() {
            Outcome::Random
        } else {
            compare(*number, &small.network, pair, &devices)
        };
        say(Said::Tried(Example {
            number: *number,
            kind,
            layers: small.layers.clone(),
            outcome,
        }));
    }
}

/// Whether the tested layer of an example is random.
fn draws(network: &NetworkPlan) -> bool {
    let kind = network.layers.last().map(|layer| &layer.kind);
    matches!(
        kind,
        Some(
            LayerKind::Dropout { .. }
                | LayerKind::ChannelDropout { .. }
                | LayerKind::StochasticDepth { .. }
                | LayerKind::GaussianNoise { .. }
                | LayerKind::GaussianSample
                | LayerKind::Noise { .. }
                | LayerKind::Activation(Activation::Rrelu { .. })
        )
    )
}

fn compare(
    number: usize,
    network: &NetworkPlan,
    pair: &Pair,
    [drawn_on, reference, device]: &[Device; 3],
) -> Outcome {
    let network = &without_dropout(network);
    drawn_on.seed(stream_seed(1, Purpose::Init, number as u64));
    let weights = Graph::new(network, Default::default(), drawn_on).into_record();
    let graph = |device: &Device| {
        let weights = weights.clone().cast_to_module_dtype();
        Graph::new(network, Default::default(), device).load_record(weights)
    };
    let (right_graph, other_graph) = (graph(reference), graph(device));
    let items = items(network);
    let mut outputs: Vec<TensorData> = Vec::new();
    right_graph.outputs(
        DynTensor::from_data(items.clone(), reference),
        |_, output| {
            outputs.push(host::get(output.clone()));
        },
    );
    let mut all = Vec::new();
    for (at, (_, plan)) in right_graph.layers().enumerate() {
        let inputs = plan.inputs.iter().map(|input| match input.layer {
            Some(from) => outputs[from].clone(),
            None => items.clone(),
        });
        let given = Given {
            inputs: inputs.collect(),
            gradient: waves(&[&[BATCH], plan.shape.as_slice()].concat(), 0.43),
        };
        // A tied layer's matrix is computed from a parameter, for one backward pass.
        let on_reference = |mut manner: Manner| {
            let copy = network.iterates().then(|| graph(reference));
            let layer = copy.as_ref().unwrap_or(&right_graph).layer(at);
            answers(&layer, plan, &given, reference, &mut manner, 1)
        };
        let right = on_reference(Manner::Plain);
        let noises: Vec<Answers> = pair.noises().map(on_reference).collect();
        // Only the tested layer of the example may be made wrong.
        let mut manner = if at + 1 == network.layers.len() {
            pair.manner()
        } else {
            Manner::Plain
        };
        let copy = network.iterates().then(|| graph(device));
        let on_device = copy.as_ref().unwrap_or(&other_graph).layer(at);
        let other = answers(&on_device, plan, &given, device, &mut manner, 1);
        let kind = plan.kind.type_name();
        let precision = pair.precision;
        all.extend(compared(
            &plan.name, &kind, &right, &other, &noises, precision,
        ));
    }
    Outcome::Compared { compared: all }
}

/// Tokens one after the other, or numbers.
fn items(network: &NetworkPlan) -> TensorData {
    let shape = [&[BATCH], network.items.dims.as_slice()].concat();
    match network.items.vocabulary {
        Some(vocabulary) => {
            let num: usize = shape.iter().product();
            let tokens = (0..num).map(|at| (at % vocabulary) as i64);
            TensorData::new(tokens.collect::<Vec<i64>>(), shape)
        }
        None => waves(&shape, 0.7),
    }
}

/// Arbitrary numbers between -2 and 2.
fn waves(shape: &[usize], pace: f64) -> TensorData {
    let num: usize = shape.iter().product();
    let value = |at: usize| (2.0 * (1.0 + pace * at as f64).sin()) as f32;
    let values: Vec<f32> = (0..num).map(value).collect();
    TensorData::new(values, shape.to_vec())
}

/// The network without dropout inside its layers.
fn without_dropout(network: &NetworkPlan) -> NetworkPlan {
    let mut network = network.clone();
    for layer in &mut network.layers {
        super::steps::draw_nothing(&mut layer.kind, &layer.shape);
    }
    network
}
