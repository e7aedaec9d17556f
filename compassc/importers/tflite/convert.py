"""The walk over a model's operators: what is known is computed, the rest becomes layers, what cannot is collected.

A tensor of integers with a scale is `Quantised`. An operator between such tensors becomes a layer of integers where it
has one; everything else is computed in floats, between DeQuantize and Quantize.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compass_core.reading.budget import Budget
from compass_core.reading.limits import COMPUTED_ELEMENTS, MODEL_NODES
from compassc.graph.dtypes import IR_DTYPES
from compassc.graph.tensor import LayerError, Tensor
from compassc.importers.building import Building
from compassc.importers.onnx.operators.quantised import (
    LAYER_TYPES,
    Levels,
    Quantised,
    dequantize_layer,
    levels_of,
    marked,
    quantize_layer,
    real_numbers,
)
from compassc.importers.refusals import CONTRADICTIONS, UNKNOWN, Refusal, Unknown
from compassc.importers.tflite import endings, tables
from compassc.importers.tflite.declare import (
    AS_THEY_ARE,
    MOVES,
    QUANTISED,
    STATES,
    TABLE,
    TABLED,
    Call,
    Handle,
    Item,
)
from compassc.importers.tflite.source import Model, Node, TensorInfo
from compassc.importers.tflite.variables import Variables
from compassc.importers.values import NotConstant, Refused, Reported, Value, stored_type
from compassc.layers.costs import cost_of
from compassc.layers.declare import evaluate

FUSED = "fused_activation_function"
IGNORED = frozenset({"asymmetric_quantize_inputs", "pot_scale_int16", "quantized_bias_type"})
"""Options about how a runtime computes; they change nothing of what is computed here."""


DEEPEST = 40
"""Bodies within each other."""


class Conversion(Building):
    """A graph in the making from a model: what handlers get as `b`. `strict`: shapes are those that the model says."""

    def __init__(self, model: Model, strict: bool, budget: Budget) -> None:
        super().__init__(model.name, budget)
        self.model = model
        self.strict = strict
        self.items: dict[int, Item | Unknown] = {}
        self.refusals: list[Refusal] = []
        self.node: Node | None = None
        self.variables = Variables(model.graphs)
        self._real: dict[int, tuple[Quantised, Value]] = {}
        self._bodies: list[int] = []

    # -- tensors

    def levels(self, tensor: TensorInfo) -> Levels | None:
        """What the integers of a tensor stand for; None when it is not quantised."""
        if not tensor.scale.size or tensor.dtype.kind not in "iu" and tensor.type != "INT4":
            return None
        return levels_of(tensor.scale, tensor.zero, tensor.dtype, tensor.axis, len(tensor.shape))

    def input(self, index: int, tensor: TensorInfo, shape: Sequence[int]) -> None:
        """Adds an input of the model."""
        self.name = tensor.name
        try:
            self.items[index] = self.new_input(tensor, shape)
        except Refused as error:
            self.refusals.append(Refusal(f"the input '{tensor.name}'", "graph", str(error)))
            self.items[index] = UNKNOWN

    def new_input(self, tensor: TensorInfo, shape: Sequence[int]) -> Value | Quantised:
        """Adds an input of the graph, called like a tensor of the model. Refused where graphs do not have its type."""
        if tensor.no_numbers:
            raise Refused(tensor.no_numbers)
        if stored_type(tensor.dtype) not in IR_DTYPES:
            raise Refused(f"graphs have no type for {tensor.type}")
        levels, dtype = self.levels(tensor), stored_type(tensor.dtype)
        if levels is None:
            return self.value(self.graph.input(f"{tensor.name}_0", shape, dtype), tensor.dtype)
        if not levels.is_one or levels.dtype.name not in LAYER_TYPES:
            raise Refused(f"scales per channel, and those of {tensor.type}, are supported for constants only")
        with marked(self, levels):
            wanted = self.mark(Tensor(tensor.name, tuple(shape), dtype))
        made = self.graph.input(f"{tensor.name}_0", shape, dtype, scale=wanted.scale, zero=wanted.zero)
        return Quantised(self.value(made, tensor.dtype), levels)

    def item(self, index: int) -> Item | Unknown:
        """A tensor of the model: what an operator has made, or a constant."""
        if index < 0:
            return None
        if index not in self.items:
            tensor = self.model.tensors[index]
            if tensor.no_numbers:
                raise Refused(f"its tensor {tensor.no_numbers}")
            if tensor.variable:
                raise Refused(f"its tensor '{tensor.name}' is kept from run to run")
            if tensor.array is None and 0 in tensor.shape:
                return Value.of(np.zeros([d or 0 for d in tensor.shape], tensor.dtype))
            if tensor.array is None:
                raise Refused(f"nothing makes its tensor '{tensor.name}'")
            value, levels = Value.of(tensor.array), self.levels(tensor)
            self.items[index] = value if levels is None else Quantised(value, levels)
        return self.items[index]

    @property
    def output_types(self) -> list[NumpyDType]:
        """What the model says of the types of the node's outputs."""
        return [info.dtype for info in self.output_infos()]

    def real(self, item: Item) -> Value | None:
        """The numbers that a tensor stands for."""
        if isinstance(item, Handle):
            raise Refused(f"it takes the variable '{item.name}' itself")
        if not isinstance(item, Quantised):
            return item
        if id(item) not in self._real:
            self._real[id(item)] = (item, self._dequantised(item))
        return self._real[id(item)][1]

    def _dequantised(self, q: Quantised) -> Value:
        if q.value.array is not None:
            return Value.of(real_numbers(q).astype(np.float32))
        if q.levels.dtype.name not in LAYER_TYPES:
            raise Refused(f"its input is of {q.levels.dtype} with a scale, which is supported for constants only")
        return dequantize_layer(self, q, np.dtype(np.float32))

    # -- states

    def _state(self, place: int) -> tuple[TensorInfo, Handle]:
        """The variable that is an input of the node."""
        assert self.node is not None
        inputs = self.node.inputs
        if not (place < len(inputs) and inputs[place] >= 0 and self.model.tensors[inputs[place]].variable):
            raise Refused(f"its input {place}, the state, is no variable")
        info = self.model.tensors[inputs[place]]
        return info, Handle("tensor", info.name)

    def state_before(self, place: int, shape: Sequence[int]) -> Value:
        """What the run before has left in a state, the input of the node at a place."""
        info, handle = self._state(place)
        if tuple(info.shape) != tuple(shape):
            raise Refused(f"its state '{info.name}' is {list(info.shape)}, not {list(shape)}")
        known = self.variables
        if handle not in known.current and handle not in known.begun:
            known.begun[handle] = self.new_input(info, shape)
        found = self.real(known.current.get(handle) or known.begun[handle])
        assert found is not None
        return found

    def leave_state(self, place: int, value: Value) -> Value:
        """Keeps a value for the next run; gives it as the state holds it, rounded where that is of integers."""
        info, handle = self._state(place)
        kept = self._quantised(value, self.levels(info))
        assert isinstance(kept, (Value, Quantised))
        self.variables.current[handle] = kept
        found = self.real(kept)
        assert found is not None
        return found

    # -- operators

    def run(self, outputs: Sequence[int]) -> list[Item | Unknown]:
        """Converts the operators that some tensors need; gives these."""
        TABLE.operators()  # fills the tables beside it
        needed, kept = set(outputs), []
        for node in reversed(self.model.nodes):
            if needed.intersection(node.outputs) or self.variables.has_effects(node):
                needed.update(node.inputs)
                kept.append(node)
        for node in reversed(kept):
            self._convert(node)
        return [self._output(i) for i in outputs]

    def body(self, number: int, inputs: Sequence[Item]) -> list[Item]:
        """The outputs of another graph of the model, for the items of its inputs. Refused, and Reported, where there are
        none."""
        graphs = self.model.graphs or self.variables.graphs
        if not 0 < number < len(graphs) or len(self._bodies) >= DEEPEST:
            raise Refused(f"its body is the graph {number} of {len(graphs)}, {len(self._bodies)} within each other")
        graph, before = graphs[number], (self.model, self.items, self.node, self.name)
        if len(graph.inputs) != len(inputs):
            raise Refused(f"its body takes {len(graph.inputs)} tensors, not {len(inputs)}")
        refused = len(self.refusals)
        self.budget.take(MODEL_NODES, 1 + len(graph.nodes), f"the node '{self.name}'")
        self.model, self.items = graph, dict(zip(graph.inputs, inputs, strict=True))
        self._bodies.append(number)
        try:
            outputs = self.run(graph.outputs)
        finally:
            self.model, self.items, self.node, self.name = before
            self._bodies.pop()
        if len(self.refusals) > refused:
            raise Reported("operators of its body are refused")
        return [o for o in outputs if not isinstance(o, Unknown)]

    def _output(self, index: int) -> Item | Unknown:
        try:
            return self.item(index)
        except Refused as error:
            name = self.model.tensors[index].name
            self.refusals.append(Refusal(f"the output '{name}'", "graph", str(error)))
            return UNKNOWN

    def _convert(self, node: Node) -> None:
        first = next((self.model.tensors[i].name for i in node.outputs if i >= 0), "")
        self.node, self.name = node, first or f"{node.operator.lower()}_{node.index}"
        tensors: tuple[str, ...] = ()
        outputs: Sequence[Item | Unknown] = [UNKNOWN] * len(node.outputs)
        reason = ""
        try:
            states = STATES.get(node.operator, frozenset())
            inputs = [None if place in states else self.item(i) for place, i in enumerate(node.inputs)]
            if not any(i is UNKNOWN for i in inputs):
                outputs = self._made(node, inputs)
        except Reported:
            pass  # each of the operators inside says why
        except NotConstant as error:
            reason, tensors = str(error), error.tensors
        except Refused as error:
            reason = str(error)
        except CONTRADICTIONS as error:
            reason = f"its inputs and options contradict each other: {error}"
        if reason:
            self.refusals.append(Refusal(f"operator {node.index} '{self.name}'", node.operator, reason, tensors))
        self.items.update(zip(node.outputs, outputs, strict=False))

    def _made(self, node: Node, inputs: list[Any]) -> list[Item]:
        if ("", node.operator) in TABLE.refused:
            raise Refused(TABLE.refused["", node.operator])
        declared = TABLE.select("", node.operator, 1)
        if declared is None:
            raise Refused("the operator is not known here")
        options = {k: v for k, v in node.options.items() if k not in IGNORED}
        if node.operator in AS_THEY_ARE:
            return self._given(node, declared.handler(self, *declared.arguments(inputs), **options))
        inside = FUSED in (declared.attributes or ())  # a cell's own function, not one of the results
        ending = endings.ending_of(0 if inside else options.pop(FUSED, 0))
        infos = [self.model.tensors[i] for i in node.outputs]
        for info in infos:
            if info.no_numbers:
                raise Refused(f"its output {info.no_numbers}")
        levels = [self.levels(t) for t in infos]
        call = Call(node.operator, inputs, options)
        found = self._in_integers(call, levels, ending)
        if found is None:
            made = [endings.limited(self, v, ending) for v in self.handled(call)]
            if len(made) != len(infos):
                raise Refused(f"it has {len(infos)} outputs, not {len(made)}")
            known = all(i is None or (i.value if isinstance(i, Quantised) else i).array is not None for i in inputs)
            made = [self.computed(v) if known else v for v in made]
            found = [self._quantised(v, l) for v, l in zip(made, levels, strict=True)]
        for item, info in zip(found, infos, strict=True):
            self._check(item, info)
        return found

    def _given(self, node: Node, found: list[Item]) -> list[Item]:
        """What an operator made that takes items as they are, held against what the model says."""
        if len(found) != len(node.outputs):
            raise Refused(f"it has {len(node.outputs)} outputs, not {len(found)}")
        for item, index in zip(found, node.outputs, strict=True):
            if not isinstance(item, Handle):
                self._check(item, self.model.tensors[index])
        return found

    def output_infos(self) -> list[TensorInfo]:
        """What the model says of the node's outputs."""
        assert self.node is not None
        return [self.model.tensors[i] for i in self.node.outputs]

    def handled(self, call: Call, integers: bool = False) -> list[Value]:
        """What an operator's function makes of real numbers; `integers`: of the integers that stand for them."""
        declared = TABLE.select("", call.operator, 1)
        assert declared is not None
        inputs = [i.value if integers and isinstance(i, Quantised) else self.real(i) for i in call.inputs]
        options = {k: v for k, v in call.options.items() if v or k in (declared.attributes or ())}
        declared.check_attributes(options)
        made = declared.handler(self, *declared.arguments(inputs), **options)
        return list(made) if isinstance(made, (tuple, list)) else [made]

    def _in_integers(self, call: Call, levels: Sequence[Levels | None], ending: endings.Ending) -> list[Item] | None:
        """The outputs as layers of integers make them; None when there are none for this form."""
        sources = [i for i in call.inputs if isinstance(i, Quantised)]
        known = [out for out in levels if out is not None and out.is_one and out.dtype.name in LAYER_TYPES]
        if not sources or len(known) != len(levels):
            return None
        before = len(self.refusals)
        try:
            made = self._integers(call, sources, known)
            if made is not None:
                pairs = zip(made, known, strict=True)
                return [Quantised(endings.limited_integers(self, v, out, ending), out) for v, out in pairs]
        except Refused:
            del self.refusals[before:]
        return None

    def _integers(self, call: Call, sources: Sequence[Quantised], outs: Sequence[Levels]) -> list[Value] | None:
        out = outs[0]
        if call.operator in MOVES and all(q.levels.is_one and q.levels.matches(o) for q in sources for o in outs):
            with marked(self, out):
                return self.handled(call, integers=True)
        if len(outs) > 1:
            return None
        form = QUANTISED.get(call.operator)
        made = form(self, call, out) if form else None
        if made is None and call.operator in TABLED:
            made = tables.looked_up(self, call, out)
        return None if made is None else [made]

    def _quantised(self, value: Value, levels: Levels | None) -> Item:
        """The value as the tensor that the model has."""
        if levels is None or not value.is_float:
            return value
        if value.array is not None:
            return Quantised(Value.of(tables.quantised(value.array, levels)), levels)
        if levels.dtype.name not in LAYER_TYPES:
            raise Refused(f"its output is of {levels.dtype} with a scale, which graphs do not have")
        return Quantised(quantize_layer(self, value, levels), levels)

    def _check(self, item: Item, info: TensorInfo) -> None:
        """Refused when a result is not what the model says of it: then one of both is wrong."""
        value = item.value if isinstance(item, Quantised) else item
        if isinstance(value, Handle) or value is None:
            raise Refused(f"its output '{info.name}' is no tensor of numbers")
        if info.no_numbers:
            raise Refused(f"its output {info.no_numbers}")
        if stored_type(value.dtype) != stored_type(info.dtype):
            raise Refused(f"it makes {value.dtype}, its output '{info.name}' is {info.dtype}")
        if self.strict and any(d not in (None, s) for d, s in zip(info.shape, value.shape, strict=False)):
            raise Refused(f"it makes {list(value.shape)}, its output '{info.name}' is {list(info.shape)}")

    # -- constants

    def computed(self, value: Value) -> Value:
        """A value that depends on constants only, as an array: by the references of its layers."""
        if value.array is not None or value.tensor is None:
            return value
        stored = self._content(value.tensor, {})
        array = np.transpose(stored, np.argsort(value.order)) if value.rank else stored
        return Value.of(np.ascontiguousarray(array).reshape(value.shape).astype(value.dtype))

    def _content(self, tensor: Tensor, found: dict[str, Array]) -> Array:
        if tensor.name not in found:
            layer = self.producer(tensor)
            if layer.type == "Input":
                raise NotConstant("its content is not known at import", [tensor.name])
            try:
                cost = cost_of(layer)
                self.room(cost.held)
                self.budget.take(COMPUTED_ELEMENTS, cost.operations, f"the node '{self.name}'")
                made = evaluate(layer, [self._content(t, found) for t in layer.inputs])
            except LayerError as error:
                raise Refused(f"it cannot be computed at import: {error}") from None
            found.update(zip((t.name for t in layer.outputs), made, strict=True))
        return found[tensor.name]
