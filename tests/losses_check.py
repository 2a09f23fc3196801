"""Trains the networks of tests/suite/losses.rs with PyTorch in 64 bits: python3 tests/losses_check.py FOLDER

Writes train.csv and valid.csv and, for each network, its initial weights (NAME.safetensors) and the losses of each step
(NAME.json)."""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

torch.manual_seed(6)
torch.set_default_dtype(torch.float64)
folder = Path(sys.argv[1])
STEPS, RATE = 20, 0.02


class Vae(nn.Module):
    """A variational autoencoder whose latent variables are the means."""

    def __init__(self):
        super().__init__()
        self.encoder, self.latent = nn.Linear(6, 8), nn.Linear(8, 6)
        self.decoder, self.copy = nn.Linear(3, 8), nn.Linear(8, 6)

    def loss(self, x, y):
        mean, log = self.latent(torch.tanh(self.encoder(x))).chunk(2, dim=1)
        copy = self.copy(torch.tanh(self.decoder(mean)))
        divergence = -0.5 * (1 + log - mean**2 - log.exp()).sum(1)
        return ((copy - x) ** 2).sum(1).mean() + 0.3 * divergence.mean()


class Heads(nn.Module):
    """A classifier that also reconstructs its input, and whose middle is small, and classifies early."""

    def __init__(self):
        super().__init__()
        self.body, self.copy = nn.Linear(6, 8), nn.Linear(8, 6)
        self.early, self.head = nn.Linear(8, 3), nn.Linear(8, 3)

    def loss(self, x, y):
        body = torch.tanh(self.body(x))
        copy = F.smooth_l1_loss(self.copy(body), x, beta=0.5)
        early = F.cross_entropy(self.early(body), y, label_smoothing=0.1)
        small = body.abs().mean()
        return F.cross_entropy(self.head(body), y) + 0.5 * copy + 0.25 * early + 0.1 * small


class Tasks(nn.Module):
    """Classes, two numbers, and other classes of the same items."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(6, 8), nn.Linear(8, 3)
        self.numbers, self.side = nn.Linear(8, 2), nn.Linear(8, 2)

    def loss(self, x, y):
        body = torch.tanh(self.body(x))
        numbers = torch.stack((x[:, 0] * 2 + x[:, 1], x[:, 2] - x[:, 4]), dim=1)
        side = (x[:, 5] > 0).long()
        loss = F.cross_entropy(self.head(body), y) + 0.5 * F.mse_loss(self.numbers(body), numbers)
        return loss + 2 * F.cross_entropy(self.side(body), side)


def main():
    # Values and weights that 32 bits hold too: what differs is training.
    x = np.round(np.random.default_rng(4).normal(size=(30, 6)) * 64) / 64
    y = (x[:, 0] + x[:, 3] > 0).astype(int) + (x[:, 1] > 0.5)
    rows = [",".join([*map(str, row), "abc"[label]]) for row, label in zip(x, y)]
    table = "\n".join(["p,q,r,s,t,u,kind", *rows]) + "\n"
    (folder / "train.csv").write_text(table)
    (folder / "train_valid.csv").write_text("\n".join(table.splitlines()[:7]) + "\n")
    more = [f"{row[0] * 2 + row[1]},{row[2] - row[4]},{'no,yes'.split(',')[int(row[5] > 0)]}" for row in x]
    names = table.splitlines()[0] + ",m,n,side"
    table = "\n".join([names, *(f"{row},{end}" for row, end in zip(rows, more))]) + "\n"
    (folder / "tasks.csv").write_text(table)
    (folder / "tasks_valid.csv").write_text("\n".join(table.splitlines()[:7]) + "\n")
    x, y = torch.tensor(x), torch.tensor(y)
    for name, network in (("vae", Vae()), ("heads", Heads()), ("tasks", Tasks())):
        for parameter in network.parameters():
            parameter.data = parameter.data.float().double()
        weights = {key: value.clone() for key, value in network.state_dict().items()}
        save_file(weights, folder / f"{name}.safetensors")
        optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
        losses = []
        for _ in range(STEPS):
            loss = network.loss(x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        (folder / f"{name}.json").write_text(json.dumps(losses))


main()
