"""The chain of task control blocks that starts a job. A task is one TEC's share of a sub-graph.

X2 blocks are linked by address; X3 blocks lie one behind the other, and the device is told how many there are. Task
blocks are rows of a table with a row per sub-graph and a column per task, filled field by field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from compass_core.aipubin.fields import Scalar, encode, layout_of
from compass_core.aipubin.layout import Subgraph
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_runtime import tcb
from compass_runtime.tcb import TCB_SIZE, X2Init, X2SegMmu, X2Task, X3Grid, X3Group, X3Task

if TYPE_CHECKING:
    import numpy as np

    Table = np.ndarray[tuple[int, ...], np.dtype[np.void]]

PRINTF_BYTES = 1024
"""A task's share of its sub-graph's printf page."""
MAX_GROUPS = 0x8000
"""Sub-graphs that the group numbers of X3 can tell apart."""


@dataclass(frozen=True)
class Places:
    """Addresses a chain is made of. Lists have one item per sub-graph; 0 means none."""

    tcbs: int
    text: int
    params: int
    const_data: int
    global_param: int
    profiler: int
    weights: tuple[int, ...]
    """Base of the constants, per BSS."""
    printf: tuple[int, ...]
    stacks: tuple[int, ...]
    private_data: tuple[int, ...]
    stack_bytes: int
    """Bytes of one task's stack."""
    private_bytes: tuple[int, ...]
    """Bytes of one task's private data."""


def bss_runs(subgraphs: tuple[Subgraph, ...]) -> list[list[int]]:
    """The indices of sub-graphs, cut where the BSS changes: each run shares one init block on X2."""
    runs: list[list[int]] = []
    for i, graph in enumerate(subgraphs):
        if not i or graph.bss_index != subgraphs[i - 1].bss_index:
            runs.append([])
        runs[-1].append(i)
    return runs


def tcb_count(subgraphs: tuple[Subgraph, ...], tasks: int, cores: int, x3: bool) -> int:
    """Blocks of the chain for `subgraphs` with `tasks` tasks each."""
    if x3:
        return 1 + len(subgraphs) * (tasks + 1)
    return len(subgraphs) * tasks + len(bss_runs(subgraphs)) * _x2_head_blocks(cores)


def _x2_head_blocks(cores: int) -> int:
    """Blocks before the tasks of a run: the init block, and one for the segment MMUs of two cores each."""
    return 1 + (cores + 1) // 2


def x2_chain(subgraphs: tuple[Subgraph, ...], places: Places, tasks: int, cores: int) -> bytes:
    """The X2 chain, to be written at `places.tcbs`."""
    import numpy as np

    runs, heads = bss_runs(subgraphs), _x2_head_blocks(cores)
    table = _task_table(X2Task, subgraphs, places, tasks)
    before = [heads * (number + 1) for number, run in enumerate(runs) for _ in run]
    at = places.tcbs + TCB_SIZE * (np.arange(table.size).reshape(table.shape) + _column(before))
    table["tcbp"] = at
    table["next"] = at + TCB_SIZE
    table["next"][-1, -1] = 0
    table["group_id"] = _column([index % cores for index in range(len(subgraphs))])
    _set_x2_flags(table, subgraphs)
    chain = b""
    for run in runs:
        head = places.tcbs + len(chain)
        asid = _asids(places.weights[subgraphs[run[0]].bss_index])
        init = X2Init(flag=min(2 * heads - 3, 3) << 16, next=head + heads * TCB_SIZE, asid=asid)
        chain += encode(init) + _blank(X2SegMmu) * (heads - 1) + table[run[0] : run[-1] + 1].tobytes()
    return chain


def _set_x2_flags(table: Table, subgraphs: tuple[Subgraph, ...]) -> None:
    """Dependencies, ends of groups and of the grid, and the interrupts a task may raise."""
    single = len(subgraphs) == 1
    waits = [
        tcb.WAIT_ALL if g.precursors is None and not single else tcb.WAIT_PREVIOUS if g.precursors else 0
        for g in subgraphs
    ]
    _set_flags(table, tcb.TASK, waits)
    table["interrupt_en"] = _column([tcb.X2_INTERRUPTS | bool(g.printf_size) * tcb.X2_TEC_DONE for g in subgraphs])
    table["interrupt_en"][-1, -1] |= tcb.X2_CLUSTER_DONE | (tcb.X2_CORE_DONE if single else 0)


def x3_chain(subgraphs: tuple[Subgraph, ...], places: Places, tasks: int, grid_id: int) -> bytes:
    """The X3 chain, to be written at `places.tcbs`."""
    import numpy as np

    if len(subgraphs) > MAX_GROUPS:
        raise CompassError(f"{len(subgraphs)} sub-graphs; a grid has {MAX_GROUPS} groups at most", code="invalid-gbin")
    own_bss = len(subgraphs) > 1 and len({g.bss_index for g in subgraphs}) == len(subgraphs)
    waits = [_x3_waits(graph, index, own_bss) for index, graph in enumerate(subgraphs)]
    numbers = np.arange(len(subgraphs))
    groups = _table(X3Group, (len(subgraphs),), {"grid_id": grid_id})
    table = _task_table(X3Task, subgraphs, places, tasks)
    groups["flag"] = np.array([flag for flag, _ in waits]) | tcb.X3_GROUP_INIT | tcb.X3_FLUSH_GROUP
    groups["group_id"] = numbers
    groups["asid"] = [_asids(places.weights[graph.bss_index]) for graph in subgraphs]
    groups["group_deps"] = deps = np.array([deps for _, deps in waits], "uint16")
    table["grid_id"] = grid_id
    table["group_id"] = numbers[:, None]
    table["group_deps"] = deps[:, None, :]
    table["warmup_len"] = _column([graph.warmup_len & 0xFFFF for graph in subgraphs])
    table["tcbp"] = places.tcbs + TCB_SIZE * (2 + numbers[:, None] * (tasks + 1) + np.arange(tasks))
    _set_flags(table, tcb.X3_TASK, [flag for flag, _ in waits])
    raw = f"V{TCB_SIZE}"  # bytes, which are copied as one
    blocks = np.concatenate([groups.view(raw)[:, None], table.view(raw)], 1)
    return encode(X3Grid(group_num=len(subgraphs), grid_id=grid_id)) + blocks.tobytes()


def _x3_waits(graph: Subgraph, index: int, own_bss: bool) -> tuple[int, tuple[int, ...]]:
    """Dependency bits and group list. When every sub-graph has its own BSS, "all" means the group before it."""
    waits = graph.precursors
    if waits is None and own_bss:
        waits = (index - 1,) if index else ()
    if waits is None:
        return tcb.WAIT_ALL, (0, 0, 0, 0)
    listed = [tcb.GROUP_VALID | group & 0x7FFF for group in waits]
    return (tcb.WAIT_PREVIOUS if listed else 0), tuple([*listed, 0, 0, 0, 0][:4])


def _task_table(cls: type, subgraphs: tuple[Subgraph, ...], places: Places, tasks: int) -> Table:
    """The task blocks of all sub-graphs with what X2 and X3 have in common: numbers and addresses."""
    import numpy as np

    task = np.arange(tasks)
    values = {"group_dim": (tasks, 1, 1), "cp": places.const_data, "global_param": places.global_param}
    table = _table(cls, (len(subgraphs), tasks), values)
    table["task_id"] = table["task_pos"][..., 0] = task
    table["spc"] = _column([places.text + g.text_offset for g in subgraphs])
    table["pp"] = _column([places.params + g.params_offset for g in subgraphs])
    table["sp"] = _column(places.stacks) + task * places.stack_bytes
    table["dp"] = _column(places.private_data) + task * _column(places.private_bytes)
    prints = _column([g.printf_size > 0 for g in subgraphs])
    table["pprint"] = (_column(places.printf) + task * PRINTF_BYTES) * prints
    if places.profiler:
        table["pprofiler"] = _column([places.profiler + g.profiler_offset for g in subgraphs])
    return table


def _set_flags(table: Table, kind: int, waits: list[int]) -> None:
    """The first task of a group waits, its last one ends it, and the very last one ends the grid."""
    flag = table["flag"]
    flag[...] = kind
    flag[:, 0] = [kind | wait for wait in waits]
    flag[:, -1] |= tcb.GROUP_END
    flag[-1, -1] |= tcb.GRID_END


def _asids(weights: int) -> tuple[int, ...]:
    """The address spaces: 0 at the start of memory, 1 at the constants where there are some."""
    spaces = (0, weights) if weights else (0,)
    words = [word for base in spaces for word in ((base & 0xFFFFFFFF) | tcb.READ_WRITE, base >> 32)]
    return tuple([*words, *(0,) * 8][:8])


def _column(values: Sequence[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """One value per row of a table."""
    import numpy as np

    return np.array(values, "int64")[:, None]


@lru_cache
def _dtype(cls: type) -> np.dtype[np.void]:
    """A record class made of numbers alone, as a NumPy type."""
    import numpy as np

    numbers = [item for item in layout_of(cls).items if isinstance(item, Scalar)]
    return np.dtype([(item.name, f"<{item.fmt}", (item.repeat,) if item.repeat else ()) for item in numbers])


@lru_cache
def _blank(cls: type) -> bytes:
    """A block whose values are all as the class has them."""
    return encode(cls())


def _table(cls: type, shape: tuple[int, ...], values: Mapping[str, object]) -> Table:
    """Blocks with these values, all others as the class has them. By their bytes: NumPy would copy each number by itself."""
    import numpy as np

    return np.frombuffer(bytearray(encode(cls(**values))) * math.prod(shape), _dtype(cls)).reshape(shape)
