"""Static checks: what can be proven wrong with a kernel without running it.

A check is a file of this folder whose name does not begin with `_`: a function `run(subject) -> Iterator[CompassError]`
that yields an error for what cannot work, a `Finding` (a warning) for what is suspicious. Checks see the IR as it is
parsed, before any pass. Nothing is reported that is merely possible.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from compass_core import targets
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError

from ..ir.stmts import IRModule, PrimFunc


@dataclass(frozen=True)
class Subject:
    """A module with what is known besides: values of the entry's scalars and shapes of its tensors, by position, and the
    syntax trees of its functions with their files, the entry's first."""

    module: IRModule
    values: Mapping[int, int] = field(default_factory=dict)
    shapes: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    sources: tuple[tuple[ast.FunctionDef, str], ...] = ()

    @property
    def target(self) -> targets.Target:
        return targets.load(self.module.target)

    def functions(self) -> tuple[PrimFunc, ...]:
        return self.module.functions


def names() -> list[str]:
    """The checks, by file name."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def findings(subject: Subject) -> list[CompassError]:
    """What all checks find, in the order of the source."""
    found = [e for name in names() for e in importlib.import_module(f"{__name__}.{name}").run(subject)]
    return sorted(found, key=lambda e: (e.span.file, e.span.line, e.span.col) if e.span else ("", 0, 0))
