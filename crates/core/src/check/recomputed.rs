//! The rules of `train.gradient_checkpointing = "blocks"`.

use super::Point;
use super::network::Network;
use super::recipe::contradiction;
use crate::diagnostic::Diagnostic;
use crate::spec::model::layer::LayerKind;
use crate::spec::strategy::StrategySpec;
use crate::spec::train::Recomputed;

const KEY: &str = "train.gradient_checkpointing";

/// What cannot be computed twice with the same numbers.
pub fn blocks_can_be_recomputed(point: &Point<'_>) -> Option<Diagnostic> {
    if point.spec.train.gradient_checkpointing != Recomputed::Blocks {
        return None;
    }
    let wrong = |message: String, why: &str| {
        contradiction(point, KEY, message)
            .note(why)
            .help("set `gradient_checkpointing = true`, which recomputes cheap outputs only")
    };
    let network = point.network?;
    if let Some((what, why)) = obstacle(&point.spec.strategy, network) {
        return Some(wrong(format!("`{KEY}` is \"blocks\", but {what}"), why));
    }
    (network.segments().ranges.len() < 2).then(|| {
        let message = format!("`{KEY}` is \"blocks\", but nothing is recomputed");
        Diagnostic::warning("contradiction", message)
            .at(point.span(KEY))
            .note("no cut of this network at the ends of its blocks would keep less memory")
            .help("set `gradient_checkpointing = true`, divide the layers into smaller blocks, or remove the key")
    })
}

/// What makes it impossible, and why.
pub fn obstacle(strategy: &StrategySpec, network: &Network) -> Option<(String, &'static str)> {
    if strategy.adversarial().is_some() {
        let what = "`strategy.type` is \"adversarial\"".into();
        let why = "an update of two networks has several passes through each of them";
        return Some((what, why));
    }
    if network.graph.is_some() {
        let what = "the items are nodes of graphs".into();
        return Some((
            what,
            "layers of graphs compute different nodes in each batch",
        ));
    }
    network.layers.iter().find_map(|layer| {
        let name = &layer.name;
        if matches!(layer.kind, LayerKind::Own(_)) {
            let what = format!("the layer `{name}` is one of the program's own");
            return Some((
                what,
                "it may draw other random numbers when it is computed again",
            ));
        }
        let is_dropping = layer.adapters.iter().any(|adapter| adapter.dropout > 0.0);
        is_dropping.then(|| {
            let what = format!("the adapters of the layer `{name}` have dropout");
            let why =
                "their random numbers are not repeated; adapters without dropout can be recomputed";
            (what, why)
        })
    })
}
