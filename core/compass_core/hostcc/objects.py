"""Compiling a translation unit: one command of clang's where integer divisions are calls or there are none, else two."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from compass_core.dataclass import dataclass
from compass_core.hostcc import command, divisions
from compass_core.namedtuple import NamedTuple

TO_REPRESENTATION = ("-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes")
FROM_REPRESENTATION = ("-Wno-unused-command-line-argument", "-x", "ir", "-c")
"""Options that make a text of clang's intermediate representation, and an object of one."""


class Compiled(NamedTuple):
    """The exit status of a compilation, what its commands said, and these."""

    status: int
    output: str
    commands: list[list[str]]


@dataclass(frozen=True)
class Compilation:
    """How `source`, a file called so with the content `text`, becomes `output` in the same folder.

    `options` come last, of the step that makes code (`-S` for assembly text). `calls`: divisions may become calls in the
    text.
    """

    clang: Path
    flags: Sequence[str]
    header: Path
    source: str
    text: str
    output: str
    options: tuple[str, ...] = ()
    calls: bool = True

    def commands(self) -> list[list[str]]:
        """The command lines, to run in the folder of the source one after another."""
        start = [str(self.clang), *self.flags]
        if not self._divides:
            return [[*start, *command.unit_arguments(self.header, self.source, self.output), *self.options]]
        safe = [sys.executable, "-m", "compass_core.hostcc.divisions"]
        if self._called is not None:
            known_as = ("-Xclang", "-main-file-name", "-Xclang", self.source)
            unit = command.unit_arguments(self.header, self._with_calls, self.output)
            return [[*safe, self.source, self._with_calls], [*start, *unit, *known_as, *self.options]]
        checked = ["--checked"] if divisions.checks(self.flags) else []
        return [
            [*start, *command.unit_arguments(self.header, self.source, self._representation, TO_REPRESENTATION)],
            [*safe, self._representation, *checked],
            [*start, *FROM_REPRESENTATION, self._representation, "-o", self.output, *self.options],
        ]

    def run(self, folder: Path, meanwhile: Callable[[], object] | None = None) -> Compiled:
        """Compiles; `meanwhile` is called while clang runs. What it says is that of all steps."""
        commands = self.commands()
        if not self._divides:
            return Compiled(*_run(commands[0], folder, meanwhile), commands)
        made = folder / (self._representation if self._called is None else self._with_calls)
        try:
            if self._called is not None:
                made.write_text(self._called, encoding="utf-8", errors="surrogateescape")
                status, output = _run(commands[-1], folder, meanwhile)
                if status == 0:
                    return Compiled(status, output, commands)
                return replace(self, calls=False).run(folder)
            status, output = _run(commands[0], folder, meanwhile)
            if status == 0:
                representation = made.read_text(encoding="utf-8", errors="surrogateescape")
                safe = divisions.guarded(representation, divisions.checks(self.flags))
                made.write_text(safe, encoding="utf-8", errors="surrogateescape")
                status, said = _run(commands[-1], folder)
                output += said
        finally:
            made.unlink(missing_ok=True)
        return Compiled(status, output, commands)

    @cached_property
    def _divides(self) -> bool:
        """Also when other files are read, whose text is not known here."""
        return divisions.divides(self.text) or not self._complete

    @cached_property
    def _called(self) -> str | None:
        """The text with calls in the place of divisions, where that is all that has to be done."""
        return divisions.called(self.text) if self.calls and self._complete else None

    @cached_property
    def _complete(self) -> bool:
        return command.is_complete(self.text, self.flags)

    @property
    def _with_calls(self) -> str:
        return self.output + ".cl"

    @property
    def _representation(self) -> str:
        return self.output + divisions.REPRESENTATION


def _run(line: list[str], folder: Path, meanwhile: Callable[[], object] | None = None) -> tuple[int, str]:
    done = command.run(line, folder, meanwhile)
    return done.status, done.output
