"""Lanes looked up in tables of registers are the same on every kind of host."""

from typing import Any

import numpy as np
import pytest

from compass_core.hostcc import host
from compassc.dsl import BuildManager
from compassc.dsl import script as S

TYPES = {"u8": "uint8", "i8": "int8", "i16": "int16", "fp16": "float16", "i32": "int32", "fp32": "float32"}


def looked_up(kind: str) -> Any:
    lanes = 256 // int("".join(filter(str.isdigit, kind)))
    of_index = f"u{256 // lanes}"

    @S.prim_func
    def found(x: S.ptr(kind, "global"), at: S.ptr(of_index, "global"), y: S.ptr(kind, "global"), n: S.i32):
        a, b, c, d = (S.vload(x + i * lanes, lanes=lanes) for i in range(4))
        for i in range(0, n, lanes):
            index = S.vload(at + i, lanes=lanes)
            S.vstore(S.vtbl((a, b), index), y + i)
            S.vstore(S.vtbl((a, b, c, d), index), y + n + i)

    return found


@pytest.mark.parametrize("level", ["native", "x86-64-v3", "x86-64"])
def test_lanes_are_those_of_the_dialect(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if level != "native" and host.missing_features(" ".join(host._LEVELS[level])):
        pytest.skip("the host is no such one")
    monkeypatch.setenv("COMPASS_HOST_CPU", level)
    for kind, dtype in TYPES.items():
        lanes = 32 // np.dtype(dtype).itemsize
        x = np.random.default_rng(lanes).permutation(128).astype("uint8").view(dtype)
        at = np.random.default_rng(7).permutation(256).astype(f"uint{256 // lanes}")
        y = np.zeros(512, dtype)
        BuildManager().build(looked_up(kind))(x, at, y, 256)
        for found, entries in ((y[:256], x[: 2 * lanes]), (y[256:], x)):
            wanted = np.where(at < entries.size, entries[at % entries.size], np.zeros((), dtype))
            np.testing.assert_array_equal(found.view("uint8"), wanted.view("uint8"), err_msg=kind)
