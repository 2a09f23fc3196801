"""Compares predictions of runner with those of exported modules and graphs: python3 tests/decoded_check.py FOLDER

The folder has a folder for each case, with `module`, `model.onnx`, `predictions.jsonl`, and the data as `rows.csv` or `items.npy`.
"""

import csv
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import torch

for case in sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir()):
    spec = importlib.util.spec_from_file_location(case.name, case / "module" / "model.py")
    model = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(model)
    assert model.check() <= 1e-5, case
    session = onnxruntime.InferenceSession(str(case / "model.onnx"))
    inputs = {input.name: input.type for input in session.get_inputs()}
    if (case / "rows.csv").exists():
        rows = list(csv.DictReader((case / "rows.csv").open()))
        number = lambda text: float(text) if text else None  # noqa: E731
        items = [{name: text if name == "color" else number(text) for name, text in row.items()} for row in rows]
        feeds = {
            name: np.array([[row[name]] for row in rows], object)
            if type == "tensor(string)"
            else np.array([[float(row[name] or "nan")] for row in rows], np.float32)
            for name, type in inputs.items()
        }
    else:
        items = np.load(case / "items.npy")
        columns = items.reshape(len(items), -1).astype(np.float32)
        feeds = {
            name: items.astype(np.float32) if len(inputs) == 1 else columns[:, [at]] for at, name in enumerate(inputs)
        }
        # Numbers that are scaled each for themselves are those of a column.
        if "def encode(rows)" in (case / "module" / "model.py").read_text():
            items = [{"input": item.tolist()} for item in items]
    with torch.no_grad():
        decoded = model.decode(model.load()(model.encode(items)))
    predicted = [json.loads(line) for line in (case / "predictions.jsonl").read_text().splitlines()]
    numbers = lambda key: torch.tensor(  # noqa: E731
        [list(line[key].values()) if isinstance(line[key], dict) else line[key] for line in predicted],
        dtype=torch.float64,
    )
    if isinstance(decoded, tuple):
        pairs = list(zip(decoded, (numbers("prediction"), numbers("deviation"))))
    else:
        (key,) = {"prediction", "probabilities", "scores", "values"} & {
            key for key, value in predicted[0].items() if isinstance(value, (dict, list))
        }
        pairs = [(decoded, numbers(key))]
    outputs = [output.name for output in session.get_outputs() if output.name != "class"]
    found = session.run(outputs, feeds)
    assert outputs == (["output", "deviation"] if len(pairs) == 2 else outputs[:1]), (case, outputs)
    pairs += [(torch.from_numpy(output), expected) for output, (_, expected) in zip(found, pairs)]
    for found, expected in pairs:
        found = found.double().flatten(1)
        assert found.shape == expected.shape, (case, found.shape, expected.shape)
        scale = expected.abs().max().clamp(min=1e-30)
        assert ((found - expected).abs().max() / scale).item() <= 1e-5, (case, found[:3], expected[:3])
    print(case.name)
