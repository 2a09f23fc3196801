//! What the experiment file calls a parameter, and what Burn does.
//!
//! Burn's visitors find a parameter at `layers.<index>.<variant>.<path in the layer>`; the file says
//! `<layer's name>.<path in the layer>`.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::network::Network;
use crate::plan::RunPlan;

/// A parameter of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its path for Burn.
    pub burn: String,
    /// Its path in the experiment file.
    pub path: String,
    /// Its number of dimensions.
    pub rank: usize,
}

/// The names of a plan's layers by index.
#[derive(Clone, Debug)]
pub struct Paths(Vec<String>);

impl Paths {
    /// The names of a plan's layers.
    pub fn new(plan: &RunPlan) -> Self {
        Self(plan.network.layer_names())
    }

    /// What the file calls the parameter at a path of Burn's.
    pub fn of(&self, burn: &[String]) -> String {
        let layer = match burn {
            [layers, at, _, inner @ ..] if layers == "layers" => at
                .parse()
                .ok()
                .and_then(|at: usize| Some((self.0.get(at)?, inner))),
            _ => None,
        };
        match layer {
            Some((name, inner)) => format!("{name}.{}", inner.join(".")),
            None => burn.join("."),
        }
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
            path: self.paths.of(&self.path),
            rank: D,
        });
    }
}
