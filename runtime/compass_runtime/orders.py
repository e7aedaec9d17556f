"""Runs whose TECs take turns in an order that a seed draws, and the search for an order that changes the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Note, UsageError
from compass_runtime.compare import compare

if TYPE_CHECKING:
    Results = Mapping[str, Array]

FIRST_SEED = 1
"""The order that others are compared with."""
_LARGEST_SEED = 2**64 - 1
_HOW = "--schedule seed=7 runs in one order, --schedule explore=200 compares the results of many"


@dataclass(frozen=True)
class ScheduleOptions:
    """The options of `--schedule`: the seed of one order, or the number of orders to explore; the other is 0."""

    seed: int = 0
    explore: int = 0

    @classmethod
    def parse(cls, text: str) -> ScheduleOptions:
        """`seed=N` or `explore=N`; UsageError for anything else."""
        name, _, number = text.partition("=")
        if name not in ("seed", "explore") or not number.isdecimal():
            raise UsageError(f"--schedule: '{text}' is neither seed=N nor explore=N", code="bad-schedule", help=_HOW)
        return cls(**{name: int(number)}).checked()

    def checked(self) -> ScheduleOptions:
        """The same; UsageError when a number is out of range or both are given."""
        if (self.seed != 0) == (self.explore != 0):
            raise UsageError(
                "a schedule has either a seed from 1 on or a number of orders to explore",
                code="bad-schedule",
                help=_HOW,
            )
        if not 0 <= self.seed <= _LARGEST_SEED or (self.explore and not 2 <= self.explore <= 10**6):
            raise UsageError(
                "a seed is at most 2**64 - 1; orders to explore are 2 to 1000000", code="bad-schedule", help=_HOW
            )
        return self


def run_in_order(run: Callable[[int], Results], seed: int) -> Results:
    """The result of `run(seed)`; an error names the order in which it occurred."""
    try:
        return run(seed)
    except CompassError as error:
        error.notes = (*error.notes, Note(f"this was in the order of seed {seed}: --schedule seed={seed} repeats it"))
        raise


def explore(run: Callable[[int], Results], orders: int) -> Results:
    """Runs in `orders` orders. The results, which are the same in all of them; CompassError naming the first seed whose
    results differ, and everything that goes wrong in the kernel in one of them."""
    first = {name: array.copy() for name, array in run_in_order(run, FIRST_SEED).items()}
    for seed in range(FIRST_SEED + 1, FIRST_SEED + orders):
        for name, array in run_in_order(run, seed).items():
            if array.tobytes() != first[name].tobytes():
                raise _dependence(name, array, first[name], seed)
    return first


def _dependence(name: str, got: Array, wanted: Array, seed: int) -> CompassError:
    mismatch = compare(name, got, wanted, 0.0, 0.0)
    lines = mismatch.lines() if mismatch else [f"'{name}' differs in the bits of NaN or zero"]
    return CompassError(
        f"the result depends on the order in which the TECs run: seed {seed} gives another one than seed {FIRST_SEED}",
        code="order-dependent",
        notes=tuple(line.replace("expected", f"with seed {FIRST_SEED}") for line in lines),
        help=f"--schedule seed={seed} repeats this order; look for memory that one TEC writes and another one uses "
        "without a barrier between them, and for a DMA transfer that nobody waits for",
    )
