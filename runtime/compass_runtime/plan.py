"""The memory plan of a job: one piece of device memory, divided into named buffers in the driver's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from compass_core.aipubin import AipuBin
from compass_core.aipubin.device import is_x3
from compass_core.aipubin.layout import PAGE, Subgraph
from compass_core.dataclass import dataclass
from compass_runtime.chain import tcb_count
from compass_runtime.memory import pages
from compass_runtime.tcb import TCB_SIZE

OVERREAD = 0x800
"""Bytes behind a buffer that the hardware may read."""
TEXT_OVERREAD = 16
LARGE = 1 << 28
"""Bytes of a section from which on it lies apart: device memory has a hole, and before it there is no room for such."""
GAP = 0x10000
"""Bytes between buffers in runs that check accesses, at least: a larger buffer has as much around it as in it."""
_LARGEST_GAP = 0x1000000


@dataclass(frozen=True)
class JobPlan:
    """Offsets from the start of the job's memory. `size` is all of it, in whole pages.

    Lists over sections count through all BSS, lists over sub-graphs have one item each.
    """

    offsets: dict[str, int]
    size: int
    tcbs: int
    reuses: tuple[int, ...]
    private_buffers: tuple[tuple[int, ...], ...]
    stacks: tuple[int, ...]
    private_data: tuple[int, ...]
    printf: tuple[int, ...]
    stack_bytes: int
    private_bytes: tuple[int, ...]


def apart(sizes: Sequence[int], gap: int = 0) -> tuple[int, ...]:
    """The reuse sections that are allocated separately; none where accesses are checked."""
    return tuple(i for i, size in enumerate(sizes) if size >= LARGE and not gap)


def private_sets(subgraphs: Sequence[Subgraph]) -> tuple[int, ...]:
    """Which set of stacks and private data each sub-graph uses.

    One that waits for all before it starts again with the first set: those before it are done.
    """
    sets, following = [], 0
    for graph in subgraphs:
        following = 0 if graph.precursors is None else following
        sets.append(following)
        following += 1
    return tuple(sets)


def job_plan(content: AipuBin, sizes: Sequence[int], tasks: int, gap: int = 0) -> JobPlan:
    """The plan of a job whose reuse sections have `sizes` bytes, with `tasks` tasks per sub-graph.

    `gap`: how far apart buffers are at least. Sections that lie `apart` have no room in it: see `with_places`.
    """
    sizes = list(sizes)
    for i in apart(sizes, gap):
        sizes[i] = 0
    graphs = content.subgraphs
    bss = content.features.bss[0]
    stack = pages(-(-bss.stack_size // bss.stack_align) * bss.stack_align)
    sets = private_sets(graphs)
    set_count = max(sets, default=-1) + 1
    data_bytes = [0] * set_count
    for g, s in zip(graphs, sets, strict=True):
        data_bytes[s] = max(data_bytes[s], pages(g.private_data_size))
    workspace, private = _workspace(graphs, gap)
    tcbs = tcb_count(graphs, tasks, content.cores, is_x3(content.target))
    reuses = _offsets(sizes, gap)
    buffers = {
        "model_param": _model_param_bytes(content),
        "params": len(content.params),
        "desc": len(content.desc),
        "tcbs": tcbs * TCB_SIZE,
        "private": private,
        "reuse": reuses[-1] + OVERREAD,
        "printf": len(graphs) * PAGE,
        "stack": set_count * tasks * stack,
        "private_data": sum(data_bytes) * tasks,
    }
    starts = dict(zip(buffers, _offsets(list(buffers.values())), strict=False))
    data_starts = list(accumulate(data_bytes, initial=0))
    return JobPlan(
        offsets=starts,
        size=sum(pages(size) for size in buffers.values()),
        tcbs=tcbs,
        reuses=tuple(starts["reuse"] + at for at in reuses[:-1]),
        private_buffers=tuple(tuple(starts["private"] + at for at in offsets) for offsets in workspace),
        stacks=tuple(starts["stack"] + s * tasks * stack for s in sets),
        private_data=tuple(starts["private_data"] + data_starts[s] * tasks for s in sets),
        printf=tuple(starts["printf"] + i * PAGE for i in range(len(graphs))),
        stack_bytes=stack,
        private_bytes=tuple(data_bytes[s] for s in sets),
    )


def with_places(plan: JobPlan, base: int, places: Mapping[int, int]) -> JobPlan:
    """The plan of a job at `base` with the addresses of sections that lie apart; as offsets they may be negative."""
    return replace(plan, reuses=tuple(places.get(i, base + at) - base for i, at in enumerate(plan.reuses)))


def _offsets(sizes: Sequence[int], gap: int = 0) -> list[int]:
    """The start of each size when every one takes whole pages; the last item is the end of all."""
    starts = [gap]
    for size in sizes:
        room = pages(size)
        starts.append(starts[-1] + room + (max(gap, min(room, _LARGEST_GAP)) if gap else 0))
    return starts


def _workspace(graphs: Sequence[Subgraph], gap: int = 0) -> tuple[list[list[int]], int]:
    """Offsets of the private buffers in the workspace, which is free again where a sub-graph waits for all, and its size."""
    placed, at, size = [], 0, 0
    for graph in graphs:
        at = 0 if graph.precursors is None else at
        starts = []
        for buffer in graph.private_buffers:
            starts.append(at + gap)
            at += pages(buffer.size) + gap
            size = max(size, at + gap)
        placed.append(starts)
    return placed, size


def _model_param_bytes(content: AipuBin) -> int:
    return 8 + len(content.global_params.content) if content.global_params else 0
