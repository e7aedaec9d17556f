"""Running programs with checks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field
from typing import TYPE_CHECKING

from compass_core import targets
from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, UsageError, together
from compass_runtime.checks import area
from compass_runtime.checks.build import CheckedProgram, checked_programs
from compass_runtime.checks.diagnostics import OUT_OF_BOUNDS, Diagnostics
from compass_runtime.checks.modes import Modes
from compass_runtime.checks.overflow import overflows
from compass_runtime.job import Buffer, Job
from compass_sim.worker import host_memory_limit

if TYPE_CHECKING:
    from compass_runtime.program import Program
    from compass_sim import RunResult

_one_at_a_time = threading.Lock()
"""A device has one area for findings."""
_RACE_BYTES = 12
"""Bytes of history per byte that TECs may share: `struct history` of sim/engine/check_access.c. On several cores groups have
one more."""
_PATIENCE = 20
"""How much longer than a plain run a checked one may take when the caller gives no limit."""


@dataclass
class Outcome:
    """The outcome of checked runs: errors, warnings, and the result of the plain run after them.

    `broken`: a further run would be meaningless because this one ended by a fault or wrote out of bounds.
    """

    result: RunResult | None = None
    errors: list[CompassError] = field(default_factory=list)
    warnings: list[CompassError] = field(default_factory=list)
    broken: bool = False

    def add(self, job: Job, modes: Modes, timeout: float | None) -> None:
        """Runs a job that is loaded, with the checks among `modes` that its program was compiled for."""
        program = job.program
        assert isinstance(program, CheckedProgram)
        buffers = area.merged(job.buffers())
        memory = job.device.worker.memory
        _check_room(buffers, modes & program.modes, targets.load(program.target).cores > 1)
        fault: list[CompassError] = []
        area.prepare(memory, modes & program.modes, buffers)
        try:
            job.execute(timeout or program.time_limit * _PATIENCE)
        except CompassError as error:
            fault.append(error)
        told = Diagnostics(program, buffers).errors(*area.findings(memory))
        self.broken = bool(fault) or any(error.code == OUT_OF_BOUNDS for error in told)
        self.errors += [error for error in told if error.severity == "error"] + fault
        self.warnings += [error for error in told if error.severity != "error"]

    def raise_errors(self) -> None:
        """Raises the errors together with the warnings; nothing when there are none."""
        if self.errors:
            raise together([*self.errors, *self.warnings])


def _check_room(buffers: Sequence[Buffer], modes: Modes, several: bool) -> None:
    """CompassError when the host has not the memory in which a run takes notes of each byte of the buffers."""

    need = sum(buffer.nbytes for buffer in buffers) * ((1 + several) * _RACE_BYTES if Modes.RACE in modes else 1)
    if 0 < host_memory_limit() < need:
        raise CompassError(
            f"a checked run of these tensors needs {need >> 20} MiB of memory, more than this host can give",
            code="out-of-memory",
            help="check with smaller tensors, or without race",
        )


def applicable(program: Program, modes: Modes) -> Modes:
    """The checks among `modes` that there are for a program. UsageError where these are none."""
    found = modes if program.note is not None else modes & ~Modes.OVERFLOW
    if not found:
        raise UsageError("overflow is looked for in graphs, and this is a kernel", code="bad-check", help="--check all")
    return found


def check_job(
    program: Program,
    modes: Modes,
    create: Callable[[Program], Job],
    inputs: Mapping[str, Array],
    timeout: float | None = None,
    initial: Mapping[str, Array] | None = None,
) -> Outcome:
    """Runs a job of `program`, as `create` makes it of a program, with checks; see `Job.run` for the rest."""
    modes = applicable(program, modes)
    outcome = Outcome()
    for checked in checked_programs(program, modes):
        with _one_at_a_time:
            job = create(checked)
            job.load(inputs, initial or {})
            outcome.add(job, modes, timeout)
            job.close()
        if outcome.broken:
            return outcome
    if Modes.OVERFLOW in modes:
        job = create(program)
        outcome.errors += overflows(job, inputs, timeout)
        job.close()
    return outcome


def check_call(program: Program, modes: Modes, args: Sequence[object], timeout: float | None = None) -> Outcome:
    """Runs with arguments as `Program.call` takes them. When nothing is wrong, a plain run follows, which changes the
    outputs: the code of checked ones may give other bits of signalling NaNs."""
    outcome = Outcome()
    modes = applicable(program, modes)
    with _one_at_a_time, ExitStack() as stack:
        for checked in checked_programs(program, modes):
            job = stack.enter_context(checked.caller.loaded(args))
            outcome.add(job, modes, timeout)
            if outcome.broken:
                break
    if not outcome.errors:
        outcome.result = program.call(args, timeout)
    return outcome
