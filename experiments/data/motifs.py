#!/usr/bin/env python3
"""Writes motifs.csv and motifs_edges.csv: random trees with an added motif, for `motifs.toml`.

Each graph is a random tree of 6 to 12 nodes to which a triangle or a square is attached: the class is the motif. A node
knows only how many neighbors it has. The same files come out on every machine."""

from pathlib import Path

NUM_GRAPHS = 300


class Draw:
    """A linear congruential generator."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % limit


draw = Draw(11)
nodes, edges = ["graph,degree,motif"], ["source,target"]
first = 0
for graph in range(NUM_GRAPHS):
    size, corners = 6 + draw.below(7), 3 + graph % 2
    own = [(draw.below(node), node) for node in range(1, size)]
    ring = list(range(size, size + corners))
    own += list(zip(ring, ring[1:] + ring[:1]))
    own.append((draw.below(size), ring[0]))
    degrees = [sum(node in edge for edge in own) for node in range(size + corners)]
    motif = ["triangle", "square"][corners - 3]
    nodes += [f"{graph},{degree},{motif}" for degree in degrees]
    edges += [f"{first + a},{first + b}" for a, b in own]
    first += size + corners
folder = Path(__file__).parent
(folder / "motifs.csv").write_text("\n".join(nodes) + "\n")
(folder / "motifs_edges.csv").write_text("\n".join(edges) + "\n")
