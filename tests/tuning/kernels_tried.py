"""Tasks of a few kernels, each good or bad in a way of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compassc.dsl import script as S
from compassc.tuning.space import Candidate, ListSpace, Space
from compassc.tuning.task import Infeasible, Program, Tolerance, Workload

SIZE = 512


def good(tile: int) -> Any:
    @S.prim_func
    def twice(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
        for i in range(S.get_local_id() * tile, SIZE, S.get_local_size() * tile):
            for j in range(tile):
                y[i + j] = x[i + j] * 2

    return twice


def wrong(tile: int) -> Any:
    @S.prim_func
    def twice(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
        for i in range(S.get_local_id(), SIZE, S.get_local_size()):
            y[i] = x[i] * 2 + (i == 7)

    return twice


def crash(tile: int) -> Any:
    @S.prim_func
    def twice(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
        y[x[0] - 2000000000] = 1

    return twice


def endless(tile: int) -> Any:
    @S.prim_func
    def twice(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
        i = S.i32(0)
        while x[0] == 0:
            i += 1
        y[0] = i

    return twice


def too_large(tile: int) -> Any:
    @S.prim_func
    def twice(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
        room = S.alloc(1 << 20, "int32", scope="lsram")
        S.dma_copy(room, x, SIZE)
        S.dma_copy(y, room, SIZE)

    return twice


def infeasible(tile: int) -> Any:
    raise Infeasible(f"a tile of {tile} is none")


def broken(tile: int) -> Any:
    raise KeyError("no such thing")


KINDS: dict[str, tuple[Callable[[int], Any], str]] = {
    "good": (good, ""),
    "wrong": (wrong, "wrong"),
    "crash": (crash, "crash"),
    "endless": (endless, "timeout"),
    "too_large": (too_large, "build"),
    "infeasible": (infeasible, "infeasible"),
    "broken": (broken, "build"),
}
"""Factories, and what measuring their kernels ends with."""


@dataclass(frozen=True)
class Twice:
    """y = 2 x, by kernels that are named `[kind, tile]`."""

    candidates: Sequence[Candidate]
    name: str = "twice"
    default: Candidate | None = None
    tolerance: Tolerance = field(default_factory=Tolerance)
    workload: Workload = field(default_factory=lambda: Workload("twice", "twice", ((SIZE,),), ("int32",), "X2_1204"))

    @property
    def space(self) -> Space:
        return ListSpace(self.candidates)

    def program(self, candidate: Candidate) -> Program:
        kind, tile = candidate
        return Program(KINDS[kind][0](tile))

    def arguments(self) -> Sequence[Any]:
        return np.arange(SIZE, dtype=np.int32), np.zeros(SIZE, np.int32)

    def expected(self) -> Mapping[int, Any]:
        return {1: 2 * np.arange(SIZE, dtype=np.int32)}


@dataclass(frozen=True)
class Finished:
    """A task of kernels that are there already, with one case of each one's arguments."""

    kernels: Sequence[Any]
    case: tuple[Sequence[Any], Mapping[int, Any]]
    name: str = "finished"
    default: Candidate | None = None
    tolerance: Tolerance = field(default_factory=lambda: Tolerance(1e-2, 1e-2))
    workload: Workload = field(default_factory=lambda: Workload("finished", "finished", (), (), "X2_1204"))

    @property
    def space(self) -> Space:
        return ListSpace(range(len(self.kernels)))

    def program(self, candidate: Candidate) -> Program:
        return Program(self.kernels[candidate])

    def arguments(self) -> Sequence[Any]:
        return self.case[0]

    def expected(self) -> Mapping[int, Any]:
        return self.case[1]
