"""Data in memory as files that runs are trained on: named by their content, so that a run can be repeated."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._arrays import array_of
from ._errors import RequestError

if TYPE_CHECKING:
    import numpy as np

#: The splits that data can be given for.
SPLITS = {"train": "path", "valid": "valid_path", "test": "test_path"}


def edits(data: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """Writes splits, and returns the settings that read them.

    Raises:
        RequestError: if a split is not `(X, y)` of arrays of numbers with equal lengths.
    """
    unknown = [name for name in data if name not in SPLITS]
    if unknown or "train" not in data:
        wrong = f"`{unknown[0]}` is not a split" if unknown else "`data` has no split `train`"
        raise RequestError(f'error: {wrong}\n  = help: pass {{"train": (X, y)}}, and optionally `valid` and `test`')
    found: dict[str, Any] = {}
    has_targets = set()
    for name, split in data.items():
        arrays = _arrays(name, split)
        has_targets.add("y" in arrays)
        found[f"data.{SPLITS[name]}"] = str(_written(arrays, results / "data"))
    if len(has_targets) > 1:
        raise RequestError("error: some splits have targets and others have none\n  = help: pass (X, y) for all")
    found["data.type"] = "npz"
    found["data.features"] = ["x"]
    if has_targets == {True}:
        found["data.target"] = "y"
    return found


def _arrays(name: str, split: Any) -> dict[str, np.ndarray]:
    if not isinstance(split, (tuple, list)) or len(split) != 2:
        raise RequestError(f"error: the split `{name}` is not a pair\n  = help: pass (X, y), or (X, None)")
    x = array_of(split[0], f"X of `{name}`")
    if x.ndim == 0 or x.shape[0] == 0:
        raise RequestError(f"error: X of `{name}` has no items\n  = help: pass at least one item")
    arrays = {"x": x}
    if split[1] is not None:
        y = array_of(split[1], f"y of `{name}`")
        if y.ndim == 0 or y.shape[0] != x.shape[0]:
            raise RequestError(
                f"error: X of `{name}` has {x.shape[0]} items, and y has the shape {list(y.shape)}\n"
                "  = help: pass a target for each item"
            )
        arrays["y"] = y.astype("int64") if y.dtype.kind == "b" else y
    return arrays


def _written(arrays: dict[str, np.ndarray], folder: Path) -> Path:
    """The file of some arrays, which is written if it does not exist."""
    import numpy as np

    digest = hashlib.sha256()
    plain: dict[str, Any] = {}
    for name, array in arrays.items():
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
        plain[name] = array
    path = (folder / f"{digest.hexdigest()[:16]}.npz").absolute()
    if path.exists():
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A name of its own: other threads and processes may write the same data.
        temporary = path.with_suffix(f".{uuid.uuid4().hex}.tmp")
        with open(temporary, "wb") as file:
            np.savez(file, **plain)
        os.replace(temporary, path)
    except OSError as error:
        raise RequestError(
            f"error: the data cannot be written to `{folder}`: {error.strerror}\n"
            "  = help: use another folder with `results=`, or make this one writable"
        ) from error
    return path
