"""Trains the networks of tests/suite/training.rs with PyTorch in 64 bits: python3 tests/training_check.py FOLDER

Writes train.csv and, for each network, its initial weights (NAME.safetensors) and the losses of each step
(NAME.json)."""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)
torch.set_default_dtype(torch.float64)
folder = Path(sys.argv[1])
STEPS, RATE = 20, 0.05


class Siamese(nn.Module):
    """One encoder for both halves of a row."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(3, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        a, b = (torch.tanh(self.encoder(half)) for half in x.chunk(2, dim=1))
        return self.head(a * b)


class Recurrent(nn.Module):
    """A layer that is applied three times."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(6, 8)
        self.cell = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        x = self.encoder(x)
        for _ in range(3):
            x = torch.tanh(self.cell(x))
        return self.head(x)


class Tied(nn.Module):
    """An autoencoder inside, whose decoder has the encoder's matrix."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(6, 4)
        self.bias = nn.Parameter(torch.rand(6))
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        x = torch.tanh(self.encoder(x))
        return self.head(F.linear(x, self.encoder.weight.T, self.bias))


def main():
    # Values and weights that 32 bits hold too: what differs is training.
    x = np.round(np.random.default_rng(3).normal(size=(30, 6)) * 64) / 64
    y = (x[:, 0] + x[:, 3] > 0).astype(int) + (x[:, 1] > 0.5)
    rows = [",".join([*map(str, row), "abc"[label]]) for row, label in zip(x, y)]
    table = "\n".join(["p,q,r,s,t,u,kind", *rows]) + "\n"
    (folder / "train.csv").write_text(table)
    (folder / "valid.csv").write_text("\n".join(table.splitlines()[:7]) + "\n")
    x, y = torch.tensor(x), torch.tensor(y)
    for name, network in (("siamese", Siamese()), ("recurrent", Recurrent()), ("tied", Tied())):
        for parameter in network.parameters():
            parameter.data = parameter.data.float().double()
        weights = {key.replace("bias", "decoder.bias") if key == "bias" else key: value.clone()
                   for key, value in network.state_dict().items()}
        save_file(weights, folder / f"{name}.safetensors")
        optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
        losses = []
        for _ in range(STEPS):
            loss = F.cross_entropy(network(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        (folder / f"{name}.json").write_text(json.dumps(losses))


main()
