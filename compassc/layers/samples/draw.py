"""Drawing of random layers, and the registry of samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import INTEGER_TYPES, numpy_dtype
from compassc.graph.values import Value
from compassc.layers.declare import evaluate
from compassc.layers.families import FAMILY_OF


@dataclass
class Draw:
    """Random numbers and tensors of one layer. `given` are tensors that further inputs may be taken from."""

    source: np.random.Generator
    name: str = "layer"
    given: Sequence[Tensor] = ()
    _count: int = 0

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.source.integers(low, high + 1))

    def choice(self, options: Sequence[object]) -> Any:
        return options[self.integer(0, len(options) - 1)]

    def array(self, dtype: str, *shape: int, low: int | None = None, high: int | None = None) -> Array:
        if dtype not in INTEGER_TYPES:
            return self.source.normal(0, 0.3, shape).astype(numpy_dtype(dtype))
        kind = INTEGER_TYPES[dtype]
        ends = kind.low if low is None else low, (kind.high if high is None else high) + 1
        return self.source.integers(*ends, shape).astype(numpy_dtype(dtype))

    def tensor(self, shape: Sequence[int], dtype: str, zero: int | None = None) -> Tensor:
        """A new tensor; integers have a random scale and zero point."""
        self._count += 1
        name = f"{self.name}_{self._count}"
        if dtype not in INTEGER_TYPES or dtype in ("int32", "bool"):
            return Tensor(name, tuple(shape), dtype)
        zero = self.integer(-9, 9) if zero is None else zero
        return Tensor(name, tuple(shape), dtype, float(self.integer(1, 400)) / 8, zero)

    def plain(self, shape: Sequence[int], dtype: str) -> Tensor:
        """A new tensor without quantisation."""
        return Tensor(self.tensor((1,), dtype).name, tuple(shape), dtype)

    def like(self, x: Tensor, shape: Sequence[int] | None = None) -> Tensor:
        """A new tensor with the type, scale and zero point of another one."""
        made = self.tensor(x.shape if shape is None else shape, x.dtype)
        return Tensor(made.name, made.shape, x.dtype, x.scale, x.zero)

    def requantised(self, x: Tensor, shape: Sequence[int] | None = None) -> Tensor:
        """A new tensor of the same kind of type, of 8 or 16 bits with or without sign for integers."""
        narrow = ("int8", "uint8") if x.dtype in ("int8", "uint8") else (x.dtype,)
        return self.tensor(x.shape if shape is None else shape, self.choice(narrow) if x.is_integer else x.dtype)

    def other(self, x: Tensor, shape: Sequence[int] | None = None) -> Tensor:
        """A second operand of the type of `x`: one of the given tensors, or a new input."""
        wanted = tuple(x.shape if shape is None else shape)
        found = [t for t in self.given if t.shape == wanted and t.dtype == x.dtype and t.name != x.name]
        return self.choice(found) if found and self.integer(0, 3) else self.tensor(wanted, x.dtype)

    def indices(self, shape: Sequence[int], count: int) -> Tensor:
        """A new tensor of indices below `count`."""
        return Tensor(self.tensor((1,), "int32").name, tuple(shape), "int32", limits=(0, count - 1))

    def rescaling(self, bits: int) -> dict[str, int]:
        """A multiplier and shift that bring numbers of `bits` bits to about 7."""
        return {"scale_value": self.integer(128, 255), "shift_value": max(0, bits + self.integer(-1, 1))}


Sample = Callable[[Draw, Tensor], "Layer | None"]
"""`sample(draw, x)`: a layer with `x` as its first input; None when no such layer takes it."""
SAMPLES: dict[str, Sample] = {}


def sample(*types: str) -> Callable[[Callable[..., Layer | None]], Callable[..., Layer | None]]:
    """Registers a function `(draw, type, x)` for layer types."""

    def register(make: Callable[..., Layer | None]) -> Callable[..., Layer | None]:
        for name in types:
            SAMPLES[name] = lambda draw, x, name=name: make(draw, name, x)  # type: ignore[misc]
        return make

    return register


def drawn(draw: Draw, kind: str, x: Tensor) -> Layer | None:
    """A layer of a type on `x` that its reference takes; None where there is none."""
    if kind not in SAMPLES:
        return None
    layer = SAMPLES[kind](draw, x)
    if layer is None:
        return None

    try:
        evaluate(layer, [np.zeros(t.shape, numpy_dtype(t.dtype)) for t in layer.inputs])
    except LayerError:
        return None
    return layer


def names(*candidates: str) -> list[str]:
    """Those of the names that are declared."""
    return [n for n in candidates if n in FAMILY_OF]


def bits_of(t: Tensor) -> int:
    return t.integer.bits if t.is_integer else 0


def layer_of(
    draw: Draw,
    kind: str,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor] | Tensor,
    constants: dict[str, Array] | None = None,
    /,
    **attributes: Value,
) -> Layer:
    listed = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    return Layer(draw.name, kind, tuple(inputs), tuple(listed), attributes, constants or {})


def activation(draw: Draw) -> dict[str, Value]:
    method = draw.choice(("NONE", "NONE", "RELU", "CLIP", "LEAKYRELU"))
    return {"with_activation": method, "clip_min": -3000, "clip_max": 20000, "negative_slope_value": 26}


def float_activation(draw: Draw) -> dict[str, Value]:
    return {"with_activation": draw.choice(("NONE", "RELU"))}
