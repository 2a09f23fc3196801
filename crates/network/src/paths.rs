//! The names of parameters in the experiment file and in Burn.
//!
//! Burn's visitors find a parameter at `graph.layers.<index>.<variant>.<path in the layer>`; the file calls it
//! `<layer's name>.<path in the layer>`.

use crate::leaves;
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

    /// Whether the parameter at one of Burn's paths is frozen because the network has adapters.
    pub fn is_fixed(&self, burn: &str) -> bool {
        let located = burn
            .strip_prefix("graph.")
            .and_then(|path| self.0.located(path));
        located.is_some_and(|(layer, path)| layer.frozen.contains(&path))
    }

    fn is_inputs_first(&self, burn: &str) -> bool {
        let layers = burn.strip_prefix("graph.layers.");
        let at = layers.and_then(|path| path.split('.').next()?.parse().ok());
        let layer = at.and_then(|at: usize| self.0.layers.get(at));
        !layer.is_some_and(|layer| {
            matches!(
                layer.kind,
                LayerKind::Embedding { .. }
                    | LayerKind::Parameter { .. }
                    | LayerKind::PositionEmbedding { .. }
            )
        })
    }

    /// Every parameter of a network in order.
    pub fn parameters(&self, network: &Network) -> Vec<Parameter> {
        let mut found = Vec::new();
        leaves::each(network, |leaf| {
            found.push(Parameter {
                burn: leaf.path.to_owned(),
                path: self.of(leaf.path),
                rank: leaf.dims.len(),
                inputs_first: self.is_inputs_first(leaf.path),
            });
        });
        found
    }
}
