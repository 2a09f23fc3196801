//! Whether a layer fits the weights of an earlier one that it uses.

use super::shape::{Mismatch, wrong};
use super::windows::padding;
use super::{Input, Layer, Network, cost};
use crate::spec::model::layer::LayerKind;
use crate::spec::model::layer_spec::{LayerSpec, Weights};

/// The output features of a layer with a transposed matrix.
pub fn tied_outputs(
    network: &Network,
    spec: &LayerSpec,
    inputs: &[Input],
) -> Result<Option<Vec<usize>>, Mismatch> {
    let (Some(Weights::Tied(at)), LayerKind::Linear { out_features, .. }) =
        (spec.weights, &spec.kind)
    else {
        return Ok(None);
    };
    let owner = &network.layers[at];
    let input = &owner.inputs[0].shape;
    let from = owner.shape.last().copied().unwrap_or(1);
    let to = match owner.kind {
        LayerKind::Embedding { .. } => input.vocabulary.unwrap_or(1),
        _ => input.dims.last().copied().unwrap_or(1),
    };
    let width = inputs[0].shape.dims.last().copied().unwrap_or(1);
    if width != from {
        return wrong(
            "tie",
            format!(
                "is tied to `{}`, which has {from} features, but its input has {width}",
                owner.name
            ),
            format!("put `{{ type = \"linear\", out_features = {from} }}` before it"),
        );
    }
    match out_features {
        Some(other) if *other != to => wrong(
            "out_features",
            format!(
                "has `out_features` = {other}, but the transposed matrix of `{}` gives {to}",
                owner.name
            ),
            "remove `out_features`",
        ),
        _ => Ok(Some(vec![to])),
    }
}

/// Refuses a layer whose weights would be others than those that it uses. A layer without weights shares nothing.
pub fn check(network: &Network, layer: &mut Layer) -> Result<(), Mismatch> {
    let Some(Weights::Shared(at)) = layer.weights else {
        return Ok(());
    };
    let owner = &network.layers[at];
    let counts = |layer: &Layer| cost::parameters(&layer.kind, layer.values(), &layer.shape);
    if counts(owner).is_empty() {
        layer.weights = None;
        return Ok(());
    }
    let [a, b] = [owner, layer].map(|layer| &layer.inputs[0].shape);
    let takes_equal = match &layer.kind {
        LayerKind::Own(_) => a == b,
        LayerKind::Conv(conv) => {
            let pads = |dims: &[usize], axis: usize| {
                let extent = conv.dilation[axis] * (conv.kernel_size[axis] - 1) + 1;
                padding(
                    &conv.padding,
                    axis,
                    dims[1 + axis],
                    extent,
                    conv.stride[axis],
                )
            };
            (0..conv.dims).all(|axis| pads(&a.dims, axis) == pads(&b.dims, axis))
        }
        _ => true,
    };
    // Settings are equal, so equal counts mean equal shapes.
    if takes_equal
        && a.dims.len() == b.dims.len()
        && layer.kind == owner.kind
        && counts(layer) == counts(owner)
    {
        return Ok(());
    }
    wrong(
        "share",
        format!(
            "uses the weights of `{}`, which were made for input {}, but its input is {}",
            owner.name,
            a.show(),
            b.show()
        ),
        format!(
            "give it an input of the shape {}, or a layer with weights of its own",
            a.show()
        ),
    )
}

#[cfg(test)]
mod tests {
    use crate::check::network::examples::network;
    use crate::spec::train::Recomputed;

    const FIRST: &str = "{ type = 'linear', out_features = 4, name = 'a' }";

    #[test]
    fn shared_weights_are_counted_once_and_are_in_the_identity() {
        let own = network(
            &[4],
            &format!("{FIRST}, {{ type = 'linear', out_features = 4 }}"),
        );
        let shared = network(&[4], &format!("{FIRST}, {{ share = 'a' }}"));
        let tied = network(&[4], &format!("{FIRST}, {{ type = 'linear', tie = 'a' }}"));
        let counts = [&own, &shared, &tied].map(|network| network.num_parameters);
        assert_eq!(counts, [40, 20, 24]);
        assert_eq!(
            tied.parameter_paths(),
            ["a.weight", "a.bias", "linear_1.bias"]
        );
        assert_ne!(own.work(), shared.work());
        assert_ne!(own.work(), tied.work());
        assert_ne!(shared.work(), tied.work());
        assert!(own.change(&shared).is_some());
    }

    /// A layer without weights of its own is trained too if those that it uses are.
    #[test]
    fn a_layer_computed_again_keeps_what_its_backward_pass_needs() {
        let kept = |layers: &str| {
            let network = network(&[4], layers);
            let own = |layer: &crate::check::network::Layer| layer.num_parameters;
            let trained: Vec<u64> = network.layers.iter().map(own).collect();
            network.kept_bytes_per_item(4, Recomputed::Nothing, true, &trained)
        };
        let copy = kept(&format!("{FIRST}, {{ type = 'linear', out_features = 4 }}"));
        assert_eq!(kept(&format!("{FIRST}, {{ share = 'a' }}")), copy);
    }
}
