"""Convert the even and the odd lanes of a register of halves once each.

Before: any module, after ShareLoads. After: on X2, which widens only even and odd lanes, a variable of loaded halves that a
statement of the entry converts to 32 bits is converted to two vectors before it, whose lanes the statement interleaves.
Each register of the result would load and convert both otherwise. The values are the same.
"""

from __future__ import annotations

from compass_core import targets
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import Type
from compassc.ir.exprs import Expr, Var
from compassc.ir.stmts import Body, IRModule, PrimFunc, Stmt
from compassc.ir.visit import Rewriter, StatementRewriter, rewrites
from compassc.passes.loops._functions import on_entry

NAME = "ShareConversions"
_PARTS = ("even", "odd")


def run(module: IRModule) -> IRModule:
    return on_entry(module, _shared) if targets.load(module.target).version == "X2" else module


def _shared(f: PrimFunc) -> PrimFunc:
    return _Statements().function(f)


class _Statements(StatementRewriter):
    def __init__(self) -> None:
        super().__init__()
        self.loaded: set[Var] = set()

    def body(self, body: Body) -> Body:
        made: list[Stmt] = []
        for s in body:
            if isinstance(s, (S.Let, S.Assign, S.BufferStore)):
                if isinstance(s, S.Let) and _is_load(s.value):
                    self.loaded.add(s.var)
                apart = _Apart(s, self.loaded)
                new = s.map(apart.expr, lambda inner: inner)
                made += [*apart.lets, new]
            else:
                made.append(s.map(self.expr, self.body))
        same = len(made) == len(body) and all(a is b for a, b in zip(made, body))
        return body if same else tuple(made)


class _Apart(Rewriter):
    """The conversions of one statement: the variables of even and odd lanes before it."""

    def __init__(self, s: Stmt, loaded: set[Var]) -> None:
        super().__init__()
        self.span, self.loaded = s.span, loaded
        self.lets: list[S.Let] = []
        self.names: dict[tuple[Expr, Type], tuple[Var, ...]] = {}

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> Expr:
        if not _is_shared(e) or e.args[0] not in self.loaded:
            return e.map(self.expr)
        key = e.args[0], e.dtype
        if key not in self.names:
            kind = e.data_type.with_lanes(e.dtype.lanes // 2)
            self.names[key] = tuple(Var(part, kind) for part in _PARTS)
            for var, part in zip(self.names[key], _PARTS):
                attrs = tuple((name, part if name == "part" else value) for name, value in e.attrs)
                self.lets.append(S.Let(var, E.Call("cast", e.args, kind, attrs=attrs), span=self.span))
        return E.Call("vzip", self.names[key], e.dtype, attrs=(("part", "all"),))


def _is_shared(e: E.Call) -> bool:
    """Whether a call converts whole registers of halves in a variable to two registers each."""
    if e.op != "cast" or len(e.args) != 1 or e.mask is not None or e.attr("part", "all") != "all":
        return False
    source = e.args[0].dtype
    if not isinstance(e.args[0], Var) or not source.is_vector or source.lanes % source.native_lanes:
        return False
    return e.args[0].data_type.is_floating and source.bits == 16 and e.data_type.bits == 32


def _is_load(e: Expr) -> bool:
    return isinstance(e, E.BufferLoad) or (isinstance(e, E.Call) and e.op in ("vload", "vload_gather"))
