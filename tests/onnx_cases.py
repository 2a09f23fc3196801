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


def beside():
    """Graphs in which a node that does nothing stands beside another use of the same layer, and constants of every kind."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    random = np.random.default_rng(1)
    x = random.normal(size=(4, 5)).astype(np.float32)
    weight = random.normal(size=(5, 6)).astype(np.float32)
    some = random.normal(size=6).astype(np.float32)
    one, zero = np.float32(1.0), np.float32(0.0)
    row = np.arange(6, dtype=np.float32)
    large = np.array([16777216] * 3 + [16777217] * 3)
    nothing = {
        "slice": ("Slice", [np.array([0]), np.array([6]), np.array([1])]),
        "gather": ("Gather", [np.arange(6)]),
        "times": ("Mul", [one]),
        "plus": ("Add", [zero]),
        "by": ("Div", [one]),
        "pad": ("Pad", [np.zeros(4, dtype=np.int64)]),
        "expand": ("Expand", [np.array([1, 6])]),
        "tile": ("Tile", [np.array([1, 1])]),
        "concat": ("Concat", []),
        "mean": ("Mean", []),
        "identity": ("Identity", []),
    }
    constants = {
        "max": [("Max", [row - 3, -row, np.full(6, 0.5, np.float32)])],
        "min": [("Min", [row - 3, -row, np.full(6, -2.5, np.float32)])],
        "sum": [("Sum", [row, row, row])],
        "mean": [("Mean", [row, row, row * 4])],
        "equal": [("Equal", [large, large[::-1].copy()]), ("Cast", [])],
        "wrapped": [("Cast", [np.arange(6) * 100], {"to": 3}), ("Cast", [])],
        "half": [("Cast", [row / 3], {"to": 10}), ("Cast", [])],
        "power": [("Pow", [np.arange(6), np.full(6, 0.5, np.float32)]), ("Cast", [])],
    }

    def made(name, nodes, values, listed=False):
        value = lambda name: helper.make_tensor_value_info(name, 1, None)
        known = [numpy_helper.from_array(np.asarray(array), name) for name, array in values.items()]
        inputs = [helper.make_tensor_value_info("x", 1, [4, 5])]
        # Files before version 4 list the constants, too.
        inputs += [helper.make_tensor_value_info(it.name, it.data_type, it.dims) for it in known if listed]
        graph = helper.make_graph(nodes, name, inputs, [value("y")], known)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        onnx.save(model, folder / f"{name}.onnx")
        expected = ReferenceEvaluator(model).run(None, {"x": x, **values} if listed else {"x": x})
        return case("beside", name, f"{name}.onnx", model, [x], expected)

    dense = helper.make_node("MatMul", ["x", "w"], ["u"])
    for name, (operator, arrays) in nothing.items():
        attributes = {"axis": 1} if operator in ("Gather", "Concat") else {}
        values = {"w": weight, "v": some} | {f"c{at}": array for at, array in enumerate(arrays)}
        inputs = ["u", *(f"c{at}" for at in range(len(arrays)))]
        for end in ("Mul", "Add"):
            nodes = [
                dense,
                helper.make_node(operator, inputs, ["s"], **attributes),
                helper.make_node("Add", ["s", "v"], ["t"]),
                helper.make_node(end, ["t", "u"], ["y"]),
            ]
            yield made(f"{name}_{end}", nodes, values)
    for name, steps in constants.items():
        nodes, values, last = [dense], {"w": weight}, []
        for at, (operator, arrays, *attributes) in enumerate(steps):
            names = [f"c{at}_{place}" for place in range(len(arrays))]
            values |= dict(zip(names, arrays))
            settings = attributes[0] if attributes else {"to": 1} if operator == "Cast" else {}
            nodes.append(helper.make_node(operator, [*last, *names], [f"k{at}"], **settings))
            last = [f"k{at}"]
        nodes.append(helper.make_node("Mul", ["u", *last], ["y"]))
        yield made(f"constant_{name}", nodes, values)
    hidden = {"w": weight, "m": np.array([True, False] * 3), "n": np.float32(-1e9), "e": np.float32(1e-9)}
    masked = [dense, helper.make_node("Where", ["m", "u", "n"], ["h"])]
    yield made("hidden", [*masked, helper.make_node("Mul", ["h", "e"], ["y"])], hidden)
    yield made("hidden_softmax", [*masked, helper.make_node("Softmax", ["h"], ["y"])], hidden)
    square = {"w": random.normal(size=(5, 36)).astype(np.float32), "s": np.array([4, 6, 6]), "two": np.float32(2), "e": np.float32(1e-5)}
    square |= {"last": np.array([2]), "middle": np.array([1])}
    for norm in ("rms", "layer"):
        for axis in ("last", "middle"):
            center = [
                helper.make_node("ReduceMean", ["q", "last"], ["a"], keepdims=0),
                helper.make_node("Unsqueeze", ["a", axis], ["b"]),
                helper.make_node("Sub", ["q", "b"], ["z"]),
            ]
            nodes = [
                dense,
                helper.make_node("Reshape", ["u", "s"], ["q"]),
                *(center if norm == "layer" else [helper.make_node("Identity", ["q"], ["z"])]),
                helper.make_node("Pow", ["z", "two"], ["p"]),
                helper.make_node("ReduceMean", ["p", "last"], ["m"], keepdims=0),
                helper.make_node("Unsqueeze", ["m", axis], ["n"]),
                helper.make_node("Add", ["n", "e"], ["o"]),
                helper.make_node("Sqrt", ["o"], ["r"]),
                helper.make_node("Div", ["z", "r"], ["y"]),
            ]
            yield made(f"{norm}_{axis}", nodes, square)
    halved = [
        dense,
        helper.make_node("Reshape", ["u", "s"], ["q"]),
        helper.make_node("Div", ["q", "two"], ["y"]),
    ]
    yield made("listed", halved, {"w": weight, "s": np.array([4, 6]), "two": np.float32(2)}, listed=True)
    like = [dense, helper.make_node("CastLike", ["k", "u"], ["l"]), helper.make_node("Mul", ["u", "l"], ["y"])]
    yield made("like", like, {"w": weight, "k": np.int64(3)})
    tiny = [helper.make_node("Mul", ["x", "f"], ["d"]), helper.make_node("LpNormalization", ["d"], ["y"])]
    yield made("tiny", tiny, {"f": np.float32(1e-16)})


with open(folder / "cases.jsonl", "w") as lines:
    for suite in suites:
        if suite == "beside":
            lines.writelines(beside())
            continue
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
