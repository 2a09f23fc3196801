"""The ``runner`` program, which trains each run in a process of its own."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path

from . import _native
from ._errors import RequestError


def _candidates() -> list[Path]:
    name = "runner.exe" if sys.platform == "win32" else "runner"
    folders = [sysconfig.get_path("scripts")]
    # `pip install --user` and `pip install --target DIR`.
    scheme = sysconfig.get_preferred_scheme("user")
    folders.append(sysconfig.get_path("scripts", scheme))
    package = Path(__file__).resolve().parent
    folders.append(str(package.parent / "bin"))
    # A virtual environment whose packages are on `sys.path` of another interpreter.
    for parent in package.parents[1:5]:
        folders.append(str(parent / ("Scripts" if sys.platform == "win32" else "bin")))
    return [Path(folder) / name for folder in folders if folder]


@lru_cache(maxsize=1)
def program() -> Path:
    """The path of the ``runner`` program of this installation.

    The environment variable ``BURN_RUNNER_PROGRAM`` overrides it, for example with a build for a GPU.

    Raises:
        RequestError: if there is none.
    """
    named = os.environ.get("BURN_RUNNER_PROGRAM")
    # Absolute, since the process may go to another folder, and a name alone is looked for elsewhere.
    candidates = [Path(named).absolute()] if named else _candidates()
    for path in candidates:
        if path.is_file() and os.access(path, os.X_OK):
            # On Linux, the installed program is the module: see `python/launcher`.
            is_module = not named and sys.platform == "linux"
            _native.use_program(_native.__file__ if is_module else str(path))
            return path
    if named:
        message = f"`BURN_RUNNER_PROGRAM` is `{named}`, which is not a program"
        raise RequestError(f"error: {message}\n  = help: set it to the path of `runner`")
    places = "".join(f"\n  = note: it is not at {path}" for path in candidates)
    raise RequestError(
        f"error: the program `runner` is not installed{places}\n"
        "  = help: install it with `pip install --force-reinstall burn-runner`"
    )
