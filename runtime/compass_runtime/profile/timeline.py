"""When things happened, estimated: the work between two steps of a task takes the cycles its text was given, transfers
take the time that start-up, DMA units and shared device memory give them, and barriers hold TECs up.

The model is of the device, not of the host that simulates it, so that it gives the same for every run of a kernel whose
TECs do not depend on each other's timing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from compass_core.aipubin.device import is_x3
from compass_core.dataclass import dataclass
from compass_runtime.profile.collect import NOWHERE, Step, Task
from compass_runtime.profile.costs import CostModel
from compass_runtime.profile.regions import Location
from compass_sim.records import RecordKind, Transfer

_EPSILON = 1e-6


@dataclass(frozen=True)
class Span:
    """Something that took a TEC's or a DMA channel's time; `kind`: work, transfer, dma, event, barrier, section."""

    tec: int
    kind: str
    start: float
    end: float
    place: Location = NOWHERE
    detail: int = 0
    """Bytes of a transfer, number of a section."""
    channel: int | None = None
    """Of a transfer: the event it triggers; None: the TEC waits for it."""
    crossings: int = 0
    """How often a transferred byte crosses the port of the device memory: 0, 1, or 2 when it is read and written there."""

    @property
    def cycles(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Launch:
    """The run of a sub-graph on a core."""

    group: int
    core: int
    start: float
    end: float


@dataclass
class Timeline:
    """The spans of a run and the end of the last; the sub-graphs in the order of their ends."""

    spans: list[Span] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    cycles: float = 0


@dataclass
class _Transfer:
    bytes: int
    crossings: int
    reordered: bool
    channel: int | None
    place: Location
    starts: float = 0.0
    moving: bool = False
    left: float = 0.0


class _Tec:
    """A TEC with its DMA unit, which takes one transfer at a time."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.task: Task | None = None
        self.next_step = 0
        self.done_work = 0
        self.at = 0.0
        self.runs = False
        """Whether it will go on by itself at `at`."""
        self.waiting: Callable[[], bool] | None = None
        self.resume: Callable[[float], None] = lambda now: None
        self.queue: deque[_Transfer] = deque()
        self.sections: dict[int, tuple[float, Location]] = {}

    def pending(self, channels: Sequence[int | None]) -> bool:
        return any(transfer.channel in channels for transfer in self.queue)


class Simulation:
    """Runs the tasks of a job on the model of the device."""

    def __init__(self, model: CostModel, tasks: Sequence[Task], waits: Sequence[Sequence[int] | None]) -> None:
        """`waits`: the groups that each group waits for; None: all before it."""
        self._model = model
        self._groups: dict[int, list[Task]] = {}
        for task in tasks:
            self._groups.setdefault(task.group, []).append(task)
        self._pending = deque(sorted(self._groups))
        self._waits = waits
        self._tecs = [_Tec(number) for number in range(model.tecs)]
        self._running: dict[int, int] = {}
        self._started: dict[int, tuple[int, float]] = {}
        self._arrived: dict[int, list[tuple[_Tec, float, Location]]] = {}
        self._finished: set[int] = set()
        self._now = 0.0
        self._rates: dict[int, float] = {}
        self._line = Timeline()
        self._actions: Mapping[int, Callable[[_Tec, Step], None]] = {
            RecordKind.TRANSFER: self._transfer,
            RecordKind.WAIT: self._wait_events,
            RecordKind.BARRIER: self._barrier,
            RecordKind.SECTION_BEGIN: self._section_begin,
            RecordKind.SECTION_END: self._section_end,
        }

    def run(self) -> Timeline:
        self._start_groups()
        while True:
            times = [tec.at for tec in self._tecs if tec.runs]
            times += [t for tec in self._tecs if (t := self._transfer_time(tec)) is not None]
            if not times:
                break
            self._advance(min(times))
        self._line.cycles = self._now
        return self._line

    # Time

    def _share_port(self) -> None:
        """Sets the bytes per cycle of the transfers that move, by TEC: each DMA unit's own speed, or its share of the
        port."""
        moving = [tec for tec in self._tecs if tec.queue and tec.queue[0].moving]
        rates = {tec.number: self._own_rate(tec.queue[0]) for tec in moving}
        room = self._model.device_memory_bytes_per_cycle
        shared = sorted(
            (t for t in moving if t.queue[0].crossings), key=lambda t: rates[t.number] * t.queue[0].crossings
        )
        for position, tec in enumerate(shared):
            share = room / (len(shared) - position) / tec.queue[0].crossings
            rates[tec.number] = min(rates[tec.number], share)
            room -= rates[tec.number] * tec.queue[0].crossings
        self._rates = rates

    def _own_rate(self, transfer: _Transfer) -> float:
        return self._model.dma["bytes_per_cycle"] / (self._model.dma["reorder"] if transfer.reordered else 1)

    def _transfer_time(self, tec: _Tec) -> float | None:
        """When the transfer of a TEC begins to move, or is done."""
        if not tec.queue:
            return None
        first = tec.queue[0]
        if not first.moving:
            return first.starts + self._model.dma["startup"]
        return self._now + first.left / self._rates[tec.number]

    def _advance(self, time: float) -> None:
        for number, rate in self._rates.items():
            self._tecs[number].queue[0].left -= rate * (time - self._now)
        self._now = max(time, self._now)
        changes = [self._move(tec) for tec in self._tecs if tec.queue]
        if any(changes):
            self._share_port()
        for tec in self._tecs:
            if tec.waiting is not None and not tec.waiting():
                tec.waiting = None
                tec.resume(self._now)
        for tec in self._tecs:
            if tec.runs and tec.at <= self._now + _EPSILON:
                tec.runs = False
                self._step(tec)

    def _move(self, tec: _Tec) -> bool:
        """Lets the DMA unit of a TEC begin or finish its transfer when it is time; whether it did."""
        first = tec.queue[0]
        moved = first.moving
        if not first.moving and first.starts + self._model.dma["startup"] <= self._now + _EPSILON:
            first.moving, first.left = True, float(first.bytes)
        rest = (
            first.left / self._rates[tec.number] if moved else 0.0
        )  # cycles, which may be too few to be distinguished
        if first.moving and (
            first.left <= _EPSILON * max(1.0, first.bytes) or (moved and self._now + rest <= self._now)
        ):
            tec.queue.popleft()
            self._add(tec, "transfer", first.starts, first.place, first)
            if tec.queue:
                tec.queue[0].starts = max(tec.queue[0].starts, self._now)
            return True
        return first.moving != moved

    def _add(self, tec: _Tec, kind: str, start: float, place: Location, moved: _Transfer | None = None) -> None:
        """A span from `start` until now."""
        about = (moved.bytes, moved.channel, moved.crossings) if moved else ()
        if self._now > start:
            self._line.spans.append(Span(tec.number, kind, start, self._now, place, *about))

    # Groups

    def _start_groups(self) -> None:
        """Starts groups in order, as long as what they wait for is done and a core is free."""
        size = self._model.target.tecs
        while self._pending:
            group = self._pending[0]
            waits = self._waits[group] if group < len(self._waits) else None
            before = (
                [g for g in self._groups if g < group] if waits is None else [g for g in waits if g in self._groups]
            )
            core = self._core_for(group)
            if core is None or not self._finished.issuperset(before):
                return
            self._pending.popleft()
            self._running[group] = len(self._groups[group])
            self._started[group] = core, self._now
            for task in self._groups[group]:
                tec = self._tecs[core * size + task.number % size]
                task.tec = tec.number
                tec.task, tec.next_step, tec.done_work = task, 0, 0
                tec.sections = {}
                tec.at = self._now + self._model.launch_cycles
                self._continue(tec)

    def _core_for(self, group: int) -> int | None:
        """The core a group runs on: X2 takes them in turn, X3 any that is free. None when it must wait."""
        target = self._model.target
        free = [c for c in range(target.cores) if all(t.task is None for t in self._of_core(c))]
        if not is_x3(target.name):
            free = [c for c in free if c == group % target.cores]
        return free[0] if free else None

    def _of_core(self, core: int) -> list[_Tec]:
        size = self._model.target.tecs
        return self._tecs[core * size : (core + 1) * size]

    # Steps of a TEC

    def _continue(self, tec: _Tec) -> None:
        """The TEC works from `tec.at` on until its next step."""
        task = tec.task
        assert task is not None
        until = task.steps[tec.next_step].cycles if tec.next_step < len(task.steps) else task.cycles
        begin, tec.at = tec.at, tec.at + max(until - tec.done_work, 0)
        place = task.steps[tec.next_step].place if tec.next_step < len(task.steps) else NOWHERE
        tec.done_work, tec.runs = until, True
        if tec.at > begin:
            self._line.spans.append(Span(tec.number, "work", begin, tec.at, place))

    def _wait(self, tec: _Tec, kind: str, place: Location, busy: Callable[[], bool], then: Callable[[], None]) -> None:
        """The TEC stands still while `busy`, then does what is to be done."""
        start = self._now

        def resume(now: float) -> None:
            self._add(tec, kind, start, place)
            then()

        if busy():
            tec.waiting, tec.resume = busy, resume
        else:
            then()

    def _go_on(self, tec: _Tec) -> None:
        tec.at = self._now
        self._continue(tec)

    def _step(self, tec: _Tec) -> None:
        task = tec.task
        assert task is not None
        if tec.next_step >= len(task.steps):
            self._wait(tec, "dma", NOWHERE, lambda: bool(tec.queue), lambda: self._finish(tec))
            return
        step = task.steps[tec.next_step]
        tec.next_step += 1
        self._actions[step.kind](tec, step)

    def _transfer(self, tec: _Tec, step: Step) -> None:
        what = Transfer.of(step.id)
        reordered = what.mode in ("transpose", "upsample")
        transfer = _Transfer(step.amount, what.reads + what.writes, reordered, what.channel, step.place)

        def enqueue() -> None:
            transfer.starts = self._now
            tec.queue.append(transfer)
            if what.channel is None:
                self._wait(tec, "dma", step.place, lambda: transfer in tec.queue, lambda: self._go_on(tec))
            else:
                self._go_on(tec)

        occupied = what.channel is not None and tec.pending([what.channel])
        self._wait(tec, "event", step.place, lambda: occupied and tec.pending([what.channel]), enqueue)

    def _wait_events(self, tec: _Tec, step: Step) -> None:
        channels = [channel for channel in range(32) if step.id >> channel & 1]
        self._wait(tec, "event", step.place, lambda: tec.pending(channels), lambda: self._go_on(tec))

    def _barrier(self, tec: _Tec, step: Step) -> None:
        assert tec.task is not None
        arrived = self._arrived.setdefault(tec.task.group, [])
        arrived.append((tec, self._now, step.place))
        if len(arrived) == self._running[tec.task.group]:
            self._open_barrier(tec.task.group)

    def _open_barrier(self, group: int) -> None:
        opened = self._now + self._model.barrier_cycles
        for tec, start, place in self._arrived.pop(group):
            self._line.spans.append(Span(tec.number, "barrier", start, opened, place))
            tec.at = opened
            self._continue(tec)

    def _section_begin(self, tec: _Tec, step: Step) -> None:
        tec.sections[step.id] = (self._now, step.place)
        self._go_on(tec)

    def _section_end(self, tec: _Tec, step: Step) -> None:
        if (begin := tec.sections.pop(step.id, None)) is not None:
            self._line.spans.append(Span(tec.number, "section", begin[0], self._now, begin[1], step.id))
        self._go_on(tec)

    def _finish(self, tec: _Tec) -> None:
        assert tec.task is not None
        group, tec.task = tec.task.group, None
        self._running[group] -= 1
        if self._running[group] == 0:
            self._finished.add(group)
            self._line.launches.append(Launch(group, *self._started[group], self._now))
            self._start_groups()
        elif len(self._arrived.get(group, ())) == self._running[group]:
            self._open_barrier(group)
