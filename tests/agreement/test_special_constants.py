"""Infinities and NaN as constants of a kernel: in C they are of type float, whatever the kernel's type of them is."""

from typing import Any

import numpy as np
import pytest

from compassc.dsl import BuildManager
from compassc.dsl import script as S
from compassc.ir.dtypes import dtype
from compassc.ops.numeric import np_dtype

SPECIAL = ("inf", "-inf", "nan")


def filled(kind: str, text: str) -> Any:
    @S.prim_func
    def fill(x: S.ptr(kind, "global"), out: S.ptr(kind, "global"), n: S.i32):
        tile = S.alloc(16, kind, scope="lsram")
        value = S.cast(text, kind)
        S.dma_memset(tile, value, 4)
        S.dma_memset(tile + 4, float(text), 4)
        S.dma_memset(tile + 8, x[0] if n > 0 else value, 4)
        S.dma_memset(tile + 12, value if n > 0 else x[0], 4)
        S.dma_copy(out, tile, 16)

    return fill


def combined(kind: str, text: str) -> Any:
    @S.prim_func
    def combine(x: S.ptr(kind, "global"), out: S.ptr(kind, "global"), n: S.i32):
        value = S.cast(text, kind)
        out[0] = S.max(x[0], value)
        out[1] = S.min(value, x[0])
        out[2] = S.clip(x[0], x[1], value)
        out[3] = S.pow(x[0], value)
        out[4] = S.max(x[0], value if n > 0 else x[1])
        out[5] = S.max(x[0] + value, x[1])
        out[6] = -value
        out[7] = x[0] - -value
        S.vstore(S.max(S.vload(x), value), out + 16)

    return combine


def check(kernel: Any, kind: str) -> None:
    """The compiled kernel, on each generation, gives what PySim gives."""
    x = np.linspace(1.5, 9, 16).astype(np_dtype(dtype(kind)))
    wanted = np.zeros(32, x.dtype)
    kernel(x, wanted, 1)
    for target in ("X2_1204", "X3P_1304"):
        out = np.zeros(32, x.dtype)
        BuildManager(target).build(kernel)(x, out, 1)
        np.testing.assert_array_equal(out.astype("float32"), wanted.astype("float32"))


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("text", SPECIAL)
def test_memory_filled_with_a_special_constant(kind: str, text: str) -> None:
    check(filled(kind, text), kind)


@pytest.mark.parametrize("kind", ["float16", "float32"])
@pytest.mark.parametrize("text", SPECIAL)
def test_operations_on_a_special_constant(kind: str, text: str) -> None:
    check(combined(kind, text), kind)
