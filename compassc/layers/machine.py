"""The machine that kernels of layers are planned for: what its configuration says, and what work costs there.

Kernels made within `planned_for` are for its target, others for the default one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TypeVar

from compass_core import switches, targets
from compass_core.costs import estimates
from compass_core.namedtuple import NamedTuple
from compass_core.targets import Target

T = TypeVar("T")
_told: ContextVar[str] = ContextVar("told_target", default="")
_planned: ContextVar[Target | None] = ContextVar("planned_target", default=None)
_loaded = lru_cache(maxsize=16)(targets.load)


@contextmanager
def planned_for(target: str) -> Iterator[None]:
    """Within it, kernels are made for a target: its sizes, its costs and its records count."""
    tokens = _told.set(target), _planned.set(_loaded(target))
    try:
        yield
    finally:
        _told.reset(tokens[0])
        _planned.reset(tokens[1])


@contextmanager
def settled() -> Iterator[None]:
    """Within it, the target stays what it is, so that asking for it costs nothing."""
    token = _planned.set(configuration())
    try:
        yield
    finally:
        _planned.reset(token)


def told_target() -> str:
    """The target that kernels are made for; "" where none is told."""
    return _told.get()


def configuration() -> Target:
    """The target's configuration."""
    return _planned.get() or _loaded(switches.TARGET.get())


class Costs(NamedTuple):
    """What work costs, estimated: cycles before the first byte of a transfer, bytes of a cycle while all TECs of a core
    have transfers, and vector operations that can start in a cycle."""

    startup: float
    speed: float
    vector_units: int

    def transfers(self, size: float, count: float = 1) -> float:
        """Cycles of `count` transfers of `size` bytes together."""
        return count * self.startup + size / self.speed


def costs() -> Costs:
    return _costs(configuration())


@lru_cache(maxsize=16)
def _costs(target: Target) -> Costs:
    model = estimates(target.version)
    shared = model["device_memory_bytes_per_cycle"] / target.tecs
    return Costs(model["dma"]["startup"], min(model["dma"]["bytes_per_cycle"], shared), model["units"]["vector"])


class Share(NamedTuple):
    """A part of a TEC's LSRAM: `parts` of `of` equal ones."""

    parts: int
    of: int = 8

    @property
    def size(self) -> int:
        """Bytes."""
        return configuration().lsram_bytes * self.parts // self.of


def tasks(each: int = 4) -> int:
    """Pieces that work should have at least, for the TECs to share it evenly: so many for each."""
    return each * configuration().tecs


FEW = 64
"""Items whose work is estimated one by one."""


class Tiles(NamedTuple):
    """Images cut in tiles: how many, the rows and columns of an image and of a tile, of which the last ones may be smaller."""

    images: int
    rows: int
    columns: int
    tall: int
    long: int

    @property
    def many(self) -> int:
        """Of all images."""
        return self.images * -(-self.rows // self.tall) * -(-self.columns // self.long)

    def cycles(self, work: Callable[[int, int], Sequence[float]], repeats: int = 1) -> float:
        """Cycles of the TEC with most work, where TECs take items in turn. `work`: the cycles of the items of a tile of so
        many rows and columns, of which there are `repeats` times as many."""
        return self.longest(self.lines(work), repeats)

    def lines(self, of: Callable[[int, int], T]) -> list[tuple[list[tuple[T, int]], int]]:
        """What is `of` tiles of so many rows and columns: lines of them with how many there are of each, and how many of these
        lines an image has."""
        longs = _cut(self.columns, self.long)
        return [([(of(tall, long), n) for long, n in longs], many) for tall, many in _cut(self.rows, self.tall)]

    def longest(self, lines: Sequence[tuple[Sequence[tuple[Sequence[float], int]], int]], repeats: int = 1) -> float:
        """As `cycles`, of the cycles of the items of tiles, by their lines."""
        tecs, items = configuration().tecs, self.many * repeats * len(lines[0][0][0][0])
        if items > FEW:
            total = sum([sum(tile) * n * many for band, many in lines for tile, n in band])
            return -(-items // tecs) * total * self.images * repeats / items
        dealt = [w for band, many in lines for _ in range(many) for tile, n in band for w in [*tile] * (repeats * n)]
        dealt *= self.images
        return max([sum(dealt[first::tecs]) for first in range(tecs)])


def _cut(length: int, piece: int) -> list[tuple[int, int]]:
    """The sizes of the pieces of a length, and how many there are: whole ones, and the rest."""
    many, rest = divmod(length, piece)
    whole = [(piece, many)] if many else []
    return [*whole, (rest, 1)] if rest else whole
