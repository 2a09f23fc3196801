//! Initial weights according to a layer's `initializer`. Burn's modules would also use it for their biases, which
//! panics or makes no sense for most distributions; here biases keep the default of the module, or are one number.

use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::nn::Initializer;
use burn::tensor::{Device, Distribution as Drawn, Shape, Tensor, TensorData};

use crate::layer::Layer;
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::model::initializer::{Distribution, Initializer as InitializerSpec};
use runner_core::spec::model::layer::LayerKind;

/// The layer with weights of two or more dimensions to be initialized from `spec`. Kernels of a layer with `groups`
/// connect to that part of the outputs.
pub fn redraw(
    layer: Layer,
    spec: &InitializerSpec,
    groups: usize,
    arithmetic: Arithmetic,
) -> Layer {
    layer.map(&mut Redraw {
        weights: initializer(&spec.distribution),
        biases: spec.bias.map(|value| Initializer::Constant { value }),
        path: Vec::new(),
        groups,
        arithmetic,
    })
}

/// The layer with parameters that Burn would draw from a normal distribution, if nothing else is set, drawn so that they
/// are the same bits on every processor.
pub fn drawn_portably(layer: Layer, kind: &LayerKind) -> Layer {
    let draws = match kind {
        LayerKind::Embedding { .. } => Normal::Of {
            mean: 0.0,
            std: 1.0,
        },
        LayerKind::Parameter { std, mean, .. } if *std > 0.0 => Normal::Of {
            mean: *mean,
            std: *std,
        },
        LayerKind::PositionEmbedding { std, .. } if *std > 0.0 => Normal::Of {
            mean: 0.0,
            std: *std,
        },
        LayerKind::Recurrent(_) => Normal::Xavier { fans: 2 },
        _ => return layer,
    };
    layer.map(&mut { draws })
}

/// The distributions of parameters that Burn draws by default.
enum Normal {
    Of {
        mean: f64,
        std: f64,
    },
    /// For inputs and outputs of a matrix; a bias comes after its matrix.
    Xavier {
        fans: usize,
    },
}

impl ModuleMapper for Normal {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.lazy_shape();
        let (mean, std) = match self {
            Normal::Of { mean, std } => (*mean, *std),
            Normal::Xavier { fans } => {
                if D == 2 {
                    *fans = shape.iter().sum();
                }
                (0.0, (2.0 / *fans as f64).sqrt())
            }
        };
        normal(shape, mean, std, &param.lazy_device())
    }
}

/// A parameter that is drawn from a normal distribution.
pub(crate) fn normal<const D: usize>(
    shape: Shape,
    mean: f64,
    std: f64,
    device: &Device,
) -> Param<Tensor<D>> {
    let of_shape = shape.clone();
    let draw = move |device: &Device, require_grad: bool| {
        let values = Tensor::from_data(normals(&of_shape, mean, std, device), device);
        if require_grad {
            values.require_grad()
        } else {
            values
        }
    };
    Param::uninitialized(ParamId::new(), draw, device.clone(), true, shape)
}

/// Numbers from a normal distribution by the transform of Box and Muller (1958) of uniform ones from the device, with
/// functions that are the same everywhere.
pub fn normals(shape: &Shape, mean: f64, std: f64, device: &Device) -> TensorData {
    let num = shape.num_elements();
    let uniform = Drawn::Uniform(0.0, 1.0);
    let uniform = Tensor::<1>::random([num.next_multiple_of(2)], uniform, device);
    let uniform: Vec<f64> = uniform.into_data().iter::<f64>().collect();
    let mut values = Vec::with_capacity(uniform.len());
    for pair in uniform.chunks_exact(2) {
        let size = (-2.0 * libm::log(1.0 - pair[0])).sqrt() * std;
        let angle = std::f64::consts::TAU * pair[1];
        values.extend([
            (mean + size * libm::cos(angle)) as f32,
            (mean + size * libm::sin(angle)) as f32,
        ]);
    }
    values.truncate(num);
    TensorData::new(values, shape.clone())
}

struct Redraw {
    weights: Initializer,
    biases: Option<Initializer>,
    /// The names of the modules that the parameter is in, and its own.
    path: Vec<String>,
    groups: usize,
    arithmetic: Arithmetic,
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
        let device = param.lazy_device();
        if self.arithmetic.is_portable()
            && let Some((mean, std)) = deviation(&self.weights, fan_in, fan_out)
        {
            return normal(shape, mean, std, &device);
        }
        self.weights
            .init_with(shape, Some(fan_in), Some(fan_out), &device)
    }
}

/// The mean and the deviation of a normal distribution, as Burn has them; none of another one.
fn deviation(initializer: &Initializer, fan_in: usize, fan_out: usize) -> Option<(f64, f64)> {
    match *initializer {
        Initializer::Normal { mean, std } => Some((mean, std)),
        Initializer::KaimingNormal { gain, fan_out_only } => {
            let fan = if fan_out_only { fan_out } else { fan_in };
            Some((0.0, gain / (fan as f64).sqrt()))
        }
        Initializer::XavierNormal { gain } => {
            Some((0.0, gain * (2.0 / (fan_in + fan_out) as f64).sqrt()))
        }
        _ => None,
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
                arithmetic: Arithmetic::Fast,
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
