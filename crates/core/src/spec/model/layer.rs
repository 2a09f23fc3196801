//! One layer of a network as written: its type and the keys of the type.
//!
//! Sizes that follow from the layer's input are never set; a size that may be inferred from the task is an `Option`.
//! Axes count an item's dimensions, without the batch, and may be negative to count from the end.

use serde::{Deserialize, Serialize};

use super::activation::Activation;
use super::attention::Attention;
use super::fourier::Fourier;
use super::grid::{AffineGrid, GridSample};
use super::initializer::Initializer;
use super::message::{EdgeEnds, GraphPooling, Message};
use super::parametrization::Parametrization;
use crate::spec::kind::Padding;
use crate::spec::own::{AnyLayer, Own};
use crate::spec::section::{Choice, Types, choices};

/// The layer types.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each key is documented below")]
pub enum LayerKind {
    /// An affine map of the last axis.
    Linear {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        out_features: Option<usize>,
        bias: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initializer: Option<Initializer>,
        #[serde(default, skip_serializing_if = "Parametrization::is_none")]
        parametrization: Parametrization,
    },
    /// A convolution over the last `dims` axes.
    Conv(Conv),
    /// A transposed convolution, which enlarges its input.
    ConvTranspose(ConvTranspose),
    /// A convolution whose samples are moved by offsets, its second input, and weighted by a third.
    DeformConv2d(DeformConv),
    /// Windows of images as columns.
    Unfold(Unfold),
    /// A norm over channels or features.
    Norm(Norm),
    /// Zeroes random values in training and scales up the others.
    Dropout { probability: f64 },
    /// Zeroes random channels in training and scales up the others.
    ChannelDropout { probability: f64 },
    /// Zeroes random items in training and scales up the others.
    StochasticDepth { probability: f64 },
    /// Adds normal noise in training.
    GaussianNoise { std: f64 },
    /// A sample of normal distributions in training, and their means otherwise.
    GaussianSample,
    /// A sample of the standard normal distribution, whatever its input is.
    Noise { size: usize },
    /// A vector for each token.
    Embedding {
        /// Resolved by the size of the vocabulary.
        embedding_dim: Option<usize>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initializer: Option<Initializer>,
        #[serde(default, skip_serializing_if = "Parametrization::is_none")]
        parametrization: Parametrization,
    },
    /// The maximum or mean of each window.
    Pool(Pool),
    /// Mean pooling to a fixed output size.
    AdaptiveAvgPool {
        dims: usize,
        output_size: Vec<usize>,
    },
    /// A recurrent network over the first axis.
    Recurrent(Recurrent),
    /// Damped linear oscillators over the first axis.
    Dlinoss(Oscillators),
    /// Attention of a sequence to itself or to another.
    MultiHeadAttention {
        num_heads: usize,
        dropout: f64,
        causal: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initializer: Option<Initializer>,
    },
    /// The same with options of language models.
    GroupedAttention(Attention),
    /// Layers of self-attention and feed-forward networks.
    TransformerEncoder(Transformer),
    /// The same with attention to a second input in between.
    TransformerDecoder(Transformer),
    /// Adds sines and cosines of the position (Vaswani et al., 2017).
    PositionalEncoding { max_timescale: usize },
    /// Adds a learned vector for each position.
    PositionEmbedding {
        /// The largest number of positions.
        max_length: usize,
        /// Standard deviation of the initial values.
        std: f64,
    },
    /// Rotates pairs of values by their position (Su et al., 2021).
    RotaryEncoding { theta: f64 },
    /// An activation function.
    Activation(Activation),
    /// A learned slope for negative values.
    Prelu { per_channel: bool, initial: f64 },
    /// A gated linear unit with silu (Shazeer, 2020).
    Swiglu {
        out_features: usize,
        bias: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initializer: Option<Initializer>,
    },
    /// The input, unchanged.
    Identity,
    /// Merges axes.
    Flatten { start_axis: i64, end_axis: i64 },
    /// The same values in a different shape.
    Reshape { shape: Vec<i64> },
    /// Reorders the axes.
    Permute { axes: Vec<i64> },
    /// Inserts an axis of size 1.
    Unsqueeze { axis: i64 },
    /// Removes an axis of size 1.
    Squeeze { axis: i64 },
    /// A range of an axis.
    Slice {
        axis: i64,
        start: i64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end: Option<i64>,
    },
    /// 1 for each real position of the items, 0 for padding.
    PaddingMask {
        /// The token, or the number, that items are padded with; that of the data when not set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        padding: Option<f64>,
    },
    /// Reduces an axis to its mean, maximum, sum or last value.
    Reduce { operation: Reduction, axis: i64 },
    /// Resizes images or sequences.
    Interpolate {
        dims: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_size: Option<Vec<usize>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scale: Option<Vec<f64>>,
        mode: Interpolation,
        align_corners: bool,
    },
    /// Rearranges channels into larger images (Shi et al., 2016).
    PixelShuffle { factor: usize },
    /// Rearranges images into more channels.
    PixelUnshuffle { factor: usize },
    /// Adds values around the last axes.
    Pad {
        padding: Vec<[usize; 2]>,
        mode: PadMode,
        value: f64,
    },
    /// A tensor that is the same for every item: learned, or constant if its values come from a file.
    Parameter {
        shape: Vec<usize>,
        std: f64,
        #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
        mean: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<ConstantFile>,
    },
    /// The sum of all inputs.
    Add,
    /// The product of all inputs.
    Multiply,
    /// An element-wise function of two inputs.
    Pairwise { operation: Pairwise },
    /// The matrix product of two inputs.
    Matmul,
    /// Products of inputs, summed over axes, in Einstein's notation.
    Einsum { equation: String },
    /// The sums up to each position of an axis.
    Cumsum { axis: i64 },
    /// States of a linear recurrence along the first axis: the first input times the state before, plus the second.
    LinearScan { reverse: bool },
    /// The discrete Fourier transform.
    Fourier(Fourier),
    /// The values of an axis, moved in a circle.
    Roll { axis: i64, shift: i64 },
    /// The largest values of the last axis; the others are replaced.
    TopK { k: usize, fill: f64 },
    /// Samples of an image at the places of a grid, the second input.
    GridSample(GridSample),
    /// The grid of an affine map.
    AffineGrid(AffineGrid),
    /// Concatenates all inputs along an axis.
    Concat { axis: i64 },
    /// Messages along the edges of a graph.
    Message(Message),
    /// The nodes of each graph as one row.
    GraphPool { operation: GraphPooling },
    /// The two nodes of each edge as one row, and the features of the edge.
    EdgeEnds {
        operation: EdgeEnds,
        #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
        edge_dim: usize,
    },
    /// A layer of the program's own.
    Own(Own),
}

/// A convolution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each key is documented below")]
pub struct Conv {
    pub dims: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_channels: Option<usize>,
    pub kernel_size: Vec<usize>,
    pub stride: Vec<usize>,
    pub dilation: Vec<usize>,
    pub groups: usize,
    pub padding: Padding,
    pub bias: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initializer: Option<Initializer>,
    #[serde(default, skip_serializing_if = "Parametrization::is_none")]
    pub parametrization: Parametrization,
}

/// A transposed convolution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each key is documented below")]
pub struct ConvTranspose {
    pub dims: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_channels: Option<usize>,
    pub kernel_size: Vec<usize>,
    pub stride: Vec<usize>,
    pub dilation: Vec<usize>,
    pub groups: usize,
    pub padding: Vec<usize>,
    pub output_padding: Vec<usize>,
    pub bias: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initializer: Option<Initializer>,
    #[serde(default, skip_serializing_if = "Parametrization::is_none")]
    pub parametrization: Parametrization,
}

/// A deformable convolution (Dai et al., 2017), with weights of the samples in its second version (Zhu et al., 2019).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each key is documented below")]
pub struct DeformConv {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_channels: Option<usize>,
    #[serde(flatten)]
    pub window: Unfold,
    pub groups: usize,
    pub bias: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initializer: Option<Initializer>,
}

/// Windows over images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each key is documented below")]
pub struct Unfold {
    pub kernel_size: Vec<usize>,
    pub stride: Vec<usize>,
    pub dilation: Vec<usize>,
    pub padding: Vec<usize>,
}

impl Unfold {
    /// The number of samples of a window.
    pub fn num_taps(&self) -> usize {
        self.kernel_size
            .iter()
            .fold(1, |num: usize, size| num.saturating_mul(*size))
    }
}

/// A norm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "norm", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each key is documented below")]
pub enum Norm {
    Batch {
        epsilon: f64,
        momentum: f64,
        #[serde(default = "affine", skip_serializing_if = "is_affine")]
        affine: bool,
    },
    Layer {
        epsilon: f64,
        bias: bool,
    },
    Group {
        num_groups: usize,
        epsilon: f64,
        affine: bool,
    },
    Instance {
        epsilon: f64,
        affine: bool,
    },
    Rms {
        epsilon: f64,
    },
    LocalResponse {
        size: usize,
        alpha: f64,
        beta: f64,
        k: f64,
    },
}

/// The default of a batch norm, which plans leave out.
fn affine() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_affine(affine: &bool) -> bool {
    *affine
}

/// A pooling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each key is documented below")]
pub struct Pool {
    pub max: bool,
    pub dims: usize,
    pub kernel_size: Vec<usize>,
    pub stride: Vec<usize>,
    pub padding: Padding,
    pub dilation: Vec<usize>,
    pub ceil_mode: bool,
    pub count_include_pad: bool,
}

/// A recurrent network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each key is documented below")]
pub struct Recurrent {
    pub cell: Cell,
    pub hidden_size: usize,
    pub bidirectional: bool,
    pub output: Steps,
    pub bias: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initializer: Option<Initializer>,
}

/// The recurrent cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// Elman, 1990, with tanh.
    Rnn,
    /// Cho et al., 2014.
    Gru,
    /// Hochreiter and Schmidhuber, 1997.
    Lstm,
}

/// Damped linear oscillators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Oscillators {
    /// How many there are.
    pub state_size: usize,
    /// The least absolute value of initial eigenvalues.
    pub min_radius: f64,
    /// The largest.
    pub max_radius: f64,
    /// The largest angle of initial eigenvalues.
    pub max_angle: f64,
}

/// A stack of transformer layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each key is documented below")]
pub struct Transformer {
    pub num_layers: usize,
    pub num_heads: usize,
    pub feedforward_size: usize,
    pub dropout: f64,
    pub norm_first: bool,
    pub causal: bool,
    pub activation: FeedforwardActivation,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initializer: Option<Initializer>,
}

choices! {
    /// The output steps of a recurrent layer.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Steps {
        Sequence "sequence" "Every step: [length, hidden].",
        Last "last" "The last step of each direction: [hidden].",
    }
}

choices! {
    /// The activation of a feed-forward network.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum FeedforwardActivation {
        Gelu "gelu" "x times the normal cumulative distribution function of x.",
        Relu "relu" "max(x, 0).",
    }
}

choices! {
    /// How an axis is reduced to one number.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reduction {
        Mean "mean" "The mean.",
        Max "max" "The maximum.",
        Sum "sum" "The sum.",
        Last "last" "The last value.",
    }
}

/// The file with the values of a `constant`. Plans list it with its digest (`crate::plan::constant`), since where it is
/// does not change what a network computes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConstantFile {
    /// As written.
    #[serde(skip)]
    pub path: String,
    /// The name of the array in a file of several.
    #[serde(skip)]
    pub array: Option<String>,
}

choices! {
    /// An element-wise function of two inputs.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Pairwise {
        Subtract "subtract" "The first input minus the second.",
        Divide "divide" "The first input divided by the second.",
        Maximum "maximum" "The larger of both.",
        Minimum "minimum" "The smaller of both.",
    }
}

choices! {
    /// What a padding consists of.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum PadMode {
        Constant "constant" "One value, `value`.",
        Reflect "reflect" "The values next to the edge, mirrored at it.",
        Replicate "replicate" "The value at the edge.",
    }
}

choices! {
    /// The interpolation between samples.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Interpolation {
        Nearest "nearest" "Nearest neighbor.",
        Linear "linear" "Linear interpolation.",
        Cubic "cubic" "Cubic interpolation; for images.",
    }
}

choices! {
    /// The `type` of a layer.
    pub enum LayerType {
        Linear "linear" "An affine map of the last axis.",
        Conv1d "conv1d" "A convolution over [channels, length].",
        Conv2d "conv2d" "A convolution over [channels, height, width].",
        Conv3d "conv3d" "A convolution over [channels, depth, height, width].",
        ConvTranspose1d "conv_transpose1d" "A transposed convolution over [channels, length].",
        ConvTranspose2d "conv_transpose2d" "A transposed convolution over [channels, height, width].",
        ConvTranspose3d "conv_transpose3d" "A transposed convolution over [channels, depth, height, width].",
        DeformConv2d "deform_conv2d" "A convolution over [channels, height, width] whose samples are moved by the second of its `inputs` (Dai et al., 2017), and multiplied by the third if there is one (Zhu et al., 2019).",
        Unfold "unfold" "Windows of [channels, height, width] as columns: [channels * kernel, windows] (im2col).",
        BatchNorm "batch_norm" "Normalizes each channel to mean 0 and standard deviation 1 over the batch (Ioffe and Szegedy, 2015).",
        LayerNorm "layer_norm" "Normalizes the last axis to mean 0 and standard deviation 1 (Ba et al., 2016).",
        GroupNorm "group_norm" "Normalizes groups of channels to mean 0 and standard deviation 1 (Wu and He, 2018).",
        InstanceNorm "instance_norm" "Normalizes each channel of each item to mean 0 and standard deviation 1 (Ulyanov et al., 2016).",
        RmsNorm "rms_norm" "Normalizes the last axis to a root mean square of 1 (Zhang and Sennrich, 2019).",
        LocalResponseNorm "local_response_norm" "Dampens values by neighboring channels (Krizhevsky et al., 2012); with an even size, by one more after than before, as in ONNX.",
        Dropout "dropout" "Zeroes random values in training and scales up the others (Srivastava et al., 2014).",
        ChannelDropout "channel_dropout" "Zeroes random channels of each item in training and scales up the others (Tompson et al., 2015).",
        StochasticDepth "stochastic_depth" "Zeroes random items in training and scales up the others; at the end of a residual branch (Huang et al., 2016).",
        GaussianNoise "gaussian_noise" "Adds normal noise in training.",
        GaussianSample "gaussian_sample" "Means in the first half of the last axis, logarithms of variances in the second: in training a sample of these normal distributions, by the reparameterization trick (Kingma and Welling, 2014), otherwise the means.",
        Noise "noise" "`size` numbers of the standard normal distribution for each item, from which the generator of `strategy.type = \"adversarial\"` makes one.",
        Embedding "embedding" "A learned vector for each token.",
        MaxPool1d "max_pool1d" "The maximum of each window of [channels, length].",
        MaxPool2d "max_pool2d" "The maximum of each window of [channels, height, width].",
        MaxPool3d "max_pool3d" "The maximum of each window of [channels, depth, height, width].",
        AvgPool1d "avg_pool1d" "The mean of each window of [channels, length].",
        AvgPool2d "avg_pool2d" "The mean of each window of [channels, height, width].",
        AvgPool3d "avg_pool3d" "The mean of each window of [channels, depth, height, width].",
        AdaptiveAvgPool1d "adaptive_avg_pool1d" "Mean pooling of [channels, length] to a fixed output size.",
        AdaptiveAvgPool2d "adaptive_avg_pool2d" "Mean pooling of [channels, height, width] to a fixed output size.",
        AdaptiveAvgPool3d "adaptive_avg_pool3d" "Mean pooling of [channels, depth, height, width] to a fixed output size.",
        Rnn "rnn" "A plain recurrent network over [length, features] (Elman, 1990).",
        Gru "gru" "Gated recurrent units over [length, features] (Cho et al., 2014).",
        Lstm "lstm" "Long short-term memory over [length, features] (Hochreiter and Schmidhuber, 1997).",
        Dlinoss "dlinoss" "Damped linear oscillators over [length, features], by a parallel scan (D-LinOSS; Boyer et al., 2025).",
        MultiHeadAttention "multi_head_attention" "Self-attention over [length, features], or attention of the first input to the second, with the values of the third if there is one (Vaswani et al., 2017).",
        TransformerEncoder "transformer_encoder" "Layers of self-attention and feed-forward networks (Vaswani et al., 2017).",
        TransformerDecoder "transformer_decoder" "Layers of self-attention, attention to a second input, and feed-forward networks (Vaswani et al., 2017).",
        PositionEmbedding "position_embedding" "Adds a learned vector for each position, as in GPT-2 and BERT.",
        PositionalEncoding "positional_encoding" "Adds sines and cosines of the position (Vaswani et al., 2017).",
        RotaryEncoding "rotary_encoding" "Rotates pairs of values by their position (Su et al., 2021).",
        PaddingMask "padding_mask" "1 for each real position of tokens or of a series, 0 for padding; for the `mask` of other layers.",
        Relu "relu" "max(x, 0).",
        Relu6 "relu6" "min(max(x, 0), 6).",
        LeakyRelu "leaky_relu" "x above zero, a small slope below.",
        Prelu "prelu" "x above zero, a learned slope below (He et al., 2015).",
        Rrelu "rrelu" "x above zero, in training a random slope below (Xu et al., 2015).",
        ThresholdedRelu "thresholded_relu" "x above alpha, otherwise 0.",
        Gelu "gelu" "x times the normal cumulative distribution function of x (Hendrycks and Gimpel, 2016).",
        GeluTanh "gelu_tanh" "The tanh approximation of gelu.",
        Silu "silu" "x times sigmoid(x), also called swish.",
        Mish "mish" "x times tanh(softplus(x)) (Misra, 2019).",
        Elu "elu" "x above zero, alpha (exp(x) - 1) below (Clevert et al., 2015).",
        Celu "celu" "x above zero, alpha (exp(x / alpha) - 1) below (Barron, 2017).",
        Selu "selu" "elu scaled to preserve mean and variance (Klambauer et al., 2017).",
        Tanh "tanh" "tanh(x).",
        Sigmoid "sigmoid" "1 / (1 + exp(-x)).",
        LogSigmoid "log_sigmoid" "log(sigmoid(x)).",
        Softplus "softplus" "log(1 + exp(beta x)) / beta.",
        Softsign "softsign" "x / (1 + |x|).",
        Tanhshrink "tanhshrink" "x - tanh(x).",
        HardSigmoid "hard_sigmoid" "alpha x + beta, clamped to 0 and 1.",
        HardSwish "hard_swish" "x times a hard sigmoid (Howard et al., 2019).",
        Hardtanh "hardtanh" "x clamped between two bounds.",
        HardShrink "hard_shrink" "x, or 0 near zero.",
        SoftShrink "soft_shrink" "x moved toward zero, or 0 near it.",
        Shrink "shrink" "x moved toward zero by a bias, or 0 near it.",
        Threshold "threshold" "x above a threshold, otherwise a value.",
        Exp "exp" "exp(x).",
        Abs "abs" "|x|.",
        Erf "erf" "The Gauss error function of x.",
        Power "power" "x to a power.",
        Scale "scale" "factor x + offset.",
        Softmax "softmax" "Exponentials along the last axis, normalized to a sum of 1.",
        LogSoftmax "log_softmax" "The logarithm of the softmax.",
        Sparsemax "sparsemax" "The nearest probabilities along the last axis, of which many are 0 (Martins and Astudillo, 2016).",
        Glu "glu" "Half of the last axis times the sigmoid of the other half (Dauphin et al., 2016).",
        Swiglu "swiglu" "A gated linear unit with silu (Shazeer, 2020).",
        Identity "identity" "The input, unchanged.",
        Flatten "flatten" "Merges axes into one.",
        Reshape "reshape" "The same values in another shape.",
        Permute "permute" "Reorders the axes.",
        Unsqueeze "unsqueeze" "Inserts an axis of size 1.",
        Squeeze "squeeze" "Removes an axis of size 1.",
        Slice "slice" "A range of an axis.",
        Mean "mean" "The mean over an axis.",
        Max "max" "The maximum over an axis.",
        Sum "sum" "The sum over an axis.",
        Last "last" "The value at the last position of an axis.",
        Interpolate1d "interpolate1d" "Resizes [channels, length].",
        Interpolate2d "interpolate2d" "Resizes [channels, height, width].",
        PixelShuffle "pixel_shuffle" "Rearranges channels into larger images (Shi et al., 2016).",
        PixelUnshuffle "pixel_unshuffle" "Rearranges images into more channels.",
        Pad "pad" "Adds values around the last axes.",
        Parameter "parameter" "A learned tensor, the same for every item.",
        Constant "constant" "A tensor from a file, the same for every item and not trained, such as a fixed adjacency.",
        Add "add" "The sum of all `inputs`.",
        Multiply "multiply" "The product of all `inputs`.",
        Subtract "subtract" "The first of two `inputs` minus the second.",
        Divide "divide" "The first of two `inputs` divided by the second.",
        Maximum "maximum" "The larger of two `inputs`.",
        Minimum "minimum" "The smaller of two `inputs`.",
        Matmul "matmul" "The matrix product of two `inputs`.",
        Einsum "einsum" "Products of one or two `inputs`, summed over axes, in Einstein's notation.",
        Cumsum "cumsum" "The sums up to each position of an axis.",
        LinearScan "linear_scan" "States of a linear recurrence over [length, …]: the first of two `inputs` times the state before, plus the second, as in state-space networks (Martin and Cundy, 2018; Gu and Dao, 2023).",
        Fourier "fourier" "The discrete Fourier transform over axes, without normalization, as in FNet (Lee-Thorp et al., 2022).",
        Roll "roll" "Moves the values of an axis in a circle, as between windows of Swin (Liu et al., 2021).",
        TopK "top_k" "Keeps the largest values of the last axis and replaces the others, as in sparse mixtures of experts (Shazeer et al., 2017).",
        GridSample "grid_sample" "Samples of [channels, height, width] at the places of a grid [height, width, 2], the second of its `inputs`: how far right and how far down, from -1 to 1 (Jaderberg et al., 2015).",
        AffineGrid "affine_grid" "The grid of an affine map, for `grid_sample`: [height, width, 2] of 6 numbers (Jaderberg et al., 2015).",
        Concat "concat" "Concatenates all `inputs` along an axis.",
        Gcn "gcn" "Sums of the neighbors in a graph, normalized by the degrees of both (Kipf and Welling, 2017).",
        Sage "sage" "The mean of the neighbors in a graph, and the node itself, each by a linear layer (Hamilton et al., 2017).",
        Gat "gat" "Attention to the neighbors in a graph (Velickovic et al., 2018).",
        Gin "gin" "The sum of the neighbors in a graph and of the node itself, through two linear layers (Xu et al., 2019).",
        EdgeConv "edge_conv" "Two linear layers of a node and of its difference to each neighbor in a graph (Wang et al., 2019).",
        GraphPool "graph_pool" "The nodes of each graph as one row.",
        EdgeEnds "edge_ends" "The two nodes of each edge as one row.",
    }
}

/// The names of the built-in layer types.
pub fn built_in_types() -> impl Iterator<Item = &'static str> {
    LayerType::ALL.iter().map(|(_, name, _)| *name)
}

/// The names of all layer types, those of the program included.
pub fn types() -> impl Iterator<Item = &'static str> + Clone {
    AnyLayer::all().into_iter().map(|(_, name, _)| name)
}

impl LayerKind {
    /// The `type` in the file.
    pub fn type_name(&self) -> String {
        match self {
            LayerKind::Conv(conv) => format!("conv{}d", conv.dims),
            LayerKind::ConvTranspose(conv) => format!("conv_transpose{}d", conv.dims),
            LayerKind::Pool(pool) => {
                let what = if pool.max { "max" } else { "avg" };
                format!("{what}_pool{}d", pool.dims)
            }
            LayerKind::AdaptiveAvgPool { dims, .. } => format!("adaptive_avg_pool{dims}d"),
            LayerKind::Interpolate { dims, .. } => format!("interpolate{dims}d"),
            LayerKind::Reduce { operation, .. } => operation.name().to_owned(),
            LayerKind::Pairwise { operation } => operation.name().to_owned(),
            LayerKind::Norm(norm) => format!("{}_norm", tag(norm, "norm")),
            LayerKind::Recurrent(recurrent) => tag(recurrent, "cell"),
            LayerKind::Dlinoss(_) => "dlinoss".to_owned(),
            LayerKind::Activation(activation) => tag(activation, "function"),
            LayerKind::Message(message) => tag(message, "layer"),
            LayerKind::Own(own) => own.layer.clone(),
            LayerKind::GroupedAttention(_) => "multi_head_attention".to_owned(),
            LayerKind::Parameter { file: Some(_), .. } => "constant".to_owned(),
            other => tag(other, "type"),
        }
    }

    /// The same with the sizes that are inferred from the output shape.
    pub fn resolved(&self, shape: &[usize]) -> Self {
        let mut kind = self.clone();
        match &mut kind {
            LayerKind::Linear { out_features, .. } => *out_features = shape.last().copied(),
            LayerKind::Embedding { embedding_dim, .. } => *embedding_dim = shape.last().copied(),
            LayerKind::Conv(conv) => conv.out_channels = shape.first().copied(),
            LayerKind::ConvTranspose(conv) => conv.out_channels = shape.first().copied(),
            LayerKind::DeformConv2d(conv) => conv.out_channels = shape.first().copied(),
            _ => {}
        }
        kind
    }

    /// The initializer of the layer, if it is not the default of Burn's module.
    pub fn initializer(&self) -> Option<&Initializer> {
        match self {
            LayerKind::Linear { initializer, .. }
            | LayerKind::Embedding { initializer, .. }
            | LayerKind::MultiHeadAttention { initializer, .. }
            | LayerKind::Swiglu { initializer, .. } => initializer.as_ref(),
            LayerKind::GroupedAttention(attention) => attention.initializer.as_ref(),
            LayerKind::Conv(conv) => conv.initializer.as_ref(),
            LayerKind::ConvTranspose(conv) => conv.initializer.as_ref(),
            LayerKind::DeformConv2d(conv) => conv.initializer.as_ref(),
            LayerKind::Recurrent(recurrent) => recurrent.initializer.as_ref(),
            LayerKind::TransformerEncoder(stack) | LayerKind::TransformerDecoder(stack) => {
                stack.initializer.as_ref()
            }
            _ => None,
        }
    }

    /// How its weight is computed.
    pub fn parametrization(&self) -> Parametrization {
        match self {
            LayerKind::Linear {
                parametrization, ..
            }
            | LayerKind::Embedding {
                parametrization, ..
            } => *parametrization,
            LayerKind::Conv(conv) => conv.parametrization,
            LayerKind::ConvTranspose(conv) => conv.parametrization,
            _ => Parametrization::None,
        }
    }

    /// Number of channel groups.
    pub fn groups(&self) -> usize {
        match self {
            LayerKind::Conv(conv) => conv.groups,
            LayerKind::ConvTranspose(conv) => conv.groups,
            LayerKind::DeformConv2d(conv) => conv.groups,
            _ => 1,
        }
    }

    /// Whether its values are fixed: those of a file.
    pub fn is_constant(&self) -> bool {
        matches!(self, LayerKind::Parameter { file: Some(_), .. })
    }

    /// Whether the file sets its output size.
    pub fn has_size(&self) -> bool {
        matches!(
            self,
            LayerKind::Linear { .. }
                | LayerKind::Conv(_)
                | LayerKind::ConvTranspose(_)
                | LayerKind::DeformConv2d(_)
                | LayerKind::Recurrent(_)
                | LayerKind::Embedding { .. }
                | LayerKind::Swiglu { .. }
        )
    }

    /// Whether the layer takes any number of inputs, at least two.
    pub fn is_join(&self) -> bool {
        matches!(
            self,
            LayerKind::Add | LayerKind::Multiply | LayerKind::Concat { .. }
        )
    }
}

/// The serde name of a value.
fn tag(value: &impl Serialize, key: &str) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json[key].as_str().unwrap_or_default().to_owned()
}
