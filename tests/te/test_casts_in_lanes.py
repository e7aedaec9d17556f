"""Conversions in vectorised loops: they are vectors, and bit for bit what the same loop of scalars gives."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from compassc import targets, te, topi
from compassc.dsl import BuildManager

TARGET = "X2_1204"
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]
REALS = ["float16", "bfloat16", "float32"]
COUNT = 1003


def numpy_type(kind: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)


def values(kind: str) -> np.ndarray:
    """Numbers of all sizes, the ends of the range, and of reals what is none or beyond every integer."""
    draw = np.random.default_rng(0)
    if kind in ("float16", "bfloat16"):
        return draw.integers(0, 1 << 16, COUNT).astype("uint16").view(numpy_type(kind))
    if kind == "float32":
        found = (draw.normal(0, 1, COUNT) * 10.0 ** draw.integers(-3, 12, COUNT)).astype(kind)
        ends = [
            np.nan,
            np.inf,
            -np.inf,
            2**31,
            -(2**31),
            2**31 - 128,
            2**32,
            2**32 - 256,
            3e9,
            127.5,
            -128.5,
            0.5,
            -0.5,
            -0.0,
            255.9,
            -1e38,
        ]
        found[: len(ends)] = ends
        return found
    info = np.iinfo(kind)
    found = draw.integers(info.min, info.max + 1, COUNT).astype(kind)
    found[:600] >>= draw.integers(0, info.bits, 600).astype(kind)
    found[:5] = info.min, info.max, info.max - 1, 0, 1
    if kind == "uint32":  # rounded to float32 these lie between two bfloat16
        found[5:9] = 0x80800001, 0x80800000, 0x8180FFFF, 0x8180007F
    return found


def converted(source: str, targets: list[str], vectors: bool) -> tuple[str, list[np.ndarray]]:
    """The text of a kernel that converts to all targets and tells what is not 0, and what it gives."""
    x = te.placeholder((COUNT,), source, name="x")
    outs = [topi.cast(x, k) for k in targets]
    if source != "bfloat16":
        outs.append(te.compute((COUNT,), lambda i: x[i].astype("bool").astype(source), name="truth"))
    s = te.create_schedule([o.op for o in outs])
    for o in outs:
        inner = s[o].split(o.op.axis[0], factor=32)[1]
        if vectors:
            s[o].vectorize(inner)
    module = te.lower(s, [x, *outs], "k", target=TARGET)
    found = [np.zeros(COUNT, numpy_type(str(o.dtype))) for o in outs]
    BuildManager(TARGET).build(module)(values(source), *found)
    return module.script(), found


@pytest.mark.parametrize("source", [*INTEGERS, *REALS])
def test_conversions_are_vectors_of_what_scalars_give(source):
    targets = [k for k in [*INTEGERS, *REALS] if k != source]
    text, found = converted(source, targets, True)
    _, wanted = converted(source, targets, False)
    for name, f, w in zip([*targets, "truth"], found, wanted, strict=False):
        np.testing.assert_array_equal(f.view(f"u{f.itemsize}"), w.view(f"u{w.itemsize}"), err_msg=name)
    assert not re.search(r"for \w*inner", text)


def requantised(total: te.Tensor) -> te.Tensor:
    """int32 sums as int8: scaled, rounded to the nearest even, and clipped."""

    def one(*i: object) -> object:
        scaled = te.nearbyint(total(*i).astype("float32") * te.const(0.0123, "float32")) + te.const(3.0, "float32")
        return te.max(te.min(scaled, te.const(127.0, "float32")), te.const(-128.0, "float32")).astype("int8")

    return te.compute(total.shape, one, name="requantised")


def expected(total: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(total.astype("f4") * np.float32(0.0123)) + 3, -128, 127).astype("int8")


def product() -> tuple[list[te.Tensor], te.Tensor, np.ndarray, list[np.ndarray]]:
    a, b = (te.placeholder((12, 70), "int8", name=n) for n in "ab")
    draw = np.random.default_rng(0)
    x, y = (draw.integers(-128, 128, (12, 70)).astype("int8") for _ in "ab")
    return [a, b], topi.matmul(a, b, False, True, out_dtype="int32"), x.astype("i4") @ y.astype("i4").T, [x, y]


def convolution() -> tuple[list[te.Tensor], te.Tensor, np.ndarray, list[np.ndarray]]:
    a, b = te.placeholder((1, 9, 10, 4), "int8", name="a"), te.placeholder((3, 3, 4, 20), "int8", name="b")
    draw = np.random.default_rng(0)
    x, y = (
        draw.integers(-128, 128, (1, 9, 10, 4)).astype("int8"),
        draw.integers(-128, 128, (3, 3, 4, 20)).astype("int8"),
    )
    padded = np.pad(x.astype("i4"), [(0, 0), (1, 1), (1, 1), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    return (
        [a, b],
        topi.nn.conv2d_nhwc(a, b, 1, 1, 1, out_dtype="int32"),
        np.einsum("nhwcij,ijco->nhwo", windows, y),
        [x, y],
    )


@pytest.mark.parametrize("sums", [product, convolution])
def test_sums_of_bytes_are_requantised_in_lanes(sums):
    args, total, wanted, given = sums()
    out = requantised(total)
    s = topi.schedule(out, TARGET)
    text = te.lower(s, [*args, out], "k", target=TARGET).script()
    stores = re.findall(r"requantised\w*\[.*\] = .*", text)
    assert stores and all("T.ramp(" in line.split(" = ")[0] and "T.cast(" not in line for line in stores)
    found = np.zeros(wanted.shape, "int8")
    targets.build(s, [*args, out], TARGET)(*given, found)
    np.testing.assert_array_equal(found, expected(wanted))
    assert np.ptp(found.astype("int32")) > 200


@pytest.mark.parametrize("function", [lambda a, b: a / b, lambda a, b: te.abs(a) * te.sigmoid(b)])
def test_quotients_and_magnitudes_of_halves_are_vectors(function):
    a, b = (te.placeholder((COUNT,), "float16", name=n) for n in "ab")
    texts, results = [], []
    for vectors in (True, False):
        out = te.compute((COUNT,), lambda i: function(a[i], b[i]), name="out")
        s = te.create_schedule(out)
        inner = s[out].split(out.op.axis[0], factor=32)[1]
        if vectors:
            s[out].vectorize(inner)
        module = te.lower(s, [a, b, out], "k", target=TARGET)
        texts.append(module.script())
        x, y = values("float16"), values("float16")[::-1].copy()
        found = np.zeros(COUNT, "float16")
        BuildManager(TARGET).build(module)(x, y, found)
        results.append(found)
    assert "_inner in" not in texts[0] and "_inner in" in texts[1]
    np.testing.assert_array_equal(*results)
