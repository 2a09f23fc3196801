"""Results as data frames and arrays."""

import csv
import os
import subprocess
import sys

import numpy as np
import pytest

import burn_runner as br

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


def test_runs_are_frames_of_pandas_and_polars_and_tables(results):
    pandas, polars = results.runs(frame="pandas"), results.runs(frame="polars")
    table = results.runs(frame="table")
    assert isinstance(results.runs(), pd.DataFrame)
    assert list(pandas.columns) == polars.columns == table.columns
    assert len(pandas) == len(polars) == len(table) == 4
    assert pandas["valid/loss"].tolist() == polars["valid/loss"].to_list() == table.column("valid/loss").tolist()
    assert pandas["seed"].dtype == np.int64 and polars["seed"].dtype == pl.Int64


def test_conditions_and_orders_are_those_of_the_list(results):
    assert set(results.runs("seed == 1")["run"]) == {"hidden=4-s1", "hidden=16-s1"}
    ordered = results.runs(sort="-valid/loss", columns=["run", "valid/loss"], limit=2)
    assert list(ordered.columns) == ["run", "valid/loss"] and ordered["valid/loss"].is_monotonic_decreasing
    assert len(results.runs("seed == 9")) == 0
    with pytest.raises(br.RequestError, match="valid/acuracy"):
        results.runs("valid/acuracy > 0.5")


def test_trials_have_means_over_runs(results):
    trials, runs = results.trials(), results.runs()
    assert sorted(trials["trial"]) == ["hidden=16", "hidden=4"]
    for _, trial in trials.iterrows():
        values = runs[runs["trial"] == trial["trial"]]["valid/loss"]
        assert trial["n"] == 2
        assert trial["valid/loss/mean"] == pytest.approx(values.mean(), rel=1e-12)
        assert trial["valid/loss/sd"] == pytest.approx(values.std(), rel=1e-9)
    assert len(results.trials("trial == 'hidden=4'")) == 1


def test_epochs_and_steps_are_the_programs_own(results):
    epochs, steps = results.epochs(), results.steps()
    assert len(epochs) == 4 * 3
    text = subprocess.run(
        [br.program(), "export", "csv", results.path, "--rows", "steps"], capture_output=True, text=True, check=True
    ).stdout
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == len(steps)
    assert [float(row["loss"]) for row in rows] == steps["loss"].tolist()
    assert [(row["run"], int(row["step"])) for row in rows] == list(zip(steps["run"], steps["step"]))
    assert len(results.steps("seed == 2")) == len(steps) / 2


def test_a_run_is_read_from_its_own_folder(tmp_path, results):
    import shutil

    first, second = results.run("hidden=4-s1"), results.run("hidden=4-s2")
    experiment = tmp_path / "flowers"
    shutil.copytree(first.folder.parent.parent, experiment)
    reproduced = experiment / "reproduced" / first.id
    shutil.copytree(second.folder, reproduced)
    assert br.Run(reproduced).steps()["loss"].tolist() == second.losses().tolist() != first.losses().tolist()
    assert br.Run(reproduced).epochs()["valid/loss"].tolist() == second.epochs()["valid/loss"].tolist()


def test_the_best_run_is_a_completed_one(tmp_path, results):
    import json
    import shutil

    experiment = tmp_path / "flowers"
    shutil.copytree(results.best().folder.parent.parent, experiment)
    best = br.Results(experiment).best()
    events = best.folder / "events.jsonl"
    lines = [line for line in events.read_text().splitlines() if "run_finished" not in json.dumps(json.loads(line))]
    events.write_text("".join(f"{line}\n" for line in lines))
    (best.folder / "summary.json").unlink()
    assert br.Results(experiment).best().id != best.id


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_can_read_results(results):
    assert len(results.epochs()) and len(results.compare())
    child = os.fork()
    if child == 0:
        import signal

        # A dead lock ends the child instead of the tests.
        signal.alarm(60)
        is_same = len(results.runs()) == 4 and len(results.epochs()) == 12 and len(results.compare()) >= 1
        os._exit(0 if is_same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_numbers_are_not_copied(results):
    table = results.steps(frame="table")
    assert np.shares_memory(table.column("loss"), table.column("loss"))
    frame = table.to_pandas()
    assert np.shares_memory(frame["loss"].to_numpy(), table.column("loss"))


def test_losses_and_weights_are_arrays(results):
    run = results.run("hidden=16-s1")
    losses = run.losses()
    assert losses.dtype == np.float64
    assert losses.tolist() == run.steps()["loss"].tolist()
    weights = run.weights()
    shapes = sorted(array.shape for array in weights.values())
    assert shapes == [(3,), (4, 16), (16,), (16, 3)]
    torch_shapes = sorted(array.shape for array in run.weights(names="pytorch").values())
    assert torch_shapes == [(3,), (3, 16), (16,), (16, 4)]
    initial = run.weights("initial")
    assert any((initial[name] != weights[name]).any() for name in weights)


def test_missing_values_and_types_survive():
    rows = [
        {"a": 1, "b": 1.5, "c": True, "d": "x", "e": None},
        {"a": None, "b": 2, "c": None, "d": None, "e": None},
        {"a": 2**40, "b": None, "c": False, "d": "ü", "e": None, "f": [1, 2]},
    ]
    table = br.Table.from_rows(rows)
    frame = table.to_polars()
    assert frame["a"].to_list() == [1, None, 2**40]
    assert frame["b"].to_list() == [1.5, 2.0, None]
    assert frame["c"].to_list() == [True, None, False]
    assert frame["d"].to_list() == ["x", None, "ü"]
    pandas = table.to_pandas()
    assert pandas["a"].tolist()[0::2] == [1, 2**40] and pandas["a"].isna().tolist() == [False, True, False]
    assert pandas["d"].tolist()[0::2] == ["x", "ü"]
    assert table.column("c").tolist() == [True, None, False]
    assert len(br.Table.from_rows([])) == 0


def test_missing_and_damaged_results_are_refused(tmp_path, results):
    with pytest.raises(br.RequestError, match="contains no experiments"):
        br.Results(tmp_path).runs()
    with pytest.raises(br.RequestError, match="there is no run"):
        results.run("hidden=5-s1")
    with pytest.raises(br.RequestError, match="not the folder of a run"):
        br.Run(tmp_path).losses()


def test_a_run_that_is_deleted_meanwhile_is_refused(tmp_path, results):
    import shutil

    shutil.copytree(results.path, tmp_path / "flowers")
    copy = br.Results(tmp_path / "flowers")
    run = copy.run("hidden=4-s1")
    shutil.rmtree(run.folder)
    with pytest.raises(br.RequestError):
        run.losses()
    with pytest.raises(br.RequestError):
        run.load()


def test_changed_losses_are_refused(tmp_path, results):
    import shutil

    shutil.copytree(results.path, tmp_path / "flowers")
    run = br.Results(tmp_path / "flowers").run("hidden=4-s1")
    path = run.folder / "trace" / "losses.f64"
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(data)
    with pytest.raises(br.RequestError, match="losses.f64"):
        run.losses()


def test_comparisons_have_verdicts_as_objects(results):
    # So little training has not beaten a constant prediction, so that nothing is claimed of the valid split.
    unbeaten = results.compare("valid/loss", baseline="hidden=4")
    assert all(one.verdict is None for one in unbeaten)
    comparison = results.compare("train/loss", baseline="hidden=4")
    assert comparison.baseline == "hidden=4" and len(comparison) == 2
    trial = comparison["hidden=16"]
    assert trial.verdict.finding == "too few seeds" and not trial.verdict.is_decided
    assert str(trial.verdict) in str(comparison.frame("table").column("verdict"))
    means = {one.id: one.mean for one in comparison}
    assert trial.verdict.difference == pytest.approx(means["hidden=16"] - means["hidden=4"])
    assert comparison["hidden=4"].verdict is None
    with pytest.raises(br.RequestError, match="nothing"):
        results.compare("valid/loss", baseline="nothing")
    with pytest.raises(br.RequestError, match="alpha"):
        br.compare(results, alpha=2)


def test_everything_renders_in_notebooks(results, experiment):
    for it in (results, results.run("hidden=4-s1"), results.compare(), experiment.plan(), results.runs(frame="table")):
        assert "<table>" in it._repr_html_()
    hostile = br.Table.from_rows([{"<script>": "<script>alert(1)</script>"}])
    assert "<script>" not in hostile._repr_html_()


def test_importing_imports_no_other_library():
    names = ("numpy", "pandas", "polars", "torch")
    code = f"import sys, burn_runner; print([name for name in {names} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
