"""What the compiler refuses in a kernel's values and calls, PySim refuses with the same code."""

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import script as S
from compassc.language.parser import parse


@S.prim_func
def of_words(v: S.i32x8) -> S.i32x8:
    return v + 1


@S.prim_func
def calls_itself(n: S.i32) -> S.i32:
    if n > 100:
        return calls_itself(n - 1)
    return n


@S.prim_func
def there(n: S.i32) -> S.i32:
    return back(n)


@S.macro
def pasted_back(n, out):
    out[0] = there(n)


@S.prim_func
def back(n: S.i32) -> S.i32:
    p = S.alloc((1,), "i32")
    pasted_back(n, p)
    return p[0]


@S.prim_func
def other_vector(out: S.ptr("i32", "global"), n: S.i32):
    S.vstore(of_words(S.i16x8(3)), out)


@S.prim_func
def scalar_for_vector(out: S.ptr("i32", "global"), n: S.i32):
    S.vstore(of_words(n), out)


@S.prim_func
def byte_product(out: S.ptr("i32", "global"), n: S.i32):
    v = S.i8x32(n)
    v *= v
    S.vstore(S.cast(v, "i32"), out)


@S.prim_func
def byte_negation(out: S.ptr("i32", "global"), n: S.i32):
    S.vstore(S.cast(-S.i8x32(n), "i32"), out)


@S.prim_func
def half_quotient(out: S.ptr("i32", "global"), n: S.i32):
    v = S.fp16x16(n)
    S.vstore(S.cast(v / v, "i32"), out)


@S.prim_func
def zero_divisor(out: S.ptr("i32", "global"), n: S.i32):
    out[0] = n % 0


@S.prim_func
def recursion(out: S.ptr("i32", "global"), n: S.i32):
    out[0] = calls_itself(n)


@S.prim_func
def mutual_recursion(out: S.ptr("i32", "global"), n: S.i32):
    if n > 100:
        out[0] = there(n)


@S.prim_func
def entry_recursion(out: S.ptr("i32", "global"), n: S.i32):
    if n > 100:
        entry_recursion(out, n - 1)


CODES = {
    other_vector: "argument-type",
    scalar_for_vector: "argument-type",
    byte_product: "operator-type",
    byte_negation: "operator-type",
    half_quotient: "operator-type",
    zero_divisor: "zero-division",
    recursion: "recursion",
    mutual_recursion: "recursion",
    entry_recursion: "calls-entry",
}


@pytest.mark.parametrize("kernel", CODES, ids=lambda k: k.__name__)
def test_same_code_both_ways(kernel):
    with pytest.raises(CompassError) as compiled:
        parse(kernel, "X2_1204")
    with pytest.raises(CompassError) as run:
        kernel(np.zeros(64, "int32"), 5)
    assert compiled.value.code == run.value.code == CODES[kernel]
    assert compiled.value.span.line == run.value.span.line
