"""The shapes of a model's inputs: what the model says, and what the user says where it leaves them open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from compass_core.errors import CompassError, UsageError
from compass_core.errors.suggest import help_for

MOST_ELEMENTS = 1 << 40
"""Of an input, each dimension counted as 1 at least."""
Dims = Sequence[int | None]
"""Dimensions of an input, None for open ones."""


def input_shapes(
    inputs: Mapping[str, Dims | None], given: Mapping[str, Sequence[int]], path: str, code: str
) -> dict[str, tuple[int, ...]]:
    """The shape of each input. `inputs`: what the model says; `given`: what the user says; `code`: of open shapes.

    A first dimension that is open is 1 (a batch of one); others must be given.
    """
    names = list(inputs)
    for name in given:
        if name not in names:
            raise UsageError(f"'{path}' has no input '{name}'", code="no-input", help=help_for(name, names, "inputs"))
    found, open_dims = {}, []
    for name, dims in inputs.items():
        shape = _shape(name, dims, given.get(name), path, code)
        if any(d is None for d in shape):
            open_dims.append(f"{name}={'x'.join('?' if d is None else str(d) for d in shape)}")
        found[name] = tuple(d or 0 for d in shape)
        if prod(max(d, 1) for d in found[name]) > MOST_ELEMENTS:
            size = "x".join(map(str, found[name]))
            raise CompassError(f"'{path}': the input '{name}' is {size}, more than a device can hold", code=code)
    if open_dims:
        spelled = " ".join(f"--shape {text}" for text in open_dims)
        raise CompassError(
            f"'{path}' leaves dimensions of its inputs open",
            code=code,
            help=f"give numbers for the question marks: {spelled}",
        )
    return found


def _shape(name: str, dims: Dims | None, given: Sequence[int] | None, path: str, code: str) -> Dims:
    if dims is None:
        if given is not None:
            return list(given)
        raise CompassError(
            f"'{path}' does not say how many dimensions its input '{name}' has",
            code=code,
            help=f"give its shape: --shape {name}=1x3x224x224",
        )
    if given is None:
        return [1 if d is None and i == 0 else d for i, d in enumerate(dims)]
    fits = len(given) == len(dims) and all(d is None or d == g for d, g in zip(dims, given, strict=True))
    if not fits:
        own = "x".join("?" if d is None else str(d) for d in dims)
        raise UsageError(
            f"the input '{name}' is {own} in the model, not {'x'.join(map(str, given))}",
            code="tensor-shape",
            help="sizes that the model fixes cannot be changed, apart from those shown as ?",
        )
    return list(given)
