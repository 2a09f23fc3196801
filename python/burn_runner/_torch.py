"""Networks as modules of PyTorch."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import RequestError

if TYPE_CHECKING:
    from ._model import Model


def module_of(model: Model) -> Any:
    """The exported network of a model, imported."""
    import torch  # noqa: F401  (an ImportError before anything is written)

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "network"
        _native.write_pytorch(model._handle, str(out))
        return _imported(out / "model.py")


def _imported(source: Path) -> Any:
    spec = importlib.util.spec_from_file_location("burn_runner_exported", source)
    if spec is None or spec.loader is None:
        raise RequestError(f"error: `{source}` cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load().eval()
