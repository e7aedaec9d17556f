"""StrengthReduction: products by powers of two are shifts."""

from __future__ import annotations

from vector_text import after, unchanged

LOAD = 'x: T.int32x8 = S.vload(T.addr(a, 0), 1, dtype="int32x8")'


def test_products_by_powers_of_two_are_shifts():
    body = LOAD + '\ny: T.int32x8 = S.vmul(x, T.splat({}, 8), dtype="int32x8")'
    assert after("StrengthReduction", body.format(8))[1] == (
        'y: T.int32x8 = S.vsl(x, T.splat(3, 8), dtype="int32x8", saturate=False)'
    )
    assert "T.splat(0, 8)" in after("StrengthReduction", body.format(1))[1]
    for other in ("6", "0", "-4", "n"):
        assert unchanged("StrengthReduction", body.format(other))
