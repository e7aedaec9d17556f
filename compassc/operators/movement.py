"""Operators that only say where elements go."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compassc import te
from compassc.ir.errors import ExpressionError
from compassc.ir.exprs import Binary, Expr, IntImm
from compassc.operators.declare import axes_of, axis_of, check_known, number, numbers, operator, sample, sizes
from compassc.operators.patterns import PatternKind
from compassc.te.tensor import Tensor


def _moved(shape: Sequence[object], function: Callable[..., object], name: str) -> Tensor:
    made: Tensor = te.compute(list(shape), function, name=f"T_{name}", tag="injective")
    return made


@operator(
    PatternKind.INJECTIVE, lambda x, axes=None: np.transpose(x, axes), sample((3, 5)), sample((3, 4, 5), [2, 0, 1])
)
def transpose(x: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in another order, by default the reverse one."""
    rank = x.ndim
    order = list(reversed(range(rank))) if axes is None else [axis_of(a, rank, "transpose") for a in axes]
    if sorted(order) != list(range(rank)):
        raise ExpressionError(f"topi.transpose: {axes} does not name each of {rank} axes once")
    back = [order.index(d) for d in range(rank)]
    dims = sizes(x)
    return _moved([dims[d] for d in order], lambda *i: x[tuple(i[b] for b in back)], "transpose")


def flat_index(indices: Sequence[object], shape: Sequence[object]) -> Expr:
    """The place in memory of an index."""
    found: Any = 0
    for i, d in zip(indices, shape):
        found = found * d + i
    flat: Expr = found
    return flat


def from_flat(place: Any, shape: Sequence[Any]) -> list[Expr]:
    """The index of a place in memory."""
    made: list[Any] = []
    for d in reversed(list(shape)[1:]):
        made.insert(0, place % d)
        place = place // d
    return [place, *made] if len(shape) else []


@operator(PatternKind.INJECTIVE, np.reshape, sample((3, 4), [2, 6]), sample((2, 3, 4), [4, -1]), sample((6,), [2, 3]))
def reshape(x: Tensor, newshape: Sequence[Any]) -> Tensor:
    """The same elements in another shape; -1 is what is left. Of open extents the products have to be equal for all values."""
    old, new = sizes(x), [int(getattr(d, "value", d)) if not _is_open(d) else d for d in newshape]
    known = [d for d in new if _is_open(d) or d != -1]
    if len(known) == len(new) - 1:
        place = next(i for i, d in enumerate(new) if not _is_open(d) and d == -1)
        new[place] = _left(old, known)
    if _factors(old) != _factors(new) or any(not _is_open(d) and d < 0 for d in new):
        raise ExpressionError(f"topi.reshape: {old} has {prod(old)} elements, {list(newshape)} has not")
    return _moved(new, lambda *i: x[tuple(from_flat(flat_index(i, new), old))], "reshape")


def _is_open(extent: object) -> bool:
    return isinstance(extent, Expr) and not isinstance(extent, IntImm)


def _factors(extents: Sequence[Any]) -> tuple[int, Counter[Expr]]:
    """How many elements there are, as a number and the open factors that it is multiplied by."""
    known, found, left = 1, Counter[Expr](), list(extents)
    while left:
        d = left.pop()
        if isinstance(d, Binary) and d.op == "mul":
            left += [d.a, d.b]
        elif _is_open(d):
            found[d] += 1
        else:
            known *= int(getattr(d, "value", d))
    return (known, found) if known else (0, Counter())


def _left(old: Sequence[object], known: Sequence[object]) -> Any:
    """The extent that is left of all elements beside those that are known: 0 where these are no divisors of it."""
    (whole, open_ones), (part, beside) = _factors(old), _factors(known)
    if not part or whole % part or beside - open_ones:
        return 0
    return prod((open_ones - beside).elements(), start=whole // part)


@operator(PatternKind.INJECTIVE, lambda x: x.reshape(x.shape[0], -1), sample((3, 4, 2)))
def flatten(x: Tensor) -> Tensor:
    """All axes but the first in one."""
    first, *rest = sizes(x)
    return reshape(x, [first, prod(rest)])


@operator(
    PatternKind.INJECTIVE,
    lambda x, axis, num_newaxis=1: np.expand_dims(
        x, tuple(range(axis % (x.ndim + 1), axis % (x.ndim + 1) + num_newaxis))
    ),
    sample((3, 4), 1),
    sample((3, 4), 2, 2),
)
def expand_dims(x: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """New axes of extent 1 before `axis`."""
    at = axis_of(axis, x.ndim + 1, "expand_dims")
    shape = sizes(x)
    return _moved(
        [*shape[:at], *[1] * num_newaxis, *shape[at:]], lambda *i: x[(*i[:at], *i[at + num_newaxis :])], "expand_dims"
    )


@operator(
    PatternKind.INJECTIVE, lambda x, axis=None: np.squeeze(x, axis), sample((3, 1, 4, 1)), sample((3, 1, 4, 1), 1)
)
def squeeze(x: Tensor, axis: object = None) -> Tensor:
    """Without axes of extent 1: those that are named, or all."""
    shape = sizes(x)
    gone = [d for d, e in enumerate(shape) if e == 1] if axis is None else axes_of(axis, x.ndim, "squeeze")
    if any(shape[d] != 1 for d in gone):
        raise ExpressionError(f"topi.squeeze: axes {gone} of {shape} are not all of extent 1")
    kept = [d for d in range(x.ndim) if d not in gone]

    def element(*i: Expr) -> Expr:
        at = dict(zip(kept, i))
        found: Expr = x[tuple(at.get(d, 0) for d in range(x.ndim))]
        return found

    return _moved([shape[d] for d in kept] or [1], element, "squeeze")


@operator(
    PatternKind.INJECTIVE,
    lambda xs, axis=0: np.concatenate(xs, axis),
    sample([(2, 3), (4, 3), (1, 3)]),
    sample([(2, 3), (2, 2)], 1),
)
def concatenate(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors one behind the other on an axis."""
    tensors = list(a_tuple)
    at = axis_of(axis, tensors[0].ndim, "concatenate")
    shapes = [sizes(t) for t in tensors]
    known = (
        (a, b)
        for s in shapes
        for d, (a, b) in enumerate(zip(s, shapes[0]))
        if d != at and isinstance(a, int) and isinstance(b, int)
    )
    if any(len(s) != len(shapes[0]) for s in shapes) or any(a != b for a, b in known):
        raise ExpressionError(f"topi.concatenate: {shapes} differ on other axes than {at}")
    ends = list(itertools.accumulate(s[at] for s in shapes))

    def element(*i: Expr) -> Expr | None:
        found: Expr | None = None
        for t, s, end in reversed(list(zip(tensors, shapes, ends))):
            own = t[(*i[:at], i[at] - (end - s[at]), *i[at + 1 :])]
            found = own if found is None else te.if_then_else(i[at] < end, own, found)
        return found

    return _moved([*shapes[0][:at], ends[-1], *shapes[0][at + 1 :]], element, "concatenate")


@operator(PatternKind.INJECTIVE, lambda xs, axis=0: np.stack(xs, axis), sample([(2, 3), (2, 3)], 1))
def stack(a_tuple: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors side by side on a new axis."""
    at = axis_of(axis, a_tuple[0].ndim + 1, "stack")
    return concatenate([expand_dims(t, at) for t in a_tuple], at)


@operator(
    PatternKind.INJECTIVE,
    lambda x, indices_or_sections, axis=0: np.split(x, indices_or_sections, axis),
    sample((6, 3), 3),
    sample((2, 7), [2, 5], 1),
)
def split(ary: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """A tensor in so many equal parts, or cut at these places."""
    at, shape = axis_of(axis, ary.ndim, "split"), numbers(ary, "split")
    if isinstance(indices_or_sections, int):
        if shape[at] % indices_or_sections:
            raise ExpressionError(f"topi.split: an extent of {shape[at]} has no {indices_or_sections} equal parts")
        part = shape[at] // indices_or_sections
        starts = list(range(0, shape[at], part))
    else:
        starts = [0, *indices_or_sections]
    ends = [*starts[1:], shape[at]]
    return [strided_slice(ary, [start], [end], axes=[at]) for start, end in zip(starts, ends)]


def _sliced(
    x: Array,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
) -> Array:
    cut = [slice(None)] * x.ndim
    for n, d in enumerate(range(len(begin)) if axes is None else axes):
        cut[d] = slice(begin[n], end[n], strides[n] if strides else 1)
    return x[tuple(cut)]


@operator(
    PatternKind.INJECTIVE,
    _sliced,
    sample((6, 7), [1, 2], [5, 7], [2, 3]),
    sample((4, 5), [-3], [-1], axes=[1]),
    sample((6,), [4], [1], [-1]),
)
def strided_slice(
    x: Tensor,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
) -> Tensor:
    """Every `strides`-th element from `begin` to before `end`, on the first axes or on those that are named."""
    shape = sizes(x)
    which = list(range(len(begin))) if axes is None else [axis_of(a, x.ndim, "strided_slice") for a in axes]
    check_known((shape[d] for d in which), x, "strided_slice")
    parts = {d: (0, 1) for d in range(x.ndim)}
    made = list(shape)
    for n, d in enumerate(which):
        chosen = range(shape[d])[slice(begin[n], end[n], strides[n] if strides else 1)]
        parts[d], made[d] = (chosen.start, chosen.step), len(chosen)
    return _moved(made, lambda *i: x[tuple(v * parts[d][1] + parts[d][0] for d, v in enumerate(i))], "strided_slice")


def _padded(x: Array, pad_before: Sequence[int], pad_after: Sequence[int] | None = None, pad_value: float = 0) -> Array:
    return np.pad(x, list(zip(pad_before, pad_after or pad_before)), constant_values=pad_value)


@operator(PatternKind.INJECTIVE, _padded, sample((3, 4), [1, 0], [2, 3], 5), sample((3, 4), [0, 2]))
def pad(
    data: Tensor, pad_before: Sequence[int], pad_after: Sequence[int] | None = None, pad_value: object = 0
) -> Tensor:
    """Elements of one value around a tensor: so many before and after it on each axis."""
    shape, after = sizes(data), list(pad_before if pad_after is None else pad_after)
    before, value = list(pad_before), pad_value if isinstance(pad_value, Expr) else number(pad_value, data.dtype)

    def element(*i: Expr) -> Expr:
        tests = []
        for v, low, high, extent in zip(i, before, after, shape):
            tests += [v >= low] if low else []
            tests += [v < extent + low] if high else []
        own = data[tuple(v - low for v, low in zip(i, before))]
        return te.if_then_else(te.all(*tests), own, value) if tests else own

    return _moved([b + d + a for b, d, a in zip(before, shape, after)], element, "pad")


@operator(PatternKind.INJECTIVE, np.tile, sample((2, 3), [2, 2]), sample((3,), [2, 1]))
def tile(x: Tensor, reps: Sequence[int]) -> Tensor:
    """A tensor so many times on each axis."""
    rank = max(x.ndim, len(reps))
    shape = [*[1] * (rank - x.ndim), *sizes(x)]
    times = [*[1] * (rank - len(reps)), *reps]
    skipped = rank - x.ndim
    return _moved(
        [d * r for d, r in zip(shape, times)],
        lambda *i: x[tuple(v % d for v, d in zip(i[skipped:], shape[skipped:]))],
        "tile",
    )


@operator(PatternKind.INJECTIVE, lambda x, repeats, axis: np.repeat(x, repeats, axis), sample((2, 3), 2, 1))
def repeat(x: Tensor, repeats: int, axis: int) -> Tensor:
    """Each element so many times on an axis."""
    at, shape = axis_of(axis, x.ndim, "repeat"), sizes(x)
    shape[at] = shape[at] * repeats
    return _moved(shape, lambda *i: x[(*i[:at], i[at] // repeats, *i[at + 1 :])], "repeat")


@operator(PatternKind.INJECTIVE, lambda x, axis=0: np.flip(x, axis), sample((3, 4), 1))
def flip(x: Tensor, axis: int = 0) -> Tensor:
    """An axis backwards."""
    at, shape = axis_of(axis, x.ndim, "flip"), sizes(x)
    return _moved(shape, lambda *i: x[(*i[:at], shape[at] - 1 - i[at], *i[at + 1 :])], "flip")


def _spaced(x: Array, block: int) -> Array:
    n, c, h, w = x.shape
    made = x.reshape(n, block, block, c // block**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    return made.reshape(n, c // block**2, h * block, w * block)


@operator(PatternKind.INJECTIVE, _spaced, sample((1, 8, 2, 3), 2))
def depth_to_space(x: Tensor, block_size: int) -> Tensor:
    """Channels of NCHW to blocks of places."""
    n, c, h, w = numbers(x, "depth_to_space")
    b, depth = block_size, c // block_size**2
    return _moved(
        [n, depth, h * b, w * b],
        lambda i, k, y, z: x[i, ((y % b) * b + z % b) * depth + k, y // b, z // b],
        "depth_to_space",
    )


def _gathered(x: Array, block: int) -> Array:
    n, c, h, w = x.shape
    made = x.reshape(n, c, h // block, block, w // block, block).transpose(0, 3, 5, 1, 2, 4)
    return made.reshape(n, c * block**2, h // block, w // block)


@operator(PatternKind.INJECTIVE, _gathered, sample((1, 2, 4, 6), 2))
def space_to_depth(x: Tensor, block_size: int) -> Tensor:
    """Blocks of places of NCHW to channels."""
    n, c, h, w = numbers(x, "space_to_depth")
    b = block_size
    if h % b or w % b:
        raise ExpressionError(f"topi.space_to_depth: {h} by {w} places are not made of blocks of {b}")
    return _moved(
        [n, c * b * b, h // b, w // b],
        lambda i, k, y, z: x[i, k % c, y * b + (k // c) // b, z * b + (k // c) % b],
        "space_to_depth",
    )
