"""Names for compile-time values where the run decides what happens, and Python functions that kernels call: compiled
kernels do what PySim does, or are refused."""

import sys
from typing import Any

import numpy as np
import pytest

from compass_core.errors import CompassError, flat
from compassc.dsl import BuildManager, parse
from compassc.dsl import script as S
from tests.fuzz.generate import generate
from tests.fuzz.run import load_kernel

PTR = S.ptr("i32", "global")
NUMBERS = [9, 2, 9, 4, 5, 6, 7, 8]


@S.prim_func
def bumped(p: PTR) -> S.i32:
    p[0] = p[0] + 1
    return p[0]


def moved(p: Any, q: Any) -> Any:
    """Reads, writes what it has read, and gives the former."""
    v = S.vload(p)
    S.vstore(v + 1, q)
    p[0:8] = v * 2
    return v


def called_twice(p: Any) -> Any:
    r = bumped(p)
    return r * 100 + r


def called_for_nothing(p: Any) -> int:
    bumped(p)
    return 3


def exchanged(a: Any, b: Any) -> Any:
    return b, a


class Total:
    def __init__(self) -> None:
        self.value: Any = 0

    def add(self, x: Any) -> None:
        self.value = self.value + x


# ------------------------------------------------------------------------------------------------------------- that agree


@S.prim_func
def each_branch_its_own(x: PTR, y: PTR):
    if S.get_local_id() != 0:
        return
    k = S.meta_var(1)
    if x[0] > 3:
        k = S.meta_var(2)
        y[0] = k
    else:
        y[0] = k + 10
    mask = S.meta_var("8T")
    if x[1] > 3:
        mask = S.meta_var("4T4F")
        S.vstore(S.vload(x), y + 8, mask=mask)
    elif x[1] > 1:
        S.vstore(S.vload(x), y + 8, mask=mask)


@S.prim_func
def one_branch_leaves(x: PTR, y: PTR):
    if S.get_local_id() != 0:
        return
    t = (1, 2)
    if x[0] > 3:
        t = (3, 4)
    else:
        y[1] = 7
        return
    y[0] = t[0] * t[1]


@S.prim_func
def unrolled_turns(x: PTR, y: PTR):
    if S.get_local_id() != 0:
        return
    k = S.meta_var(1)
    kept = []
    for i in S.unroll(4):
        y[i] = k
        k = S.meta_var(k * 3)
        kept.append(x[i] * 2)
    y[4] = k
    x[0] = x[1] = 0
    for i, value in enumerate(kept):
        y[8 + i] = value


@S.prim_func
def helpers(x: PTR, y: PTR):
    if S.get_local_id() != 0:
        return
    y[0] = called_twice(x)
    y[1] = called_for_nothing(x)
    y[2] = x[0] + moved(x, y + 8)[0] + x[0]
    y[3] = (bumped(x) + 1) * called_twice(x)
    y[4], y[5] = x[0], bumped(x)


@S.prim_func
def exchanges(x: PTR, y: PTR):
    if S.get_local_id() != 0:
        return
    a, b, c = x[0], x[1], x[2]
    a, b = exchanged(a, b)
    a, (b, c) = b, (a, b)
    y[0], y[1], y[2] = a, b, c
    x[0], x[1] = exchanged(x[0], x[1])
    total = S.meta_var(Total())
    total.add(x[0])
    x[0] = 100
    total.add(x[1])
    y[3] = total.value
    kept = []
    kept.append(bumped(x))
    known = S.meta_var({"first": x[0], "called": bumped(x)})
    x[0] = 50
    y[4], y[5], y[6], y[7] = kept[0], kept[0], known["first"], known["called"] + known["called"]


def known_kind(wide: bool) -> Any:
    return S.meta_var(("int32", 8) if wide else ("int16", 16))


@S.prim_func
def known_values_by_name(x: PTR, y: PTR):
    if S.get_local_id() != 0:
        return
    kind, lanes = S.meta_var(("int32", 8))
    S.vstore(S.vload(x, lanes=lanes) + S.vbcast(S.i32(lanes), lanes=lanes), y)
    narrow, more = known_kind(False)
    (first, second), *others = S.meta_var(((1, narrow), more, "int8"))
    buffer = S.alloc_buffer((first + 1, others[0]), second, "lsram")
    for k in S.meta_var((8, 9)):
        buffer[0, k - 8] = S.cast(k, others[1])
        y[k] = buffer[0, k - 8]
    y[10] = S.meta_var(5) + S.meta_var((6, 7))[1]
    a, b = S.meta_var(1 + 1) if lanes == 8 else S.meta_var(2), S.meta_var("4T4F")
    S.vstore(S.vload(x), y, mask=b)
    y[11], c = S.meta_var((3, 4))
    room = S.alloc_buffer((a + c,), kind, "lsram")
    room[a] = 7
    y[12] = room[2] + a + c


@S.prim_func
def storage_without_a_name(x: PTR, y: PTR):
    if S.get_local_id() != 0:
        return
    row = S.alloc_buffer((4, 8), "int32", "lsram").addr_of((2, 0))
    first = S.alloc((8,), "int32", "lsram").addr_of(0)
    for i in range(8):
        row[i] = x[i]
        first.addr_of(i)[0] = row.addr_of()[i] * 2
    moved = S.alloc(16, "int32") + 8
    moved[0] = 5
    rows = [S.alloc_buffer(8, "int32", "lsram") for _ in range(2)]
    S.dma_copy(rows[0].addr_of(0), x, 8)
    S.vstore(S.vload(rows[0].addr_of(0)) + S.vload(first), y)
    y[8] = moved.addr_of(0)[0] + row[3]


def ignored(value: Any) -> int:
    return 3


@S.prim_func
def calls_whose_values_nobody_takes(x: PTR, y: PTR):
    if S.get_local_id() != 0:
        return
    -bumped(x)
    bumped(x) > 3  # noqa: B015
    bumped(x) if x[0] > 3 else bumped(y)
    y[1] = [bumped(x), 5][1] + (S.atomic_add(x, 3), 6)[1] + S.meta_var({"a": bumped(x), "b": 7})["b"]
    y[2] = (lambda v: v + v)(bumped(x))  # noqa: PLC3002
    y[3] = ignored(S.atomic_add(x, 2)) + ignored(S.vstore(S.vload(x) + x[0], y + 8))
    S.vstore(S.vload(x), y + 8) is None  # noqa: B015
    S.vstore(S.vload(x) + 1, y + 8) if x[0] > 12 else S.dma_copy(y + 8, x, 4)
    y[4] = (S.vstore(S.vload(y + 8) + 1, y + 8), 8)[1] + y[8]
    S.vstore(S.vload(x), y + 8, mask=S.vload(x) > bumped(x) - 12)


@pytest.mark.parametrize(
    "kernel",
    [
        calls_whose_values_nobody_takes,
        each_branch_its_own,
        one_branch_leaves,
        unrolled_turns,
        helpers,
        exchanges,
        known_values_by_name,
        storage_without_a_name,
    ],
)
@pytest.mark.parametrize("first", [9, 1])
def test_compiled_kernels_do_what_python_does(kernel: Any, first: int) -> None:
    found = []
    for one in (BuildManager("X2_1204").build(kernel), kernel):
        x, y = np.array([first, *NUMBERS[1:]], "int32"), np.zeros(16, "int32")
        one(x, y)
        found.append((x.tolist(), y.tolist()))
    assert found[0] == found[1]


def parsed_while_watched(kernel: Any) -> str:
    """The module of a kernel whose parser's frames somebody keeps, as profilers and debuggers do for a while."""
    frames = []
    sys.setprofile(lambda frame, *_: frames.append(frame))
    try:
        return str(parse(kernel, "X2_1204"))
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("kernel", [each_branch_its_own, known_values_by_name, storage_without_a_name, *range(4)])
def test_who_looks_at_the_parser_changes_no_kernel(kernel: Any) -> None:
    kernel = load_kernel(generate(kernel)) if isinstance(kernel, int) else kernel
    assert parsed_while_watched(kernel) == str(parse(kernel, "X2_1204"))


@pytest.mark.parametrize("kernel", [calls_whose_values_nobody_takes, helpers, exchanges])
def test_nor_how_often_its_functions_of_python_write(kernel: Any) -> None:
    """Of those what they read may be computed in other steps."""
    written, watched = (
        [line.split("=")[0].split("(")[0] for line in text.splitlines() if "item" not in line.split("=")[0]]
        for text in (str(parse(kernel, "X2_1204")), parsed_while_watched(kernel))
    )
    assert written == watched


# ----------------------------------------------------------------------------------------------------------- that are refused


@S.prim_func
def behind_a_branch(x: PTR, y: PTR):
    t = (1, 2)
    if x[0] > 3:
        t = (3, 4)
    y[0] = t[0]
    y[1] = t[1]


@S.prim_func
def behind_a_loop(x: PTR, y: PTR):
    k = S.meta_var(0)
    while x[0] > 0:
        x[0] -= 1
        k = S.meta_var(5)
    y[0] = k


@S.prim_func
def in_a_later_turn(x: PTR, y: PTR):
    k = S.meta_var(1)
    for i in range(4):
        if x[i] > 3:
            k = S.meta_var(2)
        else:
            y[i] = k


@S.prim_func
def of_tiles(x: PTR, y: PTR):
    k = S.meta_var(2)
    for i, j in S.parallel_tiles(2, 2):
        y[i * 2 + j] = k
        k = S.meta_var(3)


@S.prim_func
def computed_in_a_block(x: PTR, y: PTR):
    t = (x[0], 1)
    if x[0] > 3:
        t = (x[1], 2)
    else:
        return
    y[0] = t[0]


@S.prim_func
def left_by_the_run(x: PTR, y: PTR):
    k = S.meta_var(0)
    for w in (1, 2, 3):
        if x[w] > 5:
            break
        k = S.meta_var(w)
    y[0] = k


@S.prim_func
def changed_by_a_helper(x: PTR, y: PTR):
    kept = [1]
    if x[0] > 3:
        grown(kept)
    y[0] = len(kept)


def grown(kept: list[int]) -> None:
    kept.append(2)


@S.macro
def given(k, v):
    k = v  # noqa: F841


@S.prim_func
def by_a_macro(x: PTR, y: PTR):
    k = S.meta_var((0, 1))
    given(k, S.meta_var((4, 5)))
    y[0] = k[0]


@pytest.mark.parametrize(
    ("kernel", "code"),
    [
        (behind_a_branch, "depends-on-run"),
        (behind_a_loop, "depends-on-run"),
        (in_a_later_turn, "depends-on-run"),
        (of_tiles, "depends-on-run"),
        (computed_in_a_block, "depends-on-run"),
        (changed_by_a_helper, "depends-on-run"),
        (left_by_the_run, "loop-turns"),
        (by_a_macro, "macro-argument"),
    ],
)
def test_what_the_run_would_have_to_know_is_refused_once(kernel: Any, code: str) -> None:
    with pytest.raises(CompassError) as raised:
        BuildManager("X2_1204").build(kernel)
    (error,) = flat(raised.value)
    assert error.code == code and error.span is not None
