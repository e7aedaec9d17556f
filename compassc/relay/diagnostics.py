"""Who is shown what is wrong with the types of a program: by default nobody but the reader of the error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Span, render

__all__ = ["Diagnostic", "DiagnosticContext", "Renderer", "get_renderer", "override_renderer", "show"]


@dataclass(frozen=True)
class Diagnostic:
    """What is wrong, and where."""

    message: str
    span: Span | None = None
    level: str = "error"


@dataclass(frozen=True)
class DiagnosticContext:
    """All that is wrong with a program."""

    diagnostics: Sequence[Diagnostic]
    text: str = ""

    def render(self) -> None:
        """Show it as it is by default: on stderr."""
        print(self.text, file=sys.stderr)


Renderer = Callable[[DiagnosticContext], object]
_chosen: list[Renderer] = []


def get_renderer() -> Renderer:
    """What shows errors: that of a program, else one that writes them to stderr."""
    return _chosen[-1] if _chosen else DiagnosticContext.render


def override_renderer(render_func: Renderer | None) -> None:
    """Have a function called with what is wrong with each program from now on; None: no function."""
    _chosen[:] = [] if render_func is None else [render_func]


def show(errors: Sequence[CompassError]) -> None:
    """Call the function that a program has given, if any."""
    if _chosen:
        found = [Diagnostic(e.message, e.span) for e in errors]
        _chosen[-1](DiagnosticContext(found, "\n".join(map(render, errors))))
