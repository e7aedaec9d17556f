"""The walk over a quantised TFLite model: operators on integers as its runtimes compute them (`tflite_integers`), what only moves as it
is, and everything else of the real numbers that the integers stand for, between `qnn.dequantize` and `qnn.quantize`.

Of the last two, an operator is a model of its own, which the importer of graphs makes layers of; layers become expressions by `layers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.importers.finishing import finished
from compassc.importers.onnx.operators.quantised import Levels, Quantised, levels_of, real_numbers
from compassc.importers.refusals import CONTRADICTIONS, UNKNOWN, Refusal, Unknown
from compassc.importers.tflite import endings
from compassc.importers.tflite.convert import FUSED, IGNORED, Conversion
from compassc.importers.tflite.declare import MOVES
from compassc.importers.tflite.source import Model, Node, TensorInfo
from compassc.importers.values import Refused, Value
from compassc.relay.frontend import tflite_resizing  # noqa: F401  # its forms are there by its import
from compassc.relay.frontend.layers import terms_of
from compassc.relay.frontend.terms import Expressions, Term
from compassc.relay.frontend.tflite_integers import DATA, FORMS, IntegerNode, Whole, ended, parameters

CODE = "tflite-unsupported"
BYTES, ENDS = ("int8", "uint8"), ("int8", "uint8", "int16", "uint16", "int32")
"""Types of tensors that `qnn.quantize` makes."""


class QuantisedModel:
    """A program in the making of a quantised model. `items`: its tensors by number. `strict`: shapes are those that the model says."""

    def __init__(self, b: Expressions, model: Model, strict: bool) -> None:
        self.b, self.model, self.strict = b, model, strict
        self.items: dict[int, Term | Unknown] = {}

    # -- tensors

    def levels(self, t: TensorInfo) -> Levels | None:
        """What the integers of a tensor stand for; None where it has no scale."""
        if not t.scale.size or t.dtype.kind not in "iu" and t.type != "INT4":
            return None
        return levels_of(t.scale, t.zero, t.dtype, t.axis, len(t.shape))

    def item(self, index: int) -> Term | Unknown | None:
        """A tensor: what a node made, or a constant."""
        if index < 0:
            return None
        if index not in self.items:
            t = self.model.tensors[index]
            if t.variable:
                raise Refused(f"its tensor '{t.name}' is kept from run to run, programs keep nothing")
            if t.no_numbers or t.array is None:
                raise Refused(t.no_numbers or f"nothing makes its tensor '{t.name}'")
            self.items[index] = self.b.known(t.array)
        return self.items[index]

    def real(self, index: int, term: Term) -> Term:
        """The real numbers of a tensor."""
        t = self.model.tensors[index]
        levels = self.levels(t)
        if levels is None:
            return term
        if term.array is not None:
            return self.b.known(real_numbers(Quantised(Value.of(term.array), levels)).astype(np.float32))
        return self.b.call("qnn.dequantize", term, *parameters(self.b, levels), axis=levels.axis, out_dtype="float32")

    # -- nodes

    def run(self) -> list[Term]:
        """The outputs; empty where nodes are refused."""
        needed, kept = set(self.model.outputs), []
        for node in reversed(self.model.nodes):
            if needed.intersection(node.outputs):
                needed.update(node.inputs)
                kept.append(node)
        for node in reversed(kept):
            self._convert(node)
        outputs = []
        for i in self.model.outputs:
            try:
                outputs.append(self.item(i))
            except Refused as error:
                self.b.refusals.append(Refusal(f"the output '{self.model.tensors[i].name}'", "graph", str(error)))
        return [] if self.b.refusals else [o for o in outputs if isinstance(o, Term)]

    def _convert(self, node: Node) -> None:
        name = next((self.model.tensors[i].name for i in node.outputs if i >= 0), node.operator.lower())
        self.b.name = name
        made: Sequence[Term | Unknown] = [UNKNOWN] * len(node.outputs)
        try:
            inputs = [self.item(i) for i in node.inputs]
            if not any(isinstance(i, Unknown) for i in inputs):
                made = self._made(node, [i for i in inputs if not isinstance(i, Unknown)])
        except Refused as error:
            self._refuse(node, name, str(error))
        except CompassError as error:
            self._refuse(node, name, error.message)
        except CONTRADICTIONS as error:
            self._refuse(node, name, f"its inputs and options contradict each other: {error}")
        self.items.update(zip(node.outputs, made, strict=False))

    def _refuse(self, node: Node, name: str, reason: str) -> None:
        self.b.refusals.append(Refusal(f"operator {node.index} '{name}'", node.operator, reason))

    def _made(self, node: Node, inputs: list[Term | None]) -> list[Term]:
        infos = [self.model.tensors[i] for i in node.outputs]
        outs = [self.levels(t) for t in infos]
        found = self._in_integers(node, inputs, outs)
        if found is None:
            found = self._as_they_are(node, inputs, outs) or self._in_reals(node, inputs, outs)
        for term, t in zip(found, infos, strict=True):
            fits = len(term.shape) == len(t.shape) and all(
                d in (None, s) for d, s in zip(t.shape, term.shape, strict=True)
            )
            if self.strict and not fits or term.dtype != t.dtype:
                raise Refused(
                    f"it makes {term.kind} of {list(term.shape)}, its output '{t.name}' is {t.dtype} of {list(t.shape)}"
                )
        return found

    def _in_integers(
        self, node: Node, inputs: Sequence[Term | None], outs: Sequence[Levels | None]
    ) -> list[Term] | None:
        form, out = FORMS.get(node.operator), outs[0] if len(outs) == 1 else None
        if form is None or out is None or not out.is_one or not inputs:
            return None
        given: list[Whole | Term | None] = []
        for i, term in zip(node.inputs, inputs, strict=True):
            levels = None if term is None else self.levels(self.model.tensors[i])
            given.append(term if term is None or levels is None else Whole(term, levels))
        place = DATA.get(node.operator, 0)
        data = given[place] if place < len(given) else None
        if not isinstance(data, Whole) or data.term.array is not None:
            return None
        options = {k: v for k, v in node.options.items() if k not in IGNORED}
        ending = endings.ending_of(options.pop(FUSED, 0))
        shape = self.model.tensors[node.outputs[0]].shape
        made = form(self.b, IntegerNode(node.operator, given, options, out, shape, ending))
        return None if made is None else [made]

    def _as_they_are(
        self, node: Node, inputs: Sequence[Term | None], outs: Sequence[Levels | None]
    ) -> list[Term] | None:
        """An operator that moves elements, where all have the same scale."""
        levels = [self.levels(self.model.tensors[i]) for i in node.inputs if i >= 0]
        known = [v for v in (*levels, *outs) if v is not None]
        if node.operator not in MOVES or not outs or None in outs or not levels:
            return None
        if not all(v.is_one and v.matches(known[0]) for v in known):
            return None
        ending = endings.ending_of(node.options.get(FUSED, 0))
        plain = replace(node, options={k: v for k, v in node.options.items() if k != FUSED})
        made = self._by_layers(plain, inputs, [known[0].dtype.name] * len(outs))
        return [ended(self.b, x, known[0], ending) for x in made]

    def _in_reals(self, node: Node, inputs: Sequence[Term | None], outs: Sequence[Levels | None]) -> list[Term]:
        """An operator on the numbers that integers stand for, and its results as integers."""
        real = [None if x is None else self.real(i, x) for i, x in zip(node.inputs, inputs, strict=True)]
        infos = [self.model.tensors[i] for i in node.outputs]
        kinds = ["float32" if out is not None else t.dtype.name for out, t in zip(outs, infos, strict=True)]
        if node.operator in ("QUANTIZE", "DEQUANTIZE"):
            made = [x for x in real if x is not None]
        else:
            made = self._by_layers(node, real, kinds)
        return [x if out is None else self._whole(x, out) for x, out in zip(made, outs, strict=True)]

    def _whole(self, x: Term, out: Levels) -> Term:
        if out.dtype.name not in ENDS:
            raise Refused(f"its output is of {out.dtype} with a scale, which programs do not have")
        return self.b.call("qnn.quantize", x, *parameters(self.b, out), axis=out.axis, out_dtype=out.dtype.name)

    def _by_layers(self, node: Node, inputs: Sequence[Term | None], kinds: Sequence[str]) -> list[Term]:
        """The results of a node of these types, as its layers compute them. Refused where it has none."""
        alone, operands = self._alone(node, inputs, kinds)
        b = Conversion(alone, self.strict, budget=self.b.budget)
        for index, term in operands.items():
            b.input(index, alone.tensors[index], term.shape)
        made = b.run(alone.outputs)
        if b.refusals:
            raise Refused(b.refusals[0].reason)
        values = [v for v in made if isinstance(v, Value)]
        if len(values) != len(made):
            raise Refused("its result is no tensor of numbers")
        computed = [v for v in values if v.array is None]
        found = iter(self._layers(b, computed, list(operands.values())) if computed else ())
        return [next(found) if v.array is None else self.b.known(v.array) for v in values]

    def _layers(self, b: Conversion, values: Sequence[Value], operands: Sequence[Term]) -> list[Term]:
        graph = finished(b, [f"result{i}" for i in range(len(values))], values, b.budget.where, CODE)
        before = len(self.b.refusals)
        terms = terms_of(self.b, graph, operands)
        if len(self.b.refusals) > before:
            reason = self.b.refusals[before].reason
            del self.b.refusals[before:]
            raise Refused(reason)
        return terms

    def _alone(self, node: Node, inputs: Sequence[Term | None], kinds: Sequence[str]) -> tuple[Model, dict[int, Term]]:
        """The node as a model without scales, whose inputs are its operands that are not known."""
        tensors, operands = list(self.model.tensors), {}
        for i, term in zip(node.inputs, inputs, strict=True):
            if term is not None:
                if not all(isinstance(d, int) for d in term.shape):
                    raise Refused("its operands have open sizes")
                tensors[i] = _plain(tensors[i], term.kind, term.shape, term.array)
                operands.update({i: term} if term.array is None else {})
        for i, kind in zip(node.outputs, kinds, strict=True):
            tensors[i] = _plain(tensors[i], kind, tensors[i].shape, None)
        alone = Model(self.model.name, tuple(tensors), tuple(operands), node.outputs, (node,))
        return replace(alone, graphs=(alone, *self.model.graphs[1:])), operands


def _plain(t: TensorInfo, kind: str, shape: Sequence[int | None], array: Array | None) -> TensorInfo:
    """A tensor of a type without a scale."""
    return TensorInfo(t.name, kind.upper(), tuple(shape), array, np.zeros(0), np.zeros(0, np.int64), 0, False)
