"""Conversions in PySim against Python arithmetic, and their IR."""

import itertools
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.ir import exprs as E
from compassc.ir.dtypes import INT32, dtype
from compassc.ops import get
from compassc.ops.convert import check_pair
from compassc.ops.numeric import np_dtype
from compassc.pysim.impl import pysim_impl
from compassc.pysim.values import PyVar, pyvar
from tests.choosing import some

INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]
FLOATS = ["float16", "bfloat16", "float32"]
rng = np.random.default_rng(2)


def py(name, *args, **kwargs):
    return pysim_impl(get(name))(*args, **kwargs)


def sample(elem, lanes):
    """Values of an element type: its corners, and random bits."""
    t = dtype(elem)
    raw = rng.integers(0, 256, lanes * t.bytes, dtype=np.uint8).view(np_dtype(t))
    if t.is_integer:
        corners = [*t.range(), 0, 1, t.range()[1] // 2]
    else:
        corners = [0.0, -0.0, 1.5, -3.7, 300.7, 3e9, -3e9, math.inf, -math.inf, math.nan]
    with np.errstate(all="ignore"):
        raw[: len(corners)] = np.array(corners[:lanes]).astype(np_dtype(t))
    return PyVar(raw, t.with_lanes(lanes))


def wrap(v, t):
    v &= (1 << t.bits) - 1
    return v - (1 << t.bits) if t.is_int and v >> (t.bits - 1) else v


def reference(v, source, to, saturate):
    if to.is_integer:
        if source.is_floating:
            f = float(v)
            f = 0.0 if math.isnan(f) else max(-(2.0**31), min(2.0**31 - 1, f))
            return wrap(math.trunc(f), to)
        return max(to.range()[0], min(to.range()[1], int(v))) if saturate else wrap(int(v), to)
    return np_dtype(to).type(np.float32(v) if source.is_floating or source.bits < 32 else float(v))


def allowed(a, b):
    try:
        check_pair(dtype(a), dtype(b))
    except CompassError:
        return False
    return True


def same(a, b):
    return (math.isnan(float(a)) and math.isnan(float(b))) or (a == b and math.copysign(1, a) == math.copysign(1, b))


@pytest.mark.parametrize(("a", "b"), list(itertools.product(INTS + FLOATS, repeat=2)))
def test_vector_conversions(a, b):
    x = sample(a, 64)
    if not allowed(a, b):
        with pytest.raises(CompassError):
            py("cast", x, b)
        return
    to = dtype(b)
    modes = [None, True] if x.dtype.is_integer and to.is_integer else [None]
    for saturate in modes:
        with np.errstate(all="ignore"):
            out = py("cast", x, b, saturate=saturate)
            expected = [reference(v, dtype(a), to, saturate) for v in x.value]
        assert out.dtype is to.with_lanes(64)
        assert out.value.dtype == np_dtype(to)
        assert all(same(*pair) for pair in zip(out.value, expected))


def test_matrix_of_allowed_conversions():
    refused = {(a, b) for a in INTS + FLOATS for b in INTS + FLOATS if not allowed(a, b)}
    small = ["int8", "uint8", "int16", "uint16"]
    halves = ["float16", "bfloat16"]
    expected = {(a, b) for a in small for b in halves} | {(b, a) for a in small for b in halves}
    expected |= {("uint32", f) for f in FLOATS} | {("float32", "uint32"), ("bfloat16", "uint32")}
    assert refused == expected


def test_int32_to_bfloat16_rounds_once():
    exact = [0x1010001, 0x1008001, -0x1018001, 2**31 - 1]
    out = py("cast", pyvar(np.array(exact * 2, "int32")), "bf16")
    for v, got in some(zip(exact, out.value)):
        ulp = Fraction(2) ** (abs(v).bit_length() - 8)
        q = Fraction(v) / ulp
        low = math.floor(q)
        nearest = low if q - low < Fraction(1, 2) or (q - low == Fraction(1, 2) and low % 2 == 0) else low + 1
        assert Fraction(float(got)) == nearest * ulp


@pytest.mark.parametrize(
    ("part", "lanes"),
    {"low": range(8), "high": range(8, 16), "even": range(0, 16, 2), "odd": range(1, 16, 2)}.items(),
)
def test_halves(part, lanes):
    x = sample("int16", 16)
    assert py("cast", x, "i32", part=part).value.tolist() == [int(x.value[i]) for i in lanes]


@pytest.mark.parametrize(("part", "start"), [("ll", 0), ("lh", 8), ("hl", 16), ("hh", 24)])
def test_quarters(part, start):
    x = sample("uint8", 32)
    assert py("cast", x, "fp32x8", part=part).value.tolist() == x.value[start : start + 8].tolist()


def test_merge_and_upper_lanes():
    xs = [pyvar(np.arange(8 * k, 8 * k + 8, dtype="int32")) for k in range(4)]
    assert py("cast", xs, "i8").value.tolist() == list(range(32))
    assert py("cast", xs[:2], "i16").value.tolist() == list(range(16))
    assert py("cast", xs[:2], "i8x32").value.tolist() == list(range(16)) * 2
    assert py("cast", xs[:3], "i8x32").value.tolist() == [*range(24), *range(16, 24)]
    assert py("cast", xs[1], "i8x32").value.tolist() == [*range(8, 16), *[0] * 24]
    assert py("cast", xs[1], "i16x16").value.tolist() == [*range(8, 16)] * 2


def test_scalars_and_literals():
    assert py("cast", 300, "i8").value == 44
    assert py("cast", -1, "u8x32").value.tolist() == [255] * 32
    assert py("cast", 3.99, "i32").value == 3
    assert py("cast", "inf", "fp16").value == np.inf
    assert py("cast", 5, "bool") is True
    assert py("cast", PyVar(np.float32(3e9), dtype("float32")), "u32").value == 3000000000
    assert py("cast", [1, 2.5, 3], "fp32").value.tolist() == [1, 2.5, 3]
    assert float(py("cast", 0.1, "bf16").value) == float(ml_dtypes.bfloat16(0.1))


ERRORS = [
    (("x16", "i32", "middle"), "part must be one of"),
    (("x16", "i32", "low", 3), "saturate must be"),
    (("x16", "i32x4"), "lanes differ"),
    (("x16", "i32x16", "low"), "gives 8 lanes"),
    (("x16", "i32", "ll"), "does not suit"),
    (("x24", "i32", "low"), "one register"),
    (("mask", "i32"), "mask"),
    ((5, "i8", "all", True), "saturate cannot be set"),
    (([1], "i8"), "at least 2 items"),
    (([1, 2], "i8x3"), "needs 3 items, got 2"),
    (("f32", "i32", "all", False), "always saturates"),
    (("f32", "i8", "all", True), "saturate cannot be given"),
    (("text", "i8"), "must be one of inf"),
    (("x16", "int7"), "not a data type"),
]
NAMED = {"x16": "int16x16", "x24": "int16x24", "mask": "boolx16", "f32": "float32x8"}


@pytest.mark.parametrize(("args", "message"), ERRORS)
def test_errors_are_those_of_the_compiler(args, message):
    first = NAMED.get(args[0]) if isinstance(args[0], str) else None
    ir = (E.Var("x", dtype(first)), *args[1:]) if first else args
    sim = (PyVar(np.zeros(dtype(first).lanes, np_dtype(dtype(first))), dtype(first)), *args[1:]) if first else args
    for run in (lambda: get("cast").build(*ir), lambda: py("cast", *sim)):
        with pytest.raises(CompassError, match=message):
            run()


def test_ir():
    v, s = E.Var("v", dtype("int32x8")), E.Var("s", INT32)
    call = get("cast").build(v, "fp32")
    assert (call.op, call.args, call.dtype, call.attr("part")) == ("cast", (v,), "float32x8", "all")
    assert get("cast").build(v, "i32x8") is v
    assert isinstance(get("cast").build(s, "i8x32"), E.Broadcast)
    assert get("cast").build(3.14, "i32").value == 3
    assert get("cast").build([1, s], "i32x2").elems[1] is s
    assert get("u").build(v).dtype == "uint32x8"
    assert get("reinterpret").build(v, "u8x32").dtype == "uint8x32"
    pointer = get("reinterpret").build(s, "lsram i8*")
    assert (pointer.elem, pointer.scope) == ("int8", "lsram")


def test_sign_bits_and_extension():
    x = sample("int8", 32)
    assert (py("u", x).value == x.value.view("uint8")).all()
    assert py("i", py("u", x)).value.tolist() == x.value.tolist()
    assert py("reinterpret", x, "i32x8").value.tolist() == x.value.view("int32").tolist()
    assert py("reinterpret", 1.5, "u32").value == 0x3FC00000
    assert py("vxtl", x).value.tolist() == x.value[:16].tolist()
    assert py("vxth", x).dtype == "int16x16"
    assert py("vxth", x).value.tolist() == x.value[16:].tolist()
    with pytest.raises(CompassError, match="bits"):
        py("reinterpret", x, "i32")
    with pytest.raises(CompassError, match="cannot be extended"):
        py("vxtl", sample("int32", 8))
