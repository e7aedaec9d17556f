"""The IR's text form: what is printed reads back as an equal module, and mistakes name their line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError, Span
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import dtype, pointer_type
from compassc.ir.equal import structural_equal
from compassc.ir.printer import mask_text, print_module
from compassc.ir.text import parse_module

I32, F16, BOOL, VOID = dtype("int32"), dtype("float16"), dtype("bool"), dtype("void")
A = E.Var("a", pointer_type(I32, "global"))
N = E.Var("n", I32)
V = E.Var("v", dtype("int32x8"))
M = E.Var("m", dtype("boolx8"))


OPERATORS = st.sampled_from(sorted(E.ARITHMETIC))
SCALARS = st.recursive(
    st.one_of(
        st.integers(-(2**31), 2**31 - 1).map(lambda v: E.IntImm(I32, v)),
        st.just(N),
        st.just(E.BufferLoad(E.Buffer(A, I32), (N,))),
    ),
    lambda inner: st.one_of(
        st.builds(E.Binary, OPERATORS, inner, inner),
        st.builds(lambda x: E.Unary("bitnot", x), inner),
        st.builds(lambda a, b, c: E.Select(E.Binary("lt", a, b), b, c), inner, inner, inner),
        st.builds(lambda x: E.Cast(I32, E.Cast(F16, x)), inner),
        st.builds(lambda x: E.GetElement(V, x), inner),
    ),
    max_leaves=8,
)
MASKS = st.one_of(
    st.none(),
    st.just(M),
    st.integers(0, 255).map(lambda b: E.ConstMask(b, 8)),
    SCALARS.map(lambda n: E.TailMask(n, 8)),
)
VECTORS = st.recursive(
    st.one_of(st.just(V), SCALARS.map(lambda x: E.Broadcast(x, 8))),
    lambda inner: st.builds(
        lambda x, y, m, r, s: E.Call("vadd", (x, y), V.dtype, m, r, (("saturate", s),)),
        inner,
        inner,
        MASKS,
        st.one_of(st.none(), inner),
        st.booleans(),
    ),
    max_leaves=5,
)


def _statement(kind, x, v, span):
    """A statement of a kind around a scalar and a vector expression."""
    i = E.Var("i", I32)
    pointer = E.Pointer(I32, A, x)
    table = {
        "assign": (S.Assign, V, v),
        "store": (S.BufferStore, E.Buffer(A, I32), (x,), x, None),
        "if": (S.IfThenElse, E.Binary("ne", x, N), (S.Assign(V, v),), (S.Continue(),)),
        "for": (S.For, i, "serial", x, N, E.IntImm(I32, 1), (S.Evaluate(E.Binary("add", i, x)),)),
        "while": (S.While, E.Binary("lt", N, x), (S.SetElement(V, x, x),)),
        "eval": (S.Evaluate, E.Call("vstore", (v, pointer, x), VOID, M)),
        "element": (S.SetElement, V, x, x),
    }
    make, *fields = table[kind]
    return make(*fields, span=span)


KINDS = ("assign", "store", "if", "for", "while", "eval", "element")


@st.composite
def modules(draw):
    body = [S.Let(V, E.Broadcast(E.IntImm(I32, 0), 8), span=Span("k.py", 3, 5, 3, 9)), S.Let(M, E.ConstMask(5, 8))]
    for _ in range(draw(st.integers(0, 4))):
        line = draw(st.one_of(st.none(), st.integers(1, 99)))
        span = None if line is None else Span("k.py", line, 1, line, 9)
        body.append(_statement(draw(st.sampled_from(KINDS)), draw(SCALARS), draw(VECTORS), span))
    f = S.PrimFunc("k", (A, N), tuple(body), VOID, (("is_inline", True),), Span("k.py", 1, 1, 9, 1))
    return S.IRModule((f,), "k", "X2_1204")


@settings(max_examples=150, deadline=None)
@given(modules())
def test_round_trip(module):
    text = print_module(module)
    back = parse_module(text)
    assert structural_equal(module, back)
    assert print_module(back) == text


@given(st.integers(0, 2**16 - 1))
def test_mask_text_names_every_lane(bits):
    import re

    flat = "".join(c * int(n) for n, c in re.findall(r"(\d+)([TF])", mask_text(bits, 16)))
    assert flat == "".join("T" if bits >> i & 1 else "F" for i in range(16))


@pytest.mark.parametrize(
    "line, fragment",
    [
        ("        x: T.int33 = 1", "int33"),
        ("        x = y", "undefined name"),
        ("        import os", "Import"),
        ("        T.nothing(1)", "nothing"),
        ("        x: T.int32 = Module.g(1)", "no function 'g'"),
        ("        x: T.int32 = (1", "not IR text"),
    ],
)
def test_mistakes_name_the_line(line, fragment):
    text = '@I.module(target="X2_1204", entry="k")\nclass Module:\n    @T.func\n    def k() -> T.void:\n' + line + "\n"
    with pytest.raises(CompassError) as caught:
        parse_module(text, "k.ir.txt")
    assert fragment in caught.value.message
    assert caught.value.span is not None and caught.value.span.line == 5
