#!/usr/bin/env python3
"""Writes flats.csv: invented flats with their rents, for `experiments/flats.toml`.

The rent follows from the area, the age, the district, the kind of building and what the note says,
with noise of standard deviation 40. The same file comes out on every machine: the numbers are those
of a small generator of its own, not of Python's `random`.
"""

from pathlib import Path

ROWS = 600


class Draw:
    """A linear congruential generator."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % limit

    def of(self, items):
        return items[self.below(len(items))]


DRAW = Draw(2026)

# Rent in addition to that of the area.
DISTRICTS = {
    "Harbour": 260,
    "Hill": 180,
    "Market": 120,
    "Mill": 0,
    "Orchard": -60,
    "Quarry": -150,
    "Station": -220,
}
# A loft is worth more only near the water.
BUILDINGS = {"block": 0, "loft": 0, "villa": 140}
WORDS = {
    "bright": 70,
    "quiet": 60,
    "renovated": 120,
    "dark": -80,
    "noisy": -90,
    "draughty": -60,
}
OPENINGS = ["a flat", "this flat is", "rooms", "a home"]
ENDINGS = ["near the park", "with a long view", "in a side street", "above a bakery", "by the tram"]


def row():
    area, year = 25 + DRAW.below(120), 1900 + DRAW.below(124)
    district, building = DRAW.of(list(DISTRICTS)), DRAW.of(list(BUILDINGS))
    first, second = DRAW.of(list(WORDS)), DRAW.of(list(WORDS))
    note = f"{DRAW.of(OPENINGS)} {first} and {second} {DRAW.of(ENDINGS)}"
    rent = 200 + 9 * area + (year - 1960) + DISTRICTS[district] + BUILDINGS[building]
    rent += WORDS[first] + (WORDS[second] if second != first else 0)
    if building == "loft":
        rent += 220 if district in ("Harbour", "Mill") else -80
    # The sum of twelve uniform numbers is nearly normal.
    noise = sum(DRAW.below(10_001) for _ in range(12)) / 10_000 - 6
    return f"{area},{year},{district},{building},{note},{rent + 40 * noise:.0f}"


def main():
    lines = ["area,year,district,building,note,rent"] + [row() for _ in range(ROWS)]
    place = Path(__file__).with_name("flats.csv")
    place.write_text("\n".join(lines) + "\n", newline="\n")


if __name__ == "__main__":
    main()
