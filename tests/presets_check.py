"""Compares presets with torchvision's networks, and with networks as in the papers, with the same weights:
python3 tests/presets_check.py FOLDER

FOLDER has a folder for each preset, as `runner export pytorch` writes it. Tensors of both networks have the same order."""

import importlib.util
import json
import sys
from pathlib import Path

import torch
from reference_networks import PRESETS, tensors

TOLERANCE = 1e-5
folder = Path(sys.argv[1])
torch.set_num_threads(1)


def main():
    wrong = 0
    for name, build in PRESETS.items():
        spec = importlib.util.spec_from_file_location("model", folder / name / "model.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        ours, theirs = tensors(module.load()), build()
        names = tensors(theirs)
        if [v.squeeze().shape for v in ours.values()] != [v.squeeze().shape for v in names.values()]:
            pairs = [(a, tuple(v.shape), b, tuple(w.shape)) for (a, v), (b, w) in zip(ours.items(), names.items())
                     if v.squeeze().shape != w.squeeze().shape]
            print(f"{name}: {len(ours)} tensors for {len(names)}; {pairs[:3]}")
            wrong += 1
            continue
        values = {key: value.reshape(names[key].shape) for key, value in zip(names, ours.values())}
        theirs.load_state_dict(values, strict=False)
        example = json.loads((folder / name / "example.json").read_text())
        items, expected = torch.tensor(example["input"]), torch.tensor(example["output"])
        with torch.no_grad():
            output = theirs.eval()(items)
        error = ((output - expected).abs().max() / expected.abs().max()).item()
        # Biases alone would give equal outputs for all items.
        spread = ((output - output.roll(1, 0)).abs().max() / expected.abs().max()).item()
        print(f"{name}: largest relative difference {error:.1e}, and {spread:.1e} between items")
        wrong += not (error <= TOLERANCE and spread >= 100 * error)
    return 1 if wrong else 0


sys.exit(main())
