"""Compares what an exported module gives for rows.jsonl, with lists of different lengths, with predicted.csv:
python3 tests/lists_check.py FOLDER MODULE"""

import csv
import json
import sys
from pathlib import Path

import torch

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder / sys.argv[2]))
from model import decode, encode, load

rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
with open(folder / "predicted.csv") as file:
    expected = torch.tensor([float(row["age"]) for row in csv.DictReader(file)], dtype=torch.float64)
kind = sys.argv[2].split("_")[1]


def given(rows):
    """What `encode` takes: with named inputs and features rows, with tokens alone lists."""
    return [row["tokens"] for row in rows] if kind == "tokens" else rows


def outputs(rows):
    encoded = encode(given(rows))
    with torch.no_grad():
        return decode(load()(*(encoded if isinstance(encoded, tuple) else [encoded]))).flatten()


together = outputs(rows)
alone = torch.cat([outputs([row]) for row in rows])
for found in (together, alone):
    apart = ((found - expected).abs() / expected.abs().max()).max().item()
    assert apart < 1e-5, (kind, apart)
too_long = [{**rows[0], "tokens": [1] * 9, "series": [1.0] * 9}]
try:
    outputs(too_long)
except ValueError as error:
    assert "at most" in str(error), error
else:
    raise SystemExit("a list that is too long is taken")
