"""What is asked about the loops of stages: which ones stand still around a place, which are shared out, how long they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.operators import binary, kind_of

if TYPE_CHECKING:
    from compassc.te.schedule.stage import Stage


def loops_around(stage: Stage) -> list[tuple[Stage, IterVar]]:
    """The loops that stand still where a stage is computed, each with its stage; those of the innermost stage first."""
    found = []
    level = stage.attached
    while level is not None:
        parent, axis = level
        for leaf in parent.leaf_iter_vars:
            found.append((parent, leaf))
            if leaf is axis:
                break
        level = parent.attached
    return found


def is_tec(thread: IterVar | None) -> bool:
    """Whether a loop that is bound to this thread is shared out over the TECs."""
    return thread is not None and thread.thread_tag.startswith("threadIdx")


def full_extent(axis: IterVar) -> Expr:
    """The extent that an operation gives one of its axes."""
    assert axis.dom is not None, "the axes of operations have ranges"
    return axis.dom.extent


def ceildiv(a: Expr, b: Expr) -> Expr:
    """The quotient of two positive numbers of turns, rounded up."""
    whole = exact_quotient(a, b)
    if whole is not None:
        return whole
    one = IntImm(kind_of(b), 1)
    return binary("floordiv", binary("sub", binary("add", a, b), one), b)


def exact_quotient(a: Expr, b: Expr) -> Expr | None:
    """What a number of turns that is a product of `b` and another one has as the other factor: numbers of turns do not
    overflow. None for others."""
    if not isinstance(a, Binary) or a.op != "mul":
        return None
    for factor, rest in ((a.a, a.b), (a.b, a.a)):
        if isinstance(b, Var) and factor is b:
            return rest
        if isinstance(b, IntImm) and isinstance(factor, IntImm) and b.value > 0 and factor.value % b.value == 0:
            return binary("mul", rest, IntImm(kind_of(b), factor.value // b.value))
    return None
