"""Each rule of well-formedness, with the statement that breaks it."""

from __future__ import annotations

import pytest
from module_text import module_text

from compassc.ir import exprs as E
from compassc.ir import parse_module
from compassc.ir import stmts as S
from compassc.ir.dtypes import BOOL, INT32, VOID, dtype, pointer_type
from compassc.ir.verify import VerifyError, verify

P = 'p: T.ptr("int32", "global"), f: T.float32, n: T.int32, v: T.int32x8'
N, V, OTHER = E.Var("n", INT32), E.Var("v", dtype("int32x8")), E.Var("other", INT32)
DATA = E.Var("p", pointer_type(INT32, "global"))
ONE, TRUE = E.IntImm(INT32, 1), E.IntImm(BOOL, 1)
FLOAT = E.FloatImm(dtype("float32"), 1)
FLAT = E.Buffer(DATA, INT32)
ALL = E.ConstMask(255, 8)

WRONG = {
    "other is used but not defined": S.Evaluate(OTHER),
    "n is defined twice": S.Let(N, ONE),
    "type int32, its value float32": S.Let(OTHER, FLOAT),
    "assigned but not defined": S.Assign(OTHER, ONE),
    "type int32, its new value float32": S.Assign(N, FLOAT),
    "n is not a vector": S.SetElement(N, ONE, ONE),
    "an element of v is int32, got float32": S.SetElement(V, ONE, FLOAT),
    "the buffer holds int32, the value is float32": S.BufferStore(FLAT, (ONE,), FLOAT, None),
    "1 dimensions, got 2 indices": S.BufferStore(FLAT, (ONE, ONE), ONE, None),
    "index .* is no integer": S.BufferStore(FLAT, (FLOAT,), ONE, None),
    "8 lanes are accessed under a mask of type boolx4": S.BufferStore(FLAT, (E.Ramp(N, ONE, 8),), V, E.ConstMask(1, 4)),
    "the condition has type int32": S.IfThenElse(N, (), ()),
    "a bound float32": S.For(OTHER, "serial", ONE, FLOAT, ONE, ()),
    "unknown loop kind": S.For(OTHER, "spiral", ONE, N, ONE, ()),
    "break outside of a loop": S.IfThenElse(TRUE, (S.Break(),), ()),
    "continue outside of a loop": S.IfThenElse(TRUE, (S.Continue(),), ()),
    "the function returns void": S.Return(ONE),
    "have types int32 and float32": S.Evaluate(E.Binary("add", N, FLOAT)),
    "are not bool": S.Evaluate(E.Binary("and", N, N)),
    "are not integers": S.Evaluate(E.Binary("shl", FLOAT, FLOAT)),
    "no constant shape": S.Alloc(E.Buffer(E.Var("t", pointer_type(INT32, "lsram")), INT32, (N,))),
    "has a mask of all lanes": S.Evaluate(E.Call("vadd", (V, V), V.dtype, ALL)),
    "boolx4 masks none": S.Evaluate(E.Call("vadd", (V, V), V.dtype, E.ConstMask(1, 4))),
    "its inactive lanes int32": S.Evaluate(E.Call("vadd", (V, V), V.dtype, E.ConstMask(1, 8), N)),
    "a function that the module does not have": S.Evaluate(E.FuncCall("g", (), VOID)),
    "the sides of": S.Evaluate(E.Select(TRUE, N, FLOAT)),
    "has 1 elements": S.Evaluate(E.VectorLiteral(V.dtype, (ONE,))),
}


@pytest.mark.parametrize("message", sorted(WRONG))
def test_rules(message):
    f = S.PrimFunc("k", (DATA, N, V), (WRONG[message],), VOID)
    with pytest.raises(VerifyError, match=f"function k: .*{message}.*\n  in: "):
        verify(S.IRModule((f,), "k", "X2_1204"))


def test_scopes_end_with_their_block():
    inner = S.IfThenElse(TRUE, (S.Let(OTHER, ONE), S.Evaluate(OTHER)), ())
    f = S.PrimFunc("k", (), (inner, S.Evaluate(OTHER)), VOID)
    with pytest.raises(VerifyError, match="other is used but not defined here"):
        verify(S.IRModule((f,), "k", "X2_1204"))


def test_a_good_module_passes():
    body = """
        b = T.match_buffer(p, (n, 4), "int32")
        for i in T.serial(0, n, 1):
            x: T.int32 = b[i, 2]
            while (x < n):
                x = (x + 1)
                if (x == 3):
                    break
        T.store(p, T.ramp(n, 1, 8), value=v, mask=T.tail(n, 8))
    """
    verify(parse_module(module_text(body, P)))
