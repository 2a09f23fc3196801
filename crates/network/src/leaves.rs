//! The parameters of a module: their paths, sizes, values and gradients.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};

use crate::held;

/// A parameter, running statistic or constant of a module. Looking at it draws no weights before [`Leaf::values`].
#[allow(missing_debug_implementations, reason = "it computes what it shows")]
pub struct Leaf<'a> {
    /// The names of the modules around it and its own, joined by dots.
    pub path: &'a str,
    /// The size of each axis.
    pub dims: Vec<usize>,
    /// Whether it is trained: running statistics, constants and frozen parameters are not.
    pub is_trained: bool,
    values: &'a dyn Fn() -> TensorData,
    gradient: &'a dyn Fn(&GradientsParams) -> Option<TensorData>,
}

impl Leaf<'_> {
    /// Its values, which are drawn if they were not yet.
    pub fn values(&self) -> TensorData {
        (self.values)()
    }

    /// Its gradient, if it has one.
    pub fn gradient(&self, gradients: &GradientsParams) -> Option<TensorData> {
        (self.gradient)(gradients)
    }
}

/// Visits each leaf of a module in Burn's order.
pub fn each(module: &impl Module, see: impl FnMut(&Leaf<'_>)) {
    let path = Vec::new();
    module.visit(&mut Visitor { path, see });
}

struct Visitor<F> {
    path: Vec<String>,
    see: F,
}

impl<F: FnMut(&Leaf<'_>)> ModuleVisitor for Visitor<F> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        (self.see)(&Leaf {
            path: &self.path.join("."),
            dims: param.lazy_shape().to_vec(),
            // Running statistics and constants exist from the start; parameters are drawn on first use.
            is_trained: !param.is_initialized() || param.is_require_grad(),
            values: &|| held::values(param.val().into_data()),
            gradient: &|gradients| Some(gradients.get::<D>(param.id)?.into_data()),
        });
    }
}
