"""One layer of a graph: its tensors, attributes and constants, with checked access."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import Span
from compassc.graph.dtypes import FLOAT_TYPES
from compassc.graph.tensor import LayerError, Tensor
from compassc.graph.values import Value

INFORMATIVE = ("_scale", "_zp")
"""Ends of the names of constants that tell how another constant was quantised."""

_REQUIRED = object()


def _is_number(value: object) -> bool:
    """Whether it is a number other than NaN."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value  # noqa: PLR0124


def _is_whole(value: int) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer: `attributes` as the graph's text has them, `constants` as arrays of their own types.

    `span` is where it comes from: the line of a text, or in words the node of a model. Layers are equal when all else
    is, constants element by element.
    """

    name: str
    type: str
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    attributes: Mapping[str, Value] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)
    span: Span | str | None = None

    def __post_init__(self) -> None:
        if type(self.inputs) is not tuple:
            object.__setattr__(self, "inputs", tuple(self.inputs))
        if type(self.outputs) is not tuple:
            object.__setattr__(self, "outputs", tuple(self.outputs))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Layer):
            return NotImplemented
        return (
            (self.name, self.type, self.inputs, self.outputs) == (other.name, other.type, other.inputs, other.outputs)
            and self.attributes == other.attributes
            and same_arrays(self.constants, other.constants)
        )

    def __hash__(self) -> int:
        return hash((self.name, self.type))

    @property
    def input(self) -> Tensor:
        if not self.inputs:
            raise LayerError("it has no input")
        return self.inputs[0]

    @property
    def output(self) -> Tensor:
        if not self.outputs:
            raise LayerError("it has no output")
        return self.outputs[0]

    @property
    def is_quantised(self) -> bool:
        """Whether integers of this layer stand for real numbers: no tensor or weight is a float of 16 bits or more."""
        if self.flag("unquantifiable", False):
            return False
        for t in (*self.inputs, *self.outputs):
            if t.dtype in FLOAT_TYPES:
                return False
        for key, a in self.constants.items():  # NumPy makes the name of a type anew each time
            if (
                a.dtype.kind not in "biu"
                and a.dtype.name in FLOAT_TYPES
                and not ("lut" in key or key.endswith(INFORMATIVE))
            ):
                return False
        return True

    def has(self, key: str) -> bool:
        return key in self.attributes and self.attributes[key] is not None

    def number(self, key: str, default: Any = _REQUIRED) -> float:
        value = self._value(key, default)
        if not _is_number(value):
            raise LayerError(f"'{key}' is {value!r}, expected a number")
        return float(value)

    def integer(self, key: str, default: object = _REQUIRED) -> int:
        value = self._value(key, default)
        if not _is_whole(value):
            raise LayerError(f"'{key}' is {value!r}, expected a whole number")
        return int(value)

    def integers(self, key: str, default: object = _REQUIRED) -> list[int]:
        """A list of whole numbers; a single one is a list of one."""
        value = self._value(key, default)
        listed = list(value) if isinstance(value, (list, tuple)) else [value]
        if not all(map(_is_whole, listed)):
            raise LayerError(f"'{key}' is {value!r}, expected whole numbers")
        return [int(v) for v in listed]

    def numbers(self, key: str, default: object = _REQUIRED) -> list[float]:
        value = self._value(key, default)
        listed = list(value) if isinstance(value, (list, tuple)) else [value]
        if not all(map(_is_number, listed)):
            raise LayerError(f"'{key}' is {value!r}, expected numbers")
        return [float(v) for v in listed]

    def pairs(self, key: str) -> list[tuple[int, int]]:
        """A list of pairs of whole numbers."""
        value = self._value(key, _REQUIRED)
        listed = value if isinstance(value, (list, tuple)) else [value]
        pairs = [v if isinstance(v, (list, tuple)) else () for v in listed]
        if any(len(p) != 2 or not all(map(_is_whole, p)) for p in pairs):
            raise LayerError(f"'{key}' is {value!r}, expected a list of pairs")
        return [(int(a), int(b)) for a, b in pairs]

    def word(self, key: str, default: object = _REQUIRED, choices: Sequence[str] = ()) -> str:
        """A keyword in upper case, one of `choices`."""
        value = str(self._value(key, default)).upper()
        if choices and value not in choices:
            raise LayerError(f"'{key}' is {value}, expected one of {', '.join(choices)}")
        return value

    def flag(self, key: str, default: object = _REQUIRED) -> bool:
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

    def axis(self, key: str = "axis", default: object = _REQUIRED) -> int:
        """One axis of the first input, not negative."""
        axes = self.axes(key, default)
        if len(axes) != 1:
            raise LayerError(f"'{key}' is {self.attributes.get(key)}, expected one axis")
        return axes[0]

    def axes(self, key: str = "axis", default: object = _REQUIRED) -> list[int]:
        """Axes of the first input, not negative, sorted."""
        rank = len(self.input.shape)
        given = self.integers(key, default)
        axes = sorted(a + rank if a < 0 else a for a in given)
        if any(not 0 <= a < rank for a in axes) or len(set(axes)) != len(axes):
            raise LayerError(f"'{key}' is {self.attributes.get(key, default)}, but the input has {rank} dimensions")
        return axes

    def scale_shift(self, prefix: str = "", of: int | None = None, needed: bool = True) -> tuple[Array, Array]:
        """Multipliers and shifts of a requantisation, int64: a constant per channel, else a number or a list.

        `of`: how many there must be. A missing multiplier is 1, a missing shift 0, which is right for integers that
        stand for themselves only: where a tensor has a scale, LayerError names what is missing, unless it is not
        `needed`. LayerError for multipliers of more than 32 bits, and for shifts of more than 8.
        """
        return self.multipliers(prefix, of, needed), self._factors(f"{prefix}shift", 0, of, needed)

    def multipliers(self, prefix: str = "", of: int | None = None, needed: bool = True) -> Array:
        """The multipliers of `scale_shift`."""
        return self._factors(f"{prefix}scale", 1, of, needed)

    @property
    def is_scaled(self) -> bool:
        """Whether integers of it stand for other numbers than themselves: a tensor has a scale."""
        return any(t.is_integer and t.scale != 1 for t in (*self.inputs, *self.outputs))

    def factor(self, key: str, absent: int) -> int:
        """A whole number of a requantisation. One that is missing is `absent`, which LayerError refuses where a tensor
        has a scale."""
        return self.integer(key) if self.is_scaled else self.integer(key, absent)

    def _factors(self, key: str, absent: int, of: int | None, needed: bool) -> Array:
        given = key in self.constants or self.attributes.get(f"{key}_value") not in (None, "None")
        if needed and not given and self.is_scaled:
            scales = {t.name: t.scale for t in (*self.inputs, *self.outputs) if t.scale != 1}
            name, scale = next(iter(scales.items()))
            shown = f"{scale:g}" if isinstance(scale, float) else f"{list(scale)}"
            raise LayerError(
                f"the attribute '{key}_value' is missing, and there is no constant '{key}'; '{name}' has the scale {shown}"
            )
        found = self._quantity(key, absent)
        if of is not None and found.size not in (1, of):
            label = key if key in self.constants else f"{key}_value"
            raise LayerError(f"'{label}' has {found.size} values, expected {of}")
        return found

    def _quantity(self, key: str, default: int) -> Array:
        import numpy as np

        found: Array | list[int]
        extremes: tuple[int, ...] = ()
        if key in self.constants:
            name, found = key, self.constants[key].reshape(-1)
            if found.size:
                extremes = found.min(), found.max()
        else:
            name, found = f"{key}_value", self.integers(f"{key}_value", default)
            if not found:
                raise LayerError(f"'{name}' is [], expected numbers")
            extremes = min(found), max(found)
        low, high = (0, 2**31 - 1) if key.endswith("scale") else (-128, 127)
        for extreme in extremes:
            if not low <= extreme <= high:
                raise LayerError(f"'{name}' is {extreme}, expected {low} to {high}")
        exact = np.array(found, np.int64)
        return exact if name == key or exact.size != 1 else exact.reshape(())

    def _value(self, key: str, default: object) -> Any:
        value = self.attributes.get(key)
        if value is None or value == "None":
            if default is _REQUIRED:
                raise LayerError(f"the attribute '{key}' is missing")
            return default
        return value


def same_arrays(ours: Mapping[str, Array], others: Mapping[str, Array]) -> bool:
    """Whether the arrays have the same names, types, shapes and bytes."""
    return ours.keys() == others.keys() and all(same_array(array, others[key]) for key, array in ours.items())


def same_array(one: Array, other: Array) -> bool:
    """Whether two arrays have the same type, shape and bytes."""
    if one is other:
        return True
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
