"""Accesses one after the other whose places differ by constants only: the farthest of them stands for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from compass_core.dataclass import dataclass

from .reach import FARTHEST
from .structure import Code
from .values import Address, Env, Form, Linear, add, bounds, scale

LEAST = 6
"""Statements of a body, and accesses of a run, from which on it is worth a look."""
_CUT = 1 << 31
"""Numbers nearer to 0 are the same in every type that a sum may be cut to on its way."""


@dataclass
class _Sum:
    """`sum(factor * variable) + constant`. No part of it is farther from 0 than `room` and what the variables add."""

    terms: dict[str, int]
    constant: int = 0
    room: int = 0
    steps: int = 0

    def takes(self, e: object, factor: int) -> bool:
        """Adds `factor * e`; false where that is no such sum, or has a variable twice: its bounds would be others."""
        if type(e) is int:
            self.constant += e * factor
            self.room += abs(e * factor)
            return True
        self.steps += 1
        if type(e) is str:
            new = e not in self.terms
            self.terms[e] = factor
            return new
        if type(e) is not list:
            return False
        if len(e) == 2:
            return e[0] in ("i32", "i64") and self.takes(e[1], factor)
        if len(e) != 3:
            return False
        op, a, b = e
        if op == "mul":
            if type(a) is int:
                a, b = b, a
            return type(b) is int and b != 0 and self.takes(a, factor * b)
        return op in ("add", "sub") and self.takes(a, factor) and self.takes(b, -factor if op == "sub" else factor)


@dataclass
class Run:
    """Some accesses. `farthest`: by pointer and terms, where the last one of them ends, and the most room.

    `steps`: of all of them one by one.
    """

    statements: list[Code]
    farthest: dict[tuple[str, tuple[tuple[str, int], ...]], tuple[int, int]]
    steps: int = 0

    def takes(self, s: Code) -> bool:
        """Adds an access; false where it is none of a known size at such a place."""
        if type(s) is not list or len(s) != 4 or s[0] != "access" or type(s[3]) is not int or s[3] <= 0:
            return False
        found = _Sum({}, s[3], 0, 1)
        pointer = s[1]
        while type(pointer) is list and len(pointer) == 3 and pointer[0] == "addr":
            found.steps += 1
            if not found.takes(pointer[2], 1):
                return False
            pointer = pointer[1]
        if type(pointer) is not str or not found.takes(s[2], 1):
            return False
        key = pointer, tuple(found.terms.items())
        end, room = self.farthest.get(key, (found.constant, 0))
        self.farthest[key] = max(end, found.constant), max(room, found.room)
        self.statements.append(s)
        self.steps += found.steps + 1
        return True

    def ends(self, env: Env) -> list[tuple[str, Linear]] | None:
        """Each tensor that is accessed, and up to which byte; None where they are better followed one by one."""
        found: list[tuple[str, Linear]] = []
        for (pointer, terms), (end, room) in self.farthest.items():
            base = env.get(pointer)
            if type(base) is not Address or not _is_whole(base.offset):
                return None
            total = add(base.offset, end)
            for name, factor in terms:
                value = env.get(name)
                if not _is_whole(value):
                    return None
                room += abs(factor) * max(map(abs, bounds(value)))
                total = add(total, scale(value, factor) if isinstance(value, Form) else value * factor)
            if room >= _CUT or not _is_whole(total) or bounds(total)[1] >= FARTHEST:
                return None
            if base.root is not None:
                found.append((base.root, total))
        return found


def _is_whole(value: object) -> TypeGuard[int | Form]:
    """Whether a value is a whole number within useful bounds."""
    if type(value) is Form:
        return not value.reason and type(value.low) is int and type(value.high) is int
    return type(value) is int


class Runs:
    """Bodies with runs in the place of accesses; each body is read once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[list[Code], list[Code | Run]]] = {}

    def of(self, body: list[Code]) -> Sequence[Code | Run]:
        if type(body) is not list or len(body) < LEAST:
            return body
        known = self._known.get(id(body))
        if known is None:
            known = self._known[id(body)] = (body, _read(body))  # the body, so that its id stays its own
        return known[1]


def _read(body: list[Code]) -> list[Code | Run]:
    found: list[Code | Run] = []
    run = Run([], {})
    for s in body:
        if not run.takes(s):
            found += [run] if len(run.statements) >= LEAST else run.statements
            found.append(s)
            run = Run([], {})
    return found + ([run] if len(run.statements) >= LEAST else [*run.statements])
