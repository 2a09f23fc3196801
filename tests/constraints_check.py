"""Compares how trials with constraints are ranked with Optuna: python3 tests/constraints_check.py ORDERS REPORT

ORDERS: a list of made-up trials, each with `values` (lower is better), `violations`, and the `order` in which runner's
samplers have them. REPORT: `report.json` of a search for two objectives with constraints."""

import json
import sys

import numpy as np
import optuna
from optuna.samplers._tpe.sampler import _split_trials
from optuna.study._multi_objective import _fast_non_domination_rank

optuna.logging.set_verbosity(optuna.logging.ERROR)
KEY = "constraints"  # where Optuna keeps what `constraints_func` returned


def study_of(trials, directions):
    study = optuna.create_study(directions=directions)
    for values, violations in trials:
        study.add_trial(optuna.trial.create_trial(values=values, system_attrs={KEY: violations}))
    return study


with open(sys.argv[1]) as file:
    orders = json.load(file)
for asked in orders:
    values, violations = np.array(asked["values"]), np.array(asked["violations"])
    order = asked["order"]
    assert sorted(order) == list(range(len(values)))
    assert 0 < (violations > 0).sum() < len(values)
    # NSGA-II's ranks, of which those of infeasible trials are in the order of their violations.
    ranks = _fast_non_domination_rank(values, penalty=violations)
    in_order = [int(ranks[at]) for at in order]
    assert in_order == sorted(in_order), in_order
    if values.shape[1] == 1:
        # The good trials of TPE, however many there are.
        trials = [(list(value), [violation]) for value, violation in zip(asked["values"], asked["violations"])]
        study = study_of(trials, ["minimize"])
        for num in range(1, len(values)):
            good, _ = _split_trials(study, study.get_trials(deepcopy=False), num)
            assert sorted(order[:num]) == [trial.number for trial in good], num

with open(sys.argv[2]) as file:
    report = json.load(file)
tradeoffs = {trial["trial"]: trial for trial in report["search"]["tradeoffs"]["trials"]}
names, trials = [], []
for trial in report["trials"]:
    # What `constraints_func` would return: a number for each constraint, positive if it is violated.
    limits = dict.fromkeys(report["search"]["constraints"], 0.0)
    for violated in trial.get("violated", []):
        limits[violated["constraint"]] = violated["violation"]
    names.append(trial["id"])
    trials.append((tradeoffs[trial["id"]]["values"], list(limits.values())))
study = study_of(trials, ["maximize", "minimize"])
front = {names[trial.number] for trial in study.best_trials}
assert front == {name for name, trial in tradeoffs.items() if trial["is_best"]}, front
single = study_of([(values[:1], limits) for values, limits in trials], ["maximize"])
best = single.best_trial
assert best.value == trials[0][0][0] and report["trials"][0]["rank"] == 1, (names[best.number], names[0])
print(f"{len(orders)} orders, {len(trials)} trials")
