"""Models as graphs of layers: the walk over their nodes with what functions of operators ask for beyond it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from compass_core.dataclass import dataclass
from compass_core.reading.budget import Budget
from compassc.importers.building import Building
from compassc.importers.onnx.declare import CONSTANT_ONLY, TABLE
from compassc.importers.onnx.walk import Item, Walk
from compassc.importers.values import NotConstant, Refused, Value

if TYPE_CHECKING:
    from onnx import FunctionProto, NodeProto


@dataclass(frozen=True)
class Origin:
    """The node that made a value, and its inputs."""

    node: NodeProto
    inputs: list[Any]


class Conversion(Building, Walk):
    """A graph in the making from a model: what handlers get as `b`."""

    table = TABLE

    def __init__(
        self,
        name: str,
        opsets: Mapping[str, int],
        functions: Mapping[tuple[str, str], FunctionProto],
        budget: Budget,
    ) -> None:
        Building.__init__(self, name, budget)
        Walk.__init__(self, name, opsets, functions, budget)
        self._origins: dict[int, tuple[Value, Origin]] = {}
        self._sources: dict[int, tuple[Value, object]] = {}

    def noted(self, node: NodeProto, inputs: list[object], outputs: Sequence[Item]) -> None:
        if not any(isinstance(v, Value) and (self.source(v) or self.origin(v)) for v in inputs):
            return
        origin = Origin(node, inputs)
        self._origins.update((id(v), (v, origin)) for v in outputs if isinstance(v, Value))

    def before(self, node: NodeProto, inputs: Sequence[object]) -> None:
        """Refused for operators that never become layers."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        if (domain, node.op_type) in CONSTANT_ONLY:
            unknown = [i.name for i in inputs if isinstance(i, Value) and i.tensor is not None]
            if not unknown:
                raise Refused("its content cannot be computed")
            raise NotConstant("its inputs must be known at import", unknown)

    def origin(self, value: Value) -> Origin | None:
        """The node that made a value of what was dequantised; None for others."""
        found = self._origins.get(id(value))
        return found[1] if found else None

    def dequantised(self, value: Value, source: object) -> Value:
        """Remembers what a value was dequantised from; gives the value."""
        self._sources[id(value)] = (value, source)
        return value

    def source(self, value: Value) -> Any:
        """What a value was dequantised from; None for others."""
        found = self._sources.get(id(value))
        return found[1] if found else None
