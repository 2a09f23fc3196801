#!/usr/bin/env python3
"""Compares the TPE of crates/search with Optuna's on sweeps of real trainings, with the same budgets.

    cargo build --release
    cargo build --release -p burn-runner-search --example suggest
    python3 benches/search_sweeps.py target/release/runner target/release/examples/suggest --results FOLDER [--seeds 30]
        [--trials 40] [--first-seed 0]

Each sweep is a grid that `runner run` trains completely, once: its results stay in FOLDER. The samplers then search the
grid, and the value of a point is looked up, so that many seeds are affordable; what is measured is the choice of points,
not the training. A point that is suggested again costs a trial of the budget like any other. Prints for each sweep the
best value of the objective, lower is better, as the median over the seeds, how far that is above the best of the grid,
and p-values of one-sided Mann-Whitney tests. Needs optuna and scipy.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess

import optuna
from scipy.stats import mannwhitneyu

optuna.logging.set_verbosity(optuna.logging.ERROR)

DATA = pathlib.Path(__file__).resolve().parent.parent / "experiments" / "data"

RATES = "[1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0]"

# A specification, and the axes that are choices without an order.
SWEEPS = {
    "digits": (
        f"""
[data]
type = "digits"
split = {{ valid = 0.3 }}

[model]
type = "mlp"
hidden = [32]

[optimizer]
type = "sgd"
learning_rate = 0.1
momentum = 0.0

[train]
epochs = 8
batch_size = 64

[objective]
metric = "valid/loss"

[sweep.grid]
optimizer.learning_rate = {RATES}
optimizer.momentum = [0.0, 0.5, 0.9, 0.98]
train.batch_size = [16, 64, 256]
model.hidden = [[8], [32], [128]]
""",
        ["model.hidden"],
    ),
    "iris": (
        f"""
[data]
type = "csv"
path = "iris.csv"
target = "species"

[model]
type = "mlp"
hidden = [16]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 20
batch_size = 16

[objective]
metric = "valid/loss"

[sweep.grid]
optimizer.type = ["adam", "sgd", "rmsprop"]
optimizer.learning_rate = {RATES}
train.batch_size = [8, 16, 32, 64]
model.hidden = [[2], [8], [32]]
""",
        ["optimizer.type", "model.hidden"],
    ),
    "houses": (
        f"""
[data]
type = "csv"
path = "houses.csv"
target = "price"
target_scale = "standardize"
missing = "mean"

[model]
type = "mlp"
hidden = [32]
dropout = 0.0

[optimizer]
type = "adamw"
learning_rate = 1e-2
weight_decay = 0.0

[train]
epochs = 20
batch_size = 32

[objective]
metric = "valid/loss"

[sweep.grid]
optimizer.learning_rate = {RATES}
optimizer.weight_decay = [0.0, 0.01, 0.1, 1.0]
model.dropout = [0.0, 0.1, 0.3]
model.hidden = [[8], [32], [64, 64]]
""",
        ["model.hidden"],
    ),
}


def grid(runner, folder, name):
    """The values of each axis in order, with whether they have one, and the objective by their indices."""
    spec, unordered = SWEEPS[name]
    path = folder / f"{name}.toml"
    path.write_text(spec)
    for data in ["iris.csv", "houses.csv"]:
        (folder / data).write_bytes((DATA / data).read_bytes())
    # Some runs fail, since they diverge; that is a part of the sweep.
    subprocess.run([runner, "run", path.name, "--quiet"], cwd=folder, check=False, capture_output=True)
    listed = subprocess.run([runner, "list", f"results/{name}", "--json"], cwd=folder, check=True, capture_output=True, text=True)
    runs = [json.loads(line) for line in listed.stdout.splitlines()]
    axes = []
    for key in runs[0]["axes"]:
        values = []
        for run in runs:
            if run["axes"][key] not in values:
                values.append(run["axes"][key])
        axes.append((key, values, key not in unordered))
    found = {}
    for run in runs:
        at = tuple(values.index(run["axes"][key]) for key, values, _ in axes)
        found[at] = run["metrics"].get("valid/loss") if run["outcome"] == "completed" else None
    num = math.prod(len(values) for _, values, _ in axes)
    assert len(found) == num, f"{name}: {len(found)} of {num} points"
    secs = statistics.median(run["wall_secs"] for run in runs)
    return axes, found, secs


class Suggest:
    """A sampler of crates/search."""

    def __init__(self, program, method):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.method = method

    def best(self, axes, found, seed, num_trials):
        described = [{"levels" if ordered else "choice": [1] * len(values)} for _, values, ordered in axes]
        asked = {"method": self.method, "seed": seed, "axes": described, "told": []}
        best = math.inf
        for _ in range(num_trials):
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
            point = json.loads(self.process.stdout.readline())["point"]
            at = tuple(min(int(where * len(values)), len(values) - 1) for where, (_, values, _) in zip(point, axes))
            value = found[at]
            asked["told"].append([point, value])
            best = min(best, math.inf if value is None else value)
        return best


def optuna_best(sampler, axes, found, num_trials):
    def objective(trial):
        def chosen(key, values, ordered):
            if ordered:
                return trial.suggest_int(key, 0, len(values) - 1)
            return trial.suggest_categorical(key, list(range(len(values))))

        value = found[tuple(chosen(*axis) for axis in axes)]
        # A failed trial.
        return math.nan if value is None else value

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=num_trials)
    return study.best_value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runner", help="the program that trains the grids")
    parser.add_argument("suggest", help="the example of crates/search")
    parser.add_argument("--results", required=True, help="a folder for the grids")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=40)
    args = parser.parse_args()
    folder = pathlib.Path(args.results)
    folder.mkdir(parents=True, exist_ok=True)
    runner = str(pathlib.Path(args.runner).resolve())
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    ours = {method: Suggest(args.suggest, method) for method in ["random", "tpe"]}
    print(f"best of {args.trials} trials, median over {args.seeds} seeds from {args.first_seed}; optuna {optuna.__version__}")
    print("| sweep | points | s a run | best point | random | runner | Optuna | found the best: random, runner, Optuna | p: runner is worse | p: runner is better | p: runner is better than random |")
    print("| --- |" + " --- |" * 10)
    for name in SWEEPS:
        axes, found, secs = grid(runner, folder, name)
        least = min(value for value in found.values() if value is not None)
        values = {method: [sampler.best(axes, found, seed, args.trials) for seed in seeds] for method, sampler in ours.items()}
        values["optuna"] = [optuna_best(optuna.samplers.TPESampler(seed=seed), axes, found, args.trials) for seed in seeds]
        p = lambda a, b, alternative: f"{mannwhitneyu(values[a], values[b], alternative=alternative).pvalue:.3f}"
        medians = " | ".join(f"{statistics.median(values[sampler]):.4g}" for sampler in ["random", "tpe", "optuna"])
        hits = ", ".join(str(sum(value == least for value in values[sampler])) for sampler in ["random", "tpe", "optuna"])
        tests = [p("tpe", "optuna", "greater"), p("tpe", "optuna", "less"), p("tpe", "random", "less")]
        print(f"| {name} | {len(found)} | {secs:.2g} | {least:.4g} | {medians} | {hits} | {' | '.join(tests)} |", flush=True)


if __name__ == "__main__":
    main()
