"""Compares what PyTorch and onnxruntime give with what runner wrote: python3 tests/exchange_check.py FOLDER

FOLDER has a folder for each line of index.txt, with model.py, weights.safetensors, example.json and model.onnx."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

TOLERANCE = 1e-5

torch.set_num_threads(1)
folder = Path(sys.argv[1])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
options.log_severity_level = 3


def module(path):
    spec = importlib.util.spec_from_file_location("model", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def relative(output, expected):
    if output.shape != expected.shape:
        raise ValueError(f"shape {output.shape}, expected {expected.shape}")
    difference = np.abs(output.astype(np.float64) - expected).max()
    return difference / max(np.abs(expected).max(), 1e-30)


def in_torch(case):
    return module(case / "model.py").check()


def in_onnxruntime(case):
    example = json.loads((case / "example.json").read_text())
    kind = np.int64 if isinstance(np.ravel(example["input"])[0].item(), int) else np.float32
    items, expected = np.array(example["input"], kind), np.array(example["output"], np.float32)
    path = str(case / "model.onnx")
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (output,) = session.run(["output"], {"input": items})
    one = session.run(["output"], {"input": items[:1]})[0]
    return max(relative(output, expected), relative(one, expected[:1]))


def main():
    wrong = 0
    names = (folder / "index.txt").read_text().splitlines()
    for number, name in enumerate(names):
        for program, compare in (("PyTorch", in_torch), ("onnxruntime", in_onnxruntime)):
            try:
                error = compare(folder / str(number))
                if error <= TOLERANCE:
                    continue
                found = f"{error:.1e}"
            except Exception as e:
                found = f"{type(e).__name__}: {e}"
            wrong += 1
            print(f"{program}: {name}: {found}")
    print(f"{len(names)} networks, {wrong} wrong")
    return 1 if wrong or not names else 0


sys.exit(main())
