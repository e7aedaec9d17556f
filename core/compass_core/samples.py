"""Any number of samples for a program that takes one: arrays with samples along a first axis, run one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from compass_core.arrays import Array
from compass_core.errors import CompassError

Shape = tuple[int, ...]


def samples_of(
    shapes: Mapping[str, Shape], arrays: Mapping[str, Array], shown: Callable[[str], str] = str
) -> Iterator[dict[str, Array]]:
    """The runs that arrays are for, by the names of tensors: one where they have the shapes of the tensors, else one for each
    index of the first axis, which the tensor has 1 of, or not at all. `shown`: what users call a tensor. CompassError for
    other shapes."""
    counts = {name: _count(shape, arrays[name].shape, shown(name)) for name, shape in shapes.items()}
    many = {n for n in counts.values() if n is not None}
    if len(many) > 1:
        listed = ", ".join(f"'{shown(name)}' {n}" for name, n in counts.items() if n is not None)
        raise CompassError(f"the inputs have different numbers of samples: {listed}", code="tensor-size")
    if not many:
        yield dict(arrays)
        return
    for i in range(many.pop()):
        yield {
            name: array if counts.get(name) is None else array[i].reshape(shapes[name])
            for name, array in arrays.items()
        }


def has_samples(given: Sequence[int], shape: Sequence[int] | None) -> bool:
    """Whether an array has, along a first axis, any number of what a tensor of a shape has one of."""
    one = tuple(shape or ())
    return len(given) > 0 and (tuple(given[1:]) == one or (one[:1] == (1,) and tuple(given[1:]) == one[1:]))


def joined(shape: Shape, parts: Sequence[Array]) -> Array:
    """An output of a shape of several samples, at least one, along a first axis, in which each has one entry."""
    import numpy as np

    return np.concatenate(parts) if shape[:1] == (1,) else np.stack(parts)


def _count(shape: Shape, given: Shape, name: str) -> int | None:
    """How many samples an array has; None where it is one, as it stands."""
    if given == shape:
        return None
    if has_samples(given, shape):
        return given[0]
    want, have = ("x".join(map(str, each)) or "scalar" for each in (shape, given))
    raise CompassError(
        f"the input '{name}' is {want}, but the array is {have}",
        code="tensor-size",
        help=f"pass {want}, or several of them along a first axis",
    )
