"""Vectors that a statement would compute again are computed once, and only those that it computes for sure."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import pass_manager, targets, te, topi
from compassc.analysis.structure import Interner
from compassc.ir.text import parse_module
from compassc.ir.visit import walk_exprs, walk_stmts
from compassc.passes.loops._shared_parts import is_part
from tests.choosing import some

TARGET = "X2_1204"
OPERATORS = {
    "sigmoid": topi.sigmoid,
    "silu": topi.silu,
    "resize2d": lambda x: topi.image.resize2d(topi.reshape(x, [1, 1, 6, 37]), [13, 29]),
}


@pytest.mark.parametrize(("name", "kind"), [(n, "float16") for n in OPERATORS] + [("resize2d", "float32")])
def test_no_statement_computes_a_vector_twice(name, kind):
    x = te.placeholder((6, 37), kind, name="x")
    out = OPERATORS[name](x)
    s = topi.schedule(out, TARGET)
    for statement in some(walk_stmts(te.lower(s, [x, out], "k", TARGET).entry_func.body)):
        interner = Interner()
        parts = [interner.key(e) for root in statement.exprs() for e in walk_exprs(root) if is_part(e)]
        assert len(parts) == len(set(parts)), statement
    given = np.random.default_rng(0).uniform(-1, 1, (6, 37)).astype(kind)
    found = np.zeros([d.value for d in out.shape], kind)
    targets.build(s, [x, out], TARGET)(given, found)
    plain = np.zeros_like(found)
    targets.build(te.create_schedule(out), [x, out], TARGET)(given, plain)
    np.testing.assert_allclose(found, plain, rtol=2e-3, atol=1e-3)


def named(*lines: str) -> list[str]:
    text = "\n".join(
        ['# compassc IR 1', '@I.module(target="X2_1204", entry="op")', "class Module:", "    @T.func",
         '    def op(x: T.ptr("float16", "global"), y: T.ptr("float16", "global"), n: T.int32) -> T.void:',
         '        x_1 = T.match_buffer(x, (64,), "float16")', '        y_1 = T.match_buffer(y, (64,), "float16")',
         *("        " + line for line in lines)]
    )  # fmt: skip
    return (
        pass_manager.run_pipeline(("ShareVectors",), parse_module(text))
        .script()
        .partition('"float16")\n        y_1 = ')[2]
        .splitlines()[1:]
    )


def test_what_is_converted_to_a_wider_type_is_a_variable():
    load, attrs = "x_1[T.ramp(0, 1, 16)]", "part='all', saturate=None"
    wide = 'S.cast(S.cast({}, dtype="float32x16", ' + attrs + '), dtype="float16x16", ' + attrs + ")"
    once = named("y_1[T.ramp(0, 1, 16)] = " + wide.format(f'S.exp({load}, dtype="float16x16")'))
    assert len(once) == 2 and "S.exp" in once[0] and "S.exp" not in once[1]
    assert len(named("y_1[T.ramp(0, 1, 16)] = " + wide.format(load))) == 1, "loads are left"
