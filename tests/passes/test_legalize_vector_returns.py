"""LegalizeVectorReturns: vectors that are no register are returned through memory."""

from __future__ import annotations

from vector_text import after, unchanged

SUB = """
    @T.func
    def f(x: T.float32x12) -> T.float32x12:
        return (x + x)
"""


def test_odd_vectors_are_returned_through_memory():
    body = 'y: T.float32x12 = Module.f(T.splat(T.float32(1.0), 12))\nS.vstore(y, T.addr(b, 0), 1, dtype="void")'
    lines = after("LegalizeVectorReturns", body, elem="float32", more=SUB)
    assert lines[:3] == [
        "tmp_var0: T.float32x12 = T.splat(T.float32(0.0), 12)",
        'Module.f(T.splat(T.float32(1.0), 12), T.addr(T.address_of(tmp_var0), 0, "float32"))',
        "y: T.float32x12 = tmp_var0",
    ]


def test_a_call_in_a_loop_condition_is_evaluated_each_time():
    body = "while (T.element(Module.f(T.splat(T.float32(1.0), 12)), 0) < T.float32(9.0)):\n    b[0] = T.float32(1.0)"
    lines = after("LegalizeVectorReturns", body, elem="float32", more=SUB)
    assert lines[0] == "while True:" and "if (not (T.element(tmp_var0, 0) < T.float32(9.0))):" in lines


def test_native_returns_stay():
    native = SUB.replace("x12", "x8")
    assert unchanged("LegalizeVectorReturns", "b[0] = T.float32(1.0)", elem="float32", more=native)
