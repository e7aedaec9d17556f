"""How compile time grows: 64 wide-vector operations on 1,024 lanes, and straight-line kernels of doubling length."""

from __future__ import annotations

import gc
from collections.abc import Callable

from benchmarks.core import Goal, Result, median, seconds
from compassc import pass_manager, passes
from compassc.codegen import generate
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import VOID, dtype, pointer_type
from compassc.ops import get

from ._examples import TARGET

STATEMENTS = (1000, 2000, 4000, 8000)
LONGEST = STATEMENTS[-1]
GOALS = {
    "wide": Goal("lower + codegen, 64 operations on 1,024 lanes", "s", 0.5),
    **{f"n{n}": Goal(f"lower + codegen, {n} statements", "s") for n in STATEMENTS},
    "growth": Goal(f"time per statement, {LONGEST} against {STATEMENTS[0]}", "x", 1.5),
    "slowest_pass": Goal("the pass that grows most, per statement", "x", 3),
}
ROUNDS = 3
I16, I32 = dtype("int16"), dtype("int32")
ZERO = E.IntImm(I32, 0)


def measure() -> dict[str, Result]:
    wide = _module(_wide_body)
    results = {"wide": Result(median(seconds(lambda: _compile(wide)) for _ in range(ROUNDS)))}
    modules = {n: _module(lambda a, b, n=n: _scalar_body(a, b, n)) for n in STATEMENTS}
    times = {n: median(seconds(lambda m=m: _compile(m)) for _ in range(ROUNDS)) for n, m in modules.items()}
    results |= {f"n{n}": Result(t, f"{1e6 * t / n:.0f} us per statement") for n, t in times.items()}
    per_statement = {n: t / n for n, t in times.items()}
    results["growth"] = Result(per_statement[LONGEST] / per_statement[STATEMENTS[0]])
    results["slowest_pass"] = _steepest(modules)
    return results


def _module(body: Callable[[E.Var, E.Var], list[S.Stmt]]) -> S.IRModule:
    """A module of one kernel with two int16 pointer parameters."""
    a, b = (E.Var(name, pointer_type(I16, "global")) for name in "ab")
    return S.IRModule((S.PrimFunc("k", (a, b), tuple(body(a, b)), VOID),), "k", TARGET)


def _wide_body(a: E.Var, b: E.Var) -> list[S.Stmt]:
    """64 named operations on 1,024 lanes, between a load and a store."""
    value: E.Expr = get("vload").build(E.Pointer(I16, a, ZERO), lanes=1024)
    out: list[S.Stmt] = []
    for i in range(64):
        var = E.Var(f"v{i}", value.dtype)
        out.append(S.Let(var, value))
        value = get(("vadd", "vsub", "max", "vmul")[i % 4]).build(var, i + 3)
    return [*out, S.Evaluate(get("vstore").build(value, E.Pointer(I16, b, ZERO)))]


def _scalar_body(a: E.Var, b: E.Var, count: int) -> list[S.Stmt]:
    """`count` statements: named sums of loads, and stores of them, at a few hundred different places."""
    source, target = E.Buffer(a, I16), E.Buffer(b, I16)
    out: list[S.Stmt] = []
    for i in range(count // 2):
        var = E.Var(f"x{i}", I16)
        index = E.IntImm(I32, i % 300)
        out.append(S.Let(var, E.Binary("add", E.BufferLoad(source, (index,)), E.IntImm(I16, i % 100))))
        out.append(S.BufferStore(target, (index,), E.Binary("mul", var, var), None))
    return out


def _compile(module: S.IRModule, options: pass_manager.PassOptions | None = None) -> None:
    gc.collect()
    options = options or pass_manager.PassOptions()
    generate(passes.lower(module, options), options)


def _steepest(modules: dict[int, S.IRModule]) -> Result:
    """Of the passes that take at least 1 % of the longest compile: the one whose time per statement grows most."""
    short, long = (_pass_seconds(modules[n]) for n in (STATEMENTS[0], LONGEST))
    floor = sum(long.values()) / 100
    growth = {
        name: (long[name] / LONGEST) / (short[name] / STATEMENTS[0])
        for name in long
        if long[name] >= floor and short.get(name)
    }
    name = max(growth, key=lambda n: growth[n])
    return Result(growth[name], name)


def _pass_seconds(module: S.IRModule) -> dict[str, float]:
    samples: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        options = pass_manager.PassOptions()
        _compile(module, options)
        total: dict[str, float] = {}
        for run in options.runs:
            total[run.name] = total.get(run.name, 0.0) + run.seconds
        for name, value in total.items():
            samples.setdefault(name, []).append(value)
    return {name: median(values) for name, values in samples.items()}
