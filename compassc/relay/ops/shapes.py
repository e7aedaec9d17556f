"""Operators that give tensors other shapes: the same elements, or some of them, at other places."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from compass_core.arrays import Array
from compassc.ir.errors import ExpressionError
from compassc.operators.calls import CallOperator, X
from compassc.operators.declare import numbers, sample
from compassc.relay import layouts
from compassc.relay.attributes import Attrs
from compassc.relay.builders import builder, call
from compassc.relay.expr import Constant, Expr, TupleWrapper
from compassc.relay.ops.declare import BROADCAST, INJECTIVE, declare, record
from compassc.relay.ops.elementwise import NUMBERS
from compassc.relay.ops.relations import (
    axes_of,
    axis_of,
    differ,
    fail,
    known,
    merged,
    of,
    one_dtype,
    product,
    require,
    shaped,
    tensors,
    total,
)
from compassc.relay.types import Dim, TensorType, TupleType, Type
from compassc.te.tensor import Tensor


def extents(x: Array | Tensor) -> list[int]:
    """The extents of an array or of a tensor."""
    return numbers(x, "relay") if isinstance(x, Tensor) else list(x.shape)


def listed(given: object) -> Any:
    """What attributes keep of a number, a list or a constant; another expression is left as it is."""
    if isinstance(given, Constant):
        found = given.array.tolist()
        return found
    if isinstance(given, (list, tuple)):
        return [g.array.item() if isinstance(g, Constant) else g for g in given]
    return given


def several(given: object) -> Any:
    """As `listed`, a number as a list of one."""
    found = listed(given)
    return [found] if hasattr(found, "__index__") else found


# ---------------------------------------------------------------------------------------------------------------- reshape


def reshaped(old: Sequence[Dim], new: Sequence[int], allowzero: bool = False) -> list[Dim]:
    """The shape that codes make of another one: numbers, 0 (as it was), -1 (what is left), -2 (all the rest as they were),
    -3 (two in one), -4 (one in the two that follow)."""
    made: list[Dim] = []
    left: int | None = None
    own: list[Dim] = []  # what numbers and -1 take
    literal, at, codes = 1, 0, list(new)

    def take(count: int = 1) -> Sequence[Dim]:
        nonlocal at
        require(at + count <= len(old), lambda: f"codes {tuple(new)} need more dimensions than {tuple(old)} has")
        at += count
        return old[at - count : at]

    while codes:
        code = codes.pop(0)
        if code > 0 or code == 0 and allowzero:
            made.append(code)
            literal *= code
            own += old[at : at + 1]
            at += 1
        elif code == 0:
            made += take()
        elif code == -1:
            require(left is None, lambda: f"one dimension alone may be inferred, {tuple(new)} has several")
            left = len(made)
            made.append(1)
            own += old[at : at + 1]
            at += 1
        elif code == -2:
            made += take(max(len(old) - at, 0))
        elif code == -3:
            made.append(product(take(2)))
        elif code == -4:
            require(len(codes) >= 2, "the code -4 must be followed by two numbers")
            made += _two(take()[0], codes.pop(0), codes.pop(0))
        else:
            raise fail(f"there is no code {code} in {tuple(new)}", "codes are 0, -1, -2, -3, -4")
    if left is not None:
        rest = product([*own, *old[at:]])
        made[left] = of(lambda n: n // literal if literal else 0, rest)
    before, after = product(old), product(made)
    require(not differ(before, after), lambda: f"Input tensor shape({shown(old)}) and reshaped shape({shown(made)}) are not compatible")  # fmt: skip
    return made


def _two(whole: Dim, first: int, second: int) -> list[Dim]:
    require(first != -1 or second != -1, "of the two numbers behind -4 only one may be -1")
    parts: list[Dim] = [
        of(lambda n: n // second, whole) if first == -1 else first,
        of(lambda n: n // first, whole) if second == -1 else second,
    ]
    require(not differ(whole, product(parts)), lambda: f"a dimension of {whole} is not {parts[0]} times {parts[1]}")
    return parts


def shown(shape: Sequence[Dim]) -> str:
    """A shape in messages."""
    return ",".join(map(str, shape))


def _from_right(old: Sequence[Dim], new: Sequence[int], allowzero: bool = False) -> list[Dim]:
    return reshaped(list(old)[::-1], list(new)[::-1], allowzero)[::-1]


_reshape_attrs = record("ReshapeAttrs", newshape=..., allowzero=False)


@builder("reshape")
def reshape(data: Expr, newshape: object, allowzero: bool = False) -> Expr:
    """The same elements in another shape, by codes or by a tensor of them."""
    shape = several(newshape)
    if isinstance(shape, Expr):
        return call("dyn.reshape", data, shape, newshape=None, allowzero=allowzero)
    return call("reshape", data, newshape=shape, allowzero=allowzero)


declare(
    "reshape", "data, newshape, allowzero=False", lambda a, x: shaped(x, reshaped(x.shape, a.newshape, a.allowzero)),
    INJECTIVE, sample((2, 3, 4), newshape=[0, -1]), sample((2, 3, 4), newshape=[-3, -2]),
    sample((2, 6), newshape=[0, -4, 2, -1]), sample((2, 3), newshape=[6]), sample((1, 1), newshape=[]), record=_reshape_attrs,
    body=lambda call, a, t, x: call("reshape", x, reshaped(extents(x), a.newshape, a.allowzero)), types=NUMBERS, level=3,
    build=False, TReshapeOp=True,
)  # fmt: skip
declare(
    "contrib_reverse_reshape", "data, newshape, allowzero=False",
    lambda a, x: shaped(x, _from_right(x.shape, a.newshape, a.allowzero)), INJECTIVE,
    sample((5, 4, 6), newshape=[-1, 0]), record=_reshape_attrs, level=10, build=False, TReshapeOp=True,
    body=lambda call, a, t, x: call("reshape", x, _from_right(extents(x), a.newshape, a.allowzero)),
)  # fmt: skip


@builder("reverse_reshape")
def reverse_reshape(data: Expr, newshape: object) -> Expr:
    """As `reshape`, with codes applied from the last dimension on."""
    return call("contrib_reverse_reshape", data, newshape=several(newshape))


def _like(a: Attrs, old: Sequence[Dim], like: Sequence[Dim]) -> list[Dim]:
    def ends(begin: int, end: int | None, rank: int) -> tuple[int, int]:
        first, last = begin + rank * (begin < 0), rank if end is None else end + rank * (end < 0)
        require(0 <= first <= last <= rank, lambda: f"there are no dimensions from {begin} to {end} of {rank}")
        return first, last

    (l0, l1), (r0, r1) = ends(a.lhs_begin, a.lhs_end, len(old)), ends(a.rhs_begin, a.rhs_end, len(like))
    made = [*old[:l0], *like[r0:r1], *old[l1:]]
    require(not differ(product(old), product(made)), lambda: f"shapes ({shown(old)}) and ({shown(made)}) have different sizes")  # fmt: skip
    return made


declare(
    "reshape_like", "data, shape_like, lhs_begin=0, lhs_end=None, rhs_begin=0, rhs_end=None",
    lambda a, x, like: shaped(x, _like(a, x.shape, like.shape)), INJECTIVE, sample((2, 6), (3, 4)),
    sample((2, 6, 5), (3, 4, 7), lhs_begin=0, lhs_end=2, rhs_begin=0, rhs_end=-1), level=3,
    record=record("ReshapeLikeAttrs", lhs_begin=0, lhs_end=None, rhs_begin=0, rhs_end=None),
    body=lambda call, a, t, x, like: call("reshape", x, _like(a, extents(x), extents(like))),
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ order of axes


def _order(axes: Sequence[int] | None, rank: int) -> list[int]:
    if axes is None:
        return list(range(rank))[::-1]
    require(len(axes) == rank, lambda: f"{len(axes)} axes {axes} are given for {rank} dimensions")
    return axes_of(axes, rank)


declare(
    "transpose", "data, axes=None", lambda a, x: shaped(x, [x.shape[d] for d in _order(a.axes, len(x.shape))]), INJECTIVE,
    sample((2, 3, 4), axes=None), sample((2, 3, 4), axes=[0, -1, 1]), record=record("TransposeAttrs", axes=...), types=NUMBERS,
    body=lambda call, a, t, x: call("transpose", x, _order(a.axes, x.ndim)), level=3,
)  # fmt: skip


def _gone(a: Attrs, shape: Sequence[Dim]) -> list[int]:
    if a.axis is None:
        require(all(map(known, shape)), "without axes all extents must be known")
        return [d for d, n in enumerate(shape) if n == 1]
    axes = axes_of(a.axis, len(shape))
    require(not any(differ(shape[d], 1) for d in axes), lambda: f"axes {a.axis} of ({shown(shape)}) are not all 1")
    return axes


def _without(a: Attrs, x: TensorType) -> Type:
    gone = _gone(a, x.shape)
    return shaped(x, [n for d, n in enumerate(x.shape) if d not in gone])


@builder("squeeze")
def squeeze(data: Expr, axis: object = None) -> Expr:
    """Without axes of extent 1: those that are named, or all."""
    axes = several(axis)
    if isinstance(axes, Expr):
        return call("dyn.squeeze", data, axes, axis=None)
    return call("squeeze", data, axis=axes)


declare(
    "squeeze", "data, axis=None", _without, INJECTIVE, sample((1, 3, 1)), sample((1, 3, 1), axis=[-1]), sample((1, 1)),
    record=record("SqueezeAttrs", axis=None), level=3, build=False, TReshapeOp=True,
    body=lambda call, a, t, x: call("reshape", x, [n for d, n in enumerate(extents(x)) if d not in _gone(a, extents(x))]),
)  # fmt: skip


def _expanded(a: Attrs, x: TensorType) -> Type:
    rank = len(x.shape)
    require(-rank - 1 <= a.axis <= rank, lambda: f"axis {a.axis} is out of range for {rank} dimensions")
    require(a.num_newaxis >= 0, lambda: f"num_newaxis {a.num_newaxis} is negative")
    at = _new_axis(a, rank)
    return shaped(x, [*x.shape[:at], *[1] * a.num_newaxis, *x.shape[at:]])


def _new_axis(a: Attrs, rank: int) -> int:
    return int(a.axis + rank + 1 if a.axis < 0 else a.axis)


@builder("expand_dims")
def expand_dims(data: Expr, axis: object, num_newaxis: int = 1) -> Expr:
    """New axes of extent 1."""
    at = listed(axis)
    if isinstance(at, Expr):
        return call("dyn.expand_dims", data, at, num_newaxis=num_newaxis)
    return call("expand_dims", data, axis=at, num_newaxis=num_newaxis)


def _with_ones(call: CallOperator[X], a: Attrs, t: TensorType, x: X) -> X:
    at, shape = _new_axis(a, x.ndim), extents(x)
    return call("reshape", x, [*shape[:at], *[1] * a.num_newaxis, *shape[at:]])


declare(
    "expand_dims", "data, axis, num_newaxis=1", _expanded, BROADCAST, sample((3, 4), axis=-1), sample((), axis=0),
    sample((3, 4), axis=1, num_newaxis=2), record=record("ExpandDimsAttrs", axis=..., num_newaxis=1), body=_with_ones,
    level=1, build=False, TReshapeOp=True,
)  # fmt: skip
declare(
    "nn.batch_flatten", "data", lambda a, x: shaped(x, _flat(x)), INJECTIVE, sample((2, 3, 4)), level=1, TReshapeOp=True,
    body=lambda call, a, t, x: call("reshape", x, [extents(x)[0], prod(extents(x)[1:])]),
)  # fmt: skip


def _flat(x: TensorType) -> list[Dim]:
    require(len(x.shape) > 0, lambda: f"the data needs a dimension, it is {x}")
    return [x.shape[0], product(x.shape[1:])]


# ------------------------------------------------------------------------------------------------------- several in one


def _joined(a: Attrs, given: TupleType) -> Type:
    fields = tensors(given, "concatenate")
    require(len(fields) > 0, "the tuple is empty")
    first = fields[0]
    one_dtype("concatenate", *fields)
    rank = len(first.shape)
    at = axis_of(a.axis, rank)
    shape = list(first.shape)
    for f in fields[1:]:
        require(len(f.shape) == rank, lambda: f"{first} and {f} have different ranks")  # noqa: B023
        for d in range(rank):
            if d != at:
                shape[d] = merged(shape[d], f.shape[d], first, f)
    shape[at] = total([f.shape[at] for f in fields])
    return shaped(first, shape)


def _fields(values: dict[str, object]) -> None:
    if isinstance(values["data"], (list, tuple)) and not values["data"]:
        raise EmptyTuple("there is nothing to put together: the list is empty", "give at least one tensor")


class EmptyTuple(ExpressionError, ValueError):
    """A list of tensors without any."""


declare(
    "concatenate", "data, axis", _joined, INJECTIVE, sample([(2, 3), (4, 3)], axis=0), sample([(2, 3), (2, 1)], axis=-1),
    record=record("ConcatenateAttrs", axis=0), tuples="data", prepare=_fields, types=NUMBERS, level=1,
    body=lambda call, a, t, x: call("concatenate", x, a.axis),
)  # fmt: skip


def _stacked(a: Attrs, given: TupleType) -> Type:
    fields = tensors(given, "stack")
    require(len(fields) > 0, "the tuple is empty")
    one_dtype("stack", *fields)
    shape = list(fields[0].shape)
    for f in fields[1:]:
        require(len(f.shape) == len(shape), lambda: f"{fields[0]} and {f} have different ranks")  # noqa: B023
        shape = [merged(m, n, fields[0], f) for m, n in zip(shape, f.shape)]
    at = axis_of(a.axis, len(shape) + 1)
    return shaped(fields[0], [*shape[:at], len(fields), *shape[at:]])


declare(
    "stack", "data, axis", _stacked, INJECTIVE, sample([(2, 3), (2, 3)], axis=-1), record=record("StackAttrs", axis=0),
    tuples="data", prepare=_fields, body=lambda call, a, t, x: call("stack", x, a.axis), types=NUMBERS, level=3,
)  # fmt: skip


def _cuts(a: Attrs, extent: Dim) -> list[Dim]:
    """The extents of the parts."""
    cuts = a.indices_or_sections
    if isinstance(cuts, int):
        require(cuts > 0 and not (isinstance(extent, int) and extent % cuts), lambda: f"indices_or_sections need to be able to divide input.shape[axis]: {extent} has no {cuts} equal parts")  # fmt: skip
        return [of(lambda n: n // cuts, extent)] * cuts
    ends = [*cuts, extent]
    for low, high in zip([0, *cuts], ends):
        require(not isinstance(high, int) or low < high, lambda: f"the cuts {cuts} do not ascend within {extent}")
    return [of(lambda m, n: n - m, low, high) for low, high in zip([0, *cuts], ends)]


def _parts(a: Attrs, x: TensorType) -> Type:
    at = axis_of(a.axis, len(x.shape))
    return TupleType([shaped(x, [*x.shape[:at], n, *x.shape[at + 1 :]]) for n in _cuts(a, x.shape[at])])


@builder("split")
def split(data: Expr, indices_or_sections: object, axis: int = 0) -> TupleWrapper:
    """A tensor in so many equal parts, or cut at these places."""
    cuts = listed(indices_or_sections)
    made = call("split", data, indices_or_sections=cuts, axis=axis)
    return TupleWrapper(made, cuts if hasattr(cuts, "__index__") else len(cuts) + 1)


def _split(call: CallOperator[X], a: Attrs, t: Type, x: X) -> X:
    cuts = a.indices_or_sections
    return call("split", x, cuts if isinstance(cuts, int) else list(cuts), a.axis)


declare(
    "split", "data, indices_or_sections, axis=0", _parts, INJECTIVE, sample((6, 2), indices_or_sections=3),
    sample((2, 7), indices_or_sections=[2, 5], axis=-1), record=record("SplitAttrs", indices_or_sections=..., axis=0),
    build=False, level=3, body=_split,
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------------------ layouts


def _laid(a: Attrs, x: TensorType) -> Type:
    require(layouts.convertible(a.src_layout, a.dst_layout), lambda: f"layout {a.src_layout} cannot be converted to {a.dst_layout}")  # fmt: skip
    require(len(layouts.layout(a.src_layout)) == len(x.shape), lambda: f"{x} has no layout {a.src_layout}")
    return shaped(x, layouts.converted(x.shape, a.src_layout, a.dst_layout))


for _name, _key in (("layout_transform", "LayoutTransformAttrs"), ("auto_scheduler_layout_transform", "AutoSchedulerLayoutTransformAttrs")):  # fmt: skip
    declare(
        _name, "data, src_layout, dst_layout", _laid, INJECTIVE, sample((1, 6, 2, 3), src_layout="NCHW", dst_layout="NHWC"),
        sample((1, 6, 2, 3), src_layout="NCHW", dst_layout="NCHW4c"), sample((1, 2, 3, 2, 4), src_layout="NCHW4c", dst_layout="NHWC"),
        record=record(_key, src_layout=..., dst_layout=...), level=5,
        body=lambda call, a, t, x: layouts.transform(call, x, extents(x), a.src_layout, a.dst_layout),
    )  # fmt: skip
