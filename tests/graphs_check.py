"""Trains the networks of tests/suite/graphs.rs with PyTorch Geometric in 64 bits: python3 tests/graphs_check.py FOLDER

Writes a graph (nodes.csv, valid.csv, edges.csv and links.csv, which has directions) and, for each network, its initial
weights (NAME.safetensors) and the losses of each step (NAME.json)."""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)
folder = Path(sys.argv[1])
STEPS, RATE = 20, 0.02
NODES, TRAIN, FEATURES = 60, 40, 5

# Values and weights that 32 bits hold too: what differs is training.
x = (torch.randn(NODES, FEATURES) * 64).round() / 64
kind = torch.arange(NODES) % 3
amount = ((x[:, 0] - 2 * x[:, 1] * x[:, 2]) * 64).round() / 64
pairs = sorted({(int(a), int(b)) for a, b in torch.randint(0, NODES - 2, (150, 2))})


def rows(nodes):
    lines = ["id," + ",".join(f"f{at}" for at in range(FEATURES)) + ",kind,amount"]
    for node in nodes:
        numbers = [str(value) for value in x[node].tolist()]
        lines.append(",".join([f"n{node}", *numbers, f"c{kind[node]}", str(amount[node].item())]))
    return "\n".join(lines) + "\n"


(folder / "nodes.csv").write_text(rows(range(TRAIN)))
(folder / "valid.csv").write_text(rows(range(TRAIN, NODES)))
weights = {pair: (1 + 37 * at % 19) / 8 for at, pair in enumerate(pairs)}


def edges(pairs):
    lines = ["source,target,weight"] + [f"n{a},n{b},{weights[a, b]}" for a, b in pairs]
    return "\n".join(lines) + "\n"


both = [(a, b) for a, b in pairs if a == b or (b, a) not in weights or a < b]
(folder / "links.csv").write_text(edges(pairs))
(folder / "edges.csv").write_text(edges(both))
directed = torch.tensor(pairs).T
undirected = torch.tensor(both + [(b, a) for a, b in both if a != b]).T
of_undirected = torch.tensor([weights[p] for p in both] + [weights[p] for p in both if p[0] != p[1]])


class Gcn(nn.Module):
    """Two layers with weighted edges, and a norm between them."""

    def __init__(self):
        super().__init__()
        self.one, self.norm, self.two = GCNConv(FEATURES, 8), nn.LayerNorm(8), GCNConv(8, 3)

    def forward(self):
        h = F.relu(self.norm(self.one(x, undirected, of_undirected)))
        return self.two(h, undirected, of_undirected)


class Sage(nn.Module):
    """With directions."""

    def __init__(self):
        super().__init__()
        self.one, self.two = SAGEConv(FEATURES, 8), SAGEConv(8, 3)

    def forward(self):
        return self.two(torch.tanh(self.one(x, directed)), directed)


class Gat(nn.Module):
    """Heads that are concatenated, then heads whose mean is taken."""

    def __init__(self):
        super().__init__()
        self.one = GATConv(FEATURES, 4, heads=3)
        self.two = GATConv(12, 3, heads=2, concat=False, negative_slope=0.1)

    def forward(self):
        return self.two(F.elu(self.one(x, undirected)), undirected)


class Gin(nn.Module):
    """A fixed and a learned epsilon, and a linear layer at the end: a regression."""

    def __init__(self):
        super().__init__()
        inner = lambda a, b, c: nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, c))
        self.one = GINConv(inner(FEATURES, 6, 8), eps=0.3)
        self.two = GINConv(inner(8, 8, 8), eps=0.1, train_eps=True)
        self.head = nn.Linear(8, 1)

    def forward(self):
        h = F.relu(self.one(x, directed))
        return self.head(h + torch.tanh(self.two(h, directed)))


class Plain(nn.Module):
    """Sums without self loops or normalization, and attention without self loops."""

    def __init__(self):
        super().__init__()
        self.one = GCNConv(FEATURES, 8, add_self_loops=False, normalize=False, bias=False)
        self.two = GATConv(8, 3, heads=2, concat=False, add_self_loops=False)

    def forward(self):
        return self.two(torch.tanh(self.one(x, directed)), directed)


def train(name, network):
    for parameter in network.parameters():
        parameter.data = parameter.data.float().double()
    state = network.state_dict()
    fixed = [key for key in state if key.endswith("eps") and key not in dict(network.named_parameters())]
    save_file({k: v.clone() for k, v in state.items() if k not in fixed}, folder / f"{name}.safetensors")
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    losses = []
    for _ in range(STEPS):
        output = network()[:TRAIN]
        if name == "gin":
            loss = F.mse_loss(output[:, 0], amount[:TRAIN])
        else:
            loss = F.cross_entropy(output, kind[:TRAIN])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    (folder / f"{name}.json").write_text(json.dumps(losses))


for name, network in [("gcn", Gcn), ("sage", Sage), ("gat", Gat), ("gin", Gin), ("plain", Plain)]:
    train(name, network())
