"""Trials compared with a baseline, and verdicts as objects."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

from . import _native
from ._frames import Table, framed, html_table
from ._results import Results, Run, _warn


@dataclass(frozen=True)
class Verdict:
    """What the runs show about a trial against the baseline; ``str(verdict)`` is one phrase.

    docs/verdicts.md explains the tests.
    """

    #: ``"better"``, ``"worse"``, ``"no difference shown"``, ``"too few seeds"``, ``"no exact test"`` or
    #: ``"not tested"``: the exact test's claim.
    finding: str
    #: The claim if the noise is normal: ``"better"``, ``"worse"``, ``"undecided"``, ``"equal"``, or None.
    if_normal: str | None
    #: The exact test's p-value, corrected by Holm's method over all comparisons; None without a test.
    p: float | None
    #: The p-value of Student's t, corrected in the same way.
    p_if_normal: float | None
    #: The mean difference from the baseline.
    difference: float | None
    #: Its confidence interval, not corrected.
    interval: tuple[float, float] | None
    #: The significance level of all comparisons together.
    alpha: float
    #: In words.
    words: str = ""
    #: Everything, as in ``report.json``.
    data: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_decided(self) -> bool:
        """Whether something is claimed, possibly under normal noise."""
        return self.finding in ("better", "worse") or self.if_normal in ("better", "worse", "equal")

    def __str__(self) -> str:
        return self.words


def _verdict(data: dict[str, Any], words: str) -> Verdict:
    normal = data.get("if_normal") or {}
    comparison = data.get("comparison") or {}
    interval = comparison.get("interval")
    bounds = (interval["low"], interval["high"]) if isinstance(interval, dict) else None
    return Verdict(
        finding=data["finding"]["type"].replace("_", " "),
        if_normal=normal.get("reading"),
        p=data.get("p_corrected"),
        p_if_normal=normal.get("p_corrected"),
        difference=comparison.get("mean_difference"),
        interval=bounds,
        alpha=data["alpha"],
        words=words,
        data=data,
    )


@dataclass(frozen=True)
class ComparedTrial:
    """A trial in a comparison."""

    #: Its name.
    id: str
    #: Its rank from 1; None without a value.
    rank: int | None
    #: The varied settings.
    axes: dict[str, Any]
    #: The number of its completed runs.
    n: int
    #: The mean of the compared value, or None.
    mean: float | None
    #: Its standard deviation, or None.
    sd: float | None
    #: Whether it is the baseline.
    is_baseline: bool
    #: Its verdict; None for the baseline.
    verdict: Verdict | None


class Comparison:
    """Trials compared with a baseline. A sequence of :class:`ComparedTrial`, best first."""

    def __init__(self, data: dict[str, Any]) -> None:
        comparison = data["comparison"]
        #: The compared metric.
        self.value: str = comparison["value"]
        baseline = comparison.get("baseline")
        #: The baseline's name, or None.
        self.baseline: str | None = baseline["trial"] if baseline else None
        #: Notes for the reader.
        self.notes: list[str] = comparison.get("notes", [])
        #: Everything, as of ``runner compare --json``.
        self.data = comparison
        #: The trials.
        self.trials = [self._trial(trial, words) for trial, words in zip(comparison["trials"], data["verdicts"])]
        self._text: str = data["text"]

    def _trial(self, trial: dict[str, Any], words: str | None) -> ComparedTrial:
        sample = trial.get("sample") or {}
        verdict = trial.get("verdict")
        return ComparedTrial(
            id=trial["id"],
            rank=trial["rank"],
            axes=trial["axes"],
            n=sample.get("n", 0),
            mean=sample.get("mean"),
            sd=sample.get("sd"),
            is_baseline=trial["id"] == self.baseline,
            verdict=_verdict(verdict, words or "") if verdict else None,
        )

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Any:
        return iter(self.trials)

    def __getitem__(self, which: int | str) -> ComparedTrial:
        if isinstance(which, int):
            return self.trials[which]
        for trial in self.trials:
            if trial.id == which:
                return trial
        raise KeyError(which)

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "rank": trial.rank,
                "trial": trial.id,
                **trial.axes,
                "n": trial.n,
                f"{self.value}/mean": trial.mean,
                f"{self.value}/sd": trial.sd,
                "difference": trial.verdict.difference if trial.verdict else None,
                "p": trial.verdict.p if trial.verdict else None,
                "verdict": "baseline" if trial.is_baseline else trial.verdict and str(trial.verdict),
            }
            for trial in self.trials
        ]

    def frame(self, frame: str | None = None) -> Any:
        """The trials as a data frame."""
        return framed(Table.from_rows(self._rows()), frame)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Comparison of {len(self)} trials by {self.value} with {self.baseline}>"

    def _repr_html_(self) -> str:
        rows = self._rows()
        return html_table(list(rows[0]) if rows else [], rows)


def compare(
    *sources: str | os.PathLike[str] | Results | Run,
    value: str | None = None,
    baseline: str | None = None,
    alpha: float = 0.05,
    pareto: tuple[str, str] | None = None,
) -> Comparison:
    """Compares the trials of experiments, runs or saved reports with a baseline.

    Args:
        sources: Folders of experiments or runs, results folders, ``report.json`` files, or patterns of such paths.
        value: A metric such as ``"valid/accuracy"``, or ``"epoch_secs"``, ``"wall_secs"``, ``"memory_bytes"``; by
            default the objective.
        baseline: The trial that others are compared with; by default that of the file, else the best one.
        alpha: The significance level of all comparisons together.
        pareto: Two metrics; ``data["pareto"]`` then has the trials that no other beats in both.

    Raises:
        RequestError: if no source can be read, or a name does not exist.
    """
    paths = []
    for source in sources:
        if isinstance(source, Results):
            source = source.path
        elif isinstance(source, Run):
            source = source.folder
        paths.append(os.fspath(source))
    data = json.loads(_native.compare(paths, value, baseline, alpha, pareto))
    _warn(data["notes"])
    return Comparison(data)
