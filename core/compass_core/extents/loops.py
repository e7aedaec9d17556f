"""Loops whose counter, and what else moves evenly, are known for each iteration."""

from __future__ import annotations

from collections.abc import Callable

from compass_core.dataclass import dataclass

from .structure import Code
from .values import Address, Env, Form, Value, add, scale


class Break(Exception):
    pass


class Returned(Exception):
    def __init__(self, value: Value) -> None:
        self.value = value


@dataclass
class Loop:
    """`count` iterations of `body`. In each, the variables `moving` move on by so much; `others` change otherwise.

    `leaves`: the body may end the loop.
    """

    body: list[Code]
    env: Env
    count: int
    moving: dict[str, int]
    others: list[str]
    leaves: bool


def moved(env: Env, moving: dict[str, int], k: int | Form) -> Env:
    """The variables at the start of iteration `k`."""
    found = dict(env)
    for name, step in moving.items():
        value = env[name]
        by = scale(k, step) if isinstance(k, Form) else k * step
        if isinstance(value, Address):
            found[name] = Address(value.root, add(value.offset, by))
        elif value is not None:
            found[name] = add(value, by)
    return found


def iteration(loop: Loop, k: int | Form) -> Env:
    """The moving variables at the start of iteration `k` of a loop."""
    return moved({name: loop.env[name] for name in loop.moving}, loop.moving, k)


def _below(distance: int, step: int) -> int | None:
    """The number of k from 0 on for which `distance + k * step < 0` holds."""
    if distance >= 0:
        return 0
    return -(distance // step) if step > 0 else None


def _unequal(distance: int, step: int) -> int | None:
    return -distance // step if distance % step == 0 and -distance // step >= 0 else None


DISTANCE: dict[str, Callable[[int, int], int | None]] = {
    "lt": _below,
    "le": lambda d, s: _below(d - 1, s),
    "gt": lambda d, s: _below(-d, -s),
    "ge": lambda d, s: _below(-d - 1, -s),
    "ne": _unequal,
}
"""How often a loop runs, from the difference of both sides of its condition at the start and what each iteration adds."""
