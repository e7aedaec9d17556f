"""PySim's race check and the checked run's say the same of a kernel."""

import time

import numpy as np
import pytest

from compass_core.errors import CompassError, flat
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from compassc.pysim.checks import checking


@S.prim_func
def meetings(out: S.ptr("i32", "global"), way: S.i32):
    shared = S.alloc_buffer((8,), "int32", "shared")
    tid = S.get_local_id()
    if way == 0:  # all write the same
        for i in range(8):
            out[i] = i
    if way == 1:  # all count in one place
        out[0] = 0
        for i in range(3):
            out[0] = out[0] + 1
    if way == 2:  # who wrote the same may read it
        shared[0] = 7
        out[tid] = shared[0]
    if way == 3:  # one writes, the others read
        if tid == 0:
            shared[0] = 7
        out[tid] = shared[0]
    if way == 4:
        if tid == 0:
            shared[0] = 7
        S.barrier()
        out[tid] = shared[0]
    if way == 5:  # reads before another one writes
        x = out[tid ^ 1]
        out[tid] = x + 1
    if way == 6:  # each another value
        out[0] = tid
    if way == 7:
        S.vstore(S.vload(out) * 2, out)
    if way == 8:  # twice, the same in the end
        out[0] = 1
        out[0] = 5
    if way == 9:
        S.dma_memset(out, 3, 8)
    if way == 10:
        out[tid] = tid
        S.barrier()
        out[3 - tid] = tid


@pytest.fixture(scope="module")
def built():
    return BuildManager("X2_1204").build(meetings)


RACES = {1, 3, 5, 6, 7, 8}


def in_pysim(way):
    out = np.arange(8, dtype="int32")
    with checking("race"):
        try:
            meetings(out, way)
        except CompassError as error:
            assert error.code == "race", error
            return error.span.line
    return None


@pytest.mark.parametrize("way", range(11))
def test_both_find_the_same(built, way):
    try:
        built.check(np.arange(8, dtype="int32"), way, modes="race")
        lines = None
    except CompassError as error:
        lines = [e.span.line for e in flat(error)]
    found = in_pysim(way)
    assert (found is not None) == (lines is not None) == (way in RACES)
    assert found is None or found in lines


@S.prim_func
def endless(out: S.ptr("i32", "global"), n: S.i32):
    i = n
    while i > 0:
        i = n
    out[0] = i


@pytest.mark.parametrize("single", ["0", "1"])
def test_pysim_has_a_time_limit(single, monkeypatch):
    endless(np.zeros(1, "int32"), 0)  # what a first run prepares takes time, too
    monkeypatch.setenv("COMPASS_PYSIM_TIMEOUT", "0.1")
    monkeypatch.setenv("COMPASS_PYSIM_SINGLE_THREAD", single)
    began = time.monotonic()
    with pytest.raises(CompassError, match="endless did not end within 0.1 s") as found:
        endless(np.zeros(1, "int32"), 1)
    assert found.value.code == "pysim-timeout" and time.monotonic() - began < 30
    assert 1 < found.value.span.line - endless.span.line <= 4, found.value.span
    out = np.ones(1, "int32")
    endless(out, 0)
    assert out[0] == 0
