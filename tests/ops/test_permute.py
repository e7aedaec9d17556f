"""Permutations and masks in PySim against Python lists."""

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.ir import exprs as E
from compassc.ir.dtypes import INT32, bool_of, dtype
from compassc.ir.printer import print_expr
from compassc.ops import get
from compassc.pysim.impl import pysim_impl
from compassc.pysim.values import PyVar, pyvar

X = list(range(8))
Y = list(range(100, 108))
HALVES = {
    "low": lambda v: v[: len(v) // 2],
    "high": lambda v: v[len(v) // 2 :],
    "even": lambda v: v[::2],
    "odd": lambda v: v[1::2],
    "all": lambda v: v,
}


def py(name, *args, **kwargs):
    return pysim_impl(get(name))(*args, **kwargs)


def vec(values, kind="int32"):
    return pyvar(np.array(values, kind))


def mask(*bits):
    return PyVar(np.array(bits, bool), bool_of(len(bits)))


@pytest.mark.parametrize("part", HALVES)
def test_concat_and_zip(part):
    select = HALVES[part]
    assert py("vconcat", (vec(X), vec(Y)), part).value.tolist() == select(X) + select(Y)
    pairs = [v for pair in zip(select(X), select(Y)) for v in pair]
    assert py("vzip", vec(X), vec(Y), part).value.tolist() == pairs
    assert py("vzip", vec(X), 5, part).value.tolist() == [v for x in select(X) for v in (x, 5)]


def test_moves():
    assert py("vrevs", vec(X)).value.tolist() == X[::-1]
    assert py("vshfl", vec(X), 3).value.tolist() == X[3:] + X[:3]
    assert py("vsldl", vec(X), vec(Y), 3).value.tolist() == (X + Y)[3:11]
    assert py("vreplic", vec(X), 5).value.tolist() == [5] * 8
    parts = py("vsplit", vec(X + Y))
    assert [p.value.tolist() for p in parts] == [X, Y]
    assert py("vrevs", mask(1, 0, 0, 0, 0, 0, 0, 1)).dtype == "boolx8"


def test_choices():
    m = [True, False, True, True, False, False, False, True]
    assert py("vsel", vec(X), vec(Y), mask=m).value.tolist() == [x if on else y for x, y, on in zip(X, Y, m)]
    assert py("vsel", vec(X), 7, mask="3T").value.tolist() == [0, 1, 2, 7, 7, 7, 7, 7]
    assert py("vcompt", vec(X), m).value.tolist() == [0, 2, 3, 7, 0, 0, 0, 0]
    assert py("vcompc", vec(X), vec(Y), m).value.tolist() == [0, 2, 3, 7, 100, 101, 102, 103]
    table = (vec(X), vec(Y), 9)
    assert py("vtbl", table, vec([0, 8, 23, 24, -1, 7, 15, 16])).value.tolist() == [0, 100, 9, 0, 0, 7, 107, 9]


def test_broadcasts():
    assert py("vbcast", PyVar(np.int16(5), dtype("int16"))).dtype == "int16x16"
    assert py("vbcast", True, lanes=8).value.tolist() == [True] * 8
    for args, message in (((True,), "needs lanes"), ((True, "8T", 8), "no mask"), ((vec(X),), "scalar is expected")):
        with pytest.raises(CompassError, match=message):
            py("vbcast", *args)


def test_masks():
    assert py("tail_mask", 3, 8).value.tolist() == [True] * 3 + [False] * 5
    assert py("const_mask", "1T1F").value.tolist() == [True, False, False, False]
    assert py("const_mask", "8T").dtype == "boolx8"
    assert py("tail_mask", 9, 8).value.all() and not py("tail_mask", -9, 8).value.any()
    n = E.Var("n", INT32)
    limited = E.Binary("max", E.Binary("min", n, E.IntImm(INT32, 8)), E.IntImm(INT32, 0))
    assert print_expr(get("tail_mask").build(n, 8).count) == print_expr(limited)
    assert get("tail_mask").build(3, 8).bits == 7
    assert get("const_mask").build("2TF").bits == 5


def test_sharing_arrays_is_not_visible():
    x = vec(X)
    y = py("vsel", x, x)
    z = py("vsplit", vec(X + Y))[0]
    y[0] = 50
    z[1] = 60
    assert x.value.tolist() == X
    assert (y[0], z[1]) == (50, 60)


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("vconcat", ([vec(X)],), "at least 2"),
        ("vconcat", ((vec(X), vec(Y, "int16")),), "int16x8"),
        ("vconcat", ((vec(X), vec(Y)), "top"), "part must be one of"),
        ("vconcat", ((vec(X[:5]), vec(Y[:5])),), "whole registers"),
        ("vsplit", (vec(X),), "redundant"),
        ("vrevs", (vec(X[:5]),), "whole registers"),
        ("vsldl", (vec(X), vec(Y), 8), "from 0 to 7"),
        ("vreplic", (vec(X), 8), "from 0 to 7"),
        ("vshfl", (vec(X), -1), "from 0 to 7"),
        ("vtbl", ((vec(X),), vec(X)), "2 to 4"),
        ("vtbl", ((vec(X), vec(Y)), vec(X, "int16")), "widths differ"),
        ("vsel", (vec(X), vec(Y, "uint32")), "signed and unsigned"),
        ("vsel", (1, 2), "scalars"),
        ("vcompt", (vec(X * 2), None), "one register"),
    ],
)
def test_errors(name, args, message):
    with pytest.raises(CompassError, match=message):
        py(name, *args)


def test_ir():
    x, y = E.Var("x", dtype("int32x8")), E.Var("y", dtype("int32x8"))
    wide = E.Var("w", dtype("int32x16"))
    assert get("vconcat").build((x, y), "low").args == (x, y)
    assert [c.attr("index") for c in get("vsplit").build(wide)] == [0, 1]
    assert get("vshfl").build(wide, 3).dtype is wide.dtype
    assert get("vtbl").build((x, y), x).args == (x, y, x)
    assert isinstance(get("vbcast").build(E.Var("s", INT32)), E.Broadcast)
    assert get("vsel").build(x, 3, "3T").mask.bits == 7
