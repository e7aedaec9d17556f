"""What `tvm.arith` says of whole numbers."""

from __future__ import annotations

import pytest

from compassc import te
from compassc.te.analyzer import Analyzer, ConstIntBound, detect_linear_equation


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
    assert detect_linear_equation(i * n, [i]) == [] and detect_linear_equation(i // 2, [i]) == []
