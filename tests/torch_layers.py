"""Writes weights of one PyTorch module for each type of layer in every format that runner reads, with an input and
the module's output: python torch_layers.py FOLDER"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn.utils import parametrizations as norms

torch.manual_seed(1)
folder = Path(sys.argv[1])


def last(module, output):
    return output[0] if isinstance(output, tuple) else output


MASK = nn.Transformer.generate_square_subsequent_mask(6)


def run(module, x):
    if isinstance(module, nn.MultiheadAttention):
        memory = x if module.kdim == module.embed_dim else x.repeat(1, 1, module.kdim // module.embed_dim)
        return module(x, memory, memory, need_weights=False)[0]
    if isinstance(module, nn.TransformerDecoder):
        return module(x, x)
    return last(module, module(x))


class Swiglu(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear_inner = nn.Linear(8, 6)
        self.linear_outer = nn.Linear(8, 6)

    def forward(self, x):
        return nn.functional.silu(self.linear_inner(x)) * self.linear_outer(x)


def encoder(norm_first):
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=norm_first)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def decoder(norm_first):
    layer = nn.TransformerDecoderLayer(8, 2, 16, 0.0, "relu", batch_first=True, norm_first=norm_first)
    return nn.TransformerDecoder(layer, 2)


STACK = "num_layers = 2, num_heads = 2, feedforward_size = 16, dropout = 0.0"
CASES = [
    ("linear, out_features = 3", nn.Linear(8, 3), (5, 8)),
    ("linear, out_features = 3, bias = false", nn.Linear(8, 3, bias=False), (8,)),
    ("conv1d, out_channels = 6, kernel_size = 3, groups = 2", nn.Conv1d(4, 6, 3, groups=2), (4, 9)),
    ("conv2d, out_channels = 5, kernel_size = [3, 2], stride = 2, padding = 1", nn.Conv2d(3, 5, (3, 2), 2, 1), (3, 8, 9)),
    ("conv3d, out_channels = 4, kernel_size = 2", nn.Conv3d(2, 4, 2), (2, 4, 5, 3)),
    ("conv_transpose1d, out_channels = 6, kernel_size = 3, stride = 2, groups = 2", nn.ConvTranspose1d(4, 6, 3, 2, groups=2), (4, 5)),
    ("conv_transpose2d, out_channels = 3, kernel_size = 3, stride = 2, padding = 1", nn.ConvTranspose2d(4, 3, 3, 2, 1), (4, 5, 6)),
    ("conv_transpose3d, out_channels = 3, kernel_size = 2", nn.ConvTranspose3d(2, 3, 2), (2, 3, 4, 3)),
    ("linear, out_features = 3, parametrization = 'weight_norm'", norms.weight_norm(nn.Linear(8, 3)), (5, 8)),
    ("conv_transpose1d, out_channels = 6, kernel_size = 3, parametrization = 'weight_norm'", norms.weight_norm(nn.ConvTranspose1d(4, 6, 3)), (4, 5)),
    ("conv2d, out_channels = 5, kernel_size = 3, parametrization = 'spectral_norm'", norms.spectral_norm(nn.Conv2d(3, 5, 3)), (3, 8, 9)),
    ("batch_norm", nn.BatchNorm2d(6), (6, 4, 4)),
    ("layer_norm", nn.LayerNorm(8), (4, 8)),
    ("group_norm, num_groups = 3", nn.GroupNorm(3, 6), (6, 5)),
    ("instance_norm", nn.InstanceNorm2d(6, affine=True), (6, 4, 3)),
    ("rms_norm, epsilon = 1e-6", nn.RMSNorm(8, eps=1e-6), (4, 8)),
    ("prelu, per_channel = true", nn.PReLU(6), (6, 4)),
    ("rnn, hidden_size = 5", nn.RNN(8, 5, batch_first=True), (6, 8)),
    ("rnn, hidden_size = 5, bidirectional = true", nn.RNN(8, 5, batch_first=True, bidirectional=True), (6, 8)),
    ("gru, hidden_size = 5", nn.GRU(8, 5, batch_first=True), (6, 8)),
    ("gru, hidden_size = 5, bidirectional = true", nn.GRU(8, 5, batch_first=True, bidirectional=True), (6, 8)),
    ("lstm, hidden_size = 5", nn.LSTM(8, 5, batch_first=True), (6, 8)),
    ("lstm, hidden_size = 5, bidirectional = true", nn.LSTM(8, 5, batch_first=True, bidirectional=True), (6, 8)),
    ("multi_head_attention, num_heads = 2", nn.MultiheadAttention(8, 2, batch_first=True), (6, 8)),
    ("multi_head_attention, num_heads = 2, inputs = ['input', 'twice']", nn.MultiheadAttention(8, 2, kdim=16, vdim=16, batch_first=True), (6, 8)),
    (f"transformer_encoder, {STACK}", encoder(False), (6, 8)),
    (f"transformer_encoder, {STACK}, norm_first = true", encoder(True), (6, 8)),
    (f"transformer_decoder, {STACK}, activation = 'relu', inputs = ['input', 'input']", decoder(False), (6, 8)),
    (f"transformer_decoder, {STACK}, activation = 'relu', norm_first = true, inputs = ['input', 'input']", decoder(True), (6, 8)),
    ("swiglu, out_features = 6, bias = true", Swiglu(), (4, 8)),
]

listed = []
for at, (layer, module, shape) in enumerate(CASES):
    for parameter in module.state_dict().values():
        if parameter.dtype.is_floating_point:
            parameter.copy_(torch.randn(parameter.shape) * 0.4)
    for name, buffer in module.named_buffers():
        if name.endswith("running_var"):
            buffer.copy_(torch.rand(buffer.shape) + 0.5)
    module.eval()
    x = torch.randn(2, *shape)
    with torch.no_grad():
        y = run(module, x)
    state = {f"l.{name}": value.detach().clone() for name, value in module.state_dict().items()}
    floats = {name: value for name, value in state.items() if value.dtype.is_floating_point}
    torch.save(state, folder / f"{at}.pt")
    torch.save({"epoch": 3, "model": state}, folder / f"{at}.pth", _use_new_zipfile_serialization=False)
    save_file(state, folder / f"{at}.safetensors")
    np.savez(folder / f"{at}.npz", **{name: value.numpy() for name, value in floats.items()})
    lists = {name: value.tolist() for name, value in floats.items()}
    (folder / f"{at}.json").write_text(json.dumps({"state_dict": lists}))
    kind, _, rest = layer.partition(",")
    text = f"{{ name = 'l', type = '{kind}'{',' if rest else ''}{rest} }}"
    if "'twice'" in rest:
        text = f"{{ name = 'twice', type = 'concat', axis = 1, inputs = ['input', 'input'] }}, {text}"
    listed.append({"layer": text, "shape": shape, "x": x.flatten().tolist(), "y": y.flatten().tolist()})
(folder / "cases.json").write_text(json.dumps(listed))
