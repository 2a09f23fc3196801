#!/usr/bin/env python3
"""Signals at random moments of real time, to runners and workers of a small sweep, until nothing of it is left.

Each storm makes a tree: `runner run` is started, shot at, and started again until it completes everything. Then every
number of the tree (metrics.csv, trace/losses.f64, trace/digests.csv, the summary's metrics and weights_digest) has to be
that of a tree which nobody disturbed. By hand, since it takes minutes:

    python3 tests/storm.py --runner target/release/runner --kills 100 --minutes 6 [--seed N] [--keep DIR]

It ends when so many processes were shot at or the time is over, the storm in progress completed in any case, and exits
with 1 when a number differs, a tree cannot be completed, or a process is left behind. Needs Linux.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

SPEC = """
[experiment]
seeds = [1, 2, 3]

[data]
type = "digits"
split = { test = 0.1 }

[model]
type = "mlp"
hidden = [64]
dropout = 0.1

[optimizer]
type = "adam"
learning_rate = 1e-3

[train]
epochs = 12
batch_size = 16
ema = { decay = 0.9 }

[checkpoint]
every_steps = 30

[sweep.grid]
"optimizer.learning_rate" = [1e-3, 3e-3]
"""

# What is sent, and how often beside the others. A process that is stopped is killed a moment later.
SHOTS = {"KILL": 5, "TERM": 3, "HUP": 2, "INT": 2, "STOP+KILL": 2}


def environment(place):
    return {**os.environ, "XDG_CACHE_HOME": str(place / "cache"), "NO_COLOR": "1"}


def numbers(place):
    """All numbers of a tree, by run."""
    found = {}
    for run in sorted((place / "results/spec/runs").iterdir()):
        summary = json.loads((run / "summary.json").read_text())
        found[run.name] = {
            "outcome": summary["outcome"],
            "metrics": summary["metrics"],
            "weights_digest": summary["weights_digest"],
            "metrics.csv": (run / "metrics.csv").read_text(),
            "losses.f64": (run / "trace/losses.f64").read_bytes(),
            "digests.csv": (run / "trace/digests.csv").read_text(),
        }
    return found


def processes(place):
    """The runners and workers that work in a folder: (number, whether it is a worker)."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.readlink(entry / "cwd") != str(place):
                continue
            words = (entry / "cmdline").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if len(words) > 1 and words[1] in (b"run", b"exec") and state != "Z":
            found.append((int(entry.name), words[1] == b"exec"))
    return found


def send(pid, name):
    try:
        os.kill(pid, getattr(signal, "SIG" + name))
        return True
    except ProcessLookupError:
        return False


class Storm:
    def __init__(self, arguments, dice):
        self.arguments = arguments
        self.dice = dice
        self.shots = Counter()
        self.starts = 0
        self.end = time.monotonic() + arguments.minutes * 60

    def is_over(self):
        return sum(self.shots.values()) >= self.arguments.kills or time.monotonic() > self.end

    def start(self, place, log):
        self.starts += 1
        jobs = str(self.dice.choice([1, 2, 2, 3]))
        command = [self.arguments.runner, "run", "spec.toml", "--jobs", jobs]
        return subprocess.Popen(
            command, cwd=place, env=environment(place), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def shoot(self, place):
        """One signal to one process; whether one was hit."""
        alive = processes(place)
        if not alive:
            return
        pid, is_worker = self.dice.choice(alive)
        names, weights = zip(*SHOTS.items())
        name = self.dice.choices(names, weights)[0]
        if name == "STOP+KILL":
            hit = send(pid, "STOP")
            time.sleep(self.dice.uniform(0, 0.5))
            send(pid, "KILL")
        else:
            hit = send(pid, name)
        if hit:
            self.shots[("worker " if is_worker else "runner ") + name] += 1

    def storm(self, place):
        """Disturbs a tree for a while and lets it be completed; what went wrong."""
        with open(place / "log", "ab") as log:
            # A tree is shot at for so long, mostly several starts.
            calm = time.monotonic() + self.dice.uniform(5, 40)
            child = self.start(place, log)
            while time.monotonic() < calm and not self.is_over():
                # From the very start on: planning, loading, training, reporting.
                time.sleep(self.dice.expovariate(1 / 0.8))
                self.shoot(place)
                if child.poll() is not None:
                    if child.returncode == 0:
                        break
                    child = self.start(place, log)
            for attempt in range(4):
                code = child.wait(timeout=600)
                if code == 0:
                    break
                # Failures that were provoked are no reason to give a run up.
                child = self.start(place, log)
            else:
                code = child.wait(timeout=600)
            if code != 0:
                return [f"exit code {code}"]
        left = [pid for pid, _ in processes(place)]
        return [f"processes {left} are left"] if left else []


def differences(expected, found):
    wrong = [f"runs {sorted(set(expected) ^ set(found))}"] if set(expected) != set(found) else []
    for run in expected.keys() & found.keys():
        for what, value in expected[run].items():
            if found[run][what] != value:
                wrong.append(f"{run}: {what}")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True, type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", type=Path, help="where trees that differ are kept")
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    # The moments are those of the clock, so that a seed repeats what is done and not what comes of it.
    print(f"seed {arguments.seed}", flush=True)
    root = Path(tempfile.mkdtemp(prefix="storm-"))
    calm = root / "calm"
    calm.mkdir()
    (calm / "spec.toml").write_text(SPEC)
    quiet = dict(cwd=calm, env=environment(calm), stdin=subprocess.DEVNULL)
    subprocess.run([arguments.runner, "run", "spec.toml", "--quiet"], check=True, stdout=subprocess.DEVNULL, **quiet)
    expected = numbers(calm)
    storm = Storm(arguments, dice)
    trees = damaged = 0
    while not storm.is_over():
        trees += 1
        place = root / f"storm-{trees}"
        place.mkdir()
        (place / "spec.toml").write_text(SPEC)
        before = sum(storm.shots.values())
        wrong = storm.storm(place)
        if not wrong:
            wrong = differences(expected, numbers(place))
        shots = sum(storm.shots.values()) - before
        print(f"tree {trees}: {shots} signals: {', '.join(wrong) or 'equal'}", flush=True)
        if wrong:
            damaged += 1
            if arguments.keep:
                shutil.copytree(place, arguments.keep / place.name)
        for pid, _ in processes(place):
            send(pid, "KILL")
        shutil.rmtree(place, ignore_errors=True)
    shutil.rmtree(root, ignore_errors=True)
    shots = ", ".join(f"{name} {num}" for name, num in sorted(storm.shots.items()))
    print(f"{sum(storm.shots.values())} signals ({shots}), {storm.starts} starts, {trees} trees, {damaged} with differences")
    return 1 if damaged else 0


if __name__ == "__main__":
    sys.exit(main())
