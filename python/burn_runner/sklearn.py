"""Estimators for scikit-learn: :class:`RunnerClassifier` and :class:`RunnerRegressor`.

>>> from burn_runner.sklearn import RunnerClassifier
>>> classifier = RunnerClassifier(model={"type": "mlp", "hidden": [16]}, train={"epochs": 20})
>>> classifier.fit(X, y).score(X, y)          # doctest: +SKIP
"""

from __future__ import annotations

import io
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ._experiment import Experiment
from ._model import Model, load

__all__ = ["RunnerClassifier", "RunnerRegressor"]

_DEFAULTS: dict[str, dict[str, Any]] = {
    "model": {"type": "mlp", "hidden": [32]},
    "optimizer": {"type": "adam", "learning_rate": 1e-2},
    "train": {"epochs": 50, "batch_size": 32},
}

#: Parts of a run's folder that a fitted network does not need.
_UNNEEDED = ("checkpoints", "trace")


class _Estimator(BaseEstimator):  # type: ignore[misc]
    """What both estimators share."""

    def __init__(
        self,
        *,
        model: Mapping[str, Any] | None = None,
        optimizer: Mapping[str, Any] | None = None,
        train: Mapping[str, Any] | None = None,
        loss: Mapping[str, Any] | None = None,
        scheduler: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        backend: Mapping[str, Any] | None = None,
        validation_fraction: float = 0.1,
        random_state: Any = 0,
        results: str | os.PathLike[str] | None = None,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.train = train
        self.loss = loss
        self.scheduler = scheduler
        self.data = data
        self.backend = backend
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.results = results

    def _experiment(self, num_items: int) -> Experiment:
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(2**31 - 1)
        tables = ("model", "optimizer", "train", "loss", "scheduler", "data", "backend")
        spec: dict[str, Any] = {"experiment": {"name": "estimator", "seeds": [int(seed)]}}
        for name in tables:
            given = getattr(self, name)
            default = _DEFAULTS.get(name, {})
            # A table of another type has other keys.
            is_other = given is not None and given.get("type", default.get("type")) != default.get("type")
            table = {**({} if is_other else default), **(given or {})}
            if table:
                spec[name] = table
        spec["data"] = {"scale": "standardize", **self._data(), **spec.get("data", {})}
        # At least one item, and of small data no more than a few.
        valid = min(max(self.validation_fraction, 1.01 / num_items), 0.5)
        spec["data"]["split"] = {"valid": valid, **spec["data"].get("split", {})}
        num_train = max(1, int(num_items * (1 - valid)) - 1)
        spec["train"]["batch_size"] = min(spec["train"].get("batch_size", 32), num_train)
        return Experiment.from_dict(spec)

    def _data(self) -> dict[str, Any]:
        return {}

    def _fit(self, x: np.ndarray, y: np.ndarray) -> None:
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder if self.results is None else self.results)
            experiment = self._experiment(len(x))
            outcome = experiment.run(data={"train": (x, y)}, results=results, progress=False).check()
            run = outcome.runs[0]
            self._files = _packed(run.folder)
            self._model: Model | None = load(run.folder)
            #: The metrics of the run, such as ``"train/loss"``.
            self.metrics_ = run.metrics

    @property
    def network_(self) -> Model:
        """The fitted network."""
        if self._model is None:
            with tempfile.TemporaryDirectory() as folder:
                with zipfile.ZipFile(io.BytesIO(self._files)) as archive:
                    archive.extractall(folder)
                self._model = load(folder)
        return self._model

    def _checked(self, x: Any) -> np.ndarray:
        check_is_fitted(self, "metrics_")
        return validate_data(self, x, dtype=[np.float64, np.float32], reset=False)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_model" in state:
            # It is loaded again where it is used.
            state["_model"] = None
        return state


def _packed(folder: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            inner = path.relative_to(folder)
            if path.is_file() and inner.parts[0] not in _UNNEEDED:
                archive.write(path, inner)
    return packed.getvalue()


class RunnerClassifier(ClassifierMixin, _Estimator):  # type: ignore[misc]
    """A network that classifies rows, trained by runner in a process of its own.

    Args:
        model: The network, as ``[model]`` of an experiment file; by default an MLP with 32 hidden units.
        optimizer: The optimizer; by default Adam with a learning rate of 0.01.
        train: The training, such as ``{"epochs": 50, "batch_size": 32}``, which is the default.
        loss: The loss; by default the cross-entropy.
        scheduler: The schedule of the learning rate; by default none.
        data: Further keys of ``[data]``, such as ``{"scale": "min_max"}``; by default columns are standardized.
        backend: The device and the precision.
        validation_fraction: The fraction of the items that are not trained on, and select the best epoch; at least one
            item.
        random_state: The seed.
        results: The folder that keeps the run; by default a temporary one.

    Attributes:
        classes_: The classes.
        network_: The fitted :class:`burn_runner.Model`.
        metrics_: The metrics of the run.
        n_features_in_: The number of columns.
    """

    classes_: np.ndarray

    def fit(self, X: Any, y: Any) -> RunnerClassifier:
        """Trains the network on rows [items, columns] and their classes [items].

        Raises:
            ValueError: if the data or a setting is invalid; an `ExperimentError` has the diagnostics.
        """
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("RunnerClassifier needs at least 2 classes: the data has one class")
        self._fit(X, index.astype("int64"))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, float64 [items, classes]."""
        X = self._checked(X)
        found = self.network_.predict(X).probabilities
        assert found is not None
        found = found.astype("float64")
        return found / found.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row, [items]."""
        index = self.predict_proba(X).argmax(axis=1)
        return self.classes_[index]


class RunnerRegressor(RegressorMixin, _Estimator):  # type: ignore[misc]
    """A network that predicts numbers for rows, trained by runner in a process of its own.

    The arguments are those of :class:`RunnerClassifier`; the default loss is the mean squared error, and targets are
    standardized while they are learned.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _data(self) -> dict[str, Any]:
        return {"target_scale": "standardize"}

    def fit(self, X: Any, y: Any) -> RunnerRegressor:
        """Trains the network on rows [items, columns] and their numbers [items] or [items, numbers].

        Raises:
            ValueError: if the data or a setting is invalid; an `ExperimentError` has the diagnostics.
        """
        X, y = validate_data(
            self, X, y, dtype=[np.float64, np.float32], multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        self._is_flat = y.ndim == 1
        self._fit(X, y.astype("float64"))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The predicted numbers, float64 [items], or [items, numbers] if there are several."""
        X = self._checked(X)
        values = self.network_.predict(X).values
        assert values is not None
        return values.ravel() if self._is_flat else values.reshape(len(values), -1)
