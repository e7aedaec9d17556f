"""The chain of task control blocks that starts a job. A task is one TEC's share of a sub-graph.

X2 blocks are linked by address; X3 blocks lie one behind the other, and the device is told how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compass_core.aipubin.fields import encode, replace
from compass_core.aipubin.layout import Subgraph
from compass_runtime import tcb
from compass_runtime.tcb import TCB_SIZE, X2Init, X2SegMmu, X2Task, X3Grid, X3Group, X3Task

PRINTF_BYTES = 1024
"""A task's share of its sub-graph's printf page."""


@dataclass(frozen=True)
class Places:
    """Addresses a chain is made of. Lists have one item per sub-graph; 0 stands for nothing there."""

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
    return len(subgraphs) * tasks + len(bss_runs(subgraphs)) * (1 + (cores + 1) // 2)


def _asid(base: int) -> tuple[int, int]:
    return (base & 0xFFFFFFFF) | tcb.READ_WRITE, base >> 32


def _common(graph: Subgraph, index: int, task: int, places: Places) -> dict[str, Any]:
    """The addresses of one task, the same on X2 and X3."""
    return {
        "spc": places.text + graph.text_offset,
        "sp": places.stacks[index] + task * places.stack_bytes,
        "pp": places.params + graph.params_offset,
        "dp": places.private_data[index] + task * places.private_bytes[index],
        "cp": places.const_data,
        "pprint": places.printf[index] + task * PRINTF_BYTES if graph.printf_size else 0,
        "pprofiler": places.profiler + graph.profiler_offset if places.profiler else 0,
        "global_param": places.global_param,
        "task_id": task,
    }


def x2_chain(subgraphs: tuple[Subgraph, ...], places: Places, tasks: int, cores: int) -> bytes:
    """The X2 chain, to be written at `places.tcbs`."""
    segmmus = (cores + 1) // 2
    blocks: list[X2Init | X2SegMmu | X2Task] = []
    previous: int | None = None
    for run in bss_runs(subgraphs):
        head = places.tcbs + len(blocks) * TCB_SIZE
        if previous is not None:
            blocks[previous] = replace(blocks[previous], next=head)
        weights = places.weights[subgraphs[run[0]].bss_index]
        asid = (*_asid(0), *(_asid(weights) if weights else (0, 0)), 0, 0, 0, 0)
        blocks.append(X2Init(flag=min(2 * segmmus - 1, 3) << 16, next=head + (1 + segmmus) * TCB_SIZE, asid=asid))
        blocks += [X2SegMmu()] * segmmus
        for index in run:
            for task in range(tasks):
                at = places.tcbs + len(blocks) * TCB_SIZE
                run_end = index == run[-1] and task == tasks - 1
                following = 0 if run_end else at + TCB_SIZE
                blocks.append(_x2_task(subgraphs, index, task, tasks, cores, places, at, following))
        previous = len(blocks) - 1
    return b"".join(encode(block) for block in blocks)


def _x2_task(
    subgraphs: tuple[Subgraph, ...],
    index: int,
    task: int,
    tasks: int,
    cores: int,
    places: Places,
    at: int,
    following: int,
) -> X2Task:
    """The block at address `at` for a task of sub-graph `index`, with the one that follows it in the chain."""
    graph, single = subgraphs[index], len(subgraphs) == 1
    last_task, last_graph = task == tasks - 1, index == len(subgraphs) - 1
    flag = tcb.TASK | (tcb.GROUP_END if last_task else 0) | (tcb.GRID_END if last_task and last_graph else 0)
    if task == 0:
        flag |= tcb.WAIT_PREVIOUS if graph.precursors else 0
        flag |= tcb.WAIT_ALL if graph.precursors is None and not single else 0
    interrupts = tcb.X2_INTERRUPTS | (tcb.X2_TEC_DONE if graph.printf_size else 0)
    if last_task and last_graph:
        interrupts |= tcb.X2_CLUSTER_DONE | (tcb.X2_CORE_DONE if single else 0)
    return X2Task(
        flag=flag,
        next=following,
        tcbp=at,
        interrupt_en=interrupts,
        group_id=index % cores,
        group_dim=(tasks, 1, 1),
        task_pos=(task, 0, 0),
        **_common(graph, index, task, places),
    )


def x3_chain(subgraphs: tuple[Subgraph, ...], places: Places, tasks: int, grid_id: int) -> bytes:
    """The X3 chain, to be written at `places.tcbs`."""
    blocks: list[X3Grid | X3Group | X3Task] = [X3Grid(group_num=len(subgraphs), grid_id=grid_id)]
    own_bss = len(subgraphs) > 1 and len({g.bss_index for g in subgraphs}) == len(subgraphs)
    for index, graph in enumerate(subgraphs):
        waits, deps = _x3_waits(graph, index, own_bss)
        weights = places.weights[graph.bss_index]
        asid = (*_asid(0), *(_asid(weights) if weights else (0, 0)), 0, 0, 0, 0)
        blocks.append(
            X3Group(
                tcb.X3_GROUP_INIT | tcb.X3_FLUSH_GROUP | waits,
                group_id=index,
                grid_id=grid_id,
                asid=asid,
                group_deps=deps,
            )
        )
        for task in range(tasks):
            last_task, last = task == tasks - 1, index == len(subgraphs) - 1
            flag = tcb.X3_TASK | (waits if task == 0 else 0)
            flag |= (tcb.GROUP_END if last_task else 0) | (tcb.GRID_END if last_task and last else 0)
            at = places.tcbs + len(blocks) * TCB_SIZE
            common = _common(graph, index, task, places)
            blocks.append(
                X3Task(flag=flag, tcbp=at, group_id=index, grid_id=grid_id, group_dim=(tasks, 1, 1),
                       task_pos=(task, 0, 0), group_deps=deps, warmup_len=graph.warmup_len & 0xFFFF, **common)
            )  # fmt: skip
    return b"".join(encode(block) for block in blocks)


def _x3_waits(graph: Subgraph, index: int, own_bss: bool) -> tuple[int, tuple[int, ...]]:
    """Dependency bits and group list. When every sub-graph has its own BSS, "all" means the group before it."""
    waits = graph.precursors
    if waits is None and own_bss:
        waits = (index - 1,) if index else ()
    if waits is None:
        return tcb.WAIT_ALL, (0, 0, 0, 0)
    listed = [tcb.GROUP_VALID | group & 0x7FFF for group in waits]
    return (tcb.WAIT_PREVIOUS if listed else 0), tuple([*listed, 0, 0, 0, 0][:4])
