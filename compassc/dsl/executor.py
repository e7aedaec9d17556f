"""`Executor`: a built kernel that runs on the simulator when it is called."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core import files
from compass_core.errors import ArgumentError, CompassError, UsageError, render
from compass_core.errors.rendering import for_stream
from compass_core.vendor import wrong_argument_count
from compass_runtime.profile.options import ProfileOptions
from compass_runtime.rpc import Session
from compass_runtime.timing import Plan, measure

from ..settings.options import ControlOptions, control_options, dumps_tensors
from .dumps import write_inputs, write_outputs
from .remote import get_rpc_session

if TYPE_CHECKING:
    from compass_core.aipubin.kernelinfo import ParamFields
    from compass_core.arrays import Array
    from compass_runtime import rpc
    from compass_runtime.compass_module import CompassModule
    from compass_runtime.profile.result import Profile
    from compass_runtime.program import Program
    from compass_runtime.rpc.programs import RemoteProgram
    from compass_runtime.timing import BenchmarkResult

    from ..driver.build import Build

LATE_ROLES = ("const", "descriptor")
"""Parameters whose content is part of aipu.bin: the graph is built when the arguments are there."""


def _run(program: Program | RemoteProgram, args: Sequence[object]) -> None:
    """Run a program once; what the kernel prints goes to stdout, as in PySim."""
    printed = program.call(args).printf
    if printed:
        sys.stdout.write(for_stream(printed, sys.stdout))


def _log(warnings: Sequence[CompassError]) -> None:
    """Log the warnings of a checked run whose caller does not read them."""
    import logging

    for warning in warnings:
        logging.getLogger("Compass").warning("%s", render(warning))


class Executor:
    """A built kernel. `ex(a, out)` takes one argument per kernel parameter, in order: a NumPy array for a pointer
    (`None` or 0 for a null pointer), a number for a scalar. Output arrays are changed in place, starting from their
    current content. `path` is the aipu.bin."""

    mtriple: str | None = None

    def __init__(self, build: Build, keep: object = None, check: str | None = None) -> None:
        assert build.generated is not None and build.params is not None
        self.name = build.name
        self.c_code: str = build.generated.text
        self.params: list[ParamFields] = build.params["params"]
        self.path: Path = build.request.output
        self.options: ControlOptions = control_options()
        self._build = build
        self._object = build.file(".o").read_bytes()
        self._keep = keep
        self.latest_profile: Profile | None = None
        self._content = b""
        self._late = [i for i, p in enumerate(self.params) if p["role"] in LATE_ROLES]
        if not self._late:
            self._content = self.path.read_bytes()  # another build may put its own there
        self._dumps = self.options.dumps or dumps_tensors()
        self._check = check
        special = self._dumps or self.options.is_rpc or self.options.is_profile or check
        self._direct = not (self._late or special)
        self._session: rpc.Session | None = None
        self._remote: RemoteProgram | None = None
        self._program: Program | None = None
        self._programs: dict[object, Program] = {}
        self._lock = threading.Lock()

    @property
    def program(self) -> Program:
        """The loaded aipu.bin; of a kernel with constants, the one built for the latest call."""
        if self._program is None:
            from compass_runtime.program import Program

            if self._late:
                raise UsageError(
                    f"{self.name} has constants: its aipu.bin is built when it is called", code="no-program"
                )
            self._program = Program.load(self._content, where=str(self.path))
        return self._program

    @property
    def module(self) -> CompassModule:
        """The program as a module, for `export_library`: it runs where there is no compiler."""
        from compass_runtime.compass_module import CompassModule

        assert self.program is not None
        return CompassModule(self._content)

    @property
    def rpc_sess(self) -> rpc.Session | None:
        """The session on whose server the kernel runs; None: it runs here. Arrays are copied there and back by each call."""
        return self._session

    @rpc_sess.setter
    def rpc_sess(self, session: rpc.Session | None) -> None:

        if session is not None and not isinstance(session, Session):
            raise ArgumentError(
                f"a remote session is made by `compass_runtime.rpc.connect`, not a {type(session).__name__}",
                code="argument-type",
            )
        self._session, self._remote, self._direct = session, None, False

    def __repr__(self) -> str:
        names = ", ".join(p["name"] for p in self.params)
        return f"<Executor {self.name}({names})>"

    def __call__(self, *args: object) -> None:
        """Run the kernel once; see the class."""
        if self._direct and len(args) == len(self.params):
            _run(self._program or self.program, args)
            return
        if self._check is not None:
            _log(self.check(*args, modes=self._check))
            return
        program, passed = self._prepare(args)
        if self._dumps:
            write_inputs(self.path.parent, self.params, args, program.target)
            self._run_once(program, passed)
            write_outputs(self.path.parent, self.params, args)
        else:
            self._run_once(program, passed)

    run = __call__

    def _run_once(self, program: Program, passed: Sequence[object]) -> None:
        if self.options.is_profile:
            self._run_profiled(program, passed)
        else:
            _run(self._there(program) or program, passed)

    def _there(self, program: Program) -> RemoteProgram | None:
        """The program on the server of the session; None where there is no session."""
        if self._session is None and not self.options.is_rpc:
            return None
        from compass_runtime.rpc.programs import RemoteProgram

        with self._lock:
            if self._session is None or (self.options.is_rpc and self._session.closed):
                self._session = get_rpc_session(rpc_key=self.options.rpc_key)
            if self._remote is None or self._remote.program is not program or self._remote.session is not self._session:
                self._remote = RemoteProgram(self._session, program, self._content)
            return self._remote

    def _here(self, what: str) -> None:
        """UsageError where the kernel runs on a server."""
        if self._session is not None or self.options.is_rpc:
            raise UsageError(
                f"{what} of kernels are made on this machine, not in a remote session",
                code="remote-run",
                help="set rpc_sess to None",
            )

    def benchmark(
        self,
        *args: object,
        repeat: int = 2,
        number: int = 3,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
    ) -> BenchmarkResult:
        """Times the run alone: arguments are copied to the device once before, outputs back once after all runs.

        Seconds per run, one value per `repeat`, each the mean of `number` runs after one warm-up; `.device` has what
        the engine measured, without starting the job from the host. Outputs that the kernel also reads go from run to
        run.
        """
        from compass_runtime.calls import run_loaded

        plan = Plan(
            number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown
        )
        program, passed = self._prepare(args)
        if (there := self._there(program)) is not None:
            return there.time(passed, asdict(plan))
        with program.caller.loaded(passed) as job:
            result = measure(lambda: run_loaded(job).seconds, plan)
            program.caller.store(job, passed)
        return result

    def schedule(self, *args: object, seed: int = 0, explore: int = 0) -> None:
        """Runs with the TECs taking turns, one at a time.

        `seed`: in the order it draws, the same every time. `explore`: in this many orders, each from the arrays'
        present content; CompassError when one gives another result or fails, with its seed.
        """
        from compass_runtime import orders
        from compass_runtime.calls import run_loaded

        self._here("runs in a certain order")
        wanted = orders.ScheduleOptions(seed, explore).checked()
        program, passed = self._prepare(args)
        with program.caller.loaded(passed) as job:

            def run(seed: int) -> dict[str, Array]:
                job.revive()
                assert job.refill is not None
                job.refill()
                run_loaded(job, seed=seed)
                return {slot.info.name: slot.fetch() for slot in job.outputs}

            if wanted.explore:
                orders.explore(run, wanted.explore)
            else:
                orders.run_in_order(run, wanted.seed)
            program.caller.store(job, passed)

    def check(self, *args: object, modes: str = "all") -> list[CompassError]:
        """Runs with checks and looks for `modes`: `bounds`, `race`, `uninit`, `dma`, `align`, several with commas, or
        `all`. CompassError with all that is wrong; then the output arrays stay as they are. Gives the warnings. Races
        between the groups of a kernel on several cores are not looked for.
        """
        from compass_runtime.checks import Modes, check_call

        self._here("checks")
        wanted = Modes.parse(modes)
        program, passed = self._prepare(args)
        outcome = check_call(program, wanted, passed)
        outcome.raise_errors()
        if outcome.result is not None and outcome.result.printf:
            sys.stdout.write(for_stream(outcome.result.printf, sys.stdout))
        return outcome.warnings

    def profile(self, *args: object) -> int:
        """Runs once with counters in the kernel; prints and gives the total cycles, estimated by the target's cost
        model. `latest_profile` has the details; a page of them and a trace for Perfetto are written as
        `profile_output.html` and `profile_trace.json` to the folder `runtime` beside that of aipu.bin."""
        program, passed = self._prepare(args)
        return self._run_profiled(program, passed)

    def program_for(self, *args: object) -> Program:
        """The program that a call with these arguments runs; constants and descriptors are part of it."""
        return self._prepare(args)[0]

    def _run_profiled(self, program: Program, passed: Sequence[object]) -> int:
        from compass_runtime.profile.run import profiled_call

        self._here("profiles")
        self.latest_profile = profile = profiled_call(program, passed)
        folder = self.path.parent.parent / "runtime"
        ProfileOptions(False, folder / "profile_output.html", folder / "profile_trace.json").write(profile)
        print(f"Total Cycles: {profile.cycles}")
        return profile.cycles

    def _prepare(self, args: tuple[object, ...]) -> tuple[Program, Sequence[object]]:
        """The program for these arguments, built now if constants are among them, and its own arguments."""
        if len(args) != len(self.params):
            raise wrong_argument_count(self.name, [p["name"] for p in self.params], len(args))
        if not self._late:
            return self.program, args
        self._check_late(args)
        with self._lock:  # each build writes the same files
            return self._built(args)

    def _built(self, args: tuple[Any, ...]) -> tuple[Program, Sequence[object]]:
        """The program whose constants and descriptors fit the arguments."""
        if any(p["role"] == "descriptor" for p in self.params):
            from .descriptors import expand

            call = expand(self.name, self.params, args)
            assert self._build.params is not None
            passed = [p for p in call.params if p["role"] != "descriptor"]
            consts = {p["name"]: a for p, a in zip(passed, call.args, strict=True) if p["role"] == "const"}
            self._program = self._graph({**self._build.params, "params": call.params}, consts, call.words)
            return self._program, call.args
        sizes = tuple(args[i].nbytes for i in self._late)
        if sizes not in self._programs:
            consts = {self.params[i]["name"]: args[i] for i in self._late}
            self._programs[sizes] = self._graph(self._build.params or {}, consts)
        self._program = self._programs[sizes]
        return self._program, args

    def _check_late(self, args: tuple[Any, ...]) -> None:
        import numpy as np

        from .aiff import DescChainArray

        for i in self._late:
            name = self.params[i]["name"]
            wanted: type = DescChainArray if self.params[i]["role"] == "descriptor" else np.ndarray
            if not isinstance(args[i], wanted) or not len(args[i]):
                raise ArgumentError(
                    f"{self.name}: argument {i + 1} ('{name}') must be a non-empty {wanted.__name__}, "
                    f"not {type(args[i]).__name__}",
                    code="argument-type",
                )

    def _graph(
        self, params: Mapping[str, object], consts: dict[str, Any], descriptors: dict[str, Any] | None = None
    ) -> Program:
        """Builds aipu.bin with the content of constants and descriptors."""
        from compass_runtime.program import Program

        from .. import gbuilder

        build, code = self._build, self._build.file(".o")
        with files.locked(build.folder):
            if not code.is_file() or code.read_bytes() != self._object:
                files.write(code, self._object)
            gbuilder.build_from_params(params, code, build.folder, self.path, consts=consts, descriptors=descriptors)
            self._content = self.path.read_bytes()
        return Program.load(self._content, where=str(self.path))
