"""No pass drops a position: every statement, access of memory and call still knows its place in the kernel.

There is no list of passes that may: a pass that makes something new gives it the place of what it stands for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compass_core.errors import Span
from compassc import pass_manager
from compassc.analysis.structure import effect_of
from compassc.dsl import load_kernels, parse
from compassc.ir import exprs as E
from compassc.ir import parse_module, print_module
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32
from compassc.ir.visit import located, placed_exprs, walk_stmts
from compassc.language.parser import parse as parse_kernel
from compassc.ops import spelling

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from tests.fuzz.generate import generate
from tests.fuzz.run import load_kernel

EXAMPLES = sorted(p.parent.name for p in (ROOT / "examples").glob("*/kernel.py"))
SEEDS = range(25)
MEMORY = ("__vload", "__vstore")


def is_access(e: E.PlacedExpr) -> bool:
    """Whether the expression touches memory, calls a function, or does something else besides giving a value."""
    if not isinstance(e, E.Call):
        return True
    return e.op.startswith(MEMORY) if spelling.is_builtin(e.op) else effect_of(e) != "pure"


def things(module: S.IRModule) -> Iterator[tuple[Span | None, str]]:
    """The place of each statement, access and call, with words for a failure."""
    for f in module.functions:
        yield f.span, f.name
        for s in walk_stmts(f.body):
            yield s.span, f"{type(s).__name__} in {f.name}"
            yield from ((e.span, f"{e} in {f.name}") for e in placed_exprs(s) if is_access(e))


def check(module: S.IRModule) -> None:
    calls = [e.span for f in module.functions for s in walk_stmts(f.body) for e in placed_exprs(s)]
    assert None not in calls
    known = {*calls, *[span for span, _ in things(module)]}
    for stage in ("lower", "legalize"):
        for name in pass_manager.pipeline_names(stage):
            module = pass_manager.run_pipeline((name,), module)
            lost = [what for span, what in things(module) if span is None or span not in known]
            assert not lost, f"{name} drops the place of {lost[:3]}"


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_pass_drops_a_place_of_an_example(name):
    check(parse(load_kernels(ROOT / "examples" / name / "kernel.py").entry(), "X2_1204"))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_pass_drops_a_place_of_a_random_program(seed):
    program = generate(seed)
    check(parse_kernel(load_kernel(program), program.target))


@pytest.mark.parametrize("seed", SEEDS)
def test_text_keeps_the_lines_of_accesses(seed):
    program = generate(seed)
    module = parse_kernel(load_kernel(program), program.target)
    lines = [(span and (span.file, span.line)) for span, _ in things(module)]
    again = parse_module(print_module(module))
    assert [(span and (span.file, span.line)) for span, _ in things(again)] == lines


def test_located_keeps_the_places_that_are_there():
    outer, inner = Span("k.py", 1, 1), Span("k.py", 2, 5)
    call = E.Call("f", (E.Cast(INT32, E.FuncCall("g", (E.Var("x", INT32),), INT32, span=inner)),), INT32)
    made = located(call, outer)
    assert [e.span for e in placed_exprs(S.Evaluate(made))] == [outer, inner]
    assert located(made, inner) is made
    assert located(call, None) is call
