"""A layer type is declared once: its attributes, its references in floats and integers, its shape rule, its kernels.

    CONVOLUTION = layer_type("Convolution", summary="...", use="common", pattern=PatternKind.ANCHOR,
                             attributes=(...), constants=(...), float=convolution, quantised=quantised_convolution)

A reference is a function of the layer and its input arrays that gives the output arrays. It may leave values outside
the output's type, and fractions: `evaluate` stores them as the type does.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.namedtuple import NamedTuple
from compassc.graph import Layer, LayerError
from compassc.graph.dtypes import FLOAT_TYPES, INTEGER_TYPES, numpy_dtype
from compassc.graph.values import Value, parse_value
from compassc.layers import families
from compassc.layers.layer_checks import check, described, fault_of
from compassc.layers.stored_weights import with_real_weights
from compassc.operators.calls import Calls, References, all_operators
from compassc.operators.patterns import Filters, PatternKind

Reference = Callable[..., "Array | Sequence[Array]"]
"""`reference(layer, *inputs)`: the output, or all outputs in order."""
Body = Callable[..., Any]
"""`body(call, layer, *operands)`: the outputs for real numbers in calls of operators (`compassc.operators.calls`)."""


@dataclass(frozen=True)
class Attribute:
    """An attribute of a layer type. `default` None: it must be there. `form`: "float", "quantised" or "" for both.

    `told`: the value that follows from the layer's tensors, where they determine it.
    """

    name: str
    kind: str
    doc: str
    default: str | None = None
    form: str = ""
    told: Callable[[Layer], Value | None] | None = None

    @property
    def value(self) -> Value | None:
        """The default as a value; None where it is required, or follows from something else (`default` says what)."""
        if self.default is None:
            return None
        listed = [parse_value(part.strip()) for part in self.default.split(",")]
        found: Value = listed if self.kind in ("ints", "counts", "floats", "words") else listed[0]
        wordy = self.kind in ("word", "words") and " " in self.default
        return None if wordy or self.fault(found) or self.default in ("required", "rank", "last") else found

    def fault(self, value: object) -> str:
        """What was expected in place of a value of the wrong kind; "" for a value of the right one."""
        return fault_of(self.kind, value)


@dataclass(frozen=True)
class Constant:
    """A constant of a layer type; `shape` in words such as `[O,KH,KW,I/group]`."""

    name: str
    shape: str
    doc: str
    optional: bool = False
    form: str = ""


BOUNDS = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 1.6e-2}
"""How far float results may be from the references, relative to them, and absolute for values up to 1: sums are added in
another order, functions are within a few units."""


@dataclass(frozen=True)
class LayerType:
    """One layer type. `refused` says why a type that the format knows is not supported; `no_integers` why its quantised
    form is not. `body` is its definition by operators, and thereby its reference for floats where it has no other."""

    name: str
    summary: str
    use: str
    pattern: PatternKind = PatternKind.OPAQUE
    inputs: str = "x"
    outputs: str = "y"
    attributes: tuple[Attribute, ...] = ()
    constants: tuple[Constant, ...] = ()
    float: Reference | None = None
    quantised: Reference | None = None
    body: Body | None = None
    notes: str = ""
    refused: str = ""
    same_shape: bool = False
    """Whether the first output has the shape of the first input; element-wise layers have the one inputs broadcast to."""
    no_integers: str = ""
    filters: Filters | None = None
    """How the weights lie, of a type that is linear in what it takes."""

    def reason_against(self, layer: Layer) -> str:
        """Why a layer of the type is not supported; empty where it is."""
        if self.refused or not self.no_integers:
            return self.refused
        return self.no_integers if layer.is_quantised else ""


LAYER_TYPES: dict[str, LayerType] = {}
"""The layer types by name whose families are imported; see `type_of`."""


def layer_type(*names: str, summary: str, use: str, **fields: object) -> LayerType:
    """Declares a layer type, under several names when the format has more than one; gives the first."""
    for name in names:
        if name in LAYER_TYPES:
            raise ValueError(f"the layer type {name} is declared twice")
        if name not in families.FAMILY_OF:
            raise ValueError(f"the layer type {name} is declared, but `families.TYPES` lists it for no family")
        made = LayerType(name=name, summary=summary, use=use, **fields)  # type: ignore[arg-type]
        LAYER_TYPES[name] = made if made.body is None or made.float else replace(made, float=by_body(made.body))
    return LAYER_TYPES[names[0]]


def by_body(body: Body) -> Reference:
    """The reference for floats that a body is, in float32."""

    def reference(layer: Layer, *operands: Array) -> Any:
        wide = [x.astype(np.float32) if x.dtype.name in FLOAT_TYPES else x for x in operands]
        return body(References(), layer, *wide)

    return reference


def by_operator(name: str) -> dict[str, Any]:
    """The fields of a layer type that is an operator alone, whose attributes have the same names."""
    operator = all_operators()[name]

    def body(call: Calls, layer: Layer, *operands: object) -> Any:
        return call(name, *operands, **{key: layer.number(key, value) for key, value in operator.attributes.items()})

    return {"summary": operator.summary, "pattern": operator.pattern, "body": body}


class DeclaredType(NamedTuple):
    """Layer types in a table: `names` apart by blanks; `reference` of all types, or of floats and of integers (None where
    there is none)."""

    names: str
    summary: str
    use: str
    reference: Reference | tuple[Reference | None, Reference | None] | None
    attributes: tuple[Attribute, ...] = ()
    inputs: str = "x"
    outputs: str = "y"
    constants: tuple[Constant, ...] = ()
    same_shape: bool = False
    pattern: PatternKind | None = None
    body: Body | None = None
    notes: str = ""
    no_integers: str = ""
    refused: str = ""
    filters: Filters | None = None


def declare_table(rows: Iterable[DeclaredType], pattern: PatternKind) -> None:
    """Declares the types of a table, with this pattern where a row has no other."""
    for row in rows:
        names, summary, use, reference, *_ = row
        floats, integers = reference if isinstance(reference, tuple) else (reference, reference)
        layer_type(
            *names.split(),
            summary=summary,
            use=use,
            pattern=row.pattern or pattern,
            inputs=row.inputs,
            outputs=row.outputs,
            attributes=row.attributes,
            constants=row.constants,
            same_shape=row.same_shape,
            body=row.body,
            notes=row.notes,
            no_integers=row.no_integers,
            refused=row.refused,
            filters=row.filters,
            float=floats,
            quantised=integers,
        )


def find_type(name: str) -> LayerType | None:
    """A layer type by name, for which its family alone is imported; None where there is no such type."""
    if name not in LAYER_TYPES and name in families.FAMILY_OF:
        importlib.import_module(f"{families.__name__}.{families.FAMILY_OF[name]}")
    return LAYER_TYPES.get(name)


def type_of(name: str) -> LayerType:
    """As `find_type`, of a name that is known to be one. KeyError where it is none."""
    if find_type(name) is None:
        raise KeyError(name)
    return LAYER_TYPES[name]


@cache
def all_types() -> dict[str, LayerType]:
    """Every layer type by name, in the order of declaration."""
    for family in families.TYPES:
        importlib.import_module(f"{families.__name__}.{family}")
    return {name: LAYER_TYPES[name] for name in families.FAMILY_OF}


@contextmanager
def consistent(layer: Layer) -> Iterator[None]:
    """Errors of NumPy about arrays of incompatible shapes become a LayerError that describes the layer.

    So does a LayerError that names no tensor, attribute or constant.
    """
    try:
        yield
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        message = f"its tensors, attributes and constants contradict each other: {error} ({described(layer)})"
        raise LayerError(message) from error
    except LayerError as error:
        if "'" in str(error):
            raise
        raise LayerError(f"{error} ({described(layer)})") from error


def evaluate(layer: Layer, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a layer for `inputs`, by its reference; LayerError for forms that the reference lacks, and where
    it would take memory or time beyond all limits."""
    return evaluator(layer)(inputs)


def evaluator(layer: Layer, shared: bool = False) -> Callable[[Sequence[Array]], list[Array]]:
    """`evaluate` of a layer that is evaluated more than once: what does not depend on the inputs is checked here. `shared`: outputs
    may lie in the memory of inputs and constants."""
    from compassc.layers.costs import check_cost

    declared = find_type(layer.type)
    if declared is None:
        raise LayerError(f"the layer type {layer.type} is not known")
    if reason := declared.reason_against(layer):
        raise LayerError(reason)
    with consistent(layer):
        check(declared, layer)
        check_cost(layer)
        layer = with_real_weights(layer)
    reference = declared.quantised if layer.is_quantised and declared.quantised else declared.float
    if reference is None:
        raise LayerError(f"{layer.type} has no {'quantised' if layer.is_quantised else 'float'} form")
    return partial(_referenced, layer, reference, shared)


def _referenced(layer: Layer, reference: Reference, shared: bool, inputs: Sequence[Array]) -> list[Array]:
    with np.errstate(all="ignore"), consistent(layer):
        given = reference(layer, *inputs)
    results = [np.asarray(given)] if isinstance(given, (np.ndarray, np.generic)) else list(given)
    if len(results) != len(layer.outputs):
        raise LayerError(f"it has {len(layer.outputs)} outputs, {layer.type} gives {len(results)}")
    return [store(r, t.dtype, t.shape, t.name, shared) for r, t in zip(results, layer.outputs, strict=True)]


def store(values: Array, dtype: str, shape: Sequence[int], name: str = "", shared: bool = False) -> Array:
    """The values as a data type holds them; `shared`: they themselves where they are of it already.

    Integers: NaN gives 0, the rest is limited to the type and loses its fraction. Floats: finite values are limited
    to the largest finite one and rounded.
    """
    if tuple(values.shape) != tuple(shape):
        raise LayerError(f"'{name}' is declared as {list(shape)}, but the layer gives {list(values.shape)}")
    if dtype in INTEGER_TYPES:
        kind = INTEGER_TYPES[dtype]
        kept = numpy_dtype(dtype)
        if values.dtype.kind == "f":
            values = np.trunc(np.where(np.isnan(values), 0, values))
            values = np.clip(values, kind.low, np.nextafter(float(kind.high), 0) if kind.bits == 64 else kind.high)
        elif values.dtype.kind != "b" and (
            values.dtype != kept or kind.bits != 8 * kept.itemsize
        ):  # int4 is stored wider
            values = np.clip(values, kind.low, kind.high)
        return values.astype(kept)
    target = np.dtype(numpy_dtype(dtype))
    if target.itemsize >= 4:
        return values.astype(target, copy=not shared)
    import ml_dtypes

    largest = float(ml_dtypes.finfo(target).max)
    limited = np.where(np.isfinite(values), np.clip(values, -largest, largest), values)
    return limited.astype(target)
