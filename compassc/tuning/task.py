"""Tasks: what is to be made fast, and the programs that may do it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from compass_core import VERSION, targets
from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.tuning.space import Candidate, Space

if TYPE_CHECKING:
    from compassc.ir.stmts import IRModule
    from compassc.tuning.artifact import Artifact


class Infeasible(Exception):
    """A candidate that stands for no program; the words say why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@lru_cache(maxsize=1)
def toolchain_version() -> str:
    """The version that decides about estimated cycles: of the package, and of the tables of costs. Which operation is of
    which class is not part of it, for that grows with every new operation."""
    tables = targets.folder() / "cost"
    digest = hashlib.sha256()
    for table in sorted((t for t in tables.iterdir() if t.name != "operations.yaml"), key=lambda t: t.name):
        digest.update(table.name.encode() + b"\0" + table.read_bytes())
    return f"{VERSION}+{digest.hexdigest()[:8]}"


@dataclass(frozen=True)
class Workload:
    """What a record is about. `structure`: a hash of what is computed, without sizes; `values`: scalar arguments that
    matter, by name; `version`: of the toolchain, see `toolchain_version`."""

    name: str
    structure: str
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    target: str
    values: Mapping[str, object] = field(default_factory=dict)
    version: str = field(default_factory=toolchain_version)

    @property
    def key(self) -> str:
        """Equal for workloads whose results are exchangeable, whatever their names; the version is not part of it."""
        parts = [self.structure, self.shapes, self.dtypes, self.target, dict(self.values)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    @property
    def family(self) -> str:
        """Equal for workloads that differ in sizes alone."""
        parts = [self.structure, self.dtypes, self.target]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    def as_json(self) -> dict[str, object]:
        """The fields as JSON values."""
        return {
            "name": self.name,
            "structure": self.structure,
            "shapes": [list(shape) for shape in self.shapes],
            "dtypes": list(self.dtypes),
            "target": self.target,
            "values": dict(self.values),
            "version": self.version,
        }


@dataclass
class Made:
    """What was made of a kernel: its loops, and its C text with the arguments of one program."""

    loops: IRModule | None = None
    artifact: Artifact | None = None


@dataclass(frozen=True)
class Program:
    """A candidate as something to build: a kernel of the language, an IR function or an IR module (what
    `BuildManager.build` takes), whose parameters take the task's arguments in order; `arguments`: its own instead, with
    the same outputs at the same places. `made`: programs of a task that have it in common differ in arguments alone."""

    kernel: Any
    arguments: Sequence[Any] | None = None
    made: Made = field(default_factory=Made, compare=False, repr=False)


@dataclass(frozen=True)
class Tolerance:
    """How near outputs must be to the expected ones: |got - expected| <= atol + rtol * |expected|."""

    rtol: float = 0.0
    atol: float = 0.0


class Task(Protocol):
    """A workload with its space of programs."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def workload(self) -> Workload:
        """What is computed."""

    @property
    def space(self) -> Space:
        """The candidates."""

    @property
    def default(self) -> Candidate | None:
        """The candidate that is used without tuning; None: there is none."""

    @property
    def tolerance(self) -> Tolerance:
        """How near outputs must be to `expected`."""

    def program(self, candidate: Candidate) -> Program:
        """The program of a candidate. Infeasible, or a CompassError, where there is none."""

    def arguments(self) -> Sequence[Any]:
        """An argument per parameter: arrays and numbers, the same at each call; outputs with their initial content."""

    def expected(self) -> Mapping[int, Array]:
        """The right content of outputs after a run, by the number of the parameter."""
