//! What happens to gradients between the backward pass and the update.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, FloatDType, Tensor};

use crate::network::Network;
use crate::numeric::total;
use crate::paths::Paths;
use runner_core::spec::backend::Arithmetic;

/// Adds the gradients of a piece of a step, weighted by `weight`, to those of the earlier pieces.
pub fn add(
    network: &Network,
    sum: Option<GradientsParams>,
    piece: GradientsParams,
    weight: f64,
) -> GradientsParams {
    if weight == 1.0 {
        return piece;
    }
    let mut adder = Adder {
        sum: sum.unwrap_or_default(),
        piece,
        weight,
    };
    network.visit(&mut adder);
    adder.sum
}

struct Adder {
    sum: GradientsParams,
    piece: GradientsParams,
    weight: f64,
}

impl ModuleVisitor for Adder {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(piece) = self.piece.remove::<D>(param.id) else {
            return;
        };
        let piece = piece.mul_scalar(self.weight);
        let sum = match self.sum.remove::<D>(param.id) {
            Some(sum) => sum + piece,
            None => piece,
        };
        self.sum.register(param.id, sum);
    }
}

/// Norms of gradients, as tensors that are still on the device.
#[derive(Debug)]
pub struct Norms {
    /// Over all gradients.
    pub global: Tensor<1>,
    /// Of each parameter's gradient by path, if paths were given.
    pub parameters: Vec<(String, Tensor<1>)>,
}

/// Measures gradients. Without gradients, there are no norms.
pub fn norms(
    network: &Network,
    gradients: &GradientsParams,
    paths: Option<&Paths>,
    arithmetic: Arithmetic,
) -> Option<Norms> {
    let mut measure = Measure {
        gradients,
        paths,
        path: Vec::new(),
        names: Vec::new(),
        squares: Vec::new(),
        arithmetic,
    };
    network.visit(&mut measure);
    let Measure { names, squares, .. } = measure;
    if squares.is_empty() {
        return None;
    }
    let parameters = names.into_iter().zip(&squares);
    let parameters = parameters.map(|(name, squares)| (name, squares.clone().sqrt()));
    let parameters = parameters.collect();
    Some(Norms {
        global: total(arithmetic, Tensor::cat(squares, 0)).sqrt(),
        parameters,
    })
}

struct Measure<'a> {
    gradients: &'a GradientsParams,
    paths: Option<&'a Paths>,
    path: Vec<String>,
    names: Vec<String>,
    squares: Vec<Tensor<1>>,
    arithmetic: Arithmetic,
}

impl ModuleVisitor for Measure<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        if self.paths.is_some() {
            self.path.push(name.to_owned());
        }
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(gradient) = self.gradients.get::<D>(param.id) else {
            return;
        };
        // Squares in half precision overflow quickly.
        let gradient = match gradient.dtype() {
            DType::F16 | DType::BF16 => gradient.cast(FloatDType::F32),
            _ => gradient,
        };
        self.squares.push(total(self.arithmetic, gradient.square()));
        self.names
            .extend(self.paths.map(|paths| paths.of(&self.path.join("."))));
    }
}

/// Scales all gradients down together if their norm exceeds `max_norm`, without waiting for the device.
pub fn clip(
    network: &Network,
    gradients: GradientsParams,
    norm: Tensor<1>,
    max_norm: f64,
) -> GradientsParams {
    let scale = norm.add_scalar(1e-6).recip().mul_scalar(max_norm);
    let mut scaler = Scaler {
        gradients,
        scale: scale.clamp_max(1.0),
    };
    network.visit(&mut scaler);
    scaler.gradients
}

struct Scaler {
    gradients: GradientsParams,
    scale: Tensor<1>,
}

impl ModuleVisitor for Scaler {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            let dtype = gradient.dtype();
            let scale = if dtype == self.scale.dtype() {
                self.scale.clone()
            } else {
                self.scale.clone().cast(FloatDType::from(dtype))
            };
            let gradient = gradient.mul(scale.unsqueeze());
            self.gradients.register(param.id, gradient);
        }
    }
}
