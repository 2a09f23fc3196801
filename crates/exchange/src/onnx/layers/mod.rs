//! Each type of layer as operators.

mod affine;
mod axes;
mod functions;
mod grouped;
mod masks;
mod norms;
mod oscillators;
mod recurrent;
mod samples;
mod sequences;
mod windows;

use super::{Graph, OnnxError};
use crate::error::Unsupported;
use crate::tensors::{Dtype, NamedTensor, Tensors};
use runner_core::check::network::Layer;
use runner_core::spec::model::layer::{LayerKind, Reduction};
use runner_core::spec::model::layer_spec::MaskKey;

/// The layer whose operators are written.
pub struct Scope<'a> {
    /// The destination.
    pub graph: &'a mut Graph,
    /// Its plan.
    pub layer: &'a Layer,
    /// The layer with its weights: another one, if it is computed again.
    pub owner: &'a str,
    /// The prefix of its weights.
    pub module: &'a str,
    /// For a tied layer, the layer with its matrix, and the prefix of that.
    pub matrix: Option<(&'a str, &'a str)>,
    /// All tensors by Burn's names.
    pub burn: &'a Tensors,
}

impl Scope<'_> {
    /// The layer's tensor of a path, as 32-bit floats.
    fn tensor(&self, path: &str) -> Result<NamedTensor, OnnxError> {
        let name = format!("{}.{path}", self.owner);
        match self.burn.get(&name) {
            Some(tensor) => Ok(tensor.cast(Dtype::F32)),
            None => Err(OnnxError::Missing { name }),
        }
    }

    /// The same as a constant of the graph.
    fn weight(&mut self, path: &str) -> Result<String, OnnxError> {
        let tensor = self.tensor(path)?;
        Ok(self
            .graph
            .constant(tensor.named(format!("{}.{path}", self.module))))
    }

    /// Whether the layer has a tensor of a path.
    fn has(&self, path: &str) -> bool {
        self.burn.get(&format!("{}.{path}", self.owner)).is_some()
    }

    /// A tensor with one number per channel, as a constant that is multiplied with or added to items.
    fn per_channel(&mut self, path: &str) -> Result<String, OnnxError> {
        let tensor = self.tensor(path)?;
        let behind = self.layer.inputs[0].shape.dims.len() - 1;
        let shape = [tensor.shape(), &vec![1; behind]].concat();
        let name = format!("{}.{path}", self.module);
        let tensor = NamedTensor::from_f32s(name, shape, &tensor.to_f32s());
        Ok(self.graph.constant(tensor))
    }

    /// Why the layer cannot be written.
    fn unsupported(&self, reason: impl Into<String>) -> OnnxError {
        OnnxError::Unsupported(Unsupported {
            layer: self.layer.name.clone(),
            kind: self.layer.kind.type_name(),
            reason: reason.into(),
        })
    }

    /// The value of a mask among those of the inputs, if the layer has it.
    fn mask<'v>(&self, key: MaskKey, inputs: &'v [String]) -> Option<&'v str> {
        Some(&inputs[self.layer.mask(key)?])
    }

    /// The sizes of an item of the first input.
    fn dims(&self) -> &[usize] {
        &self.layer.inputs[0].shape.dims
    }
}

/// Queries, keys and values of attention: those of other inputs than the first, if there are any.
fn attended(inputs: &[String]) -> [&str; 3] {
    let keys = 1.min(inputs.len() - 1);
    [0, keys, 2.min(inputs.len() - 1).max(keys)].map(|at| inputs[at].as_str())
}

/// The output of a layer for values of the graph.
pub fn output(scope: &mut Scope<'_>, inputs: &[String]) -> Result<String, OnnxError> {
    let x = inputs[0].as_str();
    let layer = scope.layer;
    let (mask, memory_mask) = (
        scope.mask(MaskKey::Mask, inputs),
        scope.mask(MaskKey::MemoryMask, inputs),
    );
    let inputs = &inputs[..layer.values().len()];
    if layer.documents.is_some() {
        return Err(OnnxError::Unsupported(Unsupported::documents(layer)));
    }
    Ok(match &layer.kind {
        LayerKind::Linear { .. } => affine::linear(scope, x, "")?,
        LayerKind::Swiglu { .. } => affine::swiglu(scope, x)?,
        LayerKind::Embedding { .. } => {
            let weight = scope.weight("weight")?;
            scope.graph.node("Gather", &[&weight, x], &[])
        }
        LayerKind::Parameter { shape, .. } => affine::parameter(scope, shape, x)?,
        LayerKind::Prelu { .. } => affine::prelu(scope, x)?,
        LayerKind::Conv(conv) => windows::conv(scope, conv, x)?,
        LayerKind::ConvTranspose(conv) => windows::conv_transpose(scope, conv, x)?,
        LayerKind::DeformConv2d(conv) => windows::deform_conv(scope, conv, inputs)?,
        LayerKind::Unfold(window) => windows::unfold(scope, window, x),
        LayerKind::Norm(norm) => norms::norm(scope, norm, x)?,
        LayerKind::Pool(pool) => windows::pool(scope, pool, x),
        LayerKind::AdaptiveAvgPool { output_size, .. } => windows::adaptive(scope, output_size, x),
        LayerKind::Interpolate { .. } => windows::interpolate(scope, x),
        LayerKind::Recurrent(recurrent) => recurrent::recurrent(scope, recurrent, x, mask)?,
        LayerKind::Dlinoss(_) => oscillators::dlinoss(scope, x)?,
        LayerKind::MultiHeadAttention {
            num_heads, causal, ..
        } => {
            let attended = attended(inputs);
            sequences::attention(scope, "", attended, *num_heads, (*causal, mask))?
        }
        LayerKind::GroupedAttention(attention) => {
            grouped::attention(scope, attention, attended(inputs), mask)?
        }
        LayerKind::TransformerEncoder(stack) => sequences::encoder(scope, stack, x, mask)?,
        LayerKind::TransformerDecoder(stack) => {
            let memory = inputs.last().map_or(x, String::as_str);
            sequences::decoder(scope, stack, [x, memory], [mask, memory_mask])?
        }
        LayerKind::PositionalEncoding { .. } => {
            let sinusoids = scope.weight("sinusoids")?;
            scope.graph.node("Add", &[x, &sinusoids], &[])
        }
        LayerKind::PositionEmbedding { .. } => affine::positions(scope, x)?,
        LayerKind::RotaryEncoding { .. } => sequences::rotary(scope, x)?,
        LayerKind::LinearScan { reverse } => samples::linear_scan(scope, inputs, *reverse),
        LayerKind::Fourier(fourier) => samples::fourier(scope, fourier, x),
        LayerKind::Roll { axis, shift } => samples::roll(scope, *axis, *shift, x),
        LayerKind::TopK { k, fill } => samples::top_k(scope, *k, *fill, x),
        LayerKind::GridSample(settings) => samples::grid_sample(scope, settings, inputs),
        LayerKind::AffineGrid(settings) => samples::affine_grid(scope, settings, x),
        LayerKind::Activation(activation) => functions::activation(scope, activation, x)?,
        // They only have an effect in training.
        LayerKind::Identity
        | LayerKind::Dropout { .. }
        | LayerKind::ChannelDropout { .. }
        | LayerKind::StochasticDepth { .. }
        | LayerKind::GaussianNoise { .. } => x.to_owned(),
        // The means.
        LayerKind::GaussianSample => axes::first_half(scope, x),
        LayerKind::PaddingMask { padding } => masks::padding(scope, *padding, x),
        LayerKind::Reduce { operation, axis }
            if mask.is_some() || *operation == Reduction::Last =>
        {
            masks::reduced(scope, *operation, *axis, x, mask)
        }
        LayerKind::Flatten { .. }
        | LayerKind::Reshape { .. }
        | LayerKind::Permute { .. }
        | LayerKind::Unsqueeze { .. }
        | LayerKind::Squeeze { .. }
        | LayerKind::Slice { .. }
        | LayerKind::Reduce { .. }
        | LayerKind::PixelShuffle { .. }
        | LayerKind::PixelUnshuffle { .. }
        | LayerKind::Add
        | LayerKind::Multiply
        | LayerKind::Pairwise { .. }
        | LayerKind::Matmul
        | LayerKind::Einsum { .. }
        | LayerKind::Cumsum { .. }
        | LayerKind::Pad { .. }
        | LayerKind::Concat { .. } => axes::output(scope, inputs),
        LayerKind::Message(_) | LayerKind::GraphPool { .. } | LayerKind::EdgeEnds { .. } => {
            return Err(scope.unsupported(crate::torch::GRAPHS));
        }
        LayerKind::Noise { .. } => return Err(scope.unsupported(crate::torch::NOISE)),
        LayerKind::Own(_) => return Err(scope.unsupported(crate::torch::OWN)),
    })
}
