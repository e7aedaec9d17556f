"""What references and kernels see of one layer of a graph: its tensors, attributes and constants, with checked access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compassc.layers.arithmetic import INTEGER_TYPES, Array, IntegerType

INFORMATIVE = ("_scale", "_zp")
"""Ends of the names of constants that tell how another constant was quantised."""
FLOAT_TYPES = ("float32", "float16", "bfloat16", "float64")


class LayerError(Exception):
    """A layer is inconsistent, or in a form that is not implemented; the message names the attribute and its value."""


@dataclass(frozen=True)
class TensorType:
    """A tensor without its values.

    `scale` and `zero`: a quantised value q stands for (q + zero) / scale; arrays hold a value for each index of the
    dimension `axis`. `limits`: the smallest and largest value the layer that makes the tensor may give (a part of the
    type's range); None for the type's own.
    """

    shape: tuple[int, ...]
    dtype: str
    name: str = ""
    scale: float | Array = 1.0
    zero: int | Array = 0
    limits: tuple[float, float] | None = None
    axis: int | None = None

    @property
    def is_integer(self) -> bool:
        return self.dtype in INTEGER_TYPES

    @property
    def integer(self) -> IntegerType:
        """Bits and sign. LayerError for other types."""
        if self.dtype not in INTEGER_TYPES:
            raise LayerError(f"'{self.name}' is {self.dtype}, expected an integer type")
        return INTEGER_TYPES[self.dtype]

    @property
    def low(self) -> int:
        """The smallest value: of `limits`, else of the type."""
        return int(self.limits[0]) if self.limits else self.integer.low

    @property
    def high(self) -> int:
        return int(self.limits[1]) if self.limits else self.integer.high

    @property
    def count(self) -> int:
        total = 1
        for dim in self.shape:
            total *= dim
        return total

    @property
    def scalar_zero(self) -> int:
        """The zero point where it is one number. LayerError for a tensor with one per channel."""
        if np.size(self.zero) != 1:
            raise LayerError(f"'{self.name}' has a zero point per channel, which this layer does not take")
        return int(np.asarray(self.zero).reshape(-1)[0])

    @property
    def scalar_scale(self) -> float:
        """The scale where it is one number. LayerError for a tensor with one per channel."""
        if np.size(self.scale) != 1:
            raise LayerError(f"'{self.name}' has a scale per channel, which this layer does not take")
        return float(np.asarray(self.scale).reshape(-1)[0])


_REQUIRED = object()


@dataclass(frozen=True)
class Layer:
    """One layer: `attributes` as the graph's text has them, `constants` as arrays of their own types."""

    name: str
    type: str
    inputs: Sequence[TensorType]
    outputs: Sequence[TensorType]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)

    @property
    def input(self) -> TensorType:
        if not self.inputs:
            raise LayerError("it has no input")
        return self.inputs[0]

    @property
    def output(self) -> TensorType:
        if not self.outputs:
            raise LayerError("it has no output")
        return self.outputs[0]

    @property
    def is_quantised(self) -> bool:
        """Whether integers of this layer stand for real numbers: no tensor or weight is a float of 16 bits or more."""
        if self.flag("unquantifiable", False):
            return False
        weights = [a for key, a in self.constants.items() if "lut" not in key and not key.endswith(INFORMATIVE)]
        return not any(t.dtype in FLOAT_TYPES for t in (*self.inputs, *self.outputs)) and not any(
            a.dtype.name in FLOAT_TYPES for a in weights
        )

    def has(self, key: str) -> bool:
        return key in self.attributes and self.attributes[key] is not None

    def number(self, key: str, default: Any = _REQUIRED) -> float:
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise LayerError(f"'{key}' is {value!r}, expected a number")
        return float(value)

    def integer(self, key: str, default: Any = _REQUIRED) -> int:
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
            raise LayerError(f"'{key}' is {value!r}, expected a whole number")
        return int(value)

    def integers(self, key: str, default: Any = _REQUIRED) -> list[int]:
        """A list of whole numbers; a single one is a list of one."""
        value = self._value(key, default)
        listed = list(value) if isinstance(value, (list, tuple)) else [value]
        if any(isinstance(v, bool) or not isinstance(v, (int, float)) or v != int(v) for v in listed):
            raise LayerError(f"'{key}' is {value!r}, expected whole numbers")
        return [int(v) for v in listed]

    def numbers(self, key: str, default: Any = _REQUIRED) -> list[float]:
        value = self._value(key, default)
        listed = list(value) if isinstance(value, (list, tuple)) else [value]
        if any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in listed):
            raise LayerError(f"'{key}' is {value!r}, expected numbers")
        return [float(v) for v in listed]

    def pairs(self, key: str) -> list[tuple[int, int]]:
        """A list of pairs of whole numbers."""
        value = self._value(key, _REQUIRED)
        if not isinstance(value, list) or any(not isinstance(v, list) or len(v) != 2 for v in value):
            raise LayerError(f"'{key}' is {value!r}, expected a list of pairs")
        return [(int(a), int(b)) for a, b in value]

    def word(self, key: str, default: Any = _REQUIRED, choices: Sequence[str] = ()) -> str:
        """A keyword in upper case, one of `choices`."""
        value = str(self._value(key, default)).upper()
        if choices and value not in choices:
            raise LayerError(f"'{key}' is {value}, expected one of {', '.join(choices)}")
        return value

    def flag(self, key: str, default: Any = _REQUIRED) -> bool:
        value = self._value(key, default)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if value not in (True, False, 0, 1):
            raise LayerError(f"'{key}' is {value!r}, expected true or false")
        return bool(value)

    def constant(self, key: str) -> Array:
        if key not in self.constants:
            raise LayerError(f"the constant '{key}' is missing")
        return self.constants[key]

    def axis(self, key: str = "axis", default: Any = _REQUIRED) -> int:
        """One axis of the first input, not negative."""
        axes = self.axes(key, default)
        if len(axes) != 1:
            raise LayerError(f"'{key}' is {self.attributes.get(key)}, expected one axis")
        return axes[0]

    def axes(self, key: str = "axis", default: Any = _REQUIRED) -> list[int]:
        """Axes of the first input, not negative, sorted."""
        rank = len(self.input.shape)
        given = self.integers(key, default)
        axes = sorted(a + rank if a < 0 else a for a in given)
        if any(not 0 <= a < rank for a in axes) or len(set(axes)) != len(axes):
            raise LayerError(f"'{key}' is {self.attributes.get(key, default)}, but the input has {rank} dimensions")
        return axes

    def scale_shift(self, prefix: str = "", of: int | None = None) -> tuple[Array, Array]:
        """Multipliers and shifts of a requantisation, int64: a constant per channel, else a number or a list.

        `of`: how many there must be. A missing multiplier is 1, a missing shift 0.
        """
        scale = self._quantity(f"{prefix}scale", 1)
        shift = self._quantity(f"{prefix}shift", 0)
        for label, found in (("scale", scale), ("shift", shift)):
            if of is not None and found.size not in (1, of):
                raise LayerError(f"'{prefix}{label}' has {found.size} values, expected {of}")
        return scale, shift

    def _quantity(self, key: str, default: int) -> Array:
        if key in self.constants:
            return self.constants[key].reshape(-1).astype(np.int64)
        found = np.asarray(self.integers(f"{key}_value", default), np.int64)
        return found.reshape(()) if found.size == 1 else found

    def _value(self, key: str, default: Any) -> Any:
        value = self.attributes.get(key)
        if value is None or value == "None":
            if default is _REQUIRED:
                raise LayerError(f"the attribute '{key}' is missing")
            return default
        return value
