"""LowerTag: hints become instructions, or are dropped with a warning."""

from __future__ import annotations

import warnings

from vector_text import after, c_of

HALF = 'x: T.float16x16 = S.vload(T.addr(a, 0), 1, dtype="float16x16")\n'


CAST = 'S.cast(x, dtype="float32x16", part="all", saturate=None)'


TAGGED = f'y: T.float32x16 = S.tag({CAST}, dtype="float32x16", tag="no_zip")'


def test_no_zip_selects_even_and_odd_on_x2():
    lines = c_of(HALF + TAGGED + '\nS.vstore(y, T.addr(b, 0), 1, dtype="void")', elem="float16", other="float32")
    assert lines[2:4] == ["y[0] = __vcvtue_tfp32(x);", "y[1] = __vcvtuo_tfp32(x);"]


def test_no_zip_is_dropped_with_a_warning_elsewhere():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        lines = after("LowerTag", HALF + TAGGED, elem="float16", target="X3P_1304")
    assert "no_zip" in str(found[0].message) and "S.tag" not in lines[1]
