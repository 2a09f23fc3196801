"""Exports networks of torchvision and others with random weights to FOLDER, with inputs and outputs as JSON lines in
FOLDER/cases.jsonl: python torch_exports.py FOLDER"""

import json
import sys
import warnings
from pathlib import Path

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
folder = Path(sys.argv[1])
torch.manual_seed(0)


class Lstm(nn.Module):
    def __init__(self, bidirectional):
        super().__init__()
        self.lstm = nn.LSTM(5, 7, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Linear(14 if bidirectional else 7, 3)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


class Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(5, 7, batch_first=True)
        self.head = nn.Linear(7, 3)

    def forward(self, x):
        return self.head(self.gru(x)[0][:, -1])


class Cells(nn.Module):
    """A cell step by step from zeros, whose first product is of constants."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(5, 4), nn.Linear(4, 3)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], 4)
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        return self.head(state)


class Block(nn.Module):
    """A block of GPT-2, with the attention written out."""

    def __init__(self, width, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.ln1(x)).split(width, dim=2)
        q, k, v = [part.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for part in parts]
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        mask = torch.tril(torch.ones(length, length)).view(1, 1, length, length)
        shares = F.softmax(scores.masked_fill(mask == 0, float("-inf")), dim=-1)
        x = x + self.proj((shares @ v).transpose(1, 2).contiguous().view(batch, length, width))
        return x + self.out(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(50, 32), nn.Embedding(16, 32)
        self.h = nn.ModuleList([Block(32, 4) for _ in range(2)])
        self.ln_f, self.head = nn.LayerNorm(32), nn.Linear(32, 50, bias=False)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


class Taken(nn.Module):
    """Norms and functions that exporters take apart."""

    def __init__(self):
        super().__init__()
        self.weight, self.shift = nn.Parameter(torch.rand(8) + 0.5), nn.Parameter(torch.rand(8))
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        centered = x - x.mean(-1, keepdim=True)
        x = centered / torch.sqrt((centered**2).mean(-1, keepdim=True) + 1e-5) * self.weight + self.shift
        x = x * 0.5 * (1 + torch.erf(x / 2**0.5))
        x = self.linear(x)
        x = x * torch.rsqrt((x**2).mean(-1, keepdim=True) + 1e-6) * self.weight
        x = x * torch.sigmoid(x)
        x = x * F.relu6(x + 3) / 6
        return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x * x * x)))


class Places(nn.Module):
    """Every second place, places in another order, sums of products, and masks."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(12, 4, 3, padding=1), nn.Linear(8, 3)
        self.gate = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        corners = [x[..., i::2, j::2] for i in (0, 1) for j in (0, 1)]
        x = self.conv(torch.cat(corners, 1))[:, [2, 0, 3, 1]]
        x = torch.where(x > 0, x, 0.2 * x) + torch.flip(x, [3])
        x = torch.einsum("bchw,wk->bchk", x, self.gate)
        x = torch.einsum("bhck,bhdk->bck", x, torch.tril(x))
        return self.head(F.normalize(x, dim=2)) - torch.logsumexp(x, 2, keepdim=True)


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.inner = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, 2, 1)
        self.norm, self.up = nn.GroupNorm(2, 8), nn.Conv2d(12, 4, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.down(x))
        inner = F.silu(self.norm(self.inner(x)))
        inner = F.interpolate(inner, size=x.shape[2:], mode="bilinear", align_corners=False)
        return F.interpolate(self.up(torch.cat([x, inner], 1)), scale_factor=2, mode="nearest")


class Widened(nn.Module):
    """Single outputs of a layer that a constant broadcasts: they are no weights of the layer."""

    def __init__(self):
        super().__init__()
        self.one, self.map = nn.Linear(6, 1), nn.Conv2d(2, 1, 3)
        self.scales, self.offsets = nn.Parameter(torch.randn(8)), nn.Parameter(torch.randn(4, 1, 1))

    def forward(self, x):
        rows = F.relu(self.one(x[:, :, :, :6]) * self.scales).mean(-1)
        maps = F.relu(self.map(x) - self.offsets).mean((2, 3))
        return torch.cat([rows.flatten(1), maps], 1)


def images():
    return torch.randn(2, 3, 64, 64)


CASES = [
    ("resnet18", torchvision.models.resnet18(weights=None), images(), ["conv2d", "linear"]),
    ("mobilenet_v3", torchvision.models.mobilenet_v3_small(weights=None), images(), ["hard_swish"]),
    ("vit", torchvision.models.VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=10), torch.randn(2, 3, 32, 32), ["multi_head_attention", "gelu"]),
    ("lstm", Lstm(False), torch.randn(2, 6, 5), ["lstm"]),
    ("bilstm", Lstm(True), torch.randn(2, 6, 5), ["lstm"]),
    ("gru_last", Last(), torch.randn(2, 6, 5), ["gru"]),
    ("cells", Cells(), torch.randn(2, 3, 5), ["linear", "sigmoid"]),
    ("gpt", Gpt(), torch.randint(0, 50, (2, 12)), ["multi_head_attention", "embedding", "gelu_tanh"]),
    ("encoder", nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True), 2), torch.randn(2, 6, 16), ["multi_head_attention"]),
    ("places", Places(), torch.randn(2, 3, 16, 16), ["linear", "leaky_relu"]),
    ("widened", Widened(), torch.randn(2, 2, 5, 7), ["linear", "conv2d"]),
    ("unet", Unet(), torch.randn(2, 3, 16, 16), ["instance_norm", "interpolate2d"]),
    ("taken_apart", Taken(), torch.randn(2, 5, 8), ["layer_norm", "gelu", "rms_norm", "silu", "hard_swish", "gelu_tanh"]),
]

with open(folder / "cases.jsonl", "w") as lines:
    for name, module, x, layers in CASES:
        for parameter in module.buffers():
            if parameter.dtype.is_floating_point:
                parameter.copy_(torch.rand(parameter.shape) + 0.5)
        module.eval()
        with torch.no_grad():
            y = module(x)
        # The graph is made for one item of a batch, whose size stays open.
        torch.onnx.export(
            module, (x[:1],), str(folder / f"{name}.onnx"), dynamo=False, input_names=["input"],
            output_names=["output"], dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}},
        )
        described = [{"shape": list(t.shape), "values": [float(v) for v in t.flatten()]} for t in (x, y)]
        case = {"suite": "torch", "name": name, "file": f"{name}.onnx", "layers": layers, "operators": []}
        lines.write(json.dumps(case | {"inputs": [{"name": "input", **described[0]}], "outputs": [{"name": "output", **described[1]}]}) + "\n")
