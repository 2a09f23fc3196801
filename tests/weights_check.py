"""Reads the weights that runner exported in every format: python3 tests/weights_check.py FOLDER"""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from safetensors.torch import load_file

folder = Path(sys.argv[1])
weights = load_file(folder / "w.safetensors")
assert {name: tuple(tensor.shape) for name, tensor in weights.items()} == {
    "linear_1.weight": (16, 4),
    "linear_1.bias": (16,),
    "linear_2.weight": (3, 16),
    "linear_2.bias": (3,),
}


def same(found, kind):
    assert set(found) == set(weights), (kind, set(found))
    for name, tensor in weights.items():
        assert torch.equal(tensor, torch.as_tensor(found[name])), (kind, name)


same(torch.load(folder / "w.pt", weights_only=True), "pt")
same(torch.load(folder / "w.pt", weights_only=True, mmap=True), "pt, mapped")
same(dict(np.load(folder / "w.npz")), "npz")
flat = json.loads((folder / "w.json").read_text())
named = {name.replace(".", "_"): name for name in weights}
same({named[key]: torch.tensor(value) for key, value in flat.items()}, "json")
half = load_file(folder / "half.safetensors")
for name, tensor in weights.items():
    assert torch.equal(tensor.to(torch.bfloat16), half[name]), name

example = json.loads((folder / "module" / "example.json").read_text())
items, expected = np.array(example["input"], np.float32), np.array(example["output"], np.float32)
same(load_file(folder / "module" / "weights.safetensors"), "module")
onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)
session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
(output,) = session.run(["output"], {"input": items})
assert np.abs(output - expected).max() <= 1e-5 * np.abs(expected).max()
