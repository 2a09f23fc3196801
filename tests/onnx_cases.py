"""Copies ONNX's own models into FOLDER, with their inputs and expected outputs as JSON lines in FOLDER/cases.jsonl:
python onnx_cases.py FOLDER SUITE..."""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

folder, suites = Path(sys.argv[1]), [Path(name).name for name in sys.argv[2:]]
data = Path(os.path.dirname(onnx.__file__)) / "backend/test/data"


def tensor(path):
    message = onnx.TensorProto()
    message.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(message)


def described(array):
    values = np.asarray(array, dtype=np.float64).flatten()
    return {"shape": list(array.shape), "values": [float(value) if np.isfinite(value) else None for value in values]}


def case(suite, name, file, model, inputs, outputs):
    initial = {value.name for value in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in initial]
    operators = sorted({node.op_type for node in model.graph.node})
    return json.dumps({
        "suite": suite,
        "name": name,
        "file": file,
        "operators": operators,
        "inputs": [{"name": name, **described(array)} for name, array in zip(names, inputs)],
        "outputs": [
            {"name": value.name, **described(array)} for value, array in zip(model.graph.output, outputs)
        ],
    }) + "\n"


def numbered(path, kind):
    files = sorted(path.glob(f"{kind}_*.pb"), key=lambda file: int(file.stem.split("_")[1]))
    return [tensor(file) for file in files]


def operators():
    """The cases of single operators that ONNX generates: the first input is given, the others are constants."""
    from onnx.backend.test.case.node import collect_testcases

    for made in collect_testcases(None):
        model, (inputs, outputs) = made.model, made.data_sets[0]
        kinds = [value.type.tensor_type.elem_type for value in [*model.graph.input[:1], *model.graph.output]]
        versions = {opset.domain: opset.version for opset in model.opset_import}
        is_plain = set(kinds) == {1} and len(model.graph.output) == 1 and versions.get("", 99) <= 26
        if not is_plain or not inputs or not all(isinstance(array, np.ndarray) for array in inputs):
            continue
        for value, array in zip(model.graph.input[1:], inputs[1:]):
            model.graph.initializer.append(numpy_helper.from_array(array, value.name))
        del model.graph.input[1:]
        onnx.save(model, folder / f"{made.name}.onnx")
        yield case("node", made.name, f"{made.name}.onnx", model, inputs[:1], outputs)


with open(folder / "cases.jsonl", "w") as lines:
    for suite in suites:
        if suite == "node":
            lines.writelines(operators())
            continue
        if suite == "light":
            for path in sorted((data / suite).glob("*.onnx")):
                model = onnx.load(path)
                initial = {value.name for value in model.graph.initializer}
                value = next(value for value in model.graph.input if value.name not in initial)
                shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
                size = int(np.prod(shape))
                # As onnx.backend.test.runner makes it.
                given = (np.arange(size).astype(np.float32) / size).reshape(shape)
                output = tensor(path.with_name(path.stem + "_output_0.pb"))
                shutil.copy(path, folder / path.name)
                lines.write(case(suite, path.stem, path.name, model, [given], [output]))
            continue
        for path in sorted((data / suite).iterdir()):
            sets = path / "test_data_set_0"
            file = f"{suite}_{path.name}.onnx"
            shutil.copy(path / "model.onnx", folder / file)
            model = onnx.load(path / "model.onnx")
            lines.write(case(suite, path.name, file, model, numbered(sets, "input"), numbered(sets, "output")))
