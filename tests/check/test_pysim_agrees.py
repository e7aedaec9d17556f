"""PySim's race check and the checked run's say the same of a kernel."""

import itertools
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
def carried(y: S.ptr("i32", "global"), z: S.ptr("i32", "global"), way: S.i32, d: S.i32, n: S.i32):
    own, part = y + S.get_local_id() * 128, S.alloc(64, "i32", "lsram")
    to = z + S.get_local_id() * 16
    if way == 0:  # a turn writes what one behind it reads
        for i in S.vectorized(S.min(n, 16)):
            own[i + 32] = own[i + 32 - d] + 1
    if way == 1:  # a turn reads what one behind it writes
        for i in S.vectorized(S.min(n, 16)):
            own[2 * i + 32] = i
            to[i] = own[2 * i + 32 + d]
    if way == 2:  # and in an array of the kernel
        for i in S.vectorized(16):
            part[i + 16] = i
        for i in S.vectorized(16):
            part[i + 32] = part[i + 32 - d] * 3
    if way == 3:  # one element for all turns
        for i in S.vectorized(16):
            own[i] = own[d]
    if way == 4:  # in the order of the program
        for i in S.vectorized(16):
            to[i] = own[i + 3 + d]
            own[i + 3] = i


def depends(way: int, d: int, n: int) -> bool:
    """Whether the order of accesses matters that changes where all turns run a statement at once."""
    if way == 0:
        return 0 < d < min(n, 16)
    if way == 1:
        return d > 0 and d % 2 == 0 and d // 2 < min(n, 16)
    if way == 3:
        return 0 <= d < 15
    return way in (2, 4) and 0 < (d if way == 2 else -d) < 16


@pytest.fixture(scope="module")
def vectors():
    return BuildManager("X2_1204").build(carried)


@pytest.mark.parametrize("way", range(5))
def test_turns_of_vectorized_loops_that_depend_on_each_other_are_found(vectors, way):
    for d, n in itertools.product((-3, 0, 1, 2, 14, 15, 16, 30), (6, 16) if way < 2 else (16,)):
        if way == 3 and d < 0:
            continue
        seen = []
        for run in (lambda *args: vectors.check(*args, modes="assert"), carried):
            y, z = np.arange(512, dtype="int32"), np.zeros(64, "int32")
            try:
                with checking("race"):
                    run(y, z, way, d, n)
                seen.append(None)
            except CompassError as error:
                errors = flat(error)
                assert all(
                    "before a later turn" in e.message and e.code.endswith(("assertion", "assert")) for e in errors
                )
                seen.append({e.span.line for e in errors} - {None})
        assert bool(seen[0]) == bool(seen[1]) == depends(way, d, n), (way, d, n, seen)


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
