"""Objects of the user's that functions change while a kernel is parsed: once, whatever its loops do, so it is refused."""

import itertools
from collections import Counter as Tally
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager
from compassc.dsl import script as S


@dataclass
class Counter:
    """Counts what it is told."""

    n: int = 0
    seen: list[int] = field(default_factory=list)

    @cached_property
    def step(self) -> int:
        return 2

    def bump(self) -> int:
        self.n += 1
        return self.n

    def see(self) -> int:
        self.seen.append(self.n)
        return self.n


class Slots:
    __slots__ = ("n",)

    def __init__(self) -> None:
        self.n = 0

    def bump(self) -> int:
        self.n += 1
        return self.n


def told(counter: Any) -> int:
    found: int = counter.bump()
    return found


COUNTER = Counter()


def by_method(counter: Any) -> Any:
    @S.prim_func
    def counted(y: S.ptr("i32", "global")):
        for i in range(4):
            y[i] = counter.bump()

    return counted


def by_function(counter: Any) -> Any:
    @S.prim_func
    def counted(y: S.ptr("i32", "global")):
        for i in range(4):
            if i > y[0]:
                y[i] = told(counter) + i

    return counted


def by_list(counter: Any) -> Any:
    @S.prim_func
    def counted(y: S.ptr("i32", "global")):
        for i in range(4):
            y[i] = counter.see()

    return counted


def of_module(counter: Any) -> Any:
    @S.prim_func
    def counted(y: S.ptr("i32", "global")):
        for i in range(4):
            y[i] = COUNTER.bump()

    return counted


@pytest.mark.parametrize("make", [by_method, by_function, by_list, of_module])
@pytest.mark.parametrize("kind", [Counter, Slots])
def test_a_change_in_a_loop_of_the_run_is_refused(make, kind):
    if make is by_list and kind is Slots:
        kind = Counter
    with pytest.raises(CompassError, match=r"\.(n|seen)' is changed here while the kernel is compiled, once") as caught:
        BuildManager().build(make(kind()))
    assert caught.value.code == "depends-on-run"
    assert caught.value.span is not None and caught.value.span.file == __file__


def test_other_uses_of_objects_stay_what_they_are():
    counter = Counter()

    @S.prim_func
    def counted(y: S.ptr("i32", "global")):
        first = S.i32(counter.bump())  # outside of blocks
        for i in range(4):
            own = S.meta_var(Counter())  # an object of the turn's own
            y[i] = first + own.bump() + counter.step  # a result that is kept
        for k in (4, 5):  # unrolled
            y[k] = counter.bump()

    y = np.zeros(6, "int32")
    BuildManager().build(counted)(y)
    assert list(y) == [4, 4, 4, 4, 2, 3]


NUMBER, ITEMS, ARRAY, TALLY, NAMED = 0, [Counter()], np.zeros(2, "int32"), Tally(), SimpleNamespace(n=0)
CYCLE, COUNT, LEFT = itertools.cycle([1, 2]), itertools.count(), iter(range(100))


def by_number() -> int:
    global NUMBER
    NUMBER += 1
    return NUMBER


def by_array() -> int:
    ARRAY[1] += 1
    return int(ARRAY[1])


def by_tally() -> int:
    TALLY["a"] += 1
    return TALLY["a"]


def by_name() -> int:
    NAMED.n += 1
    return NAMED.n


def kept(seen: list[int] = []) -> int:  # noqa: B006
    seen.append(1)
    return len(seen)


def by_cell() -> Any:
    n = 0

    def bump() -> int:
        nonlocal n
        n += 1
        return n

    return lambda: bump()


def generated() -> Any:
    n = 0
    while True:
        n += 1
        yield n


CHANGES = {
    "NUMBER": by_number,
    "ITEMS[0].n": lambda: ITEMS[0].bump(),
    "COUNTER.n": lambda: [told(c) for c in (COUNTER,)].pop(),
    "ARRAY": by_array,
    "TALLY": by_tally,
    "NAMED.n": by_name,
    "helper.__defaults__[0]": kept,
    "n": by_cell(),
    "helper.n": Counter().bump,
    "helper.args[0].n": partial(told, Counter()),
    "CYCLE": lambda: next(CYCLE),
    "COUNT": lambda: next(COUNT),
    "LEFT": lambda: next(LEFT),
    "helper": generated().__next__,
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_by_functions_of_functions_is_refused(what):
    helper = CHANGES[what]

    @S.prim_func
    def counted(y: S.ptr("i32", "global")):
        for i in range(4):
            y[i] = helper()

    with pytest.raises(CompassError) as caught:
        BuildManager().build(counted)
    assert caught.value.message.startswith(f"{what!r} is changed here while the kernel is compiled, once")


COUNTED = Counter()


@S.prim_func
def often(y: S.ptr("i32", "global"), i: S.i32):
    y[i] = COUNTED.bump()


@S.macro
def pasted(y, i):
    y[i] = COUNTED.bump()


@S.prim_func
def calls(y: S.ptr("i32", "global")):
    often(y, 0)
    often(y, 1)


@S.prim_func
def pastes(y: S.ptr("i32", "global")):
    for i in range(4):
        pasted(y, i)


@S.prim_func
def may_not(y: S.ptr("i32", "global")):
    y[1] = COUNTED.bump() if y[0] > 5 else 7


@S.prim_func
def both(y: S.ptr("i32", "global")):
    y[1] = y[0] > 5 and COUNTED.bump() > 1


@S.prim_func
def again(y: S.ptr("i32", "global")):
    while y[0] < COUNTED.bump():
        y[0] += 1


@S.prim_func
def tried(y: S.ptr("i32", "global")):
    for i in S.unroll(4):
        y[i] = COUNTED.bump()


@pytest.mark.parametrize("kernel", [calls, pastes, may_not, both, again, tried], ids=lambda k: k.__name__)
def test_a_change_where_the_text_is_read_once_is_refused(kernel):
    with pytest.raises(CompassError, match="'COUNTED.n' is changed (here|in S.unroll)"):
        BuildManager().build(kernel)
