"""OutlineOperations: a function per operation, type and options that C has no function for."""

from __future__ import annotations

from vector_text import W, after, module, unchanged, verified

from compassc import pass_manager
from compassc.ir import exprs as E
from compassc.ir.visit import all_exprs

SORT = 'S.vsort({}, descending={}, dtype="int32x8")'


def test_each_form_has_one_function():
    body = W + "\n".join(
        f"{name}: T.int32x8 = {SORT.format(value, down)}"
        for name, value, down in (("p", "x", False), ("q", "y", False), ("r", "p", True))
    )
    made = pass_manager.run_pipeline(("OutlineOperations",), module(body), verified())
    assert [f.name for f in made.functions] == ["k", "k_vsort_int32x8", "k_vsort_int32x8_descending"]
    for f in made.functions:
        assert not any(type(e) is E.Call and e.op == "vsort" for e in all_exprs(f.body, E.F_CALL))
    assert made["k_vsort_int32x8"].attr("is_inline")


def test_a_call_keeps_its_operands():
    lines = after("OutlineOperations", W + 'p: T.int32x8 = S.vcumsum(x, dtype="int32x8")')
    assert "p: T.int32x8 = Module.k_vcumsum_int32x8(x)" in lines


def test_other_operations_stay():
    assert unchanged("OutlineOperations", W + 'p: T.int32x8 = S.vadd(x, y, saturate=True, dtype="int32x8")')
