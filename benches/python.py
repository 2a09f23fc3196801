"""Predictions from NumPy beside those of Rust alone, on the processor in f32, in batches of 256.

    python3 benches/python.py [--rounds 9] [--items 25600] [NETWORK...]

Needs the package burn_runner in the Python that it is run with, and installs nothing. `Model.predict` of an array is
measured with all that Python does, from the array to arrays of probabilities. Rust alone is the same pass over the same
array without the interpreter. The sides take turns. Rows have items a second: medians of the rounds, with the least and
the largest, and the ratio of the fastest rounds. In the end, the time of `import burn_runner` is measured.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time

import burn_runner
from burn_runner import _native
from burn_runner._arrays import argument
from predicted import EXPERIMENTS, NETWORKS, SHORT, items, shown

BATCH = 256


def trained(name, place):
    """The network of an experiment, trained for a little while."""
    experiment, edits = NETWORKS[name]
    given = burn_runner.Experiment(EXPERIMENTS / f"{experiment}.toml", edits=SHORT + edits)
    outcome = given.run(results=place, jobs=1, progress=False)
    return outcome.runs[0].load(device="flex")


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
            kind = "int" if model.info["input"] == "tokens" else "float"
            data = items(model.input_shape, kind, arguments.items)
            python, rust = compare(model, data, arguments.rounds)
            ratio = max(python) / max(rust)
            print(f"| {name} | {shown(python)} | {shown(rust)} | {ratio:.2f} |", flush=True)
    command = "import time; t = time.perf_counter(); import burn_runner; print(1e3 * (time.perf_counter() - t))"
    times = [float(subprocess.check_output([sys.executable, "-c", command])) for _ in range(11)]
    print(f"import burn_runner: {statistics.median(times):.0f} ms ({min(times):.0f} to {max(times):.0f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
