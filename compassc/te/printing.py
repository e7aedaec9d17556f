"""The text of expressions with tensors and reductions, for messages and printed schedules."""

from __future__ import annotations

from compassc.ir.exprs import Expr, Var
from compassc.ir.printer import print_expr
from compassc.te.nodes import Reduce, TensorRead, rewrite


def text(e: Expr) -> str:
    """An expression as Python-like text: `A[i, k]`, `sum(A[i, k], axis=[k])`."""
    if isinstance(e, Reduce):
        sources = ", ".join(map(text, e.sources))
        axes = ", ".join(axis.name for axis in e.axes)
        return f"{e.combiner.name}({sources}, axis=[{axes}])"
    return print_expr(rewrite(e, _named))


def _named(e: Expr) -> Expr | None:
    """A variable whose name is the text of an element."""
    if isinstance(e, TensorRead):
        return Var(f"{e.tensor.name}[{', '.join(map(text, e.indices))}]", e.dtype)
    return Var(text(e), e.dtype) if isinstance(e, Reduce) else None
