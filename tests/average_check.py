"""Averages of weights, compared with those of PyTorch.

Arguments: a folder with the weights after 1, 2, … epochs of one update as `1.safetensors` and so on, and the averages
as `ema.safetensors` (decay 0.6, from the second update on) and `swa.safetensors` (from the third epoch on).
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

DECAY, EMA_START, SWA_START = 0.6, 2, 3


def module(tensors):
    """A module whose running statistics are buffers and whose other tensors are parameters."""
    made = torch.nn.Module()
    for name, tensor in tensors.items():
        name = name.replace(".", "_")
        if "running" in name:
            made.register_buffer(name, tensor.clone())
        else:
            made.register_parameter(name, torch.nn.Parameter(tensor.clone()))
    return made


folder = Path(sys.argv[1])
steps = sorted((int(path.stem), load_file(path)) for path in folder.glob("[0-9]*.safetensors"))
averages = {
    "ema": (EMA_START, {"multi_avg_fn": get_ema_multi_avg_fn(DECAY)}),
    "swa": (SWA_START, {}),
}
for name, (start, rule) in averages.items():
    average = None
    for step, tensors in steps:
        if step >= start:
            model = module(tensors)
            average = average or AveragedModel(model, use_buffers=True, **rule)
            average.update_parameters(model)
    expected = average.module.state_dict()
    found = module(load_file(folder / f"{name}.safetensors")).state_dict()
    assert expected.keys() == found.keys(), (expected.keys(), found.keys())
    worst = max((expected[key] - found[key]).abs().max().item() for key in expected)
    last = module(steps[-1][1]).state_dict()
    moved = max((last[key] - found[key]).abs().max().item() for key in expected)
    assert moved > 1e-3, f"{name}: the average is the last weights"
    assert worst < 1e-6, f"{name}: {worst}"
    print(f"{name}: {len(expected)} tensors, statistics {sum('running' in key for key in expected)}, within 1e-6")
