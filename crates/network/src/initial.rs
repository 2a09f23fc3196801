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
