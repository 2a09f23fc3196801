"""How far calibrated forecasts of memory are off, on the first run of each shipped experiment.

    python3 benches/memory.py RUNNER [--device DEVICE] [--epochs MOST] [EXPERIMENT...]

Long experiments are cut to the epochs below. What is measured is kept in a new folder each time.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

EPOCHS = {"burn_guide_cnn": 4, "char_lstm": 1, "char_transformer": 1, "mnist_sweep": 5, "residual_cnn": 4}
MIB = 1 << 20


def row(arguments, path, place):
    name = path.stem
    device = arguments.device
    sets = ["--set", "experiment.seeds=[1]"]
    if name != "devices":
        sets += ["--set", f"backend.device='{device}'"]
    epochs = EPOCHS.get(name, arguments.epochs)
    if epochs:
        sets += ["--set", f"train.epochs={min(epochs, arguments.epochs or epochs)}"]
    environment = os.environ | {"XDG_CACHE_HOME": str(place / "cache")}

    def run(*words):
        return subprocess.run([os.path.abspath(arguments.runner), *words], env=environment, capture_output=True, text=True)

    planned = run("plan", path, *sets, "--json")
    if planned.returncode:
        return f"{name}: {planned.stderr.strip()}"
    first = next(run for run in json.loads(planned.stdout)["runs"] if run["device"] == device)
    probed = run(
        "memory", path, *sets, "--trial", first["trial"], "--calibrate", "--precisions", first["precision"]
    )
    if probed.returncode:
        return f"{name}: {probed.stderr.strip()}"
    ran = run("run", path, *sets, "--only", first["id"], "--results", place)
    try:
        report = json.loads((place / name / "report.json").read_text())
        trial = next(trial for trial in report["trials"] if first["id"] in trial["runs"])
        summary = json.loads((place / name / "runs" / first["id"] / "summary.json").read_text())
        counted, calibrated = trial["memory"]["forecast_bytes"], trial["memory"]["calibrated_bytes"]
        pool = trial["memory"]["measured"]["pool"]
        peak = pool["reserved_bytes"]
        cells = [counted, pool["in_use_bytes"], calibrated, peak]
        cells = [f"{cell / MIB:.1f}" for cell in cells] + [f"{100 * (calibrated / peak - 1):+.1f} %"]
        return f"| `{name}` | {summary['epochs']} | " + " | ".join(cells) + " |"
    except (OSError, KeyError) as e:
        return f"{name}: {e!r}: {ran.stderr.strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runner")
    parser.add_argument("--device", default="flex")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("experiments", nargs="*")
    arguments = parser.parse_intermixed_args()
    folder = pathlib.Path("experiments")
    paths = [folder / f"{name}.toml" for name in arguments.experiments] or sorted(folder.glob("*.toml"))
    print("| experiment | epochs | counted | in use | calibrated | held | error |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for path in paths:
        with tempfile.TemporaryDirectory() as place:
            print(row(arguments, path, pathlib.Path(place)), flush=True)


main()
