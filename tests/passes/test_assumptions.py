"""What S.assume promises: expressions simplified under it have the same value for every number that it allows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from compassc.analysis.arith import Arith
from compassc.analysis.interpret import evaluate
from compassc.analysis.simplify import Simplifier
from compassc.ir import exprs as E
from compassc.ir.dtypes import BOOL, INT32, VOID

LOW, HIGH = INT32.range()
MODULI = (2, 3, 4, 6, 8, 12, 16, 64)


def imm(value: int) -> E.Expr:
    return E.IntImm(INT32, value)


N, I = E.Var("n", INT32), E.Var("i", INT32)
DIVISORS = st.sampled_from(MODULI).map(imm)
TREES: st.SearchStrategy[E.Expr] = st.recursive(
    st.one_of(st.sampled_from((N, I)), st.integers(-20, 20).map(imm)),
    lambda inner: st.one_of(
        st.builds(E.Binary, st.sampled_from(("add", "sub", "mul", "min", "max")), inner, inner),
        st.builds(E.Binary, st.sampled_from(("floordiv", "floormod", "div", "mod")), inner, DIVISORS),
        st.builds(E.Binary, st.just("mul"), inner, DIVISORS),
    ),
    max_leaves=8,
)


@settings(max_examples=80)
@given(data=st.data(), modulus=st.sampled_from(MODULI), shift=st.integers(-9, 9))
def test_simplified_expressions_keep_their_value(data: st.DataObject, modulus: int, shift: int) -> None:
    rest = data.draw(st.integers(0, modulus - 1))
    op = data.draw(st.sampled_from(("floormod", "mod") + ("bitand",) * (modulus & (modulus - 1) == 0)))
    by = imm(modulus - 1 if op == "bitand" else modulus)
    cond = E.Binary("eq", E.Binary(op, E.Binary("add", N, imm(shift)), by), imm(rest))
    step = data.draw(st.sampled_from((1, 2, 4, 8, 6)))
    arith = Arith()
    arith.learn_assumption(E.Call("assume", (cond,), VOID))
    arith.learn_assumption(E.Call("assume", (E.Binary("le", imm(-200), N),), VOID))
    arith.learn_assumption(E.Call("assume", (E.Binary("le", N, imm(200)),), VOID))
    arith.bind_loop(I, imm(0), N, imm(step))
    e = data.draw(TREES)
    simple = Simplifier(arith).expr(e)
    assert cond.dtype is BOOL
    for value in range(-50, 60):
        for turn in (0, step, 2 * step, (value - 1) // step * step):
            values = {N: value, I: turn}
            if not (0 <= turn < value) or not evaluate(cond, values):
                continue
            wanted = evaluate(e, values)
            if wanted is None:  # C leaves it open
                continue
            assert evaluate(simple, values) == wanted, (value, turn)
