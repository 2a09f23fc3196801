//! The keys of each layer type, with their ranges and defaults.

mod windows;

use super::activation::Activation;
use super::attention::Attention;
use super::fourier::Fourier;
use super::grid::{AffineGrid, GridSample};
use super::initializer::Initializer;
use super::layer::*;
use super::layer_spec::MaskKey;
use super::message::{EdgeEnds, GraphPooling, Message};
use super::parametrization::Parametrization;
use crate::spec::kind::Kind;
use crate::spec::own::{AnyLayer, Own};
use crate::spec::section::{Choice, Section};

/// The shape of a tensor that is the same for every item.
fn tensor_shape(s: &mut Section<'_>) -> Vec<usize> {
    let doc = "The shape of the tensor, without the batch axis.";
    let sizes = Kind::list(Kind::Int(1, MAX_SIZE), 1);
    s.field("shape", sizes, doc).required()
}

fn initial_std(s: &mut Section<'_>) -> f64 {
    let doc = "Standard deviation of the initial values.";
    s.field("std", Kind::between(0.0, 100.0), doc).or(0.02)
}

impl LayerKind {
    pub(in crate::spec) fn decode(s: &mut Section<'_>) -> Self {
        let doc = "The type of the layer.";
        s.variant(doc, None, |s, layer: AnyLayer| match layer {
            AnyLayer::BuiltIn(layer) => Self::of_type(s, layer),
            AnyLayer::Own(part) => LayerKind::Own(Own::decode(s, part)),
        })
    }

    fn of_type(s: &mut Section<'_>, kind: LayerType) -> Self {
        use LayerType as T;
        if let Some(activation) = Activation::decode(s, kind.name()) {
            return LayerKind::Activation(activation);
        }
        match kind {
            T::Linear => LayerKind::Linear {
                // Resolved with the names of layers.
                out_features: {
                    let doc = "An earlier `embedding` or `linear` layer whose matrix this layer uses, transposed.";
                    let _: Option<String> = s.field("tie", Kind::Text, doc).optional();
                    let doc = "Output features; as many as the task needs when not set.";
                    s.field("out_features", Kind::Int(1, MAX_SIZE), doc)
                        .optional()
                },
                bias: bias(s),
                initializer: Initializer::decode(s),
                parametrization: Parametrization::decode(s),
            },
            T::Conv1d => LayerKind::Conv(Conv::decode(s, 1)),
            T::Conv2d => LayerKind::Conv(Conv::decode(s, 2)),
            T::Conv3d => LayerKind::Conv(Conv::decode(s, 3)),
            T::ConvTranspose1d => LayerKind::ConvTranspose(ConvTranspose::decode(s, 1)),
            T::ConvTranspose2d => LayerKind::ConvTranspose(ConvTranspose::decode(s, 2)),
            T::ConvTranspose3d => LayerKind::ConvTranspose(ConvTranspose::decode(s, 3)),
            T::DeformConv2d => LayerKind::DeformConv2d(DeformConv::decode(s)),
            T::Unfold => LayerKind::Unfold(Unfold::decode(s)),
            T::BatchNorm
            | T::LayerNorm
            | T::GroupNorm
            | T::InstanceNorm
            | T::RmsNorm
            | T::LocalResponseNorm => LayerKind::Norm(Norm::decode(s, kind)),
            T::Dropout => LayerKind::Dropout {
                probability: {
                    let doc = "Probability that a value is zeroed in training.";
                    s.field("probability", Kind::fraction(), doc).or(0.5)
                },
            },
            T::ChannelDropout => LayerKind::ChannelDropout {
                probability: {
                    let doc =
                        "Probability that a channel (of the first axis) is zeroed in training.";
                    s.field("probability", Kind::fraction(), doc).or(0.5)
                },
            },
            T::StochasticDepth => LayerKind::StochasticDepth {
                probability: {
                    let doc = "Probability that an item is zeroed in training.";
                    s.field("probability", Kind::fraction(), doc).or(0.1)
                },
            },
            T::GaussianNoise => LayerKind::GaussianNoise {
                std: s
                    .field("std", Kind::positive(), "Standard deviation.")
                    .required(),
            },
            T::GaussianSample => LayerKind::GaussianSample,
            T::Noise => LayerKind::Noise {
                size: s
                    .field("size", Kind::Int(1, MAX_SIZE), "Numbers for each item.")
                    .required(),
            },
            T::Embedding => LayerKind::Embedding {
                embedding_dim: {
                    let doc = "Size of each embedding; when not set, 1.6 times the size of the vocabulary to the power of 0.56, rounded, and at most 600.";
                    s.field("embedding_dim", Kind::Int(1, MAX_SIZE), doc)
                        .optional()
                },
                initializer: Initializer::decode(s),
                parametrization: Parametrization::decode(s),
            },
            T::MaxPool1d => LayerKind::Pool(Pool::decode(s, true, 1)),
            T::MaxPool2d => LayerKind::Pool(Pool::decode(s, true, 2)),
            T::MaxPool3d => LayerKind::Pool(Pool::decode(s, true, 3)),
            T::AvgPool1d => LayerKind::Pool(Pool::decode(s, false, 1)),
            T::AvgPool2d => LayerKind::Pool(Pool::decode(s, false, 2)),
            T::AvgPool3d => LayerKind::Pool(Pool::decode(s, false, 3)),
            T::AdaptiveAvgPool1d => Self::adaptive(s, 1),
            T::AdaptiveAvgPool2d => Self::adaptive(s, 2),
            T::AdaptiveAvgPool3d => Self::adaptive(s, 3),
            T::Rnn => LayerKind::Recurrent(Recurrent::decode(s, Cell::Rnn)),
            T::Gru => LayerKind::Recurrent(Recurrent::decode(s, Cell::Gru)),
            T::Lstm => LayerKind::Recurrent(Recurrent::decode(s, Cell::Lstm)),
            T::Dlinoss => LayerKind::Dlinoss(Oscillators::decode(s)),
            T::MultiHeadAttention => {
                let doc = "Attention heads, which share the features evenly.";
                let num_heads = size(s, "num_heads", doc);
                let (dropout, causal) = (dropout(s, 0.0), causal(s));
                mask(s, MaskKey::Mask, KEYS_MASK);
                Attention::decode(s, num_heads, dropout, causal)
            }
            T::TransformerEncoder => {
                mask(s, MaskKey::Mask, KEYS_MASK);
                LayerKind::TransformerEncoder(Transformer::decode(s))
            }
            T::TransformerDecoder => {
                mask(s, MaskKey::Mask, KEYS_MASK);
                let doc = "A `padding_mask` of the second input, whose padding is not attended to.";
                mask(s, MaskKey::MemoryMask, doc);
                LayerKind::TransformerDecoder(Transformer::decode(s))
            }
            T::PositionEmbedding => LayerKind::PositionEmbedding {
                max_length: {
                    let doc = "The largest number of positions.";
                    s.field("max_length", Kind::Int(1, MAX_SIZE), doc)
                        .required()
                },
                std: initial_std(s),
            },
            T::PositionalEncoding => LayerKind::PositionalEncoding {
                max_timescale: {
                    let doc = "The longest wavelength, divided by 2 pi.";
                    s.field("max_timescale", Kind::Int(2, MAX_SIZE), doc)
                        .or(10_000)
                },
            },
            T::RotaryEncoding => LayerKind::RotaryEncoding {
                theta: s
                    .field("theta", Kind::positive(), "Base of the frequencies.")
                    .or(10_000.0),
            },
            T::Prelu => LayerKind::Prelu {
                per_channel: {
                    let doc = "Whether each channel (the first axis) has a separate slope.";
                    s.field("per_channel", Kind::Bool, doc).or(false)
                },
                initial: s.field("initial", Kind::any(), "Initial slope.").or(0.25),
            },
            T::Swiglu => LayerKind::Swiglu {
                out_features: size(s, "out_features", "Output features."),
                bias: s
                    .field("bias", Kind::Bool, "Whether to add learned biases.")
                    .or(false),
                initializer: Initializer::decode(s),
            },
            T::Flatten => LayerKind::Flatten {
                start_axis: axis(s, "start_axis", 0),
                end_axis: axis(s, "end_axis", -1),
            },
            T::Reshape => LayerKind::Reshape {
                shape: {
                    let item = Kind::Int(-1, MAX_SIZE);
                    let doc = "The new shape of an item; one size may be -1 to infer it.";
                    s.field("shape", Kind::list(item, 1), doc).required()
                },
            },
            T::Permute => LayerKind::Permute {
                axes: {
                    let doc = "The old axis at each new position, without the batch axis.";
                    s.field("axes", Kind::list(Kind::Int(-5, 4), 1), doc)
                        .required()
                },
            },
            T::Unsqueeze => LayerKind::Unsqueeze {
                axis: axis(s, "axis", 0),
            },
            T::Squeeze => LayerKind::Squeeze {
                axis: axis(s, "axis", 0),
            },
            T::Slice => LayerKind::Slice {
                axis: axis(s, "axis", 0),
                start: {
                    let doc = "The first index; negative counts from the end.";
                    s.field("start", Kind::Int(-MAX_SIZE, MAX_SIZE), doc).or(0)
                },
                end: {
                    let doc = "One past the last index; negative counts from the end; the end when not set.";
                    s.field("end", Kind::Int(-MAX_SIZE, MAX_SIZE), doc)
                        .optional()
                },
            },
            T::Mean => Self::reduce(s, Reduction::Mean),
            T::Max => Self::reduce(s, Reduction::Max),
            T::Sum => Self::reduce(s, Reduction::Sum),
            T::Last => Self::reduce(s, Reduction::Last),
            T::PaddingMask => LayerKind::PaddingMask {
                padding: {
                    let doc = "The token that items are padded with, or the number at the end of a series; that of the data when not set (0 for numbers).";
                    s.field("padding", Kind::any(), doc).optional()
                },
            },
            T::Interpolate1d => Self::interpolate(s, 1),
            T::Interpolate2d => Self::interpolate(s, 2),
            T::PixelShuffle => LayerKind::PixelShuffle {
                factor: size(s, "factor", "Factor by which each side grows."),
            },
            T::PixelUnshuffle => LayerKind::PixelUnshuffle {
                factor: size(s, "factor", "Factor by which each side shrinks."),
            },
            T::Pad => Self::pad(s),
            T::Parameter => Self::parameter(s),
            T::Constant => Self::constant(s),
            T::Subtract => Self::pairwise(Pairwise::Subtract),
            T::Divide => Self::pairwise(Pairwise::Divide),
            T::Maximum => Self::pairwise(Pairwise::Maximum),
            T::Minimum => Self::pairwise(Pairwise::Minimum),
            T::Matmul => LayerKind::Matmul,
            T::Einsum => LayerKind::Einsum {
                equation: {
                    let doc = "A letter for each axis of each input, without the batch, and of the output, such as \"qd,kd->qk\".";
                    s.field("equation", Kind::Text, doc).required()
                },
            },
            T::Cumsum => LayerKind::Cumsum {
                axis: axis(s, "axis", 0),
            },
            T::LinearScan => LayerKind::LinearScan {
                reverse: {
                    let doc = "Whether states come from the last position instead of the first.";
                    s.field("reverse", Kind::Bool, doc).or(false)
                },
            },
            T::Fourier => LayerKind::Fourier(Fourier::decode(s)),
            T::Roll => LayerKind::Roll {
                axis: axis(s, "axis", 0),
                shift: {
                    let doc = "By how many positions values move toward the end of the axis; those that leave it come back at its beginning. Negative moves them toward the beginning.";
                    s.field("shift", Kind::Int(-MAX_SIZE, MAX_SIZE), doc)
                        .required()
                },
            },
            T::TopK => LayerKind::TopK {
                k: size(s, "k", "How many values are kept."),
                fill: {
                    let doc = "What replaces the others; a large negative number, such as -1e9, before a `softmax`.";
                    s.field("fill", Kind::any(), doc).or(0.0)
                },
            },
            T::GridSample => LayerKind::GridSample(GridSample::decode(s)),
            T::AffineGrid => LayerKind::AffineGrid(AffineGrid::decode(s)),
            T::Add => LayerKind::Add,
            T::Multiply => LayerKind::Multiply,
            T::Concat => LayerKind::Concat {
                axis: axis(s, "axis", 0),
            },
            T::Gcn => LayerKind::Message(Message::gcn(s)),
            T::Sage => LayerKind::Message(Message::sage(s)),
            T::Gat => LayerKind::Message(Message::gat(s)),
            T::Gin => LayerKind::Message(Message::gin(s)),
            T::EdgeConv => LayerKind::Message(Message::edge_conv(s)),
            T::GraphPool => LayerKind::GraphPool {
                operation: s.choice("operation", "How the nodes are pooled.", GraphPooling::Mean),
            },
            T::EdgeEnds => LayerKind::EdgeEnds {
                operation: s.choice("operation", "How the nodes are combined.", EdgeEnds::Product),
                edge_dim: s
                    .field("edge_dim", Kind::Int(1, MAX_SIZE), "Numbers of each edge that follow those of its nodes: as many as `data.graph.features` gives; none when not set.")
                    .or(0),
            },
            T::Identity => LayerKind::Identity,
            activation => unreachable!("{} is decoded above", activation.name()),
        }
    }

    fn pairwise(operation: Pairwise) -> Self {
        LayerKind::Pairwise { operation }
    }

    fn pad(s: &mut Section<'_>) -> Self {
        let pair = Kind::Tuple {
            item: Box::new(Kind::Int(0, MAX_SIZE)),
            len: 2,
        };
        let doc = "Values before and after each of the last axes, such as `[[1, 1], [2, 0]]`.";
        let pairs: Vec<Vec<usize>> = s.field("padding", Kind::list(pair, 1), doc).required();
        let pairs = pairs
            .iter()
            .filter_map(|pair| pair.as_slice().try_into().ok());
        let padding = pairs.collect();
        let mode = s.choice("mode", "What the padding consists of.", PadMode::Constant);
        let doc = "The value of the padding, if `mode` is \"constant\".";
        let value = s.field("value", Kind::any(), doc).or(0.0);
        if value != 0.0 && mode != PadMode::Constant {
            let why = format!("with `mode = \"{}\"`", mode.name());
            s.refuse_unused("value", &why, "`mode = \"constant\"`");
        }
        LayerKind::Pad {
            padding,
            mode,
            value,
        }
    }

    fn parameter(s: &mut Section<'_>) -> Self {
        LayerKind::Parameter {
            shape: tensor_shape(s),
            std: initial_std(s),
            mean: {
                let doc = "Mean of the initial values.";
                s.field("mean", Kind::between(-100.0, 100.0), doc).or(0.0)
            },
            file: None,
        }
    }

    fn constant(s: &mut Section<'_>) -> Self {
        let doc =
            "The file of the values, relative to this file: `.npy`, `.npz` or `.safetensors`.";
        let path = s.field("path", Kind::Path, doc).required();
        let doc = "The name of the array, if the file has several.";
        let array = s.field("array", Kind::Text, doc).optional();
        LayerKind::Parameter {
            shape: tensor_shape(s),
            std: 0.0,
            mean: 0.0,
            file: Some(ConstantFile { path, array }),
        }
    }

    fn reduce(s: &mut Section<'_>, operation: Reduction) -> Self {
        let axis = axis(s, "axis", 0);
        let doc =
            "A `padding_mask` of the positions along the axis; those of padding do not count.";
        mask(s, MaskKey::Mask, doc);
        LayerKind::Reduce { operation, axis }
    }

    fn adaptive(s: &mut Section<'_>, dims: usize) -> Self {
        let output_size = sizes(s, "output_size", "Output size in each dimension.", dims);
        LayerKind::AdaptiveAvgPool { dims, output_size }
    }

    fn interpolate(s: &mut Section<'_>, dims: usize) -> Self {
        let doc = "The new size: one number, or one per dimension.";
        let output_size: Option<Vec<usize>> =
            s.field("output_size", Kind::sizes(1, dims), doc).optional();
        let doc = "Scale of each dimension, when `output_size` is not set.";
        let scale: Option<f64> = s.field("scale", Kind::between(1e-3, 1e3), doc).optional();
        let mode = s.choice(
            "mode",
            "The interpolation between samples.",
            Interpolation::Nearest,
        );
        let doc = "Whether to align the outermost samples; not with \"nearest\".";
        let align_corners = s.field("align_corners", Kind::Bool, doc).or(false);
        if align_corners && mode == Interpolation::Nearest {
            let why = format!("with `mode = \"{}\"`", mode.name());
            s.refuse_unused("align_corners", &why, "`mode = \"linear\"`");
        }
        LayerKind::Interpolate {
            dims,
            output_size: output_size.map(|sizes| each(sizes, dims)),
            scale: scale.map(|scale| vec![scale; dims]),
            mode,
            align_corners,
        }
    }
}

const KEYS_MASK: &str =
    "A `padding_mask` of the sequence that is attended to, whose padding gets no weight.";

/// A key that names a mask, which is resolved with the names of layers.
fn mask(s: &mut Section<'_>, key: MaskKey, doc: &'static str) {
    let _: Option<String> = s.field(key.name(), Kind::Text, doc).optional();
}

/// Widths and counts above this are mistakes.
pub(super) const MAX_SIZE: i64 = 1 << 24;

pub(super) fn size(s: &mut Section<'_>, key: &'static str, doc: &'static str) -> usize {
    s.field(key, Kind::Int(1, MAX_SIZE), doc).required()
}

pub(super) fn sizes(
    s: &mut Section<'_>,
    key: &'static str,
    doc: &'static str,
    dims: usize,
) -> Vec<usize> {
    let sizes: Vec<usize> = s.field(key, Kind::sizes(1, dims), doc).or(vec![1]);
    each(sizes, dims)
}

/// One size for all dimensions, if a single one is given.
fn each(sizes: Vec<usize>, dims: usize) -> Vec<usize> {
    match sizes.as_slice() {
        [single] => vec![*single; dims],
        _ => sizes,
    }
}

fn kernel(s: &mut Section<'_>, dims: usize) -> Vec<usize> {
    let doc = "Kernel size: one number, or one per dimension.";
    let sizes = s.field("kernel_size", Kind::sizes(1, dims), doc).required();
    each(sizes, dims)
}

fn axis(s: &mut Section<'_>, key: &'static str, default: i64) -> i64 {
    let doc = "An axis of the item, without the batch axis; negative counts from the end.";
    s.field(key, Kind::Int(-5, 4), doc).or(default)
}

pub(super) fn bias(s: &mut Section<'_>) -> bool {
    s.field("bias", Kind::Bool, "Whether to add a learned bias.")
        .or(true)
}

fn epsilon(s: &mut Section<'_>) -> f64 {
    s.field("epsilon", Kind::positive(), "Added to the variance.")
        .or(1e-5)
}

fn dropout(s: &mut Section<'_>, default: f64) -> f64 {
    let doc = "Probability that a value is zeroed in training.";
    s.field("dropout", Kind::fraction(), doc).or(default)
}

fn channels(s: &mut Section<'_>) -> Option<usize> {
    let doc = "Output channels; as many as the task needs when not set.";
    s.field("out_channels", Kind::Int(1, MAX_SIZE), doc)
        .optional()
}

fn causal(s: &mut Section<'_>) -> bool {
    let doc = "Whether a position attends only to itself and earlier ones.";
    s.field("causal", Kind::Bool, doc).or(false)
}

impl Norm {
    fn decode(s: &mut Section<'_>, kind: LayerType) -> Self {
        let affine = |s: &mut Section<'_>| {
            let doc = "Whether each channel has a learned scale and shift.";
            s.field("affine", Kind::Bool, doc).or(true)
        };
        match kind {
            LayerType::BatchNorm => Norm::Batch {
                epsilon: epsilon(s),
                momentum: {
                    let doc = "Weight of the newest batch in the running mean and variance.";
                    s.field("momentum", Kind::fraction(), doc).or(0.1)
                },
                affine: affine(s),
            },
            LayerType::LayerNorm => Norm::Layer {
                epsilon: epsilon(s),
                bias: bias(s),
            },
            LayerType::GroupNorm => Norm::Group {
                num_groups: size(s, "num_groups", "Number of channel groups."),
                epsilon: epsilon(s),
                affine: affine(s),
            },
            LayerType::InstanceNorm => Norm::Instance {
                epsilon: epsilon(s),
                affine: affine(s),
            },
            LayerType::LocalResponseNorm => Norm::LocalResponse {
                size: size(s, "size", "Number of neighboring channels."),
                alpha: s
                    .field("alpha", Kind::positive(), "Weight of their squares.")
                    .or(1e-4),
                beta: s.field("beta", Kind::positive(), "Exponent.").or(0.75),
                k: s.field("k", Kind::positive(), "Added to the squares.")
                    .or(1.0),
            },
            _ => Norm::Rms {
                epsilon: epsilon(s),
            },
        }
    }
}

impl Recurrent {
    fn decode(s: &mut Section<'_>, cell: Cell) -> Self {
        Self {
            cell,
            hidden_size: size(s, "hidden_size", "Hidden size of each direction."),
            bidirectional: {
                let doc = "Whether a second network reads the sequence backward; both outputs are concatenated.";
                s.field("bidirectional", Kind::Bool, doc).or(false)
            },
            output: {
                let doc = "A `padding_mask` of the sequence: states do not change at padding, whose outputs are 0, and the last step is the last one that is real.";
                mask(s, MaskKey::Mask, doc);
                s.choice("output", "Which steps to output.", Steps::Sequence)
            },
            bias: bias(s),
            initializer: Initializer::decode(s),
        }
    }
}

impl Oscillators {
    fn decode(s: &mut Section<'_>) -> Self {
        Self {
            state_size: size(s, "state_size", "Number of oscillators."),
            min_radius: {
                let doc = "The least absolute value of the initial eigenvalues: near 1, oscillators decay slowly.";
                s.field("min_radius", Kind::between(0.01, 1.0), doc).or(0.9)
            },
            max_radius: {
                let doc = "The largest absolute value of the initial eigenvalues.";
                s.field("max_radius", Kind::between(0.01, 1.0), doc).or(1.0)
            },
            max_angle: {
                let doc = "The largest angle of the initial eigenvalues, in radians: up to this fraction of a turn in each step.";
                let angle = Kind::between(1e-3, std::f64::consts::PI);
                s.field("max_angle", angle, doc).or(std::f64::consts::PI)
            },
        }
    }
}

impl Transformer {
    fn decode(s: &mut Section<'_>) -> Self {
        Self {
            num_layers: s
                .field("num_layers", Kind::Int(1, 1024), "Layers.")
                .required(),
            num_heads: size(
                s,
                "num_heads",
                "Attention heads, which share the features evenly.",
            ),
            feedforward_size: size(
                s,
                "feedforward_size",
                "Hidden size of the feed-forward networks.",
            ),
            dropout: dropout(s, 0.1),
            norm_first: {
                let doc = "Whether to normalize before each sublayer instead of after it.";
                s.field("norm_first", Kind::Bool, doc).or(false)
            },
            causal: causal(s),
            activation: s.choice(
                "activation",
                "The activation of the feed-forward networks.",
                FeedforwardActivation::Gelu,
            ),
            initializer: Initializer::decode(s),
        }
    }
}
