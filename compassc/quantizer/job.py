"""One layer on its way to the quantised graph: what a rule gets, and what it makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.graph import Layer, Tensor
from compassc.graph.dtypes import FLOAT_TYPES
from compassc.graph.values import Value
from compassc.quantizer.numbers import ASYMMETRIC, Levels, levels
from compassc.quantizer.settings import LayerSettings
from compassc.quantizer.statistics import Moments, Record
from compassc.quantizer.strategies import parse

MARKS: Mapping[str, Value] = {"is_perf_mode": True, "unquantifiable": False}
"""Attributes of every quantised layer."""


class NotQuantised(Exception):
    """A layer that cannot be quantised, in words; it stays in a float type: that of the settings, or `float_type`."""

    def __init__(self, why: str, float_type: str = "") -> None:
        super().__init__(why)
        self.float_type = float_type


@dataclass(frozen=True)
class Job:
    """A float layer, `inputs` as they are in the quantised graph, its settings, and the records of its tensors.

    `record(name)`: of a tensor, or of a value inside the layer by `LAYER/NAME`.
    """

    layer: Layer
    inputs: tuple[Tensor, ...]
    settings: LayerSettings
    record: Callable[[str], Record]
    ranges: Mapping[str, tuple[float, float]]
    """Of tensors that have no range of their own, but one with others."""
    moments: Moments | None = None
    correct: bool = False
    integers: Mapping[str, Array] | None = None
    """Contents of constant inputs by the tensor's name."""
    free: Callable[[str], str] = str
    """A name like the one given that nothing in the graph has."""

    @property
    def input(self) -> Tensor:
        return self.inputs[0]

    @property
    def bits(self) -> int:
        """Of activations."""
        return self.settings.activation_bits

    @property
    def mode(self) -> str:
        """Of activations."""
        return self.settings.mode

    # -- ranges

    def range(self, index: int = 0, symmetric: bool | None = None) -> tuple[float, float]:
        """What an output's integers have to stand for."""
        name = self.layer.outputs[index].name
        if name in self.ranges:
            return self.ranges[name]
        even = self.mode != ASYMMETRIC if symmetric is None else symmetric
        return parse(self.settings.activation_strategy).range(self.record(name), self.bits, even)

    def inside(self, name: str) -> tuple[float, float]:
        """The same of a value inside the layer."""
        record = self.record(f"{self.layer.name}/{name}")
        return parse(self.settings.activation_strategy).range(record, self.bits, True)

    # -- outputs

    def levels(
        self,
        signed: bool,
        index: int = 0,
        *,
        mode: str | None = None,
        bits: int | None = None,
        limits: tuple[float, float] | None = None,
    ) -> Levels:
        """Scale and zero point of an output; `limits` instead of the range of its values."""
        low, high = limits or self.range(index)
        return levels(low, high, mode or self.mode, bits or self.bits, signed or self.settings.force_signed)

    def output(self, signed: bool, index: int = 0, **given: Any) -> Tensor:
        """An output with a scale of its own."""
        return self.levels(signed, index, **given).tensor(self.layer.outputs[index])

    def as_input(self, index: int = 0, source: int = 0) -> Tensor:
        """An output with scale, zero point and type of an input."""
        given, own = self.inputs[source], self.layer.outputs[index]
        limits = (given.low, given.high) if given.is_integer else given.limits
        return replace(given, name=own.name, shape=own.shape, limits=limits)

    def plain(self, index: int = 0, dtype: str | None = None) -> Tensor:
        """An output whose integers are what they look like."""
        own = self.layer.outputs[index]
        return Tensor(own.name, own.shape, dtype or whole_type(own.dtype))

    # -- the layer

    def made(
        self,
        outputs: Tensor | Sequence[Tensor],
        attributes: Mapping[str, Value] | None = None,
        constants: Mapping[str, Array] | None = None,
        without: Sequence[str] = (),
    ) -> Layer:
        """The quantised layer: the float one with these outputs, further attributes and constants; `without` some of its
        own attributes."""
        listed = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
        kept = {k: v for k, v in self.layer.attributes.items() if k not in without}
        own = {k: v for k, v in self.layer.constants.items() if k not in (constants or {}) and k not in without}
        return replace(
            self.layer,
            inputs=self.inputs,
            outputs=listed,
            attributes={**kept, **MARKS, **(attributes or {})},
            constants={**own, **(constants or {})},
        )


def whole_type(dtype: str) -> str:
    """The type of integers in the quantised graph: at most 32 bits."""
    return {"int64": "int32", "uint64": "uint32", "bool": "uint8"}.get(dtype, dtype)


def is_plain(t: Tensor) -> bool:
    """Whether a tensor's integers are what they look like."""
    return t.is_integer and t.scale == 1.0 and t.zero == 0


def is_float(t: Tensor) -> bool:
    return t.dtype in FLOAT_TYPES


def scale_of(t: Tensor) -> np.float32:
    return np.float32(t.scalar_scale)
