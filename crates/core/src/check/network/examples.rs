//! A small network for each type of layer, and several for those with many settings. Tests use them to check the layer
//! plans against Burn and to compare devices.

use super::{Items, Network, Shape, infer};
use crate::data::{GraphPlan, PairsPlan};
use crate::diagnostic::Reason;
use crate::spec::document::Document;
use crate::spec::model::NetworkInputs;
use crate::spec::model::expand::expand;
use crate::spec::model::layer::{LayerKind, LayerType};
use crate::spec::own::{OwnLayer, Part};
use crate::spec::section::{Choice, Findings};

/// A small network.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// Its layers as in an experiment file, the tested one last.
    pub layers: String,
    /// The planned network.
    pub network: Network,
}

impl Example {
    /// The type of the tested layer.
    pub fn kind(&self) -> String {
        let last = self.network.layers.last();
        last.map_or(String::new(), |layer| layer.kind.type_name())
    }
}

/// Numeric items of a shape, or for an empty shape 6 tokens out of 7, and layers over them.
const EXAMPLES: &[(&[usize], &str)] = &[
    (&[5], "{ type = 'linear', out_features = 3 }"),
    (
        &[5],
        "{ type = 'linear', out_features = 3, name = 'in' }, { type = 'tanh' }, { type = 'linear', tie = 'in' }",
    ),
    (
        &[],
        "{ type = 'embedding', embedding_dim = 6, name = 'tokens' }, { type = 'tanh' }, { type = 'linear', tie = 'tokens', bias = false }",
    ),
    (
        &[4, 5],
        "{ type = 'linear', out_features = 3, parametrization = 'weight_norm' }",
    ),
    (
        &[5],
        "{ type = 'linear', out_features = 3, bias = false, parametrization = 'spectral_norm' }",
    ),
    (
        &[],
        "{ type = 'embedding', embedding_dim = 6, name = 'tokens', parametrization = 'weight_norm' }, { type = 'tanh' }, { type = 'linear', tie = 'tokens' }",
    ),
    (
        &[],
        "{ type = 'embedding', embedding_dim = 4, parametrization = 'spectral_norm' }",
    ),
    (
        &[2, 8, 9],
        "{ type = 'conv2d', out_channels = 4, kernel_size = [3, 2], groups = 2, parametrization = 'spectral_norm' }",
    ),
    (
        &[3, 9],
        "{ type = 'conv1d', out_channels = 3, kernel_size = 3, padding = 'same', parametrization = 'weight_norm', name = 'conv' }, { share = 'conv' }",
    ),
    (
        &[2, 6, 5, 4],
        "{ type = 'conv3d', out_channels = 4, kernel_size = 2, parametrization = 'weight_norm' }",
    ),
    (
        &[4, 9],
        "{ type = 'conv_transpose1d', out_channels = 6, kernel_size = 3, groups = 2, parametrization = 'weight_norm' }",
    ),
    (
        &[4, 5, 6],
        "{ type = 'conv_transpose2d', out_channels = 6, kernel_size = [3, 2], groups = 2, parametrization = 'spectral_norm' }",
    ),
    (
        &[2, 3, 4, 3],
        "{ type = 'conv_transpose3d', out_channels = 3, kernel_size = 2, parametrization = 'spectral_norm' }",
    ),
    (
        &[5, 6],
        "{ type = 'sequence', name = 'a', layers = [{ type = 'slice', end = 3 }, { type = 'linear', out_features = 4 }, { type = 'batch_norm' }] }, { type = 'slice', start = 2, inputs = ['input'], name = 'end' }, { share = 'a', inputs = ['end'], name = 'b' }, { type = 'subtract', inputs = ['a', 'b'], name = 'd' }, { share = 'a.linear_1', inputs = ['end'], name = 'e' }, { type = 'add', inputs = ['d', 'e'] }",
    ),
    (
        &[3, 9],
        "{ type = 'conv1d', out_channels = 3, kernel_size = 3, padding = 'same', name = 'conv' }, { share = 'conv', repeat = 2 }",
    ),
    (
        &[4, 5],
        "{ type = 'linear', out_features = 3, bias = false, initializer = { type = 'normal' } }",
    ),
    (
        &[3, 9],
        "{ type = 'conv1d', out_channels = 6, kernel_size = 3, stride = 2, padding = 1, dilation = 2, groups = 3 }",
    ),
    (
        &[3, 9],
        "{ type = 'conv1d', out_channels = 2, kernel_size = 4, padding = 'same', dilation = 2, bias = false }",
    ),
    (
        &[4, 9],
        "{ type = 'conv1d', out_channels = 2, kernel_size = 3, padding = 'causal', dilation = 2, stride = 2, groups = 2 }",
    ),
    (
        &[2, 8, 9],
        "{ type = 'conv2d', out_channels = 4, kernel_size = [3, 2], stride = [2, 1], padding = 'same', groups = 2, initializer = { type = 'orthogonal' } }",
    ),
    (
        &[2, 8, 9],
        "{ type = 'conv2d', out_channels = 4, kernel_size = 3, padding = [0, 2], dilation = [1, 2] }",
    ),
    (
        &[2, 6, 5, 4],
        "{ type = 'conv3d', out_channels = 4, kernel_size = [3, 1, 2], stride = [1, 2, 1], padding = 1, groups = 2 }",
    ),
    (
        &[2, 6, 5, 4],
        "{ type = 'conv3d', out_channels = 4, kernel_size = 3, padding = 'same', dilation = 2 }",
    ),
    (
        &[4, 9],
        "{ type = 'conv_transpose1d', out_channels = 6, kernel_size = 3, stride = 2, padding = 1, output_padding = 1, groups = 2 }",
    ),
    (
        &[4, 5, 6],
        "{ type = 'conv_transpose2d', out_channels = 3, kernel_size = [3, 2], stride = 2, dilation = 2, padding = [1, 0] }",
    ),
    (
        &[2, 3, 4, 3],
        "{ type = 'conv_transpose3d', out_channels = 3, kernel_size = 2, stride = [1, 2, 1], bias = false }",
    ),
    (&[6], "{ type = 'batch_norm' }"),
    (&[6, 4, 4], "{ type = 'batch_norm', momentum = 0.2 }"),
    (&[6, 4], "{ type = 'batch_norm', affine = false }"),
    (&[7, 3], "{ type = 'dlinoss', state_size = 4 }"),
    (
        &[8, 2],
        "{ type = 'dlinoss', state_size = 3, min_radius = 0.5, max_radius = 0.95, max_angle = 1.0 }",
    ),
    (&[4, 6], "{ type = 'layer_norm' }"),
    (&[4, 6], "{ type = 'layer_norm', bias = false }"),
    (&[6, 4], "{ type = 'group_norm', num_groups = 3 }"),
    (
        &[6, 4, 3],
        "{ type = 'group_norm', num_groups = 2, affine = false }",
    ),
    (&[6, 4, 3], "{ type = 'instance_norm' }"),
    (&[4, 6], "{ type = 'rms_norm' }"),
    (&[6, 4, 3], "{ type = 'local_response_norm', size = 3 }"),
    (&[6], "{ type = 'dropout' }"),
    (&[3, 4], "{ type = 'channel_dropout' }"),
    (&[3], "{ type = 'channel_dropout', probability = 0.2 }"),
    (&[2, 3, 4, 2], "{ type = 'channel_dropout' }"),
    (&[3, 4], "{ type = 'stochastic_depth' }"),
    (&[6], "{ type = 'gaussian_noise', std = 0.1 }"),
    (&[3, 8], "{ type = 'gaussian_sample' }"),
    (&[3, 8], "{ type = 'noise', size = 5 }"),
    (&[], "{ type = 'embedding', embedding_dim = 6 }"),
    (&[], "{ type = 'embedding' }"),
    (
        &[3, 9],
        "{ type = 'max_pool1d', kernel_size = 3, stride = 2, padding = 1 }",
    ),
    (
        &[3, 10],
        "{ type = 'max_pool1d', kernel_size = 3, dilation = 2, ceil_mode = true, stride = 2 }",
    ),
    (&[3, 9, 8], "{ type = 'max_pool2d', kernel_size = 2 }"),
    (
        &[3, 9, 8],
        "{ type = 'max_pool2d', kernel_size = [2, 3], stride = 2, padding = 'same' }",
    ),
    (
        &[3, 9, 7],
        "{ type = 'max_pool2d', kernel_size = 2, stride = 2, ceil_mode = true }",
    ),
    (
        &[3, 9],
        "{ type = 'avg_pool1d', kernel_size = 3, padding = 1, count_include_pad = false }",
    ),
    (
        &[3, 9, 8],
        "{ type = 'avg_pool2d', kernel_size = 3, stride = 2, ceil_mode = true, padding = 1 }",
    ),
    (
        &[3, 9, 8],
        "{ type = 'avg_pool2d', kernel_size = 2, padding = 'same', stride = 1 }",
    ),
    (
        &[2, 5, 9, 8],
        "{ type = 'max_pool3d', kernel_size = [2, 3, 2], stride = [1, 2, 2], padding = 1 }",
    ),
    (
        &[2, 6, 9, 8],
        "{ type = 'avg_pool3d', kernel_size = [2, 3, 2], stride = 2, padding = 1, ceil_mode = true }",
    ),
    (
        &[2, 6, 5, 4],
        "{ type = 'avg_pool3d', kernel_size = 3, padding = 1, count_include_pad = false }",
    ),
    (&[3, 9], "{ type = 'adaptive_avg_pool1d', output_size = 4 }"),
    (
        &[3, 9, 8],
        "{ type = 'adaptive_avg_pool2d', output_size = [2, 3] }",
    ),
    (
        &[3, 6, 6, 4],
        "{ type = 'adaptive_avg_pool3d', output_size = 2 }",
    ),
    (&[5, 4], "{ type = 'rnn', hidden_size = 3 }"),
    (
        &[5, 4],
        "{ type = 'rnn', hidden_size = 3, bidirectional = true, output = 'last', bias = false }",
    ),
    (
        &[5, 4],
        "{ type = 'gru', hidden_size = 3, output = 'last' }",
    ),
    (
        &[5, 4],
        "{ type = 'gru', hidden_size = 3, bidirectional = true }",
    ),
    (
        &[5, 4],
        "{ type = 'lstm', hidden_size = 3, initializer = { type = 'uniform' } }",
    ),
    (
        &[5, 4],
        "{ type = 'lstm', hidden_size = 3, bidirectional = true, output = 'last' }",
    ),
    (
        &[4, 5, 6],
        "{ type = 'unfold', kernel_size = [3, 2], stride = [1, 2], dilation = [2, 1], padding = [2, 1] }",
    ),
    (&[2, 5, 4], "{ type = 'unfold', kernel_size = 2 }"),
    (
        &[4, 5, 6],
        "{ type = 'conv2d', out_channels = 18, kernel_size = 3, padding = 1, name = 'offsets' }, { type = 'deform_conv2d', out_channels = 3, kernel_size = 3, padding = 1, inputs = ['input', 'offsets'] }",
    ),
    (
        &[4, 6, 5],
        "{ type = 'conv2d', out_channels = 16, kernel_size = 2, stride = 2, name = 'offsets' }, { type = 'conv2d', out_channels = 8, kernel_size = 2, stride = 2, name = 'weights', inputs = ['input'] }, { type = 'deform_conv2d', out_channels = 6, kernel_size = 2, stride = 2, groups = 2, bias = false, inputs = ['input', 'offsets', 'weights'] }",
    ),
    (
        &[5, 6],
        "{ type = 'multi_head_attention', num_heads = 3, causal = true }",
    ),
    (
        &[5, 6],
        "{ type = 'slice', end = 3, name = 'head' }, { type = 'multi_head_attention', num_heads = 2, inputs = ['head', 'input'] }",
    ),
    (
        &[5, 6],
        "{ type = 'multi_head_attention', num_heads = 4, num_kv_heads = 2, head_dim = 4, bias = false, rotary = true, theta = 500.0, qk_norm = true, window = 3, causal = true }",
    ),
    (
        &[5, 6],
        "{ type = 'multi_head_attention', num_heads = 3, num_kv_heads = 1, alibi = true, window = 2 }",
    ),
    (
        &[5, 6],
        "{ type = 'slice', end = 3, name = 'head' }, { type = 'multi_head_attention', num_heads = 2, num_kv_heads = 1, inputs = ['head', 'input'] }",
    ),
    (
        &[5, 6],
        "{ type = 'linear', out_features = 4, name = 'narrow' }, { type = 'multi_head_attention', num_heads = 2, inputs = ['narrow', 'input'] }",
    ),
    (
        &[5, 6],
        "{ type = 'linear', out_features = 4, name = 'narrow' }, { type = 'multi_head_attention', num_heads = 2, bias = false, inputs = ['narrow', 'input'] }",
    ),
    (
        &[5, 6],
        "{ type = 'linear', out_features = 4, name = 'narrow' }, { type = 'linear', out_features = 3, name = 'values', inputs = ['input'] }, { type = 'multi_head_attention', num_heads = 2, inputs = ['narrow', 'input', 'values'] }",
    ),
    (
        &[5, 6],
        "{ type = 'linear', out_features = 3, name = 'values' }, { type = 'multi_head_attention', num_heads = 2, causal = true, inputs = ['input', 'input', 'values'] }",
    ),
    (
        &[5, 6],
        "{ type = 'linear', out_features = 3, name = 'values' }, { type = 'multi_head_attention', num_heads = 2, num_kv_heads = 1, inputs = ['input', 'input', 'values'] }",
    ),
    (
        &[5, 6],
        "{ type = 'multi_head_attention', num_heads = 2, head_dim = 8, rotary = true, theta = 50.0, rotary_type = 'llama3', rotary_scaling = 8.0, rotary_length = 32 }",
    ),
    (
        &[5, 6],
        "{ type = 'multi_head_attention', num_heads = 2, head_dim = 8, rotary = true, rotary_type = 'dynamic', rotary_scaling = 2.0, rotary_length = 3 }",
    ),
    (
        &[5, 6],
        "{ type = 'multi_head_attention', num_heads = 2, head_dim = 4, rotary = true, rotary_type = 'longrope', rotary_scaling = 4.0, rotary_length = 3, rotary_short = [1.0, 1.5], rotary_long = [1.0, 3.0] }",
    ),
    (
        &[5, 6],
        "{ type = 'transformer_encoder', num_layers = 2, num_heads = 3, feedforward_size = 7, causal = true }",
    ),
    (
        &[5, 6],
        "{ type = 'slice', end = 3, name = 'head' }, { type = 'transformer_decoder', num_layers = 2, num_heads = 3, feedforward_size = 7, causal = true, inputs = ['input', 'head'], norm_first = true, activation = 'relu' }",
    ),
    (&[5, 6], "{ type = 'positional_encoding' }"),
    (&[5, 6], "{ type = 'position_embedding', max_length = 8 }"),
    (&[5, 6], "{ type = 'rotary_encoding' }"),
    (&[3, 4], "{ type = 'prelu', per_channel = true }"),
    (&[3, 4], "{ type = 'prelu' }"),
    (&[3, 4], "{ type = 'glu' }"),
    (
        &[3, 4],
        "{ type = 'swiglu', out_features = 5, bias = true }",
    ),
    (&[3, 4], "{ type = 'identity' }"),
    (&[3, 4, 2], "{ type = 'flatten' }"),
    (&[3, 4, 2], "{ type = 'flatten', start_axis = 1 }"),
    (&[3, 4, 2], "{ type = 'reshape', shape = [2, -1, 3, 1] }"),
    (&[3, 4, 2], "{ type = 'permute', axes = [2, 0, -2] }"),
    (&[3, 4], "{ type = 'unsqueeze', axis = -1 }"),
    (&[3, 1, 4], "{ type = 'squeeze', axis = 1 }"),
    (
        &[8, 4],
        "{ type = 'slice', axis = 0, start = -6, end = -1 }",
    ),
    (&[8, 4], "{ type = 'mean' }"),
    (&[8, 4], "{ type = 'max', axis = -1 }"),
    (&[8], "{ type = 'sum' }"),
    (
        &[3, 4],
        "{ type = 'interpolate1d', output_size = 9, mode = 'linear' }",
    ),
    (&[3, 4], "{ type = 'interpolate1d', scale = 1.6 }"),
    (
        &[3, 4, 5],
        "{ type = 'interpolate2d', scale = 1.5, mode = 'linear', align_corners = true }",
    ),
    (
        &[3, 4, 5],
        "{ type = 'interpolate2d', output_size = [8, 9], mode = 'cubic' }",
    ),
    (&[8, 3, 2], "{ type = 'pixel_shuffle', factor = 2 }"),
    (&[2, 6, 9], "{ type = 'pixel_unshuffle', factor = 3 }"),
    (
        &[2, 3, 4],
        "{ type = 'pad', padding = [[1, 0], [2, 3]], value = 0.5 }",
    ),
    (
        &[2, 3, 4],
        "{ type = 'pad', padding = [[1, 2], [3, 0]], mode = 'reflect' }",
    ),
    (
        &[2, 3, 4],
        "{ type = 'pad', padding = [[1, 5]], mode = 'replicate' }",
    ),
    (
        &[3, 4],
        "{ type = 'parameter', shape = [3, 4], name = 'p' }, { type = 'add', inputs = ['input', 'p'] }",
    ),
    (&[3, 4], "{ type = 'parameter', shape = [5] }"),
    (&[], "{ type = 'parameter', shape = [2, 3, 1, 2] }"),
    (&[3], "{ type = 'parameter', shape = [2, 3, 2], std = 0.0 }"),
    (
        &[3, 4],
        "{ type = 'constant', path = 'a.npy', shape = [3, 3], name = 'a' }, { type = 'matmul', inputs = ['a', 'input'] }",
    ),
    (
        &[3],
        "{ type = 'constant', path = 'a.npz', array = 'a', shape = [2, 3] }, { type = 'linear', out_features = 2 }",
    ),
    (
        &[3, 4],
        "{ type = 'mean', name = 'm' }, { type = 'unsqueeze', name = 'u' }, { type = 'subtract', inputs = ['u', 'input'] }",
    ),
    (
        &[3, 4],
        "{ type = 'exp', name = 'e' }, { type = 'divide', inputs = ['input', 'e'] }",
    ),
    (
        &[3, 4],
        "{ type = 'mean', name = 'm' }, { type = 'unsqueeze', name = 'u' }, { type = 'maximum', inputs = ['input', 'u'] }",
    ),
    (
        &[3, 4],
        "{ type = 'scale', factor = -2.0, offset = 0.25, name = 's' }, { type = 'minimum', inputs = ['input', 's'] }",
    ),
    (
        &[2, 3, 4],
        "{ type = 'slice', end = 1, name = 's' }, { type = 'permute', axes = [0, 2, 1], name = 't' }, { type = 'matmul', inputs = ['input', 't'] }",
    ),
    (
        &[3, 4],
        "{ type = 'tanh', name = 't' }, { type = 'einsum', equation = 'qd,kd->kq', inputs = ['input', 't'] }",
    ),
    (
        &[2, 3, 4],
        "{ type = 'parameter', shape = [4, 5], name = 'p' }, { type = 'einsum', equation = 'hab,bc->cha', inputs = ['input', 'p'] }",
    ),
    (
        &[2, 3, 4],
        "{ type = 'slice', end = 1, name = 's' }, { type = 'einsum', equation = 'abc,dec->ab', inputs = ['input', 's'] }",
    ),
    (&[2, 3, 4], "{ type = 'einsum', equation = 'abc->ca' }"),
    (&[2, 3, 4], "{ type = 'cumsum', axis = 1 }"),
    (&[2, 3, 4], "{ type = 'last', axis = 1 }"),
    (&[], "{ type = 'padding_mask' }"),
    (
        &[3, 4],
        "{ type = 'padding_mask', padding = -1.0, name = 'm' }, { type = 'sum', inputs = ['input'], mask = 'm' }",
    ),
    (
        &[4],
        "{ type = 'padding_mask', name = 'm' }, { type = 'max', inputs = ['input'], mask = 'm' }",
    ),
    (
        &[],
        "{ type = 'padding_mask', padding = 3, name = 'm' }, { type = 'embedding', embedding_dim = 6, inputs = ['input'] }, { type = 'multi_head_attention', num_heads = 3, mask = 'm' }, { type = 'mean', mask = 'm' }",
    ),
    (
        &[],
        "{ type = 'padding_mask', name = 'm' }, { type = 'embedding', embedding_dim = 6, inputs = ['input'] }, { type = 'multi_head_attention', num_heads = 3, num_kv_heads = 1, mask = 'm' }, { type = 'max', mask = 'm' }",
    ),
    (
        &[],
        "{ type = 'padding_mask', name = 'm' }, { type = 'slice', start = 2, name = 'later' }, { type = 'embedding', embedding_dim = 6, inputs = ['input'], name = 'e' }, { type = 'slice', start = 2 }, { type = 'multi_head_attention', num_heads = 2, inputs = ['e', 'previous'], mask = 'later' }, { type = 'last', mask = 'm' }",
    ),
    (
        &[],
        "{ type = 'padding_mask', name = 'm' }, { type = 'embedding', embedding_dim = 6, inputs = ['input'], name = 'e' }, { type = 'transformer_encoder', num_layers = 2, num_heads = 2, feedforward_size = 8, dropout = 0.0, causal = true, mask = 'm' }, { type = 'transformer_decoder', num_layers = 1, num_heads = 2, feedforward_size = 8, dropout = 0.0, inputs = ['previous', 'e'], mask = 'm', memory_mask = 'm' }, { type = 'sum', mask = 'm' }",
    ),
    (
        &[],
        "{ type = 'padding_mask', name = 'm' }, { type = 'embedding', embedding_dim = 4, inputs = ['input'] }, { type = 'rnn', hidden_size = 3, mask = 'm' }, { type = 'gru', hidden_size = 3, bidirectional = true, mask = 'm' }, { type = 'lstm', hidden_size = 3, bidirectional = true, output = 'last', mask = 'm' }",
    ),
    (&[5], "{ type = 'cumsum' }"),
    (
        &[3, 4],
        "{ type = 'relu', name = 'a' }, { type = 'add', inputs = ['a', 'input', 'a'] }",
    ),
    (
        &[3, 4],
        "{ type = 'mean', name = 'm' }, { type = 'unsqueeze', name = 'u' }, { type = 'multiply', inputs = ['input', 'u'] }",
    ),
    (
        &[3, 4],
        "{ type = 'tanh', name = 'a' }, { type = 'concat', axis = -1, inputs = ['a', 'input'] }",
    ),
    (
        &[5, 3],
        "{ type = 'sigmoid', name = 'a' }, { type = 'linear_scan', inputs = ['a', 'input'] }",
    ),
    (
        &[6, 2, 3],
        "{ type = 'tanh', name = 'a' }, { type = 'linear_scan', inputs = ['a', 'input'], reverse = true }",
    ),
    (&[5, 4], "{ type = 'fourier', axes = [0, 1] }"),
    (&[2, 3, 6], "{ type = 'fourier', part = 'imaginary' }"),
    (
        &[3, 5],
        "{ type = 'fourier', axes = [1, 0], part = 'power' }",
    ),
    (&[5, 3], "{ type = 'roll', shift = 2 }"),
    (&[2, 3, 4], "{ type = 'roll', shift = -9, axis = -1 }"),
    (&[3, 5], "{ type = 'top_k', k = 2 }"),
    (
        &[5],
        "{ type = 'top_k', k = 3, fill = -1e9 }, { type = 'softmax' }",
    ),
    (&[6], "{ type = 'affine_grid', output_size = [3, 4] }"),
    (
        &[2, 5, 6],
        "{ type = 'flatten' }, { type = 'linear', out_features = 6 }, { type = 'reshape', shape = [2, 3] }, { type = 'affine_grid', output_size = [4, 3], add_identity = true }, { type = 'grid_sample', inputs = ['input', 'previous'] }",
    ),
    (
        &[2, 5, 6],
        "{ type = 'flatten' }, { type = 'linear', out_features = 24 }, { type = 'reshape', shape = [3, 4, 2] }, { type = 'grid_sample', inputs = ['input', 'previous'], padding = 'border', align_corners = true }",
    ),
    (
        &[2, 5, 6],
        "{ type = 'conv2d', out_channels = 3, kernel_size = 1, name = 'image' }, { type = 'reshape', shape = [5, 6, 2], inputs = ['input'], name = 'grid' }, { type = 'grid_sample', inputs = ['image', 'grid'], mode = 'nearest' }",
    ),
    (
        &[1, 3, 3],
        "{ type = 'flatten' }, { type = 'linear', out_features = 6 }, { type = 'affine_grid', output_size = 3, align_corners = true }, { type = 'grid_sample', inputs = ['input', 'previous'], align_corners = true }",
    ),
];

/// The examples, in a stable order: at least one for each type of layer.
///
/// # Panics If one of them is invalid, which a test would have detected.
pub fn examples() -> Vec<Example> {
    let activations = LayerType::ALL.iter().filter_map(|(_, name, _)| {
        let layers = format!("{{ type = '{name}' }}");
        let document = Document::parse("example", &format!("layers = [{layers}]")).ok()?;
        let specs = expand(
            &document.root,
            Vec::new(),
            None,
            &NetworkInputs::default(),
            &mut Findings::default(),
        );
        let is_activation = matches!(specs.first()?.kind, LayerKind::Activation(_));
        is_activation.then_some((&[3, 4][..], layers))
    });
    let written = EXAMPLES.iter();
    let written = written.map(|(items, layers)| (*items, (*layers).to_owned()));
    let all = written.chain(activations);
    all.map(|(items, layers)| example(items, &layers)).collect()
}

/// The examples of the program's own types of layers.
///
/// # Errors
/// With the name of the type, if one is not valid.
pub fn own_examples() -> Result<Vec<Example>, Reason> {
    let parts = OwnLayer::installed().iter();
    let each = parts.flat_map(|part| part.examples.iter().map(move |example| (part, example)));
    each.map(|(part, (items, layers))| {
        let name = part.entry.name;
        let wrong = |message: String| {
            let example = format!("its example `{layers}` {message}");
            Reason(OwnLayer::broken(name, example))
        };
        let network = tried(&items_of(items), layers);
        let network = network.map_err(|e| wrong(format!("is not valid:\n{e}")))?;
        let example = Example {
            network,
            layers: (*layers).to_owned(),
        };
        if example.kind() == name {
            Ok(example)
        } else {
            Err(wrong(format!("ends with the type `{}`", example.kind())))
        }
    })
    .collect()
}

/// Layers over the nodes of a graph.
const GRAPH_EXAMPLES: &[&str] = &[
    "{ type = 'gcn', out_features = 3 }",
    "{ type = 'gcn', out_features = 3, bias = false, self_loops = false, normalize = false }",
    "{ type = 'sage', out_features = 3 }",
    "{ type = 'gat', out_features = 3, num_heads = 2 }",
    "{ type = 'gat', out_features = 3, num_heads = 2, concat = false, self_loops = false, negative_slope = 0.1 }",
    "{ type = 'gin', out_features = 3, epsilon = 0.1 }",
    "{ type = 'graph_pool' }",
    "{ type = 'graph_pool', operation = 'sum' }",
    "{ type = 'graph_pool', operation = 'max' }",
    "{ type = 'graph_pool', operation = 'attention' }",
    "{ type = 'gin', out_features = 3, hidden_features = 4, learn_epsilon = true }",
    "{ type = 'edge_conv', out_features = 3 }",
    "{ type = 'edge_conv', out_features = 3, hidden_features = 4, aggregation = 'mean' }",
    "{ type = 'edge_conv', out_features = 3, aggregation = 'sum' }",
    "{ type = 'gat', out_features = 3, num_heads = 2, edge_dim = 2 }",
    "{ type = 'gat', out_features = 3, self_loops = false, edge_dim = 2 }",
    "{ type = 'gin', out_features = 3, edge_dim = 2 }",
    "{ type = 'edge_conv', out_features = 3, edge_dim = 2 }",
    "{ type = 'edge_ends' }",
    "{ type = 'edge_ends', operation = 'sum' }",
    "{ type = 'edge_ends', operation = 'difference' }",
    "{ type = 'gcn', out_features = 4 }, { type = 'edge_ends', operation = 'concat', edge_dim = 2 }, { type = 'linear', out_features = 2 }",
    "{ type = 'sage', out_features = 4 }, { type = 'edge_ends', operation = 'dot' }",
];

/// The examples whose items are the nodes of a graph: 2 nodes of 5 numbers, and an edge in both directions.
///
/// # Panics If one of them is invalid, which a test would have detected.
pub fn graph_examples() -> Vec<Example> {
    let graph = GraphPlan {
        num_nodes: 2,
        num_edges: 2,
        num_graphs: None,
        largest_graph: None,
        drawn: None,
        edge_features: 0,
        pairs: None,
    };
    let items = |graph| Items {
        graph: Some(graph),
        ..Items::single(Shape::numbers(&[5]))
    };
    let each = GRAPH_EXAMPLES.iter();
    each.map(|layers| {
        let graph = GraphPlan {
            num_graphs: layers.contains("graph_pool").then_some(2),
            largest_graph: layers.contains("graph_pool").then_some(2),
            edge_features: if layers.contains("edge_dim") { 2 } else { 0 },
            pairs: layers.contains("edge_ends").then_some(PairsPlan {
                num_edges: 2,
                num_negatives: 0,
            }),
            ..graph
        };
        Example {
            network: planned(&items(graph), layers),
            layers: (*layers).to_owned(),
        }
    })
    .collect()
}

/// The network of some layers in the syntax of the file, over numbers of a shape or, if it is empty, over 6 tokens out
/// of 7.
///
/// # Panics
/// If a layer is wrong.
pub fn example(items: &[usize], layers: &str) -> Example {
    Example {
        network: network(items, layers),
        layers: layers.to_owned(),
    }
}

/// The network of some layers as an experiment file has them, over items of a shape.
///
/// # Panics
/// If they are not accepted.
pub fn network(items: &[usize], layers: &str) -> Network {
    planned(&items_of(items), layers)
}

/// Numbers of a shape, or 6 tokens for an empty one.
fn items_of(shape: &[usize]) -> Items {
    Items::single(match shape {
        [] => tokens(6),
        _ => Shape::numbers(shape),
    })
}

/// The same over so many tokens out of 7, of which 0 is padding.
///
/// # Panics
/// If they are not accepted.
pub fn of_tokens(length: usize, layers: &str) -> Network {
    planned(&Items::single(tokens(length)), layers)
}

fn tokens(length: usize) -> Shape {
    Shape {
        dims: vec![length],
        vocabulary: Some(7),
        padding: Some(0),
        documents: None,
    }
}

fn planned(items: &Items, layers: &str) -> Network {
    tried(items, layers).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// The planned network of some layers, or what is wrong with them.
fn tried(items: &Items, layers: &str) -> Result<Network, String> {
    let text = format!("layers = [{layers}]");
    let document = Document::parse("example", &text)
        .map_err(|(sources, wrong)| wrong.render(&sources, false))?;
    let mut findings = Findings::default();
    let layers = expand(
        &document.root,
        Vec::new(),
        None,
        &NetworkInputs::default(),
        &mut findings,
    );
    let messages = findings.diagnostics.render(&document.sources, false);
    if !messages.is_empty() {
        return Err(messages);
    }
    infer(&layers, items, &[]).map_err(|wrong| wrong.render(&document.sources, false))
}
