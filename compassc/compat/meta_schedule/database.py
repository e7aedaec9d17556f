"""Databases: workloads, and what their schedules took."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compassc.ir import IRModule, PrimFunc, structural_equal, structural_hash
from compassc.ir import stmts as S
from compassc.ir.dtypes import PointerType
from compassc.ir.exprs import IntImm
from compassc.pass_manager.context import PassContext
from compassc.relay.tuned import META_SCHEDULE, scheduled_by
from compassc.targets import Target
from compassc.te.building import create_prim_func
from compassc.te.tensor import Tensor
from compassc.tir import Schedule, ScheduleError, Trace

from ..ir_functions import load_json, save_json

DISPATCH = "relay.backend.use_meta_schedule_dispatch"
FAILED = 1e10
"""The seconds of what could not be measured."""
_log = logging.getLogger("tvm.meta_schedule")


@dataclass(frozen=True)
class TensorInfo:
    """An argument of a function: its type and shape."""

    dtype: str
    shape: tuple[int, ...]

    def as_json(self) -> list[object]:
        """As records have it."""
        return ["TENSOR", self.dtype, list(self.shape)]

    @staticmethod
    def from_json(json_obj: Sequence[Any]) -> TensorInfo:
        """What `as_json` wrote."""
        return TensorInfo(str(json_obj[1]), tuple(map(int, json_obj[2])))


class ArgInfo:
    """Arguments of functions."""

    @staticmethod
    def from_prim_func(func: PrimFunc) -> list[TensorInfo]:
        """The tensors among the parameters of a function. ValueError where a size is open."""
        shapes = {s.buffer.data: s.buffer for s in func.body if isinstance(s, S.DeclBuffer)}
        found = []
        for p in func.params:
            if not isinstance(p.dtype, PointerType) or p not in shapes:
                raise ValueError(f"the parameter '{p.name}' is no tensor")
            sizes = shapes[p].shape
            if not all(isinstance(e, IntImm) for e in sizes):
                raise ValueError(f"the tensor '{p.name}' has an open size")
            found.append(TensorInfo(str(shapes[p].dtype), tuple(e.value for e in sizes if isinstance(e, IntImm))))
        return found

    @staticmethod
    def from_entry_func(mod: IRModule, remove_preproc: bool = True) -> list[TensorInfo]:
        """Those of the entry of a module."""
        return ArgInfo.from_prim_func(mod.entry_func)


def module_of(mod: object) -> IRModule:
    """A module, of a function or a module. TypeError for anything else."""
    if isinstance(mod, PrimFunc):
        return IRModule((mod,), mod.name, "")
    if not isinstance(mod, IRModule):
        raise TypeError(f"a {type(mod).__name__} is no module of kernels: give an IRModule or a PrimFunc")
    return mod


@dataclass(frozen=True, eq=False)
class Workload:
    """A module that is scheduled."""

    mod: IRModule

    def as_json(self) -> list[object]:
        """Its hash, and the module as saved text in base 64."""
        return [str(structural_hash(self.mod)), base64.b64encode(save_json(self.mod).encode()).decode()]

    @staticmethod
    def from_json(json_obj: Sequence[Any]) -> Workload:
        """What `as_json` wrote; the hash is not looked at."""
        return Workload(module_of(load_json(base64.b64decode(json_obj[1]).decode())))


@dataclass(eq=False)
class TuningRecord:
    """A trace for a workload, and the seconds that calls of it took; `raw`: the trace as JSON where it is from a file."""

    trace: Trace | None
    workload: Workload
    run_secs: list[float] | None = None
    target: object = None
    args_info: list[TensorInfo] | None = None
    raw: Any = None

    @property
    def mean(self) -> float:
        """The mean of the seconds."""
        return sum(self.run_secs) / len(self.run_secs) if self.run_secs else FAILED

    def is_valid(self) -> bool:
        """Whether it was measured, and has steps."""
        steps = self.raw[0] if self.trace is None else self.trace.as_json()[0]
        real = [s for s in steps if s[0] != "EnterPostproc"]
        return bool(real) and bool(self.run_secs) and any(isfinite(s) and s != FAILED for s in self.run_secs or ())

    def scheduled(self) -> Schedule:
        """The schedule of the workload after the trace. ScheduleError for traces that are none of this workload."""
        sch = Schedule(self.workload.mod)
        if self.trace is not None:
            self.trace.apply_to_schedule(sch, remove_postproc=False)
        else:
            Trace.apply_json_to_schedule(self.raw, sch)
        return sch

    def as_json(self) -> list[object]:
        """As a line of a file has it, behind the number of the workload."""
        trace = self.raw if self.trace is None else self.trace.as_json()
        target = Target.of(self.target).export() if self.target is not None else None
        info = None if self.args_info is None else [a.as_json() for a in self.args_info]
        return [trace, self.run_secs, target, info]

    @staticmethod
    def from_json(json_obj: Sequence[Any], workload: Workload) -> TuningRecord:
        """What `as_json` wrote."""
        trace, seconds, target, info = json_obj
        made = None
        if target is not None:
            try:
                made = Target(target)
            except ValueError:
                _log.warning("a record is for the target %s, which there is not here", target)
        args = None if info is None else [TensorInfo.from_json(i) for i in info]
        return TuningRecord(None, workload, seconds, made, args, trace)

    def as_measure_candidate(self) -> MeasureCandidate:
        """The schedule and its arguments."""
        return MeasureCandidate(self.scheduled(), self.args_info or ArgInfo.from_entry_func(self.workload.mod))


@dataclass(eq=False)
class MeasureCandidate:
    """A schedule that is to be measured, and its arguments."""

    sch: Schedule
    args_info: list[TensorInfo]


class Database:
    """The base of databases; as a context it is the current one."""

    _contexts: ClassVar[list[tuple[Database, ExitStack]]] = []

    def has_workload(self, mod: IRModule) -> bool:
        """Whether a module was committed."""
        raise NotImplementedError

    def commit_workload(self, mod: IRModule) -> Workload:
        """The workload of a module: the same one for equal modules."""
        raise NotImplementedError

    def commit_tuning_record(self, record: TuningRecord) -> None:
        """Keeps a record."""
        raise NotImplementedError

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        """The best valid records of a workload, the best first."""
        raise NotImplementedError

    def get_all_tuning_records(self) -> list[TuningRecord]:
        """All records."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.get_all_tuning_records())

    def __bool__(self) -> bool:
        return True

    def query_tuning_record(self, mod: object, target: object, workload_name: str = "main") -> TuningRecord | None:
        """The best record of a module."""
        module = module_of(mod)
        found = self.get_top_k(self.commit_workload(module), 1) if self.has_workload(module) else []
        return found[0] if found else None

    def query_schedule(self, mod: object, target: object, workload_name: str = "main") -> Schedule | None:
        """The best schedule of a module."""
        record = self.query_tuning_record(mod, target, workload_name)
        return None if record is None else record.scheduled()

    def query_ir_module(self, mod: object, target: object, workload_name: str = "main") -> IRModule | None:
        """The module as its best schedule leaves it."""
        found = self.query_schedule(mod, target, workload_name)
        return None if found is None else found.mod

    def query(
        self, mod: object, target: object, *, workload_name: str = "main", kind: str = "schedule"
    ) -> Schedule | TuningRecord | IRModule | None:
        """The best `schedule`, `record` or `ir_module`. ValueError for other kinds."""
        kinds: dict[str, Callable[..., Schedule | TuningRecord | IRModule | None]] = {
            "schedule": self.query_schedule,
            "record": self.query_tuning_record,
            "ir_module": self.query_ir_module,
        }
        if kind not in kinds:
            raise ValueError(f"Unknown kind: {kind}. Candidates are: {', '.join(kinds)}")
        return kinds[kind](mod, target, workload_name)

    def dump_pruned(self, destination: Database) -> None:
        """Commits the best record of each workload to another database."""
        best: dict[int, TuningRecord] = {}
        for record in self.get_all_tuning_records():
            key = id(record.workload)
            if record.is_valid() and (key not in best or record.mean < best[key].mean):
                best[key] = record
        for record in best.values():
            workload = destination.commit_workload(record.workload.mod)
            destination.commit_tuning_record(
                TuningRecord(record.trace, workload, record.run_secs, record.target, record.args_info, record.raw)
            )

    def __enter__(self) -> Database:  # noqa: PYI034 - typing.Self is younger than Python 3.10
        entered = ExitStack()
        entered.enter_context(scheduled_by(META_SCHEDULE, self._kernel))
        Database._contexts.append((self, entered))
        return self

    def __exit__(self, *error: object) -> None:
        Database._contexts.pop()[1].close()

    def _kernel(self, tensors: Sequence[Tensor], target: Target, name: str) -> IRModule | None:
        """What builds of Relay ask: see `compassc.relay.tuned`. A kernel that is not on record is told of, as the setting of passes
        `use_meta_schedule_dispatch` says: with its text (2), as an error (4)."""
        module = module_of(create_prim_func(tensors))
        found = self.query_ir_module(module, target, name)
        if found is None:
            how = int(PassContext.current().config.get(DISPATCH, 0))
            text = f"Cannot find workload: {name}" + (f"\n{module}" if how & 2 else "")
            if how & 4:
                raise UsageError(text, code="tuning-record", help="tune it, or leave the bit 4 of the setting out")
            _log.warning("%s", text)
        return found

    @staticmethod
    def current() -> Database | None:
        """The innermost context; None outside."""
        return Database._contexts[-1][0] if Database._contexts else None

    @staticmethod
    def create(kind: str | Callable[[Schedule], bool] = "json", *args: Any, **options: Any) -> Database:
        """A database by name, or of a function that schedules. ValueError for other names."""
        if callable(kind):
            return ScheduleFnDatabase(kind, *args, **options)
        kinds: dict[str, Callable[..., Database]] = {
            "json": JSONDatabase, "memory": MemoryDatabase, "union": UnionDatabase, "ordered_union": OrderedUnionDatabase,
        }  # fmt: skip
        if kind not in kinds:
            raise ValueError(f"Unknown Database: {kind}")
        return kinds[kind](*args, **options)


PyDatabase = Database


def _check_equality(name: str) -> None:
    if name not in ("structural", "ignore-ndarray", "anchor-block"):
        raise ValueError(f"Unknown module equality: {name}")


class MemoryDatabase(Database):
    """Keeps all in this process. Equality is of structure, whatever `module_equality` says of constants."""

    def __init__(self, module_equality: str = "structural") -> None:
        _check_equality(module_equality)
        self._workloads: dict[int, list[Workload]] = {}
        self._records: list[TuningRecord] = []

    def _found(self, mod: IRModule) -> Workload | None:
        known = self._workloads.get(structural_hash(mod), [])
        return next((w for w in known if structural_equal(w.mod, mod)), None)

    def has_workload(self, mod: IRModule) -> bool:
        return self._found(module_of(mod)) is not None

    def commit_workload(self, mod: IRModule) -> Workload:
        module = module_of(mod)
        found = self._found(module)
        if found is None:
            found = Workload(module)
            self._workloads.setdefault(structural_hash(module), []).append(found)
        return found

    def commit_tuning_record(self, record: TuningRecord) -> None:
        self._records.append(record)

    def get_top_k(self, workload: Workload, top_k: int) -> list[TuningRecord]:
        if top_k < 0:
            raise ValueError("top_k must be non-negative")
        valid = [r for r in self._records if r.workload is workload and r.is_valid()]
        return sorted(valid, key=lambda r: r.mean)[:top_k]

    def get_all_tuning_records(self) -> list[TuningRecord]:
        return list(self._records)


class JSONDatabase(MemoryDatabase):
    """Keeps all in two files: `database_workload.json` and `database_tuning_record.json` of `work_dir`, or those that are named."""

    def __init__(
        self, path_workload: str | None = None, path_tuning_record: str | None = None, *, work_dir: str | None = None,
        allow_missing: bool = True, module_equality: str = "structural",
    ) -> None:  # fmt: skip
        """ValueError where a file that has to be there is not, or a line of it is no JSON."""
        super().__init__(module_equality)
        if work_dir is not None:
            path_workload = path_workload or str(Path(work_dir, "database_workload.json"))
            path_tuning_record = path_tuning_record or str(Path(work_dir, "database_tuning_record.json"))
        if path_workload is None or path_tuning_record is None:
            raise ValueError("`path_workload` and `path_tuning_record` are needed where no `work_dir` is given")
        self.path_workload, self.path_tuning_record = path_workload, path_tuning_record
        self._lines: tuple[list[str], list[str]] = [], []
        self._numbers: dict[int, int] = {}
        found: list[Workload] = []
        for content, line in _lines(path_workload, allow_missing):
            found.append(Workload.from_json(content))
            self._workloads.setdefault(structural_hash(found[-1].mod), []).append(found[-1])
            self._numbers[id(found[-1])] = len(self._numbers)
            self._lines[0].append(line)
        for content, line in _lines(path_tuning_record, allow_missing):
            self._records.append(TuningRecord.from_json(content[1], found[content[0]]))
            self._lines[1].append(line)

    def commit_workload(self, mod: IRModule) -> Workload:
        made = super().commit_workload(mod)
        if id(made) not in self._numbers:
            self._numbers[id(made)] = len(self._numbers)
            self._add(0, self.path_workload, made.as_json())
        return made

    def commit_tuning_record(self, record: TuningRecord) -> None:
        super().commit_tuning_record(record)
        self._add(1, self.path_tuning_record, [self._numbers[id(record.workload)], record.as_json()])

    def _add(self, which: int, path: str, content: object) -> None:
        self._lines[which].append(json.dumps(content))
        files.write(Path(path), "".join(line + "\n" for line in self._lines[which]))


def _lines(path: str, allow_missing: bool) -> list[tuple[Any, str]]:
    if not Path(path).is_file():
        if not allow_missing:
            raise ValueError(f"File doesn't exist: {path}")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        files.write(Path(path), "")
        return []
    found = []
    for line in files.read_text(Path(path)).splitlines():
        if line.strip():
            try:
                found.append((json.loads(line), line))
            except ValueError:
                raise ValueError(f"Unable to parse the JSON object: {line}") from None
    return found


class _Several(Database):
    """Several databases to be asked."""

    def __init__(self, *databases: Database) -> None:
        self.databases = databases

    def has_workload(self, mod: IRModule) -> bool:
        return any(d.has_workload(mod) for d in self.databases)

    def _refused(self, *_: object) -> NoReturn:
        raise RuntimeError(f"{type(self).__name__} keeps nothing: commit to one of its databases")

    commit_workload = commit_tuning_record = get_top_k = get_all_tuning_records = _refused  # type: ignore[assignment]

    def __len__(self) -> int:
        return sum(map(len, self.databases))


class UnionDatabase(_Several):
    """The best of what several have."""

    def query_tuning_record(self, mod: object, target: object, workload_name: str = "main") -> TuningRecord | None:
        found = [d.query_tuning_record(mod, target, workload_name) for d in self.databases]
        return min((r for r in found if r is not None), key=lambda r: r.mean, default=None)


class OrderedUnionDatabase(_Several):
    """What the first of several has."""

    def query_tuning_record(self, mod: object, target: object, workload_name: str = "main") -> TuningRecord | None:
        found = (d.query_tuning_record(mod, target, workload_name) for d in self.databases)
        return next((r for r in found if r is not None), None)


class ScheduleFnDatabase(MemoryDatabase):
    """A function that schedules, as a database: `schedule_fn(sch)` changes it and says whether it has."""

    def __init__(self, schedule_fn: Callable[[Schedule], bool], module_equality: str = "structural") -> None:
        super().__init__(module_equality)
        self._function = schedule_fn

    def query_tuning_record(self, mod: object, target: object, workload_name: str = "main") -> TuningRecord | None:
        sch = Schedule(module_of(mod))
        try:
            if not self._function(sch):
                return None
        except ScheduleError:
            return None
        return TuningRecord(sch.trace, Workload(module_of(mod)), [0.0], target)
