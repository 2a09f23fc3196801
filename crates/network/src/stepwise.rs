//! A language model computed incrementally: values of earlier tokens that later ones need are cached, so that each
//! token is computed once. For attention these are keys and values, for recurrent layers their states.

mod step;
#[cfg(all(test, feature = "flex"))]
pub(crate) mod tests;

use burn::tensor::{Device, TensorData, TensorReadError};

use crate::network::Network;
use crate::tensor::DynTensor;
use runner_core::check::network::{Documents, Layer as LayerPlan, Network as NetworkPlan};
use runner_core::spec::data::DocumentPositions;
use runner_core::spec::model::layer::{LayerKind, Norm, Steps};
use step::Kept;

/// The most texts that are computed together.
pub const MOST_TEXTS: usize = 16;

/// Of attention without `causal`.
const LATER: &str = "attends to later tokens (`causal` is not set)";

/// Why a network cannot continue texts, or only limited ones: the name of a layer with the reason.
pub fn unfit(plan: &NetworkPlan) -> Option<String> {
    let reason = |layer: &LayerPlan| match &layer.kind {
        LayerKind::Linear { .. }
        | LayerKind::Dropout { .. }
        | LayerKind::StochasticDepth { .. }
        | LayerKind::GaussianNoise { .. }
        | LayerKind::GaussianSample
        | LayerKind::Embedding { .. }
        | LayerKind::PositionalEncoding { .. }
        | LayerKind::PositionEmbedding { .. }
        | LayerKind::RotaryEncoding { .. }
        | LayerKind::Activation(_)
        | LayerKind::Prelu {
            per_channel: false, ..
        }
        | LayerKind::Swiglu { .. }
        | LayerKind::Identity
        | LayerKind::Add
        | LayerKind::Multiply
        | LayerKind::Pairwise { .. }
        | LayerKind::Norm(Norm::Layer { .. } | Norm::Rms { .. }) => None,
        LayerKind::Recurrent(recurrent) if recurrent.bidirectional => {
            Some("processes the text in both directions")
        }
        LayerKind::Recurrent(recurrent) if recurrent.output != Steps::Sequence => {
            Some("outputs only its last step")
        }
        LayerKind::Recurrent(_) => None,
        LayerKind::MultiHeadAttention { causal: false, .. } => Some(LATER),
        LayerKind::GroupedAttention(attention) if !attention.causal => Some(LATER),
        LayerKind::MultiHeadAttention { .. } | LayerKind::GroupedAttention(_) => {
            (layer.inputs.len() > 1).then_some("attends to another input")
        }
        LayerKind::TransformerEncoder(stack) if stack.causal => None,
        LayerKind::TransformerEncoder(_) => Some(LATER),
        _ => Some("needs the whole text at once"),
    };
    let mut found = plan.layers.iter();
    found.find_map(|layer| Some(format!("layer `{}` {}", layer.name, reason(layer)?)))
}

/// Whether a network processes texts of any length, up to the one in training.
pub fn takes_any_length(plan: &NetworkPlan) -> bool {
    // Layers that do not depend on the text, such as embeddings of segments.
    let mut constant = Vec::with_capacity(plan.layers.len());
    plan.layers.iter().all(|layer| {
        let inputs = || layer.inputs.iter().filter_map(|input| input.layer);
        let is_constant = match layer.kind {
            LayerKind::Parameter { .. } => true,
            LayerKind::Slice { .. } => {
                layer.inputs.iter().all(|input| input.layer.is_some())
                    && inputs().all(|at| constant[at])
            }
            _ => false,
        };
        constant.push(is_constant);
        let is_spread = |at: usize| matches!(plan.layers[at].shape[..], [_] | [1, _]);
        is_constant
            || is_by_position(&layer.kind) && inputs().all(|at| !constant[at] || is_spread(at))
    })
}

/// Whether a layer has an output for each position of any text.
fn is_by_position(kind: &LayerKind) -> bool {
    match kind {
        LayerKind::Linear { .. }
        | LayerKind::Dropout { .. }
        | LayerKind::StochasticDepth { .. }
        | LayerKind::GaussianNoise { .. }
        | LayerKind::Embedding { .. }
        | LayerKind::PositionalEncoding { .. }
        | LayerKind::PositionEmbedding { .. }
        | LayerKind::RotaryEncoding { .. }
        | LayerKind::Activation(_)
        | LayerKind::Prelu {
            per_channel: false, ..
        }
        | LayerKind::Swiglu { .. }
        | LayerKind::Identity
        | LayerKind::Add
        | LayerKind::Multiply
        | LayerKind::PaddingMask { .. }
        | LayerKind::MultiHeadAttention { .. }
        | LayerKind::GroupedAttention(_)
        | LayerKind::TransformerEncoder(_)
        | LayerKind::Norm(Norm::Layer { .. } | Norm::Rms { .. }) => true,
        LayerKind::Recurrent(recurrent) => recurrent.output == Steps::Sequence,
        _ => false,
    }
}

/// Whether the output of a network depends on positions, so that it cannot process more tokens than in training.
pub fn has_positions(plan: &NetworkPlan) -> bool {
    plan.layers.iter().any(|layer| {
        matches!(
            layer.kind,
            LayerKind::PositionalEncoding { .. }
                | LayerKind::PositionEmbedding { .. }
                | LayerKind::RotaryEncoding { .. }
                | LayerKind::MultiHeadAttention { .. }
                | LayerKind::GroupedAttention(_)
                | LayerKind::TransformerEncoder(_)
        )
    })
}

/// The cache for the tokens of a text so far.
#[derive(Debug, Default)]
pub struct Cache {
    num_tokens: usize,
    layers: Vec<Kept>,
    /// Whether the last token ended a document, which later ones do not attend to.
    is_ended: bool,
}

impl Cache {
    /// Forgets the document that ended `before` the next tokens.
    fn end(&mut self, before: usize, positions: DocumentPositions) {
        self.layers.clear();
        self.num_tokens = match positions {
            DocumentPositions::Restart => 0,
            DocumentPositions::Continue => self.num_tokens + before,
        };
    }

    /// The tokens that later ones attend to; forgets what they do not.
    fn attended<'a>(&mut self, tokens: &'a [i32], documents: &Documents) -> &'a [i32] {
        let is_end = |token: &i32| *token as u32 == documents.end;
        let (last, others) = tokens.split_last().expect("a token");
        let end = others.iter().rposition(is_end);
        if let Some(end) = end {
            self.end(end + 1, documents.positions);
        } else if self.is_ended {
            self.end(0, documents.positions);
        }
        self.is_ended = is_end(last);
        &tokens[end.map_or(0, |end| end + 1)..]
    }
}

impl Network {
    /// The outputs for the token after the last of each text; `tokens` are those of each that follow its cached ones. The
    /// network must not be [`unfit`].
    ///
    /// Texts with a single new token are computed together, which does not change their outputs.
    ///
    /// # Errors
    /// If the outputs cannot be read from the device.
    ///
    /// # Panics
    /// If a text has no tokens, or more than the positions of the network.
    pub fn next_outputs(
        &self,
        tokens: &[&[i32]],
        caches: &mut [&mut Cache],
        device: &Device,
    ) -> Result<Vec<Vec<f32>>, TensorReadError> {
        let documents = self.graph().layers().find_map(|(_, plan)| plan.documents);
        let mut outputs: Vec<Vec<f32>> = vec![Vec::new(); tokens.len()];
        let mut singles = Vec::new();
        for (at, (tokens, cache)) in tokens.iter().zip(caches.iter_mut()).enumerate() {
            let tokens = match &documents {
                Some(documents) => cache.attended(tokens, documents),
                None => *tokens,
            };
            if let [token] = tokens {
                singles.push((at, *token, &mut **cache));
            } else {
                let mut all = self.step(tokens, &mut [&mut **cache], device)?;
                outputs[at] = all.pop().unwrap_or_default();
            }
        }
        while !singles.is_empty() {
            let mut these = singles.split_off(singles.len().saturating_sub(MOST_TEXTS));
            let tokens: Vec<i32> = these.iter().map(|(_, token, _)| *token).collect();
            let mut caches: Vec<&mut Cache> =
                these.iter_mut().map(|(_, _, cache)| &mut **cache).collect();
            let found = self.step(&tokens, &mut caches, device)?;
            for ((at, ..), found) in these.into_iter().zip(found) {
                outputs[at] = found;
            }
        }
        Ok(outputs)
    }

    /// The outputs for the last token of each of some texts with as many new tokens each.
    fn step(
        &self,
        tokens: &[i32],
        caches: &mut [&mut Cache],
        device: &Device,
    ) -> Result<Vec<Vec<f32>>, TensorReadError> {
        let graph = self.graph();
        let num = tokens.len() / caches.len();
        let data = TensorData::new(tokens.to_vec(), [caches.len(), num]);
        let num_layers = graph.layers().count();
        for cache in caches.iter_mut() {
            cache.layers.resize_with(num_layers, Kept::default);
        }
        let before: Vec<usize> = caches.iter().map(|cache| cache.num_tokens).collect();
        let head = num_layers - 1;
        let outputs = graph.outputs_by(
            DynTensor::from_data(data, device),
            |at, layer, plan, inputs| {
                let is_head = at == head && matches!(plan.kind, LayerKind::Linear { .. });
                let inputs = if is_head {
                    last_position(inputs)
                } else {
                    inputs
                };
                let kept = caches.iter_mut().map(|cache| &mut cache.layers[at]);
                step::step(layer, plan, inputs, &before, &mut kept.collect::<Vec<_>>())
            },
        );
        for cache in caches.iter_mut() {
            cache.num_tokens += num;
        }
        let outputs = outputs.r3();
        let num = outputs.dims()[1];
        let last = outputs.narrow(1, num - 1, 1);
        let last: Vec<f32> = last.try_into_data()?.iter::<f32>().collect();
        let each = last.chunks_exact(last.len() / caches.len());
        Ok(each.map(<[f32]>::to_vec).collect())
    }
}

/// The inputs of a layer that treats each position alike, only at the last one: the scores of a large vocabulary for all
/// tokens of a prompt would take longer than the rest of the network.
fn last_position(inputs: Vec<DynTensor>) -> Vec<DynTensor> {
    let last = |input: DynTensor| match input {
        DynTensor::R3(values) => {
            let num = values.dims()[1];
            DynTensor::R3(values.narrow(1, num - 1, 1))
        }
        other => other,
    };
    inputs.into_iter().map(last).collect()
}
