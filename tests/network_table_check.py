"""Trains networks in runner and in PyTorch from equal weights on equal batches: python3 tests/network_table_check.py
--runner PROGRAM [--only NAME ...] [--write docs/network-table.md]

For each network of `network_table.py`: an experiment file with generated items, a short run that `runner export pytorch`
turns into `model.py` and weights, 20 steps of SGD with momentum from these weights in runner, and the same in PyTorch, in 64
and in 32 bits. The table has the largest relative difference of a loss, and how far PyTorch in 32 bits is from PyTorch in 64.
Fails if a difference is larger than its bound, and in 32 bits also several times PyTorch's own distance.
"""

import argparse
import importlib.util
import re
import subprocess
import tempfile
import tomllib
from pathlib import Path

import network_table
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parent.parent
STEPS, RATE, MOMENTUM, NUM_TRAIN = 20, 0.01, 0.9, 12
BOUNDS = {"f64": 1e-10, "f32": 1e-5}
# These networks amplify rounding: over 20 steps of the usual rate, a change in the last bit grows a hundred million times.
SLOW = {"MobileNet v2": 1e-3, "DenseNet-121": 1e-3}
# A difference in 32 bits may be this many times PyTorch's own distance from 64 bits.
FACTOR = 10
DTYPES = {"f64": torch.float64, "f32": torch.float32}


def numbers(*shape):
    return lambda draw: draw.normal(size=shape).astype(np.float32)


def tokens(length, size=9):
    return lambda draw: draw.integers(0, size, length).astype(np.int64)


def classes(num):
    return lambda draw: np.int64(draw.integers(0, num))


def masks(num, *shape):
    return lambda draw: draw.integers(0, num, shape).astype(np.int64)


# The arrays of an item, what `[data]` says about them, and its target.
ITEMS = {
    "table": ({"x": numbers(6)}, classes(3)),
    "pair": ({"x": numbers(6)}, classes(2)),
    "table5": ({"x": numbers(5)}, classes(4)),
    "gray": ({"x": numbers(1, 8, 8)}, classes(10)),
    "gray28": ({"x": numbers(1, 28, 28)}, classes(10)),
    "image": ({"x": numbers(3, 16, 16)}, classes(5)),
    "image64": ({"x": numbers(3, 64, 64)}, classes(10)),
    "mask": ({"x": numbers(3, 32, 32)}, masks(5, 32, 32)),
    "mask_gray": ({"x": numbers(1, 16, 16)}, masks(4, 16, 16)),
    "series": ({"x": numbers(20, 2)}, classes(4)),
    "series30": ({"x": numbers(30, 2)}, classes(4)),
    "eeg": ({"x": numbers(5, 96)}, classes(4)),
    "volume": ({"x": numbers(2, 6, 6, 6)}, classes(3)),
    "tokens": ({"x": tokens(12)}, classes(3)),
    "next": ({"x": tokens(12)}, tokens(12)),
    "code": ({"x": numbers(1, 8, 8)}, None),
    "code6": ({"x": numbers(6)}, None),
    "code_image": ({"x": numbers(3, 8, 8)}, None),
    "upscale": ({"x": numbers(3, 6, 6)}, numbers(1, 12, 12)),
    "translation": ({"first": tokens(7), "second": tokens(5)}, classes(3)),
    "graph": ({"nodes": numbers(5, 4), "edges": numbers(5, 5)}, classes(3)),
    "image_and_numbers": ({"picture": numbers(2, 8, 8), "numbers": numbers(4)}, classes(3)),
    "flats": ({"measures": numbers(2), "place": tokens(2, 4), "text": tokens(12)}, numbers()),
}


def write_items(place, kind):
    """train.npz and valid.npz; the arrays of the train split."""
    inputs, target = ITEMS[kind]
    draw = np.random.default_rng(7)
    arrays = {}
    for name, num in (("train", NUM_TRAIN), ("valid", 4)):
        items = {key: np.stack([make(draw) for _ in range(num)]) for key, make in inputs.items()}
        if target is not None:
            items["target"] = np.stack([target(draw) for _ in range(num)])
        if name == "train":
            arrays = items
            # Each token and class occurs.
            for values in items.values():
                if values.dtype == np.int64:
                    flat = values.reshape(-1)
                    flat[: flat.max() + 1] = range(flat.max() + 1)
        np.savez(place / f"{name}.npz", **items)
    return arrays


def spec(kind, model, arrays, rate, precision=None):
    """The text of an experiment file."""
    names = [name for name in arrays if name != "target"]
    whole = [name for name in arrays if arrays[name].dtype == np.int64 and arrays[name].ndim == 2]
    columns = ", ".join(f'{{ name = "{name}", type = "category" }}' for name in whole)
    lines = ["[data]", 'type = "npz"', 'path = "train.npz"', 'valid_path = "valid.npz"', 'scale = "none"']
    lines += ['target = "target"'] if "target" in arrays else []
    lines += [f"columns = [{columns}]"] if whole else []
    if len(names) > 1:
        inputs = ", ".join(f'{{ name = "{name}", columns = ["{name}"] }}' for name in names)
        lines.append(f"inputs = [{inputs}]")
    lines += ["split = { test = 0.0 }", "[optimizer]", 'type = "sgd"', f"learning_rate = {rate}", f"momentum = {MOMENTUM}"]
    lines += ["[train]", f"epochs = {STEPS if precision else 1}", f"batch_size = {NUM_TRAIN}"]
    if "target" not in arrays:
        lines += ["[task]", 'type = "autoencoding"']
    if precision:
        lines += ["[init]", 'from = "module/weights.safetensors"', "[backend]", f'precision = "{precision}"']
    return "\n".join(lines) + f"\n[model]\n{model}\n"


def shipped_model(name):
    """The lines of a shipped experiment's network, without what is random."""
    text = (ROOT / "experiments" / f"{name}.toml").read_text()
    text = re.sub(r'type = "dropout"(\n|, )probability = [\d.]+', 'type = "identity"', text)
    text = re.sub(r"dropout = [\d.]+", "dropout = 0.0", text)
    kept, is_model = [], False
    for line in text.splitlines():
        if header := re.match(r"\[+([\w.]+)\]+", line):
            is_model = header[1].split(".")[0] == "model"
        if is_model and line.strip() and not line.startswith("#"):
            kept.append(line)
    return "\n".join(kept[1:] if kept[0] == "[model]" else kept), kept[0] == "[model]"


def call(runner, place, *arguments):
    done = subprocess.run([runner, *arguments], cwd=place, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"runner {' '.join(arguments)} in {place}:\n{done.stderr}")


def load(folder):
    spec = importlib.util.spec_from_file_location(folder.parent.name, folder / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load()


def reference(name, exported):
    """A network of `reference_networks.py` with the weights of an exported one."""
    import reference_networks

    network = reference_networks.NETWORKS[name]()
    names = reference_networks.tensors(network)
    values = reference_networks.tensors(exported)
    assert len(names) == len(values), (name, len(names), len(values))
    network.load_state_dict(
        {key: value.reshape(names[key].shape) for key, value in zip(names, values.values())}, strict=False)
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif type(module).__name__ == "StochasticDepth":
            module.p = 0.0
    return network


def losses_of_torch(network, arrays, rate, dtype):
    torch.set_default_dtype(dtype)
    network = network.to(dtype).train()
    as_tensor = lambda values: torch.tensor(values, dtype=None if values.dtype == np.int64 else dtype)  # noqa: E731
    inputs = [as_tensor(values) for name, values in arrays.items() if name != "target"]
    target = as_tensor(arrays["target"]) if "target" in arrays else inputs[0]
    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=MOMENTUM)
    losses = []
    for _ in range(STEPS):
        outputs = network(*inputs)
        if target.dtype == torch.int64:
            is_of_tokens = outputs.ndim == 3 and target.ndim == 2
            loss = F.cross_entropy(outputs.transpose(1, 2) if is_of_tokens else outputs, target)
        else:
            loss = F.mse_loss(outputs, target.reshape(outputs.shape))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    torch.set_default_dtype(torch.float32)
    return np.array(losses)


def measured(runner, name, kind, model, reference_name, work):
    """Parameters of both networks, and the largest relative difference of losses for each precision."""
    place = work / re.sub(r"\W+", "_", name)
    place.mkdir()
    arrays = write_items(place, kind)
    rate = SLOW.get(name, RATE)
    (place / "spec.toml").write_text(spec(kind, model, arrays, rate))
    call(runner, place, "run", "spec.toml", "--quiet")
    call(runner, place, "export", "pytorch", "results/spec", "--out", "module")
    run = tomllib.loads((place / "results/spec/runs/base-s1/run.toml").read_text())
    ours = run["network"]["num_parameters"]
    differences, expected = {}, {}
    for precision, dtype in DTYPES.items():
        (place / f"{precision}.toml").write_text(spec(kind, model, arrays, rate, precision))
        call(runner, place, "run", f"{precision}.toml", "--quiet")
        found = np.fromfile(place / f"results/{precision}/runs/base-s1/trace/losses.f64")
        network = load(place / "module")
        if reference_name:
            network = reference(reference_name, network)
        theirs = sum(parameter.numel() for parameter in network.parameters())
        expected[precision] = losses_of_torch(network, arrays, rate, dtype)
        assert len(found) == STEPS, (name, len(found))
        first, last = expected[precision][[0, -1]]
        assert abs(last - first) > 1e-4 * first, (name, "nothing was learned")
        differences[precision] = np.abs(found / expected[precision] - 1).max()
    differences["own"] = np.abs(expected["f32"] / expected["f64"] - 1).max()
    return ours, theirs, differences


def networks():
    """The name, the items, the lines of TOML, the text of the model and the reference of each network."""
    for name, kind, model, reference_name in network_table.PRESETS:
        yield name, kind, model, reference_name, f"preset `{model.split(chr(34))[1]}`"
    for name, kind, experiment in network_table.SHIPPED:
        model, _ = shipped_model(experiment)
        yield name, kind, model, None, f"`{experiment}.toml`"
    for name, kind, model, *reference_name in network_table.WRITTEN:
        yield name, kind, model, next(iter(reference_name), None), "written"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    runner = str(Path(options.runner).resolve())
    lines, wrong = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, kind, model, reference_name, origin in networks():
            if options.only and name not in options.only:
                continue
            ours, theirs, differences = measured(runner, name, kind, model, reference_name, Path(folder))
            num_lines = 1 + sum(bool(line.strip()) for line in model.splitlines())
            judge = {None: "exported"}.get(reference_name, "reference")
            cells = [name, origin, num_lines, f"{ours:,}", f"{theirs:,}", judge]
            cells += [f"{differences[precision]:.1e}" for precision in (*DTYPES, "own")]
            lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
            print(lines[-1], flush=True)
            bounds = {**BOUNDS, "f32": max(BOUNDS["f32"], FACTOR * differences["own"])}
            far = any(not differences[precision] <= bounds[precision] for precision in DTYPES)
            if far or ours != theirs:
                wrong.append(name)
    if options.write:
        text = options.write.read_text()
        start, end = (text.index(mark) + shift for mark, shift in (("| --- |", 0), ("\n\n<!-- end", 1)))
        start = text.index("\n", start) + 1
        options.write.write_text(text[:start] + "\n".join(lines) + "\n" + text[end:])
    if wrong:
        raise SystemExit(f"larger differences than {BOUNDS}, or other parameters: {wrong}")
    print(f"{len(lines)} networks")


if __name__ == "__main__":
    main()
