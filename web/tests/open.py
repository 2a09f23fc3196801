"""Opens what the page downloaded: every file has the same weights, and they predict what the page did."""

import json
import sys

import numpy as np
import onnxruntime
import torch
from safetensors.torch import load_file

given = json.load(open(sys.argv[1]))
files = given["files"]
state = load_file(files["safetensors"])
archive = np.load(files["npz"])
named = json.load(open(files["pytorch-json"]))
pickled = torch.load(files["pytorch"], weights_only=True)
for name, tensor in state.items():
    assert torch.equal(tensor, pickled[name]), name
    assert np.array_equal(tensor.numpy(), archive[name]), name
    assert torch.equal(tensor, torch.tensor(named[name.replace(".", "_")])), name

network = torch.nn.Sequential()
weights = [tensor for name, tensor in state.items() if name.endswith("weight")]
for at, weight in enumerate(weights):
    network.append(torch.nn.Linear(weight.shape[1], weight.shape[0]))
    if at + 1 < len(weights):
        network.append(torch.nn.ReLU())
layers = [name.removesuffix(".weight") for name in state if name.endswith("weight")]
for own, layer in zip([part for part in network if isinstance(part, torch.nn.Linear)], layers):
    own.load_state_dict({part: state[f"{layer}.{part}"] for part in ("weight", "bias")})
items = torch.tensor(np.random.default_rng(1).normal(size=(8, 4)), dtype=torch.float32)
session = onnxruntime.InferenceSession(files["onnx"])
outputs = session.run(None, {"input": items.numpy()})[0]
difference = np.abs(outputs - network(items).detach().numpy()).max()
assert difference <= 1e-5, difference
print(f"{len(state)} tensors are equal in 4 files; PyTorch and ONNX differ by {difference:.1e}")
