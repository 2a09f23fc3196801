"""Wall time of the trainings in `docs/hybrid.md`: what predicted updates save, and the loss that the same time buys.

    python3 benches/hybrid.py RUNNER [EXPERIMENT...] [--rounds 3] [--mnist ../shared/data/mnist]

Trains each experiment again in each round, one run at a time, with nothing else on the machine. Times are seconds of
training, without validation: of a run the median of its rounds, of an arm the mean over its seeds. The loss of full
training in the same time is interpolated between its lengths, seed by seed. Differences have the half-width of their
95 % interval by Student's t over the seeds. Prints the tables as Markdown. Needs scipy.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from scipy.stats import t

EXPERIMENTS = pathlib.Path(__file__).resolve().parent.parent / "experiments"
NAMES = ["hybrid_digits", "hybrid_mnist", "hybrid_text"]


def arm(run):
    """The name of a run's arm in the tables of `docs/hybrid.md`, and whether it is full training."""
    axes, strategy = run["axes"], run["axes"]["strategy"]
    epochs = axes["train.epochs"]
    if strategy["type"] == "standard":
        average = axes.get("train.ema")
        return (f"EMA, {epochs} epochs" if average else f"full, {epochs} epochs"), not average
    name = f"`{strategy['predictor']}`"
    if strategy["mode"] != "steps":
        return f"{name}, jumps, {epochs} epochs", False
    tolerance = strategy.get("tolerance")
    return (f"{name}, tolerance {tolerance}" if tolerance else name), False


def train(arguments, name):
    """Seconds and valid losses of each epoch of each run, by arm and seed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [os.path.abspath(arguments.runner), "run", EXPERIMENTS / f"{name}.toml", "--jobs", "1", "--quiet"]
        if "mnist" in name:
            # Without the files, it would train on the digits.
            root = json.dumps(os.path.abspath(arguments.mnist))
            command += ["--set", f"data.root={root}", "--set", "data.fallback=none", "--set", "data.download=false"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(command, cwd=folder, check=True, **silent)
        results = pathlib.Path(folder) / "results" / name
        found = {}
        for run in json.loads((results / "plan.json").read_text())["runs"]:
            events = (results / "runs" / run["id"] / "events.jsonl").read_text().splitlines()
            epochs = [event for event in map(json.loads, events) if event["event"] == "epoch_finished"]
            loss = "valid_ema/loss" if "train.ema" in run["axes"] else "valid/loss"
            found[*arm(run), run["seed"]] = [(epoch["train_secs"], epoch["metrics"][loss]) for epoch in epochs]
        return found


def median_of(rounds):
    """The runs of several rounds: equal losses, and the median of the seconds to the end of each epoch."""
    runs = {}
    for key, epochs in rounds[0].items():
        losses = [loss for _, loss in epochs]
        sums = []
        for found in rounds:
            if [loss for _, loss in found[key]] != losses:
                raise SystemExit(f"{key}: the losses of two rounds differ")
            seconds = [secs for secs, _ in found[key]]
            sums.append([sum(seconds[: at + 1]) for at in range(len(seconds))])
        runs[key] = list(zip(map(statistics.median, zip(*sums)), losses))
    return runs


def interpolated(points, at):
    """The value at a time, between the two points around it; none beyond them."""
    points = sorted(points)
    for (start, first), (end, last) in zip(points, points[1:]):
        if start <= at <= end:
            return first + (last - first) * (at - start) / (end - start)
    return None


def with_interval(values, digits):
    mean, half = statistics.mean(values), 0.0
    if len(values) > 1:
        half = t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
    verdict = "no claim" if abs(mean) <= half else "worse" if mean > 0 else "better"
    return f"{mean:+.{digits}f} ± {half:.{digits}f}, {verdict}"


def table(runs):
    seeds = sorted({seed for *_, seed in runs})
    arms = list(dict.fromkeys((name, is_full) for name, is_full, _ in runs))
    last = {(name, seed): epochs[-1] for (name, _, seed), epochs in runs.items()}
    seconds = {name: statistics.mean(last[name, seed][0] for seed in seeds) for name, _ in arms}
    full = [name for name, is_full in arms if is_full]
    base = full[0]
    yield "| arm | seconds of training | of the full training's | to its final loss | loss minus full training's in the same time |"
    yield "| --- | --- | --- | --- | --- |"
    for name, is_full in arms:
        ratios = [last[name, seed][0] / last[base, seed][0] for seed in seeds]
        reached = []
        for seed in seeds:
            target = last[base, seed][1]
            reached += [secs for secs, loss in runs[name, is_full, seed] if loss <= target][:1]
        to_loss = f"{statistics.mean(reached):.2f} s in {len(reached)} of {len(seeds)}" if reached else "not reached"
        bought = "-"
        if not is_full:
            others = [
                interpolated([(seconds[one], last[one, seed][1]) for one in full], seconds[name]) for seed in seeds
            ]
            differs = [last[name, seed][1] - other for seed, other in zip(seeds, others) if other is not None]
            bought = with_interval(differs, 4) if len(differs) == len(seeds) else "takes longer than it"
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        yield f"| {name} | {seconds[name]:.2f} | {statistics.mean(ratios):.2f} ({spread}) | {to_loss} | {bought} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runner")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mnist", default="../shared/data/mnist")
    parser.add_argument("experiments", nargs="*", default=NAMES)
    arguments = parser.parse_args()
    for name in arguments.experiments:
        runs = median_of([train(arguments, name) for _ in range(arguments.rounds)])
        print(f"\n{name}\n", *table(runs), sep="\n", flush=True)


main()
