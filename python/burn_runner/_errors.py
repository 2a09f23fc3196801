"""Exceptions and diagnostics."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Diagnostic:
    """One message about an experiment file or a request.

    ``str(diagnostic)`` is the text that ``runner`` prints, with the marked line of the file.
    """

    #: ``"error"`` or ``"warning"``.
    severity: str
    #: The rule that emitted it, such as ``"unknown-key"``.
    code: str
    #: What is wrong, in one phrase.
    message: str
    #: The file, or None if the message has no place in a text.
    file: str | None = None
    #: The line of the mistake, from 1.
    line: int | None = None
    #: The character in this line, from 1.
    column: int | None = None
    #: The marked text.
    marked: str | None = None
    #: The words next to the mark.
    label: str = ""
    #: Facts that explain the message.
    notes: tuple[str, ...] = ()
    #: What to do about it.
    helps: tuple[str, ...] = ()
    #: Other places, as dictionaries with ``file``, ``line``, ``column`` and ``label``.
    related: tuple[dict[str, Any], ...] = ()
    #: The text with places and remedies.
    text: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.text


def diagnostics(found: list[dict[str, Any]]) -> list[Diagnostic]:
    """Diagnostics from the native half."""
    tuples = ("notes", "helps", "related")
    made = []
    for one in found:
        fields: dict[str, Any] = {key: tuple(value) if key in tuples else value for key, value in one.items()}
        made.append(Diagnostic(**fields))
    return made


class RunnerError(Exception):
    """The base of this module's exceptions.

    ``str(error)`` is what ``runner`` prints: the message with its place, its reason and a remedy.
    """

    #: The exit code of ``runner`` for this error.
    exit_code = 1

    def __init__(self, text: str = "", found: list[Diagnostic] | None = None) -> None:
        super().__init__(text)
        #: The messages as objects.
        self.diagnostics: list[Diagnostic] = found or []

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.diagnostics)


class ExperimentError(RunnerError, ValueError):
    """An experiment is invalid: ``diagnostics`` has everything that is wrong with it."""

    exit_code = 2


class RequestError(RunnerError, ValueError):
    """A request is invalid, or something that it names is missing, damaged or of the wrong shape."""

    exit_code = 2


class RunError(RunnerError):
    """A valid request could not be carried out, or runs have failed."""


class InternalError(RunnerError):
    """A defect of this module: please report it. Nothing else in the process is affected."""


def make(kind: str, text: str, found: str) -> BaseException:
    """The exception for a failure in the native half."""
    if kind == "interrupted":
        return KeyboardInterrupt(text)
    if kind == "panic":
        help = "this is a defect of burn_runner: please report it with this text"
        return InternalError(f"error: internal error: {text}\n  = help: {help}")
    classes = {"experiment": ExperimentError, "refused": RequestError, "failed": RunError}
    return classes[kind](text, diagnostics(json.loads(found)))
