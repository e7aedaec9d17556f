"""The shapes of a model's inputs: what the model says, and what the user says where it leaves them open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from compass_core.errors import CompassError, UsageError
from compass_core.errors.suggest import help_for
from compass_core.reading.limits import TENSOR_ELEMENTS

Dims = Sequence[int | str | None]
"""Dimensions of an input: open ones are None, or have a name that inputs share."""


def input_shapes(
    inputs: Mapping[str, Dims | None], given: Mapping[str, Sequence[int]], path: str, code: str
) -> dict[str, tuple[int, ...]]:
    """The shape of each input. `inputs`: what the model says; `given`: what the user says, of inputs, or one number of a
    named dimension; `code`: of open shapes.

    A first dimension that is open is 1 (a batch of one); others must be given.
    """
    named = {d for dims in inputs.values() for d in dims or () if isinstance(d, str)}
    sizes: dict[str, int] = {}
    for name, shape in given.items():
        if name in inputs:
            own = inputs[name] or ()
            if len(own) == len(shape):
                sizes.update({d: size for d, size in zip(own, shape, strict=True) if isinstance(d, str)})
            continue
        if name not in named or len(shape) != 1:
            known = [*inputs, *sorted(named)]
            raise UsageError(f"'{path}' has no input '{name}'", code="no-input", help=help_for(name, known, "inputs"))
        sizes[name] = shape[0]
    found: dict[str, tuple[int, ...]] = {}
    still_open: dict[str, Dims] = {}
    for name, dims in inputs.items():
        resolved = _shape(name, dims, sizes, given.get(name), path, code)
        if any(not isinstance(d, int) for d in resolved):
            still_open[name] = resolved
        found[name] = tuple(d if isinstance(d, int) else 0 for d in resolved)
        # open dimensions and those of nothing count as 1
        where = f"{path}: the input '{name}' of {_spelled(found[name])}"
        TENSOR_ELEMENTS.check(prod(max(d, 1) for d in found[name]), where)
    if still_open:
        spelled = " ".join(f"--shape {name}={_spelled(dims)}" for name, dims in still_open.items())
        names = sorted({d for dims in still_open.values() for d in dims if isinstance(d, str)})
        by_name = f", or of a name: --shape {names[0]}=1" if names else ""
        raise CompassError(
            f"'{path}' leaves dimensions of its inputs open",
            code=code,
            help=f"give numbers for what is no number: {spelled}{by_name}",
        )
    return found


def _spelled(dims: Dims) -> str:
    return "x".join("?" if d is None else str(d) for d in dims)


def _shape(
    name: str, dims: Dims | None, sizes: Mapping[str, int], given: Sequence[int] | None, path: str, code: str
) -> Dims:
    if dims is None:
        if given is not None:
            return list(given)
        raise CompassError(
            f"'{path}' does not say how many dimensions its input '{name}' has",
            code=code,
            help=f"give its shape: --shape {name}=1x3x224x224",
        )
    known = [sizes.get(d, d) if isinstance(d, str) else d for d in dims]
    if given is None:
        return [1 if not isinstance(d, int) and i == 0 else d for i, d in enumerate(known)]
    fits = len(given) == len(dims) and all(d == g for d, g in zip(known, given, strict=True) if isinstance(d, int))
    if not fits:
        raise UsageError(
            f"the input '{name}' is {_spelled(dims)} in the model, not {'x'.join(map(str, given))}",
            code="tensor-shape",
            help="sizes that the model fixes cannot be changed, apart from those shown as ? or a name",
        )
    return list(given)
