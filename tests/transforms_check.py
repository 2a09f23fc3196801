"""Runs rows of data through an exported model.py and model.onnx: python3 tests/transforms_check.py FOLDER"""

import importlib.util
import json
import math
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder / "module"))
import model  # noqa: E402

# Compares what `encode` makes of the rows with what runner made of them, too.
assert model.check() <= 1e-5
example = json.loads((folder / "module" / "example.json").read_text())
rows = example["rows"]
sets = [rows, [dict(row, size=None) for row in rows], [dict(row, color=None) for row in rows]]
# With what means missing in the file of the training.
marked = [rows, [dict(row, size=-1) for row in rows], [dict(row, color="none") for row in rows]]
with torch.no_grad():
    expected = [model.load()(model.encode(some)).softmax(1).numpy() for some in sets]
    as_marked = [model.load()(model.encode(some)).softmax(1).numpy() for some in marked]
assert np.array_equal(expected, as_marked)
assert all(np.abs(expected[0] - other).max() > 1e-3 for other in expected[1:])

path = str(folder / "model.onnx")
onnx.checker.check_model(path, full_check=True)
session = onnxruntime.InferenceSession(path)
for some, probabilities in zip(sets + marked, expected + as_marked):
    inputs = {
        "size": np.array([[np.nan if row["size"] is None else row["size"]] for row in some], np.float32),
        "color": np.array([[row["color"] or ""] for row in some], object),
    }
    assert {value.name for value in session.get_inputs()} == set(inputs)
    found, names = session.run(["probabilities", "class"], inputs)
    assert np.abs(found - probabilities).max() <= 1e-5, (found, probabilities)
    assert names.tolist() == [model.CLASSES[place] for place in probabilities.argmax(1)]


# The same network, whose run refuses missing values.
def refuses(rows, column):
    try:
        strict.encode(rows)
    except ValueError as error:
        return column in str(error)
    return False


spec = importlib.util.spec_from_file_location("strict", folder / "strict" / "model.py")
strict = importlib.util.module_from_spec(spec)
spec.loader.exec_module(strict)
assert strict.check() <= 1e-5
rows = json.loads((folder / "strict" / "example.json").read_text())["rows"]
for column, nothing in [("size", None), ("size", math.nan), ("size", -1), ("color", None), ("color", "none")]:
    assert refuses([rows[0], dict(rows[1], **{column: nothing})], f"'{column}'"), (column, nothing)
with torch.no_grad():
    whole = strict.load()(strict.encode(rows)).softmax(1).numpy()
path = str(folder / "strict.onnx")
onnx.checker.check_model(path, full_check=True)
session = onnxruntime.InferenceSession(path)
for column, nothing in [("size", math.nan), ("size", -1), ("color", ""), ("color", "none"), (None, None)]:
    inputs = {
        "size": np.array([[row["size"]] for row in rows], np.float32),
        "color": np.array([[row["color"]] for row in rows], object),
    }
    if column:
        inputs[column][1, 0] = nothing
    found, names = session.run(["probabilities", "class"], inputs)
    kept = [0, 2] if column else [0, 1, 2]
    assert np.abs(found[kept] - whole[kept]).max() <= 1e-5, (found, whole)
    assert not column or np.isnan(found[1]).all() and names[1] == "", (column, found, names)

# Every row of the file, whose categories are numbers there, and some of whose numbers in lists mean missing.
spec = importlib.util.spec_from_file_location("rates", folder / "rates" / "model.py")
rates = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rates)
assert rates.check() <= 1e-5
rows = [json.loads(line) for line in (folder / "rates.jsonl").read_text().splitlines()]
encoded = rates.encode(rows)
assert (encoded[:, :5].sum(1) == 1).all() and len(encoded[:, :5].unique(dim=0)) == 5, encoded
plain = [dict(row, of=[None if number in (-999, 0.1) else number for number in row["of"]]) for row in rows]
assert torch.equal(encoded, rates.encode(plain)) and len(encoded[:, 7].unique()) == 3, encoded
with torch.no_grad():
    probabilities = rates.load()(encoded).softmax(1).numpy()
session = onnxruntime.InferenceSession(str(folder / "rates.onnx"))
names = ["0.00001" if row["rate"] == 1e-5 else str(int(row["rate"])) if row["rate"] >= 1 else str(row["rate"]) for row in rows]
inputs = {
    "rate": np.array(names, object)[:, None],
    "step": np.array([[row["step"]] for row in rows], object),
    "of": np.array([[np.nan if number is None else number for number in row["of"]] for row in rows], np.float32),
}
found, _ = session.run(["probabilities", "class"], inputs)
assert np.abs(found - probabilities).max() <= 1e-5, (found, probabilities)
# An unknown category has no number, which a run refuses.
inputs["step"][0] = "d"
found, names = session.run(["probabilities", "class"], inputs)
assert np.isnan(found[0]).all() and names[0] == "" and names[1] != "", (found, names)
