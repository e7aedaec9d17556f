"""The model of a kernel's text: operations, regions that run as a whole, and the cost of a run of a region."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from compass_core.dataclass import dataclass
from compass_runtime.profile.costs import op_classes

if TYPE_CHECKING:
    from compass_runtime.profile.costs import CostModel

Location = tuple[str, int]
"""File and line."""


@dataclass(frozen=True)
class Op:
    """An operation: its class, the line it stands on, and where its operands come from."""

    kind: str
    place: Location
    operands: tuple[int, ...] = ()
    """Operations of the same region, by number; -1 - i: what variable i of the region had when the region began."""
    lanes: int = 0
    """Lanes of its vectors; 0: a scalar operation."""
    element: int = 0
    """Bytes of an element."""
    mask: int | None = None
    """The number of the counter that sums up active lanes; None: all are."""
    external: bool = False
    """Whether it loads from or stores to device memory."""


@dataclass
class Region:
    """Operations that always run together. Its number is that of the counter that says how often."""

    number: int
    ops: list[Op] = field(default_factory=list)
    variables: list[tuple[str, str]] = field(default_factory=list)
    """Variables that are read before the region writes them."""
    written: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    """The operations that give the variables their values at the end."""
    whole_loop: bool = False
    """Whether it is all of a loop's body."""
    cycles: int = 0


UNROLLED = 4
"""Runs of a loop that is one region overlap as if the compiler had unrolled it so often."""


def cost(region: Region, model: CostModel) -> int:
    """Estimated cycles of one run of a region."""
    if not region.whole_loop:
        return schedule(region, model, 1)
    return -(-schedule(region, model, UNROLLED) // UNROLLED)


def schedule(region: Region, model: CostModel, runs: int) -> int:
    """Cycles of some runs one after the other: each operation starts as soon as its operands are there and a unit and
    an issue slot are free. Results that nothing uses are not waited for."""
    slots = _Slots(model)
    ready: list[int] = []
    end = 0
    for run in range(runs):
        first = run * len(region.ops)
        for op in region.ops:
            earliest = max((ready[i] for i in _operands(op, region, first)), default=0)
            interval = model.interval(op.kind, op.external)
            start = slots.take(op.kind, interval, earliest)
            ready.append(start + model.latency(op.kind, op.external))
            end = max(end, start + interval)
    return end


class _Slots:
    """Which cycles of the units and of the issue are taken."""

    def __init__(self, model: CostModel) -> None:
        self._width = model.issue_width
        self._issued: dict[int, int] = {}
        self._busy: dict[str, list[set[int]]] = {unit: [set() for _ in range(n)] for unit, n in model.units.items()}

    def take(self, kind: str, interval: int, earliest: int) -> int:
        """Takes a unit for `interval` cycles from the first cycle on that is possible; gives that cycle."""

        units = self._busy[op_classes()[kind].unit]
        start = earliest
        while True:
            cycles = range(start, start + interval)
            unit = next((unit for unit in units if unit.isdisjoint(cycles)), None)
            if unit is not None and self._issued.get(start, 0) < self._width:
                unit.update(cycles)
                self._issued[start] = self._issued.get(start, 0) + 1
                return start
            start += 1


def _operands(op: Op, region: Region, first: int) -> Iterator[int]:
    """Where the operands of an operation come from, counted through all runs; `first` is where this run begins."""
    for index in op.operands:
        if index >= 0:
            yield first + index
        elif first:
            last = region.written.get(region.variables[-1 - index], ())
            yield from (first - len(region.ops) + i for i in last if i >= 0)


def shares(region: Region, model: CostModel) -> dict[Location, float]:
    """The region's cycles divided among its lines, by how long their operations keep the units busy."""
    weights: dict[Location, int] = {}
    for op in region.ops:
        weights[op.place] = weights.get(op.place, 0) + model.interval(op.kind, op.external)
    total = sum(weights.values())
    return {place: region.cycles * weight / total for place, weight in weights.items()}
