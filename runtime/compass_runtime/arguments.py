"""What a module says of its parameters, and how the arguments of a call are held against that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from compass_runtime.errors import RuntimeTypeError, RuntimeValueError
from compass_runtime.ndarray import NDArray
from compass_runtime.program import numpy_dtype

_LARGEST = 1 << 31
"""Elements of a tensor stay below this: kernels count in 32 bits."""


@dataclass(frozen=True)
class Parameter:
    """A tensor (`shape` of whole numbers and of names of numbers among the parameters) or, with None, a number."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str, ...] | None
    output: bool


def parameters_of(description: dict[str, Any]) -> list[Parameter]:
    """The parameters of a description (`compassc.targets.signature`). ValueError and its like for what is none."""
    found = []
    for p in description["params"]:
        shape = None
        if "shape" in p:
            shape = tuple(x if isinstance(x, str) else int(x) for x in p["shape"])
        found.append(Parameter(str(p["name"]), numpy_dtype(str(p["dtype"])), shape, bool(p.get("output"))))
    return found


class Arguments:
    """Checks the arguments of calls, and lays them out as kernels take them."""

    def __init__(self, name: str, parameters: list[Parameter]) -> None:
        self.name, self.parameters = name, parameters

    def laid_out(self, given: tuple[Any, ...]) -> tuple[list[np.ndarray[Any, Any]], list[tuple[Any, Any]]]:
        """An array for each parameter (numbers in arrays of one element), and what is to be copied back: pairs of an
        array that was given and the one used in its place. RuntimeTypeError, RuntimeValueError naming the argument."""
        if len(given) != len(self.parameters):
            raise RuntimeTypeError(
                f"'{self.name}' takes {len(self.parameters)} arguments, {len(given)} are given", code="argument-count"
            )
        numbers = {
            p.name: self._number(p, value) for p, value in zip(self.parameters, given, strict=True) if p.shape is None
        }
        made: list[np.ndarray[Any, Any]] = []
        back: list[tuple[Any, Any]] = []
        for i, (p, value) in enumerate(zip(self.parameters, given, strict=True)):
            made.append(numbers[p.name] if p.shape is None else self._tensor(i, p, value, numbers))
        outputs = [i for i, p in enumerate(self.parameters) if p.output]
        for i, array in enumerate(made):
            shared = any(o != i and np.may_share_memory(array, made[o]) for o in outputs)
            if not array.flags.c_contiguous or not array.flags.aligned or shared:
                made[i] = np.array(array, order="C", copy=True)
                if i in outputs:
                    back.append((array, made[i]))
        return made, back

    def _number(self, p: Parameter, value: Any) -> np.ndarray[Any, Any]:
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

    def _tensor(self, i: int, p: Parameter, value: Any, numbers: dict[str, Any]) -> np.ndarray[Any, Any]:
        where = f"argument {i + 1} ('{p.name}') of '{self.name}'"
        if not isinstance(value, (np.ndarray, NDArray)):
            raise RuntimeTypeError(f"{where} must be an array, got {type(value).__name__}", code="argument-type")
        array = np.asarray(value)
        if array.dtype != p.dtype:
            raise RuntimeTypeError(f"{where} must have the type {p.dtype}, got {array.dtype}", code="argument-type")
        assert p.shape is not None
        wanted = tuple(x if isinstance(x, int) else int(numbers[x][0]) for x in p.shape)
        if array.shape != wanted and not (wanted == (1,) and array.shape == ()):
            raise RuntimeValueError(f"{where} must have the shape {wanted}, got {array.shape}", code="tensor-shape")
        if array.size >= _LARGEST:
            raise RuntimeValueError(f"{where} has {array.size} elements: too many", code="tensor-shape")
        if p.output and not array.flags.writeable:
            raise RuntimeValueError(f"{where} is written to, but the array is read-only", code="argument-type")
        return array
