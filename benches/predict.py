"""Predictions of the shipped experiments by runner, PyTorch and onnxruntime, on the processor in f32 with 2 threads each.

    python3 benches/predict.py RUNNER [--rounds 5] [--seconds 0.7] [NETWORK...]

Needs torch, numpy, safetensors, onnx and onnxruntime in the Python that it is run with, and installs nothing. Every side
reads items from an `.npy` file, applies the transforms of the run, computes in batches of 1 or 256, and writes the
probabilities to an `.npy` file. Runner's time is that of `runner predict` for many items less that for few, so that the
start of the process does not count; PyTorch and onnxruntime run in this process, with what `runner export` wrote. The
sides take turns. Rows have items a second: medians of the rounds, with the least and the largest, and ratios of the
fastest rounds. In the end, the start is measured: one row of a table from the command to its prediction.
"""

import argparse
import importlib.util
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnxruntime
import torch

from predicted import EXPERIMENTS, NETWORKS, SHORT, items, shown

THREADS = 2
BATCHES = [1, 256]
# The items of the run that only has runner's start.
FEW = 256


def run(arguments, *command, **keys):
    environment = os.environ | {"RAYON_NUM_THREADS": str(THREADS)}
    command = [os.path.abspath(arguments.runner), *map(str, command)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, **keys)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    return done


def train(arguments, folder, experiment, edits):
    """The folder of a run of an experiment, trained for a little while."""
    sets = [word for edit in SHORT + edits for word in ("--set", edit)]
    run(arguments, "run", EXPERIMENTS / f"{experiment}.toml", "--jobs", 1, "--quiet", *sets, cwd=folder)
    return folder / "results" / experiment


class Runner:
    name = "runner"

    def __init__(self, arguments, trained):
        self.arguments, self.trained = arguments, trained

    def predict(self, data, batch, out):
        run(self.arguments, "predict", self.trained, "--data", data, "--batch-size", batch, "--out", out, "--force")

    def seconds(self, data, few, batch, out):
        started = time.perf_counter()
        self.predict(data, batch, out)
        whole = time.perf_counter()
        self.predict(few, batch, out.with_name("few.npy"))
        return whole - started - (time.perf_counter() - whole)


class Peer:
    """A peer in this process: what it computes for a batch, with PyTorch's transforms."""

    def __init__(self, model):
        self.model = model

    def seconds(self, data, few, batch, out):
        num = len(numpy.load(few, mmap_mode="r"))
        started = time.perf_counter()
        items = numpy.load(data, mmap_mode="r")[num:]
        parts = []
        with torch.inference_mode():
            for at in range(0, len(items), batch):
                values = self.model.encode(numpy.array(items[at : at + batch]))
                parts.append(self.compute(values))
        numpy.save(out, numpy.concatenate(parts))
        return time.perf_counter() - started


class PyTorch(Peer):
    name = "PyTorch"

    def __init__(self, model):
        super().__init__(model)
        self.network = model.load()

    def compute(self, values):
        return self.network(values).softmax(1).numpy()


class Onnx(Peer):
    name = "onnxruntime"

    def __init__(self, model, path):
        super().__init__(model)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        (self.input,) = self.session.get_inputs()

    def compute(self, values):
        (scores,) = self.session.run(None, {self.input.name: values.numpy()})
        scores = numpy.exp(scores - scores.max(1, keepdims=True))
        return scores / scores.sum(1, keepdims=True)


def sides_of(arguments, folder, experiment, edits):
    trained = train(arguments, folder, experiment, edits)
    module, graph = folder / f"{experiment}_pytorch", folder / f"{experiment}.onnx"
    run(arguments, "export", "pytorch", trained, "--out", module)
    run(arguments, "export", "onnx", trained, "--out", graph)
    spec = importlib.util.spec_from_file_location(experiment, module / "model.py")
    model = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(model)
    return [Runner(arguments, trained), PyTorch(model), Onnx(model, graph)]


def compare(arguments, folder, sides, batch):
    """Items a second of each side in each round. Each has as many items as it needs to take some time."""
    onnx = sides[2]
    shape, kind = onnx.input.shape[1:], onnx.input.type
    few = folder / "few_items.npy"
    numpy.save(few, items(shape, kind, FEW))
    nums = {}

    def measured(side):
        data = folder / f"{side.name}_items.npy"
        return side.seconds(data, few, batch, folder / f"{side.name}.npy")

    for side in sides:
        num = 16 * batch
        while True:
            numpy.save(folder / f"{side.name}_items.npy", items(shape, kind, FEW + num))
            least = min(measured(side), measured(side))
            if least >= 0.7 * arguments.seconds or num >= 1 << 20:
                break
            num = int(num * min(8.0, 1.1 * arguments.seconds / max(least, 1e-3))) // batch * batch + batch
        nums[side.name] = num
    found = [numpy.load(folder / f"{side.name}.npy") for side in sides]
    found[0] = found[0][FEW:]
    for side, other in zip(sides[1:], found[1:]):
        num = min(len(found[0]), len(other))
        difference = numpy.abs(found[0][:num] - other[:num]).max()
        if not difference < 1e-4:
            raise SystemExit(f"{side.name} and runner differ by {difference}")
    rates = {side.name: [] for side in sides}
    for at in range(arguments.rounds):
        for side in sides[at % 3 :] + sides[: at % 3]:
            # Threads of the side before may still be spinning.
            time.sleep(0.3)
            rates[side.name].append(nums[side.name] / measured(side))
    return rates


def cold(arguments, folder):
    """Seconds from the command to the prediction of one row."""
    trained = train(arguments, folder, "iris_csv", ["sweep.grid={}"])
    rows = (EXPERIMENTS / "data/iris.csv").read_text().splitlines()[:2]
    (folder / "one.csv").write_text("\n".join(rows) + "\n")
    times = []
    for _ in range(21):
        started = time.perf_counter()
        run(arguments, "predict", trained, "--data", folder / "one.csv")
        times.append(time.perf_counter() - started)
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runner")
    parser.add_argument("networks", nargs="*", help=", ".join(NETWORKS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.7)
    arguments = parser.parse_intermixed_args()
    torch.set_num_threads(THREADS)
    print("| network | batch | runner | PyTorch | onnxruntime | fastest rounds: runner / PyTorch | runner / onnxruntime |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in arguments.networks or NETWORKS:
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            sides = sides_of(arguments, folder, *NETWORKS[name])
            for batch in BATCHES:
                rates = compare(arguments, folder, sides, batch)
                # Rounds that others interrupted are slower.
                of = {side: max(each) for side, each in rates.items()}
                ratios = [of["runner"] / of[side] for side in ("PyTorch", "onnxruntime")]
                cells = [shown(rates[side]) for side in ("runner", "PyTorch", "onnxruntime")]
                print(f"| {name} | {batch} | {' | '.join(cells)} | {ratios[0]:.2f} | {ratios[1]:.2f} |", flush=True)
    with tempfile.TemporaryDirectory() as place:
        times = cold(arguments, pathlib.Path(place))
        middle = 1e3 * statistics.median(times)
        print(f"one row from the command line: {middle:.0f} ms ({1e3 * min(times):.0f} to {1e3 * max(times):.0f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
