"""Compares metrics and predictions of runs with transformed targets with NumPy: python3 tests/targets_check.py FOLDER

The folder has a folder for each case of tests/suite/targets.rs, with `train.csv`, `valid.csv`, `predictions.jsonl` and `evaluated.json`.
"""

import csv
import json
import sys
from pathlib import Path
from statistics import NormalDist

import numpy as np

normal = NormalDist()


class Quantiles:
    """scikit-learn's QuantileTransformer to a normal distribution."""

    def __init__(self, values):
        self.shares = np.linspace(0, 1, min(1000, len(values)))
        self.quantiles = np.maximum.accumulate(np.percentile(values, 100 * self.shares))

    def __call__(self, values):
        up = np.interp(values, self.quantiles, self.shares)
        down = -np.interp(-values, -self.quantiles[::-1], -self.shares[::-1])
        share = (up + down) / 2
        share[values <= self.quantiles[0]] = 0
        share[values >= self.quantiles[-1]] = 1
        least = 1e-7 - np.spacing(1)
        return np.array([normal.inv_cdf(at) for at in np.clip(share, least, 1 - least)])


def transform(name, values):
    """The transform and the scaling of one target, fitted to the train split."""
    kind = name.split("_")[0]
    change = {"log": np.log, "log1p": np.log1p}.get(kind) or Quantiles(values)
    changed = change(values)
    if kind == "quantile":
        try:
            from sklearn.preprocessing import QuantileTransformer
        except ImportError:
            pass
        else:
            settings = {"n_quantiles": min(1000, len(values)), "output_distribution": "normal"}
            theirs = QuantileTransformer(**settings).fit_transform(values[:, None])[:, 0]
            assert np.abs(theirs - changed).max() < 1e-6, np.abs(theirs - changed).max()
    shift, factor = 0.0, 1.0
    if name == "log":
        shift, factor = changed.mean(), 1 / changed.std()
    elif name == "quantile_scaled":
        shift, factor = changed.min(), 1 / (changed.max() - changed.min())
    return lambda values: (change(values) - shift) * factor


def near(found, expected, what):
    assert abs(found - expected) <= 2e-4 * max(abs(expected), 1e-3), (what, found, expected)


for case in sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir()):
    train, valid = (list(csv.DictReader((case / f"{name}.csv").open())) for name in ("train", "valid"))
    predicted = [json.loads(line)["prediction"] for line in (case / "predictions.jsonl").read_text().splitlines()]
    evaluated = json.loads((case / "evaluated.json").read_text())
    metrics = {metric["name"]: metric["value"] for metric in evaluated["metrics"]}
    names = list(predicted[0]) if isinstance(predicted[0], dict) else [evaluated["residuals"][0]["target"]]
    sums = {"mae": [], "rmse": [], "target_mae": [], "target_rmse": [], "mape": [], "r2": []}
    for at, name in enumerate(names):
        column = lambda rows: np.array([float(row[name]) for row in rows])  # noqa: E731
        found = np.array([row[name] if isinstance(row, dict) else row for row in predicted], float).reshape(-1)
        change = transform(case.name, column(train))
        wanted = column(valid)
        errors, scaled = found - wanted, change(found) - change(wanted)
        near(evaluated["residuals"][at]["mean_absolute"], np.abs(errors).mean(), "residuals")
        spread = change(wanted) - change(wanted).mean()
        sums["mae"].append(np.abs(scaled).mean())
        sums["rmse"].append((scaled**2).mean())
        sums["target_mae"].append(np.abs(errors).mean())
        sums["target_rmse"].append((errors**2).mean())
        sums["mape"].append((np.abs(errors) / np.maximum(np.abs(wanted), np.finfo(float).eps)).mean())
        sums["r2"].append(1 - (scaled**2).sum() / (spread**2).sum())
    for name, values in sums.items():
        # Equal targets have one transformed number, so that predictions of them cannot be transformed again.
        if len(names) > 1 and name in ("mae", "rmse", "r2"):
            continue
        mean = np.mean(values)
        near(metrics[name], np.sqrt(mean) if name.endswith("rmse") else mean, (case.name, name))
    print(case.name, names)
