"""Memory planning: the section of aipu.bin that each tensor of a graph is in, and its offset there.

A section is memory that a job allocates as one piece. Inputs, outputs and tensors of unknown size have one each;
intermediates share one, in which tensors that are not needed at the same time overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from compass_core.aipubin.dtypes import element_dtype
from compass_core.aipubin.layout import PAGE, REGION_SIZE, Kind
from compass_core.errors import Note
from compass_core.namedtuple import NamedTuple
from compassc.gbuilder.nodes import Nodes
from compassc.gbuilder.plugin_api import Tensor

ALIGN = 64
"""Alignment of a tensor in the shared section: what a vector load or a DMA transfer wants at most."""


class Step(NamedTuple):
    """The tensors that one launch reads and writes."""

    reads: tuple[Tensor, ...]
    writes: tuple[Tensor, ...]


class Role(NamedTuple):
    """The role of a tensor in the aipu.bin: its kind, and its number among the tensors of that kind."""

    kind: Kind
    number: int = 0


class Placement(NamedTuple):
    """A tensor in a section. A tensor may have two roles: a graph's input can be its output, too."""

    tensor: Tensor
    roles: tuple[Role, ...]
    offset: int = 0


class PlannedSection(NamedTuple):
    """`size` bytes of device memory and the tensors in them."""

    size: int
    placements: tuple[Placement, ...]


class Plan(NamedTuple):
    """`peak`: bytes of the shared section; `floor`: of the largest set of tensors alive at once, which no plan can go
    below; `unshared`: of all intermediates together."""

    sections: tuple[PlannedSection, ...]
    peak: int = 0
    floor: int = 0
    unshared: int = 0


class LiveRange(NamedTuple):
    """An intermediate tensor: its padded size, and the first and last step that needs it."""

    tensor: Tensor
    size: int
    first: int
    last: int


def nbytes(tensor: Tensor) -> int:
    """Bytes of a tensor; 0 when a dim is not known at build time."""
    total = element_dtype(str(tensor.dtype)).size
    for dim in tensor.shape:
        total *= max(dim, 0)
    return total


def owner(tensor: Tensor) -> Tensor:
    """The tensor that owns the memory of a view; a tensor that is not a view owns its own."""
    return tensor.memory_offset().resolve()[0]


def plan(graph: Nodes, steps: Sequence[Step]) -> Plan:
    """A place for every tensor that the outside or a step uses. Empty and dynamic tensors get one page."""
    roles: dict[int, list[Role]] = {}
    tensors: dict[int, Tensor] = {}
    for kind, listed in ((Kind.INPUT, graph.inputs), (Kind.OUTPUT, graph.outputs)):
        for index, tensor in enumerate(listed):
            tensors[id(tensor)] = tensor
            roles.setdefault(id(tensor), []).append(Role(kind, index))
    ranges = _live_ranges(steps, set(tensors))
    fixed = [live for live in ranges if not live.size]
    for live in fixed:
        tensors[id(live.tensor)] = live.tensor
        roles[id(live.tensor)] = [Role(Kind.INTERMEDIATE)]
    sections = [
        PlannedSection(nbytes(tensor) or PAGE, (Placement(tensor, tuple(roles[key])),))
        for key, tensor in tensors.items()
    ]
    shared = [live for live in ranges if live.size]
    if not shared:
        return Plan(tuple(sections))
    offsets, peak = _share(shared)
    placements = tuple(
        Placement(live.tensor, (Role(Kind.INTERMEDIATE),), at) for live, at in zip(shared, offsets, strict=True)
    )
    sections.append(PlannedSection(peak, placements))
    return Plan(tuple(sections), peak, _floor(shared, len(steps)), sum(live.size for live in shared))


LARGEST = 5
"""Tensors that the error for a graph beyond the device's memory names."""


def check_capacity(graph: Nodes, planned: Plan, constants: int) -> None:
    """CompassError where tensors, and constants of so many bytes, do not fit the device's memory together."""
    ends = {"inputs": graph.inputs, "outputs": graph.outputs}
    parts = {what: sum(map(nbytes, tensors)) for what, tensors in ends.items()}
    parts |= {"intermediates": planned.peak, "constants": constants}
    whole = sum(-(-section.size // PAGE) * PAGE for section in planned.sections) + constants
    if whole <= REGION_SIZE:
        return
    placed = {id(p.tensor): p.tensor for section in planned.sections for p in section.placements}
    largest = sorted(placed.values(), key=nbytes, reverse=True)[:LARGEST]
    error = graph.graph.error(
        None,
        f"the graph needs {whole:,} bytes of device memory ({', '.join(f'{n:,} of {what}' for what, n in parts.items() if n)}), "
        f"but there are {REGION_SIZE:,}",
        "make the tensors smaller, or cut the graph into several",
        code="graph-memory",
    )
    shown = ", ".join(f"'{t.name}' {list(t.shape)} {t.dtype} ({nbytes(t):,} bytes)" for t in largest)
    error.notes = (*error.notes, Note(f"the largest tensors are {shown}"))
    raise error


def _live_ranges(steps: Sequence[Step], outside: set[int]) -> list[LiveRange]:
    """The intermediates, in the order of their first use."""
    found: dict[int, tuple[Tensor, int, int]] = {}
    for number, step in enumerate(steps):
        for tensor in map(owner, (*step.reads, *step.writes)):
            if not tensor.is_constant and id(tensor) not in outside:
                first = found[id(tensor)][1] if id(tensor) in found else number
                found[id(tensor)] = tensor, first, number
    return [LiveRange(tensor, -(-nbytes(tensor) // ALIGN) * ALIGN, a, b) for tensor, a, b in found.values()]


def _floor(ranges: Iterable[LiveRange], steps: int) -> int:
    """Bytes of the largest set of tensors that are alive in one step."""
    alive = [0] * (steps + 1)
    for live in ranges:
        alive[live.first] += live.size
        alive[live.last + 1] -= live.size
    total = most = 0
    for change in alive:
        total += change
        most = max(most, total)
    return most


_ORDERS: tuple[Callable[[LiveRange], tuple[int, ...]], ...] = (
    lambda live: (-live.size, live.first),
    lambda live: (live.first, -live.size),
    lambda live: (-live.size * (live.last - live.first + 1), live.first),
    lambda live: (live.first - live.last, -live.size),
)
"""Orders of placing; none is the best for all graphs, and all are quick, so the best result counts."""


def _share(ranges: Sequence[LiveRange]) -> tuple[list[int], int]:
    """An offset for each tensor so that no two alive at once overlap, and the bytes that needs."""
    best: tuple[list[int], int] | None = None
    conflicts = _interference(ranges)
    for order in _ORDERS:
        numbers = sorted(range(len(ranges)), key=lambda i: order(ranges[i]))
        offsets: dict[int, int] = {}
        for i in numbers:
            taken = sorted((offsets[j], offsets[j] + ranges[j].size) for j in conflicts[i] if j in offsets)
            offsets[i] = _gap(taken, ranges[i].size)
        peak = max(offsets[i] + ranges[i].size for i in offsets)
        if best is None or peak < best[1]:
            best = [offsets[i] for i in range(len(ranges))], peak
    assert best is not None, "there are orders"
    return best


def _interference(ranges: Sequence[LiveRange]) -> list[list[int]]:
    """For each live range the numbers of those that some step needs together with it. `ranges` are in order of first use."""
    conflicts: list[list[int]] = [[] for _ in ranges]
    alive: list[int] = []
    for i, live in enumerate(ranges):
        alive = [j for j in alive if ranges[j].last >= live.first]
        conflicts[i] += alive
        for j in alive:
            conflicts[j].append(i)
        alive.append(i)
    return conflicts


def _gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    """The start of the smallest gap between `taken` that holds `size` bytes; behind them when there is none."""
    at, best = 0, None
    for low, high in taken:
        if low - at >= size and (best is None or low - at < best[0]):
            best = low - at, at
        at = max(at, high)
    return best[1] if best else at
