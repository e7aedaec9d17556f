"""Profile runs: programs compiled with counters, and what the engine records of a run as tasks with steps and counts."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from compass_core.aipubin.device import is_x3
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.hostcc.sources import read_sources
from compass_runtime.profile.costs import CostModel, cost_model, op_classes
from compass_runtime.profile.instrument import Instrumented, instrument
from compass_runtime.profile.regions import Location, Op, shares
from compass_runtime.variants import variant
from compass_sim.records import Record, RecordKind

if TYPE_CHECKING:
    from compass_core.targets import Target
    from compass_runtime.program import Program
    from compass_sim import RunResult

NOWHERE: Location = ("", 0)
"""The place of steps of programs that do not say where they are."""
_STEPS = frozenset(RecordKind) - {RecordKind.TASK_BEGIN, RecordKind.TASK_END, RecordKind.COUNT}


@dataclass(frozen=True)
class Counting:
    """A program with counters: `program` gives the same results as the original one."""

    program: Program
    model: CostModel
    units: tuple[Instrumented, ...]


@dataclass
class Tally:
    """How often a line executed operations of a class, and their operand types."""

    count: int = 0
    lanes: int = 0
    """Lanes of all vectors, and those that masks left active."""
    active: int = 0
    arithmetic: int = 0
    bytes: int = 0
    external_bytes: int = 0
    """Bytes of loads and stores, and those of device memory among them."""

    def add(self, other: Tally) -> None:
        for name in ("count", "lanes", "active", "arithmetic", "bytes", "external_bytes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True)
class Step:
    """An interaction of a task with the device, after `cycles` of its own work."""

    cycles: int
    kind: int
    id: int
    amount: int
    place: Location


@dataclass
class Task:
    """The work of one TEC for one sub-graph."""

    group: int
    number: int
    tec: int
    steps: list[Step] = field(default_factory=list)
    cycles: int = 0
    tallies: dict[tuple[Location, str], Tally] = field(default_factory=dict)
    work: dict[Location, float] = field(default_factory=dict)
    """Estimated cycles of its own work, divided among lines."""
    active: dict[Location, int] = field(default_factory=dict)
    """Cycles of the regions that a line is part of: while the line was at work, alone or beside others."""
    elements: set[int] = field(default_factory=set)
    """Bytes of the elements that it computes with."""
    lost: int = 0
    """Events that the engine had no room for."""


_known: weakref.WeakKeyDictionary[Program, Counting] = weakref.WeakKeyDictionary()


def counting(program: Program) -> Counting:
    """The program that counts; made at the first use. CompassError when the file keeps no C text or clang is missing."""
    if program not in _known:
        model = cost_model(program.target)
        units: list[Instrumented] = []
        first = first_site = 0
        for source in read_sources(program.code.elf, program.trusted):
            unit = instrument(source, model, first, first_site)
            units.append(unit)
            first, first_site = first + unit.counters, first_site + len(unit.sites)
        made = variant(program, (), sources=[unit.source for unit in units])
        _known[program] = Counting(made, model, tuple(units))
    return _known[program]


def tasks_of(counting: Counting, result: RunResult) -> list[Task]:
    """The tasks of a run, in the order of their sub-graphs. CompassError when the records tell of no run: kernels can
    write where the engine keeps them."""
    target = counting.model.target
    sites = [place for unit in counting.units for place in unit.sites]
    current: dict[int, Task] = {}
    done: dict[int, int] = {}
    counters: dict[int, dict[int, int]] = {}
    tasks: dict[tuple[int, int], Task] = {}
    groups = len(counting.program.content.subgraphs)
    for record in result.records:
        tec = record.tec
        if (record.kind == RecordKind.TASK_BEGIN) != (tec not in current):
            raise _no_run(f"TEC {tec} begins a task in another one, or does something outside of one")
        if record.kind == RecordKind.TASK_BEGIN:
            group = _group(record, target, done)
            if not (0 <= group < groups and tec < counting.model.tecs):
                raise _no_run(f"a task of sub-graph {group} on TEC {tec}")
            current[tec], counters[tec] = Task(group, record.amount, tec), {}
        elif record.kind == RecordKind.TASK_END:
            task = current.pop(tec)
            task.cycles, task.lost = record.time, record.id
            counted = counters.pop(tec)
            if not counted:  # a kernel without counters: the engine tells nanoseconds, which are no cycles
                task.cycles, task.steps = 0, [replace(step, cycles=0) for step in task.steps]
            _count(task, counting, counted)
            if tasks.setdefault((task.group, task.number % target.tecs), task) is not task:
                raise _no_run(f"two tasks {task.number} of sub-graph {task.group}")
        elif record.kind == RecordKind.COUNT:
            counters[tec][record.id] = record.amount
        elif record.kind in _STEPS:
            place = sites[record.site] if record.site < len(sites) else NOWHERE
            current[tec].steps.append(Step(record.time, record.kind, record.id, record.amount, place))
        else:
            raise _no_run(f"a record of kind {record.kind}")
    if current:
        raise _no_run("a task does not end")
    return sorted(tasks.values(), key=lambda task: (task.group, task.number))


def _no_run(what: str) -> CompassError:
    return CompassError(
        f"what was recorded of the run makes no sense: {what}",
        code="bad-records",
        help="the kernel overwrites memory of the simulator: look for it with --check",
    )


def _group(record: Record, target: Target, done: dict[int, int]) -> int:
    """Which sub-graph a task belongs to. X3 blocks say it; those of X2 only say the core, where groups go in turn."""
    if is_x3(target.name):
        return record.id
    turn = done.get(record.tec, 0)
    done[record.tec] = turn + 1
    return record.tec // target.tecs + turn * target.cores


def _count(task: Task, counting: Counting, counters: Mapping[int, int]) -> None:
    """Turns the counters of a task into tallies of its lines."""
    for unit in counting.units:
        if not any(unit.first <= id < unit.first + unit.counters for id in counters):
            continue
        lanes = unit.first + len(unit.regions)
        for region in unit.regions:
            runs = counters.get(unit.first + region.number, 0)
            if not runs:
                continue
            for op in region.ops:
                active = op.lanes * runs if op.mask is None else counters.get(lanes + op.mask, 0)
                if op_classes()[op.kind].ops:
                    task.elements.add(op.element)
                task.tallies.setdefault((op.place, op.kind), Tally()).add(_tally(op, runs, active))
            for place, cycles in shares(region, counting.model).items():
                task.work[place] = task.work.get(place, 0) + cycles * runs
                task.active[place] = task.active.get(place, 0) + region.cycles * runs


def _tally(op: Op, runs: int, active: int) -> Tally:
    kind = op_classes()[op.kind]
    moved = (active or runs) * op.element if kind.unit == "memory" else 0
    return Tally(runs, op.lanes * runs, active, active * kind.ops, moved, moved * op.external)
