"""Functions with a result that can end without a return."""

from __future__ import annotations

from collections.abc import Iterator

from compass_core.errors import CompassError, Finding

from ..ir import stmts as S
from ..ir.dtypes import VOID
from ..ir.stmts import Body
from . import Subject
from .unreachable import endless

CODE = "no-return"


def run(subject: Subject) -> Iterator[CompassError]:
    """A warning at the last statement of each function that promises a value and has a path to its end without one."""
    for function in subject.functions():
        if function.ret_type is not VOID and not _returns(function.body):
            last = function.body[-1].span if function.body else function.span
            yield Finding(
                f"{function.name} returns {function.ret_type}, but can end here without a return",
                last,
                code=CODE,
                notes=("its caller would get whatever is in the register",),
                help="return a value after this",
            )


def _returns(body: Body) -> bool:
    """Whether every path through a block returns."""
    if not body:
        return False
    last = body[-1]
    if type(last) is S.Return or endless(last):
        return True
    return type(last) is S.IfThenElse and _returns(last.then_case) and _returns(last.else_case or ())
