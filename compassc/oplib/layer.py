"""What a family sees of a layer, and what it answers: a kernel with arguments, or why it cannot take the layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from compassc.gbuilder.plugin_api import Tensor

if TYPE_CHECKING:
    import numpy as np

    from compassc.dsl.script.functions import PyPrimFunc

Argument = int | float | Tensor
FLOATS = ("float32", "float16")
QUANTISED = ("int8", "uint8", "int16")
"""Types whose values stand for (q + zero point) / scale."""


class Unsupported(Exception):
    """The library cannot take a layer; the message says why."""


class Choice(NamedTuple):
    """A kernel, the name that tells its variant from others, and one argument per kernel parameter.

    Floats are passed as float32. A tensor with `data` that the layer does not have becomes a constant of the graph.
    """

    kernel: PyPrimFunc
    name: str
    args: list[Argument]


class Layer:
    """One layer of the graph. Accessors raise Unsupported when the layer is not as they demand."""

    def __init__(self, node: Any) -> None:
        self.name: str = node.name
        self.type = str(node.type)
        self.inputs: list[Tensor] = node.inputs
        self.outputs: list[Tensor] = node.outputs
        self.params: Mapping[str, Any] = node.params
        self.constants: Mapping[str, Tensor] = node.constants

    def input(self, index: int = 0) -> Tensor:
        if index >= len(self.inputs):
            raise Unsupported(f"it has {len(self.inputs)} inputs, expected at least {index + 1}")
        return known(self.inputs[index])

    @property
    def output(self) -> Tensor:
        if len(self.outputs) != 1:
            raise Unsupported(f"it has {len(self.outputs)} outputs, expected 1")
        return known(self.outputs[0])

    def dtype(self, *allowed: str) -> str:
        """The data type of the first input, which all inputs and the output must have too."""
        found = [str(t.dtype) for t in (*self.inputs, *self.outputs)]
        if len(set(found)) != 1:
            raise Unsupported(f"its tensors have the types {', '.join(found)}, expected one type for all")
        return one_of("data type", found[0], allowed)

    def number(self, key: str, default: float | None = None) -> float:
        value = self.params.get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Unsupported(f"'{key}' is {value!r}, expected a number")
        return value

    def whole(self, key: str, default: int | None = None) -> int:
        value = self.number(key, default)
        if value != int(value):
            raise Unsupported(f"'{key}' is {value}, expected a whole number")
        return int(value)

    def wholes(self, key: str) -> list[int]:
        value = self.params.get(key)
        listed = value if isinstance(value, list) else [value]
        found = [v for v in listed if isinstance(v, int)]
        if len(found) != len(listed):
            raise Unsupported(f"'{key}' is {value!r}, expected whole numbers")
        return found

    def word(self, key: str, default: str, allowed: tuple[str, ...] = ()) -> str:
        """A keyword in upper case."""
        value = str(self.params.get(key, default)).upper()
        return one_of(key, value, allowed) if allowed else value

    def flag(self, key: str, default: bool = False) -> bool:
        return str(self.params.get(key, default)).lower() == "true"

    def constant(self, name: str) -> np.ndarray[Any, Any]:
        """A constant as an array."""
        if name not in self.constants:
            raise Unsupported(f"the constant '{name}' is missing")
        return array_of(self.constants[name])

    def axes(self, key: str = "axis") -> list[int]:
        """The axes of `key`, not negative, sorted."""
        rank = len(self.input().shape)
        axes = sorted(a + rank if a < 0 else a for a in self.wholes(key))
        if not axes or axes[0] < 0 or axes[-1] >= rank or len(set(axes)) != len(axes):
            raise Unsupported(f"'{key}' is {self.params.get(key)}, but the input has {rank} dimensions")
        return axes


def input_scale(tensor: Tensor) -> list[Argument]:
    """1 / scale and zero point of a quantised tensor, as kernels take them."""
    if tensor.scale <= 0:
        raise Unsupported(f"the scale of '{tensor.name}' is {tensor.scale}")
    return [1.0 / tensor.scale, float(tensor.zero_point)]


def output_scale(tensor: Tensor) -> list[Argument]:
    """Scale and zero point of a quantised tensor."""
    return [tensor.scale, float(tensor.zero_point)]


def one_of(what: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise Unsupported(f"the {what} {value} is not among {', '.join(allowed)}")
    return value


def known(tensor: Tensor) -> Tensor:
    """`tensor` when all its dims are known."""
    if any(d <= 0 for d in tensor.shape):
        raise Unsupported(f"the shape {list(tensor.shape)} of '{tensor.name}' is empty or not known at build time")
    return tensor


def count(shape: list[int]) -> int:
    """Elements of a shape."""
    total = 1
    for dim in shape:
        total *= dim
    return total


def array_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The content of a constant."""
    import numpy as np

    return np.frombuffer(tensor.data or b"", dtype=str(tensor.dtype)).reshape(tensor.shape)


def constant(name: str, array: np.ndarray[Any, Any]) -> Tensor:
    """A new constant tensor, such as weights in another order."""
    import numpy as np

    tensor = Tensor()
    tensor.name, tensor.shape, tensor.dtype = name, list(array.shape), array.dtype.name
    tensor.data = np.ascontiguousarray(array).tobytes()
    return tensor


def split_axes(shape: list[int], axes: list[int]) -> tuple[int, int, int]:
    """(outer, n, inner): elements before, along and after adjacent axes."""
    if axes != list(range(axes[0], axes[-1] + 1)):
        raise Unsupported(f"the axes {axes} are not next to each other")
    return count(shape[: axes[0]]), count(shape[axes[0] : axes[-1] + 1]), count(shape[axes[-1] + 1 :])


Selector = Callable[[Layer], Choice]
OPERATORS: dict[str, Selector] = {}
"""Layer type -> the function that chooses its kernel; filled when the families are imported."""


def operator(*types: str) -> Callable[[Selector], Selector]:
    """Registers a function for layer types."""

    def register(select: Selector) -> Selector:
        for name in types:
            OPERATORS[name] = select
        return select

    return register
