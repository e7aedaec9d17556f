"""Calling a program like a function: arrays and numbers in, outputs changed in place, prepared jobs kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from compass_core.arrays import Array
from compass_core.errors import ArgumentError, CompassError
from compass_core.namedtuple import NamedTuple
from compass_core.reading.arrays import other_elements
from compass_core.vendor import wrong_argument_count
from compass_runtime.forks import renew_locks
from compass_runtime.job import MAX_RETRIES, Job
from compass_runtime.npu import ENDED

if TYPE_CHECKING:
    from compass_runtime.program import Program, TensorInfo
    from compass_sim import RunResult

_NUMBERS = frozenset((int, float, bool))
MAX_JOBS = 8
"""Jobs kept for further calls with the same sizes."""
MAX_CHECKED = 256
"""Combinations of sizes and scalars known to be in order."""


class Arguments(NamedTuple):
    """The arguments of a call: arrays, scalars, and what a job is found by."""

    arrays: dict[str, Array | None]
    scalars: dict[str, float]
    sizes: tuple[object, ...]


class Caller:
    """The calls of one program. A call with known sizes copies, runs and copies back; nothing is resolved again."""

    def __init__(self, program: Program) -> None:
        self._program = program
        infos = {info.name: info for info in (*program.inputs, *program.outputs)}
        # descriptors are part of the file and not passed
        passed = tuple(p.name for p in program.params if p.role != "descriptor")
        self.names = passed if program.kernel else tuple(infos)
        self._scalar_at = [(i, name) for i, name in enumerate(self.names) if name in program.scalars]
        self._tensor_at = [
            (i, name, infos.get(name)) for i, name in enumerate(self.names) if name not in program.scalars
        ]
        self._output_at = [(i, name) for i, name, info in self._tensor_at if info is not None and info.role == "output"]
        # with extents, scalars decide how large arrays must be: a new value needs a new look
        self._sized_by_scalars = program.kernel is not None and program.kernel.extents is not None
        self._jobs: dict[object, Job] = {}
        self._checked: dict[object, Job] = {}
        self._lock = threading.Lock()
        renew_locks(self, "_lock")

    def call(self, args: Sequence[object], timeout: float | None) -> RunResult:
        """See `Program.call`."""
        job, given = self._found(args)
        with job.lock:
            try:
                _fill(job, given)
                result = run_loaded(job, timeout)
                self.store(job, args)
            finally:
                job.refill = None
                job.residency.release()
        return result

    @contextmanager
    def loaded(self, args: Sequence[object]) -> Iterator[Job]:
        """A job that holds the arguments, for the one who asked alone."""
        job, given = self._found(args)
        with job.lock:
            try:
                _fill(job, given)
                yield job
            finally:
                job.refill = None
                job.residency.release()

    def _found(self, args: Sequence[Any]) -> tuple[Job, Arguments]:
        """The job for these arguments, which are in order."""
        if len(args) != len(self.names):
            kernel = self._program.kernel.kernel if self._program.kernel else self._program.where
            raise wrong_argument_count(kernel, self.names, len(args))
        given = self._arguments(args)
        job = self._job(given)
        for i, name in self._output_at:
            if args[i] is not None and type(args[i]) is not int and not args[i].flags.writeable:
                raise CompassError(
                    f"argument {i + 1} ('{name}') is an output, but the array is read-only",
                    code="read-only",
                    help="pass a copy of it: array.copy()",
                )
        return job, given

    def store(self, job: Job, args: Sequence[Any]) -> None:
        """Copies the outputs of a job into the arrays of the call it is loaded with."""
        for i, name in self._output_at:
            if args[i] is not None and type(args[i]) is not int:
                job.slots[name].store(args[i])

    def _arguments(self, args: Sequence[object]) -> Arguments:
        try:
            return self._sorted(args)
        except (AttributeError, TypeError):
            pass
        plain = list(args)  # 0 is a null pointer too
        for i, _, _ in self._tensor_at:
            plain[i] = None if type(args[i]) is int and args[i] == 0 else args[i]
        try:
            return self._sorted(plain)
        except (AttributeError, TypeError):
            raise self._wrong_kind(plain) from None

    def _sorted(self, args: Sequence[Any]) -> Arguments:
        arrays: dict[str, Array | None] = {}
        sizes: list[object] = []
        others: list[tuple[int, TensorInfo, Array]] = []
        scalars: dict[str, float] = {}
        for i, name in self._scalar_at:
            scalars[name] = value = args[i]
            if value.__class__ not in _NUMBERS and not hasattr(value, "__float__"):
                raise TypeError(name)
        for i, name, info in self._tensor_at:
            array = args[i]
            sizes.append(None if array is None else array.shape)
            if array is not None and info is not None and array.dtype != info.numpy_dtype and not info.raw:
                others.append((i, info, array))
                sizes[-1] = (sizes[-1], array.nbytes)
            arrays[name] = array
        for i, info, array in others:  # when all else is in order, so that a warning is said once
            self._other_dtype(i, info, array)
        return Arguments(arrays, scalars, tuple(sizes))

    def _other_dtype(self, i: int, info: TensorInfo, array: Array) -> None:
        """Elements of another type of the same size are a warning: the kernel sees their bytes. Others are an error."""
        kernel = self._program.kernel.kernel if self._program.kernel else self._program.where
        what = f"{kernel}: argument {i + 1} ('{info.name}')"
        if text := other_elements(array, info.numpy_dtype, what, info.dtype.name):
            import logging

            logging.getLogger("Compass").warning("%s", text)

    def _job(self, given: Arguments) -> Job:
        """A job for these arguments: a kept one when there is one."""
        try:
            key = (given.sizes, tuple(given.scalars.values())) if self._sized_by_scalars else (given.sizes, ())
            job = self._checked.get(key)
        except TypeError:
            raise self._wrong_kind([given.scalars.get(n, given.arrays.get(n)) for n in self.names]) from None
        if job is None:
            with self._lock:
                job = self._new(given)
                if len(self._checked) >= MAX_CHECKED:
                    self._checked.clear()
                self._checked[key] = job
        return job

    def sizes(self, args: Sequence[object]) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
        """Checks the sizes of a call's arguments; gives shapes, and elements there is to be memory for, see `Program.resolve`."""
        shapes, _, room = self._resolved(self._arguments(args))
        return shapes, room

    def _resolved(self, given: Arguments) -> tuple[dict[str, tuple[int, ...]], dict[str, float], dict[str, int]]:
        program = self._program
        skipped = {name for name, array in given.arrays.items() if array is None}
        infos = [info for info in (*program.inputs, *program.outputs) if info.name not in skipped]
        arrays = {i.name: i.elements_of(array) for i in infos if (array := given.arrays[i.name]) is not None}
        return program.resolve({}, given.scalars, arrays, skipped, may_be_large=True)

    def _new(self, given: Arguments) -> Job:
        """Checks the arguments' sizes; gives a kept job of these sizes or makes one."""
        program = self._program
        resolved, values, room = self._resolved(given)
        sizes = given.sizes, tuple(room.items())
        job = self._jobs.get(sizes)
        if job is None:
            while len(self._jobs) >= MAX_JOBS:
                self._forget(next(iter(self._jobs)))
            nulls = frozenset(name for name, array in given.arrays.items() if array is None)
            job = self._jobs[sizes] = program.make_job(resolved, values, nulls, room)
        return job

    def _forget(self, sizes: object) -> None:
        """Drops a kept job; its memory goes when no call uses it any more."""
        old = self._jobs.pop(sizes)
        self._checked = {key: job for key, job in list(self._checked.items()) if job is not old}

    def _wrong_kind(self, args: Sequence[object]) -> ArgumentError:
        """The error for the first argument that is neither an array nor a number where it should be."""
        for i, name, _ in self._tensor_at:
            if args[i] is not None and not hasattr(args[i], "flags"):
                return ArgumentError(
                    f"argument {i + 1} ('{name}') must be a NumPy array, not {type(args[i]).__name__}",
                    code="argument-type",
                    help="a null pointer is None",
                )
        i, name = next(((i, n) for i, n in self._scalar_at if not hasattr(args[i], "__float__")), self._scalar_at[0])
        return ArgumentError(
            f"argument {i + 1} ('{name}') must be a number, not {type(args[i]).__name__}", code="argument-type"
        )


def _fill(job: Job, given: Arguments) -> None:
    """Gives a job its arguments, now and whenever it has to be placed anew."""
    job.refill = lambda: _revive_and_load(job, given)
    job.refill()


def _revive_and_load(job: Job, given: Arguments) -> None:
    for left in reversed(range(MAX_RETRIES)):
        try:
            job.revive()
            _load(job, given)
            return
        except CompassError as error:
            if error.code != ENDED or not left:
                raise


def _load(job: Job, given: Arguments) -> None:
    """Copies all arguments to the device."""
    job.residency.held = True
    job.set_values(given.scalars)
    slots = job.slots
    for name, array in given.arrays.items():
        if array is None:
            continue
        if name in slots:
            slots[name].load(slots[name].info.checked(array, slots[name].nbytes, any_dtype=True))
        else:
            job.set_constant(name, array)


def run_loaded(job: Job, timeout: float | None = None, seed: int = 0, record: bool = False) -> RunResult:
    """Runs a job that a call holds, see `Job.execute`. Where another job's fault ended the device in the meantime, it is loaded again."""
    for _ in range(MAX_RETRIES):
        try:
            return job.execute(timeout, seed, record)
        except CompassError as error:
            if error.code != ENDED:
                raise
        if job.refill is None:
            job.revive()
        else:
            job.refill()
    return job.execute(timeout, seed, record)
