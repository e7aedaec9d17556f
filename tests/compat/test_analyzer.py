"""What `tvm.arith` says of whole numbers."""

from __future__ import annotations

import pytest

from compassc import te
from compassc.ir.visit import substitute
from compassc.te.analyzer import Analyzer, ConstIntBound, ModularSet
from compassc.te.linear_forms import detect_linear_equation


def test_what_is_known_of_variables():
    i, n = te.var("i"), te.var("n")
    known = Analyzer()
    known.bind(i, te.Range(0, 16))
    assert repr(known.simplify((i * 4 + 3) // 4)) == "i" and known.can_prove(i < 16) and not known.can_prove(i < 15)
    assert known.const_int_bound(i * 2 + 1) == ConstIntBound(1, 31) and known.can_prove_less(i, 16)
    assert known.can_prove_greater_equal(i, 0) and not known.can_prove_greater_equal(i, 1)
    assert known.can_prove_equal(i + i, i * 2) and not known.can_prove_equal(i, n)
    with known.constraint_scope(n > 5):
        assert known.can_prove(n > 4)
    assert not known.can_prove(n > 4)
    fresh = Analyzer()
    fresh.bind(n, 7)
    assert repr(fresh.simplify(n * 3)) == "21"
    with pytest.raises(te.ExpressionTypeError, match="expected a variable"):
        known.bind(i + 1, 3)


def test_linear_forms():
    i, n = te.var("i"), te.var("n")
    assert [repr(v) for v in detect_linear_equation(i * 3 + n * 2 + 7, [i])] == ["3", "((n * 2) + 7)"]
    assert [repr(v) for v in detect_linear_equation(i * 3 + n * 2 + 7, [i, n])] == ["3", "2", "7"]
    assert [repr(v) for v in detect_linear_equation(i * n + 7, [i])] == ["n", "7"]
    assert detect_linear_equation(i * n, [i, n]) == [] and detect_linear_equation(i // 2, [i]) == []


def remainders():
    x, y = te.var("x"), te.var("y")
    choice = te.if_then_else(x > 0, x * 3 + 1, y * 9 + 4)
    return x, y, [
        (x * 4 + 3, 4, 3), (x * 10 + y * 15, 5, 0), (x * 10 - y * 15 + 7, 5, 2), (x * 4 * (y * 3), 12, 0), (te.const(9, "int32"), 0, 9),
        ((x * 4 + 1) * (y * 6 + 1), 2, 1), (x, 1, 0), (x * y, 1, 0), ((x * 8 + 4) // 4, 2, 1), ((x * 8 + 5) // 4, 2, 1), (x * 3 // 2, 1, 0),
        ((x * 8 + 3) % 4, 4, 3), ((x * 6 + 3) % 4, 2, 1), (te.truncdiv(x * 8, 4), 2, 0), (te.truncdiv(x * 8 + 5, 4), 1, 0),
        (te.truncmod(x * 8 + 4, 4), 4, 0), (te.truncmod(x * 8 + 3, 4), 1, 0), (te.min(x * 3 + 1, y * 9 + 4), 3, 1),
        (te.max(x * 12 + 6, y * 4), 2, 0), (choice, 3, 1), ((x * 8 + 4) >> 2, 2, 1), ((x * 8 + 5) & 3, 4, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("case", range(len(remainders()[2])))
def test_remainders_are_those_of_all_values(case):
    x, y, cases = remainders()
    e, coeff, base = cases[case]
    found = Analyzer().modular_set(e)
    assert (found.coeff, found.base) == (coeff, base)
    for i, j in ((a, b) for a in range(-7, 8) for b in range(-7, 8)):
        value = Analyzer().simplify(substitute(e, {x: te.const(i, "int32"), y: te.const(j, "int32")})).value
        assert value == base if coeff == 0 else value % coeff == base


def test_remainders_that_are_known_of_variables():
    x, y = te.var("x"), te.var("y")
    known = Analyzer()
    with known.constraint_scope(te.all(x % 4 == 2, y % 6 == 3)):
        assert known.modular_set(x + 1) == ModularSet(4, 3) and known.modular_set(x + y) == ModularSet(2, 1)
        with known.constraint_scope(x % 3 == 1):
            assert known.modular_set(x) == ModularSet(12, 10)
        assert known.modular_set(x) == ModularSet(4, 2)
    assert known.modular_set(x) == ModularSet(1, 0)
    known.update(x, ModularSet(8, 0))
    assert known.modular_set(x + 3) == ModularSet(8, 3)
    known.update(y, ConstIntBound(0, 9))
    assert known.can_prove(y < 10) and known.modular_set(te.truncmod(y * 8 + 3, 4)) == ModularSet(4, 3)
    known.bind(y, 5)
    assert known.modular_set(x + y) == ModularSet(8, 5)
    with pytest.raises(TypeError, match="updated with a int"):
        known.update(x, 3)
