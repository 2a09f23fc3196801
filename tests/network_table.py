"""The networks of the table in docs/network-table.md, in the order of their families: what they are, the items that they take,
the lines of TOML, and the name of the reference in `reference_networks.py`, if there is one. Without one, the PyTorch network
is what `runner export pytorch` writes: PyTorch's own layers.

Nothing in them is random, such as dropout, since both sides would draw other numbers.
"""

PRESETS = [
    ("MLP", "table", 'type = "mlp"\nhidden = [32, 16]', None),
    ("CNN", "gray", 'type = "cnn"\nchannels = [8, 16]\nhidden = [32]', None),
    ("ResNet", "image", 'type = "resnet"\nchannels = [8, 16]', None),
    ("MobileNet v2", "image64", 'type = "mobilenet_v2"\ndropout = 0.0', "mobilenet_v2"),
    ("DenseNet-121", "image64", 'type = "densenet"\ngrowth = 4', "densenet"),
    ("EfficientNet-B0", "image64", 'type = "efficientnet_b0"\ndropout = 0.0\nstochastic_depth = 0.0', "efficientnet_b0"),
    ("ConvNeXt-T", "image64", 'type = "convnext"\nchannels = 8\nstochastic_depth = 0.0', "convnext"),
    ("ViT", "image64", """type = "vit"
image_size = 64
d_model = 16
num_heads = 2
num_layers = 3
feedforward_size = 24""", "vit"),
    ("U-Net", "mask", 'type = "unet"\nchannels = 4', "unet"),
    ("FT-Transformer", "table5", """type = "ft_transformer"
features = 5
d_model = 16
num_heads = 2
feedforward_size = 12
attention_dropout = 0.0
dropout = 0.0""", "ft_transformer"),
    ("TCN", "series", 'type = "tcn"\nchannels = 6\nblocks = 3\nkernel_size = 3\ndropout = 0.0', "tcn"),
    ("D-LinOSS", "series", 'type = "dlinoss"\nd_model = 6\nstate_size = 5\nnum_layers = 2\ndropout = 0.0', "dlinoss"),
    ("InceptionTime", "series30", 'type = "inception_time"\nfilters = 4\nkernel_size = 12', "inception_time"),
    ("EEGNet", "eeg", 'type = "eegnet"\nchannels = 5\nkernel_size = 16\ndropout = 0.0', "eegnet"),
    ("LSTM", "series", 'type = "lstm"\nhidden_size = 16\nnum_layers = 2\nbidirectional = true', None),
    ("Transformer encoder", "tokens", 'type = "transformer_classifier"\nd_model = 16\nfeedforward_size = 32\ndropout = 0.0', None),
    ("Transformer decoder", "next", 'type = "transformer_lm"\nd_model = 16\nfeedforward_size = 32\ndropout = 0.0', None),
    ("BERT", "tokens", """type = "bert"
d_model = 16
num_layers = 2
num_heads = 2
feedforward_size = 32
max_length = 12
dropout = 0.0
attention_dropout = 0.0""", None),
    ("GPT-2", "next", """type = "gpt2"
d_model = 16
num_layers = 2
num_heads = 2
feedforward_size = 32
max_length = 12
dropout = 0.0""", None),
    ("LLaMA", "next", """type = "llama"
d_model = 16
num_layers = 2
num_heads = 4
num_kv_heads = 2
feedforward_size = 24""", None),
]

SHIPPED = [
    ("the guide of Burn", "gray28", "burn_guide_cnn"),
    ("residual network", "gray", "residual_cnn"),
    ("U-Net with one level", "mask_gray", "segmentation"),
    ("autoencoder", "code", "autoencoder"),
    ("LSTM of characters", "next", "char_lstm"),
    ("transformer of characters", "next", "char_transformer"),
    ("numbers, categories and a text", "flats", "flats"),
]

WRITTEN = [
    ("Wide and deep", "table", """layers = [
    { type = "linear", name = "wide", inputs = ["input"] },
    { type = "linear", out_features = 16, inputs = ["input"] },
    { type = "relu" },
    { type = "linear", out_features = 3, name = "deep" },
    { type = "add", inputs = ["wide", "deep"] },
]""".replace('name = "wide"', 'out_features = 3, name = "wide"')),
    ("Cross network", "table", """layers = [
    { type = "linear", out_features = 6, name = "first" },
    { type = "multiply", inputs = ["first", "input"] },
    { type = "add", inputs = ["previous", "input"], name = "crossed" },
    { type = "linear", out_features = 6 },
    { type = "multiply", inputs = ["previous", "input"] },
    { type = "add", inputs = ["previous", "crossed"] },
    { type = "linear" },
]"""),
    ("Highway network", "table", """layers = [
    { type = "linear", out_features = 12 },
    { type = "highway", repeat = 3 },
    { type = "linear" },
]

[model.blocks.highway]
layers = [
    { type = "linear", out_features = 12 },
    { type = "sigmoid", name = "gate" },
    { type = "linear", out_features = 12, inputs = ["input"] },
    { type = "tanh" },
    { type = "subtract", inputs = ["previous", "input"] },
    { type = "multiply", inputs = ["gate", "previous"] },
    { type = "add", inputs = ["previous", "input"] },
]"""),
    ("Mixture of experts", "table", """layers = [
    { type = "linear", out_features = 3 },
    { type = "softmax" },
    { type = "unsqueeze", axis = 0, name = "gates" },
    { type = "expert", name = "a", inputs = ["input"] },
    { type = "expert", name = "b", inputs = ["input"] },
    { type = "expert", name = "c", inputs = ["input"] },
    { type = "concat", inputs = ["a", "b", "c"], axis = 0, name = "experts" },
    { type = "matmul", inputs = ["gates", "experts"] },
    { type = "flatten" },
]

[model.blocks.expert]
layers = [
    { type = "linear", out_features = 8 },
    { type = "gelu" },
    { type = "linear", out_features = 3 },
    { type = "unsqueeze", axis = 0 },
]"""),
    ("Siamese network", "pair", """layers = [
    { type = "slice", end = 3, name = "left" },
    { type = "slice", start = 3, inputs = ["input"], name = "right" },
    { type = "sequence", name = "a", inputs = ["left"], layers = [
        { type = "linear", out_features = 8 },
        { type = "tanh" },
        { type = "linear", out_features = 4 },
    ] },
    { share = "a", name = "b", inputs = ["right"] },
    { type = "subtract", inputs = ["a", "b"] },
    { type = "abs" },
    { type = "linear" },
]"""),
    ("Tied autoencoder", "code6", """layers = [
    { type = "linear", name = "encoder", out_features = 3 },
    { type = "tanh" },
    { type = "linear", tie = "encoder" },
]"""),
    ("Deep sets", "series", """layers = [
    { type = "linear", out_features = 12 },
    { type = "relu" },
    { type = "linear", out_features = 8 },
    { type = "sum", axis = 0 },
    { type = "linear", out_features = 8 },
    { type = "relu" },
    { type = "linear" },
]"""),
    ("GRU in both directions", "series", """layers = [
    { type = "gru", hidden_size = 8, bidirectional = true },
    { type = "gru", hidden_size = 8, output = "last" },
    { type = "linear" },
]"""),
    ("Elman network", "series", """layers = [
    { type = "rnn", hidden_size = 12, output = "last" },
    { type = "linear" },
]"""),
    ("WaveNet", "series", """layers = [
    { type = "permute", axes = [1, 0] },
    { type = "conv1d", out_channels = 8, kernel_size = 1 },
    { type = "gated", dilation = "${pow(2, index)}", for_each = { at = [0, 1, 2] } },
    { type = "relu" },
    { type = "adaptive_avg_pool1d" },
    { type = "flatten" },
    { type = "linear" },
]

[model.blocks.gated]
parameters = { dilation = 1 }
layers = [
    { type = "conv1d", name = "filter", out_channels = 8, kernel_size = 2, dilation = "${dilation}", padding = "causal" },
    { type = "tanh", name = "filtered" },
    { type = "conv1d", inputs = ["input"], out_channels = 8, kernel_size = 2, dilation = "${dilation}", padding = "causal" },
    { type = "sigmoid" },
    { type = "multiply", inputs = ["filtered", "previous"] },
    { type = "conv1d", out_channels = 8, kernel_size = 1 },
    { type = "add", inputs = ["previous", "input"] },
]""".replace('{ type = "gated", dilation = "${pow(2, index)}", for_each = { at = [0, 1, 2] } },',
             '{ type = "gated" },\n    { type = "gated", dilation = 2 },\n    { type = "gated", dilation = 4 },')),
    ("Convolutions over tokens", "tokens", """layers = [
    { type = "embedding", embedding_dim = 8 },
    { type = "permute", axes = [1, 0], name = "words" },
    { type = "window", size = 2, name = "two" },
    { type = "window", size = 3, inputs = ["words"], name = "three" },
    { type = "window", size = 4, inputs = ["words"], name = "four" },
    { type = "concat", inputs = ["two", "three", "four"] },
    { type = "linear" },
]

[model.blocks.window]
parameters = { size = 2 }
layers = [
    { type = "conv1d", out_channels = 6, kernel_size = "${size}" },
    { type = "relu" },
    { type = "max", axis = 1 },
]"""),
    ("Tied language model", "next", """layers = [
    { type = "embedding", name = "words", embedding_dim = 12 },
    { type = "lstm", hidden_size = 12 },
    { type = "linear", tie = "words" },
]"""),
    ("Attention with options", "next", """layers = [
    { type = "embedding", embedding_dim = 16 },
    { type = "block", repeat = 2 },
    { type = "rms_norm" },
    { type = "linear", bias = false },
]

[model.blocks.block]
layers = [
    { type = "rms_norm" },
    { type = "multi_head_attention", num_heads = 4, num_kv_heads = 2, rotary = true, qk_norm = true, window = 5, causal = true, bias = false },
    { type = "add", inputs = ["previous", "input"], name = "attended" },
    { type = "rms_norm" },
    { type = "swiglu", out_features = 24, bias = false },
    { type = "linear", out_features = 16, bias = false },
    { type = "add", inputs = ["previous", "attended"] },
]"""),
    ("Sequence to sequence", "translation", """layers = [
    { type = "embedding", name = "source", inputs = ["first"], embedding_dim = 16 },
    { type = "transformer_encoder", name = "memory", num_layers = 1, num_heads = 2, feedforward_size = 24, dropout = 0.0 },
    { type = "embedding", name = "target", inputs = ["second"], embedding_dim = 16 },
    { type = "transformer_decoder", inputs = ["target", "memory"], num_layers = 1, num_heads = 2, feedforward_size = 24, dropout = 0.0, causal = true },
    { type = "mean", axis = 0 },
    { type = "linear" },
]"""),
    ("Class token", "image", """layers = [
    { type = "conv2d", out_channels = 16, kernel_size = 4, stride = 4 },
    { type = "flatten", start_axis = 1 },
    { type = "permute", axes = [1, 0], name = "patches" },
    { type = "parameter", name = "token", shape = [1, 16], std = 0.02 },
    { type = "concat", inputs = ["token", "patches"], axis = 0 },
    { type = "position_embedding", max_length = 17 },
    { type = "transformer_encoder", num_layers = 2, num_heads = 4, feedforward_size = 32, norm_first = true, dropout = 0.0, activation = "gelu" },
    { type = "slice", axis = 0, end = 1 },
    { type = "flatten" },
    { type = "layer_norm" },
    { type = "linear" },
]"""),
    ("MLP-Mixer", "image", """layers = [
    { type = "conv2d", out_channels = 12, kernel_size = 4, stride = 4 },
    { type = "flatten", start_axis = 1 },
    { type = "permute", axes = [1, 0] },
    { type = "mix", repeat = 2 },
    { type = "layer_norm" },
    { type = "mean", axis = 0 },
    { type = "linear" },
]

[model.blocks.mix]
layers = [
    { type = "layer_norm" },
    { type = "permute", axes = [1, 0] },
    { type = "linear", out_features = 16 },
    { type = "gelu" },
    { type = "linear", out_features = 16 },
    { type = "permute", axes = [1, 0] },
    { type = "add", inputs = ["previous", "input"], name = "mixed" },
    { type = "layer_norm" },
    { type = "linear", out_features = 24 },
    { type = "gelu" },
    { type = "linear", out_features = 12 },
    { type = "add", inputs = ["previous", "mixed"] },
]"""),
    ("Squeeze and excitation", "image", """layers = [
    { type = "conv2d", out_channels = 8, kernel_size = 3, padding = "same" },
    { type = "batch_norm" },
    { type = "relu", name = "wide" },
    { type = "adaptive_avg_pool2d" },
    { type = "conv2d", out_channels = 4, kernel_size = 1 },
    { type = "relu" },
    { type = "conv2d", out_channels = 8, kernel_size = 1 },
    { type = "sigmoid" },
    { type = "multiply", inputs = ["wide", "previous"] },
    { type = "adaptive_avg_pool2d" },
    { type = "flatten" },
    { type = "linear" },
]"""),
    ("ResNeXt", "image", """layers = [
    { type = "conv2d", out_channels = 16, kernel_size = 3, padding = 1, bias = false },
    { type = "batch_norm" },
    { type = "relu" },
    { type = "bottleneck", repeat = 2 },
    { type = "adaptive_avg_pool2d" },
    { type = "flatten" },
    { type = "linear" },
]

[model.blocks.bottleneck]
layers = [
    { type = "conv2d", out_channels = 8, kernel_size = 1, bias = false },
    { type = "batch_norm" },
    { type = "relu" },
    { type = "conv2d", out_channels = 8, kernel_size = 3, padding = 1, groups = 4, bias = false },
    { type = "batch_norm" },
    { type = "relu" },
    { type = "conv2d", out_channels = 16, kernel_size = 1, bias = false },
    { type = "batch_norm" },
    { type = "add", inputs = ["previous", "input"] },
    { type = "relu" },
]"""),
    ("Mamba", "series", """layers = [
    { type = "linear", out_features = 8 },
    { type = "mamba", repeat = 2 },
    { type = "rms_norm" },
    { type = "mean" },
    { type = "linear" },
]

[model.blocks.mamba]
parameters = { width = 8, inner = 16, states = 4, rank = 2 }
layers = [
    { type = "rms_norm" },
    { type = "linear", name = "both", out_features = "${2 * inner}", bias = false },
    { type = "slice", axis = 1, end = "${inner}" },
    { type = "permute", axes = [1, 0] },
    { type = "conv1d", out_channels = "${inner}", kernel_size = 4, groups = "${inner}", padding = "causal" },
    { type = "permute", axes = [1, 0] },
    { type = "silu", name = "x" },
    { type = "linear", name = "chosen", out_features = "${rank + 2 * states}", bias = false },
    { type = "slice", axis = 1, end = "${rank}" },
    { type = "linear", out_features = "${inner}" },
    { type = "softplus", name = "step" },
    { type = "slice", inputs = ["chosen"], axis = 1, start = "${rank}", end = "${rank + states}", name = "b" },
    { type = "slice", inputs = ["chosen"], axis = 1, start = "${rank + states}", name = "c" },
    { type = "parameter", shape = ["${inner}", "${states}"], std = 0.5 },
    { type = "exp" },
    { type = "scale", factor = -1.0, name = "a" },
    { type = "einsum", equation = "ld,dn->ldn", inputs = ["step", "a"] },
    { type = "exp", name = "factors" },
    { type = "multiply", inputs = ["step", "x"] },
    { type = "einsum", equation = "ld,ln->ldn", inputs = ["previous", "b"] },
    { type = "linear_scan", inputs = ["factors", "previous"] },
    { type = "einsum", equation = "ldn,ln->ld", inputs = ["previous", "c"], name = "seen" },
    { type = "parameter", shape = [1, "${inner}"], mean = 1.0, std = 0.0 },
    { type = "multiply", inputs = ["previous", "x"] },
    { type = "add", inputs = ["previous", "seen"], name = "y" },
    { type = "slice", inputs = ["both"], axis = 1, start = "${inner}" },
    { type = "silu" },
    { type = "multiply", inputs = ["previous", "y"] },
    { type = "linear", out_features = "${width}", bias = false },
    { type = "add", inputs = ["previous", "input"] },
]""", "mamba"),
    ("minGRU", "series", """layers = [
    { type = "min_gru", width = 12 },
    { type = "min_gru", width = 8 },
    { type = "last" },
    { type = "linear" },
]

[model.blocks.min_gru]
parameters = { width = 8 }
layers = [
    { type = "linear", out_features = "${width}" },
    { type = "sigmoid", name = "gate" },
    { type = "scale", factor = -1.0, offset = 1.0, name = "kept" },
    { type = "linear", out_features = "${width}", inputs = ["input"] },
    { type = "multiply", inputs = ["previous", "gate"] },
    { type = "linear_scan", inputs = ["kept", "previous"] },
]""", "min_gru"),
    ("FNet", "tokens", """layers = [
    { type = "embedding", embedding_dim = 16 },
    { type = "position_embedding", max_length = 12 },
    { type = "mix", repeat = 2 },
    { type = "mean" },
    { type = "linear" },
]

[model.blocks.mix]
layers = [
    { type = "fourier", axes = [0, 1] },
    { type = "add", inputs = ["previous", "input"] },
    { type = "layer_norm", name = "mixed" },
    { type = "linear", out_features = 32 },
    { type = "gelu" },
    { type = "linear", out_features = 16 },
    { type = "add", inputs = ["previous", "mixed"] },
    { type = "layer_norm" },
]"""),
    ("Sparse mixture of experts", "table", """layers = [
    { type = "linear", out_features = 4 },
    { type = "top_k", k = 2, fill = -1e9 },
    { type = "softmax" },
    { type = "unsqueeze", axis = 0, name = "gates" },
    { type = "expert", name = "a", inputs = ["input"] },
    { type = "expert", name = "b", inputs = ["input"] },
    { type = "expert", name = "c", inputs = ["input"] },
    { type = "expert", name = "d", inputs = ["input"] },
    { type = "concat", inputs = ["a", "b", "c", "d"], axis = 0, name = "experts" },
    { type = "matmul", inputs = ["gates", "experts"] },
    { type = "flatten" },
]

[model.blocks.expert]
layers = [
    { type = "linear", out_features = 8 },
    { type = "gelu" },
    { type = "linear", out_features = 3 },
    { type = "unsqueeze", axis = 0 },
]"""),
    ("Attentive table network", "table", """layers = [
    { type = "batch_norm", name = "numbers" },
    { type = "linear", out_features = 8 },
    { type = "relu", name = "seen" },
    { type = "linear", out_features = 6, bias = false },
    { type = "batch_norm" },
    { type = "sparsemax", name = "attention" },
    { type = "multiply", inputs = ["attention", "numbers"] },
    { type = "linear", out_features = 8 },
    { type = "relu" },
    { type = "add", inputs = ["previous", "seen"] },
    { type = "linear" },
]"""),
    ("Spatial transformer", "image", """layers = [
    { type = "conv2d", out_channels = 6, kernel_size = 5, stride = 2 },
    { type = "relu" },
    { type = "flatten" },
    { type = "linear", out_features = 6 },
    { type = "affine_grid", output_size = 12, add_identity = true },
    { type = "grid_sample", inputs = ["input", "previous"] },
    { type = "conv2d", out_channels = 8, kernel_size = 3 },
    { type = "relu" },
    { type = "adaptive_avg_pool2d" },
    { type = "flatten" },
    { type = "linear" },
]"""),
    ("Shifted windows", "image", """layers = [
    { type = "conv2d", out_channels = 12, kernel_size = 4, stride = 4 },
    { type = "permute", axes = [1, 2, 0] },
    { type = "windows", shift = 0 },
    { type = "windows", shift = 1 },
    { type = "mean", axis = 0 },
    { type = "mean", axis = 0 },
    { type = "linear" },
]

[model.blocks.windows]
parameters = { shift = 0 }
layers = [
    { type = "layer_norm" },
    { type = "roll", shift = "${-shift}", axis = 0 },
    { type = "roll", shift = "${-shift}", axis = 1 },
    { type = "reshape", shape = [2, 2, 2, 24] },
    { type = "permute", axes = [0, 2, 1, 3] },
    { type = "reshape", shape = [4, 4, 12], name = "windows" },
    { type = "linear", out_features = 12 },
    { type = "scale", factor = 0.408 },
    { type = "reshape", shape = [4, 4, 2, 6], name = "queries" },
    { type = "linear", out_features = 12, inputs = ["windows"] },
    { type = "reshape", shape = [4, 4, 2, 6], name = "keys" },
    { type = "linear", out_features = 12, inputs = ["windows"] },
    { type = "reshape", shape = [4, 4, 2, 6], name = "values" },
    { type = "einsum", equation = "wqhd,wkhd->whqk", inputs = ["queries", "keys"], name = "scores" },
    { type = "parameter", shape = [1, 2, 4, 4] },
    { type = "add", inputs = ["previous", "scores"] },
    { type = "softmax" },
    { type = "einsum", equation = "whqk,wkhd->wqhd", inputs = ["previous", "values"] },
    { type = "reshape", shape = [4, 4, 12] },
    { type = "linear", out_features = 12 },
    { type = "reshape", shape = [2, 2, 2, 24] },
    { type = "permute", axes = [0, 2, 1, 3] },
    { type = "reshape", shape = [4, 4, 12] },
    { type = "roll", shift = "${shift}", axis = 0 },
    { type = "roll", shift = "${shift}", axis = 1 },
    { type = "add", inputs = ["previous", "input"], name = "attended" },
    { type = "layer_norm" },
    { type = "linear", out_features = 24 },
    { type = "gelu" },
    { type = "linear", out_features = 12 },
    { type = "add", inputs = ["previous", "attended"] },
]"""),
    ("Super-resolution", "upscale", """layers = [
    { type = "conv2d", out_channels = 8, kernel_size = 3, padding = "same" },
    { type = "prelu" },
    { type = "conv2d", out_channels = 4, kernel_size = 3, padding = "same" },
    { type = "pixel_shuffle", factor = 2 },
]"""),
    ("Convolutional autoencoder", "code_image", """layers = [
    { type = "conv2d", out_channels = 8, kernel_size = 3, stride = 2, padding = 1 },
    { type = "group_norm", num_groups = 2 },
    { type = "relu" },
    { type = "conv_transpose2d", out_channels = 3, kernel_size = 2, stride = 2 },
]"""),
    ("Convolutions of volumes", "volume", """layers = [
    { type = "conv3d", out_channels = 4, kernel_size = 3, padding = 1 },
    { type = "instance_norm" },
    { type = "leaky_relu" },
    { type = "max_pool3d", kernel_size = 2 },
    { type = "flatten" },
    { type = "linear" },
]"""),
    ("Graph convolutions over a given adjacency", "graph", """layers = [
    { type = "linear", inputs = ["nodes"], out_features = 8, bias = false },
    { type = "matmul", inputs = ["edges", "previous"] },
    { type = "relu" },
    { type = "linear", out_features = 8, bias = false },
    { type = "matmul", inputs = ["edges", "previous"] },
    { type = "relu" },
    { type = "mean", axis = 0 },
    { type = "linear" },
]"""),
    ("Image beside numbers", "image_and_numbers", """layers = [
    { type = "conv2d", inputs = ["picture"], out_channels = 6, kernel_size = 3 },
    { type = "relu" },
    { type = "adaptive_avg_pool2d" },
    { type = "flatten", name = "seen" },
    { type = "linear", inputs = ["numbers"], out_features = 6 },
    { type = "relu", name = "known" },
    { type = "concat", inputs = ["seen", "known"] },
    { type = "linear" },
]"""),
    ("Bilinear attention by einsum", "series", """layers = [
    { type = "linear", name = "query", out_features = 8 },
    { type = "linear", name = "key", inputs = ["input"], out_features = 8 },
    { type = "einsum", inputs = ["query", "key"], equation = "qd,kd->qk" },
    { type = "softmax" },
    { type = "matmul", inputs = ["previous", "input"] },
    { type = "mean", axis = 0 },
    { type = "linear" },
]"""),
    ("Weight norm", "tokens", """layers = [
    { type = "embedding", embedding_dim = 6, parametrization = "weight_norm" },
    { type = "permute", axes = [1, 0] },
    { type = "conv1d", out_channels = 8, kernel_size = 3, groups = 2, padding = "causal", parametrization = "weight_norm" },
    { type = "relu" },
    { type = "conv_transpose1d", out_channels = 4, kernel_size = 3, groups = 2, parametrization = "weight_norm" },
    { type = "tanh" },
    { type = "flatten" },
    { type = "linear", parametrization = "weight_norm" },
]"""),
    ("Spectral norm", "image", """layers = [
    { type = "conv2d", out_channels = 6, kernel_size = 3, stride = 2, groups = 3, parametrization = "spectral_norm", name = "conv" },
    { type = "leaky_relu" },
    { type = "conv_transpose2d", out_channels = 4, kernel_size = 2, groups = 2, parametrization = "spectral_norm" },
    { type = "leaky_relu" },
    { type = "conv2d", out_channels = 4, kernel_size = 3, padding = "same", parametrization = "spectral_norm", name = "again" },
    { type = "leaky_relu" },
    { share = "again" },
    { type = "flatten" },
    { type = "linear", out_features = 8, bias = false, parametrization = "spectral_norm", name = "matrix" },
    { type = "linear", tie = "matrix" },
    { type = "linear", parametrization = "spectral_norm" },
]"""),
]
