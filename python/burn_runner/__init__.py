"""Experiments with `runner` from Python: train, read results, and use trained networks.

>>> import burn_runner as br
>>> experiment = br.Experiment.from_file("experiments/iris_csv.toml")
>>> outcome = experiment.run()                      # doctest: +SKIP
>>> outcome.results.runs()                          # doctest: +SKIP
>>> model = outcome.results.best().load()           # doctest: +SKIP
>>> model.predict(data).labels                      # doctest: +SKIP

`Experiment` checks, plans and trains. `Results` reads a results folder as data frames. `load` opens a trained network.
Errors are `RunnerError`s. NumPy is imported when arrays are first used, and pandas, polars and PyTorch only if they are
asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import (
    Diagnostic,
    ExperimentError,
    InternalError,
    RequestError,
    RunError,
    RunnerError,
)
from ._native import version as _version

__version__: str = _version()

if TYPE_CHECKING:
    from ._compare import ComparedTrial, Comparison, Verdict, compare
    from ._experiment import Experiment, ExperimentWarning, Outcome, Plan
    from ._frames import Table
    from ._model import Gradients, Model, Predictions, load
    from ._program import program
    from ._results import Results, ResultsWarning, Run

#: Where each name is; it is imported when it is first used.
_PLACES = {
    "ComparedTrial": "_compare",
    "Comparison": "_compare",
    "Verdict": "_compare",
    "compare": "_compare",
    "Experiment": "_experiment",
    "ExperimentWarning": "_experiment",
    "Outcome": "_experiment",
    "Plan": "_experiment",
    "Table": "_frames",
    "Gradients": "_model",
    "Model": "_model",
    "Predictions": "_model",
    "load": "_model",
    "program": "_program",
    "Results": "_results",
    "ResultsWarning": "_results",
    "Run": "_results",
}

__all__ = [
    "ComparedTrial",
    "Comparison",
    "Diagnostic",
    "Experiment",
    "ExperimentError",
    "ExperimentWarning",
    "Gradients",
    "InternalError",
    "Model",
    "Outcome",
    "Plan",
    "Predictions",
    "RequestError",
    "Results",
    "ResultsWarning",
    "Run",
    "RunError",
    "RunnerError",
    "Table",
    "Verdict",
    "__version__",
    "compare",
    "load",
    "program",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'burn_runner' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"burn_runner.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
