"""Experiments: checked, planned and trained."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _native
from ._errors import Diagnostic, ExperimentError, RequestError, RunError, diagnostics
from ._frames import Table, framed, html_table
from ._memory import edits
from ._program import program
from ._progress import shown
from ._results import Results, Run


class ExperimentWarning(UserWarning):
    """A warning about an experiment; the text is that of its diagnostic."""


def plain(value: Any, place: str = "") -> Any:
    """A value as JSON has it: arrays as lists, paths as text."""
    if place.count(".") > 100:
        raise RequestError("error: the experiment contains itself\n  = help: use dictionaries without cycles")
    if isinstance(value, Mapping):
        return {str(key): plain(item, f"{place}.{key}".strip(".")) for key, item in value.items()}
    if isinstance(value, (str, bool, int)) or type(value) is float:
        if isinstance(value, float) and not math.isfinite(value):
            raise RequestError(f"error: `{place}` is {value}, which is not a finite number")
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist(), place)
    if isinstance(value, Iterable):
        return [plain(item, place) for item in value]
    raise RequestError(
        f"error: `{place}` is {value!r}, which an experiment cannot contain\n"
        "  = help: use texts, numbers, booleans, lists and dictionaries; leave out a key to use its default"
    )


class Plan:
    """The runs of an experiment, in the order in which they start.

    A sequence of dictionaries with everything that determines a run, as in ``run.toml``.
    """

    def __init__(self, planned: dict[str, Any]) -> None:
        #: Everything, as in ``plan.json``.
        self.data: dict[str, Any] = planned["plan"]
        #: The warnings.
        self.warnings: list[Diagnostic] = diagnostics(planned["warnings"])
        self._steps: list[int] = planned["steps"]

    @property
    def experiment(self) -> str:
        """The name of the experiment."""
        return self.data["experiment"]

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The runs."""
        return self.data["runs"]

    @property
    def trials(self) -> list[str]:
        """The names of the trials."""
        return list(dict.fromkeys(run["trial"] for run in self.runs))

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "run": run["id"],
                "trial": run["trial"],
                "seed": run["seed"],
                **run["axes"],
                "device": run["device"],
                "epochs": run["train"]["epochs"],
                "steps": steps,
            }
            for run, steps in zip(self.runs, self._steps)
        ]

    def frame(self, frame: str | None = None) -> Any:
        """The runs as a data frame, with a column for each varied setting."""
        return framed(Table.from_rows(self._rows()), frame)

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.runs)

    def __getitem__(self, at: int) -> dict[str, Any]:
        return self.runs[at]

    def __repr__(self) -> str:
        return f"<Plan of {self.experiment}: {len(self.trials)} trials, {len(self)} runs>"

    def _repr_html_(self) -> str:
        rows = self._rows()
        return html_table(list(rows[0]) if rows else [], rows)


class Outcome:
    """How the runs of an experiment ended."""

    def __init__(self, data: dict[str, Any]) -> None:
        #: The folder of the experiment.
        self.folder = Path(data["folder"])
        #: The exit code of ``runner run``: 0 if all requested runs are completed.
        self.exit_code: int = data["exit_code"]
        #: The number of requested runs that are not completed.
        self.num_left: int = data["num_left"]
        #: Why it ended early: ``"user"`` (Ctrl-C), ``"time limit"``, ``"failure"``, ``"not recorded"``, or None.
        self.stopped: str | None = data["stopped"]
        #: The error that prevented training or recording, as text.
        self.failure: str | None = data["failure"]
        #: The content of ``report.json``.
        self.report: dict[str, Any] | None = data["report"]
        self._selected: list[str] = data["selected"]

    @property
    def results(self) -> Results:
        """The results of this experiment."""
        return Results(self.folder)

    @property
    def runs(self) -> list[Run]:
        """The requested runs."""
        return [self.results.run(run) for run in self._selected]

    @property
    def problems(self) -> list[dict[str, Any]]:
        """Runs that are not completed, each with ``run``, ``outcome`` and ``message``."""
        return self.report["problems"] if self.report else []

    def check(self) -> Outcome:
        """Returns itself.

        Raises:
            RunError: if a requested run is not completed.
        """
        if self.exit_code == 0:
            return self
        lines = [f"error: {self.num_left} of {len(self._selected)} runs are not completed"]
        if self.failure:
            lines.append(self.failure)
        lines += [f"  = note: `{one['run']}`: {one['message']}" for one in self.problems[:20]]
        raise RunError("\n".join(lines))

    def __repr__(self) -> str:
        ended = f", stopped: {self.stopped}" if self.stopped else ""
        done = len(self._selected) - self.num_left
        return f"<Outcome of {self.folder}: {done} of {len(self._selected)} runs completed{ended}>"

    def _repr_html_(self) -> str:
        return self.results._repr_html_()


class Experiment:
    """An experiment: a file, or a dictionary with the same keys. It never changes: edits return another one.

    >>> experiment = Experiment.from_dict({"data": {"type": "iris"}, "train": {"epochs": 2}})
    >>> experiment.override("train.epochs", 3).check()
    []
    """

    def __init__(self, path: str | os.PathLike[str], text: str | None = None, edits: Sequence[str] = ()) -> None:
        self._path = os.fspath(path)
        self._text = text
        self._edits = tuple(edits)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Experiment:
        """The experiment of a TOML file."""
        return cls(path)

    @classmethod
    def from_text(cls, text: str, name: str = "experiment", folder: str | os.PathLike[str] = ".") -> Experiment:
        """The experiment of a TOML text. ``name`` is used if the text sets none; relative paths start at ``folder``."""
        return cls(Path(folder) / f"{name}.toml", text)

    @classmethod
    def from_dict(
        cls, spec: Mapping[str, Any], name: str = "experiment", folder: str | os.PathLike[str] = "."
    ) -> Experiment:
        """The experiment of a dictionary with the keys of an experiment file.

        Values are what TOML has: texts, numbers, booleans, lists and dictionaries; arrays of NumPy are lists, and
        paths are texts. ``name`` is used if ``experiment.name`` is not set; relative paths start at ``folder``.

        Raises:
            RequestError: if a value cannot be in an experiment.
        """
        return cls.from_text(_native.toml(json.dumps(plain(spec))), name, folder)

    def override(self, key: str, value: Any) -> Experiment:
        """The same experiment with another value for a key such as ``"optimizer.learning_rate"``.

        A list or a ``{"grid": ...}`` table varies a key as in a file. It is ``--set`` of the command line.
        """
        edit = f"{key}={_native.toml_value(json.dumps(plain(value, key)))}"
        return Experiment(self._path, self._text, (*self._edits, edit))

    @property
    def text(self) -> str:
        """The TOML text, without overrides."""
        return Path(self._path).read_text() if self._text is None else self._text

    def _arguments(self) -> tuple[str, str | None, list[str], str]:
        return self._path, self._text, list(self._edits), str(program())

    def check(self) -> list[Diagnostic]:
        """Everything that is wrong or questionable, in the order of the file; empty if there is nothing.

        Nothing is downloaded or written. :meth:`plan` and :meth:`run` raise the errors among these.
        """
        return diagnostics(json.loads(_native.check(*self._arguments())))

    def plan(self) -> Plan:
        """All runs, resolved. Nothing is downloaded or written.

        Raises:
            ExperimentError: with everything that is wrong with the experiment.
        """
        plan = Plan(json.loads(_native.plan(*self._arguments())))
        _warn(plan.warnings)
        return plan

    def run(
        self,
        jobs: int | None = None,
        on_event: Callable[[dict[str, Any]], object] | None = None,
        *,
        results: str | os.PathLike[str] = "results",
        only: Sequence[str] = (),
        retry: Sequence[str] = (),
        until_decided: bool = False,
        wait: bool = False,
        progress: bool | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """Trains all runs that are not completed, each in a process of ``runner``, and writes the report.

        Ctrl-C (in a notebook: the interrupt button) lets the runs save a checkpoint and returns an outcome with
        ``stopped == "user"``; the same call continues them. A second one kills them and raises KeyboardInterrupt.
        The interpreter's lock is released while runs are trained.

        Args:
            jobs: Concurrent runs; by default as many as fit on the machine.
            on_event: Called with every event as a dictionary, in this thread. ``event`` is its kind, such as
                ``"epoch_finished"``, and ``run`` its run; docs/results.md lists the fields. An exception in it stops
                the runs as Ctrl-C does, and is raised once they have saved.
            results: The folder that contains the folders of experiments.
            only: Patterns of run ids such as ``"*-s1"``: only runs that match one of them.
            retry: ``"failed"``, ``"pruned"`` or classes of failures: only runs that ended so.
            until_decided: Adds seeds until every verdict is decided, as ``[verdict]`` allows.
            wait: Waits for another ``runner run`` in the same folder.
            progress: Whether to show progress; by default if ``on_event`` is not given. tqdm or rich is used if
                installed.
            data: Data in memory, ``{"train": (X, y)}`` and optionally ``"valid"`` and ``"test"``: arrays of numbers
                with the items as their first dimension. They are written to ``results/data`` as an archive whose name
                is a digest of its content, and become ``[data]``; the other keys of this table, such as ``scale`` and
                ``split``, are those of the experiment. Integers as ``y`` are classes, floats are numbers.

        Raises:
            ExperimentError: if the experiment is invalid; nothing was written.
            RequestError: if the request is invalid.
        """
        experiment = self if data is None else self.with_data(data, results)
        return experiment._run(_native.cancel(), jobs, on_event, results, only, retry, until_decided, wait, progress)

    def with_data(self, data: Mapping[str, Any], results: str | os.PathLike[str] = "results") -> Experiment:
        """The same experiment on data in memory, as ``run(data=...)`` trains it: to check and to plan it."""
        experiment = self
        for key, value in edits(data, Path(results)).items():
            experiment = experiment.override(key, value)
        return experiment

    async def run_async(
        self,
        jobs: int | None = None,
        on_event: Callable[[dict[str, Any]], object] | None = None,
        *,
        results: str | os.PathLike[str] = "results",
        only: Sequence[str] = (),
        retry: Sequence[str] = (),
        until_decided: bool = False,
        wait: bool = False,
        data: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """:meth:`run` without blocking the event loop. ``on_event`` is called in the loop's thread.

        If the task is cancelled, the runs save a checkpoint and stop before ``CancelledError`` is raised. An exception
        in ``on_event`` goes to the loop's exception handler.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        experiment = self if data is None else self.with_data(data, results)
        cancel = _native.cancel()

        def see(event: dict[str, Any]) -> None:
            if on_event is not None:
                loop.call_soon_threadsafe(on_event, event)

        work = asyncio.ensure_future(
            asyncio.to_thread(experiment._run, cancel, jobs, see, results, only, retry, until_decided, wait, False)
        )
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            _native.cancel_now(cancel, False)
            await asyncio.wait([work])
            raise

    def _run(
        self,
        cancel: object,
        jobs: int | None,
        on_event: Callable[[dict[str, Any]], object] | None,
        results: str | os.PathLike[str],
        only: Sequence[str],
        retry: Sequence[str],
        until_decided: bool,
        wait: bool,
        progress: bool | None,
    ) -> Outcome:
        if jobs is not None and jobs < 1:
            raise RequestError(f"error: `jobs` is {jobs}\n  = help: use a number from 1")
        options = {
            "results": os.fspath(results),
            "jobs": jobs,
            "only": [only] if isinstance(only, str) else list(only),
            "retry": [retry] if isinstance(retry, str) else list(retry),
            "until_decided": until_decided,
            "wait": wait,
        }
        is_shown = on_event is None if progress is None else progress
        with shown(is_shown) as show:

            def see(line: str) -> None:
                event = json.loads(line)
                if event["event"] == "warnings":
                    _warn(diagnostics(event["diagnostics"]))
                    return
                show(event)
                if on_event is not None:
                    on_event(event)

            outcome = _native.run(self._arguments(), json.dumps(options), cancel, see)
        return Outcome(json.loads(outcome))

    def __repr__(self) -> str:
        edits = "".join(f", {edit}" for edit in self._edits)
        return f"<Experiment {self._path}{edits}>"


def _warn(found: list[Diagnostic]) -> None:
    for one in found:
        if one.severity == "warning":
            warnings.warn(one.text, ExperimentWarning, stacklevel=4)


__all__ = ["Experiment", "ExperimentError", "ExperimentWarning", "Outcome", "Plan"]
