"""The progress of runs: a bar of tqdm or rich if one of them is installed, otherwise lines of text.

Notebooks without ipywidgets show one line that changes."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

Show = Callable[[dict[str, Any]], None]


class _Steps:
    """Optimizer updates of all runs, from events."""

    def __init__(self) -> None:
        self.total = 0
        self.steps: dict[str, int] = {}
        self.num_ended = 0

    def see(self, event: dict[str, Any]) -> None:
        kind, run = event["event"], event.get("run")
        if kind == "training":
            self.total = sum(one["num_steps"] for one in event["runs"])
            self.steps = {one["run"]: one["step"] for one in event["runs"]}
        elif kind in ("progressed", "epoch_finished") and run in self.steps:
            self.steps[run] = event["step"]
        elif kind == "run_finished":
            self.num_ended += 1

    @property
    def done(self) -> int:
        return sum(self.steps.values())

    def words(self) -> str:
        return f"{self.num_ended}/{len(self.steps)} runs"


def _text(event: dict[str, Any]) -> str | None:
    kind, run = event["event"], event.get("run")
    if kind in ("note", "waiting", "step"):
        prefix = "" if kind == "step" else f"{kind}: "
        return prefix + event["text"]
    if kind == "prepared":
        done = event["num_completed"]
        already = f", {done} already completed" if done else ""
        return f"{event['folder']}: {event['num_to_do']} of {event['num_planned']} runs to do{already}"
    if kind == "run_finished":
        outcome = event["outcome"]
        word = outcome.get("outcome") or next(iter(outcome.values()), "")
        return f"{run}: {word} in {event['wall_secs']:.1f} s"
    return None


@contextlib.contextmanager
def shown(is_shown: bool) -> Iterator[Show]:
    """What shows events, until the end of the context."""
    has_widgets = importlib.util.find_spec("ipywidgets") and importlib.util.find_spec("tqdm")
    if not is_shown:
        yield lambda event: None
    elif _is_notebook() and not has_widgets:
        yield _Notebook().show
    elif importlib.util.find_spec("tqdm"):
        with _tqdm() as show:
            yield show
    elif importlib.util.find_spec("rich"):
        with _rich() as show:
            yield show
    else:
        yield _print


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and getattr(shell, "kernel", None) is not None


class _Notebook:
    """One line of a cell's output, which changes."""

    def __init__(self) -> None:
        self.steps = _Steps()
        self.handle: Any = None
        self.changed = 0.0

    def show(self, event: dict[str, Any]) -> None:
        import IPython.display

        steps = self.steps
        steps.see(event)
        if not steps.total:
            _print(event)
            return
        now = time.monotonic()
        is_last = steps.num_ended == len(steps.steps)
        if self.handle is not None and not is_last and now - self.changed < 0.2:
            return
        self.changed = now
        percent = 100 * steps.done // steps.total
        line = {"text/plain": f"{steps.words()}, {percent} % of {steps.total} optimizer updates"}
        if self.handle is None:
            display: Any = IPython.display.display
            self.handle = display(line, raw=True, display_id=True)
        else:
            self.handle.update(line, raw=True)


def _print(event: dict[str, Any]) -> None:
    text = _text(event)
    if text:
        print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _tqdm() -> Iterator[Show]:
    from tqdm.auto import tqdm

    steps = _Steps()
    bars: list[Any] = []

    def show(event: dict[str, Any]) -> None:
        steps.see(event)
        if event["event"] == "training":
            bars.append(tqdm(total=steps.total, initial=steps.done, unit="step", desc=event["experiment"]))
        for bar in bars[-1:]:
            bar.update(steps.done - bar.n)
            bar.set_postfix_str(steps.words(), refresh=False)
        text = _text(event)
        if text and event["event"] != "run_finished":
            tqdm.write(text, file=sys.stderr)

    try:
        yield show
    finally:
        for bar in bars:
            bar.close()


@contextlib.contextmanager
def _rich() -> Iterator[Show]:
    from rich.progress import Progress

    steps = _Steps()
    with Progress() as progress:
        task = progress.add_task("preparing", total=None)

        def show(event: dict[str, Any]) -> None:
            steps.see(event)
            if steps.total:
                progress.update(task, total=steps.total, completed=steps.done, description=steps.words())
            text = _text(event)
            if text and event["event"] != "run_finished":
                progress.console.print(text, markup=False, highlight=False)

        yield show
