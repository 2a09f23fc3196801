#!/usr/bin/env python3
"""Measures what `[search.prune]` saves on a sweep whose full training is known, next to Optuna's pruners.

    cargo build --release
    python3 benches/search_pruning.py target/release/runner [--seeds 10] [--trials 81] [--epochs 27]

For each seed, a random search over a network for scikit-learn's digits is trained completely, and then with each rule:
the same points, of which some are pruned. Optuna's pruners get the curves of the full training in the same order, one
trial at a time. Prints for each rule, as medians over the seeds: the part of the epochs that were trained, the trials
that were trained completely, how many of all trials are better than the selected one when trained completely, and by how
much its loss is above the best. Needs optuna and scikit-learn.
"""

import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import optuna
from sklearn.datasets import load_digits

optuna.logging.set_verbosity(optuna.logging.ERROR)

SPEC = """
[data]
type = "csv"
path = "digits.csv"
target = "digit"
split = {{ valid = 0.3 }}

[task]
type = "classification"

[model]
type = "mlp"
hidden = [32]

[optimizer]
type = "sgd"
learning_rate = 0.1

[train]
epochs = {epochs}
batch_size = 64

[objective]
metric = "valid/loss"

[search]
type = "random"
num_trials = {trials}
seed = {seed}
parallel = 16
{prune}

[sweep.random.axes]
optimizer.learning_rate = {{ type = "log_uniform", min = 1e-4, max = 3.0 }}
optimizer.momentum = {{ type = "uniform", min = 0.0, max = 0.99 }}
train.batch_size = {{ type = "integer", min = 16, max = 512, log = true }}
model.hidden = {{ type = "choice", values = [[8], [32], [128]] }}
"""

RULES = {
    "asha": 'prune = { type = "asha" }',
    "successive_halving": 'prune = { type = "successive_halving" }',
    "hyperband": 'prune = { type = "hyperband" }',
    "median": 'prune = { type = "median" }',
}


def write_digits(folder):
    digits = load_digits()
    with open(folder / "digits.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([f"p{at}" for at in range(64)] + ["digit"])
        for pixels, digit in zip(digits.data, digits.target):
            rows.writerow([*(int(pixel) for pixel in pixels), f"d{digit}"])


def run(program, folder, name, seed, args, prune=""):
    """The trials in order, each with its curve of the best loss so far."""
    spec = SPEC.format(epochs=args.epochs, trials=args.trials, seed=seed, prune=prune)
    (folder / f"{name}.toml").write_text(spec)
    command = [program, "run", f"{name}.toml", "--quiet"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    results = folder / "results" / name
    if done.returncode not in (0, 1) or not (results / "plan.json").exists():
        raise SystemExit(done.stderr)
    trials = []
    for known in json.loads((results / "plan.json").read_text())["search"]["suggestions"]:
        trial = results / "runs" / f"{known['trial']}-s1"
        curve, best = [], float("inf")
        if (trial / "metrics.csv").exists():
            with open(trial / "metrics.csv") as file:
                for row in csv.DictReader(file):
                    best = min(best, float(row["valid/loss"]))
                    curve.append(best)
        trials.append((known["trial"], curve))
    return trials


def optuna_curves(pruner, curves, epochs):
    """How far each trial is trained."""
    study = optuna.create_study(pruner=pruner, sampler=optuna.samplers.RandomSampler(seed=0))
    reached = []
    for curve in curves:
        trial = study.ask()
        end, state = len(curve), optuna.trial.TrialState.COMPLETE
        for epoch, value in enumerate(curve, 1):
            trial.report(value, epoch)
            if trial.should_prune() and epoch < epochs:
                end, state = epoch, optuna.trial.TrialState.PRUNED
                break
        if not curve:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        elif state == optuna.trial.TrialState.PRUNED:
            study.tell(trial, state=state)
        else:
            study.tell(trial, curve[-1])
        reached.append(end)
    return reached


def judged(reached, curves, epochs):
    """The part of the epochs, complete trials, better trials than the selected one, and its loss above the best."""
    final = [curve[-1] if len(curve) == epochs else float("inf") for curve in curves]
    complete = [at for at, end in enumerate(reached) if end == epochs and final[at] < float("inf")]
    selected = min((final[at] for at in complete), default=float("inf"))
    part = sum(reached) / sum(len(curve) for curve in curves)
    return part, len(complete), sum(value < selected for value in final), selected - min(final)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=81)
    parser.add_argument("--epochs", type=int, default=27)
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    found = {}
    for seed in range(args.seeds):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            write_digits(folder)
            full = run(program, folder, "full", seed, args)
            curves = [curve for _, curve in full]
            for name, prune in RULES.items():
                pruned = run(program, folder, name, seed, args, prune)
                assert [trial for trial, _ in pruned] == [trial for trial, _ in full], "the same points"
                for (_, part), whole in zip(pruned, curves):
                    assert part == whole[: len(part)], "a pruned run is the beginning of the full one"
                reached = [len(curve) for _, curve in pruned]
                found.setdefault("runner " + name, []).append(judged(reached, curves, args.epochs))
            pruners = {
                "optuna successive halving": optuna.pruners.SuccessiveHalvingPruner(1, 3),
                "optuna hyperband": optuna.pruners.HyperbandPruner(1, args.epochs, 3),
                "optuna median": optuna.pruners.MedianPruner(),
            }
            for name, pruner in pruners.items():
                reached = optuna_curves(pruner, curves, args.epochs)
                found.setdefault(name, []).append(judged(reached, curves, args.epochs))
    print(f"{args.trials} trials, {args.epochs} epochs, median over {args.seeds} seeds; optuna {optuna.__version__}")
    print("| rule | epochs trained | complete trials | better trials | loss above the best |")
    print("| --- | --- | --- | --- | --- |")
    for name, values in found.items():
        part, complete, better, above = (statistics.median(each) for each in zip(*values))
        print(f"| {name} | {100 * part:.0f} % | {complete:g} | {better:g} | {above:.4f} |")


if __name__ == "__main__":
    main()
