"""The command `runner` of the package."""

import hashlib
import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import burn_runner as br
from burn_runner import _native

COMMAND = Path(sysconfig.get_path("scripts")) / ("runner.exe" if sys.platform == "win32" else "runner")


def call(command, *arguments, cwd=None):
    return subprocess.run([command, *arguments], cwd=cwd, capture_output=True, text=True)


def build(folder):
    """The build that a run was recorded with."""
    return json.loads((folder / "environment.json").read_text())["build"]["sha256"]


def test_the_command_has_the_version_of_the_module():
    assert call(COMMAND, "--version").stdout == f"runner {br.__version__}\n"
    wrong = call(COMMAND, "no-such-verb")
    assert (wrong.returncode, "no-such-verb" in wrong.stderr) == (2, True)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the command is a program of its own")
def test_the_command_and_the_module_are_one_build(folder, experiment):
    edits = ("--set", "sweep.grid={}", "--set", "experiment.seeds=[1]", "--set", "train.epochs=1")
    (folder / "spec.toml").write_text(experiment.text)
    done = call(COMMAND, "run", "spec.toml", "--quiet", *edits, "--results", "by_command", cwd=folder)
    assert done.returncode == 0, done.stderr
    (run,) = (folder / "by_command" / "flowers" / "runs").iterdir()
    module = Path(_native.__file__).read_bytes()
    assert build(run) == hashlib.sha256(module).hexdigest()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the command is a program of its own")
def test_a_command_without_the_package_says_what_to_do(tmp_path):
    moved = tmp_path / "bin" / "runner"
    moved.parent.mkdir()
    shutil.copy(COMMAND, moved)
    alone = call(moved, "--version")
    assert (alone.returncode, alone.stdout) == (2, "")
    assert "is not installed beside it" in alone.stderr and "pip install" in alone.stderr
    # A module that is none.
    package = tmp_path / "lib" / "python3.12" / "site-packages" / "burn_runner"
    package.mkdir(parents=True)
    (package / "_native.abi3.so").write_bytes(b"no module")
    damaged = call(moved, "--version")
    assert (damaged.returncode, damaged.stdout) == (2, "")
    assert str(package) in damaged.stderr
    # As `pip install --target` puts it.
    (tmp_path / "burn_runner").mkdir()
    shutil.copy(_native.__file__, tmp_path / "burn_runner" / "_native.abi3.so")
    beside = call(moved, "--version")
    assert beside.stdout == f"runner {br.__version__}\n", beside.stderr
