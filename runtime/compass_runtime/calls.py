"""Calling a program like a function: arrays and numbers in, outputs changed in place, prepared jobs kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compass_core.errors import CompassError
from compass_runtime.job import Job

if TYPE_CHECKING:
    from compass_runtime.program import Program
    from compass_sim import RunResult

MAX_JOBS = 8
"""Jobs kept for further calls with the same sizes."""
MAX_CHECKED = 256
"""Combinations of sizes and scalars known to be in order."""


class Caller:
    """The calls of one program. A call with known sizes copies, runs and copies back; nothing is resolved again."""

    def __init__(self, program: Program) -> None:
        self._program = program
        names = [info.name for info in (*program.inputs, *program.outputs)]
        self.names = tuple(p.name for p in program.params) if program.kernel else tuple(names)
        outputs = {info.name for info in program.outputs}
        self._output_at = [(i, name) for i, name in enumerate(self.names) if name in outputs]
        scalars = [name in program.scalars for name in self.names]
        self._scalar_at = [(i, name) for i, (name, s) in enumerate(zip(self.names, scalars, strict=True)) if s]
        self._tensor_at = [(i, name) for i, (name, s) in enumerate(zip(self.names, scalars, strict=True)) if not s]
        # with extents, scalars decide how large arrays must be: a new value needs a new look
        self._sized_by_scalars = program.kernel is not None and program.kernel.extents is not None
        self._jobs: dict[Any, Job] = {}
        self._checked: dict[Any, Job] = {}

    def call(self, args: Sequence[Any], timeout: float | None) -> RunResult:
        """See `Program.call`."""
        if len(args) != len(self.names):
            raise CompassError(f"'{self._program.where}' takes {len(self.names)} arguments ({', '.join(self.names)}), "
                               f"not {len(args)}", code="argument-count")  # fmt: skip
        job = self._job(args)
        for i, name in self._output_at:
            if args[i] is not None and not args[i].flags.writeable:
                raise CompassError(f"argument {i + 1} ('{name}') is an output, but the array is read-only",
                                   code="read-only")  # fmt: skip
        with job.lock:
            job.revive()
            slots = job.slots
            for i, name in self._tensor_at:
                if args[i] is not None and name in slots:
                    slots[name].load(slots[name].info.checked(args[i], slots[name].nbytes))
                elif args[i] is not None:
                    job.set_constant(name, args[i])
            result = job.execute(timeout)
            for i, name in self._output_at:
                if args[i] is not None:
                    slots[name].store(args[i])
        return result

    def _job(self, args: Sequence[Any]) -> Job:
        """A job for these arguments, with the scalars set: a kept one when there is one."""
        try:
            sizes = tuple([None if args[i] is None else args[i].shape for i, _ in self._tensor_at])
            scalars = {name: args[i] for i, name in self._scalar_at}
            key = (sizes, tuple(scalars.values())) if self._sized_by_scalars else (sizes, ())
            job = self._checked.get(key)
        except (AttributeError, TypeError):
            raise self._wrong_kind(args) from None
        if job is None:
            job = self._new(args, sizes, scalars)
            if len(self._checked) >= MAX_CHECKED:
                self._checked.clear()
            self._checked[key] = job
        job.set_values(scalars)
        return job

    def _new(self, args: Sequence[Any], sizes: Any, scalars: dict[str, Any]) -> Job:
        """Checks the arguments' sizes; gives a kept job of these sizes or makes one."""
        given = {name: args[i] for i, name in self._tensor_at}
        nulls = frozenset(name for name, array in given.items() if array is None)
        arrays = {info.name: info.elements_of(given[info.name])
                  for info in (*self._program.inputs, *self._program.outputs) if info.name not in nulls}  # fmt: skip
        shapes, values = self._program.resolve({}, scalars, arrays, nulls)
        job = self._jobs.get(sizes)
        if job is None:
            while len(self._jobs) >= MAX_JOBS:
                self._forget(next(iter(self._jobs)))
            job = self._jobs[sizes] = Job(self._program, shapes, values, nulls)
        return job

    def _forget(self, sizes: Any) -> None:
        """Drops a kept job; its memory goes when no call uses it any more."""
        old = self._jobs.pop(sizes)
        self._checked = {key: job for key, job in self._checked.items() if job is not old}

    def _wrong_kind(self, args: Sequence[Any]) -> CompassError:
        """The error for the first argument that is neither an array nor a number where it should be."""
        for i, name in self._tensor_at:
            if args[i] is not None and not hasattr(args[i], "shape"):
                return CompassError(f"argument {i + 1} ('{name}') must be a NumPy array, not {type(args[i]).__name__}",
                                    code="argument-type")  # fmt: skip
        i, name = next(((i, n) for i, n in self._scalar_at if not hasattr(args[i], "__float__")), self._scalar_at[0])
        return CompassError(f"argument {i + 1} ('{name}') must be a number, not {type(args[i]).__name__}",
                            code="argument-type")  # fmt: skip
