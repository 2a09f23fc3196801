"""Holds what an MLflow server has of an experiment against the results tree: mlflow_check.py URL RESULTS/EXPERIMENT"""

import csv
import json
import pathlib
import struct
import sys

import mlflow

url, folder = sys.argv[1], pathlib.Path(sys.argv[2])
plan = json.loads((folder / "plan.json").read_text())
client = mlflow.MlflowClient(url)
experiment = client.get_experiment_by_name(plan["experiment"])
found = client.search_runs([experiment.experiment_id], max_results=50000)
runs = {(run.data.tags["runner.run"], run.data.tags["runner.fingerprint"]): run for run in found}
assert len(runs) == len(found), "a run is there twice"
statuses = {"completed": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}
numbers = 0


def history(run, key):
    global numbers
    points = client.get_metric_history(run.info.run_id, key)
    numbers += len(points)
    points = sorted((point.step, point.value) for point in points)
    assert len({step for step, _ in points}) == len(points), f"{key} has a step twice"
    return points


for planned in plan["runs"]:
    place = folder / "runs" / planned["id"]
    if not (place / "summary.json").exists():
        continue
    summary = json.loads((place / "summary.json").read_text())
    run = runs[planned["id"], planned["fingerprint"]]
    assert run.info.status == statuses[summary["outcome"]], run.info.status
    assert run.data.params["seed"] == str(planned["seed"])
    rows = list(csv.DictReader((place / "metrics.csv").open()))
    for key in rows[0].keys() - {"epoch", "step"} if rows else []:
        expected = [(int(row["step"]), float(row[key])) for row in rows if row[key]]
        assert history(run, key) == expected, (planned["id"], key)
    for key in (key for key in summary["metrics"] if key.startswith("test/")):
        assert [value for _, value in history(run, key)] == [summary["metrics"][key]]
    if "train/step_loss" in run.data.metrics:
        bytes = (place / "trace/losses.f64").read_bytes()
        losses = struct.unpack(f"<{len(bytes) // 8}d", bytes)
        sent = [value for _, value in history(run, "train/step_loss")]
        assert len(sent) == len(losses)
        # Its database has the largest numbers for infinite ones.
        largest = sys.float_info.max
        losses = [loss if loss != loss else max(min(loss, largest), -largest) for loss in losses]
        assert all(a == b or a != a and b != b for a, b in zip(sent, losses))
print(f"{len(found)} runs and {numbers} numbers are as in {folder}")
