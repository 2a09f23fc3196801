"""Experiments: checked, planned, trained, interrupted."""

import asyncio
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import burn_runner as br

SLOW = {
    "data": {"type": "digits"},
    "model": {"type": "mlp", "hidden": [256]},
    "optimizer": {"type": "sgd", "learning_rate": 1e-3},
    "train": {"epochs": 100000, "batch_size": 64},
    "checkpoint": {"every_epochs": 1},
}


def test_a_valid_experiment_has_no_diagnostics(experiment):
    assert experiment.check() == []


def test_mistakes_are_objects_and_one_exception_with_the_programs_text(folder, experiment):
    text = experiment.text.replace("hidden = [16]", "hiden = [16]").replace("epochs = 3", "epochs = 0")
    (folder / "wrong.toml").write_text(text)
    wrong = br.Experiment.from_file(folder / "wrong.toml")
    found = wrong.check()
    assert {one.code for one in found if one.severity == "error"} == {"unknown-key", "out-of-range"}
    one = next(one for one in found if one.code == "unknown-key")
    assert (one.line, one.marked) == (1 + text[: text.index("hiden")].count("\n"), "hiden")
    assert any("hidden" in help for help in one.helps)
    with pytest.raises(br.ExperimentError) as raised:
        wrong.plan()
    assert [str(one) for one in raised.value.diagnostics] == [str(one) for one in found]
    assert isinstance(raised.value, ValueError) and raised.value.exit_code == 2
    printed = subprocess.run([br.program(), "check", folder / "wrong.toml"], capture_output=True, text=True)
    assert printed.returncode == 2
    assert str(raised.value) == printed.stderr.strip()
    assert "^^^^^" in str(raised.value)
    again = pickle.loads(pickle.dumps(raised.value))
    assert str(again) == str(raised.value) and again.diagnostics == raised.value.diagnostics


def test_a_dictionary_is_the_same_experiment_as_its_file(folder, experiment):
    spec = {
        "experiment": {"name": "flowers", "seeds": [1, 2]},
        "data": {"type": "csv", "path": Path("iris.csv"), "target": "species"},
        "model": {"type": "mlp", "hidden": [16]},
        "optimizer": {"type": "adam", "learning_rate": 1e-2},
        "train": {"epochs": 3, "batch_size": 16},
        "sweep": {"grid": {"model.hidden": [[4], [16]]}},
    }
    same = br.Experiment.from_dict(spec, folder=folder).plan()
    assert [run["fingerprint"] for run in same] == [run["fingerprint"] for run in experiment.plan()]


def test_overrides_return_another_experiment(experiment):
    edited = experiment.override("optimizer.learning_rate", 1e-3).override("experiment.seeds", [5])
    assert {run["seed"] for run in edited.plan()} == {5}
    assert {run["seed"] for run in experiment.plan()} == {1, 2}
    with pytest.raises(br.ExperimentError, match="learning_rat"):
        experiment.override("optimizer.learning_rat", 1e-3).plan()


@pytest.mark.parametrize("value", [None, float("nan"), object(), {1, None}])
def test_values_without_a_counterpart_are_refused_with_their_place(value):
    with pytest.raises(br.RequestError, match="train.epochs"):
        br.Experiment.from_dict({"train": {"epochs": value}})


def test_an_experiment_cannot_contain_itself():
    spec = {}
    spec["data"] = spec
    with pytest.raises(br.RequestError, match="contains itself"):
        br.Experiment.from_dict(spec)


def test_a_missing_file_is_a_diagnostic():
    (one,) = br.Experiment.from_file("nowhere.toml").check()
    assert "nowhere.toml" in str(one)


def test_plans_are_sequences_and_frames(experiment):
    plan = experiment.plan()
    assert (len(plan), plan.experiment, plan.trials) == (4, "flowers", ["hidden=4", "hidden=16"])
    frame = plan.frame("table")
    assert list(frame.column("run")) == ["hidden=4-s1", "hidden=4-s2", "hidden=16-s1", "hidden=16-s2"]
    assert "hidden=16-s2" in plan._repr_html_()


def test_runs_are_trained_in_processes_of_the_program_and_every_event_arrives(folder, experiment):
    events = []
    thread = threading.get_ident()

    def see(event):
        assert threading.get_ident() == thread
        events.append(event)

    outcome = experiment.run(jobs=2, on_event=see, results=folder / "events", only="hidden=4-*")
    assert (outcome.exit_code, outcome.num_left, outcome.stopped) == (0, 0, None)
    kinds = [event["event"] for event in events]
    assert kinds.count("run_started") == kinds.count("run_finished") == 2
    assert kinds.count("epoch_finished") == 6
    assert [run.id for run in outcome.runs] == ["hidden=4-s1", "hidden=4-s2"]
    assert outcome.check() is outcome
    # The program trained, not this interpreter: the records name its build, which is that of the module on Linux.
    environment = json.loads((outcome.runs[0].folder / "environment.json").read_text())
    program = br._native.__file__ if sys.platform == "linux" else br.program()
    digest = subprocess.run(["sha256sum", program], capture_output=True, text=True).stdout.split()[0]
    assert environment["build"]["sha256"] == digest
    again = experiment.run(results=folder / "events", only="hidden=4-*", on_event=lambda event: None)
    assert again.exit_code == 0


def test_an_exception_in_a_callback_stops_the_runs_and_is_raised(folder):
    def see(event):
        if event["event"] == "epoch_finished":
            raise LookupError("enough")

    experiment = br.Experiment.from_dict(SLOW, folder=folder)
    with pytest.raises(LookupError, match="enough"):
        experiment.run(on_event=see, results=folder / "stopped")
    summary = br.Results(folder / "stopped").runs(frame="table")
    assert list(summary.column("outcome")) == ["interrupted"]


def test_failed_runs_are_reported_and_raised(folder):
    spec = {
        "data": {"type": "digits"},
        "model": {"type": "mlp", "hidden": [8]},
        "optimizer": {"type": "sgd", "learning_rate": 1e30},
        "train": {"epochs": 2, "batch_size": 64},
    }
    outcome = br.Experiment.from_dict(spec, folder=folder).run(results=folder / "failing", progress=False)
    assert (outcome.exit_code, outcome.num_left) == (1, 1)
    with pytest.raises(br.RunError, match="not_finite|NaN|infinite|finite"):
        outcome.check()


def test_ctrl_c_saves_and_returns_and_the_same_call_continues(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import burn_runner as br

            def see(event):
                print(event["event"], flush=True)

            experiment = br.Experiment.from_dict({SLOW!r}, folder={str(tmp_path)!r})
            outcome = experiment.run(on_event=see, results={str(tmp_path / "results")!r})
            print("returned", outcome.stopped, outcome.exit_code, flush=True)
            """
        )
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line == "epoch_finished\n":
                process.send_signal(signal.SIGINT)
                break
        rest = process.stdout.read()
    assert process.returncode == 0
    assert rest.endswith("returned user 130\n"), rest
    steps = {"epochs": br.Results(tmp_path / "results").epochs(frame="table")}
    done = len(steps["epochs"])
    assert done >= 1
    last = br.Experiment.from_dict({**SLOW, "train": {"epochs": done + 1, "batch_size": 64}}, folder=tmp_path)
    outcome = last.run(results=tmp_path / "results", progress=False)
    assert outcome.exit_code == 0


def test_runs_can_be_trained_from_several_threads(folder, experiment):
    outcomes = {}

    def train(name):
        outcomes[name] = experiment.run(results=folder / name, only="hidden=4-s1", progress=False)

    threads = [threading.Thread(target=train, args=(name,)) for name in ("thread_a", "thread_b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    a, b = (br.Results(folder / name).run("hidden=4-s1").losses() for name in ("thread_a", "thread_b"))
    assert (a == b).all() and {outcome.exit_code for outcome in outcomes.values()} == {0}


def test_invalid_requests_are_refused(experiment, folder):
    for options in ({"jobs": 0}, {"only": "nothing*"}, {"retry": "nonsense"}):
        with pytest.raises(br.RequestError):
            experiment.run(results=folder / "results", progress=False, **options)


def test_the_program_can_be_replaced_and_must_exist(experiment):
    code = "import burn_runner as br; br.program()"
    env = {**os.environ, "BURN_RUNNER_PROGRAM": "/nowhere/runner"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 1 and "which is not a program" in done.stderr


ARRAYS = {
    "model": {"type": "mlp", "hidden": [8]},
    "optimizer": {"type": "adam", "learning_rate": 1e-2},
    "train": {"epochs": 2, "batch_size": 16},
}


def test_data_in_memory_is_part_of_a_runs_identity(tmp_path):
    np = pytest.importorskip("numpy")
    x = np.random.default_rng(0).random((60, 3))
    y = (x.sum(1) > 1.5).astype(int)
    experiment = br.Experiment.from_dict(ARRAYS, folder=tmp_path)
    results = tmp_path / "results"
    first = experiment.run(data={"train": (x, y)}, results=results, progress=False).check()
    # The same content in another layout is the same run.
    events = []
    experiment.run(data={"train": (np.asfortranarray(x), y)}, results=results, on_event=events.append).check()
    assert "training" not in [event["event"] for event in events]
    assert len(list((results / "data").iterdir())) == 1
    changed = x.copy()
    changed[7, 1] += 1e-9
    plans = [experiment.with_data({"train": (items, y)}, results).plan() for items in (x, changed)]
    assert plans[0][0]["fingerprint"] != plans[1][0]["fingerprint"]
    model = first.runs[0].load()
    assert model.predict(x).probabilities.shape == (60, 2)


def test_threads_can_train_on_the_same_data_in_memory(tmp_path):
    np = pytest.importorskip("numpy")
    x = np.random.default_rng(1).random((60, 3))
    data = {"train": (x, (x.sum(1) > 1.5).astype(int))}
    experiment = br.Experiment.from_dict(ARRAYS, folder=tmp_path)
    found = []

    def prepare():
        for _ in range(20):
            found.append(len(experiment.with_data(data, tmp_path / "results").plan()))

    threads = [threading.Thread(target=prepare) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 40
    assert [path.suffix for path in (tmp_path / "results" / "data").iterdir()] == [".npz"]


def test_splits_in_memory_are_used_as_given(tmp_path):
    np = pytest.importorskip("numpy")
    rng = np.random.default_rng(1)
    data = {name: (rng.random((num, 3)), rng.random(num)) for name, num in (("train", 50), ("valid", 20), ("test", 10))}
    experiment = br.Experiment.from_dict(ARRAYS, folder=tmp_path)
    run = experiment.run(data=data, results=tmp_path / "results", progress=False).check().runs[0]
    counts = run.plan["data"]
    assert [counts[f"num_{name}"] for name in ("train", "valid", "test")] == [50, 20, 10]
    assert run.load().task == "regression" and "test/loss" in run.metrics


def test_wrong_data_in_memory_is_refused(tmp_path):
    np = pytest.importorskip("numpy")
    experiment = br.Experiment.from_dict(ARRAYS, folder=tmp_path)
    x, y = np.zeros((4, 2)), np.zeros(4)
    cases = [
        ({}, "no split `train`"),
        ({"train": (x, y), "validation": (x, y)}, "`validation` is not a split"),
        ({"train": x}, "not a pair"),
        ({"train": (x, y[:3])}, "4 items"),
        ({"train": (x[:0], y[:0])}, "no items"),
        ({"train": (x.astype(object), y)}, "numbers are needed"),
        ({"train": (x, y), "valid": (x, None)}, "some splits"),
    ]
    for data, words in cases:
        with pytest.raises(br.RequestError, match=words):
            experiment.run(data=data, results=tmp_path / "results")
    assert not (tmp_path / "results").exists() or not list((tmp_path / "results").glob("*.tmp"))
    nan = np.full((40, 2), np.nan)
    with pytest.raises(br.RunnerError, match="NaN|missing"):
        experiment.run(data={"train": (nan, np.zeros(40))}, results=tmp_path / "results")


def test_runs_can_be_awaited_and_cancelled(folder, experiment):
    async def train():
        ticks = 0
        events = []
        task = asyncio.ensure_future(
            experiment.run_async(results=folder / "awaited", on_event=events.append, only="hidden=4-*")
        )
        while not task.done():
            ticks += 1
            await asyncio.sleep(0.001)
        return ticks, events, await task

    ticks, events, outcome = asyncio.run(train())
    assert ticks > 3 and outcome.exit_code == 0
    assert [event["event"] for event in events].count("run_finished") == 2

    async def cancel():
        begun = asyncio.Event()
        task = asyncio.ensure_future(
            br.Experiment.from_dict(SLOW, folder=folder).run_async(
                results=folder / "cancelled",
                on_event=lambda event: begun.set() if event["event"] == "epoch_finished" else None,
            )
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert list(br.Results(folder / "cancelled").runs(frame="table").column("outcome")) == ["interrupted"]
