"""Results: runs, trials, epochs and steps as data frames."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._arrays import from_block
from ._errors import RequestError
from ._frames import Table, framed, html_table

if TYPE_CHECKING:
    import numpy as np

    from ._compare import Comparison
    from ._model import Model


class ResultsWarning(UserWarning):
    """Something about results that a reader should know, such as a damaged run that was skipped."""


def _warn(notes: Sequence[str]) -> None:
    for note in notes:
        warnings.warn(note, ResultsWarning, stacklevel=4)


class Run:
    """One run: its folder, for example ``results/iris/runs/base-s1``."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        #: The folder.
        self.folder = Path(folder)

    @property
    def id(self) -> str:
        """Its name in the experiment, such as ``"hidden=16-s1"``."""
        return self.folder.name

    def _read(self) -> dict[str, Any]:
        return json.loads(_native.run_plan(str(self.folder)))

    @property
    def plan(self) -> dict[str, Any]:
        """Everything that determines the run, as in ``run.toml``."""
        return self._read()["plan"]

    @property
    def summary(self) -> dict[str, Any] | None:
        """Its outcome and metrics as in ``summary.json``; None if it has not ended."""
        return self._read()["summary"]

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of its best epoch and of its tests, such as ``"valid/loss"``; empty if it has not ended."""
        summary = self.summary
        return summary["metrics"] if summary else {}

    def losses(self) -> np.ndarray:
        """The loss of every optimizer update, float64 [steps]; NaN for losses that were lost.

        Raises:
            RequestError: if the run is missing or its files were changed.
        """
        block = _native.losses(str(self.folder))
        return from_block(block, "float64", [len(block) // 8])

    def epochs(self, frame: str | None = None) -> Any:
        """Its epochs as a data frame, with seconds and metrics."""
        return framed(Table(_native.run_table(str(self.folder), "epochs")), frame)

    def steps(self, frame: str | None = None) -> Any:
        """Its optimizer updates as a data frame, with their losses."""
        return framed(Table(_native.run_table(str(self.folder), "steps")), frame)

    def load(self, device: str | None = None, weights: str | None = None) -> Model:
        """The trained network; see :func:`burn_runner.load`."""
        from ._model import load

        return load(self.folder, device=device, weights=weights)

    def weights(self, weights: str | None = None, names: str = "burn") -> dict[str, np.ndarray]:
        """The weights by name as float32 arrays.

        Args:
            weights: ``"best"``, ``"final"``, ``"ema"`` or ``"initial"``; by default those of the best epoch.
            names: ``"burn"`` for runner's names and layouts (linear weights are [inputs, outputs]), ``"pytorch"`` for
                those of PyTorch's state dict ([outputs, inputs]).
        """
        return self.load(device="flex", weights=weights).state_dict(names)

    def __repr__(self) -> str:
        return f"<Run {self.folder}>"

    def _repr_html_(self) -> str:
        read = self._read()
        summary = read["summary"] or {}
        rows = [{"metric": name, "value": value} for name, value in summary.get("metrics", {}).items()]
        from html import escape

        return f"<p>run <code>{escape(self.id)}</code></p>" + html_table(["metric", "value"], rows)


class Results:
    """Results of experiments: a folder such as ``results``, or that of one experiment.

    Everything is read when it is asked for, so an object can be used while runs are trained. Data frames are those of
    pandas if it is installed, else of polars; ``frame`` selects one of ``"pandas"``, ``"polars"`` and ``"table"``
    (:class:`Table`, which needs neither).
    """

    def __init__(self, path: str | os.PathLike[str] = "results") -> None:
        #: The folder.
        self.path = Path(path)

    @property
    def experiments(self) -> list[str]:
        """The names of the experiments."""
        return [Path(folder).name for folder in _native.experiments(str(self.path))]

    def _rows(self, **asked: Any) -> list[dict[str, Any]]:
        text = self._lines(**asked)
        return [json.loads(line) for line in text.splitlines()]

    def _lines(self, **asked: Any) -> str:
        query: dict[str, Any] = {
            "filter": None,
            "sort": None,
            "columns": [],
            "group": None,
            "limit": None,
            "all": False,
        }
        text, notes = _native.runs(str(self.path), json.dumps({**query, **asked}))
        _warn(notes)
        return text

    def runs(
        self,
        where: str | None = None,
        *,
        sort: str | None = None,
        columns: Sequence[str] = (),
        limit: int | None = None,
        all: bool = False,
        frame: str | None = None,
    ) -> Any:
        """One row for each run: its settings, outcome and metrics, as ``runner list`` shows them.

        Args:
            where: A condition such as ``"valid/accuracy > 0.9 and train.batch_size == 32"``, as of
                ``runner list --filter``.
            sort: A column; ``-`` before it reverses the order. The best runs come first for ``"objective"``.
            columns: Only these columns, which may be any setting, such as ``"train.batch_size"``; by default what every
                run has, the varied settings and the metrics.
            limit: At most so many runs.
            all: Also runs of earlier settings.
            frame: ``"pandas"``, ``"polars"`` or ``"table"``.

        Raises:
            RequestError: if there is no experiment, or a name or the condition is invalid.
        """
        text = self._lines(filter=where, sort=sort, columns=list(columns), limit=limit, all=all)
        if columns:
            return framed(Table(_native.table_of_rows(text)), frame)
        return framed(Table.from_rows(_flat(json.loads(line)) for line in text.splitlines()), frame)

    def trials(self, where: str | None = None, *, frame: str | None = None) -> Any:
        """One row for each trial, best first: rank, settings, number of runs, and mean and standard deviation of each
        metric over them, with the verdict against the baseline in words.

        Args:
            where: Only trials with a run that matches this condition.
            frame: ``"pandas"``, ``"polars"`` or ``"table"``.
        """
        wanted = None
        if where is not None:
            rows = self._rows(filter=where, columns=["experiment", "trial"])
            wanted = {(row["experiment"], row["trial"]) for row in rows}
        rows = []
        for folder in self._folders():
            found = json.loads(_native.report(folder))
            report = found["report"]
            for trial, verdict in zip(report["trials"], found["verdicts"]):
                if wanted is None or (report["experiment"], trial["id"]) in wanted:
                    rows.append(_trial(report, trial, verdict))
        return framed(Table.from_rows(rows), frame)

    def epochs(self, where: str | None = None, *, frame: str | None = None) -> Any:
        """One row for each epoch of each run, with its settings, seconds and metrics; ``where`` as in :meth:`runs`."""
        return self._table("epochs", frame, where)

    def steps(self, where: str | None = None, *, frame: str | None = None) -> Any:
        """One row for each optimizer update of each run, with its settings and loss; ``where`` as in :meth:`runs`."""
        return self._table("steps", frame, where)

    def _table(self, rows: str, frame: str | None, where: str | None) -> Any:
        found = self._rows(filter=where, columns=["experiment", "run"])
        wanted = [(row["experiment"], row["run"]) for row in found]
        return framed(Table(_native.table(str(self.path), rows, wanted)), frame)

    def _folders(self) -> list[str]:
        folders = _native.experiments(str(self.path))
        if not folders:
            raise RequestError(
                f"error: `{self.path}` contains no experiments\n"
                "  = help: use a results folder, or create one with `Experiment.run`"
            )
        return folders

    def run(self, id: str, experiment: str | None = None) -> Run:
        """A run by its name.

        Raises:
            RequestError: if there is none, or if several experiments have one.
        """
        folders = [Path(folder) for folder in self._folders()]
        folders = [folder for folder in folders if experiment is None or folder.name == experiment]
        found = [folder / "runs" / id for folder in folders if (folder / "runs" / id / "run.toml").is_file()]
        if len(found) == 1:
            return Run(found[0])
        if not found:
            names = [row["run"] for row in self._rows(columns=["run"])]
            import difflib

            near = difflib.get_close_matches(id, names, 3) or names[:3]
            raise RequestError(f"error: there is no run `{id}`\n  = help: for example {', '.join(near)}")
        several = ", ".join(folder.parent.parent.name for folder in found)
        raise RequestError(f"error: several experiments have a run `{id}`: {several}\n  = help: pass `experiment`")

    def report(self) -> dict[str, Any]:
        """The content of ``report.json`` of the only experiment."""
        return self._report()["report"]

    def _report(self) -> dict[str, Any]:
        folders = self._folders()
        if len(folders) > 1:
            raise RequestError(
                f"error: `{self.path}` contains {len(folders)} experiments\n  = help: use the folder of one of them"
            )
        return json.loads(_native.report(folders[0]))

    def best(self) -> Run:
        """The best run by the objective of the only experiment.

        Raises:
            RequestError: if no run is completed.
        """
        self._report()
        completed = "outcome == 'completed'"
        for row in self._rows(filter=completed, sort="objective", columns=["run"], limit=1):
            return self.run(row["run"])
        raise RequestError(f"error: `{self.path}` has no completed run\n  = help: train it with `Experiment.run`")

    def compare(self, value: str | None = None, **options: Any) -> Comparison:
        """The trials compared with a baseline; see :func:`burn_runner.compare`."""
        from ._compare import compare

        return compare(self.path, value=value, **options)

    def __iter__(self) -> Iterator[Run]:
        for row in self._rows(columns=["experiment", "run"]):
            yield self.run(row["run"], row["experiment"])

    def __repr__(self) -> str:
        return f"<Results in {self.path}>"

    def _repr_html_(self) -> str:
        folders = self._folders()
        table = self.trials(frame="table") if len(folders) == 1 else self.runs(frame="table")
        return table._repr_html_()


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A run with its varied settings and its metrics as columns; other settings are shown if they are asked for."""
    axes, metrics, _ = row.pop("axes"), row.pop("metrics"), row.pop("settings")
    return {**row, **axes, **metrics}


def _trial(report: dict[str, Any], trial: dict[str, Any], verdict: str | None) -> dict[str, Any]:
    row = {
        "experiment": report["experiment"],
        "rank": trial["rank"],
        "trial": trial["id"],
        **trial["axes"],
        "num_runs": len(trial["runs"]),
        "n": trial["n"],
    }
    for name, sample in trial["metrics"].items():
        row[f"{name}/mean"] = sample.get("mean")
        row[f"{name}/sd"] = sample.get("sd")
    baseline = report.get("baseline") or {}
    is_baseline = baseline.get("trial") == trial["id"]
    row["verdict"] = "baseline" if is_baseline else verdict
    row["wall_secs"] = trial["wall_secs"]
    row["epoch_secs"] = trial["epoch_secs"]
    return row
