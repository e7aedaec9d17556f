"""OutlineConstants: constant tables are byte arrays of the file."""

from __future__ import annotations

from vector_text import after


def test_tables_become_bytes_with_a_typed_pointer():
    assert after("OutlineConstants", 't = T.alloc_const((2,), "int16", "01000200")\nb[0] = t[1]', elem="int16") == [
        'k_u8_t = T.alloc_const((4,), "uint8", "01000200")',
        't: T.ptr("int16", "constant") = T.addr(k_u8_t, 0, "int16")',
        "b[0] = t[1]",
    ]
