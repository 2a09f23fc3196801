"""Trains networks in 64 bits on arrays with offsets that 32 bits would lose, in runner and in PyTorch: python3
tests/doubles_check.py RUNNER

Weights, items and their order are equal. Each loss of 20 steps must agree within 1e-12: what is rounded to 32 bits after it is
scaled differs by 1e-8.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

STEPS, RATE, MOMENTUM, NUM_TRAIN = 20, 0.05, 0.9, 24
SPEC = """
[data]
type = "npz"
path = "train.npz"
valid_path = "valid.npz"
target = "target"
target_scale = "standardize"
split = {{ test = 0.0 }}
{data}

[model]
{model}

[optimizer]
type = "sgd"
learning_rate = {rate}
momentum = {momentum}

[train]
epochs = {epochs}
batch_size = {batch}

[backend]
precision = "{precision}"
{init}
"""
CASES = {
    "single": (
        "",
        'layers = [{ type = "flatten" }, { type = "linear", out_features = 8 }, { type = "tanh" }, { type = "linear" }]',
    ),
    "named": (
        'inputs = [{ name = "series", columns = ["x"] }, { name = "rest", columns = ["numbers"] }]',
        'layers = [{ type = "lstm", hidden_size = 6, output = "last", inputs = ["series"], name = "read" },\n'
        '  { type = "concat", inputs = ["read", "rest"] }, { type = "linear" }]',
    ),
}


def arrays(num, draw, is_named):
    offsets, sizes = np.array([1e6, -3e4, 7.0]), np.array([3e-3, 1e2, 1e-7])
    found = {"x": offsets + sizes * draw.normal(size=(num, 5, 3))}
    found["target"] = 1e5 + 0.01 * draw.normal(size=num)
    if is_named:
        found["numbers"] = 1e7 + 0.1 * draw.normal(size=(num, 4))
    return found


def call(runner, place, *arguments):
    done = subprocess.run([runner, *arguments], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def load(folder):
    spec = importlib.util.spec_from_file_location(folder.parent.name, folder / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load()


def scaled(values, scaling):
    shift, factor = (np.array([one[key] for one in scaling]) for key in ("shift", "factor"))
    axes = tuple(range(values.ndim - 1)) if len(scaling) > 1 else None
    assert np.allclose(values.mean(axis=axes), shift, rtol=1e-12, atol=0), (values.mean(axis=axes), shift)
    assert np.allclose(1 / values.std(axis=axes), factor, rtol=1e-6, atol=0), (values.std(axis=axes), factor)
    return torch.tensor((values - shift) * factor)


def main():
    runner = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        for name, (data, model) in CASES.items():
            place = Path(folder) / name
            place.mkdir()
            draw = np.random.default_rng(3)
            items = arrays(NUM_TRAIN, draw, name == "named")
            np.savez(place / "train.npz", **items)
            np.savez(place / "valid.npz", **arrays(4, draw, name == "named"))
            keys = {"data": data, "model": model, "rate": RATE, "momentum": MOMENTUM, "batch": NUM_TRAIN}
            first = SPEC.format(**keys, epochs=1, precision="f32", init="")
            (place / "first.toml").write_text(first)
            call(runner, place, "run", "first.toml", "--quiet")
            call(runner, place, "export", "pytorch", "results/first", "--out", "module")
            init = '[init]\nfrom = "module/weights.safetensors"'
            (place / "wide.toml").write_text(SPEC.format(**keys, epochs=STEPS, precision="f64", init=init))
            call(runner, place, "run", "wide.toml", "--quiet")
            run = place / "results/wide/runs/base-s1"
            found = np.fromfile(run / "trace/losses.f64")

            transforms = json.loads((run / "transforms.json").read_text())
            of_target = transforms["target"]["columns"][0][1]
            target = scaled(items["target"][:, None], of_target)
            if name == "named":
                given = {one["name"]: one["encoder"] for one in transforms["input"]["inputs"]}
                inputs = [scaled(items["x"], given["series"]["scaling"])]
                of_numbers = given["rest"].get("scaling") or given["rest"]["features"][0]["form"]["scaling"]
                inputs.append(scaled(items["numbers"], of_numbers))
            else:
                inputs = [scaled(items["x"], transforms["input"]["scaling"])]
            network = load(place / "module").double().train()
            optimizer = torch.optim.SGD(network.parameters(), lr=RATE, momentum=MOMENTUM)
            expected = []
            for _ in range(STEPS):
                loss = F.mse_loss(network(*inputs).reshape(-1), target.reshape(-1))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                expected.append(loss.item())
            difference = np.abs(found / expected - 1).max()
            print(f"{name}: {difference:.1e}")
            assert len(found) == STEPS and difference <= 1e-12, (name, found, expected)


main()
