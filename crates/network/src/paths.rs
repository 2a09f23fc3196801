//! The names of parameters in the experiment file and in Burn.
//!
//! Burn's visitors find a parameter at `graph.layers.<index>.<variant>.<path in the layer>`; the file calls it
//! `<layer's name>.<path in the layer>`.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

use crate::network::Network;
use runner_core::check::network::Network as NetworkPlan;
use runner_core::plan::RunPlan;
use runner_core::spec::model::layer::LayerKind;

/// A parameter of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its path for Burn.
    pub burn: String,
    /// Its path in the experiment file.
    pub path: String,
    /// Its number of dimensions.
    pub rank: usize,
    /// Whether a matrix is \[inputs, outputs\]; tables of embeddings and learned tensors are not.
    pub inputs_first: bool,
}

/// The layers of a plan, which determine the names of parameters.
#[derive(Clone, Debug)]
pub struct Paths(NetworkPlan);

impl Paths {
    /// The names of a plan's layers.
    pub fn new(plan: &RunPlan) -> Self {
        Self(plan.network.clone())
    }

    /// The name in the file of the parameter at one of Burn's paths.
    pub fn of(&self, burn: &str) -> String {
        let layers = burn.strip_prefix("graph.");
        layers
            .and_then(|layers| self.0.user_path(layers))
            .unwrap_or_else(|| burn.to_owned())
    }

    fn is_inputs_first(&self, burn: &str) -> bool {
        let layers = burn.strip_prefix("graph.layers.");
        let at = layers.and_then(|path| path.split('.').next()?.parse().ok());
        let layer = at.and_then(|at: usize| self.0.layers.get(at));
        !layer.is_some_and(|layer| {
            matches!(
                layer.kind,
                LayerKind::Embedding { .. } | LayerKind::Parameter { .. }
            )
        })
    }

    /// Every parameter of a network in order.
    pub fn parameters(&self, network: &Network) -> Vec<Parameter> {
        let mut collector = Collector {
            paths: self,
            path: Vec::new(),
            found: Vec::new(),
        };
        network.visit(&mut collector);
        collector.found
    }
}

struct Collector<'a> {
    paths: &'a Paths,
    path: Vec<String>,
    found: Vec<Parameter>,
}

impl ModuleVisitor for Collector<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, _: &Param<Tensor<D>>) {
        self.found.push(Parameter {
            burn: self.path.join("."),
            path: self.paths.of(&self.path.join(".")),
            rank: D,
            inputs_first: self.paths.is_inputs_first(&self.path.join(".")),
        });
    }
}
