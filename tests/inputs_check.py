"""Runs rows through an exported model.py and model.onnx with named inputs: python3 tests/inputs_check.py FOLDER

Where there is a graph with transforms, arrays of untransformed data are run through that instead.
"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from safetensors.numpy import load_file

folder = Path(sys.argv[1])
if (folder / "whole.onnx").exists():
    session = onnxruntime.InferenceSession(str(folder / "whole.onnx"))
    arrays = load_file(folder / "new.safetensors")
    names = [given.name for given in session.get_inputs()]
    assert names == ["weather", "place", "tokens"], names
    [found] = session.run(["probabilities"], {name: arrays[name] for name in names})
    lines = (folder / "predictions.csv").read_text().splitlines()[1:]
    expected = np.array([[float(value) for value in line.split(",")[3:]] for line in lines])
    assert np.abs(found - expected).max() <= 1e-5, (found, expected)
    sys.exit()
sys.path.insert(0, str(folder / "module"))
import model  # noqa: E402

# Compares what `encode` makes of the rows with what runner made of them, too.
assert model.check() <= 1e-5
rows = json.loads((folder / "module" / "example.json").read_text())["rows"]
# Another batch size than the example's.
items = model.encode(rows + rows[:1])
assert [item.dtype for item in items] == [torch.float32, torch.int64, torch.int64], items
network = model.load()
with torch.no_grad():
    expected = network(*items).numpy()
    named = network(measures=items[0], place=items[1], text=items[2]).numpy()
assert (expected == named).all()
session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
types = {given.name: given.type for given in session.get_inputs()}
wanted = {"measures": "tensor(float)", "place": "tensor(int64)", "text": "tensor(int64)"}
assert types == wanted, types
names = ["measures", "place", "text"]
[found] = session.run(["output"], {name: item.numpy() for name, item in zip(names, items)})
assert np.abs(found - expected).max() <= 1e-5, (found, expected)
