"""Make functions of the operations that C has no function for.

Before: any module. After: no call is of an operation that declares an expansion: each is the call of a function
`<entry>_<operation>_<type>`, which is made of other operations.
"""

from __future__ import annotations

from functools import cache

from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import DataType
from ..ir.names import NamePool
from ..ir.stmts import IRModule, PrimFunc
from ..ir.visit import Rewriter, all_exprs, rewrites
from ..ops import core

NAME = "OutlineOperations"


def run(module: IRModule) -> IRModule:
    if not any(map(_expands, module.functions)):
        return module
    outline = _Outline(module)
    functions = tuple([outline.function(f) for f in module.functions])
    return module.replace(functions=(*functions, *outline.made.values()))


def _expands(f: PrimFunc) -> bool:
    return any(type(e) is E.Call and _expansion(e) is not None for e in all_exprs(f.body, _flags()))


@cache
def _flags() -> int:
    """What calls of operations with an expansion have one of."""
    return E.flags_of_calls(*[op.name for op in core.load().values() if op.expansion is not None])


def _expansion(e: E.Call) -> object:
    op = core.load().get(e.op)
    return None if op is None else op.expansion


class _Outline(Rewriter):
    interest = E.F_CALL

    def __init__(self, module: IRModule) -> None:
        super().__init__()
        self.prefix = module.entry
        self.names = NamePool(f.name for f in module.functions)
        self.made: dict[object, PrimFunc] = {}

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> E.Expr:
        e = e.map(self.expr)
        if _expansion(e) is None:
            return e
        key = (e.op, e.attrs, tuple(a.dtype for a in e.args))
        if key not in self.made:
            self.made[key] = self.define(e)
        return E.FuncCall(self.made[key].name, e.args, e.dtype, span=e.span)

    def define(self, e: E.Call) -> PrimFunc:
        """The function of an operation on operands of these types."""
        op = core.get(e.op)
        assert op.expansion is not None
        params = [E.Var(name, a.dtype) for name, a in zip(op.operands, e.args, strict=True)]
        body: list[S.Stmt] = []

        def let(value: E.Expr) -> E.Var:
            var = E.Var(f"{op.operands[0]}_{len(body)}", value.dtype)
            body.append(S.Let(var, value, span=e.span))
            return var

        result = op.expansion(let, *params, **dict(e.attrs))
        body.append(S.Return(result, span=e.span))
        return PrimFunc(self.name(e), tuple(params), tuple(body), e.dtype, (("is_inline", True),), e.span)

    def name(self, e: E.Call) -> str:
        options = "".join(f"_{name}" for name, value in e.attrs if value)
        kind = e.args[0].dtype if e.args else e.dtype
        return self.names.take(f"{self.prefix}_{e.op}_{kind if isinstance(kind, DataType) else 'p'}{options}")
