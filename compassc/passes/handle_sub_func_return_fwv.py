"""Return vectors that are not one register through memory.

Before: a sub-function may return a data vector of any width. After: such a function returns nothing and stores the
value at its extra last parameter `ret`; a caller passes the address of a temporary `tmp_varN`. A call in the condition
of a `while` is evaluated before each test.
"""

from __future__ import annotations

from typing import Any

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import BOOL, VOID, pointer_type
from ..ir.visit import Rewriter
from ._vectors import int32, vstore, zero

NAME = "HandleSubFuncReturnFWV"


def is_flexible(t: Any) -> bool:
    return t.is_vector and not t.is_native and not t.is_bool


class _Callee(Rewriter):
    def __init__(self, ret: E.Var) -> None:
        super().__init__()
        self.ret = ret

    def expr(self, e: E.Expr) -> E.Expr:
        return e

    def Return(self, s: Any) -> Any:
        if s.value is None:
            return s
        store = vstore(s.value, E.Pointer(self.ret.dtype.elem, self.ret, int32(0)))
        return [S.Eval(store.value, span=s.span), S.Return(None, span=s.span)]


class _Caller(Rewriter):
    interest = E.F_FUNC

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.before: list[S.Stmt] = []

    def FuncCall(self, e: E.FuncCall) -> E.Expr:
        e = e.map(self.expr)
        if not is_flexible(e.dtype):
            return e
        tmp = E.Var(f"tmp_var{self.count}", e.dtype)
        self.count += 1
        address = E.Pointer(e.dtype.element_of, E.AddressOf(tmp), int32(0))
        self.before.append(S.Let(tmp, zero(e.dtype)))
        self.before.append(S.Eval(E.FuncCall(e.func, (*e.args, address), VOID)))
        return tmp

    def stmt(self, s: S.Stmt) -> Any:
        outer, self.before = self.before, []
        new = self.loop(s) if type(s) is S.While else s.map(self.expr, self.nested)
        hoisted, self.before = self.before, outer
        if not hoisted:
            return new
        hoisted = [type(h)(*[getattr(h, f) for f in h.fields], span=s.span) for h in hoisted]
        if type(new) is S.Eval and type(new.value) is E.Var:
            return hoisted
        return [*hoisted, new]

    def nested(self, body: S.Body) -> S.Body:
        """A nested body; calls in it do not move before the statement that holds it."""
        outer, self.before = self.before, []
        new = self.body(body)
        self.before = outer
        return new

    def loop(self, s: Any) -> Any:
        cond = self.expr(s.cond)
        body = self.nested(s.body)
        if not self.before:
            return s if cond is s.cond and body is s.body else S.While(cond, body, span=s.span)
        stop = S.If(E.Unary("not", cond), (S.Break(span=s.span),), (), span=s.span)
        test, self.before = (*self.before, stop), []
        return S.While(E.IntImm(BOOL, 1), test + body, span=s.span)


def run(module: S.IRModule) -> S.IRModule:
    if not any(is_flexible(f.ret_type) for f in module.functions):
        return module

    def function(f: S.PrimFunc) -> S.PrimFunc:
        if is_flexible(f.ret_type):
            ret = E.Var("ret", pointer_type(f.ret_type.element_of, "private"))
            f = f.replace(params=(*f.params, ret), ret_type=VOID, body=_Callee(ret).body(f.body))
        return _Caller().function(f)

    return module.map_functions(function)
