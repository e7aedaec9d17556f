"""Layers as tensor expressions, by their bodies: kernels of schedules, and layers computed on any kind of target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc import te, topi
from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import FLOAT_TYPES, numpy_dtype
from compassc.ir.errors import ExpressionError
from compassc.layers.declare import consistent, evaluate, type_of
from compassc.layers.kernel import Kernel
from compassc.layers.layer_checks import check
from compassc.layers.stored_weights import with_real_weights
from compassc.operators.declare import sizes
from compassc.operators.expressions import Expressions
from compassc.operators.patterns import PatternKind
from compassc.targets import build

UNKNOWN_TYPES = ("bfloat16", "bool", "int64", "uint64", "int4", "uint4")
"""Types of tensors that expressions do not take."""


@dataclass(frozen=True)
class LayerExpression:
    """An expression of layers: what they take and make with their placeholders and tensors, and what is constant with its
    value."""

    inputs: tuple[tuple[te.Tensor, Tensor], ...]
    constants: tuple[tuple[te.Tensor, Array], ...]
    outputs: tuple[tuple[te.Tensor, Tensor], ...]

    @cached_property
    def made(self) -> list[te.Tensor]:
        """The outputs of the expression."""
        return [t for t, _ in self.outputs]

    @cached_property
    def parameters(self) -> list[te.Tensor]:
        """The parameters of its kernel, in order."""
        return [t for t, _ in (*self.inputs, *self.constants)] + self.made

    @cached_property
    def arguments(self) -> tuple[Tensor | Array, ...]:
        """What the parameters stand for."""
        taken, made = ([t for _, t in held] for held in (self.inputs, self.outputs))
        return (*taken, *(a for _, a in self.constants), *made)


@contextmanager
def _refused() -> Iterator[None]:
    """What expressions and schedules refuse is a LayerError."""
    try:
        yield
    except ExpressionError as error:
        raise LayerError(f"it has no expression of these tensors: {error.message}") from error
    except te.LowerError as error:
        raise LayerError(f"its expression has no schedule: {error.message}") from error


def expression_of(layers: Sequence[Layer]) -> LayerExpression:
    """The expression of a layer and of those behind it in one kernel, computed in float32. LayerError with the reason where
    there is none: layers of integers have one where they only move elements."""
    call = Expressions()
    inputs: list[tuple[te.Tensor, Tensor]] = []
    known: dict[str, te.Tensor] = {}
    for layer in layers:
        for t in layer.inputs:
            if t.name not in known:
                known[t.name] = te.placeholder(t.shape, t.dtype, name=f"x{len(inputs)}")
                inputs.append((known[t.name], t))
        made = _made(call, layer, [known[t.name] for t in layer.inputs])
        known |= {t.name: y for t, y in zip(layer.outputs, made, strict=True)}
    return LayerExpression(tuple(inputs), tuple(call.constants), tuple((known[t.name], t) for t in layers[-1].outputs))


def _made(call: Expressions, layer: Layer, given: Sequence[te.Tensor]) -> list[te.Tensor]:
    """The outputs of one layer, as they are stored."""
    declared = type_of(layer.type)
    if declared.body is None:
        raise LayerError(f"a {layer.type} is not defined by operators")
    moves = declared.pattern is PatternKind.INJECTIVE and declared.quantised is declared.float
    if layer.is_quantised and not moves:
        raise LayerError("its integers stand for real numbers, which expressions do not")
    for t in (*layer.inputs, *layer.outputs):
        if t.dtype in UNKNOWN_TYPES or not t.count or not t.shape:
            raise LayerError(f"'{t.name}' is {t.dtype} of shape {list(t.shape)}, which expressions do not take")
    with consistent(layer), _refused():
        check(declared, layer)
        wide = [x if moves or str(x.dtype) not in FLOAT_TYPES else _as(x, "float32") for x in given]
        found = declared.body(call, with_real_weights(layer), *wide)
        made = [found] if isinstance(found, te.Tensor) else list(found)
        if len(layer.outputs) != len(made):
            raise LayerError(f"it has {len(layer.outputs)} outputs, its expression {len(made)}")
        for t, y in zip(layer.outputs, made, strict=True):
            if (shape := sizes(y)) != list(t.shape):
                raise LayerError(f"'{t.name}' is {list(t.shape)}, its expression {shape}")
        return [_as(y, t.dtype) for t, y in zip(layer.outputs, made, strict=True)]


def _as(x: te.Tensor, dtype: str) -> te.Tensor:
    """A tensor in another type."""
    return x if str(x.dtype) == dtype else topi.cast(x, dtype)


def scheduled_kernel(layers: Sequence[Layer], target: str) -> Kernel:
    """The kernel of layers by their expression and its default schedule. LayerError with the reason where there is none."""
    found = expression_of(layers)
    with _refused():
        module = te.lower(topi.schedule(found.made, target), found.parameters, "layer", target)
    return Kernel(str(module), found.arguments, lambda: module["layer"], is_program=False)


@dataclass
class OnTarget:
    """Layers computed on a target by schedules, a `compute` of `compassc.graph.run`; those without an expression by their
    references, for the reasons in `references` by the layers' names."""

    target: str
    references: dict[str, str] = field(default_factory=dict)
    _modules: dict[str, tuple[object, LayerExpression]] = field(default_factory=dict)

    def __call__(self, layer: Layer, inputs: Sequence[Array]) -> list[Array]:
        try:
            module, found = self._module(layer)
        except LayerError as error:
            self.references[layer.name] = str(error)
            return evaluate(layer, inputs)
        outputs = [np.zeros(t.shape, numpy_dtype(t.dtype)) for t in layer.outputs]
        module(*map(np.ascontiguousarray, inputs), *(a for _, a in found.constants), *outputs)
        return outputs

    def _module(self, layer: Layer) -> tuple[Any, LayerExpression]:
        """The function of a layer, made once."""
        if layer.name not in self._modules:
            found = expression_of([layer])
            with _refused():
                schedule = topi.schedule(found.made, self.target)
                self._modules[layer.name] = build(schedule, found.parameters, self.target), found
        return self._modules[layer.name]
