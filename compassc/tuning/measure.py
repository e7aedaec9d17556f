"""Measuring candidates: each is built, run on the simulator, and its outputs are compared with what is right.

Candidates are compiled many in one translation unit, because starting a compiler costs more than compiling a small
kernel; where that fails they are compiled one by one, so that a mistake is that of its candidate alone. The kernel runs
in the simulator's process, which is confined and may end: a candidate that fails there, and was not the first one in
its process, is run again in a new one.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core import targets
from compass_core.bounded import Bounded
from compass_core.dataclass import dataclass
from compass_core.elf.hostcode import entry_symbol, make_text_blob
from compass_core.errors import CompassError
from compass_core.hostcc import host
from compass_core.hostcc.foreign import compile_source
from compass_core.hostcc.sources import Source
from compass_runtime.calls import run_loaded
from compass_runtime.compare import compare
from compass_runtime.profile.collect import Counting
from compass_runtime.profile.costs import cost_model
from compass_runtime.profile.instrument import instrument
from compass_runtime.profile.result import estimated_cycles
from compass_runtime.program import Program
from compass_runtime.rpc.errors import RPCError
from compass_sim.faults import KernelFault, SimulatorError
from compassc import gbuilder
from compassc.driver.files import json_text
from compassc.toolchain.unit import LineMap, joined_unit
from compassc.tuning.artifact import Artifact, Feed, Refused, artifact, renamed, without_shared, words
from compassc.tuning.result import ERRORS, Metric, Result
from compassc.tuning.server_pool import GONE, Place
from compassc.tuning.space import Candidate
from compassc.tuning.task import Task

if TYPE_CHECKING:
    from compass_sim import RunResult

BUILD_SECONDS = 60
__all__ = ["ERRORS", "MeasureOptions", "Metric", "Result", "measure", "measure_artifacts", "timed"]
_UNIT = "candidates.cl"
_FLAGS = ("-O1",)
"""Counts, and so cycles, are the same however the host's code is optimised: less of it is sooner there."""


@dataclass(frozen=True)
class MeasureOptions:
    """`metric`: estimated cycles of the target's cost model, or seconds of the simulator on this machine. `timeout`: of
    a run, in seconds. `repeat`: runs of which the shortest counts, for seconds. `batch`: candidates in a translation
    unit. `trusted`: the C text is this user's own. `place`: where candidates run, when not here."""

    metric: Metric = "cycles"
    timeout: float = 10.0
    repeat: int = 5
    batch: int = 16
    trusted: bool = True
    place: Place | None = None


def measure(task: Task, candidates: Sequence[Candidate], options: MeasureOptions | None = None) -> list[Result]:
    """The results of candidates, in order. What is wrong with a candidate is its result; ToolchainError where nothing
    can be measured here, because there is no compiler or no simulator."""
    given = options or MeasureOptions()
    feed = Feed.of(task)
    results: list[Result] = []
    for first in range(0, len(candidates), given.batch):
        results += measure_artifacts([timed(task, c) for c in candidates[first : first + given.batch]], feed, given)
    return results


def timed(task: Task, candidate: Candidate) -> tuple[Artifact | Refused, float]:
    """`artifact`, and the seconds that it took."""
    start = time.perf_counter()
    made = artifact(task, candidate)
    return made, time.perf_counter() - start


def measure_artifacts(
    made: Sequence[tuple[Artifact | Refused, float]], feed: Feed, options: MeasureOptions
) -> list[Result]:
    """The results of candidates whose C text is there."""
    results: dict[int, Result] = {}
    good: dict[int, Artifact] = {}
    for number, (one, seconds) in enumerate(made):
        if isinstance(one, Refused):
            results[number] = Result(None, one.kind, one.message, {"text": seconds})
        else:
            good[number] = one
    if good:
        for number, result in zip(good, _measured(list(good.values()), feed, options), strict=True):
            results[number] = replace(result, seconds={"text": made[number][1], **result.seconds})
    return [results[number] for number in range(len(made))]


def _measured(artifacts: Sequence[Artifact], feed: Feed, options: MeasureOptions) -> list[Result]:
    start = time.perf_counter()
    try:
        built = _Batch(artifacts, feed, options)
    except CompassError as error:
        spent = time.perf_counter() - start
        if len(artifacts) > 1:
            return [result for one in artifacts for result in _measured([one], feed, options)]
        if _is_missing(error):
            raise
        kind = "timeout" if error.code == "limit-exceeded" else "build"
        return [Result(None, kind, _compiler_words(error), {"build": spent})]
    spent = (time.perf_counter() - start) / len(artifacts)
    return [replace(result, seconds={"build": spent, **result.seconds}) for result in built.results()]


def _is_missing(error: CompassError) -> bool:
    """Whether an error is about this machine, not about a candidate."""
    return error.code in ("no-clang", "no-linker", "no-engine", "untrusted-source")


def _compiler_words(error: CompassError) -> str:
    notes = [str(getattr(note, "text", note)) for note in error.notes]
    return "; ".join([words(error), *(n for n in notes if "error" in n)][:2])[:500]


class _Batch:
    """Candidates compiled together."""

    def __init__(self, artifacts: Sequence[Artifact], feed: Feed, options: MeasureOptions) -> None:
        """CompassError where they do not compile."""
        self._feed, self._options = feed, options
        self._target = targets.load(feed.target)
        texts = {text: i for i, text in enumerate(dict.fromkeys(one.text for one in artifacts))}
        # kernels that differ in their arguments alone are compiled once
        apart = [renamed(one, f"c{texts[one.text]}_") if len(texts) > 1 else one for one in artifacts]
        unit = joined_unit(without_shared(list(dict.fromkeys(one.text for one in apart))), LineMap(()), _UNIT)
        source = Source(_UNIT, self._target.define, (), (), unit, trusted=options.trusted)
        self._counting = None
        if options.metric == "cycles":
            source, self._counting = self._counted(source)
        self._elf = compile_source(source, _FLAGS if self._counting else (), None, time.monotonic() + BUILD_SECONDS)
        self._artifacts = apart
        self._origin: object = object()
        self._fresh = True

    def _counted(self, source: Source) -> tuple[Source, Any]:
        """The text with counters, and what they mean."""
        model = cost_model(self._target.name)
        unit = instrument(source, model)
        return unit.source, (model, (unit,))

    def results(self) -> list[Result]:
        """A result for each candidate."""
        return [self._result(one) for one in self._artifacts]

    def _result(self, one: Artifact) -> Result:
        begin, alone = time.perf_counter(), self._fresh
        result = self._once(one)
        if not result.ok and not alone:  # what ran before in the process may be the cause
            self._new_process()
            result = self._once(one)
        if not result.ok:
            self._new_process()
        return replace(result, seconds={"run": time.perf_counter() - begin})

    def _new_process(self) -> None:
        self._origin, self._fresh = object(), True

    def _once(self, one: Artifact) -> Result:
        self._fresh = False
        arguments = [a.copy() if isinstance(a, np.ndarray) else a for a in one.arguments or self._feed.arguments]
        try:
            cost = self._run(self._program(one, arguments), arguments)
        except KernelFault as fault:
            return Result(None, "timeout" if fault.code == "kernel-timeout" else "crash", words(fault))
        except RPCError as error:
            if error.code in GONE:
                raise
            kind = "timeout" if error.code == "kernel-timeout" else "crash"
            return Result(None, kind if error.code.startswith(("kernel-", "worker-")) else "build", words(error))
        except SimulatorError as error:
            if _is_missing(error):
                raise
            return Result(None, "crash", words(error))
        except CompassError as error:
            if _is_missing(error):
                raise
            return Result(None, "crash" if error.code in ("lost-events", "bad-records") else "build", words(error))
        if wrong := self._difference(one, arguments):
            return Result(None, "wrong", wrong)
        return Result(cost)

    def _program(self, one: Artifact, arguments: Sequence[object]) -> Program:
        made = _template(one, self._elf, arguments)
        code = make_text_blob(
            self._elf,
            [entry_symbol(one.params["kernel"])],
            host.current().features,
            host.triple(),
            made.code.asids,
        )
        return Program(replace(made.content, text=code), "candidate", True, origin=self._origin)

    def _run(self, program: Program, arguments: Sequence[Any]) -> float:
        """The cost of a run, which leaves outputs in the arguments."""
        if self._options.place is not None:
            return self._run_there(program, arguments, self._options.place)

        with program.caller.loaded(arguments) as job:
            if self._counting is not None:
                result = run_loaded(job, self._options.timeout, record=True)
                program.caller.store(job, arguments)
                return self._cycles(program, result)
            seconds = [run_loaded(job, self._options.timeout).seconds]
            program.caller.store(job, arguments)  # the first run has the outputs' initial content
            for _ in range(self._options.repeat - 1):
                assert job.refill is not None
                job.refill()
                seconds.append(run_loaded(job, self._options.timeout).seconds)
            return min(seconds)

    def _run_there(self, program: Program, arguments: Sequence[object], place: Place) -> float:
        """The same on a server."""
        there, initial = place.load(program), [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        counting = self._counting is not None
        result = there.call(arguments, self._options.timeout, counting)
        if counting:
            return self._cycles(program, result)
        seconds = [result.seconds]
        for _ in range(self._options.repeat - 1):
            again = [a.copy() if isinstance(a, np.ndarray) else a for a in initial]
            seconds.append(there.call(again, self._options.timeout).seconds)
        return min(seconds)

    def _cycles(self, program: Program, result: RunResult) -> float:
        assert self._counting is not None
        model, units = self._counting
        return float(estimated_cycles(Counting(program, model, units), result))

    def _difference(self, one: Artifact, arguments: Sequence[Any]) -> str:
        """How the outputs differ from the right ones; nothing where they do not."""
        names = [param["name"] for param in one.params["params"]]
        for position, right in self._feed.expected.items():
            tolerance = self._feed.tolerance
            found = compare(names[position], arguments[position], right, tolerance.rtol, tolerance.atol)
            if found is not None:
                return "; ".join(found.lines()[:3])
        return ""


_templates: Bounded[str, Program] = Bounded(64)


def _template(one: Artifact, elf: bytes, arguments: Sequence[Any]) -> Program:
    """A program with these parameters, whatever its code: what the graph builder makes of them."""
    consts = {p["name"]: a for p, a in zip(one.params["params"], arguments, strict=False) if p["role"] == "const"}
    key = json_text({**one.params, "kernel": ""}) + "".join(a.tobytes().hex() for a in consts.values())
    if key not in _templates:
        with tempfile.TemporaryDirectory(prefix="compassc-") as folder:
            code, out = Path(folder, "kernel.o"), Path(folder, "aipu.bin")
            code.write_bytes(elf)
            gbuilder.build_from_params(one.params, code, Path(folder), out, consts=consts)
            _templates[key] = Program.load(out.read_bytes(), where="candidate")
    return _templates[key]
