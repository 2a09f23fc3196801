"""Trains a classifier with weighted classes with PyTorch in 64 bits: python3 tests/balance_check.py FOLDER

Writes train.csv, whose classes are of different frequency, valid.csv, the initial weights (weights.safetensors), and the
weights of the classes with the losses of each step (balance.json)."""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn

torch.manual_seed(8)
torch.set_default_dtype(torch.float64)
folder = Path(sys.argv[1])
COUNTS, STEPS, RATE = {"a": 21, "b": 7, "c": 2}, 20, 0.02

rng = np.random.default_rng(8)
x = np.round(rng.normal(size=(30, 4)) * 64) / 64
names = [name for name, count in COUNTS.items() for _ in range(count)]
rows = [",".join([*map(str, row), name]) for row, name in zip(x, names)]
(folder / "train.csv").write_text("\n".join(["p,q,r,s,kind", *rows]) + "\n")
(folder / "valid.csv").write_text("\n".join(["p,q,r,s,kind", *rows[::3]]) + "\n")
x, y = torch.tensor(x), torch.tensor(["abc".index(name) for name in names])
network = nn.Linear(4, 3)
for parameter in network.parameters():
    parameter.data = parameter.data.float().double()
save_file({key: value.clone() for key, value in network.state_dict().items()}, folder / "weights.safetensors")
weights = torch.tensor(len(y) / (3 * np.bincount(y.numpy())))
loss_of = nn.CrossEntropyLoss(weight=weights, reduction="none")
optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
losses = []
for _ in range(STEPS):
    loss = loss_of(network(x), y).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
(folder / "balance.json").write_text(json.dumps({"weights": weights.tolist(), "losses": losses}))
