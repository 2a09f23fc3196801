"""Training steps of networks of many families by runner and by PyTorch: on the processor in f32 with 2 threads each, or
on a GPU.

    python3 benches/peers.py RUNNER [--rounds 5] [--epochs 3] [--steps 16] [--device cuda] [--precision bf16] [NETWORK...]

Needs torch and numpy in the Python that it is run with, and installs nothing. Each round measures both sides, which take
turns in going first: runner's time is that of a step in an epoch of `runner run`, with its metrics, events and
checkpoints, but without validation; PyTorch's that of a step of a loop that gathers a batch, computes the loss and its
gradients and updates the weights. The first epoch of each is left out. A row of the table is the median of the rounds'
ratios with the least and the largest one; ratios of networks that were interrupted by others are seen by their spread.
On a GPU, PyTorch uses CUDA, has the data there, and may multiply in TF32.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from torch import nn

THREADS = 2
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
LENGTH = 64


def layer(kind, **keys):
    return {"type": kind, **keys}


def conv(channels, kernel=3, **keys):
    return layer("conv2d", out_channels=channels, kernel_size=kernel, **({"padding": kernel // 2} | keys))


def normed(channels, kernel=3, activation="relu", **keys):
    return [conv(channels, kernel, bias=False, **keys), layer("batch_norm"), layer(activation)]


def inverted(inputs, outputs, name, before, stride=1):
    """A block of MobileNetV2 (Sandler et al., 2018), which widens 4 times."""
    wide = 4 * inputs
    block = [*normed(wide, 1, "relu6"), *normed(wide, 3, "relu6", groups=wide, stride=stride)]
    block += [conv(outputs, 1, bias=False), layer("batch_norm", name=name + "_body")]
    if stride == 1 and inputs == outputs:
        block.append(layer("add", name=name, inputs=[name + "_body", before]))
    else:
        block.append(layer("identity", name=name))
    return block


def dense(name, before, growth):
    """A layer of DenseNet (Huang et al., 2017)."""
    return [
        layer("batch_norm", inputs=[before]),
        layer("relu"),
        conv(growth, bias=False, name=name + "_new"),
        layer("concat", name=name, inputs=[before, name + "_new"]),
    ]


def branch(name, before, *layers):
    first, *rest = layers
    rest = [dict(item) for item in rest]
    made = [{**first, "inputs": [before]}, *rest]
    made[-1]["name"] = name
    return made


HEAD = [layer("adaptive_avg_pool2d"), layer("flatten"), layer("linear")]
LAST = [layer("linear")]


def mlp():
    return [layer("flatten"), layer("linear", out_features=128), layer("relu"), *LAST]


def cnn():
    return [
        conv(32), layer("relu"), conv(64), layer("relu"), layer("max_pool2d", kernel_size=2),
        layer("flatten"), layer("linear", out_features=128), layer("relu"), *LAST,
    ]


def lenet():
    pool = layer("avg_pool2d", kernel_size=2)
    return [
        conv(6, 5), layer("tanh"), pool, conv(16, 5, padding=0), layer("tanh"), pool,
        layer("flatten"), layer("linear", out_features=120), layer("tanh"),
        layer("linear", out_features=84), layer("tanh"), *LAST,
    ]


def resnet():
    layers = [*normed(32)]
    layers[-1]["name"] = before = "stem"
    for at in range(3):
        layers += [*normed(32), conv(32, bias=False), layer("batch_norm", name=f"body{at}")]
        layers += [layer("add", inputs=[f"body{at}", before]), layer("relu", name=f"out{at}")]
        before = f"out{at}"
    return layers + HEAD


def mobilenet():
    layers = normed(16, activation="relu6", stride=2)
    layers[-1]["name"] = "stem"
    layers += inverted(16, 16, "a", "stem") + inverted(16, 24, "b", "a", 2) + inverted(24, 24, "c", "b")
    return layers + HEAD


def densenet():
    layers = [conv(16, name="stem")]
    before = "stem"
    for at in range(4):
        layers += dense(f"dense{at}", before, 12)
        before = f"dense{at}"
    return layers + [layer("batch_norm"), layer("relu")] + HEAD


def inception():
    layers = [conv(32), layer("relu", name="stem")]
    before = "stem"
    for at in range(2):
        names = [f"{kind}{at}" for kind in "abc"]
        layers += branch(names[0], before, conv(16, 1), layer("relu"))
        layers += branch(names[1], before, conv(16, 1), layer("relu"), conv(32, 3), layer("relu"))
        layers += branch(names[2], before, conv(8, 1), layer("relu"), conv(16, 5), layer("relu"))
        before = f"joined{at}"
        layers.append(layer("concat", name=before, inputs=names))
    return layers + HEAD


def unet():
    """Classified by the mean over the map, so that it has the targets of the others."""
    up = layer("conv_transpose2d", out_channels=16, kernel_size=2, stride=2, name="up")
    return [
        conv(16), layer("relu"), conv(16), layer("relu", name="high"), layer("max_pool2d", kernel_size=2),
        conv(32), layer("relu"), conv(32), layer("relu"), up,
        layer("concat", inputs=["high", "up"]), conv(16), layer("relu"), *HEAD,
    ]


def vit():
    """Patches of 7x7 (Dosovitskiy et al., 2021), without a class token."""
    return [
        layer("conv2d", out_channels=64, kernel_size=7, stride=7), layer("flatten", start_axis=1),
        layer("permute", axes=[1, 0]), encoder(), layer("mean", axis=0), *LAST,
    ]


def strided():
    return [part for width in (32, 64, 128) for part in (conv(width, stride=2), layer("relu"))] + HEAD


def autoencoder():
    """Classified as the U-Net."""
    layers = [part for width in (16, 32) for part in (conv(width, stride=2), layer("relu"))]
    for width in (32, 16):
        up = layer("conv_transpose2d", out_channels=width, kernel_size=4, stride=2, padding=1)
        layers += [up, layer("relu")]
    return layers + HEAD


def volumes():
    """Convolutions of volumes, which the images are cut into."""
    three = {"kernel_size": 3, "padding": 1}
    return [
        layer("reshape", shape=[1, 4, 14, 14]), layer("conv3d", out_channels=16, **three), layer("batch_norm"),
        layer("relu"), layer("max_pool3d", kernel_size=2), layer("conv3d", out_channels=32, **three),
        layer("batch_norm"), layer("relu"), layer("adaptive_avg_pool3d"), layer("flatten"), *LAST,
    ]


def alexnet():
    """Blocks of AlexNet (Krizhevsky et al., 2012)."""
    block = [layer("relu"), layer("local_response_norm", size=5), layer("max_pool2d", kernel_size=2)]
    return [conv(32, 5), *block, conv(64, 5), *block, conv(64), layer("relu"), *HEAD]


def decoder():
    """Images made smaller and larger again, by interpolation."""
    layers = [part for width in (16, 32) for part in (conv(width, stride=2), layer("relu"))]
    for width in (32, 16):
        layers += [layer("interpolate2d", scale=2.0, mode="linear"), conv(width), layer("relu")]
    return layers + HEAD


def mixer():
    """Blocks of MLP-Mixer (Tolstikhin et al., 2021)."""
    layers = [conv(64, 4, stride=4, padding=0), layer("flatten", start_axis=1)]
    layers.append(layer("permute", axes=[1, 0], name="out0"))
    for at in range(2):
        between = layer("permute", axes=[1, 0])
        layers += [layer("layer_norm", inputs=[f"out{at}"]), between, layer("linear", out_features=128), layer("gelu")]
        layers += [layer("linear", out_features=49), {**between, "name": f"places{at}"}]
        layers += [layer("add", inputs=[f"places{at}", f"out{at}"], name=f"half{at}")]
        layers += [layer("layer_norm"), layer("linear", out_features=256), layer("gelu")]
        layers += [layer("linear", out_features=64, name=f"channels{at}")]
        layers += [layer("add", inputs=[f"channels{at}", f"half{at}"], name=f"out{at + 1}")]
    return layers + [layer("mean", axis=0), *LAST]


def convnext():
    """Blocks of ConvNeXt (Liu et al., 2022)."""
    layers = [conv(48, 4, stride=4, padding=0, name="out0")]
    for at in range(3):
        layers += [conv(48, 7, groups=48, inputs=[f"out{at}"]), layer("permute", axes=[1, 2, 0]), layer("layer_norm")]
        layers += [layer("linear", out_features=192), layer("gelu"), layer("linear", out_features=48)]
        layers += [layer("permute", axes=[2, 0, 1], name=f"body{at}")]
        layers += [layer("add", inputs=[f"body{at}", f"out{at}"], name=f"out{at + 1}")]
    return layers + HEAD


def wide_mlp():
    wide = [layer("linear", out_features=1024), layer("relu")]
    return [layer("flatten"), *wide, *wide, *LAST]


def encoder(layers=2, **keys):
    sizes = {"num_layers": layers, "num_heads": 4, "feedforward_size": 256, "dropout": 0.0}
    return layer("transformer_encoder", **(sizes | keys))


def language_model(*body):
    return [layer("embedding", embedding_dim=64), *body, *LAST]


def tcn():
    layers = []
    for dilation in [1, 2, 4, 8]:
        keys = {"out_channels": 64, "kernel_size": 3, "dilation": dilation, "padding": dilation}
        layers += [layer("conv1d", **keys), layer("relu")]
    return [*layers, layer("mean", axis=1), *LAST]


def crnn():
    return [
        conv(16), layer("relu"), layer("max_pool2d", kernel_size=2), conv(32), layer("relu"),
        layer("max_pool2d", kernel_size=2), layer("permute", axes=[2, 0, 1]), layer("flatten", start_axis=1),
        layer("lstm", hidden_size=64, output="last"), *LAST,
    ]


def gru_attention():
    return [
        layer("gru", hidden_size=64), layer("multi_head_attention", num_heads=4),
        layer("layer_norm"), layer("mean", axis=0), *LAST,
    ]


IMAGES, SERIES, TEXT = "images", "series", "text"
NETWORKS = {
    "MLP": (IMAGES, mlp()),
    "CNN": (IMAGES, cnn()),
    "LeNet-5": (IMAGES, lenet()),
    "residual network": (IMAGES, resnet()),
    "MobileNetV2 blocks": (IMAGES, mobilenet()),
    "DenseNet": (IMAGES, densenet()),
    "Inception": (IMAGES, inception()),
    "U-Net": (IMAGES, unet()),
    "vision transformer": (IMAGES, vit()),
    "CNN and LSTM": (IMAGES, crnn()),
    "TCN": (SERIES, tcn()),
    "RNN": (SERIES, [layer("permute", axes=[1, 0]), layer("rnn", hidden_size=128, output="last"), *LAST]),
    "GRU with attention": (SERIES, [layer("permute", axes=[1, 0]), *gru_attention()]),
    "bidirectional LSTM": (
        SERIES,
        [layer("permute", axes=[1, 0]), layer("lstm", hidden_size=64, bidirectional=True), layer("mean", axis=0), *LAST],
    ),
    "LSTM language model": (TEXT, language_model(layer("lstm", hidden_size=128))),
    "GRU language model": (TEXT, language_model(layer("gru", hidden_size=128))),
    "transformer language model": (TEXT, language_model(encoder(causal=True, norm_first=True))),
    "group norm and GELU": (
        IMAGES,
        [conv(32), layer("group_norm", num_groups=4), layer("gelu"), conv(32), layer("group_norm", num_groups=4),
         layer("gelu"), *HEAD],
    ),
    "strided CNN": (IMAGES, strided()),
    "autoencoder": (IMAGES, autoencoder()),
    "MLP-Mixer": (IMAGES, mixer()),
    "ConvNeXt blocks": (IMAGES, convnext()),
    "wide MLP": (IMAGES, wide_mlp()),
    "CNN of volumes": (IMAGES, volumes()),
    "AlexNet blocks": (IMAGES, alexnet()),
    "interpolating decoder": (IMAGES, decoder()),
}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
BATCH = {IMAGES: 64, SERIES: 64, TEXT: 32}
CLASSES = 10


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def write_data(folder, steps):
    """Data of each kind that both sides read, a tenth of it for validation."""
    random = numpy.random.default_rng(1)
    for kind, shape in [(IMAGES, (1, 28, 28)), (SERIES, (8, 96))]:
        num = BATCH[kind] * steps * 10 // 9 + 1
        numpy.save(folder / f"{kind}_x.npy", random.standard_normal((num, *shape), dtype=numpy.float32))
        numpy.save(folder / f"{kind}_y.npy", random.integers(0, CLASSES, num))
    num = (BATCH[TEXT] * steps * 10 // 9 + 2) * LENGTH
    (folder / "text.txt").write_text("".join(random.choice(list(LETTERS), num)))


def spec(kind, layers, epochs, backend):
    data = {
        TEXT: f'type = "text"\npath = "text.txt"\ntokens = {{ tokenizer = "char", length = {LENGTH}, stride = {LENGTH} }}',
    }.get(kind, f'type = "npy"\npath = "{kind}_x.npy"\ntarget_path = "{kind}_y.npy"\nscale = "none"')
    order = ', order = "time"' if kind == TEXT else ""
    listed = ",\n".join("    " + toml(item) for item in layers)
    return (
        f"[data]\n{data}\nsplit = {{ valid = 0.1{order} }}\n[model]\nlayers = [\n{listed},\n]\n"
        f'[optimizer]\ntype = "adam"\nlearning_rate = 1e-3\n'
        f"[train]\nepochs = {epochs}\nbatch_size = {BATCH[kind]}\n"
        f"[backend]\n{backend}\n"
    )


def runner_step(arguments, folder, kind, layers, backend):
    """Seconds of a step by runner: of the median epoch after the first."""
    path = folder / "peer.toml"
    path.write_text(spec(kind, layers, arguments.epochs + 1, backend))
    environment = os.environ | {"RAYON_NUM_THREADS": str(THREADS)}
    command = [os.path.abspath(arguments.runner), "run", path, "--jobs", "1"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    events = list((folder / "results/peer/runs").glob("*/events.jsonl"))
    if done.returncode or not events:
        raise SystemExit(f"runner does not train it:\n{done.stdout}{done.stderr}\n{path.read_text()}")
    times, last = [], 0
    for line in events[0].read_text().splitlines():
        event = json.loads(line)
        found = event.get("epoch_finished") or (event if event.get("event") == "epoch_finished" else None)
        if found:
            times.append(found["train_secs"] / (found["step"] - last))
            last = found["step"]
    subprocess.run(["rm", "-rf", folder / "results"], check=True)
    return statistics.median(times[1:])


class Recurrent(nn.Module):
    def __init__(self, module, output):
        super().__init__()
        self.module, self.output = module, output

    def forward(self, x):
        states = self.module(x)[0]
        return states[:, -1] if self.output == "last" else states


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.module = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x):
        return self.module(x, x, x, need_weights=False)[0]


class Encoder(nn.Module):
    def __init__(self, width, keys):
        super().__init__()
        norm_first = keys.get("norm_first", False)
        one = nn.TransformerEncoderLayer(
            width, keys["num_heads"], keys["feedforward_size"], 0.0, "gelu", batch_first=True, norm_first=norm_first
        )
        self.module = nn.TransformerEncoder(one, keys["num_layers"], enable_nested_tensor=False)
        self.causal = keys.get("causal", False)

    def forward(self, x):
        if not self.causal:
            return self.module(x)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.module(x, mask=mask, is_causal=True)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


FUNCTIONS = {
    "relu": torch.relu, "tanh": torch.tanh, "relu6": nn.functional.relu6, "gelu": nn.functional.gelu,
    "identity": lambda x: x, "add": lambda a, b: a + b,
}


def module(keys, x, outputs):
    """PyTorch's module of a layer, for its first input."""
    kind, channels = keys["type"], x.shape[1]
    if kind in FUNCTIONS:
        return Function(FUNCTIONS[kind])
    if kind in ("conv1d", "conv2d", "conv3d"):
        made = {"conv1d": nn.Conv1d, "conv2d": nn.Conv2d, "conv3d": nn.Conv3d}[kind]
        rest = {key: keys[key] for key in ("stride", "padding", "dilation", "groups", "bias") if key in keys}
        return made(channels, keys["out_channels"], keys["kernel_size"], **rest)
    if kind == "conv_transpose2d":
        sizes = [keys["kernel_size"], keys["stride"], keys.get("padding", 0)]
        return nn.ConvTranspose2d(channels, keys["out_channels"], *sizes)
    if kind == "linear":
        return nn.Linear(x.shape[-1], keys.get("out_features", outputs))
    if kind in ("rnn", "gru", "lstm"):
        made = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[kind]
        made = made(x.shape[-1], keys["hidden_size"], batch_first=True, bidirectional=keys.get("bidirectional", False))
        return Recurrent(made, keys.get("output"))
    if kind == "concat":
        return Function(lambda *inputs: torch.cat(inputs, 1))
    if kind == "mean":
        return Function(lambda x: x.mean(1 + keys["axis"]))
    if kind == "permute":
        return Function(lambda x: x.permute(0, *(1 + axis for axis in keys["axes"])))
    if kind == "reshape":
        return Function(lambda x: x.reshape(len(x), *keys["shape"]))
    if kind == "interpolate2d":
        return nn.Upsample(scale_factor=keys["scale"], mode="bilinear")
    return {
        "batch_norm": lambda: (nn.BatchNorm3d if x.dim() == 5 else nn.BatchNorm2d)(channels),
        "local_response_norm": lambda: nn.LocalResponseNorm(keys["size"]),
        "max_pool3d": lambda: nn.MaxPool3d(keys["kernel_size"]),
        "adaptive_avg_pool3d": lambda: nn.AdaptiveAvgPool3d(1),
        "group_norm": lambda: nn.GroupNorm(keys["num_groups"], channels),
        "layer_norm": lambda: nn.LayerNorm(x.shape[-1]),
        "max_pool2d": lambda: nn.MaxPool2d(keys["kernel_size"]),
        "avg_pool2d": lambda: nn.AvgPool2d(keys["kernel_size"]),
        "adaptive_avg_pool2d": lambda: nn.AdaptiveAvgPool2d(1),
        "flatten": lambda: nn.Flatten(1 + keys.get("start_axis", 0)),
        "embedding": lambda: nn.Embedding(len(LETTERS), keys["embedding_dim"]),
        "multi_head_attention": lambda: Attention(x.shape[-1], keys["num_heads"]),
        "transformer_encoder": lambda: Encoder(x.shape[-1], keys),
    }[kind]()


class Network(nn.Module):
    """The same layers by PyTorch, made when the first batch passes."""

    def __init__(self, layers, outputs):
        super().__init__()
        self.layers, self.outputs, self.made = layers, outputs, nn.ModuleList()

    def forward(self, x):
        named = {}
        for at, keys in enumerate(self.layers):
            inputs = [named[name] for name in keys["inputs"]] if "inputs" in keys else [x]
            if at == len(self.made):
                self.made.append(module(keys, inputs[0], self.outputs))
            x = self.made[at](*inputs)
            if "name" in keys:
                named[keys["name"]] = x
        return x


def torch_data(folder, kind):
    if kind != TEXT:
        x, y = (torch.from_numpy(numpy.load(folder / f"{kind}_{part}.npy")) for part in "xy")
        return x, y
    text = (folder / "text.txt").read_text()
    ids = torch.tensor([LETTERS.index(letter) for letter in text])
    windows = (len(ids) - 1) // LENGTH
    x, y = (ids[at:][: windows * LENGTH].reshape(windows, LENGTH) for at in (0, 1))
    return x, y


class Peer:
    """PyTorch's side of a network, which trains on over the rounds."""

    def __init__(self, arguments, folder, kind, layers):
        torch.manual_seed(1)
        self.steps, self.is_gpu = arguments.steps, arguments.device != "flex"
        device, dtype = "cuda" if self.is_gpu else "cpu", DTYPES[arguments.precision]
        self.x, self.y = (part.to(device) for part in torch_data(folder, kind))
        self.x = self.x.to(dtype) if self.x.is_floating_point() else self.x
        self.batch = BATCH[kind]
        torch.set_default_device(device)
        torch.set_default_dtype(dtype)
        self.network = Network(layers, len(LETTERS) if kind == TEXT else CLASSES)
        self.network(self.x[:2])
        self.optimizer = torch.optim.Adam(self.network.parameters(), 1e-3)

    def now(self):
        if self.is_gpu:
            torch.cuda.synchronize()
        return time.perf_counter()

    def epoch(self):
        order = torch.randperm(len(self.x))[: self.steps * self.batch]
        started = self.now()
        for places in order.split(self.batch):
            scores = self.network(self.x[places])
            loss = nn.functional.cross_entropy(scores.flatten(0, -2), self.y[places].flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return (self.now() - started) / self.steps

    def step(self, epochs):
        return statistics.median([self.epoch() for _ in range(epochs + 1)][1:])


def measured(arguments, folder, name):
    kind, layers = NETWORKS[name]
    peer = Peer(arguments, folder, kind, layers)
    backend = f'device = "{arguments.device}"\nprecision = "{arguments.precision}"'
    ours, theirs = [], []
    for number in range(arguments.rounds):
        sides = [
            lambda: ours.append(runner_step(arguments, folder, kind, layers, backend)),
            lambda: theirs.append(peer.step(arguments.epochs)),
        ]
        for side in sides if number % 2 == 0 else reversed(sides):
            side()
    return ours, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runner")
    parser.add_argument("networks", nargs="*", help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=16, help="steps of an epoch")
    parser.add_argument("--device", default="flex", help="of runner; others than flex are compared with PyTorch's CUDA")
    parser.add_argument("--precision", choices=DTYPES, default="f32")
    arguments = parser.parse_intermixed_args()
    unknown = [name for name in arguments.networks if name not in NETWORKS]
    if unknown:
        parser.error(f"unknown network {unknown[0]!r}")
    torch.set_num_threads(THREADS)
    if arguments.device != "flex":
        torch.set_float32_matmul_precision("high")
    loads, ratios = [], []
    print("| network | runner, ms a step | PyTorch, ms | ratio | of rounds |\n| --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        write_data(folder, arguments.steps)
        for name in arguments.networks or NETWORKS:
            ours, theirs = measured(arguments, folder, name)
            each = sorted(a / b for a, b in zip(ours, theirs))
            ratio = statistics.median(each)
            ratios.append(ratio)
            loads.append(os.getloadavg()[0])
            a, b = (1000 * statistics.median(times) for times in (ours, theirs))
            print(f"| {name} | {a:.2f} | {b:.2f} | {ratio:.2f} | {each[0]:.2f} to {each[-1]:.2f} |", flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    given = " ".join(part for part in sys.argv[2:] if part not in NETWORKS)
    where = f"{THREADS} threads each on {os.cpu_count()} processors, at a load of {min(loads):.1f} to {max(loads):.1f}"
    if arguments.device != "flex":
        where = f"{arguments.device} in {arguments.precision} and PyTorch on CUDA, {torch.cuda.get_device_name()}"
    print(
        f"\nGeometric mean {mean:.2f}, largest {max(ratios):.2f}; medians of {arguments.rounds} rounds with PyTorch "
        f"{torch.__version__}, {where}. Repeat with `python3 benches/peers.py RUNNER {given}`."
    )


if __name__ == "__main__":
    sys.exit(main())
