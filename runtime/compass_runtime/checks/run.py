"""Running programs with checks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compass_core.errors import CompassError, together
from compass_runtime.checks import area
from compass_runtime.checks.build import CheckedProgram, checked_programs
from compass_runtime.checks.modes import Modes
from compass_runtime.checks.words import Teller
from compass_runtime.job import Job

if TYPE_CHECKING:
    from compass_runtime.program import Program
    from compass_sim import RunResult

_one_at_a_time = threading.Lock()
"""A device has one area for what it found."""


@dataclass
class Outcome:
    """What checked runs gave: the last one's result, errors, and warnings, which stop nobody."""

    result: RunResult | None = None
    errors: list[CompassError] = field(default_factory=list)
    warnings: list[CompassError] = field(default_factory=list)

    def add(self, job: Job, modes: Modes, timeout: float | None) -> None:
        """Runs a job that is loaded, with the checks among `modes` that its program was compiled for."""
        program = job.program
        assert isinstance(program, CheckedProgram)
        buffers = area.merged(job.buffers())
        memory = job.device.worker.memory
        fault: list[CompassError] = []
        with _one_at_a_time:
            area.prepare(memory, modes & program.modes, buffers)
            try:
                self.result = job.execute(timeout)
            except CompassError as error:
                fault.append(error)
            found, dropped = area.findings(memory)
        told = Teller(program, buffers).errors(found, dropped)
        self.errors += [error for error in told if error.severity == "error"] + fault
        self.warnings += [error for error in told if error.severity != "error"]

    def raise_errors(self) -> None:
        """Raises the errors together with the warnings; nothing when there are none."""
        if self.errors:
            raise together([*self.errors, *self.warnings])


def check_job(
    program: Program,
    modes: Modes,
    create: Callable[[Program], Job],
    inputs: Mapping[str, Any],
    timeout: float | None = None,
    initial: Mapping[str, Any] | None = None,
) -> Outcome:
    """Runs a job of `program`, as `create` makes it of a program, with checks. For the other arguments see `Job.run`."""
    outcome = Outcome()
    for checked in checked_programs(program, modes):
        job = create(checked)
        with job.lock:
            job.revive()
            job.load(inputs, initial or {})
            outcome.add(job, modes, timeout)
        job.close()
    return outcome


def check_call(program: Program, modes: Modes, args: Sequence[Any], timeout: float | None = None) -> Outcome:
    """Runs with arguments as `Program.call` takes them; outputs are changed when nothing is wrong."""
    outcome = Outcome()
    with ExitStack() as stack:
        for checked in checked_programs(program, modes):
            job = stack.enter_context(checked.caller.loaded(args))
            outcome.add(job, modes, timeout)
            store = (checked, job)
        if not outcome.errors:
            store[0].caller.store(store[1], args)
    return outcome
