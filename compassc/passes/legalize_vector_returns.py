"""Return vectors that are not one register through memory.

Before: a sub-function may return a data vector of any width. After: such a function returns nothing and stores the
value at its extra last parameter `ret`; a caller passes the address of a temporary `tmp_varN`. A call in the condition
of a `while` is evaluated before each test.
"""

from __future__ import annotations

from typing import TypeGuard

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import BOOL, VOID, DataType, Type, pointer_type
from ..ir.visit import Rewriter, Rewritten, StatementRewriter, rewrites
from ._vectors import int32, vstore, zero

NAME = "LegalizeVectorReturns"


def is_flexible(t: Type) -> TypeGuard[DataType]:
    return t.is_vector and not t.is_native and not t.is_bool


class _Callee(StatementRewriter):
    def __init__(self, ret: E.Var) -> None:
        super().__init__()
        self.ret = ret

    @rewrites(S.Return)
    def rewrite_return(self, s: S.Return) -> Rewritten:
        if s.value is None:
            return s
        store = vstore(s.value, E.Pointer(self.ret.pointer_type.elem, self.ret, int32(0)))
        return [store.replace(span=s.span), S.Return(None, span=s.span)]


class _Caller(Rewriter):
    interest = E.F_FUNC

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.before: list[S.Stmt] = []

    @rewrites(E.FuncCall)
    def rewrite_func_call(self, e: E.FuncCall) -> E.Expr:
        e = e.map(self.expr)
        if not is_flexible(e.dtype):
            return e
        tmp = E.Var(f"tmp_var{self.count}", e.dtype)
        self.count += 1
        address = E.Pointer(e.data_type.element_of, E.AddressOf(tmp), int32(0))
        self.before.append(S.Let(tmp, zero(e.data_type)))
        self.before.append(S.Evaluate(E.FuncCall(e.func, (*e.args, address), VOID)))
        return tmp

    def stmt(self, s: S.Stmt) -> Rewritten:
        outer, self.before = self.before, []
        new: S.Stmt = self.loop(s) if type(s) is S.While else s.map(self.expr, self.nested)
        hoisted, self.before = self.before, outer
        if not hoisted:
            return new
        hoisted = [h.replace(span=s.span) for h in hoisted]
        if type(new) is S.Evaluate and type(new.value) is E.Var:
            return hoisted
        return [*hoisted, new]

    def nested(self, body: S.Body) -> S.Body:
        """A nested body; calls in it do not move before the statement that holds it."""
        outer, self.before = self.before, []
        new = self.body(body)
        self.before = outer
        return new

    def loop(self, s: S.While) -> S.While:
        cond = self.expr(s.condition)
        body = self.nested(s.body)
        if not self.before:
            return s if cond is s.condition and body is s.body else S.While(cond, body, span=s.span)
        stop = S.IfThenElse(E.Unary("not", cond), (S.Break(span=s.span),), (), span=s.span)
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
