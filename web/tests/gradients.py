"""Compares what the page predicts and how it updates weights with PyTorch, from the weights that it exports."""

import json
import sys

import torch

given = json.load(open(sys.argv[1]))


def weights(name: str) -> dict[str, torch.Tensor]:
    named = json.load(open(given[name])).items()
    return {key: torch.tensor(values, dtype=torch.float32) for key, values in named}


before, after = weights("before"), weights("after")
network = torch.nn.Sequential()
for key in [key for key in before if key.endswith("_weight")]:
    if len(network) > 0:
        network.append(torch.nn.ReLU())
    outputs, inputs = before[key].shape
    layer = torch.nn.Linear(inputs, outputs)
    layer.load_state_dict(
        {"weight": before[key], "bias": before[key.replace("_weight", "_bias")]}
    )
    network.append(layer)
names = list(before)

inputs = torch.tensor(given["inputs"], dtype=torch.float32)
logits = network(inputs)
shown = torch.tensor(given["shown"], dtype=torch.float32)
output = (logits.softmax(1) - shown).abs().max().item()
assert output <= 1e-5, output

loss = torch.nn.functional.cross_entropy(logits, torch.tensor(given["targets"]))
assert abs(loss.item() - given["loss"]) <= 1e-5, (loss.item(), given["loss"])
loss.backward()
assert len(names) == len(list(network.parameters())) == 4, names
gradient = 0.0
for name, parameter in zip(names, network.parameters()):
    made = before[name] - after[name]
    assert made.abs().max() > 1e-3, f"{name} did not change"
    gradient = max(gradient, (made - parameter.grad).abs().max().item())
assert gradient <= 1e-4, gradient
print(f"outputs differ by {output:.1e}, gradients by {gradient:.1e}")
