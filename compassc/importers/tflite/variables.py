"""Variables of TFLite models: inputs of the graph whose content is an output of the run before."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import field
from functools import cached_property

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.namedtuple import NamedTuple
from compassc.importers.onnx.operators.quantised import Quantised
from compassc.importers.tflite.declare import EFFECTS, Handle
from compassc.importers.tflite.source import Model, Node
from compassc.importers.values import Value

Known = Value | Quantised


class Variable(NamedTuple):
    """A variable that is kept: the input that it begins as, what a run leaves in it, and its number before the first run."""

    name: str
    begun: Known
    left: Known
    initial: float


@dataclass
class Variables:
    """What is known of variables at a place of the walk. `graphs`: those of the model.

    `begun`: the inputs that stand for what the run before left; `current`: what was assigned since; `initial`: what the
    model assigns once, before the first run.
    """

    graphs: Sequence[Model]
    begun: dict[Handle, Known] = field(default_factory=dict)
    current: dict[Handle, Known] = field(default_factory=dict)
    initial: dict[Handle, Array] = field(default_factory=dict)
    initialising: bool = False

    @cached_property
    def assigned(self) -> frozenset[Handle]:
        """The variables that a run may assign: those with a handle that is assigned to, or handed on to where that is not
        seen."""
        once = {n.options.get("init_subgraph_index") for g in self.graphs for n in g.nodes if n.operator == "CALL_ONCE"}
        found = set()
        for number, graph in enumerate(self.graphs):
            if number in once:
                continue
            own = {n.outputs[0]: handle_of(n.options) for n in graph.nodes if n.operator == "VAR_HANDLE" and n.outputs}
            found |= {own[i] for n in graph.nodes if n.operator != "READ_VARIABLE" for i in n.inputs if i in own}
        return frozenset(found)

    @cached_property
    def effective(self) -> frozenset[int]:
        """The graphs, by number, that do something besides what they make."""
        found: set[int] = set()
        while True:
            new = {i for i, g in enumerate(self.graphs) if i not in found and any(_does(n, found) for n in g.nodes)}
            if not new:
                return frozenset(found)
            found |= new

    def has_effects(self, node: Node) -> bool:
        """Whether an operator does something besides what it makes."""
        return _does(node, self.effective)


def _does(node: Node, effective: Container[int]) -> bool:
    bodies = [v for k, v in node.options.items() if k.endswith("subgraph_index")]
    return node.operator in EFFECTS or any(i in effective for i in bodies)


def handle_of(options: object) -> Handle:
    """The variable that the options of a VAR_HANDLE name."""
    given = options if isinstance(options, dict) else {}
    return Handle(str(given.get("container") or ""), str(given.get("shared_name") or ""))
