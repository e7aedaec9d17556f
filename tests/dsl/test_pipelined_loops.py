"""S.pipelined: what comes out is what the plain loop gives, in PySim, in the simulator and in checked runs."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager, load_kernels
from compassc.pysim.checks import checking

TILE = 64
SIZES = (0, 1, TILE - 1, TILE, TILE + 1, 3 * TILE, 7 * TILE + 5)
HEAD = """
from compassc.dsl import script as S

TILE = 64

@S.prim_func
def double(p: S.ptr("i32", "lsram"), n: S.i32):
    for i in range(n):
        p[i] = p[i] * 2

"""
PARAMETERS = 'x: S.ptr("i32", "global"), z: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32'


def kernel_text(name: str, loop: str, seed: int) -> str:
    """A kernel that works on tiles, made of parts that chance chooses; `loop` is the head of its loop."""
    rng = random.Random(seed)
    two, inside, nested = (rng.random() < 0.5 for _ in range(3))
    apart = rng.random() < 0.4
    guarded, fills, rows, called = (rng.random() < 0.35 for _ in range(4))
    allocs = ['a = S.alloc(TILE, "i32", "lsram")']
    if two:
        allocs.append('b = S.alloc_buffer((TILE,), "i32", "lsram")')
    if apart:
        allocs.append('c = S.alloc(TILE, "i32", "lsram")')
    copy_a = "S.dma_copy(a, x + t, now)"
    if rows:
        copy_a = "S.dma_copy(a, x + t, 8, 8, S.ceildiv(now, 8))"
    body = ["now = S.min(n - t, TILE)"]
    if fills:
        body.append("if now < TILE:\n    S.dma_memset(a, 7, TILE)" if seed % 2 else "S.dma_memset(a, 7, TILE)")
    body.append(copy_a if not guarded else f"if now > 3:\n    {copy_a}\nelse:\n    S.dma_copy(a, z + t, now)")
    to = "c" if apart else "a"
    body += ["S.dma_copy(b.addr_of(0), z + t, now)"] if two else []
    term = "a[i] + b[i]" if two else "a[i] * 3"
    body.append(f"for i in range(now):\n    {to}[i] = {term} + total")
    body.append(f"double({to}, now)" if called else f"total += {to}[0]")
    body.append(f"S.dma_copy(y + t, {to}, now)")
    lines = (allocs if not inside else []) + ["total = 1"]
    loop_text = [
        f"for t in {loop}:",
        *("    " + x.replace("\n", "\n    ") for x in ((allocs if inside else []) + body)),
    ]
    if nested:
        loop_text = ["for again in range(2):", *("    " + x.replace("\n", "\n    ") for x in loop_text)]
    text = "\n".join("    " + x.replace("\n", "\n    ") for x in (*lines, *loop_text))
    return f"@S.prim_func\ndef {name}({PARAMETERS}):\n{text}\n\n"


def load(tmp_path: Path, text: str, name: str):
    path = tmp_path / "kernels_of_tiles.py"
    path.write_text(HEAD + text)
    return load_kernels(path).kernels[name]


@pytest.mark.parametrize("seed", range(10))
def test_results_are_those_of_the_plain_loop(tmp_path, seed):
    stages = 2 + seed % 3 % 2 + seed % 5 // 4
    first = "S.get_local_id() * TILE, n, S.get_local_size() * TILE"
    heads = {"plain": f"range({first})", "ahead": f"S.pipelined({first}, stages={stages})"}
    text = "".join(kernel_text(name, head, seed) for name, head in heads.items())
    kernels = {name: load(tmp_path, text, name) for name in heads}
    executors = {name: BuildManager("X2_1204").build(k) for name, k in kernels.items()}
    for n in SIZES:
        rng = np.random.default_rng(n)
        x, z = (rng.integers(-1000, 1000, n + TILE, dtype="int32") for _ in range(2))
        results = []
        for run in (executors["plain"], executors["ahead"], kernels["ahead"]):
            y = np.zeros(max(n, 1), "int32")
            run(x, z, y, n)
            results.append(y)
        np.testing.assert_array_equal(results[1], results[0])
        np.testing.assert_array_equal(results[2], results[0])
    y = np.zeros(n, "int32")
    assert executors["ahead"].check(x, z, y, n) == []


IN_PLACE = {
    "tiles of all TECs": ("S.get_local_id() * TILE, n, S.get_local_size() * TILE", "t - own", "t - own", 1),
    "tiles by number": ("S.ceildiv(n, TILE)", "t * TILE", "t * TILE", 1),
    "from the last to the first": ("0, n, TILE", "n - t - TILE", "n - t - TILE", 1),
    "from a little ahead": ("0, n, TILE", "t + 5", "t", 1),
    "to a little behind, downwards": ("0, n, TILE", "n - t - TILE", "n - t - TILE + 3", 1),
    "rows": ("0, n, TILE", "t", "t", 8),
}


@pytest.mark.parametrize("case", IN_PLACE)
def test_tiles_go_back_to_where_they_came_from(tmp_path, case):
    loop, source, target, rows = IN_PLACE[case]
    body = f"""
        S.dma_copy(a, x + own + ({source}), {TILE // rows}, {TILE // rows}, S.ceildiv({TILE}, {TILE // rows}))
        for i in range(TILE):
            a[i] = a[i] * 3 + t
        if n > 0:
            S.dma_copy(x + own + ({target}), a, {TILE // rows}, {TILE // rows}, S.ceildiv({TILE}, {TILE // rows}))
"""
    head = f"def {{}}({PARAMETERS}):\n    {A}\n    own = S.get_local_id() * (n + TILE)\n    for t in "
    heads = {"plain": f"range({loop})", "ahead": f"S.pipelined({loop}, stages=3)"}
    text = "".join(f"@S.prim_func\n{head.format(name)}{h}:{body}\n\n" for name, h in heads.items())
    kernels = {name: load(tmp_path, text, name) for name in heads}
    executors = {name: BuildManager("X2_1204").build(k) for name, k in kernels.items()}
    for n in (0, TILE, 7 * TILE):
        results = []
        for run in (executors["plain"], executors["ahead"], kernels["ahead"]):
            results.append(np.random.default_rng(n).integers(-1000, 1000, 4 * (n + TILE), dtype="int32"))
            run(results[-1], None, None, n)
        np.testing.assert_array_equal(results[1], results[0])
        np.testing.assert_array_equal(results[2], results[0])


A = 'a = S.alloc(TILE, "i32", "lsram")'
NOT_IN_PLACE = {
    "a tile ahead": ("S.dma_copy(a, x + t, TILE)\nS.dma_copy(x + t + TILE, a, TILE)", A),
    "half a tile ahead": ("S.dma_copy(a, x + t, TILE)\nS.dma_copy(x + t + TILE // 2, a, TILE)", A),
    "where turns leave a number": (
        "S.dma_copy(a, x + q + t, TILE)\nz[0] = z[0] + 32\nS.dma_copy(x + z[0] + t, a, TILE)",
        A + "\nq = z[0]",
    ),
    "rows that turns share": ("S.dma_copy(a, x + t, 4, 128, 16)\nS.dma_copy(x + t, a, 4, 4, 16, 128)", A),
    "places that come again": ("S.dma_copy(a, x + t % 100, TILE)\nS.dma_copy(x + t % 100, a, TILE)", A),
}


@pytest.mark.parametrize("case", NOT_IN_PLACE)
def test_tiles_that_meet_those_of_other_turns_are_refused(tmp_path, case):
    body, before = NOT_IN_PLACE[case]
    error = refused(tmp_path, body, before)
    assert "may read what the turn before it copies" in error.message


def refused(tmp_path, body: str, before: str = "", after: str = "") -> CompassError:
    """The error of a kernel with this body of its pipelined loop."""
    lines = [
        *before.split("\n"),
        "for t in S.pipelined(0, n, TILE):",
        *("    " + b for b in body.split("\n")),
        *after.split("\n"),
    ]
    text = "\n".join("    " + line for line in lines)
    kernel = load(tmp_path, f"@S.prim_func\ndef k({PARAMETERS}):\n{text}\n", "k")
    with pytest.raises(CompassError) as error:
        BuildManager("X2_1204").build(kernel)
    return error.value


COPY, BACK = "S.dma_copy(a, x + t, TILE)", "S.dma_copy(y + t, a, TILE)"
REFUSALS = {
    "no statement of its body copies": ("y[t] = x[t]", "", ""),
    "a break leaves it or a continue its turn": (f"{COPY}\nif a[0] > 3:\n    break\n{BACK}", A, ""),
    "a return leaves it": (f"{COPY}\nif a[0] > 3:\n    return\n{BACK}", A, ""),
    "S.barrier in it": (f"{COPY}\nS.barrier()\n{BACK}", A, ""),
    "S.alloc_events in it": (f"e = S.alloc_events(1)\n{COPY}\n{BACK}\nS.free_events(e)", A, ""),
    "which turns change": (f"S.dma_copy(a, x + p, TILE)\np = p + a[0]\n{BACK}", A + "\np = S.i32(0)", ""),
    "which the turn computes": (f"v = double(a, 3)\n{COPY}", A, ""),
    "'z', which the loop writes": (f"z[t] = 1\nS.dma_copy(a, x + z[t], TILE)\n{BACK}", A, ""),
    "a turn writes 'x'": (f"{COPY}\nx[t] = 3\n{BACK}", A, ""),
    "a turn uses 'y'": (f"{COPY}\ny[t + 100] = 3\n{BACK}", A, ""),
    "may read what the turn before": (f"S.dma_copy(a, y + t - 1, TILE)\n{BACK}", A, ""),
    "is filled while": (f"{COPY}\na[0] = 3\n{COPY}\n{BACK}", A, ""),
    "behind the copy into it": (f"{COPY}\nS.dma_memset(a, 0, 8)\n{BACK}", A, ""),
    "behind the copy out of it": (f"{COPY}\n{BACK}\na[0] = 1", A, ""),
    "what the turn before it left": (f"a[0] = a[0] + 1\n{BACK}", A, ""),
    "is used outside": (f"{COPY}\n{BACK}", A, "y[0] = a[0]"),
    "is moved": (f"{COPY}\np = a\np[0] = 1\nq += 1\n{BACK}", A + "\nq = a + 1", ""),
}


@pytest.mark.parametrize("reason", REFUSALS)
def test_what_cannot_overlap_is_refused_with_the_reason(tmp_path, reason):
    if reason == "which the turn computes":
        body = f"v = S.i32(0)\nif n > 3:\n    v = 2\nS.dma_copy(a, x + v, TILE)\n{BACK}"
        error = refused(tmp_path, body, A)
        assert "turns change" in error.message or reason in error.message
        return
    error = refused(tmp_path, *REFUSALS[reason])
    assert reason in error.message and error.help and error.span and error.code == "pipelined"


def test_tiles_of_several_turns_must_fit(tmp_path):
    error = refused(tmp_path, "S.dma_copy(a, x + t, 64)\nS.dma_copy(y + t, a, 64)", 'a = S.alloc(5000, "i32", "lsram")')
    assert error.code == "over-allocation" and "40,000  a" in error.message


def test_events_are_counted(tmp_path):
    error = refused(tmp_path, f"{COPY}\n{BACK}", A + "\np, q, r = S.alloc_events(3)", "S.free_events(p, q, r)")
    assert "2 events, and 1 are free" in error.message


def test_stages_are_a_constant_from_two_on(tmp_path):
    kernel = load(
        tmp_path, f"@S.prim_func\ndef k({PARAMETERS}):\n    for t in S.pipelined(n, stages=1):\n        pass\n", "k"
    )
    with pytest.raises(CompassError, match="from 2 on"):
        BuildManager("X2_1204").build(kernel)


def test_pysim_finds_what_a_turn_reads_of_the_turn_before(tmp_path):
    body = (
        "now = S.min(n - t, TILE)\nS.dma_copy(a, x + t, now)\na[TILE - 1] = a[TILE - 1] + 1\nS.dma_copy(y + t, a, now)"
    )
    text = "\n".join("        " + b for b in body.split("\n"))
    kernel = load(
        tmp_path,
        f"@S.prim_func\ndef k({PARAMETERS}):\n    {A}\n    for t in S.pipelined(0, n, TILE):\n{text}\n",
        "k",
    )
    x = np.ones(TILE + 3, "int32")
    with checking("uninit"), pytest.raises(CompassError, match=r"never|none of them"):
        BuildManager("X2_1204").build(kernel)
        kernel(x, x, x.copy(), x.size)
