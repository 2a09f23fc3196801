"""The build of the wheel: maturin's, with the program `runner` among the wheel's scripts.

Maturin packs a module or a program, not both. The program is built first, in the same target folder, and put where
maturin takes files for the environment's `bin/` from. On Linux, it is the launcher, which loads the module.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import maturin
from maturin import (  # noqa: F401  (hooks of PEP 517)
    get_requires_for_build_editable,
    get_requires_for_build_wheel,
)

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE / "burn_runner.data" / "scripts"


def _program():
    """Builds `runner`; `RUNNER_CARGO_ARGS` are further arguments for cargo, such as features."""
    command = ["cargo", "build", "--release", "--locked", "--message-format", "json-render-diagnostics"]
    if sys.platform == "linux":
        command += ["-p", "burn-runner-launcher"]
    else:
        command += ["-p", "burn-runner", "--bin", "runner", *os.environ.get("RUNNER_CARGO_ARGS", "").split()]
    built = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, check=True)
    messages = map(json.loads, built.stdout.splitlines())
    (path,) = {message["executable"] for message in messages if message.get("executable")}
    shutil.rmtree(SCRIPTS, ignore_errors=True)
    SCRIPTS.mkdir(parents=True)
    copy = Path(shutil.copy2(path, SCRIPTS / ("runner.exe" if sys.platform == "win32" else "runner")))
    if sys.platform != "win32":
        subprocess.run(["strip", str(copy)], check=False)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    # Maturin requires the folder to exist.
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit(
        "The package is built from a clone of the repository only, since its program is another crate of it: "
        "build a wheel, with `pip wheel ./python` or `python -m build --wheel python`."
    )


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _program()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _program()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
