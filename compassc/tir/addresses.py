"""Addresses in buffers: where one is taken, the elements stay where they are and what they are."""

from __future__ import annotations

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import PointerType
from compassc.ir.exprs import Expr, Var
from compassc.te.errors import ScheduleError
from compassc.tir.tree import Tree


def check_no_address(step: str, tree: Tree, data: Var) -> None:
    """ScheduleError where the function takes an address in a buffer. `step`: with what it is about."""
    if any(has_address(s, data) for s in tree.parents):
        raise ScheduleError(
            f"{step}: an address of '{data.name}' is taken, from which its elements are reached without an index",
            "access it by indices, or take the step on a copy",
        )


def has_address(s: S.Stmt, data: Var) -> bool:
    """Whether a statement takes an address in a buffer, or accesses it under a mask."""
    if isinstance(s, (S.Alloc, S.DeclBuffer, S.Block)):
        return False
    return any(_has_address(e, data) for e in s.exprs() if not (isinstance(s, S.BufferStore) and e is data))


def _has_address(e: Expr, data: Var) -> bool:
    if isinstance(e, E.BufferLoad):
        return any(_has_address(i, data) for i in e.indices) or (e.buffer.data is data and e.mask is not None)
    if isinstance(e, Var):
        return e is data and isinstance(e.dtype, PointerType)
    return any(_has_address(c, data) for c in e.children())
