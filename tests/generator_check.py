"""Holds what a generator makes against its exports: python3 tests/generator_check.py FOLDER

FOLDER has noise.json, samples.npy made from it by `runner generate`, generator/ from `runner export pytorch`, and
generator.onnx; with condition.json, that is the second input. Prints the largest relative differences of samples.npy from `decode` of the PyTorch module's outputs, and of
onnxruntime's outputs from the module's."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import torch

folder = Path(sys.argv[1])
subprocess.run([sys.executable, "-B", folder / "generator/model.py"], check=True, stdout=subprocess.DEVNULL)
sys.path.insert(0, str(folder / "generator"))
import model  # noqa: E402

noise = torch.tensor(json.loads((folder / "noise.json").read_text()), dtype=torch.float32)
inputs = [noise]
if (folder / "condition.json").exists():
    inputs.append(torch.tensor(json.loads((folder / "condition.json").read_text()), dtype=torch.float32))
samples = np.load(folder / "samples.npy")
with torch.no_grad():
    outputs = model.load()(*inputs)
session = onnxruntime.InferenceSession(folder / "generator.onnx", providers=["CPUExecutionProvider"])
given = [of.name for of in session.get_inputs()]
assert given == (["noise", "condition"] if len(inputs) > 1 else given[:1]), given
(found,) = session.run(None, dict(zip(given, [values.numpy() for values in inputs])))


def difference(found, expected):
    assert found.shape == expected.shape, (found.shape, expected.shape)
    return np.abs(found - expected).max() / np.abs(expected).max()


decoded = model.decode(outputs).numpy()
print(json.dumps([difference(samples, decoded), difference(found, outputs.numpy())], default=float))
