"""The runtime in the driver's terms: contexts, graphs, jobs and tensors with ids, status codes and states.

A thin layer over `Program` and `Job` for programs that think in the driver's API. Errors are `DriverError`s,
which carry the driver's status; the C library (`runtime/include/compass_runtime.h`) has the same functions and codes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path

import numpy as np

from compass_core.aipubin.layout import Kind, SubSection
from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Note, Span
from compass_runtime.job import Job, Slot
from compass_runtime.program import Program
from compass_runtime.status import Status, status_of

Buffer = bytes | bytearray | memoryview

GRAPH_STEP = 1 << 32
"""Graph ids are multiples of this; a job's id is its graph's id plus 1, 2, ..."""


class TensorType(IntEnum):
    """The role of a tensor for the caller."""

    INPUT = 0
    OUTPUT = 1
    INTER_DUMP = 2
    PRINTF = 3
    PROFILER = 4
    LAYER_COUNTER = 5
    ERROR_CODE = 6
    OUT_TENSOR_SHAPE = 7


class JobState(IntEnum):
    """The state of a job."""

    NONE = 0
    DONE = 1
    EXCEPTION = 2
    INIT = 4


@dataclass(frozen=True)
class TensorDesc:
    """A tensor: its number, bytes, quantisation and the code of its data type."""

    id: int
    size: int
    scale: float
    zero_point: int
    data_type: int


class DriverError(CompassError):
    """The error of a driver function; `status` says why."""

    def __init__(
        self,
        status: Status,
        detail: str = "",
        span: Span | None = None,
        notes: tuple[Note | str, ...] = (),
        help: str = "",
    ) -> None:
        super().__init__(
            f"{status.text}: {detail}" if detail else status.text,
            span,
            code=status.name.lower().replace("_", "-"),
            notes=notes,
            help=help,
        )
        self.status = status


@contextmanager
def _statuses() -> Iterator[None]:
    """Turns errors of the layers below into DriverErrors."""
    try:
        yield
    except DriverError:
        raise
    except CompassError as error:
        raise DriverError(status_of(error.code), str(error), notes=error.notes, help=error.help) from error


@dataclass
class DriverJob:
    """A job with its state."""

    id: int
    job: Job
    state: JobState = JobState.INIT


@dataclass
class DriverGraph:
    """A loaded graph and its jobs."""

    id: int
    program: Program
    jobs: dict[int, DriverJob]
    numbers: Iterator[int]


class Context:
    """An open driver. Ids that it gave are valid in it alone."""

    def __init__(self) -> None:
        self._graphs: dict[int, DriverGraph] = {}
        self._open = True

    def deinit(self) -> None:
        """Unloads everything."""
        for graph in list(self._graphs):
            self.unload_graph(graph)
        self._open = False

    def load_graph(self, source: str | Path | bytes) -> int:
        """Loads an aipu.bin from a file or from its bytes, weights included; gives the graph's id."""
        self._check_open()
        with _statuses():
            program = Program.load(source)
            program.graph()
        number = next(n * GRAPH_STEP for n in itertools.count(1) if n * GRAPH_STEP not in self._graphs)
        self._graphs[number] = DriverGraph(number, program, {}, itertools.count(1))
        return number

    def unload_graph(self, graph: int) -> None:
        """Ends a graph and its jobs."""
        for job in list(self._graph(graph).jobs):
            self.clean_job(job)
        del self._graphs[graph]

    def create_job(
        self, graph: int, shapes: Mapping[str, Sequence[int]] | None = None, values: Mapping[str, float] | None = None
    ) -> int:
        """A job; shapes and scalars that the file leaves open are given by name."""
        owner = self._graph(graph)
        with _statuses():
            job = owner.program.create_job(shapes, values)
        number = graph + next(owner.numbers)
        owner.jobs[number] = DriverJob(number, job)
        return number

    def clean_job(self, job: int) -> None:
        """Frees a job."""
        found = self._job(job)
        found.job.close()
        del self._graph(job - job % GRAPH_STEP).jobs[job]

    def get_tensor_count(self, graph_or_job: int, kind: TensorType) -> int:
        """The number of tensors of a kind."""
        return len(self._tensors(graph_or_job, kind))

    def get_tensor_descriptor(self, graph_or_job: int, kind: TensorType, number: int) -> TensorDesc:
        """The description of a tensor; of a job, with its actual size."""
        subs = self._tensors(graph_or_job, kind)
        if not 0 <= number < len(subs):
            raise DriverError(Status.INVALID_TENSOR_ID, f"{kind.name.lower()} {number} of {len(subs)}")
        sub, size = subs[number], subs[number].size
        if graph_or_job % GRAPH_STEP and kind in (TensorType.INPUT, TensorType.OUTPUT):
            size = self._slots(self._job(graph_or_job), kind)[number].nbytes
        return TensorDesc(number, size, sub.scale, sub.zero_point, sub.data_type)

    def load_tensor(self, job: int, number: int, data: Array | Buffer | None) -> None:
        """Copies bytes, or an array, into an input; bytes beyond the input's size are ignored."""
        self._put(job, TensorType.INPUT, number, data)

    def load_output_tensor(self, job: int, number: int, data: Array | Buffer | None) -> None:
        """Gives an output its content before the run."""
        self._put(job, TensorType.OUTPUT, number, data)

    def _put(self, job: int, kind: TensorType, number: int, data: Array | Buffer | None) -> None:
        if data is None:
            raise DriverError(Status.NULL_PTR, "data")
        slot = self._slot(job, kind, number)
        content = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else _bytes_of(data)
        if len(content) < slot.nbytes:
            raise DriverError(
                Status.INVALID_SIZE,
                f"{kind.name.lower()} {number} takes {slot.nbytes} bytes, but {len(content)} are given",
            )
        with _statuses():
            slot.load(content[: slot.nbytes])

    def get_tensor(self, job: int, kind: TensorType, number: int) -> bytes:
        """The bytes of a tensor of a job that is done."""
        slot, found = self._slot(job, kind, number), self._job(job)
        if found.state != JobState.DONE:
            raise DriverError(Status.INVALID_OP, "the job has not run")
        with _statuses():
            return slot.memory.tobytes()

    def finish_job(self, job: int, timeout_ms: int = -1) -> None:
        """Runs and waits; without a positive time limit the switch TIMEOUT counts."""
        found = self._job(job)
        with _statuses(), found.job.lock:
            found.state = JobState.EXCEPTION
            found.job.hold()
            found.job.execute(timeout_ms / 1000 if timeout_ms > 0 else None)
            found.state = JobState.DONE

    def get_job_status(self, job: int) -> JobState:
        """The state of a job."""
        return self._job(job).state

    def rewrite_rodata(self, job: int, offset: int, value: int) -> None:
        """Replaces a word of the parameter block."""
        with _statuses():
            self._job(job).job.rewrite_parameter(offset, value)

    def _check_open(self) -> None:
        if not self._open:
            raise DriverError(Status.INVALID_CTX)

    def _graph(self, graph: int) -> DriverGraph:
        self._check_open()
        if graph not in self._graphs:
            raise DriverError(Status.INVALID_GRAPH_ID, hex(graph))
        return self._graphs[graph]

    def _job(self, job: int) -> DriverJob:
        self._check_open()
        owner = self._graphs.get(job - job % GRAPH_STEP)
        if owner is None or job not in owner.jobs:
            raise DriverError(Status.INVALID_JOB_ID, hex(job))
        return owner.jobs[job]

    def _tensors(self, number: int, kind: TensorType) -> Sequence[SubSection]:
        owner = self._graph(number - number % GRAPH_STEP)
        kinds = {
            TensorType.INPUT: Kind.INPUT,
            TensorType.OUTPUT: Kind.OUTPUT,
            TensorType.INTER_DUMP: Kind.INTER_DUMP,
            TensorType.PROFILER: Kind.PROFILER,
            TensorType.PRINTF: Kind.PRINTF,
            TensorType.OUT_TENSOR_SHAPE: Kind.OUTPUT_SHAPE,
        }
        if kind not in kinds:
            raise DriverError(Status.INVALID_TENSOR_TYPE, str(kind))
        return owner.program.content.sub_sections(kinds[kind])

    def _slots(self, job: DriverJob, kind: TensorType) -> list[Slot]:
        return job.job.inputs if kind == TensorType.INPUT else job.job.outputs

    def _slot(self, job: int, kind: TensorType, number: int) -> Slot:
        if kind not in (TensorType.INPUT, TensorType.OUTPUT):
            raise DriverError(Status.INVALID_TENSOR_TYPE, str(kind))
        found = self._job(job)
        with _statuses():
            kept = found.state == JobState.DONE and found.job.held
            if not kept and found.job.revive() and found.state == JobState.DONE:
                found.state = JobState.INIT
        slots = self._slots(found, kind)
        if not 0 <= number < len(slots):
            raise DriverError(Status.INVALID_TENSOR_ID, f"{kind.name.lower()} {number} of {len(slots)}")
        return slots[number]


def _bytes_of(array: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
