"""Tensor expressions: types of operators, forms of `compute`, reductions, and what is refused with which words."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import te

ROWS = [
    ("int8", "int8", "int8"),
    ("int8", "int16", "int16"),
    ("int32", "uint32", "uint32"),
    ("uint8", "int16", "int16"),
    ("int32", "float16", "float16"),
    ("float16", "float32", "float32"),
    ("bool", "int8", "int8"),
]


@pytest.mark.parametrize(("a", "b", "wanted"), ROWS)
def test_operators_match_types(a, b, wanted):
    x, y = te.var("x", a), te.var("y", b)
    assert (x + y).dtype == (y + x).dtype == wanted
    assert (x < y).dtype == "bool" if (a, b) != ("int32", "uint32") else True


def test_numbers_do_not_adopt_the_other_type():
    x, h = te.var("x", "int8"), te.var("h", "float16")
    assert (x + 1).dtype == "int32" and (h * 2.0).dtype == "float32"
    assert (x & 1).dtype == (x << 1).dtype == "int8"
    assert (h * te.const(2.0, "float16")).dtype == "float16"


def test_constants_fold_as_the_type_computes():
    assert (te.const(100, "int8") + te.const(100, "int8")).value == -56
    assert (te.const(-7) // 2).value == -4 and (te.const(-7) % 2).value == 1
    assert te.truncdiv(te.const(-7), 2).value == -3 and te.truncmod(te.const(-7), 2).value == -1
    x = te.var("x")
    assert (x + 0).same_as(x) and (x * 1).same_as(x) and (x * 0).value == 0
    f = te.var("f", "float32")
    assert not (f + 0.0).same_as(f)  # -0.0 + 0.0 is 0.0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x, f: x / x, "ambiguous"),
        (lambda x, f: f // f, "whole numbers"),
        (lambda x, f: x // 0, "division by zero"),
        (lambda x, f: x << 32, "shifted by 32"),
        (lambda x, f: bool(x + 1), "no truth value"),
        (lambda x, f: x < te.var("u", "uint32"), "cannot compare"),
        (lambda x, f: te.var("b", "bfloat16") + te.var("c", "bfloat16"), "bfloat16"),
        (lambda x, f: te.const(300, "int8"), "does not fit"),
        (lambda x, f: te.exp(x), "float16 or float32"),
        (lambda x, f: te.if_then_else(x, 1, 2), "is a bool"),
        (lambda x, f: x + "1", "got str"),
        (lambda x, f: te.thread_axis(tag="here"), "no thread"),
        (lambda x, f: te.reduce_axis(5), "needs a range"),
        (lambda x, f: te.min_value("bool"), "no smallest value"),
        (lambda x, f: te.extern((4,), [x], None), "inputs are tensors"),
    ],
)
def test_wrong_expressions_name_the_line(wrong, words):
    with pytest.raises((te.ExpressionError, te.ExpressionTypeError), match=words) as caught:
        wrong(te.var("x"), te.var("f", "float32"))
    assert caught.value.span is not None and caught.value.span.file == __file__


def test_equality_is_identity_until_it_is_used():
    x, y = te.var("x"), te.var("y")
    same = x
    assert bool(x == same) and bool(x != y) and not bool(x == y)
    assert te.if_then_else(x == y, 1, 2).dtype == "int32"


def test_axes_take_the_names_of_the_parameters():
    def names(*axes):
        return [axis.name for axis in axes[0].op.axis]

    assert names(te.compute((2, 3), lambda row, col: row + col)) == ["row", "col"]
    assert names(te.compute((2, 3), lambda *i: i[0] + i[1])) == ["i0", "i1"]
    assert names(te.compute((2, 3, 4), lambda b, *i: b + i[0])) == ["b", "i0", "i1"]
    assert names(te.compute((2, 3), lambda *i: i[0], varargs_names=["y", "x"])) == ["y", "x"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda a, k: te.compute((4, 4), lambda i: a[i, 0]), "takes 1 axes, the shape has 2"),
        (lambda a, k: te.compute((4,), lambda i, j: a[i, j]), "takes 2 axes, the shape has 1"),
        (lambda a, k: te.compute((4,), lambda i: a[i]), "has 2 dimensions, 1 indices"),
        (lambda a, k: te.compute((4,), lambda i: a[i, 0, 0]), "has 2 dimensions, 3 indices"),
        (lambda a, k: te.compute((4,), lambda i: te.sum(a[i, k], axis=k) + 1), "must be the whole body"),
        (lambda a, k: te.compute((4,), lambda i: (te.sum(a[i, k], axis=k), a[i, 0])), "or none"),
        (lambda a, k: te.compute((4,), lambda i: te.sum(a[i, k], axis=k, init=(1, 2))), "2 start values"),
        (lambda a, k: te.compute((4,), lambda i, n=1: a[i, n]), "without defaults"),
        (lambda a, k: te.compute((-4,), lambda i: a[i, 0]), "no number of elements"),
        (lambda a, k: te.comm_reducer(lambda x: x, lambda t: 0), "expected two"),
    ],
)
def test_wrong_operations(wrong, words):
    a, k = te.placeholder((4, 4), "int32", name="a"), te.reduce_axis((0, 4), "k")
    with pytest.raises((te.ExpressionError, te.ExpressionTypeError), match=words):
        wrong(a, k)


def test_slices_and_tensors():
    a = te.placeholder((2, 3), "int8", name="a")
    assert repr(a[1][2]) == repr(a[1, 2]) == repr(a(1, 2)) == "a[1, 2]"
    assert a.op.output(0) == a and len({a, a.op.output(0)}) == 1 and a != te.placeholder((2, 3), "int8", name="a")
    both = te.compute((2,), lambda i: (a[i, 0] + 1, a[i, 1] * 2), name="both")
    assert [t.name for t in both] == ["both.v0", "both.v1"] and both[0].op.input_tensors == [a]


def test_tags():
    with te.tag_scope("mine"):
        assert te.compute((1,), lambda i: i).op.tag == "mine"
        with pytest.raises(te.ExpressionError, match="do not nest"), te.tag_scope("other"):
            pass
    assert te.compute((1,), lambda i: i, tag="own").op.tag == "own"


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float32", "float16"])
def test_limits_are_numpys(dtype):
    info = np.finfo(dtype) if "float" in dtype else np.iinfo(dtype)
    assert float(te.max_value(dtype).value) == float(info.max)
    assert float(te.min_value(dtype).value) == float(info.min)


def test_operators_on_tensors_are_element_by_element():
    a, b = te.placeholder((2, 3), name="a"), te.placeholder((3,), name="b")
    out = (2 - a * b) / (b + 1.0) - -a
    x, y = np.arange(6, dtype="f4").reshape(2, 3), np.arange(3, dtype="f4")
    found = np.zeros((2, 3), "f4")
    te.build(te.create_schedule(out), [a, b, out], "llvm")(x, y, found)
    np.testing.assert_allclose(found, (2 - x * y) / (y + 1) + x)
    n = te.placeholder((3,), "int32", name="n")
    assert str(((7 // n) % 2).dtype) == "int32"
    with pytest.raises(TypeError):
        a + "b"
    with pytest.raises(te.ExpressionTypeError, match="got Tensor"):
        te.compute((2, 3), lambda i, j: a + b)
