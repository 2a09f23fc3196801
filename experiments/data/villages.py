#!/usr/bin/env python3
"""Writes villages.csv and villages_roads.csv: villages, and the roads between neighbors, for `villages.toml`.

Each village has a place on a map of 10 by 10, which is not in the file, and roads to villages nearby: the closer they
are, the more likely is one. Known are its height, its distance from the coast and its temperature, all measured badly,
and its people. The same files come out on every machine."""

from pathlib import Path

NUM = 300


class Draw:
    """A linear congruential generator."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % limit

    def around(self, width):
        """A number around 0, like a normal one with a deviation of `width`."""
        return width * (sum(self.below(1001) for _ in range(12)) / 1000 - 6)


draw = Draw(7)
places = [(draw.below(1000) / 100, draw.below(1000) / 100) for _ in range(NUM)]
nodes, roads = ["village,height,coast,temperature,people"], ["source,target,kilometers"]
for at, (x, y) in enumerate(places):
    height = 80 * (x - 5) * (y - 5) / 5 + draw.around(60)
    coast = 10 - x + draw.around(1.2)
    temperature = 8 + 0.9 * y - height / 150 + draw.around(1.5)
    nodes.append(f"v{at:03},{height:.0f},{coast:.1f},{temperature:.1f},{20 + draw.below(2000)}")
for a in range(NUM):
    for b in range(a + 1, NUM):
        squared = sum((p - q) ** 2 for p, q in zip(places[a], places[b]))
        if draw.below(1000) < 950 / (1 + squared / 2) ** 5:
            length = squared**0.5 * (1 + draw.below(600) / 1000)
            roads.append(f"v{a:03},v{b:03},{length:.2f}")
folder = Path(__file__).parent
(folder / "villages.csv").write_text("\n".join(nodes) + "\n")
(folder / "villages_roads.csv").write_text("\n".join(roads) + "\n")
