"""Tables: Arrow's interface, NumPy's arrays, and the data frames of pandas and polars."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import RequestError

if TYPE_CHECKING:
    import numpy as np

#: What ``frame`` may be.
FRAMES = ("pandas", "polars", "table")


class Table:
    """Columns of equal length.

    ``polars.DataFrame(table)`` and ``pyarrow.record_batch(table)`` read it through Arrow's PyCapsule interface.
    :meth:`column` is a NumPy array.
    """

    def __init__(self, handle: object) -> None:
        self._handle = handle
        num_rows, columns = _native.table_columns(handle)
        self._num_rows: int = num_rows
        self._columns: dict[str, tuple[str, Any, Any]] = dict(columns)

    @classmethod
    def from_rows(cls, rows: Iterable[dict[str, Any]]) -> Table:
        """A table of dictionaries; the columns are in the order in which they first occur."""
        return cls(_native.table_of_rows("\n".join(json.dumps(row) for row in rows)))

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    def __len__(self) -> int:
        return self._num_rows

    def __repr__(self) -> str:
        return f"<Table of {self._num_rows} rows: {', '.join(self._columns)}>"

    def column(self, name: str) -> np.ndarray:
        """A column as an array: float64 with NaN for missing values, int64, bool, or objects (text or None).

        Whole numbers and flags with missing values are objects. Numbers are not copied.

        Raises:
            KeyError: if the table has no column of this name.
        """
        import numpy as np

        kind, values, mask = self._columns[name]
        if kind == "text":
            array = np.empty(len(values), dtype=object)
            array[:] = values
            return array
        array = np.frombuffer(values, dtype=kind)
        if mask is None or kind == "float64":
            return array
        array = array.astype(object)
        array[~np.frombuffer(mask, dtype=bool)] = None
        return array

    def to_pandas(self) -> Any:
        """The same as ``pandas.DataFrame``. Numbers are not copied."""
        import numpy as np
        import pandas as pd

        columns = {}
        for name, (kind, values, mask) in self._columns.items():
            if mask is not None and kind in ("int64", "bool"):
                missing = ~np.frombuffer(mask, dtype=bool)
                array = np.frombuffer(values, dtype=kind)
                masked = pd.arrays.IntegerArray if kind == "int64" else pd.arrays.BooleanArray
                columns[name] = masked(array, missing)
            else:
                columns[name] = self.column(name)
        return pd.DataFrame(columns, index=pd.RangeIndex(self._num_rows), copy=False)

    def to_polars(self) -> Any:
        """The same as ``polars.DataFrame``, over Arrow."""
        import polars as pl

        return pl.DataFrame(self)

    def to_rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        columns = {name: self.column(name).tolist() for name in self._columns}
        return [{name: values[at] for name, values in columns.items()} for at in range(self._num_rows)]

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return _native.table_arrow(self._handle)

    def _repr_html_(self) -> str:
        return html_table(self.columns, self.to_rows())


def html_table(columns: list[str], rows: list[dict[str, Any]], most: int = 60) -> str:
    """Rows as an HTML table, for notebooks."""
    from html import escape

    def cell(value: Any) -> str:
        if value is None or value != value:
            return ""
        return escape(f"{value:.6g}" if isinstance(value, float) else str(value))

    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{cell(row.get(name))}</td>" for name in columns) + "</tr>" for row in rows[:most]
    )
    more = f"<p>{len(rows) - most} more rows</p>" if len(rows) > most else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def framed(table: Table, frame: str | None) -> Any:
    """A table as what the caller wants: by default pandas' data frame, or polars', or the table itself."""
    if frame is None:
        installed = (name for name in FRAMES[:2] if importlib.util.find_spec(name))
        frame = next(installed, "table")
    if frame not in FRAMES:
        raise RequestError(f"error: there are no frames `{frame}`\n  = help: use {', '.join(FRAMES)}")
    if frame == "pandas":
        return table.to_pandas()
    return table.to_polars() if frame == "polars" else table
