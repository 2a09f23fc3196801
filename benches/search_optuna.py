#!/usr/bin/env python3
"""Compares the samplers of crates/search with Optuna's on benchmark functions, with the same budgets.

    cargo build --release -p burn-runner-search --example suggest
    python3 benches/search_optuna.py target/release/examples/suggest [--method tpe|gp|cma_es] [--seeds 30] [--trials 100]
        [--first-seed 0]

Prints the median of the best value for each function and sampler, lower is better, and the p-value of a one-sided
Mann-Whitney test that runner's sampler is worse than Optuna's. Needs optuna and scipy, for `gp` torch, and for `cma_es`
cmaes.
"""

import argparse
import json
import math
import multiprocessing
import statistics
import subprocess

import optuna
from scipy.stats import mannwhitneyu

optuna.logging.set_verbosity(optuna.logging.ERROR)


def real(low, high, log=False, when=None):
    return ("real", low, high, log, when)


def integer(low, high, when=None):
    return ("integer", low, high, False, when)


def choice(num, when=None):
    return ("choice", num, None, False, when)


def branin(x):
    a, b = x
    return (b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10


HARTMANN_A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
HARTMANN_P = [
    [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
    [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
    [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
    [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
]


def hartmann(x):
    rows = zip([1.0, 1.2, 3.0, 3.2], HARTMANN_A, HARTMANN_P)
    return -sum(c * math.exp(-sum(a * (v - p) ** 2 for a, v, p in zip(row, x, at))) for c, row, at in rows)


def ackley(x):
    num = len(x)
    mean = sum(v * v for v in x) / num
    waves = sum(math.cos(2 * math.pi * v) for v in x) / num
    return -20 * math.exp(-0.2 * math.sqrt(mean)) - math.exp(waves) + 20 + math.e


def rosenbrock(x):
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


def rastrigin(x):
    return 10 * len(x) + sum(v * v - 10 * math.cos(2 * math.pi * v) for v in x)


def training(x):
    """Like a network's error: an optimizer, its rate on a logarithmic scale, momentum for one of them, width, depth."""
    kind, rate, momentum, width, depth = x
    best = [-1.0, -2.5, -3.0][kind] - 0.1 * depth
    loss = 0.05 * (math.log10(rate) - best) ** 2 + [0.03, 0.0, 0.01][kind]
    if momentum is not None:
        loss += 0.2 * (momentum - 0.9) ** 2 - 0.04
    return loss + 0.02 * abs(math.log2(width) - 7) + 0.01 * (depth - 3) ** 2


def models(x):
    """Three kinds of models, each with keys of its own; the second kind has the best optimum in a small region."""
    kind, a, b, c, d, e, f = x
    if kind == 0:
        return 0.4 + (math.log10(a) + 2) ** 2 / 10 + (b - 0.3) ** 2
    if kind == 1:
        return 0.2 + 3 * (c - 0.8) ** 2 + abs(d - 12) / 20
    return 0.35 + 0.1 * e + (f - 0.5) ** 2 + 0.2 * e * f


def categories(x):
    """Categories, of which neighbours work together."""
    best = [2, 0, 3, 1, 2, 1]
    wrong = [a != b for a, b in zip(x, best)]
    return sum(wrong) + sum(a and b for a, b in zip(wrong, wrong[1:])) + (x[6] - 0.3) ** 2


FUNCTIONS = {
    "branin": (branin, [real(-5, 10), real(0, 15)]),
    "hartmann6": (hartmann, [real(0, 1)] * 6),
    "ackley, 3 real, 2 integer": (ackley, [real(-5, 10)] * 3 + [integer(-5, 10)] * 2),
    "rosenbrock4": (rosenbrock, [real(-2, 2)] * 4),
    "rastrigin4": (rastrigin, [real(-4, 5)] * 4),
    "training, condition, log, integer": (
        training,
        [choice(3), real(1e-5, 1, True), real(0, 0.99, when=(0, 0)), real(8, 1024, True), integer(1, 8)],
    ),
    "models, conditions": (
        models,
        [
            choice(3),
            real(1e-5, 1, True, when=(0, 0)),
            real(0, 1, when=(0, 0)),
            real(0, 1, when=(0, 1)),
            integer(1, 40, when=(0, 1)),
            choice(4, when=(0, 2)),
            real(0, 1, when=(0, 2)),
        ],
    ),
    "categories": (categories, [choice(4)] * 6 + [real(0, 1)]),
}


def value_at(axis, position):
    kind, low, high, log, _ = axis
    if position is None:
        return None
    if kind == "choice":
        return min(int(position * low), low - 1)
    if kind == "integer":
        return low + min(int(position * (high - low + 1)), high - low)
    if log:
        return low * (high / low) ** position
    return low + position * (high - low)


class Runner:
    """A sampler of crates/search."""

    def __init__(self, program, method):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.method = method
        self.secs = []

    def best(self, function, axes, seed, num_trials):
        def described(axis):
            kind, low, high, _, when = axis
            numbers = {"choice": low, "integer": (high or 0) - low + 1}
            names = {"choice": "choice", "integer": "levels"}
            made = {names[kind]: [1] * numbers[kind]} if kind in names else {"real": True}
            return {**made, "when": when} if when else made

        asked = {"method": self.method, "seed": seed, "axes": [described(axis) for axis in axes], "told": []}
        best = math.inf
        for _ in range(num_trials):
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
            self.secs.append(answer["secs"])
            value = function([value_at(axis, at) for axis, at in zip(axes, answer["point"])])
            asked["told"].append([answer["point"], value])
            best = min(best, value)
        return best


def optuna_best(sampler, function, axes, num_trials):
    def objective(trial):
        values = []
        for at, (kind, low, high, log, when) in enumerate(axes):
            if when and values[when[0]] != when[1]:
                values.append(None)
            elif kind == "choice":
                values.append(trial.suggest_categorical(str(at), list(range(low))))
            elif kind == "integer":
                values.append(trial.suggest_int(str(at), low, high))
            else:
                values.append(trial.suggest_float(str(at), low, high, log=log))
        return function(values)

    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=num_trials)
    return study.best_value


SAMPLERS = {
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "cma_es": lambda seed: optuna.samplers.CmaEsSampler(seed=seed),
}


def measure(task):
    program, name, seed, num_trials, with_joint, learning = task
    function, axes = FUNCTIONS[name]
    found = {}
    for method in ["random", learning]:
        found["runner " + method] = Runner(program, method).best(function, axes, seed, num_trials)
    found["optuna " + learning] = optuna_best(SAMPLERS[learning](seed), function, axes, num_trials)
    if with_joint:
        joint = optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True)
        found["optuna joint tpe"] = optuna_best(joint, function, axes, num_trials)
    return name, found


def time_suggestion(program, method, num_told):
    """Seconds of suggestions after this many trials, on the axes of a training."""
    runner = Runner(program, "random")
    function, axes = FUNCTIONS["training, condition, log, integer"]
    told = []

    def record(values):
        told.append(values)
        return 0.0

    runner.best(record, axes, 1, num_told)
    learning = Runner(program, method)
    learning.best(function, axes, 1, num_told + 20)
    return learning.secs[-20:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--method", choices=list(SAMPLERS), default="tpe")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--joint", action="store_true", help="also Optuna's TPE with multivariate=True, group=True")
    parser.add_argument("--time", action="store_true", help="only the time of a suggestion after 1,000 trials")
    parser.add_argument("--processes", type=int, default=1)
    args = parser.parse_args()
    if args.time:
        secs = time_suggestion(args.program, args.method, 1000)
        print(f"a suggestion after 1,000 trials: median {statistics.median(secs) * 1e3:.1f} ms, most {max(secs) * 1e3:.1f} ms")
        return
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    # Axes of CMA-ES have an order.
    has_order = lambda name: all(axis[0] != "choice" for axis in FUNCTIONS[name][1])
    names = [name for name in FUNCTIONS if args.method != "cma_es" or has_order(name)]
    tasks = [(args.program, name, seed, args.trials, args.joint, args.method) for name in names for seed in seeds]
    found = {}
    with multiprocessing.Pool(args.processes) as pool:
        for name, values in pool.imap(measure, tasks):
            for sampler, value in values.items():
                found.setdefault(name, {}).setdefault(sampler, []).append(value)
    samplers = list(next(iter(found.values())))
    print(f"best of {args.trials} trials, median over {args.seeds} seeds from {args.first_seed}; optuna {optuna.__version__}")
    print("| function | " + " | ".join(samplers) + " | p: worse than optuna | p: better |")
    print("| --- |" + " --- |" * (len(samplers) + 2))
    for name, values in found.items():
        ours, theirs = values["runner " + args.method], values["optuna " + args.method]
        worse = mannwhitneyu(ours, theirs, alternative="greater").pvalue
        better = mannwhitneyu(ours, theirs, alternative="less").pvalue
        medians = " | ".join(f"{statistics.median(values[sampler]):.4g}" for sampler in samplers)
        print(f"| {name} | {medians} | {worse:.3f} | {better:.3f} |")


if __name__ == "__main__":
    main()
