"""The text of a function with some of its loops and blocks underlined: where a step that was refused wanted to go."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.ir import stmts as S
from compassc.ir.printer import Printer
from compassc.ir.stmts import PrimFunc, Stmt


class _Underlining(Printer):
    def __init__(self, marked: Sequence[Stmt]) -> None:
        super().__init__()
        self.marked = list(marked)

    def line(self, depth: int, text: str, s: Stmt) -> None:
        super().line(depth, text, s)
        if any(s is m for m in self.marked):
            alike = [m for m in self.marked if type(m) is type(s)]
            kind = "Loop" if isinstance(s, S.For) else "Block"
            number = next(i for i, m in enumerate(alike) if m is s)
            self.lines.append("    " * depth + "^" * len(text) + f" {kind}#{number}")


def underlined(function: PrimFunc, marked: Sequence[Stmt]) -> str:
    """The text of a function; below the line of each marked statement what it is called: `Loop#0`, `Block#0`, ..."""
    return "\n".join(_Underlining(list(dict.fromkeys(marked))).function(function, 0))
