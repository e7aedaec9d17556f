"""Compiling a translation unit: one command of clang's, or three where integer divisions have to be made safe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from compass_core.hostcc import command, divisions

TO_REPRESENTATION = ("-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes")
FROM_REPRESENTATION = ("-Wno-unused-command-line-argument", "-x", "ir", "-c")
"""Options that make a text of clang's intermediate representation, and an object of one."""


@dataclass(frozen=True)
class Compilation:
    """How `source`, a file called so with the content `text`, becomes `output` in the same folder.

    `options` come last, of the step that makes code (`-S` for assembly text).
    """

    clang: Path
    flags: Sequence[str]
    header: Path
    source: str
    text: str
    output: str
    options: tuple[str, ...] = ()

    def commands(self) -> list[list[str]]:
        """The command lines, to run in the folder of the source one after another."""
        start = [str(self.clang), *self.flags]
        if not self._divides():
            return [[*start, *command.unit_arguments(self.header, self.source, self.output), *self.options]]
        safe = [sys.executable, "-m", "compass_core.hostcc.divisions", self._representation]
        if divisions.checks(self.flags):
            safe.append("--checked")
        return [
            [*start, *command.unit_arguments(self.header, self.source, self._representation, TO_REPRESENTATION)],
            safe,
            [*start, *FROM_REPRESENTATION, self._representation, "-o", self.output, *self.options],
        ]

    def run(self, folder: Path, meanwhile: Callable[[], object] | None = None) -> command.Run:
        """Compiles; `meanwhile` is called while clang runs. What it says is that of all steps."""
        first, *rest = self.commands()
        done = command.run(first, folder, meanwhile)
        if not rest or done.status != 0:
            return done
        path = folder / self._representation
        try:
            representation = path.read_text(encoding="utf-8", errors="surrogateescape")
            safe = divisions.guarded(representation, divisions.checks(self.flags))
            path.write_text(safe, encoding="utf-8", errors="surrogateescape")
            last = command.run(rest[-1], folder)
        finally:
            path.unlink(missing_ok=True)
        return command.Run(last.status, done.output + last.output)

    def _divides(self) -> bool:
        """Also when other files are read, whose text is not known here."""
        return divisions.divides(self.text) or not command.is_complete(self.text, self.flags)

    @property
    def _representation(self) -> str:
        return self.output + ".ll"
