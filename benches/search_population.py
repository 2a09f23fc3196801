#!/usr/bin/env python3
"""Compares population-based training with random search for as many epochs.

    cargo build --release
    python3 benches/search_population.py target/release/runner [--seeds 10]

For each seed of the search, `experiments/digits_pbt.toml` trains its population. Random searches train as many trials as
it has members, for as many epochs: with constant hyperparameters, and with a cosine schedule of the learning rate. All
begin with the same points. Prints medians over the seeds: the lowest loss on the valid split, by which the trial is
selected, and the loss and accuracy of that trial on the test split, with p of one-sided Mann-Whitney tests that the
population is better or worse on the test split. Needs scipy.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from scipy.stats import mannwhitneyu

POPULATION = '[search.prune]\ntype = "pbt"\npopulation = 10\ninterval = 2\n'
METHODS = {
    "population": (POPULATION, POPULATION),
    "random search": (POPULATION, ""),
    "random search, cosine schedule": (POPULATION, '[scheduler]\ntype = "cosine"\n'),
}


def reached(program, folder, spec, name, seed):
    """Epochs, and what the selected trial reaches: its loss on valid, its loss and accuracy on test."""
    old, new = METHODS[name]
    assert old in spec
    text = spec.replace(old, new)
    if name != "population":
        text = text.replace("[search]\n", "[search]\nnum_trials = 10\n")
    (folder / "spec.toml").write_text(text.replace("[search]\n", f"[search]\nseed = {seed}\n"))
    results = f"{name.split()[-1]}-{seed}"
    command = [program, "run", "spec.toml", "--quiet", "--results", results]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    # Failed trials are part of a search.
    report = folder / results / "spec" / "report.json"
    if done.returncode not in (0, 1) or not report.exists():
        raise SystemExit(done.stderr)
    report = json.loads(report.read_text())
    summary = folder / results / "spec" / "runs" / f"{report['trials'][0]['id']}-s1" / "summary.json"
    metrics = json.loads(summary.read_text())["metrics"]
    return report["search"]["epochs"], [metrics[key] for key in ("valid/loss", "test/loss", "test/accuracy")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=10)
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    spec = pathlib.Path(__file__).parents[1].joinpath("experiments/digits_pbt.toml").read_text()
    found = {name: [] for name in METHODS}
    epochs = {name: set() for name in METHODS}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.seeds):
            for name in METHODS:
                trained, values = reached(program, pathlib.Path(folder), spec, name, seed)
                found[name].append(values)
                epochs[name].add(trained)
    print(f"medians over {args.seeds} seeds of the search")
    print("| method | epochs | valid/loss | test/loss | test/accuracy | p: population is worse | p: population is better |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    ours = [values[1] for values in found["population"]]
    for name, all_values in found.items():
        medians = [f"{statistics.median(each):.4g}" for each in zip(*all_values)]
        theirs = [values[1] for values in all_values]
        tests = [mannwhitneyu(ours, theirs, alternative=side).pvalue for side in ("greater", "less")]
        shown = ["", ""] if name == "population" else [f"{p:.3f}" for p in tests]
        print(f"| {name} | {', '.join(map(str, sorted(epochs[name])))} | {' | '.join(medians + shown)} |")


if __name__ == "__main__":
    main()
