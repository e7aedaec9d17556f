"""What watches passes: methods that a `PassContext` calls around each pass, and those that come with the framework."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from compassc.pass_manager.context import PassInfo

M = TypeVar("M")
METHODS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


class PassInstrument:
    """The base of instruments: each method may be overridden. `info` has the `name` and `opt_level` of a pass."""

    def enter_pass_ctx(self) -> None:
        """A context begins."""

    def exit_pass_ctx(self) -> None:
        """A context ends."""

    def should_run(self, module: object, info: PassInfo) -> bool:
        """Whether a pass is to run; all instruments must agree."""
        return True

    def run_before_pass(self, module: object, info: PassInfo) -> None:
        """A pass is about to run."""

    def run_after_pass(self, module: object, info: PassInfo) -> None:
        """A pass has given a module."""


def pass_instrument(decorated: type) -> Callable[..., PassInstrument]:
    """Decorates a class with some of the methods of an instrument as one."""
    own = {name: getattr(decorated, name) for name in METHODS if hasattr(decorated, name)}
    return type(decorated.__name__, (decorated, PassInstrument), {**own, "__doc__": decorated.__doc__})


class PassTimingInstrument(PassInstrument):
    """Measures passes; `render()` gives a line for each run, with what ran inside of it indented."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open: list[tuple[int, float]] = []

    def run_before_pass(self, module: object, info: PassInfo) -> None:
        self._open.append((len(self._lines), time.perf_counter()))
        self._lines.append("")

    def run_after_pass(self, module: object, info: PassInfo) -> None:
        line, start = self._open.pop()
        self._lines[line] = f"{'  ' * len(self._open)}{info.name}: {(time.perf_counter() - start) * 1e6:.0f}us"

    def render(self) -> str:
        """The times of all runs so far."""
        return "\n".join(filter(None, self._lines))


class PrintBeforeAll(PassInstrument):
    """Prints the module before each pass."""

    def run_before_pass(self, module: object, info: PassInfo) -> None:
        sys.stdout.write(f"# before {info.name}\n{module}")


class PrintAfterAll(PassInstrument):
    """Prints the module after each pass."""

    def run_after_pass(self, module: object, info: PassInfo) -> None:
        sys.stdout.write(f"# after {info.name}\n{module}")


def around(instruments: Sequence[PassInstrument], info: PassInfo, module: M, run: Callable[[M], M]) -> M:
    """A pass with what instruments do before and after it."""
    if not all(i.should_run(module, info) for i in instruments):
        return module
    for i in instruments:
        i.run_before_pass(module, info)
    module = run(module)
    for i in instruments:
        i.run_after_pass(module, info)
    return module
