//! Initial weights according to a layer's `initializer`. Burn's modules would also use it for their biases, which
//! panics or makes no sense for most distributions; here biases keep the default of the module, or are one number.

use burn::module::{Module, ModuleMapper, Param};
use burn::nn::Initializer;
use burn::tensor::Tensor;

use crate::layer::Layer;
use runner_core::spec::model::initializer::{Distribution, Initializer as InitializerSpec};

/// The layer with weights of two or more dimensions to be initialized from `spec`. Kernels of a layer with `groups`
/// connect to that part of the outputs.
pub fn redraw(layer: Layer, spec: &InitializerSpec, groups: usize) -> Layer {
    layer.map(&mut Redraw {
        weights: initializer(&spec.distribution),
        biases: spec.bias.map(|value| Initializer::Constant { value }),
        path: Vec::new(),
        groups,
    })
}

struct Redraw {
    weights: Initializer,
    biases: Option<Initializer>,
    /// The names of the modules that the parameter is in, and its own.
    path: Vec<String>,
    groups: usize,
}

impl ModuleMapper for Redraw {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.lazy_shape();
        let dims: [usize; D] = shape.dims();
        let (fan_in, fan_out) = match dims.as_slice() {
            [] | [_] => {
                let is_bias = self.path.last().is_some_and(|name| name == "bias");
                return match &self.biases {
                    Some(biases) if is_bias => {
                        biases.init_with(shape, None, None, &param.lazy_device())
                    }
                    _ => param,
                };
            }
            // Burn's matrices are [inputs, outputs].
            [inputs, outputs] => (*inputs, *outputs),
            [outputs, inputs, kernel @ ..] => {
                let area: usize = kernel.iter().product();
                (inputs * area, outputs / self.groups * area)
            }
        };
        self.weights
            .init_with(shape, Some(fan_in), Some(fan_out), &param.lazy_device())
    }
}

fn initializer(spec: &Distribution) -> Initializer {
    match *spec {
        Distribution::Constant { value } => Initializer::Constant { value },
        Distribution::Uniform { min, max } => Initializer::Uniform { min, max },
        Distribution::Normal { mean, std } => Initializer::Normal { mean, std },
        Distribution::KaimingUniform { gain, fan_out } => Initializer::KaimingUniform {
            gain,
            fan_out_only: fan_out,
        },
        Distribution::KaimingNormal { gain, fan_out } => Initializer::KaimingNormal {
            gain,
            fan_out_only: fan_out,
        },
        Distribution::XavierUniform { gain } => Initializer::XavierUniform { gain },
        Distribution::XavierNormal { gain } => Initializer::XavierNormal { gain },
        Distribution::Orthogonal { gain } => Initializer::Orthogonal { gain },
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::nn::LinearConfig;
    use burn::nn::conv::Conv2dConfig;
    use burn::tensor::Device;
    use runner_core::spec::model::layer::LayerKind;

    use super::*;
    use crate::testing::{generator, planned};

    /// The spread of weights is that of PyTorch, as recorded by `tests/golden/optimizers.py`.
    #[test]
    fn weights_are_drawn_as_by_pytorch() {
        let _generator = generator();
        let device = Device::flex();
        device.seed(1);
        let golden = include_str!("../../../tests/golden/optimizers.json");
        let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
        for case in golden["initializers"].as_array().unwrap() {
            let (kind, nonlinearity) = (&case["type"], &case["nonlinearity"]);
            let fan_out = case
                .get("fan_out")
                .map_or_else(String::new, |it| format!(", fan_out = {it}"));
            let plan = planned(&format!(
                "data.type = \"iris\"\noptimizer = {{ type = \"sgd\", learning_rate = 0.1 }}\ntrain.epochs = 1\n\
                 model.layers = [{{ type = \"linear\", initializer = {{ type = {kind}, nonlinearity = {nonlinearity}{fan_out} }} }}]\n"
            ));
            let LayerKind::Linear {
                initializer: Some(spec),
                ..
            } = &plan.network.layers[0].kind
            else {
                panic!("a linear layer with an initializer");
            };
            let mut draw = Redraw {
                weights: initializer(&spec.distribution),
                biases: None,
                path: Vec::new(),
                groups: 1,
            };
            let values: Vec<f64> = if case["layer"] == "linear" {
                let layer = LinearConfig::new(200, 300).init(&device).map(&mut draw);
                layer.weight.val().into_data().iter().collect()
            } else {
                let layer = Conv2dConfig::new([32, 64], [3, 3])
                    .init(&device)
                    .map(&mut draw);
                layer.weight.val().into_data().iter().collect()
            };
            let spread = if kind.as_str().unwrap().ends_with("uniform") {
                values
                    .iter()
                    .fold(0.0, |most: f64, value| most.max(value.abs()))
            } else {
                (values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64).sqrt()
            };
            let expected = case["value"].as_f64().unwrap();
            assert!((spread / expected - 1.0).abs() < 0.02, "{case}: {spread}");
        }
    }
}
