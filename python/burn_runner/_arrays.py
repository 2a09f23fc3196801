"""NumPy arrays on their way to and from the native half."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import RequestError

if TYPE_CHECKING:
    import numpy as np

Argument = tuple[int, int, str, list[int]]


def array_of(value: Any, what: str = "the array") -> np.ndarray:
    """A value as an array: without a copy if it has NumPy's, the buffer or the DLPack protocol.

    Raises:
        RequestError: if it is not an array of numbers.
    """
    import numpy as np

    if isinstance(value, np.ndarray):
        array = value
    elif hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        array = np.from_dlpack(value)
    elif hasattr(value, "requires_grad") and hasattr(value, "detach"):
        value = value.detach().cpu()
        # NumPy has no 16-bit brain floats.
        array = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    else:
        try:
            array = np.asarray(value)
        except (TypeError, ValueError) as error:
            raise RequestError(
                f"error: {what} cannot be read as an array: {error}\n"
                "  = help: use a NumPy array, or lists of equal length"
            ) from error
    if isinstance(array, np.ma.MaskedArray) and array.mask.any():
        raise RequestError(
            f"error: {what} has masked values\n  = help: replace them, for example with `x.filled(numpy.nan)`"
        )
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise RequestError(
            f"error: {what} contains `{array.dtype}`, but numbers are needed\n"
            '  = help: convert it, for example with `x.astype("float32")`'
        )
    return array


def whole_numbers(array: np.ndarray, what: str) -> np.ndarray:
    """An array as int64.

    Raises:
        RequestError: if one of its numbers is not whole, or too large.
    """
    import numpy as np

    if array.dtype.kind == "f":
        is_whole = np.isfinite(array) & (np.floor(array) == array) & (np.abs(array) < 2.0**63)
    elif array.dtype == "uint64":
        is_whole = array < 2**63
    else:
        return array.astype("int64", copy=False)
    if not is_whole.all():
        raise RequestError(
            f"error: {what} contains {array[~is_whole].flat[0]}, but whole numbers are needed\n  = help: pass integers"
        )
    return array.astype("int64")


def argument(array: np.ndarray) -> tuple[np.ndarray, Argument]:
    """An array in C order and in this machine's byte order, and the argument that describes its memory.

    The caller keeps the array until the native function returns.
    """
    import numpy as np

    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return array, (array.ctypes.data, array.nbytes, array.dtype.name, list(array.shape))


def from_block(block: bytearray, dtype: str, shape: list[int]) -> np.ndarray:
    """The array in a block of memory, without a copy."""
    import numpy as np

    return np.frombuffer(block, dtype=dtype).reshape(shape)
