//! Initial weights according to a layer's `initializer`. Burn's modules would also use it for their biases, which
//! panics or makes no sense for most distributions; here biases keep the default of the module.

use burn::module::{Module, ModuleMapper, Param};
use burn::nn::Initializer;
use burn::tensor::Tensor;

use crate::layer::Layer;
use runner_core::spec::model::initializer::Initializer as InitializerSpec;

/// The layer with weights of two or more dimensions to be initialized from `spec`. Kernels of a layer with `groups`
/// connect to that part of the outputs.
pub fn redraw(layer: Layer, spec: &InitializerSpec, groups: usize) -> Layer {
    layer.map(&mut Redraw {
        initializer: initializer(spec),
        groups,
    })
}

struct Redraw {
    initializer: Initializer,
    groups: usize,
}

impl ModuleMapper for Redraw {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape = param.lazy_shape();
        let dims: [usize; D] = shape.dims();
        let (fan_in, fan_out) = match dims.as_slice() {
            [] | [_] => return param,
            // Burn's matrices are [inputs, outputs].
            [inputs, outputs] => (*inputs, *outputs),
            [outputs, inputs, kernel @ ..] => {
                let area: usize = kernel.iter().product();
                (inputs * area, outputs / self.groups * area)
            }
        };
        self.initializer
            .init_with(shape, Some(fan_in), Some(fan_out), &param.lazy_device())
    }
}

fn initializer(spec: &InitializerSpec) -> Initializer {
    match *spec {
        InitializerSpec::Constant { value } => Initializer::Constant { value },
        InitializerSpec::Uniform { min, max } => Initializer::Uniform { min, max },
        InitializerSpec::Normal { mean, std } => Initializer::Normal { mean, std },
        InitializerSpec::KaimingUniform { gain, fan_out } => Initializer::KaimingUniform {
            gain,
            fan_out_only: fan_out,
        },
        InitializerSpec::KaimingNormal { gain, fan_out } => Initializer::KaimingNormal {
            gain,
            fan_out_only: fan_out,
        },
        InitializerSpec::XavierUniform { gain } => Initializer::XavierUniform { gain },
        InitializerSpec::XavierNormal { gain } => Initializer::XavierNormal { gain },
        InitializerSpec::Orthogonal { gain } => Initializer::Orthogonal { gain },
    }
}
