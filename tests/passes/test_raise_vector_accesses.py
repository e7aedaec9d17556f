"""RaiseVectorAccesses: accesses to whole registers are subscripts."""

from __future__ import annotations

from vector_text import after, unchanged


def test_whole_registers_behind_a_register_pointer_are_subscripts():
    body = 'S.vstore(S.vload(T.addr(a, n), 1, dtype="int32x8"), T.addr(b, 0), 1, dtype="void")'
    assert after("RaiseVectorAccesses", body, elem="int32x8") == ["b[0] = a[n]"]
    masked = 'S.vstore(T.splat(n, 8), T.addr(b, 0), 1, dtype="void", mask=T.tail(n, 8))'
    assert unchanged("RaiseVectorAccesses", masked, elem="int32x8")
    assert unchanged("RaiseVectorAccesses", body)
