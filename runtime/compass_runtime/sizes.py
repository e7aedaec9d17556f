"""The sizes of a run: values of scalars and shapes of tensors, from the build, the caller and the kernel's extents."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from compass_core.aipubin import KernelInfo, Param
from compass_core.aipubin.dtypes import scalar_bits, scalar_value
from compass_core.errors import CompassError, UsageError
from compass_core.errors.suggest import help_for

if TYPE_CHECKING:
    from compass_core.extents import Extent
    from compass_core.extents.structure import Program

Shape = tuple[int, ...]
MOST_ROOM = 1 << 24
"""Elements beyond an array that its kernel may touch, and that there is memory for."""


def resolve_values(info: KernelInfo, given: Mapping[str, float]) -> dict[str, float]:
    """The value of every scalar. CompassError for an unknown name, a missing value, or one that the type cannot hold."""
    scalars = {p.name: p for p in info.by_role("attr")}
    _known(info, given, scalars, "scalars")
    values = {}
    for name, param in scalars.items():
        fixed = param.value
        value = given.get(name, fixed)
        if value is None:
            raise CompassError(
                f"the scalar '{name}' ({param.dtype}) has no value",
                code="no-value",
                help=f"give it with --set {name}=VALUE (Python: values={{'{name}': ...}})",
            )
        if fixed is not None and _differ(param, value, fixed):
            raise CompassError(
                f"the scalar '{name}' was fixed to {fixed} when the kernel was built",
                code="fixed-value",
                help=f"build it again with --set {name}={value}",
            )
        try:
            scalar_bits(param.element, value)
        except CompassError as error:
            raise CompassError(f"scalar '{name}': {error.message}", code=error.code) from None
        values[name] = scalar_value(param.element, value)
    return values


def _differ(param: Param, value: float, fixed: float) -> bool:
    """Whether the caller's value of a scalar is another than that of the build, as values of its type."""
    return scalar_value(param.element, value) != scalar_value(param.element, fixed)


def _known(info: KernelInfo, given: Mapping[str, object], known: Mapping[str, object], what: str) -> None:
    for name in given:
        if name not in known:
            raise CompassError(
                f"the kernel '{info.kernel}' has no parameter '{name}' among its {what}",
                code="no-parameter",
                help=help_for(name, known, what),
            )


def resolve_shapes(
    info: KernelInfo,
    arrays: Mapping[str, Shape],
    given: Mapping[str, Sequence[int]],
    values: Mapping[str, float],
    tecs: int,
    nulls: Collection[str] = (),
    may_be_small: bool = False,
    may_be_large: bool = False,
) -> tuple[dict[str, Shape], dict[str, int]]:
    """The shape of every input and output, and how many elements there is to be memory for where that is more.

    In this order: as built; as `given`; of the array the caller passes (`arrays`); as the kernel shapes it, or from its
    extents, with the scalars' `values`. Null pointers (`nulls`) need no size. CompassError when none of them says, or
    when they contradict each other: a tensor must have what the kernel certainly accesses; what it may access besides
    only says how much memory there is to be. `may_be_small`: tensors may have fewer elements than the kernel accesses,
    for a run that finds such accesses. `may_be_large`: arrays may have more elements than the build was told.
    """
    tensors = {p.name: p for p in (*info.by_role("input"), *info.by_role("output"))}
    _known(info, given, tensors, "inputs and outputs")
    extents = _extents(info.extents, values, tecs, nulls) if info.extents is not None else {}
    shapes, room = {}, {}
    for name, param in tensors.items():
        if name in nulls:
            shapes[name] = param.shape or (0,)
            continue
        extent, array = extents.get(name), arrays.get(name)
        shape = _shape(param, array, given.get(name), extent, values)
        if array is not None and _fits(array, shape, extent, may_be_large):
            shape = array
        _check_array(param, shape, array)
        if extent is not None and not may_be_small:
            _check_extent(param, shape, extent.certain, bool(values))
            more = (extent.elements or 0) - prod(shape)
            if more > 0:
                room[name] = prod(shape) + min(more, MOST_ROOM)
        shapes[name] = shape
    return shapes, room


def _fits(array: Shape, shape: Shape, extent: Extent | None, may_be_large: bool) -> bool:
    """Whether an array of another size will do: a larger one, or one with less than an estimate."""
    if prod(array) >= prod(shape):
        return may_be_large
    return extent is not None and extent.elements == prod(shape) and extent.certain < extent.elements


def _extents(program: Program, values: Mapping[str, float], tecs: int, nulls: Collection[str]) -> Mapping[str, Extent]:
    from compass_core.extents import evaluate

    return evaluate(program, dict(values), tecs, nulls)


def _shape(
    param: Param,
    array: Shape | None,
    given: Sequence[int] | None,
    extent: Extent | None,
    values: Mapping[str, float],
) -> Shape:
    if given is not None:
        if param.shape is not None and prod(given) != prod(param.shape):
            raise CompassError(
                f"'{param.name}' was built for the shape {spell(param.shape)}, not {spell(given)}",
                code="tensor-shape",
                help="build the kernel again with --shape",
            )
        return tuple(given)
    if param.shape is not None:
        return param.shape
    if array is not None:
        return array
    if (dims := _as_the_kernel_says(param, values)) is not None:
        return dims
    if extent is not None and extent.elements is not None:
        return (extent.elements,)
    why = (extent.reason,) if extent is not None and extent.reason else ()
    raise CompassError(
        f"the size of {param.role} '{param.name}' is not known",
        code="no-shape",
        notes=why,
        help=f"give it with --shape {param.name}=SIZE, for instance --shape {param.name}=4x1024 "
        f"(Python: shapes={{'{param.name}': (4, 1024)}})",
    )


def _as_the_kernel_says(param: Param, values: Mapping[str, float]) -> Shape | None:
    """The shape that the kernel gives the tensor; None when it does not, or the scalars are no sizes."""
    dims = [values.get(dim, -1) if isinstance(dim, str) else dim for dim in param.dims or ()]
    return tuple(int(dim) for dim in dims) if dims and min(dims) >= 0 else None


def _check_array(param: Param, shape: Shape, array: Shape | None) -> None:
    if array is not None and prod(array) != prod(shape):
        raise CompassError(
            f"{param.role} '{param.name}' is to have {elements(shape)}, but the array has {elements(array)}",
            code="tensor-size",
            help=f"its size was fixed when the kernel was built; --shape {param.name}={spell(array)} builds it for this one"
            if param.shape is not None and prod(array) > prod(shape)
            else "",
        )


def _check_extent(param: Param, shape: Shape, needed: int, scalars: bool) -> None:
    if prod(shape) < needed:
        raise CompassError(
            f"{param.role} '{param.name}' has {elements(shape)}, but {'with these scalars ' if scalars else ''}the "
            f"kernel accesses {needed}",
            code="tensor-size",
            help=f"give a larger '{param.name}'" + (" or other scalars (--set)" if scalars else ""),
        )


def elements(shape: Sequence[int]) -> str:
    """The number of elements of a shape as text, with its dimensions where there are several."""
    count = prod(shape)
    dims = f" ({spell(shape)})" if len(shape) > 1 else ""
    return f"{count} element{'' if count == 1 else 's'}{dims}"


def spell(shape: Sequence[int]) -> str:
    """A shape as the options spell it: `4x1024`."""
    return "x".join(map(str, shape)) or "scalar"


def parse_values(texts: Sequence[str]) -> dict[str, float]:
    """Scalars of --set; integers in any Python notation, floats, true and false."""
    values: dict[str, float] = {}
    for text in texts:
        name, _, value = text.partition("=")
        words: dict[str, float] = {"true": 1, "false": 0}
        try:
            values[name] = words[value.lower()] if value.lower() in words else int(value, 0)
        except ValueError:
            try:
                values[name] = float(value)
            except ValueError:
                raise UsageError(f"--set: '{text}' is not NAME=NUMBER", code="bad-set") from None
    return values


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Shapes of --shape: `c=4x1024`."""
    shapes = {}
    for text in texts:
        name, _, dims = text.partition("=")
        parts = dims.split("x")
        if not name or not all(part.isdecimal() and len(part) < 12 for part in parts):
            raise UsageError(f"--shape: '{text}' is not NAME=SIZExSIZE", code="bad-shape", help="--shape c=4x1024")
        shapes[name] = tuple(int(part) for part in parts)
    return shapes
