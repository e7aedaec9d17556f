"""Several targets in one statement: all values are those from before, whatever they are, compiled and in PySim."""

import random
from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager, load_kernels, parse
from compassc.dsl import script as S

BITS = 4


@S.prim_func
def radix_sort(x: S.ptr("u32", "global"), out: S.ptr("u32", "global"), n: S.i32):
    if S.get_local_id() == 0:
        src, dst = S.alloc(256, "u32", "lsram"), S.alloc(256, "u32", "lsram")
        places = S.alloc(16, "i32", "lsram")
        S.dma_copy(src, x, n)
        for digit in range(3):  # an odd number of turns: the result is in the other memory
            for k in range(16):
                places[k] = 0
            for i in range(n):
                places[S.i32((src[i] >> S.u32(digit * BITS)) & 15)] += 1
            start = 0
            for k in range(16):
                start, places[k] = start + places[k], start
            for i in range(n):
                k = S.i32((src[i] >> S.u32(digit * BITS)) & 15)
                dst[places[k]] = src[i]
                places[k] += 1
            src, dst = dst, src
        S.dma_copy(out, src, n)


def test_sorting_between_two_memories() -> None:
    given = np.random.default_rng(0).integers(0, 1 << 12, 200).astype("uint32")
    for run in (BuildManager("X2_1204").build(radix_sort), radix_sort):
        out = np.zeros(200, "uint32")
        run(given, out, 200)
        assert np.array_equal(out, np.sort(given))


HEAD = """from compassc.dsl import script as S

def reversed_(*values):
    return values[::-1]

@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    p0, p1, p2 = x, x + 8, x + 16
    i0, i1, i2 = 1, 2, 3
    v0, v1, v2 = S.vload(x), S.vload(x + 8), S.vload(x + 16)
    m0, m1, m2 = v0 > v1, v1 > 9, v2 < 9
    b0, b1, b2 = x[0] > x[1], x[2] > x[3], x[4] > x[5]
    l0, l1, l2 = S.alloc(8, "i32", "lsram"), S.alloc(8, "i32", "lsram"), S.alloc(8, "i32", "lsram")
    S.vstore(v0, l0)
    S.vstore(v1, l1)
    S.vstore(v2, l2)
    a = i0.addr
    w = v0.addr.as_ptr("i32")
"""
TAIL = """    if S.get_local_id() == 0:
        for k, p in enumerate((p0, p1, p2, l0, l1, l2)):
            y[k] = p[0]
        for k, i in enumerate((i0, i1, i2, a[0], w[0])):
            y[8 + k] = i
        for k, v in enumerate((v0, v1, v2)):
            S.vstore(v, y + 16 + 8 * k)
        for k, m in enumerate((m0, m1, m2)):
            S.vstore(v0, y + 40 + 8 * k, mask=m)
        for k, b in enumerate((b0, b1, b2)):
            y[13 + k] = S.i32(b)
"""
VALUES = {
    "p": ("{p}", "{p} + ({i} & 3)", "p0", "p1"),
    "l": ("{l}",),
    "i": ("{i}", "{i} + {j}", "{p}[{i} & 7]", "{l}[{i} & 7]", "a[0]", "w[1]", "{v}[1]"),
    "v": ("{v}", "{v} + {i}", "S.vload({l})", "{v} if {m} else {w}"),
    "m": ("{m}", "{v} > {w}", "~{m}"),
    "b": ("{b}", "{i} < {j}", "not {b}"),
}
ELEMENTS = ("{l}[{i} & 7]", "{v}[{i} & 7]", "a[0]", "w[2]")


def value(rng: random.Random, kind: str) -> str:
    letters = {k: f"{k}{rng.randrange(3)}" for k in "plivmb"}
    second = {"j": f"i{rng.randrange(3)}", "w": f"v{rng.randrange(3)}"}
    return rng.choice(VALUES[kind]).format(**letters, **second)


def statement(rng: random.Random) -> str:
    """A statement with several targets, variables and elements, in one of its forms."""
    names = rng.sample([f"{k}{n}" for k in "plivmb" for n in range(3)], rng.randint(2, 4))
    if rng.random() < 0.4:
        kind = rng.choice("plivmb")
        names = rng.sample([f"{kind}{n}" for n in range(3)], rng.randint(2, 3))
    targets = [(name, value(rng, name[0])) for name in names]
    if rng.random() < 0.4:
        place = rng.choice(ELEMENTS).format(**{k: f"{k}{rng.randrange(3)}" for k in "liv"})
        targets.insert(rng.randrange(len(targets)), (place, value(rng, "i")))
    left, right = (list(side) for side in zip(*targets))
    form = rng.randrange(4)
    if form == 0:
        return f"[{', '.join(left)}] = [{', '.join(right)}]"
    if form == 1 and len(left) > 2:
        return f"{left[0]}, ({', '.join(left[1:])}) = {right[0]}, ({', '.join(right[1:])})"
    if form == 2:
        return f"{', '.join(left)} = reversed_({', '.join(right[::-1])})"
    return f"{', '.join(left)} = {', '.join(right)}"


@pytest.mark.parametrize("seed", range(3))
def test_any_targets_take_the_values_from_before(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    lines = [statement(rng) for _ in range(25)]
    path = tmp_path / "kernel.py"
    path.write_text(HEAD + "".join(f"    {line}\n" for line in lines) + TAIL)
    kernel = load_kernels(path).entry("k")
    found = []
    for run in (BuildManager("X2_1204").build(kernel), kernel):
        found.append(np.zeros(64, "int32"))
        run(np.arange(64, dtype="int32") * 7 % 31, found[-1])
    assert np.array_equal(*found), path.read_text()


@S.macro
def moved_on(p):
    p = p + 1


@S.prim_func
def moves_an_address(x: S.ptr("i32", "global")):
    moved_on(x + 8)


def test_a_macro_cannot_assign_an_address_of_the_caller() -> None:
    for run in (
        lambda: moves_an_address(np.zeros(16, "int32")),
        lambda: BuildManager("X2_1204").build(moves_an_address),
    ):
        with pytest.raises(CompassError, match="no variable of the caller"):
            run()


KEPT = """
    p = S.alloc(8, "i32", "lsram")
    p[0] = 7
    for i in range(4):
        t = S.alloc(8, "i32", "lsram")
        t[0] = i
{lines}
"""
LINES = {
    "y[i] = p[0]; p = t": False,
    "y[i] = p[0]; q = t + 1; p = q": False,
    "if i > 2: y[i] = p[0]; p = t": False,
    "if i > 2: p = t; y[i] = p[0]": False,
    "p = t; y[i] = p[0]": True,
    'p = S.alloc(8, "i32", "lsram"); p[0] = i; y[i] = p[0]': True,
    "q = t; y[i] = q[0]": True,
}


@pytest.mark.parametrize("lines", LINES)
def test_a_turn_keeps_no_array_of_its_own_for_the_next_one(lines: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    text = KEPT.format(lines="\n".join(f"        {line}" for line in lines.split("; ")))
    path.write_text(HEAD.partition("    p0,")[0] + text)
    kernel = load_kernels(path).entry("k")
    if LINES[lines]:
        parse(kernel, "X2_1204")
        return
    with pytest.raises(CompassError, match="for the next turn") as told:
        parse(kernel, "X2_1204")
    assert told.value.code == "kept-array" and "p = " in path.read_text().splitlines()[told.value.span.line - 1]
