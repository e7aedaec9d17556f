"""Every step of classic schedules with arguments of all kinds: done, or refused by an error of ours, after which nothing
has changed."""

from __future__ import annotations

import inspect
import random

import pytest

from compass_core.errors import CompassError
from compassc import te
from tests.choosing import some

OWNERS = {"stage": te.Stage, "schedule": te.Schedule}
STEPS = [
    (owner, name)
    for owner, kind in OWNERS.items()
    for name, method in inspect.getmembers(kind, inspect.isfunction)
    if hasattr(method, "__wrapped__")
]
CASES = 40


def program():
    x = te.placeholder((6, 8), "int32", name="X")
    b = te.compute((6, 8), lambda i, j: x[i, j] + 1, name="B")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((6,), lambda i: te.sum(b[i, k], axis=k), name="C")
    d = te.compute((6,), lambda i: c[i] * 2, name="D")
    return te.create_schedule(d), (x, b, c, d), k


ANOTHER = program()


def values(s, tensors, k) -> list[object]:
    axes = [*tensors[1].op.axis, *tensors[2].op.axis, *tensors[3].op.axis, k]
    foreign = [ANOTHER[1][1], ANOTHER[1][1].op.axis[0], ANOTHER[0][ANOTHER[1][2]]]
    plain = [3, 0, -2, None, 1.5, "lsram", "x", "unroll", "", [], [tensors[0]], {}, object(), True]
    threads = [te.thread_axis("threadIdx.x"), te.thread_axis((0, 9), "threadIdx.x"), te.thread_axis("vthread.x")]
    return [*axes, *axes, *tensors, s[tensors[2]], *foreign, *plain, *threads, axes[0] + 1 < 3]


def state(s) -> object:
    notes = [
        {a.name: (n.loop, n.thread, n.pragmas) for a, n in t.annotations.items() if n.loop or n.thread}
        for t in s.stages
    ]
    return str(s.trace), notes, [(t.label, list(t.leaf_iter_vars), t.attached, t.inlined, t.scope) for t in s.stages]


@pytest.mark.parametrize(("owner", "step"), STEPS)
def test_wrong_arguments_of_classic_steps_are_refused(owner, step):
    draw = random.Random(step)
    for _ in some(range(CASES)):
        s, tensors, k = program()
        on = s if owner == "schedule" else s[draw.choice(tensors)]
        given: list[object] = []
        for p in list(inspect.signature(getattr(type(on), step)).parameters.values())[1:]:
            if p.kind is p.VAR_POSITIONAL:
                given += draw.choices(values(s, tensors, k), k=draw.randint(0, 3))
            elif p.kind is p.KEYWORD_ONLY or (p.default is not p.empty and draw.random() < 0.4):
                break
            else:
                given.append(draw.choice(values(s, tensors, k)))
        before = state(s)
        try:
            getattr(on, step)(*(given if draw.random() < 0.95 else given[:-1]))
        except CompassError as error:
            assert state(s) == before, (given, error)
            assert len(str(error)) > 20, given
            continue
        try:
            te.lower(s, [tensors[0], tensors[3]], target="X2_1204", simple_mode=True)
        except CompassError:
            pass  # not every schedule has a program


def test_a_step_says_which_argument_is_missing():
    s, tensors, _ = program()
    with pytest.raises(TypeError, match="split: missing a required argument: 'parent'"):
        s[tensors[1]].split()
    with pytest.raises(te.ScheduleError, match="cache_write: give a tensor at least"):
        s.cache_write([], "lsram")
