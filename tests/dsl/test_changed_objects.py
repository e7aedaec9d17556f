"""Objects of the user's that functions change while a kernel is parsed: once, whatever its loops do, so it is refused."""

from dataclasses import dataclass, field
from functools import cached_property
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
