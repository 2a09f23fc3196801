"""Trains a network on pictures beside numbers of a table, in runner and in PyTorch: python3 tests/table_images_check.py RUNNER

The table names its pictures by their paths. Weights, items and their order are equal, PIL decodes the pictures, and the losses of
20 steps agree within 1e-12 in 64 bits.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn import functional as F

STEPS, RATE, NUM_TRAIN, SIDE = 20, 0.05, 16, 6
SPEC = """
[data]
type = "csv"
path = "train.csv"
valid_path = "valid.csv"
target = "price"
target_scale = "standardize"
split = {{ test = 0.0 }}

[[data.columns]]
name = "photo"
image = {{ folder = "photos", size = {side}, channels = "{channels}" }}

[[data.inputs]]
name = "picture"
columns = ["photo"]

[[data.inputs]]
name = "numbers"

[[model.layers]]
type = "conv2d"
out_channels = 3
kernel_size = 3
inputs = ["picture"]

[[model.layers]]
type = "tanh"

[[model.layers]]
type = "flatten"
name = "seen"

[[model.layers]]
type = "concat"
inputs = ["seen", "numbers"]

[[model.layers]]
type = "linear"

[optimizer]
type = "sgd"
learning_rate = {rate}

[train]
epochs = {epochs}
batch_size = {batch}

[backend]
precision = "{precision}"
{init}
"""


def call(runner, place, *arguments):
    done = subprocess.run([runner, *arguments], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def write(place, name, num, mode, draw):
    """A table with its pictures; both as arrays."""
    channels = {"RGB": 3, "L": 1}[mode]
    pixels = draw.integers(0, 256, (num, channels, SIDE, SIDE), dtype=np.uint8)
    numbers = draw.normal(size=(num, 2)).round(4)
    prices = (pixels.mean((1, 2, 3)) / 50 + numbers[:, 0] + draw.normal(size=num)).round(4)
    lines = ["photo,area,year,price"]
    (place / "photos" / name).mkdir(parents=True)
    for at in range(num):
        flat = pixels[at].transpose(1, 2, 0) if channels == 3 else pixels[at, 0]
        Image.fromarray(flat, mode).save(place / "photos" / name / f"{at}.png")
        lines.append(f"{name}/{at}.png,{numbers[at, 0]},{numbers[at, 1]},{prices[at]}")
    (place / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return pixels.astype(np.float64), numbers, prices


def scaled(values, scaling, axis=None):
    shift, factor = (np.array([one[key] for one in scaling]) for key in ("shift", "factor"))
    if axis is not None and len(scaling) > 1:
        shape = [1] * values.ndim
        shape[axis] = len(scaling)
        shift, factor = shift.reshape(shape), factor.reshape(shape)
    return torch.tensor((values - shift) * factor)


def load(folder):
    spec = importlib.util.spec_from_file_location(folder.parent.name, folder / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load()


def main():
    runner = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        for mode, channels in (("RGB", "rgb"), ("L", "gray")):
            place = Path(folder) / channels
            place.mkdir()
            draw = np.random.default_rng(8)
            pixels, numbers, prices = write(place, "train", NUM_TRAIN, mode, draw)
            write(place, "valid", 4, mode, draw)
            keys = {"side": SIDE, "channels": channels, "rate": RATE, "batch": NUM_TRAIN}
            (place / "first.toml").write_text(SPEC.format(**keys, epochs=1, precision="f32", init=""))
            call(runner, place, "run", "first.toml", "--quiet")
            call(runner, place, "export", "pytorch", "results/first", "--out", "module")
            init = '[init]\nfrom = "module/weights.safetensors"'
            (place / "wide.toml").write_text(SPEC.format(**keys, epochs=STEPS, precision="f64", init=init))
            call(runner, place, "run", "wide.toml", "--quiet")
            run = place / "results/wide/runs/base-s1"
            found = np.fromfile(run / "trace/losses.f64")

            transforms = json.loads((run / "transforms.json").read_text())
            given = {one["name"]: one["encoder"] for one in transforms["input"]["inputs"]}
            of_numbers = [feature["form"] if "form" in feature["form"] else feature for feature in given["numbers"]["features"]]
            of_numbers = [form["form"]["scaling"][0] if isinstance(form["form"], dict) else form["scaling"][0] for form in of_numbers]
            inputs = [
                scaled(pixels, given["picture"]["scaling"], axis=1),
                scaled(numbers, of_numbers, axis=1),
            ]
            target = scaled(prices, transforms["target"]["columns"][0][1])
            torch.set_default_dtype(torch.float64)
            network = load(place / "module").double().train()
            optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
            expected = []
            for _ in range(STEPS):
                loss = F.mse_loss(network(*inputs).reshape(-1), target)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                expected.append(loss.item())
            difference = np.abs(found / expected - 1).max()
            print(f"{channels}: {difference:.1e}")
            assert len(found) == STEPS and difference <= 1e-12, (channels, found, expected)
            torch.set_default_dtype(torch.float32)


main()
