"""Trains autoencoders of short series, and regressions of each of their positions, whose padding does not count, in runner
and in PyTorch: python3 tests/padding_check.py RUNNER

Weights, items and their order are equal; PyTorch's losses and metrics are computed from the real positions of each item. The
losses of 20 steps agree within 1e-12, and the metrics of the valid split within 1e-6: its predictions are read in 32 bits.
"""

import csv
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

STEPS, RATE, LENGTH, FEATURES, NUM_TRAIN = 20, 0.05, 9, 3, 16
SPEC = """
[data]
type = "npz"
path = "train.npz"
valid_path = "valid.npz"
scale = "none"
split = {{ test = 0.0 }}
{target}

[task]
type = "{task}"
metrics = ["mae", "mse"]

[loss]
type = "{loss}"
reduction = "{reduction}"
mask = "real"

[[model.layers]]
type = "padding_mask"
name = "real"

[[model.layers]]
type = "gru"
hidden_size = 5
mask = "real"
inputs = ["input"]

[[model.layers]]
type = "linear"

{penalty}

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
PENALTY = """
[[losses]]
type = "l2"
weight = 0.1
"""
# A second loss of the same target.
AGAIN = """
[[losses]]
type = "mae"
name = "copy"
mask = "real"
weight = 0.5
metrics = ["mae"]
"""
MASKED = f"""
[[losses]]
type = "l2"
mask = "real"
weight = 0.1
{AGAIN}
target = "items"
"""
AUTOENCODING, REGRESSION = "autoencoding", "regression"
CASES = {
    "mean": (AUTOENCODING, "mse", "mean", ""),
    "sum": (AUTOENCODING, "mae", "sum", ""),
    "penalty": (AUTOENCODING, "mse", "mean", PENALTY),
    "masked": (AUTOENCODING, "mse", "mean", MASKED),
    "regression": (REGRESSION, "mse", "mean", ""),
    "regression, sum": (REGRESSION, "mae", "sum", ""),
    "regression, masked": (REGRESSION, "mse", "mean", AGAIN),
}
# Targets of each position.
NUM_TARGETS = 2


def series(num, draw):
    values = draw.normal(size=(num, LENGTH, FEATURES))
    lengths = draw.integers(1, LENGTH + 1, num)
    lengths[0] = LENGTH
    # An item without any real position has no loss.
    lengths[1] = 0
    values[np.arange(LENGTH)[None] >= lengths[:, None]] = 0
    real = np.arange(LENGTH)[None] < lengths[:, None]
    targets = np.stack([values.sum(2), np.cumsum(values[..., 0], 1)], 2)
    # What stands at padding must not matter.
    targets[~real] = draw.normal(size=(int((~real).sum()), NUM_TARGETS))
    return values, targets, real


def call(runner, place, *arguments):
    done = subprocess.run([runner, *arguments], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def load(folder):
    spec = importlib.util.spec_from_file_location(folder.parent.name, folder / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load()


def of_items(errors, real, reduction):
    """The errors of each item, over its real positions."""
    sums = (errors * real[..., None]).sum((1, 2))
    return sums if reduction == "sum" else sums / (real.sum(1) * errors.shape[2]).clamp(min=1)


def main():
    runner = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        for name, (task, loss, reduction, penalty) in CASES.items():
            place = Path(folder) / name
            place.mkdir()
            draw = np.random.default_rng(5)
            (values, targets, real), (valid, valid_targets, valid_real) = series(NUM_TRAIN, draw), series(6, draw)
            has_target = task == REGRESSION
            np.savez(place / "train.npz", x=values, **({"y": targets} if has_target else {}))
            np.savez(place / "valid.npz", x=valid, **({"y": valid_targets} if has_target else {}))
            if not has_target:
                targets, valid_targets = values, valid
            keys = {"task": task, "target": 'target = "y"' if has_target else ""}
            keys |= {"loss": loss, "reduction": reduction, "penalty": penalty, "rate": RATE, "batch": NUM_TRAIN}
            (place / "first.toml").write_text(SPEC.format(**keys, epochs=1, precision="f32", init=""))
            call(runner, place, "run", "first.toml", "--quiet")
            call(runner, place, "export", "pytorch", "results/first", "--out", "module")
            init = '[init]\nfrom = "module/weights.safetensors"'
            (place / "wide.toml").write_text(SPEC.format(**keys, epochs=STEPS, precision="f64", init=init))
            call(runner, place, "run", "wide.toml", "--quiet")
            run = place / "results/wide/runs/base-s1"
            found = np.fromfile(run / "trace/losses.f64")

            torch.set_default_dtype(torch.float64)
            network = load(place / "module").double().train()
            inputs, targets, real = torch.tensor(values), torch.tensor(targets), torch.tensor(real)
            optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
            expected = []
            for _ in range(STEPS):
                outputs = network(inputs)
                errors = outputs - targets
                errors = errors.square() if loss == "mse" else errors.abs()
                each = of_items(errors, real, reduction)
                if penalty == PENALTY:
                    each = each + 0.1 * outputs.square().mean((1, 2))
                if penalty == MASKED:
                    each = each + 0.1 * of_items(outputs.square(), real, "mean")
                if penalty in (MASKED, AGAIN):
                    each = each + 0.5 * of_items((outputs - targets).abs(), real, "mean")
                optimizer.zero_grad()
                each.mean().backward()
                optimizer.step()
                expected.append(each.mean().item())
            difference = np.abs(found / expected - 1).max()
            print(f"{name}: {difference:.1e}", flush=True)
            assert len(found) == STEPS and difference <= 1e-12, (name, found, expected)

            with torch.no_grad():
                errors = network.eval()(torch.tensor(valid)) - torch.tensor(valid_targets)
            with open(run / "metrics.csv") as file:
                rows = list(csv.DictReader(file))
            measured = [("mae", errors.abs()), ("mse", errors.square())]
            if penalty in (MASKED, AGAIN):
                measured.append(("copy/mae", errors.abs()))
            for metric, errors in measured:
                wanted = of_items(errors, torch.tensor(valid_real), "mean").mean().item()
                last = float(rows[-1][f"valid/{metric}"])
                assert abs(last / wanted - 1) <= 1e-6, (name, metric, last, wanted)


main()
