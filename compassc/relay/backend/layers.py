"""Layers of calls: which calls the NPU's layers do, and the graph of layers of a function of such calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

from compass_core.reading.budget import Budget
from compass_runtime.compass_module import CompassModule
from compass_runtime.packed import register_func
from compassc.gbuilder.build import GraphOptions, build_in_memory
from compassc.graph import files
from compassc.graph.graph import Graph
from compassc.importers.finishing import finished
from compassc.importers.refusals import CONTRADICTIONS
from compassc.importers.values import Refused, Value
from compassc.ir.errors import ExpressionError
from compassc.relay.backend import border_forms, quantised_layers  # noqa: F401  # the forms of a module are there by its import
from compassc.relay.backend.layer_forms import FORMS, OF_BYTES, Layers
from compassc.relay.backend.placement import supported
from compassc.relay.backend.referenced import tensors_of
from compassc.relay.backend.regions import COMPILER, PREBUILT
from compassc.relay.backend.whole_forms import BYTES, OF_WORDS, why_not_whole
from compassc.relay.contrib import register_pattern_table
from compassc.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem
from compassc.relay.infer.errors import error
from compassc.relay.operators import Op, get, op_name
from compassc.relay.types import TensorType, TupleType, is_dynamic
from compassc.relay.visit import post_order
from compassc.targets import Target
from compassc.targets.target import NPU

CODE = "relay-layers"
FLOAT = "float32"
Values = Value | list[Value]
"""A value, or those of a tuple."""
OF_SEVERAL = frozenset([*(name for name in FORMS if name.startswith("qnn.")), "cast", "left_shift"])
"""Operators of which each form says what types it takes."""


def why_not(call: Call) -> str:
    """Why a typed call of an operator is no layer, in a few words; "" for one that is."""
    assert isinstance(call.op, Op)
    if call.op.name not in FORMS:
        return "there is no layer for it" + (
            " that computes the same numbers" if call.op.name.startswith("qnn.") else ""
        )
    given = [t for a in call.args for t in _tensors(a)]
    made = tensors_of(call.checked_type)
    if any(is_dynamic(t) for t in [*given, *made]):
        return "its shapes are open"
    if why := _why_not_of_type(call, {t.dtype for t in [*given, *made]}):
        return why
    known = [t for a in call.args if isinstance(a, Constant) for t in _tensors(a)]
    if len(known) == len(given):
        return "all that it takes is known"
    if any(not t.shape or 0 in t.shape for t in made) or any(not t.shape for t in _unknown(call)):
        return "it has numbers without axes, or no elements"
    try:
        _probe(call)
    except Refused as refused:
        return str(refused)
    return ""


def _why_not_of_type(call: Call, kinds: set[str]) -> str:
    """Why a call of tensors of these types is no layer; "" where types are no reason."""
    name = op_name(call)
    if kinds == {FLOAT} or name in OF_SEVERAL or name in OF_BYTES and len(kinds) == 1 and kinds <= {*BYTES}:
        return why_not_whole(call) if name in OF_SEVERAL else ""
    if name in OF_WORDS and kinds == {"int32"}:
        return why_not_whole(call)
    others = [*(BYTES if name in OF_BYTES else ()), *(["int32"] if name in OF_WORDS else ())]
    return f"it is not of {' or '.join([FLOAT, *others])}"


def _tensors(a: Expr) -> list[TensorType]:
    return tensors_of(a.checked_type)


def _unknown(call: Call) -> list[TensorType]:
    """The tensors that a call takes and that are no constants."""
    fields = [f for a in call.args for f in (a.fields if isinstance(a, Tuple) else (a,))]
    return [t for f in fields if not isinstance(f, Constant) for t in _tensors(f)]


def _probe(call: Call) -> None:
    """Make the layers of a call by itself. Refused where it has none."""
    b = Layers("probe", Budget("a call", lambda: _bytes(call)))
    b.name = "probe"
    _made(b, call, [_given(b, a, {}) for a in call.args])


def _bytes(root: Expr) -> int:
    """The bytes of the tensors of a program, which it may cost to read."""
    return sum(4 * prod(t.concrete_shape) for e in post_order(root) if not isinstance(e, Op) for t in _flat(e))


def _flat(e: Expr) -> list[TensorType]:
    return [] if isinstance(e, Function) else tensors_of(e.checked_type)


def _input(b: Layers, name: str, t: TensorType) -> Value:
    return b.value(b.graph.input(f"{name}_0", t.concrete_shape, t.dtype), t.dtype)


def _given(b: Layers, e: Expr, values: Mapping[int, Values]) -> Values:
    """The value, or list of values, of an argument; an input where nothing makes it."""
    if id(e) in values:
        return values[id(e)]
    if isinstance(e, Constant):
        return Value.of(e.array)
    if isinstance(e, Tuple):
        return [_one(_given(b, f, values)) for f in e.fields]
    if isinstance(e, TupleGetItem) and id(e.tuple_value) in values:
        several = values[id(e.tuple_value)]
        assert isinstance(several, list), "a tuple is taken apart"
        return several[e.index]
    if isinstance(e.checked_type, TupleType):
        return [_input(b, "given", t) for t in tensors_of(e.checked_type)]
    return _input(b, "given", tensors_of(e.checked_type)[0])


def _one(value: Values) -> Value:
    if isinstance(value, list):
        raise Refused("a tuple of tuples has no layer")
    return value


def _made(b: Layers, call: Call, args: Sequence[Values]) -> Values:
    """The value, or values, of a call. Refused where it has no layers."""
    assert isinstance(call.op, Op)
    try:
        made = FORMS[call.op.name](b, call.attrs, call.checked_type, *args)
    except ExpressionError as wrong:
        raise Refused(wrong.message) from None
    except CONTRADICTIONS as wrong:
        raise Refused(f"its arguments and attributes contradict each other: {wrong}") from None
    for value, t in zip(made if isinstance(made, list) else [made], tensors_of(call.checked_type), strict=True):
        if value.shape != t.concrete_shape:
            raise Refused(f"its layers make {list(value.shape)} of it, not {list(t.concrete_shape)}")
        if value.tensor is None:
            raise Refused("its result is known")
    return made


def graph_of(f: Function, name: str) -> Graph:
    """The graph of layers of a function whose calls all are layers: an input for each parameter, an output for each tensor of
    the result. CompassError at the line of a call that is none."""
    b = Layers(name, Budget(f"the region '{name}'", lambda: _bytes(f)))
    values: dict[int, Values] = {}
    number = 0
    for p in f.params:
        inputs = []
        for t in tensors_of(p.checked_type):
            inputs.append(_input(b, f"input{number}", t))
            number += 1
        values[id(p)] = inputs if isinstance(p.checked_type, TupleType) else inputs[0]
    for number, e in enumerate(post_order(f.body, lambda e: isinstance(e, Function))):
        if isinstance(e, Call):
            name = e.op.name if isinstance(e.op, Op) else str(e.op.attrs.get("Composite"))  # type: ignore[attr-defined]  # a Function
            b.name = f"{name}_{number}"
            args = [_given(b, a, values) for a in e.args]
            try:
                values[id(e)] = _made(b, e, args) if isinstance(e.op, Op) else _composite(b, e, args)
            except Refused as refused:
                raise error(e, f"{name} cannot run on the NPU: {refused}") from None
    found = _given(b, f.body, values)
    outputs = found if isinstance(found, list) else [found]
    return finished(b, [f"output{i}" for i in range(len(outputs))], _apart(b, outputs), name, CODE)


def _composite(b: Layers, call: Call, args: Sequence[Values]) -> Value:
    """The value of a call of a composite function. Refused where it has no layer."""
    f = call.op
    if not isinstance(f, Function) or f.attrs.get("Composite") != quantised_layers.COMPOSITE:
        raise Refused("there is no layer for such a function")
    assert isinstance(f.body, Call)
    return quantised_layers.made(b, f.body, *map(_one, args))


def _apart(b: Layers, values: Sequence[Value]) -> list[Value]:
    """The values, none of which is the tensor of another one."""
    made: list[Value] = []
    for value in values:
        tensor = b.laid(value)
        if any(tensor is other.tensor for other in made):
            tensor = b.layer("Reshape", [tensor], tensor.shape, tensor.dtype, shape=list(tensor.shape))
        made.append(b.value(tensor, value.dtype))
    return made


def build_region(f: Function) -> CompassModule:
    """The program of a function whose calls all are layers, for the current target: its name takes inputs, then results.
    CompassError where a layer cannot be built."""
    name, current = str(f.attrs["global_symbol"]), Target.current()
    if current is None or current.kind.name != NPU:
        raise error(f, f"functions for {COMPILER} are built for an NPU, the target is {current}", help="give X2_1204")
    target = current.mcpu
    with TemporaryDirectory(prefix="compassc-") as folder:
        graph = files.load(Path(f.attrs[PREBUILT])) if PREBUILT in f.attrs else graph_of(f, name)
        built = build_in_memory(
            graph, Path(folder), Path(folder) / "aipu.bin", target, GraphOptions(work_dir=Path(folder))
        )
        return CompassModule(built.path.read_bytes(), name, target=target)


register_pattern_table(COMPILER, quantised_layers.table)
register_func(f"relay.ext.{COMPILER}", build_region)
for _name in FORMS:
    get(_name).set_attr(f"target.{COMPILER}", supported(why_not))
