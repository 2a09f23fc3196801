//! The output shape of each layer for its input shapes, or why there is none.
//!
//! Sizes are those of Burn's modules; the tests of `train` check this for every kind of layer.

use super::Input;
use super::attention::*;
use super::axes::*;
use super::einsum;
use super::joins::*;
use super::masks;
use super::samples;
use super::windows::*;
use crate::data::MAX_DIMS;
use crate::spec::model::activation::Activation;
use crate::spec::model::initializer::Distribution;
use crate::spec::model::layer::{LayerKind, Norm, Recurrent, Steps};
use crate::spec::model::layer_spec::LayerSpec;
use crate::spec::own::Unfit;

/// Why a layer does not fit its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// The key of the layer to point at.
    pub key: &'static str,
    /// What is wrong, as a continuation of the layer's name.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl From<Unfit> for Mismatch {
    fn from(unfit: Unfit) -> Self {
        Self {
            key: unfit.key,
            message: unfit.message,
            help: unfit.help,
        }
    }
}

/// The sizes of each input.
pub fn dims(inputs: &[Input]) -> Vec<Dims> {
    inputs
        .iter()
        .map(|input| input.shape.dims.clone())
        .collect()
}

/// A mismatch.
pub fn wrong<T>(
    key: &'static str,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Result<T, Mismatch> {
    Err(Mismatch {
        key,
        message: message.into(),
        help: help.into(),
    })
}

/// The size of embeddings of a vocabulary, as fastai chooses it for categories.
fn usual_embedding(vocabulary: usize) -> usize {
    let size = 1.6 * libm::pow(vocabulary as f64, 0.56);
    (size.round() as usize).clamp(1, 600)
}

/// Sizes, without the batch.
pub type Dims = Vec<usize>;

/// The shape of a layer's output. `wanted` is what the task needs, for sizes that are not set.
pub fn output(spec: &LayerSpec, inputs: &[Input], wanted: &[usize]) -> Result<Dims, Mismatch> {
    check_inputs(&spec.kind, inputs)?;
    check_settings(&spec.kind, inputs)?;
    let input = inputs[0].shape.dims.as_slice();
    let shape = match &spec.kind {
        LayerKind::Embedding { embedding_dim, .. } => {
            let vocabulary = inputs[0].shape.vocabulary.unwrap_or(1);
            vec![
                input[0],
                embedding_dim.unwrap_or_else(|| usual_embedding(vocabulary)),
            ]
        }
        LayerKind::Linear { out_features, .. } => {
            rank(input, 1..=MAX_DIMS, "[…, features]")?;
            let asked = wanted.last().copied();
            with_last(input, or_asked(*out_features, asked, "out_features")?)
        }
        LayerKind::Swiglu { out_features, .. } => with_last(input, *out_features),
        LayerKind::Conv(conv) => convolved(conv, input, wanted)?,
        LayerKind::ConvTranspose(conv) => transposed(conv, input, wanted)?,
        LayerKind::DeformConv2d(conv) => deformed(conv, inputs, wanted)?,
        LayerKind::Unfold(window) => {
            let [rows, columns] = unfolded(window, input)?;
            let values = input[0].saturating_mul(window.num_taps());
            vec![values, rows.saturating_mul(columns)]
        }
        LayerKind::Norm(norm) => {
            check_norm(norm, input)?;
            input.to_vec()
        }
        LayerKind::Pool(pool) => pooled(pool, input)?,
        LayerKind::AdaptiveAvgPool { dims, output_size } => {
            let channels = images(input, *dims)?;
            [&[channels], output_size.as_slice()].concat()
        }
        LayerKind::Recurrent(recurrent) => recurrent_shape(recurrent, input)?,
        LayerKind::Dlinoss(_) => {
            sequence(input)?;
            input.to_vec()
        }
        LayerKind::MultiHeadAttention { num_heads, .. } => {
            sequence(input)?;
            heads(input[1], *num_heads)?;
            attended(inputs)?;
            input.to_vec()
        }
        LayerKind::GroupedAttention(attention) => {
            sequence(input)?;
            attended(inputs)?;
            grouped(attention, input[1], inputs.len())?;
            input.to_vec()
        }
        LayerKind::TransformerEncoder(stack) => stacked(stack, input)?,
        LayerKind::TransformerDecoder(stack) => {
            same_width(inputs)?;
            stacked(stack, input)?
        }
        LayerKind::PositionEmbedding { max_length, .. } => {
            sequence(input)?;
            if input[0] > *max_length {
                return wrong(
                    "max_length",
                    format!(
                        "has `max_length` = {max_length}, but the input has {} positions",
                        input[0]
                    ),
                    format!("use at least {}", input[0]),
                );
            }
            input.to_vec()
        }
        LayerKind::PositionalEncoding { .. } | LayerKind::RotaryEncoding { .. } => {
            sequence(input)?;
            let width = input[1];
            if !width.is_multiple_of(2) {
                return wrong(
                    "type",
                    format!("needs an even number of features, got {width}"),
                    format!(
                        "make the preceding layer output {} or {}",
                        width - 1,
                        width + 1
                    ),
                );
            }
            input.to_vec()
        }
        LayerKind::Noise { size } => vec![*size],
        LayerKind::Activation(Activation::Glu) | LayerKind::GaussianSample => {
            let width = input.last().copied().unwrap_or(1);
            if !width.is_multiple_of(2) {
                return wrong(
                    "type",
                    format!("halves the last axis, which has {width} values"),
                    "make the preceding layer output an even number",
                );
            }
            with_last(input, width / 2)
        }
        LayerKind::Add | LayerKind::Multiply | LayerKind::Pairwise { .. } => broadcast(inputs)?,
        LayerKind::Matmul => multiplied(inputs)?,
        LayerKind::Einsum { equation } => einsum::summed(equation, inputs)?,
        LayerKind::Cumsum { axis } => {
            resolve(*axis, input.len(), "axis")?;
            input.to_vec()
        }
        LayerKind::Pad { padding, mode, .. } => padded(padding, *mode, input)?,
        LayerKind::Parameter { shape, .. } => shape.clone(),
        LayerKind::LinearScan { .. } => samples::scanned(inputs)?,
        LayerKind::Fourier(fourier) => samples::transformed(fourier, input)?,
        LayerKind::Roll { axis, .. } => {
            resolve(*axis, input.len(), "axis")?;
            input.to_vec()
        }
        LayerKind::TopK { k, .. } => samples::largest(*k, input)?,
        LayerKind::GridSample(_) => samples::sampled(inputs)?,
        LayerKind::AffineGrid(grid) => samples::affine(grid, input)?,
        LayerKind::Concat { axis } => concatenated(inputs, *axis)?,
        LayerKind::Message(message) => {
            rank(input, 1..=1, "[features]")?;
            vec![message.width()]
        }
        LayerKind::GraphPool { .. } => {
            rank(input, 1..=1, "[features]")?;
            input.to_vec()
        }
        LayerKind::EdgeEnds {
            operation,
            edge_dim,
        } => {
            rank(input, 1..=1, "[features]")?;
            vec![operation.width(input[0]).saturating_add(*edge_dim)]
        }
        LayerKind::Own(own) => own.plan(&dims(inputs))?.shape,
        LayerKind::Interpolate { .. } => interpolated(&spec.kind, input)?,
        LayerKind::PixelShuffle { factor } => shuffled(*factor, input)?,
        LayerKind::PixelUnshuffle { factor } => unshuffled(*factor, input)?,
        LayerKind::Flatten {
            start_axis,
            end_axis,
        } => flattened(*start_axis, *end_axis, input)?,
        LayerKind::Reshape { shape } => reshaped(shape, input)?,
        LayerKind::Permute { axes } => permuted(axes, input)?,
        LayerKind::Unsqueeze { axis } => unsqueezed(*axis, input)?,
        LayerKind::Squeeze { axis } => squeezed(*axis, input)?,
        LayerKind::Slice { axis, start, end } => sliced(*axis, *start, *end, input)?,
        LayerKind::Reduce { axis, .. } => reduced(*axis, input)?,
        LayerKind::PaddingMask { padding } => masks::padding(*padding, &inputs[0])?,
        LayerKind::Dropout { .. }
        | LayerKind::ChannelDropout { .. }
        | LayerKind::StochasticDepth { .. }
        | LayerKind::GaussianNoise { .. }
        | LayerKind::Activation(_)
        | LayerKind::Prelu { .. }
        | LayerKind::Identity => input.to_vec(),
    };
    if shape.len() > MAX_DIMS {
        return wrong(
            "type",
            format!("would output {shape:?}, which has more than {MAX_DIMS} dimensions"),
            "flatten some of them first",
        );
    }
    const MAX_VALUES: u128 = 1 << 40;
    if shape.iter().map(|size| *size as u128).product::<u128>() > MAX_VALUES {
        return wrong(
            "type",
            format!(
                "would output {shape:?} for each item, which exceeds the memory of any machine"
            ),
            "use smaller sizes",
        );
    }
    Ok(shape)
}

/// Why the output of a layer does not fit its loss. `what` says whose output it is, and `needs` what needs another.
pub fn wrong_output(
    kind: &LayerKind,
    shape: &[usize],
    wanted: &[usize],
    (what, needs): (&str, &str),
) -> Mismatch {
    let help = match kind {
        LayerKind::Linear { .. } if shape.len() == wanted.len() && shape[..shape.len() - 1] == wanted[..wanted.len() - 1] => {
            format!("set `out_features = {}`, or remove it", wanted[wanted.len() - 1])
        }
        LayerKind::Conv(_) | LayerKind::ConvTranspose(_) if shape.len() == wanted.len() && shape[1..] == wanted[1..] => {
            format!("set `out_channels = {}`, or remove it", wanted[0])
        }
        _ if wanted.len() == 1 && shape.len() > 1 => "add `{ type = \"flatten\" }` and `{ type = \"linear\" }` at the end; a linear layer without `out_features` infers its width from the task".into(),
        _ if wanted.len() == 1 => "add `{ type = \"linear\" }` at the end; without `out_features` it infers its width from the task".into(),
        _ if shape.iter().product::<usize>() == wanted.iter().product::<usize>() => format!("add `{{ type = \"reshape\", shape = {wanted:?} }}` at the end"),
        _ => format!("end with a layer that outputs {wanted:?}"),
    };
    Mismatch {
        key: if matches!(kind, LayerKind::Linear { .. }) {
            "out_features"
        } else {
            "type"
        },
        message: format!("is {what} and outputs {shape:?}, but {needs} needs {wanted:?}"),
        help,
    }
}

/// Why the output of a layer has no means and variances along its last axis.
pub fn no_halves(shape: &[usize], what: &str) -> Mismatch {
    Mismatch {
        key: "type",
        message: format!(
            "is {what} and outputs {shape:?}, but `kl_normal` needs an even number along the last axis: the means, and then the logarithms of the variances"
        ),
        help: "make it output two numbers for each latent variable".into(),
    }
}

/// Numbers that make Burn panic, or that do not define a function.
fn check_settings(kind: &LayerKind, inputs: &[Input]) -> Result<(), Mismatch> {
    let ordered = |key, (lower, low): (&str, f64), (upper, high): (&str, f64)| {
        if low <= high {
            Ok(())
        } else {
            wrong(
                key,
                format!("has `{lower}` = {low}, above `{upper}` = {high}"),
                format!("set `{upper}` to at least {low}"),
            )
        }
    };
    match kind {
        LayerKind::Activation(Activation::Hardtanh { min, max }) => {
            ordered("min", ("min", *min), ("max", *max))?;
        }
        LayerKind::Activation(Activation::Rrelu { lower, upper }) => {
            ordered("lower", ("lower", *lower), ("upper", *upper))?;
        }
        LayerKind::Dlinoss(oscillators) => {
            let [least, most] = [oscillators.min_radius, oscillators.max_radius];
            ordered("min_radius", ("min_radius", least), ("max_radius", most))?;
        }
        LayerKind::PositionalEncoding { max_timescale }
            if *max_timescale < inputs[0].shape.dims[0] =>
        {
            let length = inputs[0].shape.dims[0];
            return wrong(
                "max_timescale",
                format!(
                    "has `max_timescale` = {max_timescale}, but the input has {length} positions"
                ),
                format!("use at least {length}"),
            );
        }
        _ => {}
    }
    let distribution = kind
        .initializer()
        .map(|initializer| &initializer.distribution);
    if let Some(Distribution::Uniform { min, max }) = distribution
        && min >= max
    {
        return wrong(
            "initializer",
            format!("samples weights from {min} to {max}, which is not an interval"),
            "set `max` above `min`, or use `{ type = \"constant\", value = 0.0 }`",
        );
    }
    Ok(())
}

fn check_inputs(kind: &LayerKind, inputs: &[Input]) -> Result<(), Mismatch> {
    let num = inputs.len();
    let (least, most) = match kind {
        kind if kind.is_join() => (2, usize::MAX),
        LayerKind::TransformerDecoder(_)
        | LayerKind::Pairwise { .. }
        | LayerKind::Matmul
        | LayerKind::LinearScan { .. }
        | LayerKind::GridSample(_) => (2, 2),
        LayerKind::MultiHeadAttention { .. } | LayerKind::GroupedAttention(_) => (1, 3),
        LayerKind::Einsum { .. } => (1, 2),
        LayerKind::DeformConv2d(_) => (2, 3),
        LayerKind::Own(own) => own.part().map_or((1, 1), |part| part.num_inputs),
        _ => (1, 1),
    };
    if num < least || num > most {
        let wanted = match (least, most) {
            (1, 1) => "one input".to_owned(),
            (1, 2) => "one or two inputs".to_owned(),
            (2, 2) if matches!(kind, LayerKind::TransformerDecoder(_)) => {
                "two inputs, the sequence and what it attends to".to_owned()
            }
            (2, 2) if matches!(kind, LayerKind::LinearScan { .. }) => {
                "two inputs, the factors of states and what is added to them".to_owned()
            }
            (2, 2) if matches!(kind, LayerKind::GridSample(_)) => {
                "two inputs, the image and the grid".to_owned()
            }
            (2, 2) => "two inputs".to_owned(),
            (2, usize::MAX) => "at least two inputs".to_owned(),
            (2, 3) if matches!(kind, LayerKind::DeformConv2d(_)) => {
                "two or three inputs, the image, the offsets and the weights of samples".to_owned()
            }
            (1, 3) => {
                "one to three inputs, the queries, what they attend to, and its values if they are others".to_owned()
            }
            (_, usize::MAX) => format!("at least {least} inputs"),
            _ => format!("{least} to {most} inputs"),
        };
        let help = match least {
            1 => "combine them first, with `add` or `concat`".to_owned(),
            _ if num > most => "list two: `inputs = [\"previous\", \"other\"]`".to_owned(),
            _ => "name them: `inputs = [\"previous\", \"other\"]`".to_owned(),
        };
        return wrong(
            if num > 1 { "inputs" } else { "type" },
            format!("needs {wanted}, found {num}"),
            help,
        );
    }
    if matches!(
        kind,
        LayerKind::Parameter { .. } | LayerKind::PaddingMask { .. }
    ) {
        return Ok(());
    }
    let takes_tokens = matches!(kind, LayerKind::Embedding { .. });
    let tokens = inputs.iter().find(|input| input.shape.vocabulary.is_some());
    match (takes_tokens, tokens) {
        (false, Some(_)) => wrong(
            "type",
            "expects numbers, got tokens",
            "put `{ type = \"embedding\", embedding_dim = 64 }` before it (presets: `input = \"tokens\"`)",
        ),
        (true, None) => wrong(
            "type",
            "expects tokens, got numbers",
            "use a `linear` layer (presets: `input = \"features\"`), or tokenized data",
        ),
        _ => Ok(()),
    }
}

/// Refuses a shape with too few or too many axes; `pattern` is the expected shape in messages.
pub fn rank(
    input: &[usize],
    ranks: std::ops::RangeInclusive<usize>,
    pattern: &str,
) -> Result<(), Mismatch> {
    if ranks.contains(&input.len()) {
        Ok(())
    } else {
        wrong(
            "type",
            format!("expects input {pattern}, got {input:?}"),
            if input.len() < *ranks.start() {
                format!(
                    "convert the input to that shape first, for example with {}",
                    reshape_hint(input, *ranks.start())
                )
            } else {
                match input.iter().position(|size| *size == 1) {
                    Some(axis) => format!(
                        "axis {axis} has size 1: put `{{ type = \"squeeze\", axis = {axis} }}` before it"
                    ),
                    None => "put a `flatten`, `reshape`, `mean` or `slice` before it".to_owned(),
                }
            },
        )
    }
}

fn reshape_hint(input: &[usize], rank: usize) -> String {
    if rank == input.len() + 1 {
        "`{ type = \"unsqueeze\" }`, which inserts an axis of size 1 in front".into()
    } else {
        "`{ type = \"reshape\", shape = […] }`".into()
    }
}

/// Refuses what is not a sequence.
pub fn sequence(input: &[usize]) -> Result<(), Mismatch> {
    rank(input, 2..=2, "[length, features]")
}

/// A size that is set, or the one that the task needs.
pub fn or_asked(
    written: Option<usize>,
    asked: Option<usize>,
    key: &str,
) -> Result<usize, Mismatch> {
    match written.or(asked) {
        Some(size) => Ok(size),
        None => wrong(
            "type",
            format!("has no `{key}`, and the task does not determine it"),
            format!("add `{key} = 64`"),
        ),
    }
}

fn check_norm(norm: &Norm, input: &[usize]) -> Result<(), Mismatch> {
    match norm {
        Norm::Group { num_groups, .. } => {
            rank(input, 2..=MAX_DIMS, "[channels, …]")?;
            if input.iter().product::<usize>() == *num_groups {
                return wrong(
                    "num_groups",
                    format!(
                        "has a single value in each group of {input:?}, which has no deviation"
                    ),
                    "use fewer groups",
                );
            }
            if input[0].is_multiple_of(*num_groups) {
                Ok(())
            } else {
                wrong(
                    "num_groups",
                    format!(
                        "cannot split {} channels into {num_groups} groups",
                        input[0]
                    ),
                    "use a number that divides the channels",
                )
            }
        }
        Norm::Instance { .. } => {
            rank(input, 2..=MAX_DIMS, "[channels, …]")?;
            match input[1..].iter().product::<usize>() {
                1 => wrong(
                    "type",
                    format!(
                        "has a single value in each channel of {input:?}, which has no deviation"
                    ),
                    "use `layer_norm` or `batch_norm`, or move it to where channels have more values",
                ),
                _ => Ok(()),
            }
        }
        Norm::LocalResponse { .. } => rank(input, 2..=MAX_DIMS, "[channels, …]"),
        Norm::Batch { .. } | Norm::Layer { .. } | Norm::Rms { .. } => Ok(()),
    }
}

fn recurrent_shape(recurrent: &Recurrent, input: &[usize]) -> Result<Dims, Mismatch> {
    sequence(input)?;
    let width = recurrent.hidden_size * (1 + recurrent.bidirectional as usize);
    Ok(match recurrent.output {
        Steps::Sequence => vec![input[0], width],
        Steps::Last => vec![width],
    })
}

#[cfg(test)]
mod tests {
    use super::usual_embedding;

    /// `emb_sz_rule` of fastai.
    #[test]
    fn embeddings_have_the_usual_sizes() {
        let sizes = [1, 2, 11, 1_000, 10_000, 100_000].map(usual_embedding);
        assert_eq!(sizes, [2, 2, 6, 77, 278, 600]);
    }
}
