"""LegalizeVectorPointers: pointers to vectors that are no register count elements."""

from __future__ import annotations

from vector_text import after, unchanged


def test_pointers_to_odd_vectors_count_elements():
    assert after("LegalizeVectorPointers", 'S.vstore(T.splat(n, 12), T.addr(a, n, "int32x12"), 1, dtype="void")') == [
        'S.vstore(T.splat(n, 12), T.addr(a, (n * 12)), 1, dtype="void")'
    ]
    assert unchanged("LegalizeVectorPointers", 'S.vstore(T.splat(n, 8), T.addr(a, n, "int32x8"), 1, dtype="void")')
