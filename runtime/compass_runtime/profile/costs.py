"""Costs of operations: their classes and a target's estimates (configurations/cost/*.yaml).

Which class a C function belongs to say the declarations of the operations (operations.yaml, written by `make docs`), of
those that are no operation's classes.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from compass_core import targets
from compass_core.costs import estimates, listed
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError


@dataclass(frozen=True)
class OpClass:
    """A class of operations; the fields are explained in classes.yaml."""

    name: str
    unit: str
    builtins: tuple[str, ...]
    ops: int = 0
    point: bool = False
    unmasked: tuple[str, ...] = ()

    def masks(self, function: str) -> bool:
        """Whether the mask that `function` takes chooses lanes."""
        return not any(fnmatchcase(function, pattern) for pattern in self.unmasked)


@dataclass(frozen=True)
class CostModel:
    """The estimates for a target; the fields are explained in its generation's file."""

    target: targets.Target
    clock_mhz: float
    issue_width: int
    units: Mapping[str, int]
    classes: Mapping[str, Mapping[str, int]]
    device_memory: Mapping[str, int]
    dma: Mapping[str, float]
    device_memory_bytes_per_cycle: float
    barrier_cycles: int
    launch_cycles: int

    def latency(self, name: str, external: bool) -> int:
        """Cycles until the result of an operation can be used; `external`: it goes to device memory."""
        return self.classes[name]["latency"] + external * self.device_memory["latency"]

    def interval(self, name: str, external: bool) -> int:
        """Cycles until the operation's unit takes the next one."""
        return self.classes[name]["interval"] + external * self.device_memory["interval"]

    @property
    def tecs(self) -> int:
        return self.target.cores * self.target.tecs

    def peak(self, element_bytes: int) -> float:
        """The most arithmetic operations per cycle of all TECs: multiply-adds on full vectors."""
        best = max(kind.ops for kind in op_classes().values() if kind.name in ("mac", "dot"))
        return best * self.units["vector"] * self.target.vector_bytes / element_bytes * self.tecs


@lru_cache(maxsize=1)
def op_classes() -> dict[str, OpClass]:
    """All classes by name."""
    out, declared = {}, listed("operations")
    for name, fields in listed("classes").items():
        of_operations = declared.get(name, {})
        lists = {key: (*of_operations.get(key, ()), *fields.get(key, ())) for key in ("builtins", "unmasked")}
        out[name] = OpClass(name, fields["unit"], ops=fields.get("ops", 0), point=fields.get("point", False), **lists)
    return out


@lru_cache(maxsize=1024)
def class_of(function: str) -> OpClass | None:
    """The class of a builtin; None for one that the table does not know."""
    for kind in op_classes().values():
        if any(fnmatchcase(function, pattern) for pattern in kind.builtins):
            return kind
    return None


@lru_cache(maxsize=16)
def cost_model(target: str) -> CostModel:
    """The estimates for a target. CompassError when there are none, or the file does not fit the classes."""
    found = targets.load(target)
    fields = estimates(found.version)
    missing = op_classes().keys() - fields.get("classes", {}).keys() - {"free"}
    try:
        if missing:
            raise KeyError(", ".join(sorted(missing)))
        return CostModel(target=found, **fields)
    except (TypeError, KeyError) as error:
        raise CompassError(
            f"the cost model of {found.version} is incomplete: {error}", code="bad-target-file"
        ) from None
