//! Every layer by runner's kernels compared with Burn's, forward and backward, and which layers have kernels.

use std::collections::BTreeMap;

use burn::module::Module;
use burn::nn::{Initializer, LinearConfig};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use runner_core::check::network::Network;
use runner_core::check::network::examples::{Example, examples};
use runner_core::check::network::kernels::has_kernel;
use runner_core::spec::backend::{Arithmetic, Kernels};
use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::LayerKind;

use super::CALLS;
use crate::graph::Graph;
use crate::leaves;
use crate::optimizer::optimizer;
use crate::tensor::{DynTensor, map_rank};
use crate::testing::{generator, planned};

/// Whether a step uses random numbers.
fn is_random(network: &Network) -> bool {
    network.layers.iter().any(|layer| match &layer.kind {
        LayerKind::Dropout { .. }
        | LayerKind::ChannelDropout { .. }
        | LayerKind::StochasticDepth { .. }
        | LayerKind::GaussianNoise { .. }
        | LayerKind::GaussianSample
        | LayerKind::Noise { .. } => true,
        LayerKind::Activation(Activation::Rrelu { lower, upper }) => lower != upper,
        LayerKind::MultiHeadAttention { dropout, .. } => *dropout > 0.0,
        LayerKind::GroupedAttention(attention) => attention.dropout > 0.0,
        LayerKind::TransformerEncoder(stack) | LayerKind::TransformerDecoder(stack) => {
            stack.dropout > 0.0
        }
        _ => false,
    })
}

/// Output and gradients of a batch of 3.
fn computed(
    network: &Network,
    computed: (Kernels, Arithmetic),
    device: &Device,
    weights: &Graph,
) -> BTreeMap<String, Vec<f32>> {
    let record = weights.clone().into_record();
    let graph = Graph::new(network, computed, device).load_record(record);
    let dims = [&[3], network.items.dims.as_slice()].concat();
    let num = dims.iter().product::<usize>();
    let mut leaf = None;
    let items = match network.items.vocabulary {
        Some(_) => {
            let tokens = TensorData::new((0..18i64).map(|at| at * at % 7).collect(), [3, 6]);
            DynTensor::Tokens(Tensor::from_data(tokens, device))
        }
        None => {
            let values = (0..num)
                .map(|at| 2.0 * (at as f32 * 0.7 + 0.3).sin())
                .collect();
            let items = DynTensor::from_values(values, &dims, device);
            let items = map_rank!(items, t => t.require_grad());
            leaf = Some(items.clone());
            items
        }
    };
    let output = graph.forward(items).flatten();
    let mut found = BTreeMap::new();
    found.insert(
        "output".to_owned(),
        output.to_data().iter::<f32>().collect(),
    );
    let upstream = (0..output.shape().num_elements()).map(|at| (at as f32).cos());
    let upstream = TensorData::new(upstream.collect(), output.dims());
    let loss = (output * Tensor::from_data(upstream, device)).sum();
    if leaf.is_none() && network.num_parameters == 0 {
        return found;
    }
    let gradients = loss.backward();
    if let Some(leaf) = leaf {
        let of_items: Vec<f32> = match leaf {
            DynTensor::R2(t) => t.grad(&gradients).map(|g| g.into_data().iter().collect()),
            DynTensor::R3(t) => t.grad(&gradients).map(|g| g.into_data().iter().collect()),
            DynTensor::R4(t) => t.grad(&gradients).map(|g| g.into_data().iter().collect()),
            DynTensor::R5(t) => t.grad(&gradients).map(|g| g.into_data().iter().collect()),
            _ => None,
        }
        .unwrap_or_default();
        found.insert("items".into(), of_items);
    }
    let gradients = GradientsParams::from_grads(gradients, &graph);
    leaves::each(&graph, |leaf| {
        if let Some(gradient) = leaf.gradient(&gradients) {
            found.insert(leaf.path.to_owned(), gradient.iter::<f32>().collect());
        }
    });
    found
}

#[test]
fn layers_are_those_of_burn_forward_and_backward() {
    let _generator = generator();
    for device in [
        Device::flex().autodiff(),
        Device::flex().autodiff().gradient_checkpointing(),
    ] {
        for Example { layers, network } in examples() {
            if is_random(&network) {
                continue;
            }
            let weights = Graph::new(&network, Default::default(), &device);
            let all = [
                (Kernels::Fast, Arithmetic::Fast),
                (Kernels::Fast, Arithmetic::Portable),
                (Kernels::Reference, Arithmetic::Fast),
            ];
            let [ours, portable, burns] =
                all.map(|means| computed(&network, means, &device, &weights));
            let paths = |found: &BTreeMap<String, _>| found.keys().cloned().collect::<Vec<_>>();
            assert_eq!(paths(&ours), paths(&burns), "{layers}");
            for (path, ours) in ours.into_iter().chain(portable) {
                let burns = &burns[&path];
                assert_eq!(ours.len(), burns.len(), "{path} of {layers}");
                let size = burns.iter().fold(1.0f32, |size, x| size.max(x.abs()));
                for (at, (ours, burns)) in ours.iter().zip(burns).enumerate() {
                    assert!(
                        (ours - burns).abs() <= 2e-5 * size,
                        "{path} at {at} is {ours}, and {burns} by Burn's: {layers}"
                    );
                }
            }
        }
    }
}

/// Weights after some steps, to the bit.
#[test]
fn optimizers_update_as_tensors_do() {
    let device = Device::flex();
    for settings in [
        "type = \"adam\"",
        "type = \"adam\", weight_decay = 0.1",
        "type = \"adam\", amsgrad = true",
        "type = \"adamw\", weight_decay = 0.1",
        "type = \"adamw\", weight_decay = 0.1, cautious_weight_decay = true",
        "type = \"sgd\"",
        "type = \"sgd\", weight_decay = 0.1, momentum = 0.9",
        "type = \"sgd\", momentum = 0.9, dampening = 0.5",
        "type = \"sgd\", momentum = 0.9, nesterov = true",
        "type = \"rmsprop\", weight_decay = 0.1",
        "type = \"rmsprop\", momentum = 0.9",
        "type = \"rmsprop\", centered = true",
        "type = \"rmsprop\", centered = true, momentum = 0.9",
        "type = \"adagrad\", lr_decay = 0.1, weight_decay = 0.1",
        "type = \"adan\"",
        "type = \"adan\", weight_decay = 0.1",
        "type = \"adan\", weight_decay = 0.1, no_prox = true",
        "type = \"lamb\", weight_decay = 0.1",
        "type = \"lamb\", use_trust_ratio = false",
        "type = \"lion\", weight_decay = 0.1",
    ] {
        let bits = ["fast", "reference"].map(|kernels| {
            let plan = planned(&format!(
                "data.type = \"iris\"\nmodel.type = \"mlp\"\noptimizer = {{ {settings}, learning_rate = 1e-2 }}\ntrain = {{ epochs = 1, batch_size = 25 }}\nbackend.kernels = \"{kernels}\"\n"
            ));
            let mut optimizer = optimizer(&plan, &[]);
            let linear = LinearConfig::new(5, 7).with_initializer(Initializer::Ones);
            let mut linear = linear.init(&device.clone().autodiff());
            for step in 0..4 {
                let x = (0..15).map(|at| ((at + 3 * step) as f32).sin()).collect();
                let x = TensorData::new(x, [3, 5]);
                let x = Tensor::<2>::from_data(x, &device.clone().autodiff());
                let gradients = linear.forward(x).square().sum().backward();
                let gradients = GradientsParams::from_grads(gradients, &linear);
                linear = optimizer.step(1e-2, linear, gradients);
            }
            let weights = linear.weight.val().into_data();
            weights.iter::<f32>().map(f32::to_bits).collect::<Vec<_>>()
        });
        assert_eq!(bits[0], bits[1], "{settings}");
    }
}

/// The record names the kernels that actually computed each layer.
#[test]
fn layers_that_have_kernels_are_computed_by_them() {
    let _generator = generator();
    let device = Device::flex().autodiff();
    for Example { layers, network } in examples() {
        let last = network.layers.last().expect("a layer");
        let graph = Graph::new(&network, Default::default(), &device).materialize();
        let dims = [&[2], network.items.dims.as_slice()].concat();
        let items = match network.items.vocabulary {
            Some(_) => {
                let tokens = TensorData::new(vec![1i64; 12], [2, 6]);
                DynTensor::Tokens(Tensor::from_data(tokens, &device))
            }
            None => {
                let num = dims.iter().product::<usize>();
                DynTensor::from_values(vec![0.5; num], &dims, &device)
            }
        };
        let mut calls = 0;
        graph.outputs_by(items, |_, layer, plan, inputs| {
            let before = CALLS.with(std::cell::Cell::get);
            let output = layer.forward(plan, inputs);
            calls = CALLS.with(std::cell::Cell::get) - before;
            output
        });
        assert_eq!(calls > 0, has_kernel(&last.kind), "{layers}");
    }
}
