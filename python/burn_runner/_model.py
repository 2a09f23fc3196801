"""Trained networks: predictions, raw outputs, weights and gradients."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._arrays import argument, array_of, from_block, whole_numbers
from ._errors import RequestError
from ._frames import Table, framed, html_table

if TYPE_CHECKING:
    import numpy as np

#: Files of pictures.
_PICTURES = (".png", ".jpg", ".jpeg")


class Predictions:
    """Predictions of several items, in their order.

    Which of the arrays are set depends on the task; the others are None. ``numpy.asarray(predictions)`` is
    :attr:`probabilities` or :attr:`values`, or else :attr:`index`.
    """

    def __init__(self, found: dict[str, Any], names: list[str]) -> None:
        num, shape, kind = found["num"], found["shape"], found["kind"]

        def array(key: str, dtype: str, sizes: list[int]) -> np.ndarray | None:
            return from_block(found[key], dtype, [num, *sizes]) if len(found[key]) else None

        #: ``"class"``, ``"labels"``, ``"values"``, ``"classes"`` (of each pixel), ``"item"`` or ``"token"``.
        self.kind: str = kind
        #: The names of classes, labels or predicted numbers.
        self.names = names
        #: The index of the predicted class or token, uint32 [items], or of the class of each pixel [items, height,
        #: width].
        self.index: np.ndarray | None = array("index", "uint32", shape if kind == "classes" else [])
        #: The probability of each class or label, float32 [items, classes]; scores if the loss gives no
        #: probabilities; of a token, only its own, [items].
        self.probabilities: np.ndarray | None = array("probabilities", "float32", [] if kind == "token" else shape)
        #: Predicted numbers in units of the data, float64 [items, targets], or [items, item shape] of an autoencoder.
        self.values: np.ndarray | None = array("values", "float64", shape)
        #: Standard deviations of the numbers, float64 [items, targets], if the network predicts them.
        self.deviations: np.ndarray | None = array("deviations", "float64", shape)
        #: The rows, items or files that were predicted, as ``runner predict`` names them; None for arrays.
        self.ids: list[str] | None = found["ids"] or None
        self._texts: list[str] = found["texts"]
        self._num: int = num

    @property
    def labels(self) -> Any:
        """The names of the predicted classes, an array of objects [items]; the predicted labels of each item as lists
        (more probable than 0.5); or the predicted tokens.

        Raises:
            AttributeError: if the task predicts numbers.
        """
        import numpy as np

        if self.kind == "class":
            return np.array(self.names, dtype=object)[self.index]
        if self.kind == "labels" and self.probabilities is not None:
            return [[name for name, p in zip(self.names, row) if p > 0.5] for row in self.probabilities]
        if self.kind == "token":
            return np.array(self._texts, dtype=object)
        raise AttributeError(f"predictions of {self.kind} have no labels")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        import numpy as np

        found = self.probabilities if self.kind in ("class", "labels") else None
        found = found if found is not None else self.values
        found = found if found is not None else self.index
        return np.array(found, dtype=dtype) if copy else np.asarray(found, dtype=dtype)

    def __len__(self) -> int:
        return self._num

    def _rows(self, most: int | None = None) -> list[dict[str, Any]]:
        rows = []

        def add(row: dict[str, Any], names: Iterable[str], values: Any) -> None:
            for name, value in zip(names, map(float, values)):
                # A class may have the name of another column.
                row[f"{name}_" if name in row else name] = value

        for at in range(self._num if most is None else min(most, self._num)):
            row: dict[str, Any] = {} if self.ids is None else {"id": self.ids[at]}
            if self.kind in ("class", "token"):
                row["prediction"] = self.labels[at]
            elif self.kind == "labels":
                row["labels"] = "|".join(self.labels[at])
            if self.probabilities is not None and self.probabilities.ndim == 2:
                add(row, self.names, self.probabilities[at])
            if self.kind == "values" and self.values is not None:
                add(row, self.names, self.values[at])
                if self.deviations is not None:
                    add(row, (f"{name}/sd" for name in self.names), self.deviations[at])
            rows.append(row)
        return rows

    def frame(self, frame: str | None = None) -> Any:
        """A data frame with a row for each item: the prediction, and the probability of each class or the numbers.

        Raises:
            RequestError: for predictions of whole items, which are arrays.
        """
        if self.kind in ("classes", "item"):
            array = "index" if self.kind == "classes" else "values"
            raise RequestError(f"error: these predictions are arrays, not rows\n  = help: use `{array}`")
        return framed(Table.from_rows(self._rows()), frame)

    def __repr__(self) -> str:
        return f"<Predictions of {self._num} items: {self.kind}>"

    def _repr_html_(self) -> str:
        rows = self._rows(most=10)
        more = f"<p>of {self._num} items</p>" if self._num > 10 else ""
        return html_table(list(rows[0]) if rows else [], rows) + more


class Gradients:
    """The gradients of a loss, the mean over the items."""

    def __init__(self, loss: float, inputs: np.ndarray | None, parameters: dict[str, np.ndarray]) -> None:
        #: The mean loss of the items.
        self.loss = loss
        #: With respect to the inputs, of their shape; None for tokens and for named inputs.
        self.inputs = inputs
        #: With respect to each parameter by name, in runner's layout: linear weights are [inputs, outputs].
        self.parameters = parameters

    def __repr__(self) -> str:
        return f"<Gradients of {len(self.parameters)} parameters at the loss {self.loss:.6g}>"


def load(
    path: str | os.PathLike[str],
    *,
    device: str | None = None,
    weights: str | None = None,
    trial: str | None = None,
) -> Model:
    """Loads a trained network.

    Args:
        path: The folder of a run, the folder of an experiment (its best run), or a capsule.
        device: Where it computes, such as ``"flex"`` (this processor); by default where it was trained.
        weights: ``"best"``, ``"final"``, ``"ema"`` or ``"initial"``; by default those of the best epoch.
        trial: For an experiment: the name of a trial.

    Raises:
        RequestError: if the run does not exist or is damaged, or the device is not available.
    """
    return Model(*_native.open_model(os.fspath(path), device, weights, trial))


class Model:
    """A trained network, from :func:`load` or :meth:`Run.load`. It never changes, and any number of threads can use it
    at once: computations release the interpreter's lock.

    :meth:`predict` takes data as it is in files, with the transforms that the run fitted to its train split. Calling
    the model computes the network alone, without them.
    """

    def __init__(self, handle: object, about: str) -> None:
        self._handle = handle
        #: What is known about the network: its run, task, inputs and layers.
        self.info: dict[str, Any] = json.loads(about)
        # The process may go to another folder.
        self.info["folder"] = os.path.abspath(self.info["folder"])

    @property
    def task(self) -> str:
        """The task, such as ``"classification"``."""
        return self.info["task"]

    @property
    def names(self) -> list[str]:
        """The names of classes, labels or predicted numbers, in the order of the outputs."""
        return self.info["names"]

    @property
    def columns(self) -> list[str]:
        """The names of the input columns."""
        return [column["name"] for column in self.info["columns"]]

    @property
    def layers(self) -> dict[str, tuple[int, ...]]:
        """The name and output shape of each layer, without the batch."""
        return {layer["name"]: tuple(_dims(layer["shape"])) for layer in self.info["layers"]}

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of an item, without the batch."""
        return tuple(self.info["input_shape"])

    def predict(self, data: Any, *, batch_size: int = 256, skip_bad_items: bool = False) -> Predictions:
        """Predicts new data, transformed as the run's own.

        Args:
            data: One of

                - an array with the items as its first dimension, of any type of numbers, as of a ``.npy`` file. For a
                  run that was trained on a table, its columns are the input columns in their order;
                - a data frame of pandas or polars, or a list of dictionaries: columns are matched by name, in any
                  order, and others are ignored. None and NaN are missing values;
                - a list of pictures, as PIL images, arrays [height, width, channels] or paths;
                - the path of a file or folder, as ``runner predict --data`` takes it;
                - a list of texts, for a run that was trained on one column of texts.
            batch_size: Items that are computed at once.
            skip_bad_items: For paths: skips items that cannot be used.

        Raises:
            RequestError: if the data does not fit: a missing column, an unknown category, another shape.
        """
        if batch_size < 1:
            raise RequestError(f"error: `batch_size` is {batch_size}\n  = help: use a number from 1")
        found = self._predict(data, batch_size, skip_bad_items)
        return Predictions(found, self.names)

    def _predict(self, data: Any, batch_size: int, skips: bool) -> dict[str, Any]:
        if isinstance(data, (str, os.PathLike)):
            return _native.predict_path(self._handle, os.fspath(data), batch_size, skips)
        if isinstance(data, Mapping):
            raise RequestError("error: the data is a dictionary\n  = help: pass a list of them, one for each item")
        rows = _rows(data)
        if rows is not None:
            return self._predict_rows(rows, batch_size)
        if isinstance(data, (list, tuple)) and data:
            first = data[0]
            if _is_path(first) and str(first).lower().endswith(_PICTURES):
                return self._predict_paths(data, batch_size)
            if isinstance(first, str):
                column = self.columns[0]
                return self._predict_rows([{column: text} for text in data], batch_size)
            if hasattr(first, "getbands"):
                return self._predict_pictures(data, batch_size)
        array = array_of(data, "the data")
        if array.ndim == 0 or array.shape[0] == 0:
            raise RequestError("error: the data has no items\n  = help: pass an array with at least one item")
        if self.info["input"] == "features" and not self.info["columns"][0]["shape"]:
            return self._predict_rows(self._named(array), batch_size)
        array, given = argument(self._shaped(array))
        return _native.predict_array(self._handle, given, batch_size)

    def _predict_rows(self, rows: Sequence[Mapping[str, Any]], batch_size: int) -> dict[str, Any]:
        if not rows:
            raise RequestError("error: the data has no rows\n  = help: pass at least one row")
        return _native.predict_rows(self._handle, [_json(row) for row in rows], batch_size)

    def _predict_paths(self, paths: Sequence[Any], batch_size: int) -> dict[str, Any]:
        return _joined([_native.predict_path(self._handle, os.fspath(path), batch_size, False) for path in paths])

    def _predict_pictures(self, pictures: Sequence[Any], batch_size: int) -> dict[str, Any]:
        # Through files, so that they are decoded and resized as those that the run was trained on.
        with tempfile.TemporaryDirectory() as folder:
            for at, picture in enumerate(pictures):
                picture.save(Path(folder) / f"{at:08}.png")
            return _native.predict_path(self._handle, folder, batch_size, False)

    def _named(self, array: np.ndarray) -> list[dict[str, Any]]:
        """The rows of an array as those of a table."""
        columns = self.columns
        if array.ndim == 1 and len(columns) == 1:
            array = array[:, None]
        if array.ndim != 2 or array.shape[1] != len(columns):
            raise RequestError(
                f"error: the data has the shape {list(array.shape)}, but the run was trained on "
                f"{len(columns)} columns\n  = help: use an array of shape (N, {len(columns)}) with the columns "
                + ", ".join(columns)
            )
        return [dict(zip(columns, row)) for row in array.tolist()]

    def _shaped(self, array: np.ndarray) -> np.ndarray:
        """Pictures [height, width, channels] with the channels first, and missing dimensions of size 1."""
        expected = list(self.info["columns"][0]["shape"])
        given = list(array.shape[1:])
        if given == expected:
            return array
        if len(expected) == 3 and given == [*expected[1:], expected[0]]:
            return array.transpose(0, 3, 1, 2)
        if [size for size in given if size != 1] == [size for size in expected if size != 1]:
            return array.reshape(array.shape[0], *expected)
        return array

    def _row(self, x: Any) -> np.ndarray:
        """The values of each named input, one after the other."""
        import numpy as np

        inputs = self.info["inputs"]
        names = [part["name"] for part in inputs]
        if not isinstance(x, Mapping) or set(x) != set(names):
            raise RequestError(
                "error: the network has named inputs\n  = help: pass a dictionary with an array for each of "
                + ", ".join(f"`{name}`" for name in names)
            )
        arrays = [array_of(x[name], f"the input `{name}`") for name in names]
        if any(array.size == 0 for array in arrays):
            raise RequestError("error: the array has no items\n  = help: use arrays with at least one item")
        for part, array in zip(inputs, arrays):
            if array.ndim == 0 or list(array.shape[1:]) != part["shape"] or len(array) != len(arrays[0]):
                raise RequestError(
                    f"error: the input `{part['name']}` has the shape {list(array.shape)}\n  = help: use an array of "
                    f"shape (N, {', '.join(map(str, part['shape']))}), with the same N for all inputs"
                )
        return np.concatenate([array.reshape(len(array), -1).astype("float32") for array in arrays], axis=1)

    def _raw(self, x: Any, what: str = "the array") -> tuple[np.ndarray, Any]:
        if self.info["inputs"]:
            return argument(self._row(x))
        array = array_of(x, what)
        if self.info["input"] in ("tokens", "text", "stream"):
            return argument(whole_numbers(array, what))
        return argument(array.astype("float64" if self.info["precision"] == "f64" else "float32", copy=False))

    def __call__(self, x: Any) -> np.ndarray:
        """The output of the network for raw items, without transforms and without a softmax.

        Args:
            x: [items, item shape], of any type of numbers, from NumPy, or any object with the buffer or the DLPack
                protocol, such as a tensor of PyTorch. Arrays of float32 in C order are read in place. For a network
                with named inputs, a dictionary with such an array for each.

        Returns:
            [items, output shape], float32 (float64 for runs with that precision).

        Raises:
            RequestError: if the shape does not fit.
        """
        held, given = self._raw(x)
        ((_, (shape, dtype, block)),) = _native.forward(self._handle, given, [])
        del held
        return from_block(block, dtype, shape)

    def intermediate(self, *layers: str, x: Any) -> np.ndarray | dict[str, np.ndarray]:
        """The outputs of layers for raw items, as ``model(x)`` takes them.

        Returns:
            [items, output shape] of the layer, or such arrays by name for several layers.

        Raises:
            RequestError: if the network has no layer of this name; :attr:`layers` has the names.
        """
        held, given = self._raw(x)
        found = _native.forward(self._handle, given, list(layers))
        del held
        outputs = {name: from_block(block, dtype, shape) for name, (shape, dtype, block) in found[:-1]}
        return outputs[layers[0]] if len(layers) == 1 else outputs

    def grad(self, x: Any, y: Any) -> Gradients:
        """The gradients of the run's loss, the mean over the items, with the network as it is used for predictions:
        without dropout, and with the running statistics of batch norms.

        Args:
            x: Raw items, as ``model(x)`` takes them.
            y: The target of each item, in the network's own scale: classes as integers (or their names), labels as 0
                or 1, or numbers as the loss compares them. Ignored for autoencoders.

        Raises:
            RequestError: if a shape or a class does not fit.
        """
        import numpy as np

        held, given = self._raw(x)
        if self.info["target"] == "classes":
            targets = np.asarray(y)
            if targets.dtype.kind in "OU":
                index = {name: at for at, name in enumerate(self.names)}
                unknown = [str(name) for name in targets.ravel() if str(name) not in index]
                if unknown:
                    raise RequestError(
                        f"error: the class `{unknown[0]}` is unknown\n  = help: use {', '.join(self.names)}"
                    )
                targets = np.array([index[str(name)] for name in targets.ravel()]).reshape(targets.shape)
            targets = whole_numbers(array_of(targets, "the targets"), "the targets")
        elif self.info["target"] == "none":
            targets = np.zeros(0, dtype="float32")
        else:
            dtype = "float64" if self.info["precision"] == "f64" else "float32"
            targets = array_of(y, "the targets").astype(dtype, copy=False)
        held_too, given_too = argument(targets)
        loss, inputs, parameters = _native.gradients(self._handle, given, given_too)
        del held, held_too

        def array(found: Any) -> np.ndarray:
            shape, dtype, block = found
            return from_block(block, dtype, shape)

        return Gradients(
            loss,
            None if inputs is None else array(inputs),
            {name: array(found) for name, found in parameters},
        )

    def state_dict(self, names: str = "pytorch") -> dict[str, np.ndarray]:
        """The weights by name, float32.

        Args:
            names: ``"pytorch"`` for the names and layouts of PyTorch's state dict, as :meth:`to_torch` has them;
                ``"burn"`` for runner's own.
        """
        if names not in ("pytorch", "burn"):
            raise RequestError(f"error: there are no names `{names}`\n  = help: use `pytorch` or `burn`")
        found = _native.state_dict(self._handle, names)
        return {name: from_block(block, "float32", shape) for name, shape, block in found}

    def to_torch(self) -> Any:
        """The network as a ``torch.nn.Module`` with its weights, in evaluation mode.

        It is written as ``runner export pytorch`` writes it, and imported.

        Raises:
            RequestError: if PyTorch has no counterpart of a layer.
            ImportError: if PyTorch is not installed.
        """
        from ._torch import module_of

        return module_of(self)

    def __repr__(self) -> str:
        info = self.info
        return f"<Model {info['experiment']}/{info['run']}: {info['task']}, {info['num_parameters']} parameters>"

    def _repr_html_(self) -> str:
        rows = [{"layer": name, "output": str(shape)} for name, shape in self.layers.items()]
        from html import escape

        return f"<p>{escape(repr(self)[1:-1])}</p>" + html_table(["layer", "output"], rows)

    def __reduce__(self) -> Any:
        info = self.info
        digest = _native.weights_digest(self._handle)
        return _reload, (info["folder"], info["device"], info["weights"], digest)


def _reload(folder: str, device: str, weights: str, digest: str) -> Model:
    model = load(folder, device=device, weights=weights)
    if _native.weights_digest(model._handle) != digest:
        raise RequestError(
            f"error: the weights in `{folder}` were replaced since the model was pickled\n"
            "  = help: load the run and pickle the model again"
        )
    return model


def _dims(shape: Any) -> list[int]:
    return shape["dims"] if isinstance(shape, dict) else shape


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _rows(data: Any) -> Sequence[Mapping[str, Any]] | None:
    """The rows of a data frame or of a list of dictionaries; None for anything else."""
    if isinstance(data, (list, tuple)):
        if not data or not isinstance(data[0], Mapping):
            return None
        for at, row in enumerate(data):
            if not isinstance(row, Mapping):
                raise RequestError(f"error: row {at + 1} is {row!r}\n  = help: pass a dictionary for each item")
        return data
    if isinstance(data, Table):
        return data.to_rows()
    if hasattr(data, "to_dicts"):
        return data.to_dicts()
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        names = [str(name) for name in data.columns]
        twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
        if twice is not None:
            raise RequestError(f"error: several columns have the name `{twice}`\n  = help: rename or drop one of them")
        columns = [data.iloc[:, at].tolist() for at in range(len(names))]
        return [dict(zip(names, row)) for row in zip(*columns)]
    if hasattr(data, "to_pylist"):
        return data.to_pylist()
    return None


def _is_missing(value: Any) -> bool:
    """Whether a value is NaN, or pandas' NA or NaT."""
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        # NA has no truth value, and arrays have several.
        return type(value).__name__ == "NAType"


def _plain(value: Any) -> Any:
    """A value as JSON has it: missing ones as null, dates as files have them."""
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if type(value).__name__ == "datetime64":
        value = None if value != value else value.astype("datetime64[us]").item()
    elif hasattr(value, "tolist"):
        return _plain(value.tolist())
    if value is None or _is_missing(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        # JSON has no such number; the reader refuses the text with the row and the column.
        return "inf" if value > 0 else "-inf"
    if hasattr(value, "isoformat"):
        # A day, as tables are written if none of their times is another.
        return str(value).removesuffix(" 00:00:00")
    return value


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps({str(key): _plain(item) for key, item in row.items()}, default=str, allow_nan=False)


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Predictions of several files."""
    all = parts[0]
    for part in parts[1:]:
        for key in ("num", "index", "probabilities", "values", "deviations", "texts", "ids"):
            all[key] += part[key]
    return all
