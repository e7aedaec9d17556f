"""Addresses in buffers: where one is taken, the elements stay where they are and what they are."""

from __future__ import annotations

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import PointerType
from compassc.ir.exprs import Expr, Var
from compassc.te.errors import ScheduleError
from compassc.tir.canonical import EXPLICIT, ONLY
from compassc.tir.tree import Tree


def check_no_address(step: str, tree: Tree, data: Var, declared: bool = False) -> None:
    """ScheduleError where the function takes an address in a buffer. `step`: with what it is about. `declared`: it may where
    the user says what is read and written there."""
    if any(has_address(s, data) and not (declared and is_declared(tree, s)) for s in tree.parents):
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


def takes_address(s: S.Stmt) -> bool:
    """Whether a statement takes an address in memory."""
    if isinstance(s, (S.Alloc, S.DeclBuffer, S.Block)):
        return False
    own = s.buffer.data if isinstance(s, S.BufferStore) else None
    return any(_address_of(e) for e in s.exprs() if e is not own)


def _address_of(e: Expr) -> bool:
    if isinstance(e, E.BufferLoad):
        return any(map(_address_of, e.indices))
    return (isinstance(e, Var) and isinstance(e.dtype, PointerType)) or any(map(_address_of, e.children()))


def is_declared(tree: Tree, s: S.Stmt) -> bool:
    """Whether a statement is in a block of which the user says all that it reads and writes."""
    block = next((x for x in (s, *tree.around(s)) if isinstance(x, S.Block)), None)
    return block is not None and says_all(block)


def says_all(block: S.Block) -> bool:
    """Whether the user says all that a block reads and writes."""
    notes = dict(block.annotations)
    return all(isinstance(n := notes.get(key), list) and n[:1] == [ONLY] for key in EXPLICIT.values())
