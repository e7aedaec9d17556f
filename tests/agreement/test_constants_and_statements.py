"""What is known while a kernel is compiled, and the statements that are ours: compiled, in PySim and as Python means them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from compass_core.errors import CompassError, flat
from compassc.dsl import BuildManager
from compassc.dsl import script as S

DIM = 64
TABLE = (3, 5, 7, 11)
STEPS = {0: 2, 1: 4}


@S.prim_func
def known_numbers(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), f: S.ptr("fp32", "global")):
    if S.get_local_id() != 0:
        return
    for i in S.unroll(0, 4):
        y[i] = TABLE[i] * x[i]
    for i in S.unroll(3, -1, -2):
        if i == 1:
            y[4] = STEPS[i] + TABLE[i - 1]
        else:
            y[5] = i
    for i, p in enumerate((x, y)):
        y[6 + i] = p[2]
    for a, b in zip((8, 9), reversed((16, 17))):
        y[a] = b
    for i in S.unroll(1, 3):
        s = S.alloc((i * 8,), "i32")
        S.vstore(S.vload(x, lanes=i * 8), s)
        y[9 + i] = s[i * 8 - 1]
        S.vstore(S.vload(x + 8 * i, mask=[k < i for k in range(8)]), y + 8 + 8 * i)
    loaded = [x[i] for i in range(4) if i != 2]
    x[0] = 100
    y[12] = sum(loaded)
    y[13] = {n: 2 * n for n in TABLE}[7]
    f[0] = 1.0 / np.sqrt(DIM)


@S.prim_func
def jumps(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    if S.get_local_id() != 0:
        return
    for i in range(16):
        if x[i] % 3 == 0:
            continue
        if x[i] > 12:
            break
        y[0] += x[i]
    i = 0
    while True:
        i += 1
        if i % 2 == 0:
            continue
        if i > 7:
            break
        y[1] += i
    for k in (1, 2, 3, 4):
        if k == 2:
            continue
        if x[k] == 4:
            break
        y[1 + k] = k
    for k in (5, 6, 7):
        if k == 6:
            break
        y[k] = k


@S.prim_func
def targets(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    if S.get_local_id() != 0:
        return
    y[0], y[1] = x[1], x[0]
    y[0], y[1] = y[1], y[0]
    a = y[2] = b = x[2]
    a += 1
    y[3], c = a, y[2]
    y[4] = b + c
    v = w = S.vload(x)
    v[0], v[1] = v[1], v[0]
    S.vstore(v, y + 8)
    S.vstore(w, y + 16)
    y[16:24] += v
    y[24:32] = v if v > w else -w


def run(kernel: Any, *make: Callable[[], Any]) -> list[Any]:
    """The arrays after a compiled run, which are those of PySim too."""
    found = []
    for one in (BuildManager("X2_1204").build(kernel), kernel):
        x, outputs = np.arange(1, 33, dtype="int32"), [array() for array in make]
        one(x, *outputs)
        found.append(outputs)
    for compiled, simulated in zip(*found, strict=True):
        assert np.array_equal(compiled, simulated), np.flatnonzero(compiled != simulated)
    return found[0]


def zeros() -> Any:
    return np.zeros(32, "int32")


def test_constants() -> None:
    y, f = run(known_numbers, zeros, lambda: np.zeros(1, "float32"))
    assert y[:14].tolist() == [3, 10, 21, 44, 7, 3, 3, 21, 17, 16, 8, 16, 1 + 2 + 4, 14]
    assert y[16:18].tolist() == [9, 0] and y[24:27].tolist() == [17, 18, 0]
    assert f[0] == np.float32(0.125)


def test_jumps() -> None:
    (y,) = run(jumps, zeros)
    x = range(1, 17)
    assert y[:6].tolist() == [sum(n for n in x if n % 3 and n <= 12), 1 + 3 + 5 + 7, 1, 0, 0, 5]


def test_targets() -> None:
    (y,) = run(targets, zeros)
    v, w = np.array([2, 1, *range(3, 9)]), np.arange(1, 9)
    assert y[:5].tolist() == [1, 2, 3, 4, 6]
    assert y[8:16].tolist() == v.tolist() and y[16:24].tolist() == (v + w).tolist()
    assert y[24:32].tolist() == np.where(v > w, v, -w).tolist()


@S.prim_func
def wrong_side(x: S.ptr("i32", "global")):
    for i in S.unroll(2):
        if i == 5:
            S.vstore(S.vload(x), x.as_ptr("fp32"))
        x[i] = TABLE[i]


def test_the_other_side_of_a_known_condition_is_not_typed() -> None:
    x = np.zeros(8, "int32")
    BuildManager("X2_1204").build(wrong_side)(x)
    assert x[:2].tolist() == [3, 5]


@S.prim_func
def one_copy(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    for i in S.unroll(4):
        y[i] = x[i] + i


def test_a_loop_that_needs_no_constant_stays_a_loop_of_the_ir() -> None:
    """So that kernels of the vendor's language keep their C text."""
    from compassc.ir import stmts
    from compassc.language.parser.module import parse

    (loop,) = parse(one_copy).entry_func.body
    assert isinstance(loop, stmts.For) and loop.kind == "unrolled"


@S.prim_func
def mistaken(x: S.ptr("i32", "global")):
    for i in S.unroll(3):
        x[i] = TABLE[i] + missing  # noqa: F821


def test_a_mistake_in_copies_is_told_once() -> None:
    with pytest.raises(CompassError) as raised:
        BuildManager("X2_1204").build(mistaken)
    assert len(flat(raised.value)) == 1


@S.prim_func
def containers(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    if S.get_local_id() != 0:
        return
    now = (x[0], x[1] + 1)
    x[0] = 50
    a, v = S.i32(3), S.vload(x)
    both = [a, a * 2, v]
    a += 1
    v[0] = 9
    y[0], y[1], y[2], y[3] = now[0], both[0], both[1], both[2][0]
    totals = [S.i32(0) for _ in range(2)]
    for i in S.unroll(3):
        totals = [t + x[i + 1] * TABLE[i] for t in totals]
    y[4] = totals[0] + totals[1]
    events = S.alloc_events(2)
    s = S.alloc((16,), "i32", "lsram")
    S.async_dma_copy(s, x, 8, event=events[0])
    S.async_dma_copy(s + 8, x + 8, 8, event=events[1])
    S.wait_events(events[0], events[1])
    S.free_events(events[0], events[1])
    y[5] = s[9]


def test_values_in_containers_are_those_of_when_they_were_put_there() -> None:
    (y,) = run(containers, zeros)
    assert y[:6].tolist() == [1, 3, 6, 50, 2 * (2 * 3 + 3 * 5 + 4 * 7), 10]
