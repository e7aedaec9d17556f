"""PipelineLoops: buffers, events, the first turns and the drain of loops over tiles."""

from __future__ import annotations

import pytest

from compass_core.errors import CompassError

P = 'x: T.ptr("int32", "global"), y: T.ptr("int32", "global"), n: T.int32'
COPY = 'S.dma_copy(T.addr({}, 0, "int32"), T.addr({}, {}, "int32"), 64, 64, 64, 64, dtype="void")'
START = 'S.async_dma_copy(T.addr({}, 0, "int32"), T.addr({}, {}, "int32"), 64, 64, 64, 64, {}, dtype="void")'
BACK = 'S.dma_copy(T.addr({}, {}, "int32"), T.addr({}, 0, "int32"), 64, 64, 64, 64, dtype="void")'
BEFORE = """
a = T.alloc((16,), "int32", "lsram")
for t in T.pipelined(0, n, 16, annotations={'stages': 2}):
    """


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def test_copies_into_tiles_run_a_turn_ahead(transform):
    work = "y[t] = (a[0] + a[1])"
    got = transform("PipelineLoops", BEFORE + COPY.format("a", "x", "t") + "\n    " + work, P)
    assert lines(got) == lines(
        f"""a = T.alloc((2, 16), "int32", "lsram")
        a_came: T.int32 = S.alloc_event(dtype="int32")
        turn_of_2: T.size("int32") = 0
        if (0 < n):
        t: T.int32 = 0
        a_ahead: T.ptr("int32", "lsram") = T.addr(a, (0 * 16))
        {START.format("a_ahead", "x", "t", "a_came")}
        for t_1 in T.serial(0, n, 16):
        a_here: T.ptr("int32", "lsram") = T.addr(a, (turn_of_2 * 16))
        S.wait_events((1 << a_came), dtype="void")
        if (16 < (n - t_1)):
        t_2: T.int32 = (t_1 + 16)
        a_ahead_1: T.ptr("int32", "lsram") = T.addr(a, ((1 - turn_of_2) * 16))
        {START.format("a_ahead_1", "x", "t_2", "a_came")}
        y[t_1] = (a_here[0] + a_here[1])
        turn_of_2 = (1 - turn_of_2)
        S.free_events((1 << a_came), dtype="void")""".replace(', "int32"), T.addr(x', "), T.addr(x").replace(
            ', "int32"), 64', "), 64"
        )
    )


def test_copies_out_of_tiles_are_waited_for_a_turn_later(transform):
    got = transform("PipelineLoops", BEFORE + "a[0] = t\n    " + BACK.format("y", "t", "a"), P)
    made = lines(got)
    at = next(i for i, line in enumerate(made) if "async_dma_copy" in line)
    assert made[at - 2 : at] == ["if (0 < t):", 'S.wait_events((1 << a_went), dtype="void")']
    assert made[-1] == 'S.free_events((1 << a_went), dtype="void")' and "a_came" not in got


def test_tiles_that_come_and_go_have_room_for_one_turn_more_where_it_fits(transform):
    body = BEFORE + COPY.format("a", "x", "t") + "\n    a[0] = 1\n    " + BACK.format("y", "t", "a")
    assert 'a = T.alloc((3, 16), "int32", "lsram")' in transform("PipelineLoops", body, P)
    large = transform("PipelineLoops", body.replace("(16,)", "(4000,)"), P)
    assert 'a = T.alloc((2, 4000), "int32", "lsram")' in large
    ahead = large[: large.index("a_ahead_1")]
    assert "S.wait_events((1 << a_went)" in ahead[ahead.rindex("if (16 <") :], "the copy out of the room is waited for"


def test_more_stages_have_more_first_turns_and_events(transform):
    body = BEFORE.replace("2}", "4}") + COPY.format("a", "x", "t") + "\n    y[t] = a[0]"
    got = transform("PipelineLoops", body, P)
    assert got.count("S.alloc_event(") == 3 and got.count("async_dma_copy") == 4
    with pytest.raises(CompassError, match="needs 5 events, and 4 are free"):
        transform("PipelineLoops", body.replace("4}", "6}"), P)


def test_a_loop_inside_another_one_uses_other_events(transform):
    inner = BEFORE.replace("a = ", "b = ").replace("for t", "for u").strip("\n").replace("\n", "\n    ")
    inner = inner.rstrip() + "\n        " + COPY.format("b", "x", "u") + "\n        y[u] = (a[0] + b[0])"
    body = BEFORE + COPY.format("a", "x", "t") + "\n    " + inner
    assert transform("PipelineLoops", body, P).count("S.alloc_event(") == 2


def test_other_loops_stay(check):
    check("PipelineLoops", P, 'a = T.alloc((16,), "int32", "lsram")\nfor t in T.serial(0, n, 16):\n    y[t] = a[0]')
