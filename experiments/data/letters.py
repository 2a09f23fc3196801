#!/usr/bin/env python3
"""Writes letters.txt: short letters of an invented customs office, for `harbour_lora.toml`.

They have the harbour of harbour.txt in common, and another tone. All sentences were written for this repository, and
the same text comes out on every machine.
"""

from pathlib import Path

SIZE = 14_000


class Draw:
    """A linear congruential generator."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % limit

    def of(self, items):
        return items[self.below(len(items))]


DRAW = Draw(7)

BOATS = ["the ferry", "the pilot's gig", "the mail packet", "a barge of bricks", "the blue cutter", "a herring boat"]
GOODS = ["barley", "tarred rope", "grey canvas", "lamp oil", "dried eels", "green paint", "honey", "willow rods"]
PLACES = ["the quay", "the salt shed", "the lower slip", "the fish market", "the breakwater", "the mill bridge"]
FAULTS = ["no seal", "two seals", "a torn label", "the wrong weight", "no owner", "a stamp from last year"]
DUTIES = ["two coppers a sack", "one shilling a barrel", "half a crown", "nothing at all", "the usual tenth"]
NAMES = ["Lene", "Kaspar", "Doctor Roon", "Aunt Sofie", "Jonas", "Greta", "Piet"]
DAYS = ["Monday", "Tuesday", "Thursday", "Friday"]


def number():
    return str(3 + DRAW.below(40))


def letter():
    goods, boat = DRAW.of(GOODS), DRAW.of(BOATS)
    sentences = [
        f"Dear {DRAW.of(NAMES)}, we beg to report that {boat} landed {number()} sacks of {goods} at {DRAW.of(PLACES)}.",
        f"Dear {DRAW.of(NAMES)}, with reference to yours of {DRAW.of(DAYS)}, the {goods} is still held at {DRAW.of(PLACES)}.",
        f"Dear {DRAW.of(NAMES)}, kindly note that {boat} was searched on {DRAW.of(DAYS)} and found to carry {goods}.",
    ]
    middle = [
        f"Of these, {number()} had {DRAW.of(FAULTS)} and were set aside.",
        f"The duty is {DRAW.of(DUTIES)}, payable before {DRAW.of(DAYS)}.",
        f"The master could show no papers for the {DRAW.of(GOODS)}.",
        f"We must ask you to call in person at {DRAW.of(PLACES)}.",
        f"The clerk has counted them twice and makes it {number()}.",
        f"Should the {goods} be spoiled, the office cannot be held to account.",
    ]
    lines = [DRAW.of(sentences)]
    for _ in range(2 + DRAW.below(2)):
        lines.append(DRAW.of(middle))
    lines.append(DRAW.of(["Your obedient servant, the customs house.", "Yours faithfully, the customs house."]))
    return " ".join(lines)


def main():
    text = ""
    while len(text) < SIZE:
        text += letter() + "\n"
    (Path(__file__).parent / "letters.txt").write_text(text)


main()
