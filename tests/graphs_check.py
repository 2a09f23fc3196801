"""Trains the networks of tests/suite/graphs.rs with PyTorch Geometric in 64 bits: python3 tests/graphs_check.py FOLDER

Writes a graph (nodes.csv, valid.csv, edges.csv and links.csv, which has directions), many small ones (many.csv,
many_valid.csv and many_edges.csv) and, for each network, its initial
weights (NAME.safetensors) and the losses of each step (NAME.json). The edges of rated.csv are items."""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F
from torch_geometric.nn import EdgeConv, GATConv, GCNConv, GINConv, GINEConv, MessagePassing, SAGEConv, global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.nn.aggr import AttentionalAggregation

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)
folder = Path(sys.argv[1])
STEPS, RATE = 20, 0.02
NODES, TRAIN, FEATURES = 60, 40, 5

# 32 bits hold none of the values, weights and features: they would differ by 1e-8.
x = torch.randn(NODES, FEATURES)
kind = torch.arange(NODES) % 3
amount = x[:, 0] - 2 * x[:, 1] * x[:, 2]
pairs = sorted({(int(a), int(b)) for a, b in torch.randint(0, NODES - 2, (150, 2))})


def rows(nodes):
    lines = ["id," + ",".join(f"f{at}" for at in range(FEATURES)) + ",kind,amount"]
    for node in nodes:
        numbers = [str(value) for value in x[node].tolist()]
        lines.append(",".join([f"n{node}", *numbers, f"c{kind[node]}", str(amount[node].item())]))
    return "\n".join(lines) + "\n"


(folder / "nodes.csv").write_text(rows(range(TRAIN)))
(folder / "valid.csv").write_text(rows(range(TRAIN, NODES)))
weights = {pair: (1 + 37 * at % 19) / 7 for at, pair in enumerate(pairs)}
# An edge without weight is an edge, also one from a node to itself.
weights[next((a, b) for a, b in pairs if a == b)] = 0.0
# Two features of each edge.
features = {pair: ((at * 13 % 23 - 11) / 9, (at * 7 % 17 - 8) / 15) for at, pair in enumerate(pairs)}


def edges(pairs):
    lines = ["source,target,weight,long,steep"]
    lines += [f"n{a},n{b},{weights[a, b]},{features[a, b][0]},{features[a, b][1]}" for a, b in pairs]
    return "\n".join(lines) + "\n"


both = [(a, b) for a, b in pairs if a == b or (b, a) not in weights or a < b]
(folder / "links.csv").write_text(edges(pairs))
(folder / "edges.csv").write_text(edges(both))
directed = torch.tensor(pairs).T
undirected = torch.tensor(both + [(b, a) for a, b in both if a != b]).T
of_undirected = torch.tensor([weights[p] for p in both] + [weights[p] for p in both if p[0] != p[1]])

of_directed = torch.tensor([features[p] for p in pairs])
of_both = torch.tensor([features[p] for p in both] + [features[p] for p in both if p[0] != p[1]])


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


class Edges(nn.Module):
    """Maxima and means over edges with directions, of which some lead from a node to itself."""

    def __init__(self):
        super().__init__()
        inner = lambda a, b, c: nn.Sequential(nn.Linear(2 * a, b), nn.ReLU(), nn.Linear(b, c))
        self.one = EdgeConv(inner(FEATURES, 6, 8))
        self.two = EdgeConv(inner(8, 8, 6), aggr="mean")
        self.three = EdgeConv(inner(6, 3, 3), aggr="sum")

    def forward(self):
        h = torch.tanh(self.one(x, directed))
        return self.three(torch.tanh(self.two(h, directed)), directed)


class Attributes(nn.Module):
    """Attention with features of edges, with self loops, which get the mean, and without."""

    def __init__(self):
        super().__init__()
        self.one = GATConv(FEATURES, 4, heads=3, edge_dim=2)
        self.two = GATConv(12, 3, heads=2, concat=False, add_self_loops=False, edge_dim=2)

    def forward(self):
        return self.two(F.elu(self.one(x, undirected, of_both)), undirected, of_both)


class Gine(nn.Module):
    """Sums with features of edges, with directions."""

    def __init__(self):
        super().__init__()
        inner = lambda a, b, c: nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, c))
        self.one = GINEConv(inner(FEATURES, 6, 8), eps=0.3, edge_dim=2)
        self.two = GINEConv(inner(8, 8, 3), eps=0.1, train_eps=True, edge_dim=2)

    def forward(self):
        return self.two(torch.tanh(self.one(x, directed, of_directed)), directed, of_directed)


class Attributed(MessagePassing):
    """EdgeConv with the features of edges beside the two nodes."""

    def __init__(self, nn, aggr):
        super().__init__(aggr=aggr)
        self.nn = nn

    def forward(self, x, edge_index, edge_attr):
        return self.propagate(edge_index, x=x, edge_attr=edge_attr)

    def message(self, x_i, x_j, edge_attr):
        return self.nn(torch.cat([x_i, x_j - x_i, edge_attr], dim=-1))


class Differences(nn.Module):
    """Maxima and means over edges with features."""

    def __init__(self):
        super().__init__()
        inner = lambda a, b, c: nn.Sequential(nn.Linear(2 * a + 2, b), nn.ReLU(), nn.Linear(b, c))
        self.one = Attributed(inner(FEATURES, 6, 8), "max")
        self.two = Attributed(inner(8, 8, 3), "mean")

    def forward(self):
        return self.two(torch.tanh(self.one(x, directed, of_directed)), directed, of_directed)


# Edges as items, in their order: the first ones are trained on, but messages pass along all.
EDGES = 90
rated = both[:EDGES]
EDGES_TRAINED = EDGES - 27
rate = torch.tensor([(at * 29 % 31 - 15) / 7 for at in range(EDGES)])
sort = torch.tensor([at * 7 % 3 for at in range(EDGES)])
lines = ["source,target,when,long,steep,rate,sort"]
lines += [f"n{a},n{b},{at},{features[a, b][0]},{features[a, b][1]},{rate[at].item()},s{sort[at]}" for at, (a, b) in enumerate(rated)]
(folder / "rated.csv").write_text("\n".join(lines) + "\n")
begins, ends = torch.tensor(rated).T
of_rated = torch.tensor([features[p] for p in rated])
known = torch.tensor(rated + [(b, a) for a, b in rated if a != b]).T


class Rated(nn.Module):
    """Numbers of edges, from both nodes and features of the edge."""

    def __init__(self):
        super().__init__()
        self.one, self.two = SAGEConv(FEATURES, 8), SAGEConv(8, 6)
        self.inner, self.head = nn.Linear(14, 5), nn.Linear(5, 1)

    def forward(self):
        h = self.two(torch.tanh(self.one(x, known)), known)
        return self.head(torch.tanh(self.inner(torch.cat([h[begins], h[ends], of_rated], 1))))


class Sorted(nn.Module):
    """Classes of edges, from what both nodes have in common and in what they differ."""

    def __init__(self):
        super().__init__()
        self.one, self.head = GCNConv(FEATURES, 8), nn.Linear(25, 3)

    def forward(self):
        h = torch.tanh(self.one(x, known))
        a, b = h[begins], h[ends]
        return self.head(torch.cat([a * b, a + b, (a - b).abs(), (a * b).sum(1, keepdim=True)], 1))


GRAPHS, TRAINED = 14, 10
sizes = [3 + at * 5 % 4 for at in range(GRAPHS)]
member = torch.tensor([at for at, size in enumerate(sizes) for _ in range(size)])
starts = [sum(sizes[:at]) for at in range(GRAPHS)]
# A path through each graph, and one more edge in every other.
steps = [(start + at, start + at + 1) for start, size in zip(starts, sizes) for at in range(size - 1)]
steps += [(start, start + 2) for start in starts[::2]]
many = torch.tensor(steps + [(b, a) for a, b in steps]).T
many_x = torch.randn(len(member), FEATURES)
answer = torch.arange(GRAPHS) % 2


def graph_rows(graphs):
    lines = ["graph," + ",".join(f"f{at}" for at in range(FEATURES)) + ",kind"]
    for node, graph in enumerate(member.tolist()):
        if graph in graphs:
            lines.append(",".join([f"g{graph}", *map(str, many_x[node].tolist()), f"c{answer[graph]}"]))
    return "\n".join(lines) + "\n"


(folder / "many.csv").write_text(graph_rows(range(TRAINED)))
(folder / "many_valid.csv").write_text(graph_rows(range(TRAINED, GRAPHS)))
(folder / "many_edges.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in steps))


class Pooled(nn.Module):
    """Graphs as rows."""

    def __init__(self, pool):
        super().__init__()
        self.one, self.head = GCNConv(FEATURES, 6), nn.Linear(6, 2)
        if pool == "attention":
            self.pool = AttentionalAggregation(nn.Linear(6, 1))
        else:
            self.pool = {"mean": global_mean_pool, "sum": global_add_pool, "max": global_max_pool}[pool]

    def forward(self):
        return self.head(self.pool(F.relu(self.one(many_x, many)), member))


def train(name, network):
    for parameter in network.parameters():
        parameter.data = parameter.data.float().double()
    state = network.state_dict()
    fixed = [key for key in state if key.endswith("eps") and key not in dict(network.named_parameters())]
    save_file({k: v.clone() for k, v in state.items() if k not in fixed}, folder / f"{name}.safetensors")
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    losses = []
    for _ in range(STEPS):
        output = network()
        if name not in ("rated", "sorted"):
            output = output[: TRAINED if name.startswith("pool") else TRAIN]
        if name == "rated":
            loss = F.mse_loss(output[:EDGES_TRAINED, 0], rate[:EDGES_TRAINED])
        elif name == "sorted":
            loss = F.cross_entropy(output[:EDGES_TRAINED], sort[:EDGES_TRAINED])
        elif name.startswith("pool"):
            loss = F.cross_entropy(output, answer[:TRAINED])
        elif name == "gin":
            loss = F.mse_loss(output[:, 0], amount[:TRAIN])
        else:
            loss = F.cross_entropy(output, kind[:TRAIN])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    (folder / f"{name}.json").write_text(json.dumps(losses))


for name, network in [("gcn", Gcn), ("sage", Sage), ("gat", Gat), ("gin", Gin), ("plain", Plain), ("edges", Edges)]:
    train(name, network())
for pool in ("mean", "sum", "max", "attention"):
    train(f"pool_{pool}", Pooled(pool))
for name, network in [("attributes", Attributes), ("gine", Gine), ("differences", Differences)]:
    train(name, network())
for name, network in [("rated", Rated), ("sorted", Sorted)]:
    train(name, network())
