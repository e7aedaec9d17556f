"""Whole pipelines keep what a program does: random programs leave the same memory before and after."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compassc import pass_manager
from compassc.analysis.interpret import Interpreter, Undefined
from compassc.ir import IRModule, PrimFunc, print_module
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, VOID, pointer_type
from compassc.ir.exprs import Binary, Buffer, BufferLoad, Expr, IntImm, Select, Unary, Var

SIZE = 8
N, M = Var("n", INT32), Var("m", INT32)
P = Var("p", pointer_type(INT32, "global"))
SCALAR_LEGALISATION = "LowerThreadLoops,ExpandDivMod,CommonSubexprElim,UniquifyVarName"
PIPELINES = [
    ",".join(pass_manager.pipeline_names("lower")) + "," + SCALAR_LEGALISATION,
    "CommonSubexprElim",
    "StorageRewrite",
]


def imm(value: int) -> IntImm:
    return IntImm(INT32, value)


_among = cache(st.sampled_from)
"""Strategies of words, each made once: hypothesis looks at what is new."""


class Program:
    """Draws statements; keeps the variables and arrays in scope."""

    def __init__(self, draw) -> None:
        self.draw = draw
        self.scalars: list[Var] = [N, M]
        self.fixed: set[Var] = set()
        self.arrays: list[tuple[Var, int]] = [(P, SIZE)]
        self.loops = 0

    def pick(self, *choices):
        return self.draw(_among(choices) if isinstance(choices[0], str) else st.sampled_from(choices))

    def expr(self, depth: int = 2) -> Expr:
        kind = (
            self.pick("var", "var", "imm")
            if depth == 0
            else self.pick(*"var imm op op op div shift load choose".split())
        )
        if kind == "var":
            return self.pick(*self.scalars)
        if kind == "imm":
            return imm(self.draw(st.integers(-2, 9)))
        a, b = self.expr(depth - 1), self.expr(depth - 1)
        if kind == "op":
            return Binary(self.pick("add", "sub", "mul", "min", "max"), a, b)
        if kind == "div":
            return Binary(self.pick("div", "mod"), a, b)
        if kind == "shift":
            return Binary(self.pick("floordiv", "floormod"), a, imm(self.pick(2, 4)))
        if kind == "load":
            return self.access()
        return Select(self.cond(0), a, b)

    def access(self) -> BufferLoad:
        data, size = self.pick(*self.arrays)
        return BufferLoad(Buffer(data, INT32), (Binary("bitand", self.expr(1), imm(size - 1)),))

    def cond(self, depth: int = 1) -> Expr:
        compared = Binary(self.pick("lt", "le", "gt", "ge", "eq", "ne"), self.expr(depth), self.expr(depth))
        return self.pick(compared, compared, Unary("not", compared))

    def block(self, depth: int) -> S.Body:
        scope = len(self.scalars), len(self.arrays)
        out: list[S.Stmt] = []
        for _ in range(self.draw(st.integers(1, 4))):
            out += self.statement(depth)
        del self.scalars[scope[0] :], self.arrays[scope[1] :]
        return tuple(out)

    def statement(self, depth: int) -> list[S.Stmt]:
        nested = ("if", "for", "for") if depth else ()
        kind = self.pick("let", "let", "assign", "store", "store", "alloc", "leave", *nested)
        return getattr(self, "make_" + kind)(depth)

    def make_let(self, depth: int) -> list[S.Stmt]:
        value = self.expr()
        self.scalars.append(Var("v", INT32))
        return [S.Let(self.scalars[-1], value)]

    def make_assign(self, depth: int) -> list[S.Stmt]:
        choices = [v for v in self.scalars if v not in self.fixed]
        return [S.Assign(self.pick(*choices), self.expr())]

    def make_store(self, depth: int) -> list[S.Stmt]:
        target = self.access()
        return [S.BufferStore(target.buffer, target.indices, self.expr(), None)]

    def make_alloc(self, depth: int) -> list[S.Stmt]:
        data = Var("t", pointer_type(INT32, "lsram"))
        self.arrays.append((data, 2))
        buffer = Buffer(data, INT32)
        fill = [S.BufferStore(buffer, (imm(i),), imm(i + 5), None) for i in range(2)]
        return [S.Alloc(Buffer(data, INT32, (imm(2),))), *fill]

    def make_leave(self, depth: int) -> list[S.Stmt]:
        out = self.pick(S.Break, S.Continue)() if self.loops and self.pick(True, False) else S.Return(None)
        return [S.IfThenElse(self.cond(), (out,), ())]

    def make_if(self, depth: int) -> list[S.Stmt]:
        orelse = self.block(depth - 1) if self.pick(True, False) else ()
        return [S.IfThenElse(self.cond(), self.block(depth - 1), orelse)]

    def make_for(self, depth: int) -> list[S.Stmt]:
        var, start, kind = Var("i", INT32), imm(self.pick(0, 0, 1)), self.pick("serial", "serial", "unrolled")
        run_time = Binary("floormod", self.pick(N, M), imm(4))
        stop: Expr = imm(self.pick(0, 1, 2, 3)) if kind == "unrolled" else self.pick(imm(3), run_time)
        self.scalars.append(var)
        self.fixed.add(var)
        self.loops += 1
        body = self.block(depth - 1)
        self.loops -= 1
        self.scalars.remove(var)
        return [S.For(var, kind, start, stop, imm(self.pick(1, 1, 2)), body)]


@st.composite
def programs(draw) -> IRModule:
    body = Program(draw).block(2) + Program(draw).block(2)
    return IRModule((PrimFunc("k", (P, N, M), body, VOID),), "k", "X2_1204")


def memory_after(module: IRModule, n: int, m: int) -> list[int]:
    memory = np.array([3, 1, 4, 1, 5, 9, 2, 6], "int32")
    Interpreter(module, tecs=1)(memory, n, m)
    return memory.tolist()


@pytest.mark.parametrize("names", PIPELINES, ids=["all", "cse", "storage"])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(module=programs(), n=st.integers(-3, 6), m=st.integers(-3, 6))
def test_memory_is_the_same(names, module, n, m):
    try:
        expected = memory_after(module, n, m)
    except Undefined:
        return
    after = pass_manager.run_pipeline(pass_manager.parse_pipeline(names), module, pass_manager.PassOptions(verify=True))
    assert memory_after(after, n, m) == expected, print_module(module) + print_module(after)
