"""Every step with arguments of all kinds: done, or refused by an error of ours, after which nothing has changed."""

from __future__ import annotations

import inspect
import random
from collections import Counter

import pytest

from compass_core.errors import CompassError
from compassc import te, tir
from compassc.tir.trace import KINDS

STEPS = sorted(kind.method for kind in KINDS.values())
CASES = 25


def program():
    x, w = te.placeholder((6, 8), "int32", name="X"), te.placeholder((8, 4), "int32", name="W")
    k = te.reduce_axis((0, 8), name="k")
    inside = lambda i, j: te.all(i >= 1, i < 7, j >= 1, j < 9)
    p = te.compute((8, 10), lambda i, j: te.if_then_else(inside(i, j), x[i - 1, j - 1], 0), name="P")
    b = te.compute((6, 4), lambda i, j: te.sum(p[i + 1, k + 1] * w[k, j], axis=k), name="B")
    return te.create_prim_func([x, w, te.compute((6, 4), lambda i, j: b[i, j] + 1, name="C")])


FUNCTION = program()
ANOTHER = tir.Schedule(FUNCTION)


def values(s: tir.Schedule) -> dict[str, list[object]]:
    """Arguments by what they are: the first ones mostly what a step takes."""
    loops = [s.get_loops(b)[i] for b, i in (("B", 0), ("B", 2), ("C", 0), ("P", 1))]
    blocks = [*map(s.get_block, ("B", "P", "C")), "B", "C"]
    plain = [None, 3, -1, 99, 0, True, 1.5, "nothing", "", [], [None], [0], [-5, 2], [2, 2], [None, None], {}, object()]
    words = [("read", 0), ("write", 7), "lsram", "threadIdx.x", "read", "int8", "local"]
    maps = [lambda i, j: (j, i), lambda: (), lambda i, j: "x", lambda i: i]
    symbols = [ANOTHER.get_loops("B")[0], ANOTHER.get_block("B"), s.get_loops("B"), blocks[:2]]
    return {"loop": loops, "block": blocks, "": [*plain, *words, *maps, *symbols, *loops[:1], *blocks[:1]]}


def arguments(draw: random.Random, step: str, s: tir.Schedule) -> list[object]:
    known, made = values(s), []
    for p in list(inspect.signature(getattr(tir.Schedule, step)).parameters.values())[1:]:
        if p.kind is p.VAR_POSITIONAL:
            made += draw.choices(known["loop"] if draw.random() < 0.7 else known[""], k=draw.randint(0, 3))
        elif p.kind is p.KEYWORD_ONLY or (p.default is not p.empty and draw.random() < 0.6):
            break
        else:
            made.append(draw.choice(known[p.name if p.name in known and draw.random() < 0.7 else ""]))
    return made if draw.random() < 0.95 else made[:-1]


@pytest.mark.parametrize("step", STEPS)
def test_wrong_arguments_are_refused_and_change_nothing(step):
    draw, ends = random.Random(step), Counter()
    s = tir.Schedule(FUNCTION, seed=1)
    for _ in range(CASES):
        given = arguments(draw, step, s)
        before, steps = s.mod, len(s.trace)
        try:
            getattr(s, step)(*given)
        except CompassError as error:
            assert s.mod is before and len(s.trace) == steps, (given, error)
            assert len(str(error)) > 20 and "Traceback" not in str(error), (given, error)
            ends["refused"] += 1
        else:
            s.mod.script()
            s = tir.Schedule(FUNCTION, seed=1)
            ends["done"] += 1
    assert ends["refused"] or step == "enter_postproc"


def test_a_wrong_type_is_named():
    s = tir.Schedule(FUNCTION)
    (i, *_), b = s.get_loops("B"), s.get_block("B")
    for step, message in (
        (lambda: s.split(i, 3), "split: factors is a list, got int"),
        (lambda: s.pad_einsum(b, [1, "2", 3]), "pad_einsum: padding.1. is an int, got str"),
        (lambda: s.compute_at(b, i, False, "last"), "compute_at: index is an int, got str"),
        (lambda: s.cache_read(b, 0, "lsram", b), "cache_read: consumer_blocks is a list of BlockRV, got BlockRV"),
        (lambda: s.split(i, [2, None], "yes"), "split: preserve_unit_iters is a bool, got str"),
        (lambda: s.parallel(), "parallel: missing a required argument: 'loop'"),
        (lambda: s.get(3), "a symbol of a block or loop is expected, got int"),
    ):
        with pytest.raises(TypeError, match=message):
            step()
