#!/usr/bin/env python3
"""Compares the samplers of crates/search with Optuna's on problems with several objectives and constraints.

    cargo build --release -p burn-runner-search --example suggest
    python3 benches/search_fronts.py target/release/examples/suggest [--seeds 20] [--trials 200] [--first-seed 0]

Prints the hypervolume of the trials that meet the constraints for each problem and sampler, higher is better: the median
over the seeds, and the p-values of one-sided Mann-Whitney tests. Needs optuna and scipy.
"""

import argparse
import json
import math
import multiprocessing
import statistics
import subprocess

import numpy as np
import optuna
from optuna._hypervolume import compute_hypervolume
from scipy.stats import mannwhitneyu

optuna.logging.set_verbosity(optuna.logging.ERROR)


def zdt1(x):
    far = 1 + 9 * sum(x[1:]) / (len(x) - 1)
    return [x[0], far * (1 - math.sqrt(x[0] / far))], []


def zdt2(x):
    far = 1 + 9 * sum(x[1:]) / (len(x) - 1)
    return [x[0], far * (1 - (x[0] / far) ** 2)], []


def zdt3(x):
    far = 1 + 9 * sum(x[1:]) / (len(x) - 1)
    return [x[0], far * (1 - math.sqrt(x[0] / far) - x[0] / far * math.sin(10 * math.pi * x[0]))], []


def dtlz2(x):
    far = 1 + sum((v - 0.5) ** 2 for v in x[2:])
    a, b = x[0] * math.pi / 2, x[1] * math.pi / 2
    return [far * math.cos(a) * math.cos(b), far * math.cos(a) * math.sin(b), far * math.sin(a)], []


def bnh(x):
    a, b = 5 * x[0], 3 * x[1]
    limits = [(a - 5) ** 2 + b**2 - 25, 7.7 - (a - 8) ** 2 - (b + 3) ** 2]
    return [4 * a**2 + 4 * b**2, (a - 5) ** 2 + (b - 5) ** 2], limits


def srn(x):
    a, b = 40 * x[0] - 20, 40 * x[1] - 20
    limits = [a**2 + b**2 - 225, a - 3 * b + 10]
    return [2 + (a - 2) ** 2 + (b - 1) ** 2, 9 * a - (b - 1) ** 2], limits


def osy(x):
    """Osyczka and Kundu: six numbers, of which few meet the six constraints."""
    a, b, c, d, e, f = [10 * x[0], 10 * x[1], 1 + 4 * x[2], 6 * x[3], 1 + 4 * x[4], 10 * x[5]]
    first = -(25 * (a - 2) ** 2 + (b - 2) ** 2 + (c - 1) ** 2 + (d - 4) ** 2 + (e - 1) ** 2)
    limits = [2 - a - b, a + b - 6, b - a - 2, a - 3 * b - 2, (c - 3) ** 2 + d - 4, 4 - (e - 3) ** 2 - f]
    return [first, sum(v * v for v in [a, b, c, d, e, f])], limits


# With the numbers of axes, and the worst values that count.
PROBLEMS = {
    "zdt1": (zdt1, 6, [1.1, 5]),
    "zdt2": (zdt2, 6, [1.1, 5]),
    "zdt3": (zdt3, 6, [1.1, 5]),
    "dtlz2, 3 objectives": (dtlz2, 6, [2, 2, 2]),
    "bnh, 2 constraints": (bnh, 2, [140, 50]),
    "srn, 2 constraints": (srn, 2, [250, 50]),
    "osy, 6 constraints": (osy, 6, [0, 150]),
}


def hypervolume(all, reference):
    points = [values for values, limits in all if all_met(limits) and all_below(values, reference)]
    return compute_hypervolume(np.array(points), np.array(reference, dtype=float)) if points else 0.0


def all_met(limits):
    return all(limit <= 0 for limit in limits)


def all_below(values, reference):
    return all(value < most for value, most in zip(values, reference))


def of_runner(program, method, problem, num_axes, seed, num_trials):
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    asked = {"method": method, "seed": seed, "axes": [{"real": True}] * num_axes, "told": []}
    found = []
    for _ in range(num_trials):
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        point = json.loads(process.stdout.readline())["point"]
        values, limits = problem(point)
        asked["told"].append([point, values[0], None, values[1:], sum(max(limit, 0) for limit in limits)])
        found.append((values, limits))
    process.stdin.close()
    process.wait()
    return found


def of_optuna(sampler, problem, num_axes, num_objectives, num_trials):
    found = []

    def objective(trial):
        values, limits = problem([trial.suggest_float(str(at), 0, 1) for at in range(num_axes)])
        trial.set_user_attr("limits", limits)
        found.append((values, limits))
        return values

    study = optuna.create_study(sampler=sampler, directions=["minimize"] * num_objectives)
    study.optimize(objective, n_trials=num_trials)
    return found


def measure(task):
    program, name, seed, num_trials = task
    problem, num_axes, reference = PROBLEMS[name]
    _, limits = problem([0.5] * num_axes)
    constrained = {"constraints_func": lambda trial: trial.user_attrs["limits"]} if limits else {}
    samplers = {
        "nsga2": optuna.samplers.NSGAIISampler(seed=seed, **constrained),
        "tpe": optuna.samplers.TPESampler(seed=seed, **constrained),
    }
    found = {}
    for method in ["random", "nsga2", "tpe"]:
        found["runner " + method] = of_runner(program, method, problem, num_axes, seed, num_trials)
    for method, sampler in samplers.items():
        found["optuna " + method] = of_optuna(sampler, problem, num_axes, len(reference), num_trials)
    return name, {sampler: hypervolume(all, reference) for sampler, all in found.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    tasks = [(args.program, name, seed, args.trials) for name in PROBLEMS for seed in seeds]
    found = {}
    with multiprocessing.Pool(args.processes) as pool:
        for name, volumes in pool.imap(measure, tasks):
            for sampler, volume in volumes.items():
                found.setdefault(name, {}).setdefault(sampler, []).append(volume)
    samplers = list(next(iter(found.values())))
    print(f"hypervolume of {args.trials} trials, median over {args.seeds} seeds from {args.first_seed}; optuna {optuna.__version__}")
    print("| problem | " + " | ".join(samplers) + " | nsga2, p: worse | better | tpe, p: worse | better |")
    print("| --- |" + " --- |" * (len(samplers) + 4))
    for name, volumes in found.items():
        tests = []
        for method in ["nsga2", "tpe"]:
            ours, theirs = volumes["runner " + method], volumes["optuna " + method]
            for alternative in ["less", "greater"]:
                tests.append(f"{mannwhitneyu(ours, theirs, alternative=alternative).pvalue:.3f}")
        medians = " | ".join(f"{statistics.median(volumes[sampler]):.4g}" for sampler in samplers)
        print(f"| {name} | {medians} | {' | '.join(tests)} |")


if __name__ == "__main__":
    main()
