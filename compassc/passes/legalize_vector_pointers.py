"""Pointers to vectors that are not one register become pointers to their elements.

After: every pointer's element is a scalar, a mask or a native vector; offsets are counted in that element.
"""

from __future__ import annotations

from typing import Any

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import PointerType, pointer_type
from ..ir.visit import Rewriter, Rewritten, rewrites, walk_stmts
from ._vectors import times

NAME = "LegalizeVectorPointers"


def is_virtual(t: object) -> bool:
    """Whether a type points to vectors that are not one register."""
    return isinstance(t, PointerType) and t.flags & E.F_WIDE_POINTER != 0


def _scalar(t: Any) -> Any:
    return pointer_type(t.elem.element_of, t.scope) if is_virtual(t) else t


class _Lower(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.vars: dict[E.Var, E.Var] = {}

    @rewrites(E.Var)
    def rewrite_var(self, e: E.Var) -> E.Var:
        if not is_virtual(e.dtype):
            return e
        if e not in self.vars:
            self.vars[e] = E.Var(e.name, _scalar(e.dtype))
        return self.vars[e]

    @rewrites(E.Pointer)
    def rewrite_pointer(self, e: E.Pointer) -> E.Expr:
        lanes = e.elem.lanes if is_virtual(e.dtype) else 1
        elem = e.elem.element_of if lanes > 1 else e.elem
        base, offset = self.expr(e.base), self.expr(e.offset)
        if elem is e.elem and base is e.base and offset is e.offset:
            return e
        return E.Pointer(elem, base, times(lanes, offset))

    @rewrites(E.FuncCall)
    def rewrite_func_call(self, e: E.FuncCall) -> E.Expr:
        e = e.map(self.expr)
        return E.FuncCall(e.func, e.args, _scalar(e.dtype)) if is_virtual(e.dtype) else e

    @rewrites(E.Reinterpret)
    def rewrite_reinterpret(self, e: E.Reinterpret) -> E.Expr:
        e = e.map(self.expr)
        return E.Reinterpret(_scalar(e.dtype), e.value) if is_virtual(e.dtype) else e

    @rewrites(S.Let)
    def rewrite_let(self, s: S.Let) -> Rewritten:
        return self._moved(s)

    @rewrites(S.Assign)
    def rewrite_assign(self, s: S.Assign) -> Rewritten:
        return self._moved(s)

    def _moved(self, s: S.Let | S.Assign) -> Rewritten:
        if not is_virtual(s.var.dtype):
            return self.default_stmt(s)
        return s.replace(var=self.rewrite_var(s.var), value=self.expr(s.value))

    def function(self, f: S.PrimFunc) -> S.PrimFunc:
        params = tuple([self.rewrite_var(p) for p in f.params])
        return f.replace(params=params, body=self.body(f.body), ret_type=_scalar(f.ret_type))


def _concerned(f: S.PrimFunc) -> bool:
    """Whether a virtual pointer can occur: every one starts at a parameter, a Pointer or a pointer-typed variable."""
    if any(is_virtual(p.dtype) for p in f.params) or is_virtual(f.ret_type):
        return True
    for s in walk_stmts(f.body):
        if is_virtual(getattr(getattr(s, "var", None), "dtype", None)):
            return True
        for e in s.exprs() if s.flags & E.F_WIDE_POINTER else ():
            if e.flags & E.F_WIDE_POINTER and e.flags & (E.F_POINTER | E.F_FUNC):
                return True
    return False


def run(module: S.IRModule) -> S.IRModule:
    if not any(map(_concerned, module.functions)):
        return module
    return module.map_functions(lambda f: _Lower().function(f))
