"""The result of a profile: totals, and sums per line and per TEC."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from compass_core.aipubin.device import is_x3
from compass_core.dataclass import dataclass
from compass_core.elf.hostcode import ENTRY_PREFIX
from compass_core.errors import CompassError
from compass_core.hostcc import whole_vectors
from compass_core.hostcc.sources import read_sources
from compass_runtime.profile.collect import Counting, Tally, Task, counting, tasks_of
from compass_runtime.profile.costs import CostModel
from compass_runtime.profile.regions import Location
from compass_runtime.profile.timeline import Launch, Simulation, Span, Timeline
from compass_sim.records import RecordKind, Transfer

if TYPE_CHECKING:
    from compass_runtime.program import Program
    from compass_sim import RunResult

Key = TypeVar("Key")
_DIRECTIVE = re.compile(r'# (\d{1,9}) "([^"]*)"')
_EPSILON = 1e-6
WAITS = ("dma", "event", "barrier")
"""Reasons for which a TEC waits: synchronous transfers, events, other TECs."""


@dataclass
class Cost:
    """The operations of a line, or of a TEC, and their estimated cycles."""

    classes: dict[str, Tally] = field(default_factory=dict)
    work: float = 0.0
    active: int = 0
    """Cycles during which it was at work, alone or beside other lines."""
    waits: dict[str, float] = field(default_factory=lambda: dict.fromkeys(WAITS, 0.0))
    dma_bytes: int = 0
    external_bytes: int = 0
    """Bytes that transfers, loads and stores moved to and from device memory."""

    @property
    def cycles(self) -> float:
        return self.work + sum(self.waits.values())

    @cached_property
    def total(self) -> Tally:
        """All classes together."""
        total = Tally()
        for tally in self.classes.values():
            total.add(tally)
        return total

    @property
    def lane_use(self) -> float | None:
        """Active lanes of all lanes of the vectors worked on; None without vectors."""
        return self.total.active / self.total.lanes if self.total.lanes else None


@dataclass(frozen=True)
class Section:
    """The part of a kernel between two profiler marks of a number: how often it ran, and its cycles per TEC."""

    id: int
    place: Location
    runs: int
    cycles: Mapping[int, float]


@dataclass(frozen=True)
class LayerRun:
    """A launch as a part of a graph: the layers it computes (nothing where the file does not say), and what it took."""

    launch: Launch
    kernel: str
    layers: str
    types: str
    dma_bytes: int
    external_bytes: int
    """Bytes that transfers, loads and stores moved to and from device memory."""

    @property
    def cycles(self) -> float:
        return self.launch.end - self.launch.start


@dataclass(frozen=True)
class Profile:
    """A profiled run. All cycles are estimates of the target's cost model; counts and bytes are exact."""

    program: Program
    model: CostModel
    tasks: tuple[Task, ...]
    timeline: Timeline
    texts: Mapping[Location, str]
    """The C text that each line became."""

    @property
    def cycles(self) -> int:
        """The total."""
        return round(self.timeline.cycles)

    @property
    def name(self) -> str:
        kernel = self.program.kernel
        return kernel.kernel if kernel else Path(self.program.where).name

    @property
    def lost(self) -> int:
        """Events that the engine had no room for: when there are any, waits and transfers are incomplete."""
        return sum(task.lost for task in self.tasks)

    @property
    def seconds(self) -> float:
        """The estimated time on the device."""
        return self.timeline.cycles / self.model.clock_mhz / 1e6

    @cached_property
    def launches(self) -> list[tuple[str, Launch]]:
        """The sub-graphs in order, each with the name of its kernel."""
        names = {offset: symbol.removeprefix(ENTRY_PREFIX) for symbol, offset in self.program.code.entries}
        graphs = self.program.content.subgraphs
        ordered = sorted(self.timeline.launches, key=lambda launch: launch.group)
        return [(names.get(graphs[launch.group].text_offset, "?"), launch) for launch in ordered]

    def of_launch(self, group: int) -> Profile:
        """The part of one sub-graph: its tasks, and what happened on their TECs while it ran, from its start on.

        KeyError when there is no such sub-graph.
        """
        launch = {run.group: run for run in self.timeline.launches}[group]
        tasks = tuple(task for task in self.tasks if task.group == group)
        tecs, begin, end = {task.tec for task in tasks}, launch.start, launch.end
        spans = [
            replace(span, start=span.start - begin, end=span.end - begin)
            for span in self.timeline.spans
            if span.tec in tecs and span.start >= begin - _EPSILON and span.end <= end + _EPSILON
        ]
        alone = Timeline(spans, [replace(launch, start=0.0, end=end - begin)], end - begin)
        return replace(self, tasks=tasks, timeline=alone)

    @cached_property
    def layers(self) -> list[LayerRun]:
        """The sub-graphs in order, with the layers that each one computes."""
        moved: dict[int, int] = {}
        external: dict[int, int] = {}
        for task in self.tasks:
            stored = sum(tally.external_bytes for tally in task.tallies.values())
            external[task.group] = external.get(task.group, 0) + stored
            for step in task.steps:
                if step.kind == RecordKind.TRANSFER:
                    transfer = Transfer.of(step.id)
                    moved[task.group] = moved.get(task.group, 0) + step.amount
                    external[task.group] += step.amount * (transfer.reads + transfer.writes)
        noted = self.program.note.launches if self.program.note else ()
        return [
            LayerRun(
                run,
                kernel,
                noted[run.group].label,
                ", ".join(noted[run.group].types),
                moved.get(run.group, 0),
                external.get(run.group, 0),
            )
            if run.group < len(noted)
            else LayerRun(run, kernel, "", "", moved.get(run.group, 0), external.get(run.group, 0))
            for kernel, run in self.launches
        ]

    @cached_property
    def layer_types(self) -> dict[str, list[LayerRun]]:
        """The launches by the types of their layers, those that take longest first."""
        found: dict[str, list[LayerRun]] = {}
        for run in self.layers:
            found.setdefault(run.types, []).append(run)
        return dict(sorted(found.items(), key=lambda item: -sum(run.cycles for run in item[1])))

    @cached_property
    def lines(self) -> dict[Location, Cost]:
        """By place, the most expensive first."""
        out = self._sums(lambda tec, place: place)
        return dict(sorted(out.items(), key=lambda item: (-item[1].cycles, item[0])))

    @cached_property
    def tecs(self) -> dict[int, Cost]:
        """By number."""
        out = self._sums(lambda tec, place: tec)
        return dict(sorted(out.items()))

    @cached_property
    def total(self) -> Cost:
        """All of it."""
        return self._sums(lambda tec, place: "").get("", Cost())

    @cached_property
    def sections(self) -> list[Section]:
        """By number."""
        found: dict[int, list[Span]] = {}
        for span in self.timeline.spans:
            if span.kind == "section":
                found.setdefault(span.detail, []).append(span)
        out = []
        for id, spans in sorted(found.items()):
            by_tec: dict[int, float] = {}
            for span in spans:
                by_tec[span.tec] = by_tec.get(span.tec, 0.0) + span.cycles
            out.append(Section(id, spans[0].place, len(spans), by_tec))
        return out

    def _sums(self, key: Callable[[int, Location], Key]) -> dict[Key, Cost]:
        """Everything, added up under what `key` makes of TEC and place."""
        out: dict[Key, Cost] = {}

        def cost(tec: int, place: Location) -> Cost:
            return out.setdefault(key(tec, place), Cost())

        for task in self.tasks:
            for (place, kind), tally in task.tallies.items():
                at = cost(task.tec, place)
                at.classes.setdefault(kind, Tally()).add(tally)
                at.external_bytes += tally.external_bytes
            for place, cycles in task.work.items():
                cost(task.tec, place).work += cycles
                cost(task.tec, place).active += task.active[place]
        for span in self.timeline.spans:
            if span.kind in WAITS:
                cost(span.tec, span.place).waits[span.kind] += span.cycles
            elif span.kind == "transfer":
                at = cost(span.tec, span.place)
                at.dma_bytes += span.detail
                at.external_bytes += span.detail * span.crossings
        return out


def profile_of(program: Program, result: RunResult) -> Profile:
    """The profile of a recorded run of `counting(program).program`."""
    made = counting(program)
    tasks = tasks_of(made, result)
    timeline = Simulation(made.model, tasks, _waits(program)).run()
    texts: dict[Location, str] = {}
    for source in read_sources(program.code.elf):
        for place, line in c_lines(whole_vectors.readable(source.text)):
            texts[place] = f"{texts[place]} {line}" if place in texts else line
    return Profile(program, made.model, tuple(tasks), timeline, texts)


def estimated_cycles(made: Counting, result: RunResult) -> int:
    """The total of a recorded run of `made.program`, as the profile of that run has it. CompassError when the engine had
    no room for everything that happened, so that a total would be too small."""
    tasks = tasks_of(made, result)
    if lost := sum(task.lost for task in tasks):
        raise CompassError(f"the engine had no room for {lost} events of the run", code="lost-events")
    return round(Simulation(made.model, tasks, _waits(made.program)).run().cycles)


def _waits(program: Program) -> list[Sequence[int] | None]:
    """The sub-graphs that each sub-graph waits for; None: all before. On X2 "some" means all before, too."""
    precursors: list[Sequence[int] | None] = [graph.precursors for graph in program.content.subgraphs]
    return precursors if is_x3(program.target) else [None if p is None or p else () for p in precursors]


def c_lines(text: str) -> Iterator[tuple[Location, str]]:
    """The lines of a C text with the places that its line directives give them."""
    file, number = "", 0
    for line in text.splitlines():
        if directive := _DIRECTIVE.match(line):
            file, number = directive[2], int(directive[1])
            continue
        if line.strip():
            yield (file, number), line.strip()
        number += 1
