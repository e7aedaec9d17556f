"""The walk that makes a quantised graph of a float one: layer by layer, with conversions where integers meet floats."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, together
from compassc.graph import Graph, Layer, LayerError, Tensor
from compassc.graph.dtypes import FLOAT_TYPES, integer_type, numpy_dtype
from compassc.graph.edit import GraphEditor, rewrite
from compassc.graph.values import Value
from compassc.layers.declare import find_type, store
from compassc.layers.kernels import kernel_of
from compassc.layers.machine import configuration
from compassc.quantizer.coordinates import OF_PLACES, of_input, wide_places
from compassc.quantizer.job import MARKS, Job, NotQuantised, is_float, whole_type
from compassc.quantizer.numbers import ASYMMETRIC, Levels, levels, limits_of, stored
from compassc.quantizer.poles import with_float_poles
from compassc.quantizer.prepare import prepared
from compassc.quantizer.rules import NO_RULE, all_rules
from compassc.quantizer.rules.moves import MOVES
from compassc.quantizer.settings import LayerSettings, Settings
from compassc.quantizer.statistics import Calibration, Record
from compassc.quantizer.strategies import Range, parse
from compassc.quantizer.unify import given_ranges, unified
from compassc.quantizer.weight_operands import is_linear

HALF_MOST = 65504.0
"""The largest float16."""
STAYING_FLOAT32 = ("biases", "negative_slope")
"""Constants that layers of half floats have in float32."""
RESCALING = ("NONE", "RELU", "RELU6", "CLIP", "LEAKYRELU", "PRELU", "CRELU")
EXACT = ("Softmax", "Sigmoid", "Tanh", "GELU", "Silu", "Swish", "MISH", "ELU", "Exp", "Erf", "Log")
"""Types that compute the function itself in floats, and not by a table of it."""


@dataclass
class Quantised:
    """A quantised graph, and why layers stay floats: by their names, "" where the settings say so."""

    graph: Graph
    floats: Mapping[str, str]


@dataclass
class _Walk:
    graph: Graph
    calibration: Calibration | None
    settings: Settings
    layers: list[Layer] = field(default_factory=list)
    made: dict[str, Tensor] = field(default_factory=dict)
    """Tensors of the new graph by the names of the old ones."""
    converted: dict[tuple[str, str], Tensor] = field(default_factory=dict)
    constants: dict[str, Array] = field(default_factory=dict)
    floats: dict[str, str] = field(default_factory=dict)
    faults: list[CompassError] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    ranges: Mapping[str, Range] = field(default_factory=dict)

    # -- records

    def record(self, name: str) -> Record:
        records = self.calibration.records if self.calibration else {}
        if name not in records or not records[name].batches:
            raise CompassError(
                f"there are no statistics of '{name}'",
                code="calibration-data",
                help="calibrate this graph with the same settings",
            )
        return records[name]

    # -- layers

    def walk(self) -> Quantised:
        decided = decide(self.graph, self.settings)
        self.ranges = {**unified(self.graph, self.record, self.settings), **given_ranges(self.graph)}
        self.names = {layer.name for layer in self.graph.layers} | set(self.graph.tensors())
        for layer in self.graph.layers:
            try:
                for new in self.layer(layer, decided[layer.name]):
                    self.layers.append(new)
                self.made.update(
                    {old.name: new for old, new in zip(layer.outputs, self.layers[-1].outputs, strict=True)}
                )
            except (CompassError, LayerError) as error:
                text = error.message if isinstance(error, CompassError) else str(error)
                help = error.help if isinstance(error, CompassError) else ""
                code = error.code if isinstance(error, CompassError) else "calibration-data"
                self.faults.append(
                    self.graph.error(layer, f"the layer '{layer.name}' of type {layer.type}: {text}", help, code)
                )
                break
        if self.faults:
            raise together(self.faults)
        ends = [tuple(self.made[t.name] for t in listed) for listed in (self.graph.inputs, self.graph.outputs)]
        attributes = {k: v for k, v in self.graph.attributes.items() if k not in ("precision", "model_bin")}
        inner = {name: floated(sub, self.settings.fallback) for name, sub in self.graph.subgraphs.items()}
        made = replace(self.graph, inputs=ends[0], outputs=ends[1], layers=tuple(self.layers), attributes=attributes,
                       subgraphs=inner)  # fmt: skip
        return Quantised(rewrite(made, {"NoOp": [_handed_on]}), self.floats)

    def layer(self, layer: Layer, reason: str | None) -> list[Layer]:
        """The layer in the new graph, last in a list; what is before it goes to the graph, too."""
        settings = self.settings.of(layer)
        if layer.type == "Input":
            return [self.input(layer, settings, reason)]
        if layer.type == "Constant":
            return [self.constant(layer, settings, reason)]
        if not any(is_float(t) for t in (*layer.inputs, *layer.outputs)) and layer.type not in CONTROL:
            return [self.whole(layer)]
        if layer.type == "Quantize" and is_float(self.made[layer.input.name]):
            made = marked(layer, layer.outputs, True)  # it is where integers begin
            return [replace(made, inputs=(self.made[layer.input.name],))]
        needed = ""
        if reason is None:
            try:
                return self.quantised(layer, settings)
            except NotQuantised as error:
                reason, needed = str(error), error.float_type
            except OverflowError as error:
                reason = str(error)
        self.floats[layer.name] = reason
        return [self.floating(layer, settings.float or needed or self.fallback_of(layer))]

    def fallback_of(self, layer: Layer) -> str:
        """The type of a layer without integers: float32 where half floats do not hold its values, or its places."""
        records = self.calibration.records if self.calibration else {}
        found = [records[t.name] for t in (*layer.inputs, *layer.outputs) if t.name in records]
        wide = any(max(-r.least, r.most) > HALF_MOST / 2 for r in found)
        wide = wide or layer.type in OF_PLACES
        return "float32" if wide and self.settings.fallback == "float16" else self.settings.fallback

    def input(self, layer: Layer, settings: LayerSettings, reason: str | None) -> Layer:
        own = layer.output
        if not is_float(own):
            made = replace(own, dtype=whole_type(own.dtype))
        elif reason is not None:
            made = replace(own, dtype=settings.float or self.settings.fallback)
        else:
            made = self.own_levels(own.name, settings).tensor(own)
        return marked(layer, (made,), is_float(made))

    def own_levels(self, name: str, settings: LayerSettings) -> Levels:
        """Of a tensor of which only its values are known."""
        record = self.record(name)
        strategy, mode = parse(settings.activation_strategy), settings.mode
        low, high = self.ranges.get(name) or strategy.range(record, settings.activation_bits, mode != ASYMMETRIC)
        return levels(low, high, mode, settings.activation_bits, record.least < 0 or settings.force_signed)

    def constant(self, layer: Layer, settings: LayerSettings, reason: str | None) -> Layer:
        values, own = layer.constants["weights"], layer.output
        self.constants[own.name] = values
        if not is_float(own):
            made = replace(own, dtype=whole_type(own.dtype))
            content = store(values.reshape(own.shape), made.dtype, own.shape)
            return replace(marked(layer, (made,), False), constants={"weights": content})
        if reason is not None:
            made = replace(own, dtype=settings.float or self.settings.fallback)
            content = in_float(layer, "weights", made.dtype).reshape(own.shape)
            return replace(marked(layer, (made,), True), constants={"weights": content})
        if not np.isfinite(values).all():
            raise LayerError(f"'{own.name}' has values that are not finite")
        made = self._constant_levels(values, own, settings)
        content = stored(values, made)
        described = {"weights_scale": made.scalar_scale, "weights_zp": made.scalar_zero}
        whole = marked(layer, (made,), False)
        return replace(whole, constants={"weights": content}, attributes={**whole.attributes, **described})

    def _constant_levels(self, values: Array, own: Tensor, settings: LayerSettings) -> Tensor:
        """Whole numbers that the bits of activations hold stay what they are."""
        low, high = float(values.min(initial=0)), float(values.max(initial=0))
        bits = settings.activation_bits
        if (values == np.rint(values)).all() and -(1 << (bits - 1)) <= low and high < 1 << (bits - (low < 0)):
            narrow = 8 if -128 <= low and high < (128 if low < 0 else 256) else 16
            kind = integer_type(narrow, low < 0)
            return Tensor(own.name, own.shape, kind, 1.0, 0, limits_of(narrow, low < 0))
        return levels(low, high, settings.mode, bits, low < 0 or settings.force_signed).tensor(own)

    def whole(self, layer: Layer) -> Layer:
        """A layer of integers, which stays what it is; they have at most 32 bits."""
        inputs = tuple(self.made[t.name] for t in layer.inputs)
        outputs = tuple(replace(t, dtype=whole_type(t.dtype)) for t in layer.outputs)
        made = replace(marked(layer, outputs, False), inputs=inputs)
        if "to_dtype" in layer.attributes:
            return replace(made, attributes={**made.attributes, "to_dtype": outputs[0].dtype})
        return made

    def quantised(self, layer: Layer, settings: LayerSettings) -> list[Layer]:
        before = len(self.layers), dict(self.converted)
        try:
            inputs = tuple(self.as_integers(t, of_input(layer.type, i, settings)) for i, t in enumerate(layer.inputs))
            moments = self.calibration.moments.get(layer.name) if self.calibration else None
            job = Job(
                layer,
                inputs,
                settings,
                self.record,
                self.ranges,
                moments,
                self.settings.correct_biases,
                self.constants,
                self.free,
            )
            made = all_rules()[layer.type](job)
            listed = made if isinstance(made, list) else [made]
            if self.settings.only_kernels:
                for new in listed:
                    check_kernel(new)
        except (NotQuantised, OverflowError):
            del self.layers[before[0] :]
            self.converted = before[1]
            raise
        return listed

    def floating(self, layer: Layer, dtype: str) -> Layer:
        """The layer in a float type."""
        inputs = tuple(self.as_floats(t, dtype) for t in layer.inputs)
        outputs = tuple(replace(t, dtype=dtype if is_float(t) else whole_type(t.dtype)) for t in layer.outputs)
        return replace(float_layer(layer, dtype), inputs=inputs, outputs=outputs)

    # -- edges

    def as_integers(self, t: Tensor, settings: LayerSettings) -> Tensor:
        """A tensor of the old graph as integers of the new one."""
        given = self.made[t.name]
        if not is_float(given):
            return given
        key = (t.name, f"int{settings.activation_bits}")
        if key not in self.converted:
            made = self.own_levels(t.name, settings).tensor(replace(given, name=self.free(f"{t.name}_quantize")))
            attributes: dict[str, Value] = {"quantize_scale": made.scalar_scale, "quantize_zp": made.scalar_zero,
                          "round_mode": "ROUND_TO_EVEN", "unquantifiable": True}  # fmt: skip
            self.insert("Quantize", given, made, attributes)
            self.converted[key] = made
        return self.converted[key]

    def as_floats(self, t: Tensor, dtype: str) -> Tensor:
        given = self.made[t.name]
        if not is_float(t) or given.dtype == dtype:
            return given
        key = (t.name, dtype)
        if key not in self.converted:
            made = Tensor(self.free(f"{t.name}_{'cast' if is_float(given) else 'dequantize'}"), given.shape, dtype)
            if is_float(given):
                attributes: dict[str, Value] = {"to_dtype": dtype, "ignore_scale_zp": True, "unquantifiable": True}
                self.insert("Cast", given, made, attributes)
            else:
                attributes = {"quantize_scale": given.scale, "quantize_zp": given.zero, "unquantifiable": True}
                self.insert("DeQuantize", given, made, attributes)
            self.converted[key] = made
        return self.converted[key]

    def insert(self, type: str, given: Tensor, made: Tensor, attributes: Mapping[str, Value]) -> None:
        self.layers.append(Layer(made.name, type, (given,), (made,), attributes))

    def free(self, name: str) -> str:
        """The name, or the first of NAME_1, NAME_2 ... that neither a layer nor a tensor has."""
        found, number = name, 0
        while found in self.names:
            number += 1
            found = f"{name}_{number}"
        self.names.add(found)
        return found


def _handed_on(edit: GraphEditor, layer: Layer) -> Sequence[Layer] | None:
    """NoOp(x) -> x"""
    given, made = layer.input, layer.output
    same = (given.dtype, given.scale, given.zero, given.shape) == (made.dtype, made.scale, made.zero, made.shape)
    return edit.instead(layer, given) if same else None


def check_kernel(layer: Layer) -> None:
    """NotQuantised where the library computes this form of a layer with no kernel."""
    if (key := _digest(layer)) in _with_kernel:
        return
    try:
        kernel_of([layer])
    except LayerError as error:
        raise NotQuantised(f"no kernel has it in integers: {str(error).split(' (')[0]}") from None
    _with_kernel.add(key)


_with_kernel: set[bytes] = set()
"""Digests of layers that have a kernel: a search quantises most layers many times alike."""


def _digest(layer: Layer) -> bytes:
    """Tells layers apart by all that their kernels depend on."""
    machine = configuration()
    found = hashlib.sha256(repr((machine.name, machine.cores, layer.type, layer.inputs, layer.outputs)).encode())
    found.update(repr(sorted(layer.attributes.items())).encode())
    for key, array in sorted(layer.constants.items()):
        found.update(f"{key} {array.dtype} {array.shape}".encode() + array.tobytes())
    return found.digest()


def marked(layer: Layer, outputs: Sequence[Tensor], is_unquantifiable: bool) -> Layer:
    attributes = {**layer.attributes, **MARKS, "unquantifiable": is_unquantifiable}
    return replace(layer, outputs=tuple(outputs), attributes=attributes)


def in_float(layer: Layer, key: str, dtype: str) -> Array:
    """A constant of a layer in a float type; what half floats do not hold is limited, with a warning."""
    array = layer.constants[key]
    most = float(np.abs(array[np.isfinite(array)]).max(initial=0))
    if dtype == "float16" and most > HALF_MOST:
        warnings.warn(
            f"'{key}' of the layer '{layer.name}' goes to {most:g}, float16 only to {HALF_MOST:g}: it is limited to that",
            stacklevel=2,
        )
    return store(array, dtype, array.shape)


def float_layer(layer: Layer, dtype: str) -> Layer:
    """A layer with its constants in a float type; its tensors are still the old ones."""
    constants = {}
    for key, array in layer.constants.items():
        if array.dtype.name in FLOAT_TYPES:
            kind = "float32" if key in STAYING_FLOAT32 else dtype
            array = in_float(layer, key, kind) if array.dtype != numpy_dtype(kind) else array
        constants[key] = array
    attributes: dict[str, Value] = {**layer.attributes, "is_perf_mode": True, "unquantifiable": True}
    if "weights" in layer.constants and layer.type != "Constant":
        attributes |= {"weights_scale": 1.0, "weights_zp": 0}
        attributes |= {"biases_scale": 1.0, "biases_zp": 0} if "biases" in layer.constants else {}
    if layer.type in EXACT or layer.type == "Activation" and layer.word("method", "NONE") not in RESCALING:
        attributes["is_perf_mode"] = False
    if "to_dtype" in attributes and is_float(layer.output):
        attributes["to_dtype"] = dtype
    return replace(layer, constants=constants, attributes=attributes)


def floated(graph: Graph, dtype: str) -> Graph:
    """A graph in a float type."""
    tensors = {n: replace(t, dtype=dtype if is_float(t) else whole_type(t.dtype)) for n, t in graph.tensors().items()}
    layers = tuple(
        replace(
            float_layer(layer, dtype),
            inputs=tuple(tensors[t.name] for t in layer.inputs),
            outputs=tuple(tensors[t.name] for t in layer.outputs),
        )
        for layer in graph.layers
    )
    ends = [tuple(tensors[t.name] for t in listed) for listed in (graph.inputs, graph.outputs)]
    inner = {name: floated(sub, dtype) for name, sub in graph.subgraphs.items()}
    attributes = {k: v for k, v in graph.attributes.items() if k not in ("precision", "model_bin")}
    return replace(graph, layers=layers, inputs=ends[0], outputs=ends[1], subgraphs=inner, attributes=attributes)


CONTROL = ("If", "Loop")
"""Layers that run other graphs, which stay floats."""


def decide(graph: Graph, settings: Settings) -> dict[str, str | None]:
    """By layer, why it stays a float; None for those that are to be quantised. Inputs, constants and movements are
    floats where all who take their values are."""
    rules = all_rules()
    found: dict[str, str | None] = {}
    users = graph.users()
    ends = {t.name for t in graph.outputs}

    passing = {"Input", "Constant", "DeQuantize", *MOVES.split()}
    for layer in reversed(graph.layers):
        chosen = settings.of(layer).float
        if chosen:
            found[layer.name] = ""
        elif layer.type not in rules and layer.type not in ("Input", "Constant"):
            found[layer.name] = why_no_rule(layer.type)
        else:
            after = [found[u.name] for t in layer.outputs for u in users[t.name]]
            follows = layer.type in passing and after and all(r is not None for r in after)
            last = any(t.name in ends for t in layer.outputs)
            found[layer.name] = "all who take its values are floats" if follows and not last else None
    return found


def why_no_rule(type: str) -> str:
    """Why layers of a type stay floats."""
    declared = find_type(type)
    return NO_RULE.get(type) or (declared.no_integers if declared else "") or "its type has no quantised form"


def quantize_with_reasons(graph: Graph, calibration: Calibration | None, settings: Settings | None = None) -> Quantised:
    """The quantised graph, and which layers stay floats, with the reason."""
    settings = settings or Settings()
    if unknown := settings.unmatched(graph.layers):
        raise CompassError(
            f"the settings are about {', '.join(repr(k) for k in unknown)}, which no layer of the graph is",
            code="quantize-settings",
            help="names of layers may have * and ?; types are written type:Softmax",
        )
    if calibration is not None and not calibration.moments and (wanting := wants_moments(graph, settings)):
        raise graph.error(
            wanting,
            f"the statistics have nothing about the weights of '{wanting.name}', which 'rounding: adaptive' and "
            "'correct_biases' look at",
            "calibrate again with the same settings",
            "calibration-data",
        )
    own = with_float_poles(graph, calibration, wide_places(graph, settings))
    return _Walk(prepared(graph, settings), calibration, own).walk()


def wants_moments(graph: Graph, settings: Settings) -> Layer | None:
    """A layer whose weights are rounded, or whose biases are corrected, by what its inputs are like."""
    for layer in graph.layers:
        own = settings.of(layer)
        if is_linear(layer) and not own.float and (settings.correct_biases or own.rounding == "adaptive"):
            return layer
    return None


def quantize(graph: Graph, calibration: Calibration | None, settings: Settings | None = None) -> Graph:
    """The quantised graph of a float graph, as its calibration and the settings say.

    Names of layers and tensors stay. Layers without a quantised form are floats, with conversions before and behind them.
    Without calibration every layer has to stay a float. CompassError naming the layer where statistics are missing.
    """
    return quantize_with_reasons(graph, calibration, settings).graph
