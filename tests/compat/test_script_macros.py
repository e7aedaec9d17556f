"""Macros of the framework's script: a call stands for the statements of a function."""

from __future__ import annotations

import pytest

from compassc.ir import structural_equal

pytestmark = pytest.mark.usefixtures("names")

FUNCTION = """
{before}

@T.prim_func
def f(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    for size in range(8):
        for j in range(8):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [size, j])
                {inside}
"""


def read(inside: str, before: str = "size = 8"):
    import tvm

    return tvm.script.from_source(FUNCTION.format(inside=inside, before=before))


def macro(head: str, body: str, options: str = "") -> str:
    return f"size = 8\n\n@T.macro{options}\ndef {head}:\n    {body}"


@pytest.mark.parametrize(
    ("defined", "called", "written"),
    [
        (macro("put(X, i)", "X[i] = 3"), "put(B, vi * 8 + vj)", "B[vi * 8 + vj] = 3"),
        (macro("put(X, i=2)", "X[i] = A"), "put(B)", None),
        (macro("put(X, *at, of, **more)", "X[at[0] * 8 + at[1]] = of[more['n']]"), "put(B, vi, vj, of=A, n=5)", "B[vi * 8 + vj] = A[5]"),
        (macro("put(X)", "X[size] = 1"), "put(B)", "B[8] = 1"),
        (macro("put(X)", "X[size] = 1", "(hygienic=True)"), "put(B)", "B[8] = 1"),
        (macro("put(X)", "X[size] = 1", "(hygienic=False)"), "put(B)", "B[size] = 1"),
    ],
)  # fmt: skip
def test_calls_of_macros_are_their_statements(defined, called, written):
    if written is None:
        with pytest.raises(Exception, match="name 'A' is not defined"):
            read(called, defined)
    else:
        assert structural_equal(read(called, defined), read(written))


def test_names_of_macros_are_their_own():
    body = "for vi in range(2):\n        X[vi] = vi"
    made = read("put(B); B[vi] = 1", macro("put(X)", body))
    loop = "for k in range(2):\n                    B[k] = k\n                B[vi] = 1"
    assert structural_equal(made, read(loop))


@pytest.mark.parametrize(
    ("defined", "called", "message"),
    [
        (macro("put(X, i)", "X[i] = 3"), "put(B)", "missing a required argument: 'i'"),
        (macro("put(X)", "put(X)", "(hygienic=False)"), "put(B)", "the macro 'put' expands itself"),
        (macro("put(X, i)", "X[i] = 3"), "put(*[B, vi])", "arguments of a macro are written one by one"),
    ],
)
def test_what_is_no_expansion_is_refused(defined, called, message):
    import tvm

    with pytest.raises(tvm.error.DiagnosticError, match=message):
        read(called, defined)
