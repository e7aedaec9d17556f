"""The walk over a model's nodes: what is known is computed, what cannot be imported is collected; the rest is made by the
functions of operators, of layers (`convert`) or of anything else that a `Walk` makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.files.pieces import Pieces
from compass_core.reading.budget import Budget
from compass_core.reading.limits import COMPUTED_BYTES, COMPUTED_ELEMENTS, MODEL_NODES
from compassc.importers.accounts import Accounts
from compassc.importers.declare import Table
from compassc.importers.onnx.declare import IGNORED, REFUSED
from compassc.importers.onnx.folding import dense, evaluate, is_random
from compassc.importers.onnx.functions import body_of, bound
from compassc.importers.onnx.protobuf import array_of, attribute_value
from compassc.importers.onnx.versions import newest
from compassc.importers.onnx.words import check_words
from compassc.importers.refusals import CONTRADICTIONS, UNKNOWN, Refusal, Unknown
from compassc.importers.values import ModelTensor, NotConstant, Refused, Reported

if TYPE_CHECKING:
    from onnx import FunctionProto, GraphProto, NodeProto

NEWEST = 1 << 30
"""An opset behind all others."""
DEEPEST = 40
"""Functions and bodies within each other."""


Item = ModelTensor | list[Any] | Unknown
"""A tensor, a sequence of tensors (whose length is known), or what cannot be said."""


@dataclass
class Scope:
    """The tensors by name that a graph sees: its own, then those of the graph around it."""

    walk: Walk
    items: dict[str, Item] = field(default_factory=dict)
    outer: Scope | None = None
    initial: Mapping[str, Callable[[], Array]] = field(default_factory=dict)
    """What the graph has the content of."""

    def find(self, name: str) -> Item:
        if name in self.items:
            return self.items[name]
        if name in self.initial:
            array = self.initial[name]()
            self.walk.budget.take(COMPUTED_BYTES, array.nbytes, f"the tensor '{name}'")
            self.items[name] = self.walk.initial(name, array)
            return self.items[name]
        if self.outer is None:
            raise Refused(f"nothing makes its input '{name}'")
        return self.outer.find(name)


class Walk(Accounts):
    """What is made of the nodes of a model by the functions of a table of operators, which get it as `b`.

    `opsets`: version by domain. `functions`: of the model, by (domain, name). `name`: of the node that is looked at, `op`: of its
    operator.
    """

    table: Table

    def __init__(
        self,
        name: str,
        opsets: Mapping[str, int],
        functions: Mapping[tuple[str, str], FunctionProto],
        budget: Budget,
    ) -> None:
        self.name = name
        self.budget = budget
        self.opsets = dict(opsets)
        self.functions = functions
        self.refusals: list[Refusal] = []
        self.scope = Scope(self)
        self.node: NodeProto | None = None
        self.op = ""
        self._within_node = False
        self._depth = 0

    # -- what tensors are

    def known(self, array: Array) -> ModelTensor:
        """A tensor whose content is known."""
        raise NotImplementedError

    def initial(self, name: str, array: Array) -> ModelTensor:
        """A tensor that the model has the content of."""
        return self.known(array)

    def content(self, x: ModelTensor) -> Array | None:
        """The content of a tensor, where nodes are computed of it at import."""
        return x.array

    def noted(self, node: NodeProto, inputs: list[object], outputs: Sequence[Item]) -> None:
        """Called with what was made of a node."""

    def before(self, node: NodeProto, inputs: Sequence[object]) -> None:
        """Called with a node that is not computed. Refused where nothing is to be made of it."""

    # -- graphs

    def run(
        self,
        graph: GraphProto,
        given: Mapping[str, Item],
        outputs: Sequence[str] | None = None,
        apart: Mapping[int, Pieces] | None = None,
    ) -> list[Item]:
        """The outputs of a graph, for the items of its inputs. Names it does not make are the surrounding graph's.

        `outputs`: tensors of it, instead of its own outputs. `apart`: the content of initialisers that do not have it, by their places.
        """
        self.budget.take(COMPUTED_ELEMENTS, len(graph.initializer) + len(graph.output), f"the node '{self.name}'")
        wanted = [o.name for o in graph.output] if outputs is None else outputs
        with self._within(given):
            self.scope.initial = {
                t.name: partial(array_of, t, (apart or {}).get(i)) for i, t in enumerate(graph.initializer)
            }
            for sparse in graph.sparse_initializer:
                self.scope.items.setdefault(sparse.values.name, self.known(dense(sparse, self.budget)))
            self.nodes(graph.node, wanted)
            return [self._output(name) for name in wanted]

    def _output(self, name: str) -> Item:
        try:
            return self.scope.find(name)
        except Refused as error:
            self.refusals.append(Refusal(f"the output '{name}'", "graph", str(error)))
            return UNKNOWN

    @contextmanager
    def _within(self, given: Mapping[str, Item]) -> Iterator[None]:
        if self._depth >= DEEPEST:
            raise Refused(f"functions and bodies lie {DEEPEST} deep within each other")
        before = self.scope, self.name, self.node, self.op, self._within_node
        self.scope, self._within_node, self._depth = Scope(self, dict(given), self.scope), False, self._depth + 1
        try:
            yield
        finally:
            self.scope, self.name, self.node, self.op, self._within_node = before
            self._depth -= 1

    def nodes(self, nodes: Sequence[NodeProto], outputs: Sequence[str]) -> None:
        """Converts the nodes that the outputs need. CompassError when they are too many: bodies of loops and functions
        count each time they are converted. What the graph has the content of goes behind the last node that uses it."""
        self.budget.take(MODEL_NODES, 1 + len(nodes), f"the node '{self.name}'")
        needed, kept = set(outputs), []
        for node in reversed(nodes):
            if any(name in needed for name in node.output if name):
                used = self._names_used(node)
                kept.append((node, used - needed))
                needed |= used
        for node, last in reversed(kept):
            self._convert(node)
            for name in last & self.scope.initial.keys():
                self.scope.items.pop(name, None)

    # -- nodes

    def _convert(self, node: NodeProto) -> None:
        base = node.name or next((o for o in node.output if o), node.op_type)
        self.name = base
        tensors: tuple[str, ...] = ()
        inputs: list[object] = []
        outputs: Sequence[Item] = [UNKNOWN] * len(node.output)
        reason = ""
        try:
            inputs = [self.scope.find(name) if name else None for name in node.input]
            if not any(i is UNKNOWN for i in inputs):
                outputs = self._made(node, inputs)
        except Reported:
            pass  # each of the nodes inside says why
        except NotConstant as error:
            reason, tensors = str(error), error.tensors
        except Refused as error:
            reason = str(error)
        except CONTRADICTIONS as error:
            reason = f"its inputs and attributes contradict each other: {error}"
        if reason:
            self.refusals.append(Refusal(base, node.op_type, reason, tensors))
        else:
            self.noted(node, inputs, outputs)
        self.scope.items.update((name, item) for name, item in zip(node.output, outputs, strict=False) if name)

    def _made(self, node: NodeProto, inputs: list[Any]) -> Sequence[Item]:
        """What a node makes."""
        self.node = node
        domain = "" if node.domain == "ai.onnx" else node.domain
        known = [self.content(i) if isinstance(i, ModelTensor) else None for i in inputs]
        constant = all(i is None or a is not None for i, a in zip(inputs, known, strict=True))
        folds = constant and not is_random(node) and node.op_type != "DequantizeLinear"
        if folds and (found := evaluate(node, known, self.opset, self.budget)) is not None:
            return [self.known(a) for a in found]
        if (domain, node.op_type) in self.functions:
            return self.function(self.functions[domain, node.op_type], node, inputs)
        self.before(node, inputs)
        made = self.handled(node, inputs)
        if made is not None:
            return made
        if (domain, node.op_type) in REFUSED:
            raise Refused(REFUSED[domain, node.op_type])

        body = body_of(node, inputs, self.opsets)
        if body is None:
            raise Refused(
                "the operator is not known here" if not domain else f"operators of {domain} are not known here"
            )
        return self.function(body, node, inputs)

    def handled(self, node: NodeProto, inputs: Sequence[object]) -> Sequence[Item] | None:
        """What an operator's function makes of a node; None where no function is declared."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        name, attributes = node.op_type, {a.name: attribute_value(a) for a in node.attribute if a.name not in IGNORED}
        if not domain:  # operators of others have one form
            check_words(name, attributes)
            name, inputs, attributes = newest(name, self.opset, inputs, attributes, self.known)
        declared = self.table.select(domain, name, self.opsets.get(domain, 1))
        if declared is None:
            return None
        self.op = name
        arguments = declared.arguments(inputs)
        declared.check_attributes(attributes)
        made = declared.handler(self, *arguments, **attributes)
        outputs = made if isinstance(made, (tuple, list)) else [made]
        given = [i.array for i in inputs if isinstance(i, ModelTensor) and i.array is not None]
        for array in (o.array for o in outputs if isinstance(o, ModelTensor) and o.array is not None):
            if not any(np.may_share_memory(array, i) for i in given):
                self.budget.take(COMPUTED_BYTES, array.nbytes, f"the node '{self.name}'")
        return outputs

    def onnx(self, name: str, *inputs: ModelTensor | None, **attributes: object) -> Any:
        """The first result of an operator of ONNX, in its newest form, as part of the node at hand. Refused where none is declared."""
        made = self.onnx_all(name, *inputs, **attributes)
        return made[0] if isinstance(made, (list, tuple)) else made

    def onnx_all(self, name: str, *inputs: ModelTensor | None, **attributes: object) -> Any:
        """What an operator of ONNX makes: a tensor, or a list of them."""
        declared = self.table.select("", name, NEWEST)
        if declared is None:
            raise Refused(f"it is made of {name}, which is not known here")
        before = self.op, self._within_node
        self.op, self._within_node = name, True
        try:
            return declared.handler(self, *declared.arguments(inputs), **attributes)
        finally:
            self.op, self._within_node = before

    def function(self, body: FunctionProto, node: NodeProto, inputs: Sequence[Any]) -> Sequence[Item]:
        """The outputs of a function for a node's inputs and attributes."""
        self.budget.take(COMPUTED_BYTES, body.ByteSize(), f"the node '{self.name}'")  # its nodes are copied
        given: dict[str, Item] = {n: i for n, i in zip(body.input, inputs, strict=False) if i is not None}
        opsets = self.opsets
        self.opsets = opsets | {("" if o.domain == "ai.onnx" else o.domain): o.version for o in body.opset_import}
        prefix = self.name
        try:
            with self._within(given):
                wanted = [name for name, used in zip(body.output, node.output, strict=False) if used]
                self.nodes(bound(body, node, set(given), prefix), wanted)
                return [self._output(n) if n in wanted else UNKNOWN for n in body.output]
        finally:
            self.opsets = opsets

    def outputs_of(self, node: NodeProto) -> list[str]:
        """The names of a node's outputs."""
        return [name for name in node.output if name]

    @property
    def opset(self) -> int:
        """The model's opset of the default domain."""
        return self.opsets.get("", 1)

    def outputs(self) -> list[bool]:
        """Which of the node's outputs have names; of an operator within it the first."""
        assert self.node is not None
        return [True] if self._within_node else [bool(name) for name in self.node.output]

    def uses(self, index: int) -> bool:
        """Whether the node has its output `index`."""
        listed = self.outputs()
        return index < len(listed) and listed[index]

    def _names_used(self, node: NodeProto) -> set[str]:
        """The tensors that a node reads, those in its bodies included."""
        self.budget.take(COMPUTED_ELEMENTS, len(node.input), f"the node '{node.name or node.op_type}'")
        found = {name for name in node.input if name}
        for a in node.attribute:
            for graph in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                self.budget.take(MODEL_NODES, len(graph.node), f"the node '{node.name or node.op_type}'")
                own = {t.name for t in graph.initializer} | {i.name for i in graph.input}
                inner: set[str] = {o.name for o in graph.output}
                for n in graph.node:
                    inner |= self._names_used(n)
                    own.update(n.output)
                found |= inner - own
        return found
