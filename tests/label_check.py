"""Trains a network with a single label in runner and in PyTorch: python3 tests/label_check.py RUNNER

Weights, items and their order are equal: the losses of 20 steps agree with binary cross-entropy within 1e-12, and the metrics of
the valid split within 1e-6 with their definitions. ONNX and the module for PyTorch give the probability that `runner predict`
gives.
"""

import csv
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from torch.nn import functional as F

STEPS, RATE, NUM_TRAIN, NUM_VALID = 20, 0.3, 32, 20
METRICS = ["hamming_score", "subset_accuracy", "precision", "recall", "f_beta", "log_loss", "brier", "auroc", "auc_pr"]
SPEC = """
[data]
type = "csv"
path = "train.csv"
valid_path = "valid.csv"
target = "answer"
columns = [{{ name = "answer", type = "label" }}]
scale = "none"
split = {{ test = 0.0 }}

[task]
metrics = {metrics}
average = "binary"

[model]
layers = [{{ type = "linear", out_features = 6 }}, {{ type = "tanh" }}, {{ type = "linear" }}]

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
    return done.stdout


def items(path, num, draw):
    x = draw.normal(size=(num, 3)).round(3)
    y = (x[:, 0] + 0.8 * draw.normal(size=num) > 0).astype(int)
    with open(path, "w") as file:
        file.write("a,b,c,answer\n")
        file.writelines(f"{','.join(map(str, row))},{label}\n" for row, label in zip(x, y))
    return torch.tensor(x), torch.tensor(y, dtype=torch.float64)


def expected_metrics(logits, labels):
    probabilities, said = 1 / (1 + np.exp(-logits)), logits > 0
    yes = labels == 1
    right, true = (said == yes).mean(), (said & yes).sum()
    precision, recall = true / said.sum(), true / yes.sum()
    pairs = logits[yes][:, None] - logits[~yes][None]
    order = np.argsort(-logits)
    hits = np.cumsum(yes[order])
    return {
        "hamming_score": right,
        "subset_accuracy": right,
        "precision": precision,
        "recall": recall,
        "f_beta": 2 * precision * recall / (precision + recall),
        "log_loss": -np.log(np.where(yes, probabilities, 1 - probabilities)).mean(),
        "brier": ((probabilities - labels) ** 2).mean(),
        "auroc": ((pairs > 0) + 0.5 * (pairs == 0)).mean(),
        "auc_pr": (hits / np.arange(1, len(yes) + 1))[yes[order]].mean(),
    }


def main():
    runner = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        draw = np.random.default_rng(11)
        x, y = items(place / "train.csv", NUM_TRAIN, draw)
        valid_x, valid_y = items(place / "valid.csv", NUM_VALID, draw)
        keys = {"metrics": json.dumps(METRICS), "rate": RATE, "batch": NUM_TRAIN}
        (place / "first.toml").write_text(SPEC.format(**keys, epochs=1, precision="f32", init=""))
        call(runner, place, "run", "first.toml", "--quiet")
        call(runner, place, "export", "pytorch", "results/first", "--out", "module")
        init = '[init]\nfrom = "module/weights.safetensors"'
        (place / "wide.toml").write_text(SPEC.format(**keys, epochs=STEPS, precision="f64", init=init))
        call(runner, place, "run", "wide.toml", "--quiet")
        run = place / "results/wide/runs/base-s1"
        found = np.fromfile(run / "trace/losses.f64")

        torch.set_default_dtype(torch.float64)
        spec = importlib.util.spec_from_file_location("model", place / "module/model.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        network = module.load().double().train()
        optimizer = torch.optim.SGD(network.parameters(), lr=RATE)
        expected = []
        for _ in range(STEPS):
            loss = F.binary_cross_entropy_with_logits(network(x)[:, 0], y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            expected.append(loss.item())
        difference = np.abs(found / expected - 1).max()
        print(f"losses: {difference:.1e}")
        assert len(found) == STEPS and difference <= 1e-12, (found, expected)

        with torch.no_grad():
            logits = network.eval()(valid_x)[:, 0].numpy()
        with open(run / "metrics.csv") as file:
            last_row = list(csv.DictReader(file))[-1]
        for metric, wanted in expected_metrics(logits, valid_y.numpy()).items():
            last = float(last_row[f"valid/{metric}"])
            assert abs(last - wanted) <= 1e-6, (metric, last, wanted)

        predicted = call(runner, place, "predict", "results/first", "--data", "valid.csv", "--out", "-")
        rows = list(csv.DictReader(predicted.splitlines()))
        [column] = [name for name in rows[0] if "answer" in name and "prob" in name] or [list(rows[0])[-1]]
        ours = np.array([float(row[column]) for row in rows])
        call(runner, place, "export", "onnx", "results/first", "--out", "model.onnx")
        session = onnxruntime.InferenceSession(str(place / "model.onnx"))
        name = session.get_inputs()[0].name
        theirs = session.run(None, {name: valid_x.numpy().astype(np.float32)})[0][:, 0]
        assert np.abs(ours - 1 / (1 + np.exp(-theirs))).max() <= 1e-6, (ours, theirs)


main()
