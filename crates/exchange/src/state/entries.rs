//! The tensors of each layer: learned tensors from the table of [`slots`](crate::slots), and constants.

use super::Entry;
use crate::slots::mappings;
use runner_core::check::network::Layer;
use runner_core::spec::model::layer::LayerKind;

/// The entries of a layer with the name `module` in PyTorch.
pub fn of(layer: &Layer, module: &str) -> Vec<Entry> {
    let learned = mappings(layer).into_iter().map(|mapping| {
        let paths = mapping.parts.iter();
        Entry {
            torch: format!("{module}.{}", mapping.torch),
            burn: paths
                .map(|(path, _)| format!("{}.{path}", layer.name))
                .collect(),
            is_transposed: mapping.is_transposed,
            rank: (mapping.rank > mapping.parts[0].1.len()).then_some(mapping.rank),
            is_constant: false,
        }
    });
    let constant = match layer.kind {
        LayerKind::PositionalEncoding { .. } => Some(("sinusoids", "sinusoids")),
        LayerKind::RotaryEncoding { .. } => Some(("rotations", "freq_complex")),
        _ => None,
    };
    let constant = constant.map(|(torch, burn)| Entry {
        torch: format!("{module}.{torch}"),
        burn: vec![format!("{}.{burn}", layer.name)],
        is_transposed: false,
        rank: None,
        is_constant: true,
    });
    learned.chain(constant).collect()
}
