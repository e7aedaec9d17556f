"""Mistakes that only the C printer finds are reported together, with the lines of the kernel."""

import pytest

from compass_core.errors import ErrorGroup, Span
from compassc import codegen
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, VOID, pointer_type
from compassc.pass_manager import PassOptions


def test_each_bad_statement_is_named():
    data = E.Var("a", pointer_type(INT32, "global"))
    buffer, mask = E.Buffer(data, INT32), E.TailMask(E.IntImm(INT32, 1), 8)
    stores = tuple(
        S.BufferStore(buffer, (E.IntImm(INT32, line),), E.IntImm(INT32, 0), mask, span=Span("k.py", line))
        for line in (3, 7)
    )
    module = S.IRModule((S.PrimFunc("k", (data,), stores, VOID),), "k", "X2_1204")
    with pytest.raises(ErrorGroup) as caught:
        codegen.generate(module, PassOptions(passes=()))
    assert [e.span.line for e in caught.value.errors] == [3, 7]
    assert all(e.code == "codegen" and e.help for e in caught.value.errors)
