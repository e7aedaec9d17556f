"""CanonicalizeOperandOrder: a constant operand of a commutative operation stands second."""

from __future__ import annotations

from vector_text import after, unchanged

LOAD = 'x: T.int32x8 = S.vload(T.addr(a, 0), 1, dtype="int32x8")'


def test_constants_move_right_only_in_commutative_operations():
    body = LOAD + '\ny: T.int32x8 = S.{}(T.splat(3, 8), x, dtype="int32x8")'
    assert after("CanonicalizeOperandOrder", body.format("vadd"))[1].startswith(
        "y: T.int32x8 = S.vadd(x, T.splat(3, 8)"
    )
    assert unchanged("CanonicalizeOperandOrder", body.format("vsub"))
    assert unchanged("CanonicalizeOperandOrder", LOAD + '\ny: T.int32x8 = S.vadd(T.splat(n, 8), x, dtype="int32x8")')


def test_the_mask_and_its_source_stay():
    text = 'y: T.int32x8 = S.vadd({}, dtype="int32x8", mask=T.tail(n, 8), r=x)'
    before, swapped = (text.format(", ".join(pair)) for pair in (("T.splat(3, 8)", "x"), ("x", "T.splat(3, 8)")))
    assert after("CanonicalizeOperandOrder", f"{LOAD}\n{before}")[1] == swapped
    assert unchanged("CanonicalizeOperandOrder", f"{LOAD}\n{swapped}")
