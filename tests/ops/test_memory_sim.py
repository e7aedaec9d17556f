"""Loads, stores and DMA: their IR, and what they do in PySim compared with plain Python loops."""

import itertools

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.ir import exprs as E
from compassc.ir.dtypes import INT32, bool_of, dtype, pointer_type
from compassc.ops import get
from compassc.ops.masks import mask_lanes
from compassc.pysim import pysim_impl
from compassc.pysim.memory import PyPointer, Storage
from compassc.pysim.session import PyEvent
from compassc.pysim.values import PyVar, pyvar

rng = np.random.default_rng(1)


def pointer(array, elem=None, scope="global", offset=0):
    raw = array.reshape(-1).view(np.uint8)
    return PyPointer(Storage(raw, "memory"), offset, dtype(elem or str(array.dtype)), scope)


def py(name, *args, **kwargs):
    return pysim_impl(get(name))(*args, **kwargs)


def ir_pointer(elem="int32", scope="global"):
    return E.Pointer(dtype(elem), E.Var("p", pointer_type(dtype(elem), scope)), E.IntImm(INT32, 0))


def vector(text):
    return E.Var("v", dtype(text))


MASKS = [None, "8T", "3T5F", "TF", [True], "FFFT", PyVar(np.array([0, 1, 1, 0, 0, 1, 0, 0], bool), bool_of(8)), "8F"]


def active_lanes(mask, lanes):
    if mask is None:
        return [True] * lanes
    found = mask.value.tolist() if isinstance(mask, PyVar) else mask_lanes(mask)
    return found + [False] * (lanes - len(found))


@pytest.mark.parametrize(("mask", "stride"), list(itertools.product(MASKS, (1, 2, 3))))
def test_loads_and_stores(mask, stride):
    data = rng.integers(-100, 100, 32).astype("int32")
    on = active_lanes(mask, 8)
    loaded = py("vload", pointer(data, offset=8), mask, None, stride)
    assert loaded.dtype == "int32x8"
    assert loaded.value.tolist() == [data[2 + i * stride] if on[i] else 0 for i in range(8)]
    out = np.full(32, -1, "int32")
    py("vstore", pyvar(data[:8]), pointer(out, offset=4), mask, stride)
    expected = [-1] * 32
    for i in range(8):
        if on[i]:
            expected[1 + i * stride] = data[i]
    assert out.tolist() == expected


def test_default_lanes_and_types():
    data = np.arange(64, dtype="int16")
    assert py("vload", pointer(data)).dtype == "int16x16"
    assert py("vload", pointer(data, "int16x8")).dtype == "int16x8"
    assert py("vload", pointer(data, "int8"), lanes=5).value.tolist() == [0, 0, 1, 0, 2]
    py("vstore", pyvar(np.full(4, 7, "int8")), pointer(data, "void"))
    assert data[:2].tolist() == [0x0707] * 2


def test_inactive_elements_are_not_touched():
    data = np.arange(5, dtype="int32")
    assert py("vload", pointer(data), "5T3F").value.tolist() == [0, 1, 2, 3, 4, 0, 0, 0]
    py("vstore", pyvar(np.full(8, 9, "int32")), pointer(data), "2T")
    assert data.tolist() == [9, 9, 2, 3, 4]
    with pytest.raises(CompassError, match="elements 0 to 5"):
        py("vload", pointer(data), "6T")


@pytest.mark.parametrize(("elem", "size"), [("int8", 1), ("int16", 2), ("int32", 4)])
@pytest.mark.parametrize("mask", [None, "TF2TF"])
def test_gather_and_scatter(elem, size, mask):
    data = rng.integers(-100, 100, 40000).astype(elem)
    raw = np.array([0, 5, 39999 if size == 1 else 12345 % (65536 // size), 3, 3, 65535 // size, 7, 8], "int64")
    raw = np.minimum(raw, 39999)
    on = active_lanes(mask, 8)
    at = pyvar(raw.astype("uint16"))
    loaded = py("vload_gather", pointer(data), at, mask)
    assert loaded.value.tolist() == [data[raw[i]] if on[i] else 0 for i in range(8)]
    out, expected = data.copy(), data.copy()
    fresh = rng.integers(-100, 100, 8).astype(elem)
    py("vstore_scatter", pyvar(fresh), pointer(out), at, mask)
    for i in range(8):
        if on[i]:
            expected[raw[i]] = fresh[i]
    assert (out == expected).all()


def test_gather_offsets_are_16_bits_wide():
    data = np.arange(20000, dtype="int32")
    at = pyvar(np.array([16384 + 2], "uint16").repeat(2))
    assert py("vload_gather", pointer(data), at).value.tolist() == [2, 2]


def test_ir_of_loads_and_stores():
    p, v = ir_pointer(), vector("int32x8")
    load = get("vload").build(p)
    assert (load.args[0], load.args[1].value, load.dtype, load.mask) == (p, 1, "int32x8", None)
    assert get("vload").build(p, "3T").mask.bits == 7
    assert get("vload").build(p, "8T").mask is None
    assert get("vload").build(p, lanes=20).dtype == "int32x20"
    store = get("vstore").build(v, p, None, 2)
    assert (store.args[0], store.args[2].value, store.dtype.is_void) == (v, 2, True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, v: get("vload").build(v), "must be a pointer or a buffer"),
        (lambda p, v: get("vload").build(p, lanes=1), "greater than 1"),
        (lambda p, v: get("vload").build(p, lanes=v), "integer constant"),
        (lambda p, v: get("vload").build(p, stride=1.5), "stride must be an integer scalar"),
        (lambda p, v: get("vload").build(p, "9T"), "9 lanes"),
        (lambda p, v: get("vload").build(ir_pointer("void")), "void"),
        (lambda p, v: get("vstore").build(1, p), "value must be a vector"),
        (lambda p, v: get("vload_gather").build(p, v), "int16 or uint16 vector"),
        (lambda p, v: get("vstore_scatter").build(v, p, vector("int16x16")), "lanes differ"),
        (lambda p, v: get("vstore_scatter").build(vector("int8x16"), p, vector("int16x16")), "elements differ"),
        (lambda p, v: get("dma_copy").build(p, ir_pointer("int8"), 4), "types differ"),
        (lambda p, v: get("dma_copy").build(p, ir_pointer("int32", "constant"), 4), "constant"),
        (
            lambda p, v: get("dma_copy").build(ir_pointer("int32", "lsram"), ir_pointer("int32", "shared"), 4),
            "DDR and SRAM",
        ),
        (lambda p, v: get("async_dma_copy").build(p, p, 4), "event must be given"),
        (lambda p, v: get("dma_upsample").build(p, p, 1, 1, 1, 1), "one side must be global"),
        (lambda p, v: get("dma_memset").build(ir_pointer("int8"), 300, 4), "300 does not fit int8"),
        (lambda p, v: get("dma_memset").build(ir_pointer("int8", "global.1"), 3, 4), "cannot be filled"),
    ],
)
def test_ir_errors(call, message):
    with pytest.raises(CompassError, match=message):
        call(ir_pointer(), vector("int32x8"))


def numbers(call):
    return [a.value for a in call.args if isinstance(a, E.IntImm)]


def test_ir_of_dma_counts_bytes():
    g, s = ir_pointer("int16"), ir_pointer("int16", "lsram")
    assert numbers(get("dma_copy").build(s, g, 4)) == [8, 8, 8, 8]
    assert numbers(get("dma_copy").build(s, g, 4, 10, 3, 6)) == [8, 20, 24, 12]
    call = get("dma_transpose2d").build(s, g, 3, 5)
    assert call.args[:2] == (g, s)
    assert numbers(call) == [5, 3, 5, 3]
    assert call.attr("itemsize") == 2
    assert numbers(get("dma_upsample").build(s, g, 2, 3, 4, 5)) == [2, 3, 8, 5, 8, 8, 15]
    assert numbers(get("dma_memset").build(ir_pointer("float16"), 1.0, 6)) == [12, 0x3C00]


def test_dma_copy():
    data = np.arange(100, dtype="int16")
    out = np.zeros(100, "int16")
    py("dma_copy", pointer(out, scope="lsram"), pointer(data, offset=4), 3, 10, 4, 5)
    expected = np.zeros(100, "int16")
    for t in range(4):
        expected[t * 5 : t * 5 + 3] = data[2 + t * 10 : 5 + t * 10]
    assert (out == expected).all()
    py("dma_copy", pointer(out, scope="lsram"), pointer(data), 0)
    for wrong, message in (
        ((200,), "out of bounds"),
        ((4, 2), "src_stride must be at least 4"),
        ((-1,), "width must be"),
    ):
        with pytest.raises(CompassError, match=message):
            py("dma_copy", pointer(out, scope="lsram"), pointer(data), *wrong)


def test_async_copy_refuses_at_once():
    event = PyEvent(0)
    event.allocated = True
    data = np.zeros(4, "int32")
    with pytest.raises(CompassError, match="out of bounds"):
        py("async_dma_copy", pointer(data, scope="lsram"), pointer(data), 5, event=event)
    with pytest.raises(CompassError, match="is not an event"):
        py("async_dma_copy", pointer(data, scope="lsram"), pointer(data), 4, event=3)


@pytest.mark.parametrize("strides", [(None, None), (7, 9)])
def test_transpose(strides):
    row, col = 5, 6
    dst_stride, src_stride = strides[0] or row, strides[1] or col
    data = rng.integers(0, 100, 100).astype("int16")
    out, expected = np.zeros(100, "int16"), np.zeros(100, "int16")
    py("dma_transpose2d", pointer(out), pointer(data, scope="lsram"), row, col, *strides)
    for i, j in itertools.product(range(row), range(col)):
        expected[j * dst_stride + i] = data[i * src_stride + j]
    assert (out == expected).all()


@pytest.mark.parametrize("strides", [(None, None, None), (3, 4, 20)])
def test_upsample(strides):
    h, w, c, n = 3, 2, 2, 4
    sc, dc, dw = strides[0] or c, strides[1] or c, strides[2] or n * w
    data = rng.integers(0, 100, 100).astype("int8")
    out, expected = np.full(400, -1, "int8"), np.full(400, -1, "int8")
    py("dma_upsample", pointer(out, scope="lsram"), pointer(data), h, w, c, n, *strides)
    for wi, hs, ws, k in itertools.product(range(n), range(h), range(w), range(c)):
        expected[(hs * dw + wi * w + ws) * dc + k] = data[wi * sc + k]
    assert (out == expected).all()


def test_memset():
    out = np.zeros(8, "float32")
    py("dma_memset", pointer(out, offset=4), 1.5, 3)
    assert out.tolist() == [0, 1.5, 1.5, 1.5, 0, 0, 0, 0]
    with pytest.raises(CompassError, match="the value is int32, the memory float32"):
        py("dma_memset", pointer(out), PyVar(np.int32(1), INT32), 3)
