//! Losses compared step by step with those of PyTorch, as recorded by `tests/golden/pytorch.py`.

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};

use crate::batch::Batch;
use crate::network::Network;
use crate::optimizer::optimizer;
use crate::paths::Paths;
use crate::targets::Targets;
use crate::tensor::DynTensor;
use crate::testing::{generator, planned};
use runner_core::data::{Inputs, TargetValues, embedded};
use runner_core::spec::data::ImageSize;

const BATCH: usize = 64;

/// Sets every parameter to values of a formula, as the script does.
struct FirstWeights {
    number: usize,
    fan_in: usize,
}

impl ModuleMapper for FirstWeights {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.lazy_shape();
        let dims: [usize; D] = shape.dims();
        self.fan_in = match dims.as_slice() {
            [_] => self.fan_in,
            [inputs, _] => *inputs,
            [_, rest @ ..] => rest.iter().product(),
            [] => 1,
        };
        let value = |at: usize| {
            let angle = 1.0 + 0.5 * self.number as f64 + 0.37 * at as f64;
            (angle.sin() / (self.fan_in as f64).sqrt()) as f32
        };
        let values: Vec<f32> = (0..shape.num_elements()).map(value).collect();
        self.number += 1;
        let data = TensorData::new(values, dims.to_vec());
        let value = Tensor::from_data(data, &param.lazy_device());
        Param::initialized(param.id, value.require_grad())
    }
}

/// The digits in order, from 0 to 1.
fn batches(device: &Device, num: usize) -> Vec<Batch> {
    let items = embedded::digits(ImageSize::Eight).unwrap();
    let (Inputs::Bytes { bytes, scale }, TargetValues::Classes(classes)) =
        (items.inputs, items.targets)
    else {
        panic!("images with a class each");
    };
    let values: Vec<f32> = bytes.iter().map(|byte| f32::from(*byte) * scale).collect();
    let batch = |at: usize| {
        let items = at * BATCH..(at + 1) * BATCH;
        let values = values[items.start * 64..items.end * 64].to_vec();
        let classes = TensorData::new(classes[items].to_vec(), [BATCH, 1]);
        Batch {
            noise: None,
            condition: None,
            inputs: DynTensor::from_values(values, &[BATCH, 1, 8, 8], device),
            targets: Targets::Classes(Tensor::from_data(classes, device)),
            more_targets: Vec::new(),
            mixed: None,
            weights: None,
        }
    };
    (0..num).map(batch).collect()
}

fn assert_losses(name: &str, model: &str, method: &str) {
    let _generator = generator();
    let golden = include_str!("../../../tests/golden/losses.json");
    let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
    let expected: Vec<f64> = serde_json::from_value(golden[name].clone()).unwrap();
    let plan = planned(&format!(
        "data.type = \"digits\"\nmodel = {model}\noptimizer = {method}\ntrain.epochs = 1\n"
    ));
    let device = Device::flex().autodiff();
    let mut first = FirstWeights {
        number: 0,
        fan_in: 1,
    };
    let mut network = Network::new(&plan, &device).map(&mut first);
    let mut optimizer = optimizer(&plan, &Paths::new(&plan).parameters(&network));
    let batches = batches(&device, expected.len());
    for (step, (batch, expected)) in batches.into_iter().zip(expected).enumerate() {
        let loss = network.output(batch).losses.mean();
        let gradients = GradientsParams::from_grads(loss.backward(), &network);
        let loss = loss.into_data().iter::<f64>().next().unwrap();
        assert!(
            (loss - expected).abs() < 2e-6,
            "{name}, step {step}: {loss}, but PyTorch has {expected}"
        );
        network = optimizer.step(plan.optimizer.learning_rate, network, gradients);
    }
}

#[test]
fn an_mlp_with_adam_has_the_losses_of_pytorch() {
    let model = "{ type = \"mlp\", hidden = [32] }";
    assert_losses("mlp", model, "{ type = \"adam\", learning_rate = 1e-2 }");
}

#[test]
fn a_cnn_with_momentum_has_the_losses_of_pytorch() {
    let model = "{ type = \"cnn\", channels = [8], hidden = [16] }";
    let method = "{ type = \"sgd\", learning_rate = 0.05, momentum = 0.9 }";
    assert_losses("cnn", model, method);
}
