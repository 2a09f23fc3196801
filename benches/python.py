"""Predictions from NumPy beside those of Rust alone, on the processor in f32, in batches of 256.

    python3 benches/python.py [--rounds 9] [--items 25600] [NETWORK...]

Needs the package burn_runner in the Python that it is run with, and installs nothing. `Model.predict` of an array is
measured with all that Python does, from the array to arrays of probabilities. Rust alone is the same pass over the same
array without the interpreter. The sides take turns. Rows have items a second: medians of the rounds, with the least and
the largest, and the ratio of the fastest rounds. In the end, the time of `import burn_runner` is measured.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

import burn_runner
from burn_runner import _native
from burn_runner._arrays import argument

BATCH = 256
EXPERIMENTS = pathlib.Path(__file__).resolve().parent.parent / "experiments"
# An experiment, and its settings without a sweep.
NETWORKS = {
    "MLP": ("mnist_sweep", {"data.download": False}),
    "CNN": ("burn_guide_cnn", {"data.download": False}),
    "LSTM": ("bidirectional_lstm", {}),
    "transformer": ("transformer_classifier", {}),
}


def trained(name, place):
    """The network of an experiment, trained for two epochs."""
    experiment, settings = NETWORKS[name]
    given = burn_runner.Experiment.from_file(EXPERIMENTS / f"{experiment}.toml")
    for key, value in {**settings, "sweep": {}, "train.epochs": 2, "experiment.seeds": [1]}.items():
        given = given.override(key, value)
    outcome = given.run(results=place, jobs=1, progress=False)
    return outcome.runs[0].load(device="flex")


def items(model, num):
    """Items like those of the data: bytes of pictures, tokens, or numbers."""
    random = numpy.random.default_rng(1)
    shape = (num, *model.input_shape)
    if model.info["input"] == "tokens":
        return random.integers(2, 5, shape, dtype=numpy.int32)
    if len(shape) == 4:
        return random.integers(0, 2, shape, dtype=numpy.uint8)
    return random.standard_normal(shape, dtype=numpy.float32)


def compare(model, data, rounds):
    """Items a second of NumPy and of Rust alone in each round."""
    _, given = argument(data)
    rates = ([], [])
    for at in range(rounds + 1):
        sides = [
            lambda: model.predict(data, batch_size=BATCH),
            lambda: _native.time_predictions(model._handle, given, BATCH, 1),
        ]
        for side in (0, 1) if at % 2 else (1, 0):
            started = time.perf_counter()
            sides[side]()
            # The first round warms up.
            if at:
                rates[side].append(len(data) / (time.perf_counter() - started))
    return rates


def shown(rates):
    return f"{statistics.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("networks", nargs="*", help=", ".join(NETWORKS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--items", type=int, default=25600)
    arguments = parser.parse_intermixed_args()
    print("| network | from NumPy | Rust alone | fastest rounds: NumPy / Rust |")
    print("| --- | --- | --- | --- |")
    for name in arguments.networks or NETWORKS:
        with tempfile.TemporaryDirectory() as place:
            model = trained(name, place)
            python, rust = compare(model, items(model, arguments.items), arguments.rounds)
            ratio = max(python) / max(rust)
            print(f"| {name} | {shown(python)} | {shown(rust)} | {ratio:.2f} |", flush=True)
    command = "import time; t = time.perf_counter(); import burn_runner; print(1e3 * (time.perf_counter() - t))"
    times = [float(subprocess.check_output([sys.executable, "-c", command])) for _ in range(11)]
    print(f"import burn_runner: {statistics.median(times):.0f} ms ({min(times):.0f} to {max(times):.0f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
