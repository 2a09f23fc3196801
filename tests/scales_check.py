"""Runs arrays through an exported model.py and model.onnx: python3 tests/scales_check.py FOLDER"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime
import torch

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder / "module"))
import model  # noqa: E402

# Compares what `encode` makes of the items with what runner made of them, too.
assert model.check() <= 1e-5
items = np.load(folder / "x.npy")
with torch.no_grad():
    expected = model.load()(model.encode(items)).softmax(1).numpy()
session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
[found] = session.run(["probabilities"], {"input": items})
assert np.abs(found - expected).max() <= 1e-5, (found, expected)

# What is standardized has a mean of 0 and a deviation of 1 along the last axis, over the train split alone.
encoded = model.encode(items).numpy()
assert encoded.shape == items.shape
assert np.abs(encoded.mean(axis=(0, 1))).max() < 0.1, encoded.mean(axis=(0, 1))
assert np.abs(encoded.std(axis=(0, 1)) - 1).max() < 0.1, encoded.std(axis=(0, 1))
