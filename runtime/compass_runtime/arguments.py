"""What a module says of its parameters, and how the arguments of a call are held against that."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np

from compass_core.arrays import Array, NumpyDType
from compass_core.dataclass import dataclass
from compass_core.operators import OPERATORS
from compass_runtime.errors import RuntimeTypeError, RuntimeValueError
from compass_runtime.ndarray import NDArray
from compass_runtime.program import numpy_dtype

if TYPE_CHECKING:
    from typing_extensions import NotRequired

LARGEST = 1 << 31
"""Elements of a tensor stay below this: kernels count in 32 bits."""


Size: TypeAlias = "int | str | tuple[str, Size, Size]"
"""A whole number, the name of a number among the parameters, or (operation, a, b) of sizes."""
Written: TypeAlias = "int | str | list[Written]"
"""A size in a description, which is JSON."""


class Described(TypedDict):
    """A parameter in a description: see `Parameter`."""

    name: str
    dtype: str
    shape: NotRequired[list[Written]]
    output: NotRequired[bool]
    implied: NotRequired[bool]


def evaluated(size: Size, numbers: Mapping[str, int]) -> int:
    """A size for certain numbers."""
    if isinstance(size, int):
        return size
    if isinstance(size, str):
        return numbers[size]
    op, a, b = size
    return OPERATORS[op].evaluate(evaluated(a, numbers), evaluated(b, numbers))


def _size(given: Written, numbers: Collection[str]) -> Size:
    """A size as it is written. ValueError and its like for what is none."""
    if isinstance(given, str):
        if given not in numbers:
            raise ValueError(f"{given} is no number among the parameters")
        return given
    if not isinstance(given, list):
        return int(given)
    op, a, b = given
    if not isinstance(op, str) or op not in OPERATORS:
        raise ValueError(f"there is no operation {op}")
    return op, _size(a, numbers), _size(b, numbers)


@dataclass(frozen=True)
class Parameter:
    """A tensor (`shape` of sizes) or, with None, a number. `implied`: the number is a dimension of a tensor, callers do not
    give it."""

    name: str
    dtype: NumpyDType
    shape: tuple[Size, ...] | None
    output: bool
    implied: bool = False


def parameters_of(description: Mapping[str, Any]) -> list[Parameter]:
    """The parameters of a description (`compassc.targets.signature`). ValueError and its like for what is none."""
    found = []
    params: Sequence[Described] = description["params"]
    numbers = {str(p["name"]) for p in params if "shape" not in p}
    for p in params:
        shape = tuple(_size(x, numbers) for x in p["shape"]) if "shape" in p else None
        marks = bool(p.get("output")), bool(p.get("implied"))
        found.append(Parameter(str(p["name"]), numpy_dtype(str(p["dtype"])), shape, *marks))
    dimensions = {size for p in found for size in p.shape or () if isinstance(size, str)}
    if any(p.implied and p.name not in dimensions for p in found):
        raise ValueError("a size is not among the dimensions")
    return found


class Arguments:
    """Checks the arguments of calls, and lays them out as kernels take them."""

    def __init__(self, name: str, parameters: list[Parameter]) -> None:
        self.name, self.parameters = name, parameters

    def laid_out(self, given: tuple[object, ...]) -> tuple[list[Array], list[tuple[Array, Array]]]:
        """An array for each parameter (numbers in arrays of one element), and what is to be copied back: pairs of an
        array that was given and the one used in its place. RuntimeTypeError, RuntimeValueError naming the argument."""
        values = self._complete(given)
        numbers = {
            p.name: self._number(p, value) for p, value in zip(self.parameters, values, strict=True) if p.shape is None
        }
        made: list[Array] = []
        back: list[tuple[Array, Array]] = []
        for i, (p, value) in enumerate(zip(self.parameters, values, strict=True)):
            made.append(numbers[p.name] if p.shape is None else self._tensor(i, p, value, numbers))
        outputs = [i for i, p in enumerate(self.parameters) if p.output]
        for i, array in enumerate(made):
            shared = any(o != i and np.may_share_memory(array, made[o]) for o in outputs)
            if not array.flags.c_contiguous or not array.flags.aligned or shared:
                made[i] = np.array(array, order="C", copy=True)
                if i in outputs:
                    back.append((array, made[i]))
        return made, back

    def _complete(self, given: tuple[object, ...]) -> list[object]:
        """The arguments with those that are dimensions of others."""
        named = [p for p in self.parameters if not p.implied]
        if len(given) != len(named):
            raise RuntimeTypeError(
                f"'{self.name}' takes {len(named)} arguments, {len(given)} are given", code="argument-count"
            )
        values: dict[str, object] = {}
        for p, value in zip(named, given, strict=True):
            if p.shape is not None and isinstance(value, (np.ndarray, NDArray)) and np.ndim(value) == len(p.shape):
                for size, n in zip(p.shape, value.shape, strict=True):
                    if isinstance(size, str):
                        values.setdefault(size, n)
        rest = iter(given)
        return [values.get(p.name, 0) if p.implied else next(rest) for p in self.parameters]

    def _number(self, p: Parameter, value: Any) -> Array:
        try:
            if isinstance(value, (str, bytes)) or np.ndim(value):
                raise TypeError
            made = np.array([value]).astype(p.dtype)
            if p.dtype.kind in "iu" and int(made[0]) != value:
                raise OverflowError
        except (TypeError, ValueError, OverflowError):
            raise RuntimeTypeError(
                f"argument '{p.name}' of '{self.name}' is a number of type {p.dtype}, got {value!r:.80}",
                code="argument-type",
            ) from None
        return made

    def _tensor(self, i: int, p: Parameter, value: object, numbers: dict[str, Array]) -> Array:
        where = f"argument {i + 1} ('{p.name}') of '{self.name}'"
        if not isinstance(value, (np.ndarray, NDArray)):
            raise RuntimeTypeError(f"{where} must be an array, got {type(value).__name__}", code="argument-type")
        array = np.asarray(value)
        if array.dtype != p.dtype:
            raise RuntimeTypeError(f"{where} must have the type {p.dtype}, got {array.dtype}", code="argument-type")
        assert p.shape is not None
        if array.ndim != len(p.shape) and any(not isinstance(x, int) for x in p.shape):
            raise RuntimeValueError(
                f"{where} must have {len(p.shape)} dimensions, got the shape {array.shape}", code="tensor-shape"
            )
        sizes = {name: int(n[0]) for name, n in numbers.items() if n.dtype.kind in "iu"}
        wanted = tuple(evaluated(x, sizes) for x in p.shape)
        if array.shape != wanted and not (wanted == (1,) and array.shape == ()):
            raise RuntimeValueError(f"{where} must have the shape {wanted}, got {array.shape}", code="tensor-shape")
        if array.size >= LARGEST:
            raise RuntimeValueError(f"{where} has {array.size} elements: too many", code="tensor-shape")
        if p.output and not array.flags.writeable:
            raise RuntimeValueError(f"{where} is written to, but the array is read-only", code="argument-type")
        return array
