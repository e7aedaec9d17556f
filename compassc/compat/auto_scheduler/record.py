"""Measurements, and files of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, cast

from compass_core import files
from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_runtime.module import Module
from compassc.ir.exprs import IntImm
from compassc.targets import Target, build
from compassc.te.tensor import Tensor
from compassc.tuning.host_measure import Argument, Bench, Plan

from ..autotvm.measure import MeasureErrorNo
from ..autotvm.record import target_of, target_text
from .state import State, Steps
from .workload import SearchTask, Workload, decode_workload_key, input_names

VERSION = "v0.6"
FAILED = 1e10


@dataclass
class Described:
    """A task as a record describes it."""

    workload_key: str
    target: Target | str
    hardware: list[int] = field(default_factory=list)
    host: str = ""
    layout: int = 0
    inputs: list[str] = field(default_factory=list)


@dataclass
class MeasureInput:
    """A state of a task."""

    task: SearchTask | Described
    state: State | Steps

    def serialize(self) -> list[list[object]]:
        """As records have it."""
        task = self.task
        rest: list[object]
        if isinstance(task, SearchTask):
            host = "" if task.target_host is None else str(task.target_host)
            rest = [task.hardware_params.numbers(), host, task.layout_rewrite_option, task.task_input_names]
        else:
            rest = [task.hardware, task.host, task.layout, task.inputs]
        target = target_text(task.target) if isinstance(task.target, Target) else task.target
        return [[task.workload_key, target, *rest], [[], self.state.transform_steps]]

    @staticmethod
    def deserialize(data: Sequence[Sequence[Any]]) -> MeasureInput:
        """What `serialize` gave."""
        (key, target, *rest), (_, steps) = data
        return MeasureInput(Described(key, target_of(target) or target, *rest), Steps(steps))


@dataclass
class MeasureResult:
    """The seconds of calls, the number of the error, its words, the seconds that all took, and when it was."""

    costs: list[float]
    error_no: int
    error_msg: str | None
    all_cost: float
    timestamp: float


def recover_measure_input(inp: MeasureInput, rebuild_state: bool = False) -> MeasureInput:
    """An input of a file with its task, and its state where that is asked for."""
    task = SearchTask(workload_key=inp.task.workload_key, target=inp.task.target)
    return MeasureInput(task, State(task.compute_dag, inp.state.transform_steps) if rebuild_state else inp.state)


def dump_record_to_string(inp: MeasureInput, res: MeasureResult) -> str:
    """A measurement as a line."""
    costs = [float(getattr(c, "value", c)) for c in res.costs] if res.error_no == 0 else [FAILED]
    return json.dumps(
        {"i": inp.serialize(), "r": [costs, int(res.error_no), res.all_cost, int(res.timestamp)], "v": VERSION}
    )


def load_record_from_string(record: str) -> tuple[MeasureInput, MeasureResult]:
    """The measurement of a line."""
    content = json.loads(record)
    costs, error, spent, when = content["r"]
    return MeasureInput.deserialize(content["i"]), MeasureResult(costs, int(error), None, float(spent), float(when))


class RecordToFile:
    """Appends measurements to a file."""

    def __init__(self, filename: str) -> None:
        self.filename = str(filename)

    def callback(self, policy: object, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Takes measurements."""
        save_records(self.filename, inputs, results)


class RecordReader:
    """Reads a file of measurements."""

    def __init__(self, filename: str) -> None:
        self.filename = str(filename)

    def __iter__(self) -> Iterator[tuple[MeasureInput, MeasureResult]]:
        for line in files.read_text(Path(self.filename)).splitlines():
            if line.strip() and not line.startswith("#"):
                yield load_record_from_string(line)

    def read_lines(
        self, max_lines: int | None = None, skip_lines: int = 0
    ) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """Measurements after some lines, so many at most."""
        found = list(self)[skip_lines:]
        found = found if max_lines is None else found[:max_lines]
        return [i for i, _ in found], [r for _, r in found]


def load_records(filename: str) -> Iterable[tuple[MeasureInput, MeasureResult]]:
    """The measurements of a file."""
    return iter(RecordReader(filename))


def save_records(filename: str, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
    """Appends measurements to a file."""
    path = Path(filename)
    path.parent.mkdir(parents=True, exist_ok=True)
    old = files.read_text(path) if path.is_file() else ""
    files.write(path, old + "".join(dump_record_to_string(i, r) + "\n" for i, r in zip(inputs, results)))


def load_best_record(
    filename: str, workload_key: str | None = None, target: object = None, include_compatible: bool = False
) -> tuple[MeasureInput, MeasureResult] | tuple[None, None]:
    """The best measurement of a workload on a target; None twice where there is none."""
    best: tuple[MeasureInput, MeasureResult] | tuple[None, None] = (None, None)
    least = FAILED
    wanted = None if target is None else Target.of(target).kind.name
    for inp, res in load_records(filename):
        factor = _distance(workload_key, inp.task.workload_key, include_compatible)
        kind = inp.task.target.kind.name if isinstance(inp.task.target, Target) else str(inp.task.target).split()[0]
        if res.error_no or factor is None or wanted not in (None, kind):
            continue
        mean = factor * sum(map(float, res.costs)) / len(res.costs)
        if mean < least:
            best, least = (inp, res), mean
    return best


def _distance(wanted: str | None, found: str, compatible: bool) -> float | None:
    """How many times as much a workload is as that of a record; None where the record is of no use for it."""
    if wanted is None or json.loads(wanted) == json.loads(found):
        return 1.0
    return calc_workload_dis_factor(decode_workload_key(wanted), decode_workload_key(found)) if compatible else None


def calc_workload_dis_factor(target_workload_pair: Workload, workload_pair: Workload) -> float | None:
    """The product of how many times the numbers of one are those of another; None where they are none."""
    (one, args), (other, others) = target_workload_pair, workload_pair
    if one != other or len(args or ()) != len(others or ()):
        return None
    factor = 1.0
    for a, b in zip(_numbers(args or ()), _numbers(others or ())):
        if isinstance(a, int) and isinstance(b, int) and not isinstance(a, bool):
            if b == 0 or a % b:
                return None
            factor *= a // b
        elif a != b:
            return None
    return factor


def _numbers(args: Iterable[object]) -> list[object]:
    return [x for a in args for x in (_numbers(a) if isinstance(a, (list, tuple)) else [a])]


def distill_record_file(in_file: str, out_file: str) -> None:
    """Writes the best measurement of each workload and target of a file."""
    best: dict[tuple[str, str], tuple[MeasureInput, MeasureResult]] = {}
    for inp, res in load_records(in_file):
        key = inp.task.workload_key, str(inp.task.target)
        if not res.error_no and (
            key not in best or sum(res.costs) / len(res.costs) < sum(best[key][1].costs) / len(best[key][1].costs)
        ):
            best[key] = inp, res
    files.write(Path(out_file), "".join(dump_record_to_string(*pair) + "\n" for pair in best.values()))


class LocalBuilder:
    """Builds modules in this process."""

    def __init__(self, timeout: float = 15, n_parallel: int | None = None, build_func: str = "default") -> None:
        """ValueError for other ways to build than `default`."""
        if build_func != "default":
            raise ValueError(f"Invalid build_func: {build_func}")
        self.timeout, self.bench = timeout, Bench()


class LocalRunner:
    """Runs modules on this machine, in a process of their own."""

    def __init__(
        self, timeout: float = 10, number: int = 3, repeat: int = 1, min_repeat_ms: float = 100, cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False, device: int = 0,
    ) -> None:  # fmt: skip
        self.plan = Plan(number, repeat, min_repeat_ms, timeout, cooldown_interval)
        self.bench = Bench()


class LocalRPCMeasureContext:
    """A runner of this machine, as `runner`."""

    def __init__(
        self, priority: int = 1, n_parallel: int = 1, timeout: float = 10, number: int = 3, repeat: int = 1,
        min_repeat_ms: float = 0, cooldown_interval: float = 0.0, enable_cpu_cache_flush: bool = False, device: int = 0,
    ) -> None:  # fmt: skip
        self.runner = LocalRunner(timeout, number, repeat, min_repeat_ms, cooldown_interval)


class RPCRunner(LocalRunner):
    """RuntimeError: servers run programs of NPUs, with `compassc tune --tracker`."""

    def __init__(self, key: str, host: str, port: int, *args: object, **options: object) -> None:
        raise RuntimeError(
            f"Cannot get remote devices from the tracker {host}:{port}: its servers run programs of NPUs"
        )


_ERRORS = {
    "instantiate": MeasureErrorNo.INSTANTIATION_ERROR, "build": MeasureErrorNo.COMPILE_HOST, "timeout": MeasureErrorNo.BUILD_TIMEOUT,
}  # fmt: skip


def measured(builder: LocalBuilder, runner: LocalRunner, inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
    """What states take, in order."""
    return [_measured(builder, runner, inp) for inp in inputs]


def _measured(builder: LocalBuilder, runner: LocalRunner, inp: MeasureInput) -> MeasureResult:
    start, task = time.perf_counter(), inp.task
    assert isinstance(task, SearchTask), "an input of a file has no graph: recover_measure_input makes one that has"

    def made() -> Module:
        schedule, tensors = task.compute_dag.apply_steps_from_state(inp.state)
        return build(schedule, tensors, task.target)

    built = builder.bench.build(made, builder.timeout)
    if built.error:
        return MeasureResult([FAILED], _ERRORS[built.error], built.message, built.seconds, time.time())
    names = input_names(task.workload_key, task.compute_dag.tensors)
    arguments = [_argument(task, t, names.get(t)) for t in task.compute_dag.tensors]
    found = runner.bench.run(built.path, task.target.kind.device, arguments, runner.plan)
    spent = time.perf_counter() - start
    if found.error:
        kind = MeasureErrorNo.RUN_TIMEOUT if found.error == "timeout" else MeasureErrorNo.RUNTIME_DEVICE
        return MeasureResult([FAILED], kind, found.message, spent, time.time())
    return MeasureResult(list(found.seconds), MeasureErrorNo.NO_ERROR, None, spent, time.time())


def _argument(task: SearchTask, tensor: Tensor, name: str | None) -> Argument:
    given = None if name is None else task.task_inputs.get(name)
    if given is not None:
        return cast(Array, given.numpy() if hasattr(given, "numpy") else given)
    return tuple(d.value for d in tensor.shape if isinstance(d, IntImm)), str(tensor.dtype)
