"""Copies that are only read: by which variables, so that these may point to the source in the copy's place."""

from __future__ import annotations

from collections import Counter

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import PointerType
from ..ir.equal import structural_equal
from ..ir.visit import all_exprs, walk_stmts


def viewer(copy: E.Call) -> E.Var | None:
    """The variable that points to a copy by DMA which is promised to be only read; None where it is not one piece of memory, or
    not promised."""
    dst, _, *sizes = copy.args
    if not copy.attr("only_read", False) or not all(structural_equal(size, sizes[0], exact=True) for size in sizes):
        return None
    if type(dst) is E.Pointer and type(dst.offset) is E.IntImm and dst.offset.value == 0:
        dst = dst.base
    return dst if type(dst) is E.Var else None


def readers(function: S.PrimFunc) -> set[E.Var]:
    """The pointer variables that nothing is done with but to copy to them what is only read, and to load vectors by them."""
    defined = {s.var for s in walk_stmts(function.body) if type(s) is S.Let and isinstance(s.var.dtype, PointerType)}
    uses, reads = Counter[E.Expr](), Counter[E.Expr | None]()
    for e in all_exprs(function.body):
        if type(e) is E.Var and e in defined:
            uses[e] += 1
        elif type(e) is E.Call and e.op == "vload":
            reads[e.args[0].base if type(e.args[0]) is E.Pointer else e.args[0]] += 1
        elif type(e) is E.Call and e.op == "dma_copy":
            reads[viewer(e)] += 1
    return {var for var in defined if uses[var] == reads[var]}
